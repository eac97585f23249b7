//! GROUP: selects a group (RFC 3977 section 6.1.1).

use newsreel_net::access::Grant;
use newsreel_service::{GroupInfo, NewsService};
use newsreel_wire::GroupName;
use newsreel_wire::nntp::line::Command;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::core::{Core, Selected};
use crate::end::End;
use crate::spec::{Needs, Spec};

pub(super) const NO_GROUP: &str = "411 No such newsgroup\r\n";

/// Of the reply, and of LISTGROUP's.
pub(super) const CODE: &[u8] = b"211 ";

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
    if let Some(info) = find(core, name, NO_GROUP).await {
        select(core, name, &info);
        let out = core.out();
        out.extend_from_slice(CODE);
        write_facts(out, name, &info);
        out.extend_from_slice(b"\r\n");
        core.count_reply(CODE);
    }
    Ok(())
}

/// The group of this name; none: that was replied, `absent` where there is none.
pub(super) async fn find<S, Io>(
    core: &mut Core<S, Io>,
    name: GroupName<'_>,
    absent: &'static str,
) -> Option<GroupInfo>
where
    S: NewsService,
    Io: AsyncRead + AsyncWrite + Unpin + Send,
{
    // What may not be read is not told to be there: nobody is asked for it, so that no fault tells it from what is not.
    let reads = |grant: &Grant| grant.reads(name.as_str());
    if !reads(&core.grant) {
        let line = core.not_yet(reads).unwrap_or(NO_GROUP);
        core.reply(line);
        return None;
    }
    match core.service.group(name).await {
        Ok(Some(info)) => return Some(info),
        Ok(None) => core.reply(absent),
        Err(error) => core.reply_error(&error),
    }
    None
}

/// Selects a group, and its first article.
pub(super) fn select<S, Io>(core: &mut Core<S, Io>, name: GroupName<'_>, info: &GroupInfo) {
    core.selected = Some(Selected {
        id: info.id,
        current: (info.count > 0).then_some(info.first),
    });
    core.group_name.clear();
    core.group_name.push_str(name.as_str());
}

/// What follows the code: how many, the lowest and the highest number, the name.
pub(super) fn write_facts(out: &mut Vec<u8>, name: GroupName<'_>, info: &GroupInfo) {
    let mut digits = itoa::Buffer::new();
    for number in [info.count, info.low.0, info.high.0] {
        out.extend_from_slice(digits.format(number).as_bytes());
        out.push(b' ');
    }
    out.extend_from_slice(name.as_bytes());
}
