//! What a proto-article must be (RFC 5537 sections 3.4.1 and 3.5, RFC 5536): the first reason not to take it.
//!
//! Stricter than what is asked of relayed articles (`newsreel_wire::article::check_relay`): every field that is known must
//! hold what RFC 5536 allows it to, because here a refusal loses nothing.  Groups, rights and duplicates are not looked at.

mod dates;

use newsreel_wire::article::{
    ArticleFacts, Control, Field, HeaderLimits, Headers, Known, KnownSet, check_octets,
    first_mailbox, is_address, is_address_list, is_one_mailbox, odd_fields,
};
use newsreel_wire::date::parse_rfc5322;
use newsreel_wire::path::{Diagnostic, Path};
use newsreel_wire::{GroupName, HeaderFault, MessageId, UnixTime, newsgroups};

use super::{PostingConfig, Refused, quoted};
use crate::cancel_lock::{are_hashes, is_key_list, is_lock_list, without_comments};
use crate::reject::Reject;

/// The longest line of a header block, octets without CRLF (RFC 5322 section 2.1.1).
pub const HEADER_LINE_OCTETS_MAX: usize = 998;

/// A proto-article that is sound.
#[derive(Debug)]
pub struct Proto<'a> {
    /// Its header block.
    pub headers: Headers<'a>,
    /// Its message-id, if it brings one.
    pub message_id: Option<MessageId<'a>>,
    /// The content of Newsgroups, whose names are all well-formed.
    pub newsgroups: &'a [u8],
    /// The address of its first author, if it has a From field.
    pub from: Option<&'a [u8]>,
}

impl<'a> Proto<'a> {
    /// The groups it is for, in order.
    pub fn groups(&self) -> impl Iterator<Item = GroupName<'a>> + use<'a> {
        newsgroups::split(self.newsgroups).flatten()
    }

    /// Whether it has an Approved field.
    #[must_use]
    pub fn is_approved(&self) -> bool {
        self.headers.present().contains(Known::Approved)
    }
}

/// Fields that only servers add, or that nobody should any more (RFC 5536 sections 3.2.8, 3.2.14 and 3.3).
const FORBIDDEN: KnownSet = KnownSet::of(&[
    Known::InjectionInfo,
    Known::Xref,
    Known::AlsoControl,
    Known::DateReceived,
    Known::PostingVersion,
    Known::RelayVersion,
    Known::NntpPostingHost,
    Known::NntpPostingDate,
    Known::XTrace,
    Known::XComplaintsTo,
]);

/// The same of fields that have no other meaning here: those of Son-of-1036 that RFC 5536 section 3.3 declares obsolete.
const FORBIDDEN_BESIDE: [&str; 3] = ["Article-Names", "Article-Updates", "See-Also"];

/// Fields that may be there more than once (RFC 5322 section 3.6); Lines is taken out anyway.
const REPEATABLE: KnownSet = KnownSet::of(&[Known::Comments, Known::Keywords, Known::Lines]);

/// The message-id an article brings, if it is a good one: what the article will be known by.
#[must_use]
pub fn own_id(wire: &[u8]) -> Option<MessageId<'_>> {
    let headers = Headers::scan(wire).ok()?;
    message_id(headers.content(Known::MessageId)?).ok()
}

/// Checks a proto-article in wire form.
///
/// # Errors
/// The first reason to refuse it.
pub fn check<'a>(
    wire: &'a [u8],
    limits: HeaderLimits,
    config: &PostingConfig,
    now: UnixTime,
) -> Result<Proto<'a>, Refused> {
    let headers = Headers::scan_within(wire, limits).map_err(|fault| bad_line(wire, &fault))?;
    let facts = ArticleFacts::of(&headers).map_err(|fault| Reject::from(&fault))?;
    check_octets(&facts.octets).map_err(|fault| Reject::from(&fault))?;
    check_block(headers.block())?;
    check_presence(&headers, config)?;
    let proto = check_contents(headers)?;
    check_counts(&proto, config)?;
    check_body(&proto, config)?;
    dates::check_times(&proto.headers, config, now)?;
    Ok(proto)
}

