//! LISTGROUP: selects a group and lists its numbers (RFC 3977 section 6.1.2).

use newsreel_service::NewsService;
use newsreel_wire::nntp::line::Command;
use newsreel_wire::{GroupName, NumberRange};
use tokio::io::{AsyncRead, AsyncWrite};

use super::group;
use crate::core::{Core, scratch_of};
use crate::end::End;
use crate::spec::{Needs, Spec};

/// Numbers asked for at a time.
const NUMBERS_MAX: usize = 8192;

pub(super) const SPEC: Spec = Spec {
    name: "LISTGROUP",
    usage: "[newsgroup [range]]",
    args: (0, 2),
    needs: Needs::Reader,
    capability: Some("READER"),
    pipelined: false,
    codes: &[211, 411, 412],
};

pub(super) async fn run<S, Io>(core: &mut Core<S, Io>, command: &Command<'_>) -> Result<(), End>
where
    S: NewsService,
    Io: AsyncRead + AsyncWrite + Unpin + Send,
{
    let range = match command.arg(1) {
        None => NumberRange::ALL,
        Some(range) => match NumberRange::parse(range) {
            Ok(range) => range,
            Err(_) => {
                core.reply("501 Malformed range\r\n");
                return Ok(());
            }
        },
    };
    let selected_name;
    let name = match command.arg(0) {
        Some(name) => name,
        None => {
            if core.selected_or_412().is_none() {
                return Ok(());
            }
            selected_name = core.group_name.clone();
            selected_name.as_bytes()
        }
    };
    let Ok(name) = GroupName::parse(name) else {
        core.reply("501 Malformed newsgroup name\r\n");
        return Ok(());
    };
    let Some(info) = group::select(core, name, b" list follows").await? else {
        return Ok(());
    };
    if let Some((mut next, high)) = range.clamp(info.low, info.high) {
        loop {
            let scratch = scratch_of(&mut core.scratch);
            scratch.numbers.clear();
            let listed = core
                .service
                .numbers(info.id, next, high, NUMBERS_MAX, &mut scratch.numbers)
                .await;
            // After the status line a failure can only cut the list short: close rather than lie.
            let Ok(more) = listed else {
                return Err(End::Broken);
            };
            let mut digits = itoa::Buffer::new();
            for number in &scratch.numbers {
                scratch
                    .out
                    .extend_from_slice(digits.format(number.0).as_bytes());
                scratch.out.extend_from_slice(b"\r\n");
            }
            match more {
                Some(more) => next = more,
                None => break,
            }
            core.step(true).await?;
        }
    }
    core.out().extend_from_slice(b".\r\n");
    Ok(())
}
