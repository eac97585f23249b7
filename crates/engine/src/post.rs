//! Posts: an article is injected here, then goes the way of all others, or to a moderator's mail.
//!
//! What an injecting agent must do is in `newsreel_service::posting`; here are the groups, the history and the limits it
//! is done with.  A post is answered 240 when its commit is on disk, or when its mail is: never before.

use std::net::IpAddr;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use newsreel_host::Clock;
use newsreel_service::cancel_lock::Locksmith;
use newsreel_service::posting::{
    self, Account, IdMaker, Locks, Mail, MailDrop, Mailed, ModerationConfig, Moderators, Post,
    PostLimits, Proto, Site,
};
use newsreel_service::{
    Completion, Connection, Defer, GroupStatus, OfferedId, Outcome, Reject, Transfer, TransferKind,
};
use newsreel_wire::{MessageId, UnixTime, network_of, site_of};

use parking_lot::Mutex;

use crate::accept::Origin;
use crate::control::told::Told;
use crate::error::Error;
use crate::local::{LocalService, blocking};
use crate::offers::Claim;
use crate::shared::{Policy, Shared};

/// What only posts need.
#[derive(Debug)]
pub(crate) struct Posts {
    /// Message-ids for those that come without.
    ids: IdMaker,
    /// How often who has posted.
    pub(crate) limits: Mutex<PostLimits>,
    /// Whose groups are whose.
    moderators: Moderators,
    /// Makes locks for what is posted here, and keys.
    pub(crate) locksmith: Locksmith,
    /// Where mails to moderators go; nowhere until it is said.
    pub(crate) mail: OnceLock<Arc<dyn MailDrop>>,
    /// Where those about control messages go: strangers cause them, so no moderator's waits behind one.
    pub(crate) notices: OnceLock<Arc<dyn MailDrop>>,
    /// Mails that told of control messages.
    pub(crate) told: Told,
}

impl Posts {
    /// With ids that were not made before, whatever the clock did.
    pub(crate) fn new(
        config: &ModerationConfig,
        clock: &dyn Clock,
        hash_key: &[u8; 32],
    ) -> Result<Self, Error> {
        let random = u64::from_le_bytes(newsreel_host::random_bytes()?);
        let moderators = Moderators::parse(&config.moderators)
            .map_err(|why| Error::Setting(format!("moderation.moderators: {why}")))?;
        Ok(Self {
            ids: IdMaker::new(UnixTime(clock.now().secs), random),
            limits: Mutex::default(),
            moderators,
            locksmith: Locksmith::new(hash_key),
            mail: OnceLock::new(),
            notices: OnceLock::new(),
            told: Told::default(),
        })
    }
}

impl LocalService {
    /// A message-id for a post that comes without.
    pub(crate) fn made_message_id(&self) -> OfferedId {
        let policy = self.shared.policy.load();
        let host = match policy.posting.message_id_host.as_str() {
            "" => &self.shared.path_identity,
            host => host,
        };
        self.shared.posts.ids.make(host)
    }

    /// Injects one article; it is answered once.
    pub(crate) async fn take_post(&self, post: Post, from: &Arc<Connection>) {
        let address = from.address();
        let policy = self.shared.policy.load_full();
        let outcome = match self.claim_and_inject(&policy, post, from).await {
            Ok(Injected::Article(transfer)) => {
                let told = address.filter(|_| policy.posting.tell_address);
                return self
                    .take(&mut vec![transfer], from, Origin::Post(told))
                    .await;
            }
            Ok(Injected::Mailed { ticket }) => (ticket, Outcome::Accepted),
            Err((ticket, outcome)) => {
                self.shared.accept.count(&self.shared.counters, &outcome);
                (ticket, outcome)
            }
        };
        let (ticket, outcome) = outcome;
        from.complete([Completion { ticket, outcome }]);
    }

    /// What a post would be refused for; nothing is counted, sent or kept.
    pub(crate) async fn would_take_post(
        &self,
        post: &Post,
        address: Option<IpAddr>,
    ) -> Result<(), Outcome> {
        if let Some(defer) = self.held_up() {
            return Err(Outcome::Deferred(defer));
        }
        let policy = self.shared.policy.load_full();
        let is_known = self.is_known(&transfer_of(post)).await;
        checked(&self.shared, &policy, post, is_known)?;
        let (shared, user) = (&self.shared, post.poster.user.as_deref());
        let mut counts = shared.posts.limits.lock();
        Ok(counts.may(&policy.posting, user, address, shared.now_ms())?)
    }

