//! Whose newgroup, rmgroup and checkgroups are heeded: rules in the form of INN's `control.ctl`.
//!
//! Where a key is named (`verify-KEY`) the sender is not what it depends on.  `message:from:newsgroups:action`: a message (or `all`), whose (the address in From, shell patterns with `|` between them),
//! of which groups (the same), and what becomes of it.  The last rule that matches holds, as in INN, so that general ones
//! come first.  What no rule matches waits for somebody who approves it.

use std::sync::Arc;

use newsreel_wire::Wildmat;

use super::groups::Verb;
use super::keyring::Signer;
use super::meaning::{Scope, hierarchies_of};

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
    /// The first is 0.
    number: usize,
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
        let rules = lines.iter().enumerate().map(|(number, line)| {
            rule(number, line).map_err(|why| {
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
    fn last(&self, group: &str) -> Option<&Rule> {
        let last = self.0.iter().rfind(|rule| rule.groups.matches(group));
        last.copied()
    }

    /// Which they are among all.
    pub(super) fn numbers(&self) -> Vec<usize> {
        self.0.iter().map(|rule| rule.number).collect()
    }

    /// What becomes of the message for this group.
    pub(crate) fn action(&self, group: &str) -> Action {
        let last = self.last(group);
        last.map_or_else(Action::default, |rule| rule.action.clone())
    }

    /// Whether any of them wants a mail.
    pub(super) fn mail(&self) -> bool {
        self.0.iter().any(|rule| rule.action == Action::Mail)
    }

    /// Whether nothing becomes of any group.
    pub(crate) fn drop_all(&self) -> bool {
        let is_for_all = self.0.iter().any(|rule| rule.groups.matches_all());
        is_for_all && self.0.iter().all(|rule| rule.action == Action::Drop)
    }

    /// The groups that the rule is for that is for this one.
    pub(crate) fn groups_of(&self, group: &str) -> &str {
        self.last(group).map_or("", |rule| rule.groups.as_str())
    }

    /// Of which groups a message is done, of all that a scope means.
    pub(crate) fn says_of(&self, signer: Option<&Signer>, scope: &Scope) -> Says {
        let mut says = Vec::new();
        for rule in &self.0 {
            let is_done = becomes(&rule.action, signer) == Action::Doit;
            if !is_done {
                // Nothing is left of those.
                let is_over = rule.groups.matches_all();
                says.retain(|(groups, _)| !is_over && *groups != rule.groups);
            }
            // What is done of nothing need not be left out.
            if (is_done || !says.is_empty()) && may_meet(&rule.groups, scope) {
                says.push((rule.groups.clone(), is_done));
            }
        }
        Says(says)
    }
}

/// What becomes of what a rule is for, now that it is known who signed.
pub(super) fn becomes(rule: &Action, signer: Option<&Signer>) -> Action {
    match rule {
        Action::Verify(key) => match signer {
            Some(signer) if signer.is(key) => Action::Doit,
            _ => Action::Drop,
        },
        rule => rule.clone(),
    }
}

/// Whether a group may match that a scope means: whatever cannot begin as its hierarchies do matches none.
fn may_meet(groups: &Wildmat, scope: &Scope) -> bool {
    let mut patterns = groups.as_str().split(',');
    patterns.any(|pattern| {
        let plain = pattern.split(['*', '?', '[', '\\']).next();
        let plain = plain.unwrap_or_default();
        let mut meant = scope.meant();
        meant.any(|top| top.starts_with(plain) || plain.starts_with(top))
    })
}

/// The groups of which the rules let a list of groups be done, when it came: patterns in order, and whether it is done of what
/// one matches; the last that matches holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Says(Vec<(Wildmat, bool)>);

impl Says {
    /// As the log has it; none: a pattern is malformed.
    pub(crate) fn parse(patterns: &[(String, bool)]) -> Option<Self> {
        let patterns = patterns.iter().map(|(groups, is_done)| {
            let groups = Wildmat::parse(groups).ok()?;
            Some((groups, *is_done))
        });
        Some(Self(patterns.collect::<Option<_>>()?))
    }

    /// The patterns, and whether it is done.
    pub(crate) fn patterns(&self) -> impl ExactSizeIterator<Item = (&str, bool)> {
        let patterns = self.0.iter();
        patterns.map(|(groups, is_done)| (groups.as_str(), *is_done))
    }

    /// Whether it is done of nothing.
    pub(crate) fn is_empty(&self) -> bool {
        !self.0.iter().any(|(_, is_done)| *is_done)
    }

    /// Whether it is done of all that is below this hierarchy, as far as the patterns say so plainly.
    pub(crate) fn is_of_all_below(&self, top: &str) -> bool {
        let is_above = |pattern: &str| {
            let above = pattern.strip_suffix(".*");
            above.is_some_and(|above| hierarchies_of(top).any(|name| name == above))
        };
        let is_of_all =
            |groups: &Wildmat| groups.matches_all() || groups.as_str().split(',').any(is_above);
        // What is behind the last that matches all of it may leave some of it out.
        for (groups, is_done) in self.0.iter().rev() {
            match is_done {
                true if is_of_all(groups) => return true,
                true => {}
                false => return false,
            }
        }
        false
    }

    /// Whether it is done of this group.
    pub(crate) fn is_of(&self, group: &str) -> bool {
        let last = self.0.iter().rfind(|(groups, _)| groups.matches(group));
        last.is_some_and(|(_, is_done)| *is_done)
    }
}

fn rule(number: usize, line: &str) -> Result<Rule, String> {
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
        number,
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

    /// What is remembered of the rules says the same as they do, and names nothing that is elsewhere.
    #[test]
    fn of_which_groups_a_list_is_done() {
        let rules = rules(&[
            "all:*:*:log",
            "checkgroups:*:de.*|fr.*:doit",
            "all:*:local.*:drop",
            "checkgroups:*:de.alt.*:log",
            "all:*:de.alt.x:verify-key",
            "all:*:*.secret:drop",
        ])
        .unwrap();
        let chosen = rules.of(Verb::Checkgroups, "a@b.example");
        let signer = Signer::new(vec!["key".to_owned()], "AB".to_owned());
        for signer in [None, Some(&signer)] {
            let scope = Scope::new(vec![("de".to_owned(), true)], std::iter::empty());
            let says = chosen.says_of(signer, &scope);
            for group in ["de.a", "de.alt.a", "de.alt.x", "de.secret", "de"] {
                let is_done = becomes(&chosen.action(group), signer) == Action::Doit;
                assert_eq!(says.is_of(group), is_done, "{group}");
            }
            let patterns: Vec<&str> = says.patterns().map(|it| it.0).collect();
            assert_eq!(patterns, ["de.*,fr.*", "de.alt.*", "de.alt.x", "*.secret"]);
            let of_log: Vec<_> = says.patterns().map(|it| (it.0.to_owned(), it.1)).collect();
            assert_eq!(Says::parse(&of_log), Some(says));
        }
        let elsewhere = Scope::new(vec![("es".to_owned(), true)], std::iter::empty());
        assert!(chosen.says_of(None, &elsewhere).is_empty());
        for lines in [
            &["all:*:*:doit", "all:*:*:log"][..],
            &["all:*:es.*:doit", "all:*:es.x:log", "all:*:es.*:log"],
        ] {
            let lines: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
            let none = Rules::parse(&lines).unwrap();
            let none = none.of(Verb::Checkgroups, "a@b.example");
            assert!(none.says_of(None, &elsewhere).is_empty(), "{lines:?}");
        }
        assert_eq!(Says::parse(&[("[".to_owned(), true)]), None);
    }

    #[test]
    fn of_which_hierarchies_all_is_said() {
        for (patterns, top, is_of_all) in [
            ("+*", "de", true),
            ("+de.*", "de", true),
            ("+fr.*,de.*", "de.sub", true),
            ("+de.sub.*", "de", false),
            ("+d*", "de", false),
            ("+de.* -de.alt.*", "de", false),
            ("-de.alt.* +de.*", "de", true),
            ("+de.* +de.x", "de", true),
            ("", "de", false),
        ] {
            let pattern = |it: &str| (it.replace(['+', '-'], ""), it.starts_with('+'));
            let says: Vec<_> = patterns.split_whitespace().map(pattern).collect();
            let says = Says::parse(&says).unwrap();
            assert_eq!(says.is_of_all_below(top), is_of_all, "{patterns:?} {top}");
        }
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
