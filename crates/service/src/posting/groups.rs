//! Where a post goes: into its groups, or to the moderator of one of them (RFC 5537 section 3.5, step 7).

use newsreel_wire::article::{Control, Known};

use crate::group::GroupStatus;
use crate::reject::Reject;

use super::{Poster, Proto};

/// Looks at the groups of a post: `status` tells what a group is here.  `Some`: not approved, and this is the first
/// moderated group, to whose moderator the whole article goes, whatever its other groups are.
///
/// Groups that are not here are passed over, as long as there is another one: peers may have them.  What makes or removes groups
/// may name those alone (RFC 5537 section 5.2): one that is to be made is here nowhere.  It must be approved (the same section), which
/// only who may approve can do: nobody else has it sent on from here.
///
/// # Errors
/// Why it may not be posted.
pub fn destination<'a>(
    proto: &Proto<'a>,
    poster: &Poster,
    status: impl Fn(&str) -> Option<GroupStatus>,
) -> Result<Option<&'a str>, Reject> {
    if proto.is_approved() && !poster.may_approve {
        return Err(Reject::NoApproval);
    }
    let is_of_groups = is_of_groups(proto);
    if is_of_groups && !proto.is_approved() {
        return Err(Reject::ControlNotApproved);
    }
    let (mut is_known, mut moderated) = (false, None);
    for name in proto.groups() {
        let name = name.as_str();
        if !poster.may_post_to(name) {
            return Err(Reject::NotAllowed);
        }
        match status(name) {
            None => continue,
            Some(GroupStatus::Open) => {}
            Some(GroupStatus::Moderated) => moderated = moderated.or(Some(name)),
            Some(GroupStatus::NoPosting | GroupStatus::Alias) => return Err(Reject::NoPosting),
            Some(GroupStatus::Junk | GroupStatus::Closed) => return Err(Reject::GroupClosed),
        }
        is_known = true;
    }
    if !is_known && !is_of_groups {
        return Err(Reject::UnknownGroups);
    }
    Ok(moderated.filter(|_| !proto.is_approved()))
}

/// Whether it is a control message about groups.
fn is_of_groups(proto: &Proto<'_>) -> bool {
    let control = proto.headers.content(Known::Control);
    let is_of_groups = |control: Control<'_>| {
        let verbs = ["newgroup", "rmgroup", "checkgroups"];
        verbs.iter().any(|verb| control.is(verb))
    };
    control.and_then(Control::parse).is_some_and(is_of_groups)
}

#[cfg(test)]
mod tests {
    use newsreel_wire::article::HeaderLimits;
    use newsreel_wire::{UnixTime, Wildmat};

    use super::super::{PostingConfig, check};
    use super::*;

    fn status(name: &str) -> Option<GroupStatus> {
        GroupStatus::parse(match name {
            "a.open" => "y",
            "a.mod" | "b.mod" => "m",
            "a.read" => "n",
            "a.gone" => "=a.open",
            "a.junk" => "j",
            "a.shut" => "x",
            _ => return None,
        })
    }

    fn to(groups: &str, approved: bool, poster: &Poster) -> Result<Option<String>, Reject> {
        let approved = if approved {
            "Approved: m@a.example\r\n"
        } else {
            ""
        };
        let wire = format!(
            "From: a@b.example\r\nNewsgroups: {groups}\r\nSubject: s\r\n{approved}\r\nx\r\n.\r\n"
        );
        let config = PostingConfig::default();
        let now = UnixTime(1_767_225_600);
        let proto = check(wire.as_bytes(), HeaderLimits::USUAL, &config, now).unwrap();
        let to = destination(&proto, poster, status)?;
        Ok(to.map(str::to_owned))
    }

    #[test]
    fn mixes_of_groups() {
        let poster = Poster::default();
        let moderator = Poster {
            may_approve: true,
            ..Poster::default()
        };
        for (groups, expected) in [
            ("a.open", Ok(None)),
            ("no.such,a.open", Ok(None)),
            ("a.open,b.mod,a.mod", Ok(Some("b.mod".to_owned()))),
            ("no.such,a.mod", Ok(Some("a.mod".to_owned()))),
            ("no.such", Err(Reject::UnknownGroups)),
            ("a.open,a.read", Err(Reject::NoPosting)),
            ("a.gone", Err(Reject::NoPosting)),
            ("a.open,a.junk", Err(Reject::GroupClosed)),
            ("a.shut", Err(Reject::GroupClosed)),
        ] {
            assert_eq!(to(groups, false, &poster), expected, "{groups}");
        }
        // One that is to be made could not be posted to.
        for (verb, expected) in [
            ("newgroup no.such", Ok(None)),
            ("RMGROUP no.such", Ok(None)),
            ("cancel <1@a.example>", Err(Reject::UnknownGroups)),
        ] {
            let groups = format!("no.such\r\nControl: {verb}");
            assert_eq!(to(&groups, true, &moderator), expected, "{verb}");
        }
        // Without approval it went on to peers, or to a moderator, whom it does not concern.
        for groups in ["no.such", "a.open", "a.mod"] {
            let groups = format!("{groups}\r\nControl: newgroup a.new");
            for poster in [&poster, &moderator] {
                assert_eq!(to(&groups, false, poster), Err(Reject::ControlNotApproved));
            }
            assert_eq!(to(&groups, true, &poster), Err(Reject::NoApproval));
        }
        assert_eq!(to("a.open,a.mod", true, &moderator), Ok(None));
        assert_eq!(to("a.open", true, &poster), Err(Reject::NoApproval));
    }

    #[test]
    fn a_poster_may_be_kept_to_some_groups() {
        let poster = Poster {
            groups: Some(Wildmat::parse("a.*,!a.mod").unwrap()),
            ..Poster::default()
        };
        assert_eq!(to("a.open", false, &poster), Ok(None));
        assert_eq!(to("a.open,a.mod", false, &poster), Err(Reject::NotAllowed));
        assert_eq!(to("b.mod", false, &poster), Err(Reject::NotAllowed));
    }
}
