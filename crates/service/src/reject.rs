//! Every reason for which an article is refused, in one table: metric label, text for the peer.
//!
//! A reason is a small `Copy` value; the reply code follows from the command (437 for IHAVE, 439 for TAKETHIS, 441
//! for POST).  A refusal may be remembered by message-id only when it does not depend on the copy or the
//! configuration, which no reason here is free of: junk sent under a good article's id must not block the good copy.

use newsreel_wire::article::Known;
use newsreel_wire::{ArticleFault, HeaderFault};

macro_rules! rejects {
    ($($(#[$doc:meta])* $name:ident $label:literal $text:literal;)*) => {
        /// Why an article is refused.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        #[repr(u8)]
        pub enum Reject {
            $(#[doc = $text] $(#[$doc])* $name,)*
        }

        impl Reject {
            /// Every reason, in table order; `reason as usize` is its place.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The metric label: lower case, underscores.
            #[must_use]
            pub const fn label(self) -> &'static str {
                match self { $(Self::$name => $label,)* }
            }

            /// What the peer is told after the code (and, for TAKETHIS, the message-id).
            #[must_use]
            pub const fn text(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }
        }
    };
}

rejects! {
    // Octets and shape.
    Nul "nul" "NUL octet in article";
    BareCr "bare_cr" "CR without LF in article";
    BareLf "bare_lf" "LF without CR in article";
    TooLarge "too_large" "Article is too large";
    HeadTooLarge "head_too_large" "Header block is too large";
    NoBody "no_body" "No empty line between header and body";
    BadHeaderLine "bad_header_line" "Malformed header line";
    TooManyHeaders "too_many_headers" "Too many header fields";
    Undecodable "undecodable" "Article cannot be parsed";
    // Mandatory fields, once each.
    NoDate "no_date" "No Date field";
    NoFrom "no_from" "No From field";
    NoMessageId "no_message_id" "No Message-ID field";
    NoNewsgroups "no_newsgroups" "No Newsgroups field";
    NoPath "no_path" "No Path field";
    NoSubject "no_subject" "No Subject field";
    DoubledHeader "doubled_header" "A header field that may appear once appears twice";
    EmptyHeader "empty_header" "A header field has no content";
    BlankHeaderLine "blank_header_line" "A line of a header field is blank";
    ForbiddenHeader "forbidden_header" "A header field that a posted article may not have";
    NoSender "no_sender" "Several addresses in From and no Sender field";
    HeaderNotUtf8 "header_not_utf8" "Header octets that are no UTF-8";
    HeaderControl "header_control" "Control character in the header";
    HeaderLineTooLong "header_line_too_long" "A header line of more than 998 octets";
    EmptyBody "empty_body" "Article is empty";
    // Syntax of each.
    BadDate "bad_date" "Malformed Date field";
    BadInjectionDate "bad_injection_date" "Malformed Injection-Date field";
    BadFrom "bad_from" "Malformed From field";
    BadMessageId "bad_message_id" "Malformed Message-ID field";
    BadNewsgroups "bad_newsgroups" "Malformed Newsgroups field";
    BadPath "bad_path" "Malformed Path field";
    BadControl "bad_control" "Malformed Control field";
    BadSupersedes "bad_supersedes" "Malformed Supersedes field";
    BadField "bad_field" "Malformed header field";
    WrongWeekday "wrong_weekday" "Day of the week that is not the date's";
    ObsoleteDate "obsolete_date" "A date in an obsolete form; give the year four digits, and the zone as in +0000 or GMT";
    LockNoHash "lock_no_hash" "A lock that is no hash of its scheme";
    ControlArguments "control_arguments" "Arguments that are not those of the control message";
    DistributionAll "distribution_all" "\"all\" is no distribution";
    ControlAndSupersedes "control_and_supersedes" "Both Control and Supersedes";
    // What it says.
    OtherMessageId "other_message_id" "Message-ID differs from the one offered";
    Loop "loop" "Already passed this site";
    FutureDate "future_date" "Date is in the future";
    FutureInjectionDate "future_injection_date" "Injection-Date is in the future";
    TooOld "too_old" "Too old";
    TooManyGroups "too_many_groups" "Crossposted to too many groups";
    TooManyFollowups "too_many_followups" "Followups to too many groups";
    Cancelled "cancelled" "Cancelled before it came";
    TooMuchQuoted "too_much_quoted" "Too much quoted text";
    // What we want.
    UnknownGroups "unknown_groups" "No such newsgroups here";
    Unwanted "unwanted" "Unwanted newsgroups";
    Poisoned "poisoned" "Poisoned newsgroup";
    NotFromPeer "not_from_peer" "Newsgroups that are not taken from you";
    PeerGroups "peer_groups" "Crossposted to more newsgroups than is taken from you";
    PeerControl "peer_control" "Control messages are not taken from you";
    PeerOctets "peer_octets" "Larger or smaller than what is taken from you";
    PeerContent "peer_content" "A kind of body that is not taken from you";
    PeerPath "peer_path" "Came through a server from which nothing is taken by way of you";
    PeerHops "peer_hops" "Came through more servers than is taken from you";
    PeerDistribution "peer_distribution" "Distribution that is not taken from you";
    PeerShare "peer_share" "In no share of the message-ids that is taken from you";
    GroupClosed "group_closed" "Newsgroup is closed";
    GroupFull "group_full" "Newsgroup has given its last number";
    NotApproved "not_approved" "Moderated newsgroup and no Approved field";
    ControlNotApproved "control_not_approved" "A control message about newsgroups and no Approved field";
    ReservedGroup "reserved_group" "Reserved name among the newsgroups";
    DoubledGroup "doubled_group" "A newsgroup is named twice";
    NoPosting "no_posting" "No posting to this newsgroup";
    NotAllowed "not_allowed" "You may not post to this newsgroup";
    NoApproval "no_approval" "You may not post with an Approved field";
    NoModerator "no_moderator" "Moderated newsgroup whose moderator is not known here";
    MailedBefore "mailed_before" "An article with this Message-ID was taken for its moderator already";
    MailRefused "mail_refused" "An article with this Message-ID could not be sent to its moderator: ask the administrator";
    PostedTooOften "posted_too_often" "Too many articles in a short time; wait before posting again";
    QuotaUsed "quota_used" "No more articles today";
    NoStorageRule "no_storage_rule" "No storage rule takes it";
    RefusedElsewhere "refused_elsewhere" "Refused by the server it was sent on to";
    Filtered "filtered" "Refused by a filter";
}

impl From<&ArticleFault> for Reject {
    /// The row for what `wire` found wrong with an article's syntax.
    fn from(fault: &ArticleFault) -> Self {
        match fault {
            ArticleFault::Header(fault) => Self::from(fault),
            ArticleFault::Nul => Self::Nul,
            ArticleFault::BareCr => Self::BareCr,
            ArticleFault::BareLf => Self::BareLf,
            ArticleFault::Missing(Known::Date) => Self::NoDate,
            ArticleFault::Missing(Known::From) => Self::NoFrom,
            ArticleFault::Missing(Known::MessageId) => Self::NoMessageId,
            ArticleFault::Missing(Known::Newsgroups) => Self::NoNewsgroups,
            ArticleFault::Missing(Known::Path) => Self::NoPath,
            ArticleFault::Missing(Known::Subject) => Self::NoSubject,
            ArticleFault::Doubled(_) => Self::DoubledHeader,
            ArticleFault::Blank(_) => Self::EmptyHeader,
            ArticleFault::MessageId {
                field: Known::Supersedes,
                ..
            } => Self::BadSupersedes,
            ArticleFault::MessageId { .. } => Self::BadMessageId,
            ArticleFault::Newsgroups(_) => Self::BadNewsgroups,
            ArticleFault::Date {
                field: Known::InjectionDate,
                ..
            } => Self::BadInjectionDate,
            ArticleFault::Date { .. } => Self::BadDate,
            ArticleFault::Path(_) => Self::BadPath,
            ArticleFault::From(_) => Self::BadFrom,
            ArticleFault::Control => Self::BadControl,
            ArticleFault::ControlAndSupersedes => Self::ControlAndSupersedes,
            _ => Self::Undecodable,
        }
    }
}

impl From<&HeaderFault> for Reject {
    fn from(fault: &HeaderFault) -> Self {
        match fault {
            HeaderFault::NoBlankLine { .. } => Self::NoBody,
            HeaderFault::BareLf { .. } => Self::BareLf,
            HeaderFault::TooLarge { .. } => Self::HeadTooLarge,
            HeaderFault::TooManyFields { .. } => Self::TooManyHeaders,
            _ => Self::BadHeaderLine,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_and_texts_are_distinct_and_fit_a_reply() {
        let mut seen = std::collections::BTreeSet::new();
        for (place, reason) in Reject::ALL.iter().enumerate() {
            assert_eq!(*reason as usize, place);
            assert!(
                seen.insert(reason.label()),
                "label {} twice",
                reason.label()
            );
            assert!(seen.insert(reason.text()), "text {} twice", reason.text());
            assert!(reason.text().len() < 100 && reason.text().is_ascii());
            let plain =
                |octet: u8| octet.is_ascii_lowercase() || octet.is_ascii_digit() || octet == b'_';
            assert!(reason.label().bytes().all(plain), "{}", reason.label());
        }
    }
}
