//! What a proto-article must be (RFC 5537 sections 3.4.1 and 3.5, RFC 5536): the first reason not to take it.
//!
//! Stricter than what is asked of relayed articles (`newsreel_wire::article::check_relay`): every field that is known must
//! hold what RFC 5536 allows it to, because here a refusal loses nothing.  Groups, rights and duplicates are not looked at.

use newsreel_wire::article::{
    ArticleFacts, Control, Field, HeaderLimits, Headers, Known, KnownSet, check_octets,
    first_mailbox, is_address, is_address_list, is_one_mailbox, odd_fields,
};
use newsreel_wire::date::{has_right_weekday, is_in_new_form, parse_rfc5322};
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

/// Fields that hold a date.
const DATES: [Known; 3] = [Known::Date, Known::InjectionDate, Known::Expires];

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
    check_dates(&proto.headers, config, now)?;
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
    check_forms_of_dates(&headers)?;
    Ok(Proto {
        message_id,
        newsgroups,
        from,
        headers,
    })
}

/// Dates that can be read, and that nobody should write so.
fn check_forms_of_dates(headers: &Headers<'_>) -> Result<(), Refused> {
    // A moderator, or a gateway, posts what somebody else has dated.
    let is_anothers = headers.content(Known::Approved).is_some();
    for (is_good, why) in [
        (has_right_weekday as fn(&[u8]) -> bool, Reject::WrongWeekday),
        (is_in_new_form, Reject::ObsoleteDate),
    ] {
        if is_anothers && why == Reject::ObsoleteDate {
            continue;
        }
        let is_wrong = |field: &Known| headers.content(*field).is_some_and(|it| !is_good(it));
        if let Some(field) = DATES.iter().find(|field| is_wrong(field)) {
            return Err(Refused::of(why, *field));
        }
    }
    Ok(())
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

fn check_dates(
    headers: &Headers<'_>,
    config: &PostingConfig,
    now: UnixTime,
) -> Result<(), Refused> {
    for (field, future) in [
        (Known::Date, Reject::FutureDate),
        (Known::InjectionDate, Reject::FutureInjectionDate),
    ] {
        let Some(time) = headers
            .content(field)
            .and_then(|date| parse_rfc5322(date).ok())
        else {
            continue;
        };
        if time.0 > now.0.saturating_add(config.future_s_max) {
            return Err(future.into());
        }
        if config.age_s_max > 0 && now.0.saturating_sub(time.0) > config.age_s_max {
            return Err(Refused::of(Reject::TooOld, field));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transfer::FieldName;

    fn named(name: &str) -> Option<FieldName> {
        FieldName::read(name.as_bytes())
    }

    const NOW: UnixTime = UnixTime(1_767_225_600);
    const GOOD: &str = "From: Ada <ada@a.example>\nNewsgroups: misc.test\nSubject: s\n";

    fn outcome(fields: &str, body: &str) -> Result<(), (Reject, Option<FieldName>)> {
        let config = PostingConfig {
            quoted_percent_max: 80,
            groups_max: 3,
            followups_max: 2,
            ..PostingConfig::default()
        };
        let wire = format!("{fields}\n{body}.\n").replace('\n', "\r\n");
        match check(wire.as_bytes(), HeaderLimits::USUAL, &config, NOW) {
            Ok(_) => Ok(()),
            Err(refused) => Err((refused.why, refused.field)),
        }
    }

    fn with(more: &str) -> Result<(), (Reject, Option<FieldName>)> {
        outcome(&format!("{GOOD}{more}"), "body\n")
    }

    fn changed(from: &str, to: &str) -> Result<(), (Reject, Option<FieldName>)> {
        assert!(GOOD.contains(from));
        outcome(&GOOD.replace(from, to), "body\n")
    }

    #[test]
    fn what_readers_send_is_taken() {
        assert_eq!(with(""), Ok(()));
        assert_eq!(changed("misc.test", "misc.test, a.b,\n c.d"), Ok(()));
        for more in [
            "Date: Thu, 1 Jan 2026 00:00:00 +0000\nMessage-ID: <1.x@a.example>\nPath: not-for-mail\n",
            "Message-ID: <1@[192.0.2.1]>\n",
            "Path: a.example!b!not-for-mail\n",
            "Injection-Date: Wed, 31 Dec 2025 12:00:00 GMT\n",
            "References: <1@a.example>\n <2@a.example>\nFollowup-To: poster\nDistribution: world\n",
            "Lines: many\nLines: 3\nKeywords: a\nKeywords: b\nX-Any: \u{e4}\n",
            "Control: cancel <1@a.example>\n",
            "Supersedes: <1@a.example>\nApproved: ada@a.example\nReply-To: Ada <ada@a.example>\n",
            "Followup-To: misc.test,a.b\nExpires: 1 Feb 2026 00:00 +0000\n",
        ] {
            assert_eq!(with(more), Ok(()), "{more}");
        }
    }

    #[test]
    fn fields_that_are_missing_forbidden_doubled_or_empty() {
        for (gone, why) in [
            ("From: Ada <ada@a.example>\n", Reject::NoFrom),
            ("Newsgroups: misc.test\n", Reject::NoNewsgroups),
            ("Subject: s\n", Reject::NoSubject),
        ] {
            assert_eq!(changed(gone, ""), Err((why, None)));
        }
        for field in FORBIDDEN.iter() {
            let refused = Err((Reject::ForbiddenHeader, Some(field.into())));
            assert_eq!(with(&format!("{}: x\n", field.name())), refused);
        }
        for field in [Known::Subject, Known::Organization, Known::References] {
            let one = format!("{}: <1@a.example>\n", field.name());
            let refused = Err((Reject::DoubledHeader, Some(field.into())));
            assert_eq!(with(&format!("{one}{one}")), refused);
        }
        let empty = |field| Err((Reject::EmptyHeader, field));
        assert_eq!(
            changed("Subject: s", "Subject: "),
            empty(Some(Known::Subject.into()))
        );
        assert_eq!(
            with("Organization: \t\n"),
            empty(Some(Known::Organization.into()))
        );
        assert_eq!(with("X-Any: \n \n"), empty(named("X-Any")));
        // Without the blank behind the colon its name was not said.
        assert_eq!(with("X-Any:\n"), empty(named("X-Any")));
        assert_eq!(
            with("Organization: a\nX-Any: b\nX-Foo:\n"),
            empty(named("X-Foo"))
        );
        let no_blank = Err((Reject::BadHeaderLine, named("X-Any")));
        assert_eq!(with("X-Any:a\n"), no_blank);
    }

    #[test]
    fn contents_that_no_field_may_have() {
        let long = format!("X-Any: {}\n", "x".repeat(992));
        for (more, why, field) in [
            ("Message-ID: <1>\n", Reject::BadMessageId, None),
            ("Message-ID: <a@b@c>\n", Reject::BadMessageId, None),
            ("Date: yesterday\n", Reject::BadDate, None),
            ("Date: 1 Jan 2026\n", Reject::BadDate, None),
            ("Injection-Date: now\n", Reject::BadInjectionDate, None),
            (
                "Path: a!.POSTED!not-for-mail\n",
                Reject::ForbiddenHeader,
                Some(Known::Path.into()),
            ),
            ("Path: !a\n", Reject::BadPath, None),
            ("Control: (x)\n", Reject::BadControl, None),
            ("Supersedes: <1\n", Reject::BadSupersedes, None),
            (
                "Control: cancel <1@a>\nSupersedes: <1@a>\n",
                Reject::ControlAndSupersedes,
                None,
            ),
            (
                "Reply-To: nobody\n",
                Reject::BadField,
                Some(Known::ReplyTo.into()),
            ),
            (
                "Approved: yes\n",
                Reject::BadField,
                Some(Known::Approved.into()),
            ),
            (
                "Followup-To: a b\n",
                Reject::BadField,
                Some(Known::FollowupTo.into()),
            ),
            (
                "Expires: soon\n",
                Reject::BadField,
                Some(Known::Expires.into()),
            ),
            (
                "References: you wrote\n",
                Reject::BadField,
                Some(Known::References.into()),
            ),
            ("X-Any: \x07\n", Reject::HeaderControl, named("X-Any")),
            ("X-Any: a\n b\x07\n", Reject::HeaderControl, named("X-Any")),
            (
                "Sender: a\x07b\n",
                Reject::HeaderControl,
                Some(Known::Sender.into()),
            ),
            (&long, Reject::HeaderLineTooLong, named("X-Any")),
            ("no colon\n", Reject::BadHeaderLine, None),
            ("Followup-To: a.b,c.d,e.f\n", Reject::TooManyFollowups, None),
            (
                "Date: 3 Jan 2026 00:00:00 +0000\n",
                Reject::FutureDate,
                None,
            ),
            (
                "Injection-Date: 3 Jan 2026 00:00:00 +0000\n",
                Reject::FutureInjectionDate,
                None,
            ),
            (
                "Date: 28 Dec 2025 00:00:00 +0000\n",
                Reject::TooOld,
                Some(Known::Date.into()),
            ),
            (
                "Injection-Date: 28 Dec 2025 00:00:00 +0000\n",
                Reject::TooOld,
                Some(Known::InjectionDate.into()),
            ),
        ] {
            assert_eq!(with(more), Err((why, field)), "{more}");
        }
        for (groups, why) in [
            ("misc.test,,a.b", Reject::BadNewsgroups),
            ("misc.test a.b", Reject::BadNewsgroups),
            ("a.b,c.d,e.f,g.h", Reject::TooManyGroups),
        ] {
            assert_eq!(changed("misc.test", groups), Err((why, None)), "{groups}");
        }
        let reserved = Err((Reject::ReservedGroup, Some(Known::Newsgroups.into())));
        for groups in [
            "control",
            "misc.test,control.cancel",
            "junk",
            "to.me,misc.test",
            "example.a",
            "poster",
            "a.all",
        ] {
            assert_eq!(changed("misc.test", groups), reserved, "{groups}");
            let cancel = format!("{groups}\nControl: cancel <1@a.example>");
            assert_eq!(changed("misc.test", &cancel), Ok(()), "{groups}");
        }
        assert_eq!(
            changed("Ada <ada@a.example>", "Ada"),
            Err((Reject::BadFrom, None))
        );
    }

    /// `poster` among groups, reserved names and doubled ones were taken, and sent every reader's followup astray.
    #[test]
    fn followups_and_groups_that_cannot_be() {
        let followups = |list: &str| with(&format!("Followup-To: {list}\n"));
        let refused = |why| Err((why, Some(Known::FollowupTo.into())));
        for list in ["poster,misc.test", "misc.test, poster", "poster,poster"] {
            assert_eq!(followups(list), refused(Reject::BadField), "{list}");
        }
        for list in ["control", "misc.test,junk", "to.me", "a.all", "example.a"] {
            assert_eq!(followups(list), refused(Reject::ReservedGroup), "{list}");
        }
        let doubled = "misc.test,\n misc.test";
        assert_eq!(followups(doubled), refused(Reject::DoubledGroup));
        assert_eq!(followups("misc.test,misc.test.moderated"), Ok(()));
        let newsgroups = Err((Reject::DoubledGroup, Some(Known::Newsgroups.into())));
        assert_eq!(changed("misc.test", "misc.test,a.b,misc.test"), newsgroups);
    }

    /// What can never be opened was taken for a lock.
    #[test]
    fn locks_and_keys_that_are_none() {
        let bad = |field: Known, content: &str| {
            let said = with(&format!("{}: {content}\n", field.name()));
            said == Err((Reject::BadField, Some(field.into())))
        };
        for content in [
            "x",
            "sha256",
            "sha256:",
            ":abcd",
            "sha256:abc",
            "sha256:a=cd",
            "sha256:abcd x",
            "sha 256:abcd",
            "sha256:ab!d",
        ] {
            assert!(bad(Known::CancelLock, content), "{content}");
        }
        for content in ["x", "sha256:", ":abcd", "sha256:abcd x"] {
            assert!(bad(Known::CancelKey, content), "{content}");
        }
        for more in [
            "Cancel-Lock: sha256:ypLQZKsY0xI9b9AEVXMM5tJCPXIyWkYvQWLQqd3gWfs=\n",
            "Cancel-Lock: (a) SHA1:abc=\n md5:abcdefgh (b)\n",
            "Cancel-Key: sha256:any-old-key_of.mine sha1:x\n",
        ] {
            assert_eq!(with(more), Ok(()), "{more}");
        }
    }

    /// Comments and groups of addresses where RFC 5536 and RFC 5322 let them be were refused.
    #[test]
    fn what_the_rfcs_let_be() {
        for more in [
            "Archive: yes (comment)\n",
            "References: <1@a> (x) <2@a>\n",
            "Reply-To: A group: a@b.example, c@d.example;\n",
            "MIME-Version: 1.0 (made by (me))\n",
            "MIME-Version: (x) 1 . 0\n",
            "Distribution: world, all-of-us\n",
            "Control: newgroup a.b moderated\n",
            "Control: rmgroup a.b\n",
            "Control: checkgroups\n",
            "Control: Cancel\t <1@a.example> \n",
            "Control: sendme <1@a.example> b.example\n",
            "Date: (x) thu, 1 Jan 2026 00:00:00 +0000\n",
            "Date: 1 Jan 2026 00:00 GMT\nExpires: 2 Jan 2026 00:00 ut\n",
            "See-Also-Not: x\n",
        ] {
            assert_eq!(with(more), Ok(()), "{more}");
        }
    }

    /// Each of these was taken, and no other program has to make anything of it.
    #[test]
    fn what_the_rfcs_do_not_let_be() {
        for (field, content, why) in [
            ("Control", "cancel", Reject::ControlArguments),
            ("Control", "cancel x", Reject::ControlArguments),
            ("Control", "cancel <1@a> <2@a>", Reject::ControlArguments),
            ("Control", "newgroup", Reject::ControlArguments),
            ("Control", "newgroup a..b", Reject::ControlArguments),
            ("Control", "newgroup a.b c d", Reject::ControlArguments),
            ("Control", "RMGROUP", Reject::ControlArguments),
            ("Control", "rmgroup a.b c.d", Reject::ControlArguments),
            ("Distribution", "all", Reject::DistributionAll),
            ("Distribution", "world, ALL", Reject::DistributionAll),
            ("Cancel-Lock", "sha256:AAAA", Reject::LockNoHash),
            (
                "Cancel-Lock",
                "sha1:AAAA SHA512:ypLQZKsY0xI9b9AEVXMM5tJCPXIyWkYvQWLQqd3gWfs=",
                Reject::LockNoHash,
            ),
            ("MIME-Version", "x", Reject::BadField),
            ("MIME-Version", "1", Reject::BadField),
            ("MIME-Version", "1.0.0", Reject::BadField),
            ("MIME-Version", "1.", Reject::BadField),
            (
                "Date",
                "Fri, 1 Jan 2026 00:00:00 +0000",
                Reject::WrongWeekday,
            ),
            (
                "Expires",
                "Fri, 1 Jan 2026 00:00:00 +0000",
                Reject::WrongWeekday,
            ),
            (
                "Injection-Date",
                "Fri, 1 Jan 2026 00:00:00 +0000",
                Reject::WrongWeekday,
            ),
            ("Date", "1 Jan 26 00:00:00 +0000", Reject::ObsoleteDate),
            ("Expires", "2 Jan 2026 00:00 EST", Reject::ObsoleteDate),
            ("Injection-Date", "1 Jan 2026 00:00 Z", Reject::ObsoleteDate),
            ("X-Any", "a\n \t\n b", Reject::BlankHeaderLine),
            ("X-Any", "a\n ", Reject::BlankHeaderLine),
            ("References", "\n <1@a>", Reject::BlankHeaderLine),
            ("see-also", "<1@a>", Reject::ForbiddenHeader),
            ("Article-Names", "x", Reject::ForbiddenHeader),
            ("Article-Updates", "x", Reject::ForbiddenHeader),
            ("Reply-To", "A group: me;", Reject::BadField),
            ("Approved", "A group: a@b.example;", Reject::BadField),
        ] {
            let said = with(&format!("{field}: {content}\n"));
            assert_eq!(said, Err((why, named(field))), "{field}: {content}");
        }
    }

    /// A moderator posts what somebody else has dated, maybe long ago by an old program; a day that is not the date's is wrong whoever
    /// wrote it.
    #[test]
    fn what_is_approved_may_have_an_obsolete_date() {
        let approved = |date: &str| with(&format!("Approved: mod@a.example\nDate: {date}\n"));
        assert_eq!(approved("1 Jan 26 00:00:00 EST"), Ok(()));
        let wrong = Err((Reject::WrongWeekday, named("Date")));
        assert_eq!(approved("Fri, 1 Jan 2026 00:00:00 +0000"), wrong);
    }

    /// From may name several authors; which of them sends it was said by nobody.
    #[test]
    fn several_authors_have_a_sender() {
        let two = "Ada <ada@a.example>, bob@a.example (Bob)";
        let from = |from: &str| changed("Ada <ada@a.example>", from);
        assert_eq!(from(two), Err((Reject::NoSender, None)));
        assert_eq!(from(&format!("{two}\nSender: bob@a.example")), Ok(()));
        assert_eq!(from("\"Ada, of A\" <ada@a.example> (a, b@c)"), Ok(()));
    }

    #[test]
    fn octets_and_bodies() {
        let not_utf8 = b"From: a@b\r\nNewsgroups: a.b\r\nSubject: \xe4\r\n\r\nx\r\n.\r\n";
        let config = PostingConfig::default();
        let check_wire = |wire: &[u8]| check(wire, HeaderLimits::USUAL, &config, NOW).map(|_| ());
        let subject = Refused::of(Reject::HeaderNotUtf8, Known::Subject);
        assert_eq!(check_wire(not_utf8), Err(subject));
        let latin = b"From: a@b\r\nNewsgroups: a.b\r\nSubject: s\r\n\r\n\xe4\r\n.\r\n";
        assert_eq!(check_wire(latin), Ok(()), "a body is nobody's business");
        let nul = b"From: a@b\r\nNewsgroups: a.b\r\nSubject: s\r\n\r\n\0\r\n.\r\n";
        assert_eq!(check_wire(nul), Err(Reject::Nul.into()));
        assert_eq!(outcome(GOOD, ""), Err((Reject::EmptyBody, None)));
        assert_eq!(outcome(GOOD, " \n\n"), Err((Reject::EmptyBody, None)));
        let quoted = "> x\n".repeat(81) + &"x\n".repeat(19);
        assert_eq!(outcome(GOOD, &quoted), Err((Reject::TooMuchQuoted, None)));
        let quoted = "> x\n".repeat(80) + &"x\n".repeat(20);
        assert_eq!(outcome(GOOD, &quoted), Ok(()));
    }

    #[test]
    fn the_id_an_article_brings() {
        let id = |field: &str| {
            let wire = format!("{field}Subject: s\r\n\r\n.\r\n");
            own_id(wire.as_bytes()).map(|id| id.to_string())
        };
        assert_eq!(id("Message-ID: <1@a>\r\n").as_deref(), Some("<1@a>"));
        assert_eq!(id("Message-ID: <1>\r\n"), None);
        assert_eq!(id(""), None);
        assert_eq!(own_id(b"\xff\r\n"), None);
    }
}
