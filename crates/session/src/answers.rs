//! Writing answers to offers and transfers, in the order of their commands.

use newsreel_service::{Defer, Neighbour, NewsService, Offer, Outcome, TransferKind};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::core::Core;
use crate::end::End;
use crate::slots::{Answer, Settled};

/// Answers at once when nothing is owed before it, else in its turn.
pub(crate) fn push<S, Io>(core: &mut Core<S, Io>, answer: Answer, id: &[u8])
where
    S: NewsService,
    Io: AsyncRead + AsyncWrite + Unpin + Send,
{
    if core.scratch().slots.is_empty() {
        give(core, answer, id, 0);
    } else {
        core.scratch().slots.push(answer, id, 0);
    }
}

/// Fills in what was taken from the connection, and gives every answer that is now due.
pub(crate) fn settle<S, Io>(core: &mut Core<S, Io>)
where
    S: NewsService,
    Io: AsyncRead + AsyncWrite + Unpin + Send,
{
    let Some(mut scratch) = core.scratch.take() else {
        return;
    };
    let mut slots = std::mem::take(&mut scratch.slots);
    for completion in scratch.completions.drain(..) {
        slots.complete(completion);
    }
    core.scratch = Some(scratch);
    while core.ending.is_none()
        && let Some(Settled { answer, id, octets }) = slots.pop()
    {
        give(core, answer, id, octets);
    }
    core.scratch().slots = slots;
}

fn give<S, Io>(core: &mut Core<S, Io>, answer: Answer, id: &[u8], octets: u32)
where
    S: NewsService,
    Io: AsyncRead + AsyncWrite + Unpin + Send,
{
    match answer {
        // The session takes only answers that are known.
        Answer::Waiting(_) => {}
        Answer::Fixed(line) => core.reply(line),
        Answer::Offered(offer) => {
            core.count_offer(offer);
            match offer {
                Offer::Want => core.reply_parts(&[b"238 ", id]),
                Offer::Known => core.reply_parts(&[b"438 ", id]),
                Offer::Later(_) => core.reply_parts(&[b"431 ", id]),
            }
        }
        Answer::Transferred(kind, outcome) => {
            core.shared.metrics.outcome(outcome);
            if kind != TransferKind::Post
                && let Some(peer) = core.connection.peer()
            {
                peer.count_transfer(outcome, octets);
            }
            log(core, outcome, id, octets);
            match kind {
                TransferKind::Takethis => takethis(core, outcome, id),
                TransferKind::Ihave => ihave(core, outcome),
                TransferKind::Post => post(core, outcome, id),
            }
        }
    }
}

/// RFC 4644 section 2.5: 239, 439, and for a failure of ours 400 and the end, so that the peer sends it again.
fn takethis<S, Io>(core: &mut Core<S, Io>, outcome: Outcome, id: &[u8])
where
    S: NewsService,
    Io: AsyncRead + AsyncWrite + Unpin + Send,
{
    match outcome {
        Outcome::Accepted => core.reply_parts(&[b"239 ", id]),
        Outcome::Duplicate => core.reply_parts(&[b"439 ", id, b" Duplicate"]),
        Outcome::Rejected(reason) | Outcome::RejectedField(reason, _) => {
            core.reply_parts(&[b"439 ", id, b" ", reason.text().as_bytes()]);
        }
        Outcome::RejectedWith(_, why) => core.reply_parts(&[b"439 ", id, b" ", why.as_bytes()]),
        Outcome::Deferred(Defer::Stopping) => {
            core.reply("400 Server is stopping\r\n");
            core.ending = Some(End::Stopping);
        }
        Outcome::Deferred(why) => {
            core.reply_parts(&[b"400 Cannot take articles now: ", why.text().as_bytes()]);
            core.ending = Some(End::NotKept);
        }
        Outcome::Failed => {
            core.reply("400 Cannot take articles now: internal fault\r\n");
            core.ending = Some(End::NotKept);
        }
    }
}

/// RFC 3977 section 6.3.2: 235, 436, 437.
fn ihave<S, Io>(core: &mut Core<S, Io>, outcome: Outcome)
where
    S: NewsService,
    Io: AsyncRead + AsyncWrite + Unpin + Send,
{
    match outcome {
        Outcome::Accepted => core.reply("235 Article transferred\r\n"),
        Outcome::Duplicate => core.reply("437 Duplicate\r\n"),
        Outcome::Rejected(reason) | Outcome::RejectedField(reason, _) => {
            core.reply_parts(&[b"437 ", reason.text().as_bytes()]);
        }
        Outcome::RejectedWith(_, why) => core.reply_parts(&[b"437 ", why.as_bytes()]),
        Outcome::Deferred(why) => core.reply_parts(&[b"436 Try again: ", why.text().as_bytes()]),
        Outcome::Failed => core.reply("436 Try again: internal fault\r\n"),
    }
}

/// RFC 3977 section 6.3.1: 240, 441.
fn post<S, Io>(core: &mut Core<S, Io>, outcome: Outcome, id: &[u8])
where
    S: NewsService,
    Io: AsyncRead + AsyncWrite + Unpin + Send,
{
    match outcome {
        Outcome::Accepted => core.reply_parts(&[b"240 Article received ", id]),
        Outcome::Duplicate => core.reply("441 An article with this Message-ID is here already\r\n"),
        Outcome::Rejected(reason) => core.reply_parts(&[b"441 ", reason.text().as_bytes()]),
        Outcome::RejectedField(reason, field) => {
            let parts = [reason.text(), ": ", field.as_str()].map(str::as_bytes);
            core.reply_parts(&[b"441 ", parts[0], parts[1], parts[2]]);
        }
        Outcome::RejectedWith(_, why) => core.reply_parts(&[b"441 ", why.as_bytes()]),
        Outcome::Deferred(why) => core.reply_parts(&[b"441 Try again: ", why.text().as_bytes()]),
        Outcome::Failed => core.reply("441 Try again: internal fault\r\n"),
    }
}

/// The line an article gets in the log, on demand.
fn log<S, Io>(core: &Core<S, Io>, outcome: Outcome, id: &[u8], octets: u32) {
    if !tracing::enabled!(target: "newsreel::article", tracing::Level::DEBUG) {
        return;
    }
    let peer = core.connection.peer();
    let (outcome, reason) = match outcome {
        Outcome::Accepted => ("accepted", None),
        Outcome::Duplicate => ("duplicate", None),
        Outcome::Rejected(reason) | Outcome::RejectedField(reason, _) => {
            ("rejected", Some(reason.label()))
        }
        Outcome::RejectedWith(_, why) => ("rejected", Some(why)),
        Outcome::Deferred(why) => ("deferred", Some(why.label())),
        Outcome::Failed => ("failed", None),
    };
    tracing::debug!(
        target: "newsreel::article",
        connection = core.connection.id().0,
        peer = peer.as_deref().map(Neighbour::name),
        address = core.connection.address().map(tracing::field::display),
        id = %String::from_utf8_lossy(id),
        octets,
        outcome,
        reason,
        "article"
    );
}
