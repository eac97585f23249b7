//! Whose newgroup, rmgroup and checkgroups are heeded: rules in the form of INN's `control.ctl`.
//!
//! Where a key is named (`verify-KEY`) the sender is not what it depends on.  `message:from:newsgroups:action`: a message (or `all`), whose (the address in From, shell patterns with `|` between them),
//! of which groups (the same), and what becomes of it.  The last rule that matches holds, as in INN, so that general ones
//! come first.  What no rule matches waits for somebody who approves it.

use std::sync::Arc;

use newsreel_wire::Wildmat;

use super::groups::Verb;

/// What becomes of a message, for one group.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) enum Action {
    /// It is done.
    Doit,
    /// It is done if the key with this name or fingerprint signed it, and else nothing.
    Verify(Arc<str>),
    /// It is told in the log, and can be approved.
    #[default]
    Log,
    /// The same, and a mail tells of it.
    Mail,
    /// Nothing, and nothing is said.
    Drop,
}

impl Action {
    /// As it is written in a rule.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Doit => "doit".to_owned(),
            Self::Verify(key) => format!("{VERIFY}{key}"),
            Self::Log => "log".to_owned(),
            Self::Mail => "mail".to_owned(),
            Self::Drop => "drop".to_owned(),
        }
    }

    /// What one is written so.
    fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "doit" => Self::Doit,
            "log" => Self::Log,
            "mail" => Self::Mail,
            "drop" => Self::Drop,
            other => {
                let key = other.strip_prefix(VERIFY)?;
                Self::Verify(Some(key).filter(|key| !key.is_empty())?.into())
            }
        })
    }
}

/// In front of a key.
const VERIFY: &str = "verify-";

/// One line.
#[derive(Debug, Clone)]
struct Rule {
    /// None: all of them.
    verb: Option<Verb>,
    from: Wildmat,
    groups: Wildmat,
    action: Action,
}

/// All of them, in order.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rules(Vec<Rule>);

impl Rules {
    /// Reads the rules; the first that is wrong is told.
    pub(crate) fn parse(lines: &[String]) -> Result<Self, String> {
        let rules = lines.iter().map(|line| {
            rule(line).map_err(|why| {
                format!("{line:?}: {why}, as in \"newgroup:admin@a.example:a.*:doit\"")
            })
        });
        Ok(Self(rules.collect::<Result<_, _>>()?))
    }

    /// Whether any of them wants a mail.
    pub(crate) fn mail(&self) -> bool {
        self.0.iter().any(|rule| rule.action == Action::Mail)
    }

    /// Those that may be for a message of this sender, so that each of its groups is held against these only.
    pub(crate) fn of(&self, verb: Verb, sender: &str) -> Chosen<'_> {
        let is_for =
            |rule: &&Rule| rule.verb.is_none_or(|of| of == verb) && rule.from.matches(sender);
        Chosen(self.0.iter().filter(is_for).collect())
    }
}

/// Rules for one message, in order.
#[derive(Debug)]
pub(crate) struct Chosen<'a>(Vec<&'a Rule>);

impl Chosen<'_> {
    /// What becomes of the message for this group.
    pub(crate) fn action(&self, group: &str) -> Action {
        let last = self.0.iter().rfind(|rule| rule.groups.matches(group));
        last.map_or_else(Action::default, |rule| rule.action.clone())
    }
}

fn rule(line: &str) -> Result<Rule, String> {
    let [message, from, groups, action] = line.split(':').collect::<Vec<_>>()[..] else {
        return Err("four parts with a colon between them are wanted".to_owned());
    };
    let verb = match message {
        "all" => None,
        name => Some(
            Verb::parse(name).ok_or("the message is one of all, newgroup, rmgroup, checkgroups")?,
        ),
    };
    let action =
        Action::parse(action).ok_or("the action is one of doit, log, mail, drop, verify-KEY")?;
    Ok(Rule {
        verb,
        from: patterns(&from.to_ascii_lowercase())?,
        groups: patterns(groups)?,
        action,
    })
}

/// Shell patterns with `|` between them.
pub(super) fn patterns(text: &str) -> Result<Wildmat, String> {
    // What makes a wildmat more than shell patterns.
    if text.contains(',')
        || text
            .split('|')
            .any(|one| one.is_empty() || one.starts_with(['!', '@']))
    {
        return Err(format!(
            "{text:?} is no list of patterns with | between them"
        ));
    }
    Wildmat::parse(&text.replace('|', ",")).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(lines: &[&str]) -> Result<Rules, String> {
        Rules::parse(
            &lines
                .iter()
                .map(|line| (*line).to_owned())
                .collect::<Vec<_>>(),
        )
    }

    #[test]
    fn the_last_that_matches_holds() {
        let rules = rules(&[
            "all:*:*:log",
            "newgroup:Admin@A.example|*@b.example:a.*|b.*:doit",
            "rmgroup:*:a.*:drop",
            "all:*:a.local.*:log",
            "checkgroups:*:d.*:verify-News Admin <admin@d.example>",
            "newgroup:*:e.*:mail",
        ])
        .unwrap();
        for (verb, sender, group, action) in [
            (Verb::Newgroup, "admin@a.example", "a.b", Action::Doit),
            (Verb::Newgroup, "x@b.example", "b.c", Action::Doit),
            (Verb::Newgroup, "x@c.example", "b.c", Action::Log),
            (Verb::Newgroup, "x@b.example", "c.d", Action::Log),
            (Verb::Newgroup, "x@b.example", "a.local.x", Action::Log),
            (Verb::Rmgroup, "x@b.example", "a.b", Action::Drop),
            (Verb::Checkgroups, "x@b.example", "a.b", Action::Log),
            (Verb::Newgroup, "x@b.example", "e.b", Action::Mail),
            (
                Verb::Checkgroups,
                "x@b.example",
                "d.b",
                Action::Verify("News Admin <admin@d.example>".into()),
            ),
        ] {
            assert_eq!(
                rules.of(verb, sender).action(group),
                action,
                "{verb:?} {sender} {group}"
            );
        }
        let none = Rules::default();
        assert_eq!(none.of(Verb::Newgroup, "a@b.c").action("a.b"), Action::Log);
    }

    #[test]
    fn what_is_wrong_is_told() {
        for (line, why) in [
            ("newgroup:*:*", "four parts"),
            ("newgroup:*:*:doit:", "four parts"),
            ("sendme:*:*:doit", "the message is one of"),
            ("newgroup:*:*:verify-", "the action is one of"),
            ("newgroup:*:*:verify", "the action is one of"),
            ("newgroup::*:doit", "patterns"),
            ("newgroup:*:!a.*:doit", "patterns"),
            ("newgroup:*:a.*,b.*:doit", "patterns"),
            ("newgroup:*:a.*|:doit", "patterns"),
        ] {
            let told = rules(&["all:*:*:log", line]).unwrap_err();
            assert!(told.contains(why) && told.contains(line), "{line}: {told}");
        }
    }
}
