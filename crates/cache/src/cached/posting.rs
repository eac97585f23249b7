//! Posts: sent on at once, or kept until the servers that they are for have them.
//!
//! A poster is told that a post was taken when a server has it, or when it is on disk here.  What a server refuses later stays
//! where an administrator sees it, and is never lost.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use newsreel_net::client::Connect;
use newsreel_service::posting::{Post, Poster};
use newsreel_service::{Defer, FieldName, NewsService as _, OfferedId, Outcome};
use newsreel_wire::date::print_rfc5322;
use newsreel_wire::{MessageId, UnixTime};

use super::{CServer, Inner};
use crate::queue::{Became, PostQueue, PostTarget, QueueError, QueuedPost, Standing};
use crate::remote::{Delivery, Judged, Sending};

/// The clock is looked at so often, at least, while posts wait.
const LOOK: Duration = Duration::from_secs(60);

impl Delivery {
    /// What became of a post; `by_hand`: somebody wanted it tried, which says nothing of how soon the next try is of use.
    fn became(&self, by_hand: bool) -> Became {
        match self {
            Self::Taken | Self::Had(_) => Became::Sent,
            Self::Refused(said) | Self::Barred(said) => Became::Refused(said.clone()),
            Self::Unreached(why) => Became::PutOff(why.clone()),
            Self::Away(why) | Self::Unsure(why) if by_hand => Became::PutOff(why.clone()),
            Self::Away(why) | Self::Unsure(why) => Became::Waits(why.clone()),
        }
    }
}

/// The beginning of a post that its author did not date: when it was taken, as it may be sent much later.
fn dated(article: &Bytes, has_date: bool, now: UnixTime) -> Bytes {
    if has_date {
        return article.clone();
    }
    let mut out = b"Date: ".to_vec();
    print_rfc5322(now, &mut out);
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(article);
    out.into()
}

/// A post as it waits.
fn queued(judged: &Judged, targets: Vec<PostTarget>, now: UnixTime) -> QueuedPost {
    QueuedPost {
        taken: now,
        id: String::from_utf8_lossy(&judged.id).into_owned(),
        groups: judged.groups.join(","),
        octets: 0,
        targets,
    }
}

impl<C: Connect> CServer<C> {
    /// The posts that wait; none: none may.
    pub fn queue(&self) -> Option<&Arc<PostQueue>> {
        self.inner.queue.as_ref()
    }

    /// Posts that wait are looked at now.
    pub fn look_at_posts(&self) {
        self.inner.posts_changed.notify_one();
    }

    /// Puts another text, in wire form, in the place of a post that waits; false: all servers that it is for have the post
    /// already, and nothing waits any more.
    ///
    /// # Errors
    /// When it is no article that could be posted, it is being sent, or the queue fails.
    pub fn edit_post(&self, number: u64, text: &[u8]) -> Result<bool, String> {
        let inner = &self.inner;
        let said = |error: QueueError| error.to_string();
        let queue = inner.queue.as_ref().ok_or("no posts wait here")?;
        let in_hand = queue.take_in_hand(number).map_err(said)?;
        let (old, _) = queue.get(number).map_err(said)?;
        let id = MessageId::parse(old.id.as_bytes()).map_err(|error| error.to_string())?;
        let id = OfferedId::from(id);
        let poster = Poster {
            may_approve: true,
            ..Poster::default()
        };
        let post = Post {
            ticket: 0,
            id,
            poster: Arc::new(poster),
            article: Bytes::copy_from_slice(text),
        };
        let judged = inner.there.judged(&post).map_err(|refused| {
            let field = refused.field.as_ref().map_or("", FieldName::as_str);
            format!("{} {field}", refused.why.text()).trim().to_owned()
        })?;
        let now = inner.there.now();
        let sent = |name: &str| {
            let mut old = old.targets.iter();
            let is_it = |target: &&PostTarget| target.server == name;
            old.find(is_it)
                .filter(|target| target.standing == Standing::Sent)
                .cloned()
        };
        let names = inner.there.post_targets(&judged.groups).into_iter();
        let targets = names.map(|name| sent(&name).unwrap_or_else(|| PostTarget::new(&name, now)));
        let targets: Vec<_> = targets.collect();
        if targets.is_empty() {
            return Err("no upstream server takes posts to its groups".to_owned());
        }
        let edited = queued(&judged, targets, old.taken);
        let text = dated(&judged.article, judged.has_date, old.taken);
        queue.edit(&in_hand, &edited, &text).map_err(said)?;
        drop(in_hand);
        self.look_at_posts();
        Ok(!edited.is_sent())
    }

    /// Sends posts that wait, each when its time has come, for ever.
    pub(super) async fn send_posts(&self) {
        let Some(queue) = &self.inner.queue else {
            return std::future::pending().await;
        };
        loop {
            let changed = self.inner.posts_changed.notified();
            let pause = self.inner.send_due(queue).await;
            let _ = tokio::time::timeout(pause, changed).await;
        }
    }
}

