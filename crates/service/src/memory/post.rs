//! Posting to the service in memory: the same checks, rights and limits as the real one's, and mails that stay here.

use std::net::IpAddr;

use newsreel_wire::MessageId;
use newsreel_wire::article::HeaderLimits;
use newsreel_wire::path::Diagnostic;

use super::{MemoryService, State};
use crate::cancel_lock::Locksmith;
use crate::group::GroupStatus;
use crate::posting::{self, Locks, Moderators, Post, Refused, Site, destination};
use crate::reject::Reject;
use crate::service::NewsService;
use crate::transfer::{OfferedId, Outcome};

impl State {
    /// Whether a message-id is taken: by an article, or, for who has no approval of a moderator, by one that was mailed to one.
    fn has_taken(&self, id: &OfferedId, counts_mailed: bool) -> bool {
        self.by_id.contains_key(id.as_bytes()) || counts_mailed && self.mailed.contains(id)
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
        if state.has_taken(&post.id, moderated.is_none() && !proto.is_approved()) {
            return Err(Outcome::Duplicate);
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
        if state.has_taken(&post.id, moderated.is_none() && !proto.is_approved()) {
            return Ok(Outcome::Duplicate);
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
            if !state.mailed.insert(OfferedId::from(id)) {
                return Ok(Reject::MailedBefore.into());
            }
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
