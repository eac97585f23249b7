//! Asking: a connection is lent, used, and given back; one that turns out to be closed is replaced once.  Once, too, is asked again
//! whoever wants a group selected.
//!
//! What goes wrong is logged here, once; whoever asked is told only that it did.

use std::future::poll_fn;
use std::sync::atomic::Ordering;
use std::task::Poll;
use std::time::Duration;

use newsreel_net::client::{ClientError, Connect, Fault, Lent};
use newsreel_service::ServiceError;
use newsreel_wire::ArticleNumber;
use newsreel_wire::range::parse_number;
use tokio::time::Instant;

use super::one::One;

/// What readers are told when the server cannot answer.
pub(super) const NO_ANSWER: ServiceError = ServiceError::Away;

/// How long somebody waits in silence for an answer in whose place something that is kept may be told.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// What they are told of what is not kept when nobody elsewhere is asked.
const OFFLINE: ServiceError = ServiceError::Offline;

/// A question on a connection: `asked!(self, client => body)`, or `asked!(self, within patience, client => body)` of who waits no longer in
/// silence than that.  The body may run twice, so it begins by clearing what it fills.
macro_rules! asked {
    ($server:ident, $client:ident => $body:expr) => {
        crate::remote::ask::asked!($server, within None, $client => $body)
    };
    ($server:ident, within $patience:expr, $client:ident => $body:expr) => {{
        let mut is_again = false;
        loop {
            let mut $client = $server.lend_within($patience).await?;
            let answer: Result<_, newsreel_net::client::ClientError> = async { $body }.await;
            match answer {
                Ok(answer) => {
                    $client.give_back();
                    break answer;
                }
                Err(error)
                    if !is_again
                        && (crate::remote::ask::is_stale(&error)
                            || crate::remote::ask::wants_group(&error)
                                && $server.learns(&error)) =>
                {
                    is_again = true;
                }
                Err(error) => return Err($server.failed(&error)),
            }
        }
    }};
}
pub(super) use asked;

/// The server may have closed the connection before it saw the question.
pub(super) const fn is_stale(error: &ClientError) -> bool {
    matches!(error.fault, Fault::Closed)
}

/// The server may want a group selected; that there is no such group is no word about that.
pub(super) fn wants_group(error: &ClientError) -> bool {
    !matches!(error.doing, "GROUP" | "LISTGROUP")
}

/// Does several things at the same time; what came of them, in order.
pub(super) async fn all_of<F: Future>(things: impl Iterator<Item = F>) -> Vec<F::Output> {
    let mut under_way: Vec<_> = things.map(|thing| (Box::pin(thing), None)).collect();
    poll_fn(|cx| {
        let mut is_ready = true;
        for (thing, came) in &mut under_way {
            if came.is_none() {
                match thing.as_mut().poll(cx) {
                    Poll::Ready(out) => *came = Some(out),
                    Poll::Pending => is_ready = false,
                }
            }
        }
        if is_ready {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    })
    .await;
    under_way.into_iter().filter_map(|(_, came)| came).collect()
}

impl<C: Connect> One<C> {
    pub(super) async fn lend(&self) -> Result<Lent<C>, ServiceError> {
        self.lend_within(None).await
    }

    /// The same for who waits no longer in silence than this.
    pub(super) async fn lend_within(
        &self,
        patience: Option<Duration>,
    ) -> Result<Lent<C>, ServiceError> {
        self.may_ask()?;
        self.known(self.pool.lend_for(patience).await)
    }

    /// The same for who wants the server asked since then, though it is left alone.
    pub(super) async fn lend_by_hand(
        &self,
        by_hand: Option<Instant>,
    ) -> Result<Lent<C>, ServiceError> {
        self.may_ask()?;
        let lent = match by_hand {
            Some(since) => self.pool.lend_in_spite(since).await,
            None => self.pool.lend().await,
        };
        self.known(lent)
    }

    fn may_ask(&self) -> Result<(), ServiceError> {
        match self.common.is_offline.load(Ordering::Acquire) {
            true => Err(OFFLINE),
            false => Ok(()),
        }
    }

    /// What was lent; what the server says that it can do is known then.
    fn known(&self, lent: Result<Lent<C>, ClientError>) -> Result<Lent<C>, ServiceError> {
        match lent {
            Ok(lent) => {
                let mut known = self.capabilities.lock();
                if known.as_ref() != Some(lent.capabilities()) {
                    *known = Some(lent.capabilities().clone());
                }
                drop(known);
                Ok(lent)
            }
            Err(error) if matches!(error.fault, Fault::Stopped) => Err(ServiceError::Stopping),
            Err(error) => Err(self.failed(&error)),
        }
    }

    /// Whether the server can be asked.
    pub(super) async fn greet(&self) -> bool {
        let lent = self.lend().await;
        lent.is_ok_and(|lent| {
            lent.give_back();
            true
        })
    }

    pub(super) fn failed(&self, error: &ClientError) -> ServiceError {
        if let Some(more) = self.lines.admit() {
            tracing::warn!(target: "newsreel::cache", %error, more, "a server elsewhere");
        }
        NO_ANSWER
    }
}

/// What GROUP and LISTGROUP say: an estimate of the count, the low mark and the high mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Marks {
    pub(super) count: u64,
    pub(super) low: u64,
    pub(super) high: u64,
}

impl Marks {
    /// From the text behind 211; an empty group has its low mark above the high one, as a service says it.
    pub(super) fn parse(text: &[u8]) -> Option<Self> {
        let mut words = text.split(u8::is_ascii_whitespace);
        let mut number = || parse_number(words.next()?).ok().map(u64::from);
        let (count, low, high) = (number()?, number()?, number()?);
        let high = high.max(low.saturating_sub(1));
        let low = if count == 0 { high + 1 } else { low.max(1) };
        Some(Self { count, low, high })
    }
}

/// The number at the front of a line, and what follows the separator.
pub(super) fn numbered(line: &[u8], separator: u8) -> Option<(ArticleNumber, &[u8])> {
    let end = line.iter().position(|octet| *octet == separator);
    let (digits, rest) = line.split_at_checked(end.unwrap_or(line.len()))?;
    Some((
        parse_number(digits).ok()?,
        rest.get(1..).unwrap_or_default(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_group_has_its_low_mark_above() {
        let marks = |text: &str| {
            let marks = Marks::parse(text.as_bytes());
            marks.map(|marks| (marks.count, marks.low, marks.high))
        };
        assert_eq!(marks("3 1 5 misc.test"), Some((3, 1, 5)));
        assert_eq!(marks("0 0 0 misc.test"), Some((0, 1, 0)));
        assert_eq!(marks("0 8 7 misc.test"), Some((0, 8, 7)));
        assert_eq!(marks("0 7 7 misc.test"), Some((0, 8, 7)));
        assert_eq!(marks("three 1 5"), None);
        assert_eq!(marks("1 2"), None);
    }
}
