//! Posting to the service in memory: the same checks, rights and limits as the real one's, and mails that stay here.

use std::net::IpAddr;

use newsreel_wire::MessageId;
use newsreel_wire::article::HeaderLimits;
use newsreel_wire::path::Diagnostic;

use super::{MemoryService, State};
use crate::cancel_lock::Locksmith;
use crate::group::GroupStatus;
use crate::posting::{self, Locks, Moderators, Post, Proto, Refused, Site, destination};
use crate::reject::Reject;
use crate::service::NewsService;
use crate::transfer::{OfferedId, Outcome};

impl State {
    /// What is said of a message-id that is taken: by an article, or, for who has no approval of a moderator, by one that was mailed to one.
    fn taken(&self, id: &OfferedId, proto: &Proto<'_>, is_moderated: bool) -> Option<Outcome> {
        let is_mailed = !proto.is_approved() && self.mailed.contains(id);
        if self.by_id.contains_key(id.as_bytes()) || is_mailed && !is_moderated {
            return Some(Outcome::Duplicate);
        }
        is_mailed.then(|| Reject::MailedBefore.into())
    }
}

impl MemoryService {
    /// Injects one article, or refuses it.
    pub(super) fn injected(
        &self,
        state: &mut State,
        post: &Post,
        address: Option<IpAddr>,
    ) -> Outcome {
        match self.try_to_inject(state, post, address) {
            Ok(outcome) => outcome,
            Err(refused) => refused.into(),
        }
    }

    /// What a post would be refused for.
    pub(super) fn would_inject(
        &self,
        state: &mut State,
        post: &Post,
        address: Option<IpAddr>,
    ) -> Result<(), Outcome> {
        let (config, now) = (&self.config.posting, self.now());
        let proto = posting::check(&post.article, HeaderLimits::USUAL, config, now)?;
        let moderated = destination(&proto, &post.poster, |name| {
            GroupStatus::parse(&state.groups.get(name)?.status)
        })?;
        if let Some(said) = state.taken(&post.id, &proto, moderated.is_some()) {
            return Err(said);
        }
        let user = post.poster.user.as_deref();
        Ok(state.limits.may(config, user, address, now.0 * 1000)?)
    }

    fn try_to_inject(
        &self,
        state: &mut State,
        post: &Post,
        address: Option<IpAddr>,
    ) -> Result<Outcome, Refused> {
        let (config, now) = (&self.config.posting, self.now());
        let proto = posting::check(&post.article, HeaderLimits::USUAL, config, now)?;
        let id = MessageId::parse(post.id.as_bytes()).map_err(|_| Reject::BadMessageId)?;
        let moderated = destination(&proto, &post.poster, |name| {
            let group = state.groups.get(name)?;
            GroupStatus::parse(&group.status)
        })?;
        if let Some(said) = state.taken(&post.id, &proto, moderated.is_some()) {
            return Ok(said);
        }
        let user = post.poster.user.as_deref();
        state.limits.take(config, user, address, now.0 * 1000)?;
        let site = Site {
            path_identity: &self.config.path_identity,
            config,
            account: posting::account(&[0; 32], user, address),
            address: address.filter(|_| config.tell_address),
            locks: Some(Locks {
                smith: &Locksmith::new(&[0; 32]),
                owner: post.poster.owner(address),
            }),
            now,
        };
        if let Some(group) = moderated {
            let moderators = Moderators::parse(&self.config.moderators).unwrap_or_default();
            let to = moderators.find(group).ok_or(Reject::NoModerator)?;
            let mail = proto.mail(id, &site, &to, false);
            state.mailed.insert(OfferedId::from(id));
            state.mails.push((to, mail));
            return Ok(Outcome::Accepted);
        }
        let wire = proto.inject(id, &site);
        Ok(self.accept_from(
            state,
            id.as_bytes(),
            &wire,
            (Diagnostic::Posted(None), None),
        ))
    }
}