/// Why a header block cannot be read, with the name of the field where it has one.
fn bad_line(wire: &[u8], fault: &HeaderFault) -> Refused {
    let why = Reject::from(fault);
    let HeaderFault::NoSpaceAfterColon { at } = fault else {
        return why.into();
    };
    let line = wire.get(*at as usize..).unwrap_or_default();
    let line = line.split(|octet| *octet == b'\n').next();
    let mut parts = line.unwrap_or_default().splitn(2, |octet| *octet == b':');
    let name = parts.next().unwrap_or_default();
    match parts
        .next()
        .is_none_or(|content| content.trim_ascii().is_empty())
    {
        true => Refused::of_named(Reject::EmptyHeader, name),
        false => Refused::of_named(why, name),
    }
}

/// Every line short enough, UTF-8 and without control characters.
fn check_block(block: &[u8]) -> Result<(), Refused> {
    let mut field: &[u8] = &[];
    for line in block.split(|octet| *octet == b'\n') {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if !line.starts_with(b" ") && !line.starts_with(b"\t") {
            field = line.split(|octet| *octet == b':').next().unwrap_or(line);
        }
        let is_control = |octet: &u8| octet.is_ascii_control() && *octet != b'\t';
        let why = if std::str::from_utf8(line).is_err() {
            Reject::HeaderNotUtf8
        } else if line.len() > HEADER_LINE_OCTETS_MAX {
            Reject::HeaderLineTooLong
        } else if line.iter().any(is_control) {
            Reject::HeaderControl
        } else {
            continue;
        };
        return Err(Refused::of_named(why, field));
    }
    Ok(())
}

/// What must be there, what must not, and nothing twice or empty.
fn check_presence(headers: &Headers<'_>, config: &PostingConfig) -> Result<(), Refused> {
    let present = headers.present();
    if let Some(field) = present.and(FORBIDDEN).first() {
        return Err(Refused::of(Reject::ForbiddenHeader, field));
    }
    let is_obsolete = |field: &Field<'_>| {
        let mut names = FORBIDDEN_BESIDE.iter();
        names.any(|name| name.as_bytes().eq_ignore_ascii_case(field.name))
    };
    if let Some(field) = headers.fields().find(is_obsolete) {
        return Err(Refused::of_named(Reject::ForbiddenHeader, field.name));
    }
    let from = present.contains(Known::From) || !config.from.is_empty();
    for (is_there, why) in [
        (from, Reject::NoFrom),
        (present.contains(Known::Newsgroups), Reject::NoNewsgroups),
        (present.contains(Known::Subject), Reject::NoSubject),
    ] {
        if !is_there {
            return Err(why.into());
        }
    }
    if let Some(field) = headers.doubled().without(REPEATABLE).first() {
        return Err(Refused::of(Reject::DoubledHeader, field));
    }
    let blank = headers.fields().find(|field| field.is_blank());
    if let Some(field) = blank {
        return Err(Refused::of_named(Reject::EmptyHeader, field.name));
    }
    match headers.fields().find(has_blank_line) {
        None => Ok(()),
        Some(field) => Err(Refused::of_named(Reject::BlankHeaderLine, field.name)),
    }
}

/// Whether a line of a folded field has nothing but blanks (RFC 5536 section 2.2: neither the first may nor one behind it).
fn has_blank_line(field: &Field<'_>) -> bool {
    let mut lines = field.content.split(|octet| *octet == b'\n');
    lines.any(|line| line.trim_ascii().is_empty())
}

