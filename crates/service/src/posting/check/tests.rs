//! What is taken and what is not, said by fields and bodies.

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