impl<C: Connect> Inner<C> {
    /// Takes a post: sends it to the servers that it is for, and keeps it for those that it could not be sent to.
    pub(super) async fn posted(&self, post: &Post) -> Outcome {
        let judged = match self.there.judged(post) {
            Ok(judged) => judged,
            Err(refused) => return refused.into(),
        };
        let posted = self.there.posted_to_all(&judged).await;
        if !posted.any_waits() && !posted.is_half_taken() {
            return posted.outcome();
        }
        let Some(queue) = &self.queue else {
            posted.log_lost(&judged, "posts cannot wait here");
            return posted.outcome();
        };
        let now = self.there.now();
        let target = |(name, delivery): &(String, Delivery)| {
            let mut target = PostTarget::new(name, now);
            target.became(&delivery.became(false), now);
            target
        };
        let targets = posted.at.iter().map(target).collect();
        let error = match self.kept_waiting(queue, &judged, targets, now).await {
            Ok(number) => {
                let id = String::from_utf8_lossy(&judged.id);
                tracing::info!(target: "newsreel::cache", number, %id, "a post waits for a server elsewhere");
                return Outcome::Accepted;
            }
            Err(error) => error,
        };
        if let Some(more) = self.lines.admit() {
            tracing::error!(target: "newsreel::cache", %error, more, "a post is not kept");
        }
        posted.log_lost(&judged, &error.to_string());
        match (posted.outcome(), error) {
            (Outcome::Accepted, _) => Outcome::Accepted,
            (_, QueueError::Full(_)) => Outcome::Deferred(Defer::QueueFull),
            (_, QueueError::Stopping) => Outcome::Deferred(Defer::Stopping),
            (_, QueueError::Disk { .. }) => Outcome::Deferred(Defer::Disk),
            _ => Outcome::Failed,
        }
    }

    async fn kept_waiting(
        &self,
        queue: &Arc<PostQueue>,
        judged: &Judged,
        targets: Vec<PostTarget>,
        now: UnixTime,
    ) -> Result<u64, QueueError> {
        let (queue, post) = (Arc::clone(queue), queued(judged, targets, now));
        let text = dated(&judged.article, judged.has_date, now);
        let putting = tokio::task::spawn_blocking(move || queue.put(&post, &text)).await;
        let number = putting.map_err(|_| QueueError::Stopping)??;
        self.posts_changed.notify_one();
        Ok(number)
    }

    /// At the next start no post waits but those that were taken, if the disk can be written by now.
    pub(super) async fn remove_untaken_posts(&self) {
        let Some(queue) = self.queue.clone() else {
            return;
        };
        let removing = tokio::task::spawn_blocking(move || queue.remove_untaken());
        if let Ok(Err(error)) = removing.await {
            tracing::error!(target: "newsreel::cache", %error, "a post that was not taken may be sent after the next start");
        }
    }

    /// Sends what is due; how long until something may be.
    async fn send_due(&self, queue: &Arc<PostQueue>) -> Duration {
        if self.there.is_offline() {
            return LOOK;
        }
        let listing = Arc::clone(queue);
        let list = move || {
            // Where that fails still, they are told as they stand all the same.
            let _ = listing.note_unnoted();
            listing.list()
        };
        let listed = tokio::task::spawn_blocking(list).await;
        let Ok(Ok(all)) = listed else {
            if let (Ok(Err(error)), Some(more)) = (listed, self.lines.admit()) {
                tracing::error!(target: "newsreel::cache", %error, more, "posts that wait");
            }
            return LOOK;
        };
        // What somebody waits for is not behind what nobody does.
        let (by_hand, others): (Vec<_>, Vec<_>) = all
            .into_iter()
            .partition(|(number, _)| queue.is_by_hand(*number));
        let first = by_hand.len();
        let mut next = None;
        for (at, (number, post)) in by_hand.into_iter().chain(others).enumerate() {
            let now = self.there.now();
            if post.is_due(now) {
                self.send_one(queue, number).await;
                next = Some(now);
                if at >= first && queue.has_by_hand() {
                    return Duration::ZERO;
                }
            } else if let Some(due) = post.due() {
                next = next.min(Some(due)).or(Some(due));
            }
        }
        let left = next.map(|next| next.0.saturating_sub(self.there.now().0).max(1));
        left.map_or(LOOK, |left| Duration::from_secs(left).min(LOOK))
    }

    /// Sends a post that waits to those servers that it is due for.  Nobody edits it meanwhile: what a server has taken would be
    /// noted of the other text, which then reached nobody.
    async fn send_one(&self, queue: &Arc<PostQueue>, number: u64) {
        // Who edits it sends it then.
        let Ok(_in_hand) = queue.take_in_hand(number) else {
            return;
        };
        let reading = Arc::clone(queue);
        let read = tokio::task::spawn_blocking(move || reading.get(number)).await;
        // It may have been dropped.
        let Ok(Ok((post, text))) = read else {
            return;
        };
        let judged = Judged {
            article: text.into(),
            id: post.id.clone().into_bytes(),
            groups: post.groups.split(',').map(str::to_owned).collect(),
            has_date: true,
        };
        let now = self.there.now();
        let sending = Sending {
            may_be_there: true,
            by_hand: queue.taken_by_hand(number),
        };
        for target in post.targets.iter().filter(|target| target.is_due(now)) {
            let delivery = self.there.delivered(&judged, &target.server, sending).await;
            let server = target.server.clone();
            let by_hand = sending.by_hand.is_some();
            if by_hand || !matches!(delivery, Delivery::Unreached(_)) {
                tracing::info!(target: "newsreel::cache", number, id = %post.id, %server, what = %delivery, "a post that waited");
            }
            let (noting, became) = (Arc::clone(queue), delivery.became(by_hand));
            let now = self.there.now();
            let noted =
                tokio::task::spawn_blocking(move || noting.became(number, &server, &became, now));
            if let Ok(Err(error)) = noted.await
                && let Some(more) = self.lines.admit()
            {
                tracing::error!(target: "newsreel::cache", %error, more, "posts that wait");
            }
            if delivery == Delivery::Taken {
                for group in &judged.groups {
                    self.keep.outdate_group(group);
                }
            }
        }
    }
}