/// Every field that is known holds what RFC 5536 allows.
fn check_contents(headers: Headers<'_>) -> Result<Proto<'_>, Refused> {
    let content = |field| headers.content(field);
    let from = content(Known::From)
        .map(first_mailbox)
        .transpose()
        .map_err(|_| Reject::BadFrom)?;
    // Who of several sends it (RFC 5322 section 3.6.2).
    let are_several = content(Known::From).is_some_and(|from| !is_one_mailbox(from));
    if are_several && content(Known::Sender).is_none() {
        return Err(Reject::NoSender.into());
    }
    let message_id = content(Known::MessageId).map(message_id).transpose()?;
    let newsgroups = content(Known::Newsgroups).ok_or(Reject::NoNewsgroups)?;
    if !is_group_list(newsgroups) {
        return Err(Reject::BadNewsgroups.into());
    }
    // A control message is filed by its verb, whatever groups it names.
    let is_reserved = |name: GroupName<'_>| name.is_reserved();
    let mut groups = newsgroups::split(newsgroups).flatten();
    if content(Known::Control).is_none() && groups.any(is_reserved) {
        return Err(Refused::of(Reject::ReservedGroup, Known::Newsgroups));
    }
    if names_one_twice(newsgroups) {
        return Err(Refused::of(Reject::DoubledGroup, Known::Newsgroups));
    }
    if let Some(path) = content(Known::Path) {
        check_path(path)?;
    }
    if content(Known::Date).is_some_and(|date| parse_rfc5322(date).is_err()) {
        return Err(Reject::BadDate.into());
    }
    if content(Known::InjectionDate).is_some_and(|date| parse_rfc5322(date).is_err()) {
        return Err(Reject::BadInjectionDate.into());
    }
    if content(Known::Control).is_some() && content(Known::Supersedes).is_some() {
        return Err(Reject::ControlAndSupersedes.into());
    }
    check_optional(&headers)?;
    dates::check_forms(&headers)?;
    Ok(Proto {
        message_id,
        newsgroups,
        from,
        headers,
    })
}

/// Fields that an article need not have.
fn check_optional(headers: &Headers<'_>) -> Result<(), Refused> {
    let content = |field| headers.content(field);
    if let Some(followups) = content(Known::FollowupTo) {
        check_followups(followups)?;
    }
    // Sender is taken as it comes: INN's inews writes `user%host.example` there, so that nobody answers to it, and INN takes it.
    for (field, is_good, why) in [
        (
            Known::ReplyTo,
            is_address_list as fn(&[u8]) -> bool,
            Reject::BadField,
        ),
        (Known::Approved, is_mailbox_list, Reject::BadField),
        (Known::CancelLock, is_lock_list, Reject::BadField),
        (Known::CancelLock, are_hashes, Reject::LockNoHash),
        (Known::CancelKey, is_key_list, Reject::BadField),
        (Known::MimeVersion, is_mime_version, Reject::BadField),
        (Known::Distribution, names_no_all, Reject::DistributionAll),
        (Known::Control, has_its_arguments, Reject::ControlArguments),
    ] {
        if content(field).is_some_and(|content| !is_good(content)) {
            return Err(Refused::of(why, field));
        }
    }
    // Lines is taken out, whatever it says.
    let odd = odd_fields(headers).without(KnownSet::of(&[Known::Lines]));
    match odd.first() {
        Some(Known::Control) => Err(Reject::BadControl.into()),
        Some(Known::Supersedes) => Err(Reject::BadSupersedes.into()),
        Some(field) => Err(Refused::of(Reject::BadField, field)),
        None => Ok(()),
    }
}

fn is_mailbox_list(content: &[u8]) -> bool {
    first_mailbox(content).is_ok()
}

/// Digits, a dot, and digits, with comments among them (RFC 2045 section 4).
fn is_mime_version(content: &[u8]) -> bool {
    let content = without_comments(content);
    let mut numbers = content.split(|octet| *octet == b'.');
    let is_number = |number: &[u8]| {
        let number = number.trim_ascii();
        !number.is_empty() && number.iter().all(u8::is_ascii_digit)
    };
    numbers.by_ref().take(2).filter(|it| is_number(it)).count() == 2 && numbers.next().is_none()
}

/// `all` may not be the name of a distribution (RFC 5536 section 3.2.4).
fn names_no_all(content: &[u8]) -> bool {
    let mut names = content.split(|octet| *octet == b',');
    !names.any(|name| name.trim_ascii().eq_ignore_ascii_case(b"all"))
}

/// Whether a control message that is known has the arguments that it has (RFC 5537 sections 5.2 and 5.3): what it is of, and behind
/// the name of a new group a word.
fn has_its_arguments(content: &[u8]) -> bool {
    let Some(control) = Control::parse(content) else {
        // It is malformed for another reason.
        return true;
    };
    let mut arguments = control.arguments();
    let is_group = |name: &[u8]| GroupName::parse(name).is_ok();
    let first = arguments.next();
    match () {
        () if control.is("cancel") => control.cancelled().is_some(),
        () if control.is("newgroup") => first.is_some_and(is_group) && arguments.nth(1).is_none(),
        () if control.is("rmgroup") => first.is_some_and(is_group) && arguments.next().is_none(),
        () => true,
    }
}

/// Names of groups, or `poster` alone (RFC 5536 section 3.2.6); none that is reserved, and each once.
fn check_followups(content: &[u8]) -> Result<(), Refused> {
    if content.trim_ascii() == b"poster" {
        return Ok(());
    }
    let refuse = |why| Err(Refused::of(why, Known::FollowupTo));
    let is_poster = |name: GroupName<'_>| name.as_str() == "poster";
    let groups = || newsgroups::split(content).flatten();
    match () {
        () if !is_group_list(content) || groups().any(is_poster) => refuse(Reject::BadField),
        () if groups().any(|name| name.is_reserved()) => refuse(Reject::ReservedGroup),
        () if names_one_twice(content) => refuse(Reject::DoubledGroup),
        () => Ok(()),
    }
}

/// Whether a list of groups has one of them twice (RFC 5536 section 3.1.4: it should not).
fn names_one_twice(content: &[u8]) -> bool {
    let mut names: Vec<_> = newsgroups::split(content).flatten().collect();
    names.sort_unstable_by_key(|name| name.as_str());
    names
        .windows(2)
        .any(|two| matches!(two, [one, other] if one.as_str() == other.as_str()))
}

/// `<left@right>` by the grammar of RFC 5536 section 3.1.3.
fn message_id(content: &[u8]) -> Result<MessageId<'_>, Reject> {
    let id = MessageId::parse(content).map_err(|_| Reject::BadMessageId)?;
    let octets = id.as_bytes();
    let inner = octets.get(1..octets.len() - 1).unwrap_or_default();
    if is_address(inner) && !inner.contains(&b'"') {
        Ok(id)
    } else {
        Err(Reject::BadMessageId)
    }
}

