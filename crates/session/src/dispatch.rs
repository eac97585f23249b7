//! From a command line to its handler: 500 for what is no command here, 501 for the wrong number of arguments.
//!
//! A TAKETHIS is followed by an article whatever is wrong with its line, so its refusal waits for the article's end.

use std::sync::Arc;

use newsreel_net::access::Grant;
use newsreel_service::NewsService;
use newsreel_wire::GroupName;
use newsreel_wire::nntp::line::Command;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::answers;
use crate::commands::{Verb, dispatch};
use crate::core::{Core, Incoming};
use crate::end::End;
use crate::slots::Answer;
use crate::spec::Needs;

/// What whoever may not do something is told (RFC 3977 section 3.2.1).
pub(crate) const NOT_PERMITTED: &str = "502 Not permitted\r\n";

/// What whoever may not do something yet is told (RFC 4643 section 2.1).
pub(crate) const LOG_IN_FIRST: &str = "480 Log in first\r\n";

/// What whoever may not do something without TLS is told (RFC 4642 section 2.2.2).
pub(crate) const START_TLS_FIRST: &str = "483 Start TLS first\r\n";

/// The first line of a session.
pub(crate) fn greet<S, Io>(core: &mut Core<S, Io>)
where
    S: NewsService,
    Io: AsyncRead + AsyncWrite + Unpin + Send,
{
    let shared = core.shared.clone();
    let greeting = shared.config.greeting.as_bytes();
    if core.may_post() {
        core.reply_parts(&[b"200 ", greeting, b" (posting permitted)"]);
    } else {
        core.reply_parts(&[b"201 ", greeting, b" (no posting)"]);
    }
}

/// Carries a command out, or says why not: 500 for what is no command here, 501 for the wrong number of arguments.
pub(crate) async fn run<S, Io>(
    core: &mut Core<S, Io>,
    verb: Option<Verb>,
    command: &Command<'_>,
) -> Result<(), End>
where
    S: NewsService,
    Io: AsyncRead + AsyncWrite + Unpin + Send,
{
    core.shared.metrics.command(verb.map(|verb| verb as usize));
    if is_http(command) {
        core.reply("400 This is a news server, not a web server\r\n");
        core.ending = Some(End::NotNntp);
        return Ok(());
    }
    let Some(verb) = verb else {
        if core.service.forwards(command.verb) {
            return Box::pin(forwarded(core, command)).await;
        }
        unknown(core);
        return Ok(());
    };
    core.bad_commands = 0;
    let spec = verb.spec();
    if spec.needs == Needs::Newnews {
        core.learn(|features| features.newnews).await;
    }
    if !spec.needs.met(core.features) {
        refuse(core, verb, "500 Command not offered by this server\r\n");
        return Ok(());
    }
    if !(spec.args.0..=spec.args.1).contains(&command.args.len()) {
        refuse(core, verb, "501 Wrong number of arguments\r\n");
        return Ok(());
    }
    if !spec.needs.granted(&core.grant) {
        let line = core.not_permitted(|grant| spec.needs.gained(grant));
        refuse(core, verb, line);
        return Ok(());
    }
    dispatch(core, verb, command).await
}

/// Whether a browser sent this.  Whoever shows a page to somebody on this machine can have anything sent here behind such a
/// line, and loopback may post and feed.
fn is_http(command: &Command<'_>) -> bool {
    let [target, version] = &*command.args else {
        return false;
    };
    let is_target = target.starts_with(b"/") || target.starts_with(b"http") || *target == b"*";
    is_target && version.starts_with(b"HTTP/")
}

/// Has a command that is none of ours carried out elsewhere.  What its arguments name nobody here understands, so it is only for
/// those who may read everything.
async fn forwarded<S, Io>(core: &mut Core<S, Io>, command: &Command<'_>) -> Result<(), End>
where
    S: NewsService,
    Io: AsyncRead + AsyncWrite + Unpin + Send,
{
    core.bad_commands = 0;
    if !core.grant.reads_all() {
        let line = core.not_permitted(Grant::reads_all);
        core.reply(line);
        return Ok(());
    }
    let mut words = vec![command.verb];
    words.extend_from_slice(&command.args);
    let name = core.selected.map(|_| core.group_name.clone());
    let group = name.as_deref();
    let group = group.and_then(|name| GroupName::parse(name.as_bytes()).ok());
    let (service, mut answer) = (Arc::clone(&core.service), Vec::new());
    match service.forward(&words, group, &mut answer).await {
        Ok(true) => {
            let octets = answer.len();
            let is_large = octets > core.shared.config.input_chunk_bytes;
            // What a large answer takes of the budget until it is sent.
            let Ok(hold) = is_large.then(|| core.memory.hold(octets)).transpose() else {
                core.reply("403 Too many large answers at once; try again later\r\n");
                return Ok(());
            };
            core.count_reply(&answer);
            core.out().extend_from_slice(&answer);
            drop(answer);
            if hold.is_none() {
                return core.room().await;
            }
            core.flush().await
        }
        Ok(false) => {
            unknown(core);
            Ok(())
        }
        Err(error) => {
            core.reply_error(&error);
            Ok(())
        }
    }
}

fn unknown<S, Io>(core: &mut Core<S, Io>)
where
    S: NewsService,
    Io: AsyncRead + AsyncWrite + Unpin + Send,
{
    let line = count_bad(core).unwrap_or("500 Unknown command\r\n");
    core.reply(line);
}

/// Counts what cannot be a command, which begins anew with one that is; after too many in a row, what the last gets.
pub(crate) fn count_bad<S, Io>(core: &mut Core<S, Io>) -> Option<&'static str>
where
    S: NewsService,
    Io: AsyncRead + AsyncWrite + Unpin + Send,
{
    core.bad_commands += 1;
    let scratch = core.scratch.as_ref();
    let is_owed = scratch.is_some_and(|scratch| !scratch.slots.is_empty());
    // Answers that are owed for what was taken are given first.
    if core.bad_commands < core.shared.config.bad_commands_max || is_owed {
        return None;
    }
    core.ending = Some(End::NotNntp);
    Some("400 Too many unknown commands\r\n")
}

/// Refuses a command in its turn; after a TAKETHIS its article is read first.
fn refuse<S, Io>(core: &mut Core<S, Io>, verb: Verb, line: &'static str)
where
    S: NewsService,
    Io: AsyncRead + AsyncWrite + Unpin + Send,
{
    if verb == Verb::TakeThis {
        core.incoming = Some(Incoming::Refused(line));
    } else {
        answers::push(core, Answer::Fixed(line), b"");
    }
}
