//! GROUP: selects a group (RFC 3977 section 6.1.1).

use newsreel_service::{GroupInfo, NewsService};
use newsreel_wire::GroupName;
use newsreel_wire::nntp::line::Command;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::core::{Core, Selected};
use crate::end::End;
use crate::spec::{Needs, Spec};

pub(super) const SPEC: Spec = Spec {
    name: "GROUP",
    usage: "newsgroup",
    args: (1, 1),
    needs: Needs::Reader,
    capability: Some("READER"),
    pipelined: false,
    codes: &[211, 411],
};

pub(super) async fn run<S, Io>(core: &mut Core<S, Io>, command: &Command<'_>) -> Result<(), End>
where
    S: NewsService,
    Io: AsyncRead + AsyncWrite + Unpin + Send,
{
    let Ok(name) = GroupName::parse(command.arg(0).unwrap_or_default()) else {
        core.reply("501 Malformed newsgroup name\r\n");
        return Ok(());
    };
    select(core, name, b"").await.map(|_| ())
}

/// Selects a group and answers 211 with `tail` behind the name, or 411; a failure keeps the earlier selection.
pub(super) async fn select<S, Io>(
    core: &mut Core<S, Io>,
    name: GroupName<'_>,
    tail: &[u8],
) -> Result<Option<GroupInfo>, End>
where
    S: NewsService,
    Io: AsyncRead + AsyncWrite + Unpin + Send,
{
    let info = match core.service.group(name).await {
        Ok(Some(info)) => info,
        Ok(None) => {
            core.reply("411 No such newsgroup\r\n");
            return Ok(None);
        }
        Err(error) => {
            core.reply_error(&error);
            return Ok(None);
        }
    };
    let current = (info.count > 0).then_some(info.low);
    core.selected = Some(Selected {
        id: info.id,
        current,
    });
    core.group_name.clear();
    core.group_name.push_str(name.as_str());
    let (mut count, mut low, mut high) = (
        itoa::Buffer::new(),
        itoa::Buffer::new(),
        itoa::Buffer::new(),
    );
    core.reply_parts(&[
        b"211 ",
        count.format(info.count).as_bytes(),
        b" ",
        low.format(info.low.0).as_bytes(),
        b" ",
        high.format(info.high.0).as_bytes(),
        b" ",
        name.as_bytes(),
        tail,
    ]);
    Ok(Some(info))
}
