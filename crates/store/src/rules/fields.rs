//! What rules ask of header fields and body, behind groups and size: nothing of it is looked at unless a rule asks.

use std::borrow::Cow;

use newsreel_wire::Wildmat;
use newsreel_wire::article::{Content, Headers, Known};
use newsreel_wire::date::parse_relaxed;

use super::RuleSubject;
use crate::config::{RuleConfig, RuleContent};
use crate::error::{Error, Result};

/// The conditions of one rule on header fields and body.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct FieldRules {
    from: Option<Wildmat>,
    path: Option<Wildmat>,
    header: Option<String>,
    content: Option<RuleContent>,
    expires_s_min: Option<u64>,
    expires_s_max: Option<u64>,
}

/// Why a rule passes an article on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FieldRefusal {
    From,
    Path,
    NoHeader,
    OtherContent(Content),
    NoExpires,
    ExpiresEarly(u64),
    ExpiresLate(u64),
}

impl FieldRules {
    pub(super) fn new(rule: &RuleConfig) -> Result<Self> {
        let wildmat = |field: &str, text: &Option<String>| {
            let parsed = text.as_deref().map(Wildmat::parse).transpose();
            parsed.map_err(|why| Error::Config(format!("{field} {text:?}: {why}")))
        };
        Ok(Self {
            from: wildmat("from", &rule.from)?,
            path: wildmat("path", &rule.path)?,
            header: rule.header.clone(),
            content: rule.content,
            expires_s_min: rule.expires_s_min,
            expires_s_max: rule.expires_s_max,
        })
    }

    pub(super) fn judge(&self, subject: &RuleSubject<'_>) -> std::result::Result<(), FieldRefusal> {
        let headers = subject.headers;
        let matches = |wildmat: &Option<Wildmat>, known| {
            let matches = |wildmat: &Wildmat| wildmat.matches(&unfolded(headers, known));
            wildmat.as_ref().is_none_or(matches)
        };
        if !matches(&self.from, Known::From) {
            return Err(FieldRefusal::From);
        }
        if !matches(&self.path, Known::Path) {
            return Err(FieldRefusal::Path);
        }
        if let Some(name) = &self.header
            && headers.find(name.as_bytes()).is_none()
        {
            return Err(FieldRefusal::NoHeader);
        }
        if self.expires_s_min.is_some() || self.expires_s_max.is_some() {
            let content = headers.content(Known::Expires);
            let date = content.and_then(|content| parse_relaxed(content).ok());
            let after = date.ok_or(FieldRefusal::NoExpires)?;
            let after = after.0.saturating_sub(subject.arrival.0);
            if self.expires_s_min.is_some_and(|least| after < least) {
                return Err(FieldRefusal::ExpiresEarly(after));
            }
            if self.expires_s_max.is_some_and(|most| after > most) {
                return Err(FieldRefusal::ExpiresLate(after));
            }
        }
        if let Some(wanted) = self.content {
            let found = Content::of(headers);
            let is_wanted = match wanted {
                RuleContent::Text => found == Content::Text,
                RuleContent::Binary => found == Content::Binary,
                RuleContent::YEnc => found == Content::YEnc,
            };
            if !is_wanted {
                return Err(FieldRefusal::OtherContent(found));
            }
        }
        Ok(())
    }

    /// Appends each of its conditions, which all hold.
    pub(super) fn tell_held(&self, holds: &mut Vec<String>) {
        for (field, wildmat) in [("From", &self.from), ("Path", &self.path)] {
            if let Some(wildmat) = wildmat {
                holds.push(format!("{field} matches {:?}", wildmat.as_str()));
            }
        }
        if let Some(name) = &self.header {
            holds.push(format!("it has a field {name}"));
        }
        match (self.expires_s_min, self.expires_s_max) {
            (None, None) => {}
            (least, None) => holds.push(format!(
                "it expires {} seconds after it came or later",
                least.unwrap_or(0)
            )),
            (least, Some(most)) => holds.push(format!(
                "it expires {} to {most} seconds after it came",
                least.unwrap_or(0)
            )),
        }
        if let Some(content) = self.content {
            holds.push(
                match content {
                    RuleContent::Text => "it is text",
                    RuleContent::Binary => "it is a file in uuencode or MIME",
                    RuleContent::YEnc => "it is a file in yEnc",
                }
                .to_owned(),
            );
        }
    }

    pub(super) fn tell(&self, refusal: &FieldRefusal) -> String {
        let text = |wildmat: &Option<Wildmat>| match wildmat {
            Some(wildmat) => wildmat.as_str().to_owned(),
            None => String::new(),
        };
        match refusal {
            FieldRefusal::From => format!("From does not match {:?}", text(&self.from)),
            FieldRefusal::Path => format!("Path does not match {:?}", text(&self.path)),
            FieldRefusal::NoHeader => format!(
                "it has no field {}",
                self.header.as_deref().unwrap_or_default()
            ),
            FieldRefusal::OtherContent(found) => match found {
                Content::Text => "it is text".to_owned(),
                Content::Binary => "it is a file in uuencode or MIME".to_owned(),
                Content::YEnc => "it is a file in yEnc".to_owned(),
            },
            FieldRefusal::NoExpires => "it has no Expires that can be read".to_owned(),
            FieldRefusal::ExpiresEarly(after) => format!(
                "it expires {after} seconds after it came, not {} or later",
                self.expires_s_min.unwrap_or(0)
            ),
            FieldRefusal::ExpiresLate(after) => format!(
                "it expires {after} seconds after it came, not {} or earlier",
                self.expires_s_max.unwrap_or(0)
            ),
        }
    }
}

/// A field's content on one line, as far as it is UTF-8; empty when it is not there.
fn unfolded<'a>(headers: &Headers<'a>, known: Known) -> Cow<'a, str> {
    let content = String::from_utf8_lossy(headers.content(known).unwrap_or_default());
    if content.contains("\r\n") {
        return content.replace("\r\n", "").into();
    }
    content
}
