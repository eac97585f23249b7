//! Taking an article: checks, numbers, Path and Xref, overview, as RFC 5537 section 3.6 has it.

use std::sync::Arc;

use newsreel_wire::article::{ArticleFacts, Headers, Known, check_relay};
use newsreel_wire::path::{Diagnostic, write_prefix};
use newsreel_wire::{GroupName, newsgroups, overview};

use super::{MemoryService, State, Stored};
use crate::neighbour::Neighbour;
use crate::reject::Reject;
use crate::service::NewsService;
use crate::transfer::Outcome;

impl MemoryService {
    /// Takes an article or refuses it; our entry in Path says where it comes from.
    pub(super) fn accept_from(
        &self,
        state: &mut State,
        offered: &[u8],
        wire: &[u8],
        (source, neighbour): (Diagnostic<'_>, Option<&Neighbour>),
    ) -> Outcome {
        if state.by_id.contains_key(offered) {
            return Outcome::Duplicate;
        }
        match self.check(state, offered, wire, (source, neighbour)) {
            Ok(stored) => {
                let stored = Arc::new(stored);
                for name in &stored.groups {
                    if let Some(group) = state.groups.get_mut(name) {
                        group.high += 1;
                        group.articles.insert(group.high, Arc::clone(&stored));
                    }
                }
                state.by_id.insert(stored.id.clone(), Arc::clone(&stored));
                state.arrivals.push(stored);
                Outcome::Accepted
            }
            Err(reason) => Outcome::Rejected(reason),
        }
    }

    fn check(
        &self,
        state: &State,
        offered: &[u8],
        wire: &[u8],
        (source, neighbour): (Diagnostic<'_>, Option<&Neighbour>),
    ) -> Result<Stored, Reject> {
        let headers = Headers::scan(wire).map_err(|fault| Reject::from(&fault))?;
        let facts = ArticleFacts::of(&headers).map_err(|fault| Reject::from(&fault))?;
        let relay = check_relay(&headers, &facts).map_err(|fault| Reject::from(&fault))?;
        if relay.message_id.as_bytes() != offered {
            return Err(Reject::OtherMessageId);
        }
        let us = &self.config.path_identity;
        if relay.path.contains(us.as_bytes()) {
            return Err(Reject::Loop);
        }
        let (now, date) = (self.now().0, relay.injection_date.unwrap_or(relay.date).0);
        if date > now + self.config.ahead_max_s {
            return Err(match relay.injection_date {
                Some(_) => Reject::FutureInjectionDate,
                None => Reject::FutureDate,
            });
        }
        if self.config.age_max_s > 0 && date + self.config.age_max_s < now {
            return Err(Reject::TooOld);
        }
        if let Some(neighbour) = neighbour {
            let octets = u32::try_from(facts.bytes).unwrap_or(u32::MAX);
            neighbour.judge(&headers, &relay, octets)?;
        }
        let groups = self.groups_of(state, &headers, relay.newsgroups)?;
        let source = neighbour.map_or(source, |it| it.diagnostic(&relay.path));
        Ok(self.store(state, &headers, &facts, groups, source))
    }

    /// The groups it is filed in.
    fn groups_of(
        &self,
        state: &State,
        headers: &Headers<'_>,
        list: &[u8],
    ) -> Result<Vec<String>, Reject> {
        let mut groups = Vec::new();
        let mut closed = false;
        for name in newsgroups::split(list).flatten() {
            let name: GroupName<'_> = name;
            if name.is_of_servers() && headers.get(Known::Control).is_none() {
                continue;
            }
            let Some((name, group)) = state.groups.get_key_value(name.as_str()) else {
                continue;
            };
            match group.status.as_str() {
                "m" if headers.get(Known::Approved).is_none() => return Err(Reject::NotApproved),
                "x" | "j" => closed = true,
                _ if groups.contains(name) => {}
                _ => groups.push(name.clone()),
            }
        }
        match (groups.is_empty(), closed) {
            (false, _) => Ok(groups),
            (true, true) => Err(Reject::GroupClosed),
            (true, false) => Err(Reject::UnknownGroups),
        }
    }

    /// The article with our Path entry and Xref, everything else octet for octet.
    fn store(
        &self,
        state: &State,
        headers: &Headers<'_>,
        facts: &ArticleFacts,
        groups: Vec<String>,
        source: Diagnostic<'_>,
    ) -> Stored {
        let us = &self.config.path_identity;
        let mut xref = us.clone();
        for name in &groups {
            let number = state.groups.get(name).map_or(0, |group| group.high + 1);
            xref.push_str(&format!(" {name}:{number}"));
        }
        let mut wire = Vec::with_capacity(headers.wire().len() + 256);
        for field in headers.fields() {
            let octets = &headers.wire()[field.start..field.end];
            match field.known() {
                Some(Known::Xref) => {}
                Some(Known::Path) => {
                    wire.extend_from_slice(&octets[..field.content_start - field.start]);
                    write_prefix(us, source, &mut wire);
                    wire.extend_from_slice(&octets[field.content_start - field.start..]);
                }
                _ => wire.extend_from_slice(octets),
            }
        }
        if self.config.features.reader {
            wire.extend_from_slice(format!("Xref: {xref}\r\n").as_bytes());
        }
        let head_end = wire.len();
        wire.extend_from_slice(b"\r\n");
        let body = wire.len();
        wire.extend_from_slice(headers.body());
        let octets = (facts.bytes + wire.len()).saturating_sub(headers.wire().len());
        let mut line = Vec::new();
        overview::write_fields(headers, octets, facts.lines, &mut line);
        overview::write_named("Xref", xref.as_bytes(), &mut line);
        let id = headers.content(Known::MessageId).unwrap_or_default();
        Stored {
            id: id.into(),
            wire,
            head_end,
            body,
            overview: line,
            groups,
            arrival: self.now(),
        }
    }
}