/// Names with one comma between two, and nothing else.
fn is_group_list(content: &[u8]) -> bool {
    let mut names = content.split(|octet| *octet == b',');
    names.all(|name| GroupName::parse(name.trim_ascii()).is_ok())
}

/// A path that an article was given before it was injected anywhere (RFC 5537 section 3.4.1).
fn check_path(content: &[u8]) -> Result<(), Refused> {
    let path = Path::parse(content).map_err(|_| Reject::BadPath)?;
    path.check().map_err(|_| Reject::BadPath)?;
    let was_posted = |diagnostic| matches!(diagnostic, Diagnostic::Posted(_));
    if path.entries().any(|entry| was_posted(entry.diagnostic)) {
        return Err(Refused::of(Reject::ForbiddenHeader, Known::Path));
    }
    Ok(())
}

fn check_counts(proto: &Proto<'_>, config: &PostingConfig) -> Result<(), Reject> {
    let most = config.groups_max as usize;
    if proto.groups().nth(most).is_some() {
        return Err(Reject::TooManyGroups);
    }
    let followups = proto.headers.content(Known::FollowupTo);
    let most = config.followups_max as usize;
    if followups.is_some_and(|list| newsgroups::split(list).nth(most).is_some()) {
        return Err(Reject::TooManyFollowups);
    }
    Ok(())
}

fn check_body(proto: &Proto<'_>, config: &PostingConfig) -> Result<(), Reject> {
    let body = proto.headers.body();
    if quoted::is_empty(body) {
        return Err(Reject::EmptyBody);
    }
    let most = config.quoted_percent_max as usize;
    if most < 100 && quoted::percent(body) > most {
        return Err(Reject::TooMuchQuoted);
    }
    Ok(())
}

#[cfg(test)]
mod tests;