    /// Counts a refusal of a post that goes elsewhere, too.
    pub(crate) fn counted(&self, judged: Result<(), Outcome>) -> Result<(), Outcome> {
        judged.inspect_err(|outcome| self.shared.accept.count(&self.shared.counters, outcome))
    }

    /// Counts a post that goes elsewhere.
    pub(crate) fn count_one_post(
        &self,
        post: &Post,
        address: Option<IpAddr>,
    ) -> Result<(), Outcome> {
        let (shared, policy) = (&self.shared, self.shared.policy.load());
        let user = post.poster.user.as_deref();
        let mut counts = shared.posts.limits.lock();
        Ok(counts.take(&policy.posting, user, address, shared.now_ms())?)
    }

    /// Whether there was an article with its message-id.
    async fn is_known(&self, transfer: &Transfer) -> bool {
        let found = self.look_up(std::slice::from_ref(transfer)).await;
        found.first().is_some_and(|found| found.is_known())
    }

    /// Injects a post whose message-id no other one has under way: of two that come at once one would be filed and the other mailed.
    /// An article keeps the claim until it is committed or refused, as what a peer was asked for does, but as long as that takes.
    async fn claim_and_inject(
        &self,
        policy: &Policy,
        post: Post,
        from: &Connection,
    ) -> Result<Injected, (u64, Outcome)> {
        let (shared, ticket) = (&self.shared, post.ticket);
        let hash = MessageId::parse(post.id.as_bytes()).map(|id| shared.id_hash(id));
        let hash = hash.map_err(|_| (ticket, Reject::BadMessageId.into()))?;
        // Who posts again what was mailed holds nothing: its moderator may just be posting it.
        let mail = shared.posts.mail.get();
        if mail.is_some_and(|mail| mail.find(&post.id).is_some()) {
            let is_known = self.is_known(&transfer_of(&post)).await;
            checked(shared, policy, &post, is_known).map_err(|outcome| (ticket, outcome))?;
        }
        let claim = shared.offers.hold(&hash, from.id(), shared.now_ms());
        let injected = self.inject(policy, post, from.address(), claim).await;
        if !matches!(injected, Ok(Injected::Article(_))) {
            shared.offers.unclaim(&hash, from.id());
        }
        injected
    }

    /// Checks a post, and makes what goes on of it.
    async fn inject(
        &self,
        policy: &Policy,
        post: Post,
        address: Option<IpAddr>,
        claim: Claim,
    ) -> Result<Injected, (u64, Outcome)> {
        let ticket = post.ticket;
        let refuse = |outcome: Outcome| (ticket, outcome);
        if let Some(defer) = self.held_up() {
            return Err(refuse(Outcome::Deferred(defer)));
        }
        // Its id is looked up first, and waits for the disk if it must; all that follows is one step.
        let transfer = transfer_of(&post);
        let is_known = self.is_known(&transfer).await;
        match claim {
            _ if is_known => {}
            Claim::Granted => {}
            Claim::Taken => return Err(refuse(Outcome::Deferred(Defer::UnderWay))),
            Claim::TooMany => return Err(refuse(Outcome::Deferred(Defer::TooManyOffers))),
        }
        match judge(&self.shared, policy, &post, address, is_known).map_err(refuse)? {
            Judged::Article(article) => Ok(Injected::Article(Transfer {
                article,
                ..transfer
            })),
            Judged::Mail(mail, poster) => {
                match self.filtered_mail(post.article.clone(), address).await {
                    None => {}
                    Some(Outcome::Accepted) => return Ok(Injected::Mailed { ticket }),
                    Some(outcome) => return Err(refuse(outcome)),
                }
                let kept = blocking(&self.shared, move |shared| match shared.posts.mail.get() {
                    Some(drop) => drop.submit(&mail, poster).map_err(Outcome::from),
                    None => Err(Outcome::Failed),
                });
                kept.await
                    .unwrap_or(Err(Outcome::Failed))
                    .map(|()| Injected::Mailed { ticket })
                    .map_err(refuse)
            }
        }
    }
}

/// What a post has become.
#[derive(Debug)]
enum Injected {
    Article(Transfer),
    Mailed { ticket: u64 },
}

