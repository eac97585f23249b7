//! LISTGROUP: selects a group and lists its numbers (RFC 3977 section 6.1.2).

use newsreel_service::{GroupInfo, NewsService};
use newsreel_wire::nntp::line::Command;
use newsreel_wire::{GroupName, NumberRange};
use tokio::io::{AsyncRead, AsyncWrite};

use super::group;
use crate::core::{Core, SELECTED_GONE, scratch_of};
use crate::end::End;
use crate::listing::Listing;
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
    let absent = match command.arg(0) {
        Some(_) => group::NO_GROUP,
        None => SELECTED_GONE,
    };
    let Some(info) = group::find(core, name, absent).await else {
        if command.arg(0).is_none() {
            core.has_selected_gone().await;
        }
        return Ok(());
    };
    list(core, name, &info, range).await
}

/// Selects a group and lists its numbers of a range.
async fn list<S, Io>(
    core: &mut Core<S, Io>,
    name: GroupName<'_>,
    info: &GroupInfo,
    range: NumberRange,
) -> Result<(), End>
where
    S: NewsService,
    Io: AsyncRead + AsyncWrite + Unpin + Send,
{
    let mut listing = Listing::begin(core, group::CODE);
    group::write_facts(core.out(), name, info);
    core.out().extend_from_slice(b" list follows\r\n");
    let (mut next, high) = range
        .clamp(info.low, info.high)
        .map_or((None, info.high), |(low, high)| (Some(low), high));
    while let Some(from) = next {
        let scratch = scratch_of(&mut core.scratch);
        scratch.numbers.clear();
        let listed = core
            .service
            .numbers(info.id, from, high, NUMBERS_MAX, &mut scratch.numbers)
            .await;
        next = match listed {
            Ok(next) => next,
            Err(error) => return listing.failed(core, &error),
        };
        listing.stands(core);
        let scratch = scratch_of(&mut core.scratch);
        let mut digits = itoa::Buffer::new();
        for number in &scratch.numbers {
            let digits = digits.format(number.0).as_bytes();
            scratch.out.extend_from_slice(digits);
            scratch.out.extend_from_slice(b"\r\n");
        }
        if next.is_some() {
            listing.step(core).await?;
        }
    }
    group::select(core, name, info);
    listing.end(core);
    Ok(())
}