/// What is to become of a post.
#[derive(Debug)]
enum Judged {
    Article(Bytes),
    Mail(Mail, Option<Account>),
}

/// A post as articles come, before it is injected.
fn transfer_of(post: &Post) -> Transfer {
    Transfer {
        ticket: post.ticket,
        kind: TransferKind::Post,
        offered: post.id.clone(),
        article: post.article.clone(),
    }
}

/// A post that may be taken.
struct Checked<'p> {
    proto: Proto<'p>,
    id: MessageId<'p>,
    /// The group to whose moderator it goes.
    moderated: Option<&'p str>,
    now: UnixTime,
}

/// Everything that is decided without waiting, and without doing anything.
fn checked<'p>(
    shared: &Shared,
    policy: &Policy,
    post: &'p Post,
    is_known: bool,
) -> Result<Checked<'p>, Outcome> {
    let (articles, config) = (&policy.articles, &policy.posting);
    if post.article.len() > articles.octets_max as usize {
        return Err(Reject::TooLarge.into());
    }
    let now = UnixTime(shared.clock.now().secs);
    let limits = articles.header_limits();
    let proto = posting::check(&post.article, limits, config, now)?;
    let id = MessageId::parse(post.id.as_bytes()).map_err(|_| Reject::BadMessageId)?;
    let groups = shared.views.groups();
    let moderated = posting::destination(&proto, &post.poster, |name| {
        let group = groups.by_name(name)?;
        Some(GroupStatus::parse(group.status()).unwrap_or(GroupStatus::Closed))
    })?;
    if is_known {
        return Err(Outcome::Duplicate);
    }
    // What its moderator has not approved yet has its message-id already; the approved copy is the one that takes it.
    let mail = shared.posts.mail.get().filter(|_| !proto.is_approved());
    match mail.and_then(|mail| mail.find(&post.id)) {
        None => {}
        Some(Mailed::Kept | Mailed::Refused) if moderated.is_none() => {
            return Err(Outcome::Duplicate);
        }
        Some(mailed) => return Err(mailed.into()),
    }
    Ok(Checked {
        proto,
        id,
        moderated,
        now,
    })
}

/// Everything that is decided without waiting.
fn judge(
    shared: &Shared,
    policy: &Policy,
    post: &Post,
    address: Option<IpAddr>,
    is_known: bool,
) -> Result<Judged, Outcome> {
    let Checked {
        proto,
        id,
        moderated,
        now,
    } = checked(shared, policy, post, is_known)?;
    let (config, user) = (&policy.posting, post.poster.user.as_deref());
    let mail_to = moderated.map(|group| {
        let poster = posting::account(&shared.hash_key, user, address.map(site_of));
        (group, poster)
    });
    // What is put off for want of a place is counted nowhere, by no filter either: without a message-id it is another one each time.
    if let (Some((_, poster)), Some(mail)) = (mail_to, shared.posts.mail.get()) {
        mail.has_room(poster)?;
    }
    let mut counts = shared.posts.limits.lock();
    counts.take(config, user, address, shared.now_ms())?;
    drop(counts);
    let site = Site {
        path_identity: &shared.path_identity,
        config,
        account: posting::account(&shared.hash_key, user, address.map(network_of)),
        address: address.filter(|_| config.tell_address),
        locks: Some(Locks {
            smith: &shared.posts.locksmith,
            owner: post.poster.owner(address),
        }),
        now,
    };
    match mail_to {
        None => Ok(Judged::Article(proto.inject(id, &site).into())),
        Some((group, poster)) => {
            mail(shared, &proto, id, &site, group).map(|mail| Judged::Mail(mail, poster))
        }
    }
}

/// The article as a mail to the moderator of `group`.
fn mail(
    shared: &Shared,
    proto: &Proto<'_>,
    id: MessageId<'_>,
    site: &Site<'_>,
    group: &str,
) -> Result<Mail, Outcome> {
    let moderation = &shared.config.moderation;
    let to = shared
        .posts
        .moderators
        .find(group)
        .ok_or(Reject::NoModerator)?;
    let sender = match moderation.sender.as_str() {
        "" => format!("usenet@{}", site.path_identity),
        sender => sender.to_owned(),
    };
    Ok(Mail {
        id: id.into(),
        sender,
        text: proto.mail(id, site, &to, moderation.encapsulate),
        to,
    })
}
