//! What a message about groups says, whatever groups are here; and what it asks for, of those that are.
//!
//! What it says stays the same from when it is read to when it is done, or approved much later.  What it asks for is worked out
//! anew for the groups as they are then, always by [`Meaning::asks_of`]: when it is judged, when it is done, and when it is shown.
//! What an administrator has set here (closed, aliases, local posting) is left; only the moderated flag of groups that are open
//! is changed.

use std::ops::ControlFlow;

use newsreel_index::{Group, Groups};
use newsreel_wire::GroupName;
use serde::Serialize;

use super::groups::Verb;
use crate::admin::{GROUP_OCTETS, GROUP_TEXT_OCTETS_MAX};

/// What a group is to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(super) name: String,
    pub(super) is_moderated: bool,
    pub(super) description: Option<String>,
}

/// What a message says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// This group is to be here.
    Newgroup(Wanted),
    /// This group is not to be here.
    Rmgroup(String),
    /// Of the groups that a list means those are to be here that it lists, and no others.
    Checkgroups {
        /// All of them meant, in order of their names.
        wanted: Vec<Wanted>,
        /// Which it means.
        scope: Scope,
    },
}

/// The groups that a checkgroups means.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Scope {
    /// The hierarchies that it names, in order, and whether each is meant or left out; the longest that a group belongs to
    /// decides.
    named: Vec<(String, bool)>,
    /// Where it names none: the first parts of the names that it lists, in order.
    tops: Vec<String>,
}

/// A group as it is here: its status and its description.
pub(crate) type There<'a> = Option<(&'a str, &'a str)>;

/// One change of a group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "change", rename_all = "kebab-case")]
pub enum GroupAsked {
    /// It is to be made.
    Make {
        /// Its name.
        name: String,
        /// `y` or `m`.
        status: String,
        /// The line of LIST NEWSGROUPS.
        description: String,
    },
    /// It is to be changed; what is absent stays.
    Set {
        /// Its name.
        name: String,
        /// `y` or `m`.
        status: Option<String>,
        /// The line of LIST NEWSGROUPS.
        description: Option<String>,
    },
    /// It is to be removed.
    Remove {
        /// Its name.
        name: String,
    },
}

impl GroupAsked {
    /// The group.
    pub fn name(&self) -> &str {
        match self {
            Self::Make { name, .. } | Self::Set { name, .. } | Self::Remove { name } => name,
        }
    }

    /// Octets in the log of what is done so, at most; who does it apart.
    pub(super) fn octets_max(&self) -> usize {
        let text = match self {
            Self::Make { description, .. } => description.len(),
            // What is absent is as it is here.
            Self::Set { description, .. } => description
                .as_ref()
                .map_or(GROUP_TEXT_OCTETS_MAX, String::len),
            Self::Remove { .. } => 0,
        };
        GROUP_OCTETS + self.name().len() + text
    }
}

/// What is wrong with a group's name as one that a message says something of: RFC 5536 section 3.1.4 reserves some, which are never
/// made or removed.
pub(super) fn check_name(name: &str) -> Result<(), &'static str> {
    let parsed = GroupName::parse(name.as_bytes());
    check_parsed(parsed.map_err(|_| "a group's name in it is malformed")?)
}

/// The same of one that is well-formed.
pub(super) fn check_parsed(name: GroupName<'_>) -> Result<(), &'static str> {
    match name.is_reserved() {
        true => Err("a group's name in it is reserved"),
        false => Ok(()),
    }
}

impl Wanted {
    /// What makes a group that is here so, or is not, such as this.
    fn asks(&self, there: There<'_>) -> Option<GroupAsked> {
        let (name, status) = (&self.name, if self.is_moderated { "m" } else { "y" });
        let Some((status_there, description_there)) = there else {
            return Some(GroupAsked::Make {
                name: name.clone(),
                status: status.to_owned(),
                description: self.description.clone().unwrap_or_default(),
            });
        };
        let is_open = matches!(status_there, "y" | "m");
        let status = (is_open && status_there != status).then(|| status.to_owned());
        let description = self.description.as_ref();
        let description = description.filter(|new| *new != description_there).cloned();
        (status.is_some() || description.is_some()).then(|| GroupAsked::Set {
            name: name.clone(),
            status,
            description,
        })
    }
}

impl Meaning {
    pub(crate) const fn verb(&self) -> Verb {
        match self {
            Self::Newgroup(_) => Verb::Newgroup,
            Self::Rmgroup(_) => Verb::Rmgroup,
            Self::Checkgroups { .. } => Verb::Checkgroups,
        }
    }

    /// The groups that it names: not those that it means by leaving them out.
    pub(crate) fn named(&self) -> impl Iterator<Item = &str> {
        let (one, many) = match self {
            Self::Newgroup(wanted) => (Some(wanted.name.as_str()), &[][..]),
            Self::Rmgroup(name) => (Some(name.as_str()), &[][..]),
            Self::Checkgroups { wanted, .. } => (None, &wanted[..]),
        };
        let many = many.iter().map(|wanted| wanted.name.as_str());
        one.into_iter().chain(many)
    }

    /// Whether it says something of this group.
    pub(crate) fn is_about(&self, group: &str) -> bool {
        match self {
            Self::Newgroup(wanted) => wanted.name == group,
            Self::Rmgroup(name) => name == group,
            Self::Checkgroups { scope, .. } => scope.means(group),
        }
    }

    /// What it asks for of this group, which is here so or is not.
    pub(crate) fn asks_of(&self, group: &str, there: There<'_>) -> Option<GroupAsked> {
        let remove = || {
            there.map(|_| GroupAsked::Remove {
                name: group.to_owned(),
            })
        };
        match self {
            _ if !self.is_about(group) => None,
            Self::Newgroup(wanted) => wanted.asks(there),
            Self::Rmgroup(_) => remove(),
            Self::Checkgroups { wanted, .. } => {
                match wanted.binary_search_by(|one| one.name.as_str().cmp(group)) {
                    Ok(at) => wanted.get(at)?.asks(there),
                    Err(_) if check_name(group).is_ok() => remove(),
                    Err(_) => None,
                }
            }
        }
    }

    /// All that it asks for where these groups are here.
    pub(crate) fn asks(&self, groups: &Groups) -> Vec<GroupAsked> {
        let mut asks = Vec::new();
        let _ = self.each_ask(groups, &mut |asked| {
            asks.push(asked);
            ControlFlow::Continue(())
        });
        asks
    }

    /// Visits what it asks for where these groups are here, until that is enough.
    pub(super) fn each_ask(
        &self,
        groups: &Groups,
        visit: &mut dyn FnMut(GroupAsked) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        self.each_ask_among(groups, &|top, visit| each_in(groups, top, visit), visit)
    }

    /// The same, of what it leaves out as far as `each_in` visits it, which is asked for the groups of a hierarchy.
    pub(super) fn each_ask_among(
        &self,
        groups: &Groups,
        each_in: EachIn<'_>,
        visit: &mut dyn FnMut(GroupAsked) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        fn there(group: &Option<Group>) -> There<'_> {
            let group = group.as_ref();
            group.map(|it| (it.status(), it.description()))
        }
        let mut visit_some = |asked: Option<GroupAsked>| match asked {
            Some(asked) => visit(asked),
            None => ControlFlow::Continue(()),
        };
        let Self::Checkgroups { wanted, scope } = self else {
            for name in self.named() {
                visit_some(self.asks_of(name, there(&groups.by_name(name))))?;
            }
            return ControlFlow::Continue(());
        };
        // Each is meant, and need not be looked for in the list.
        for one in wanted {
            visit_some(one.asks(there(&groups.by_name(&one.name))))?;
        }
        scope.each_there(each_in, &mut |group| {
            let name = group.name();
            let found = wanted.binary_search_by(|one| one.name.as_str().cmp(name));
            match found {
                Ok(_) => ControlFlow::Continue(()),
                Err(_) => {
                    visit_some(self.asks_of(name, Some((group.status(), group.description()))))
                }
            }
        })
    }

    /// What it asks for of the groups whose names are those of its hierarchies, where these are here.
    pub(super) fn asks_of_tops(&self, groups: &Groups) -> Vec<GroupAsked> {
        let Self::Checkgroups { scope, .. } = self else {
            return Vec::new();
        };
        let ask = |top: &str| {
            let group = groups.by_name(top);
            let there = group.as_ref().map(|it| (it.status(), it.description()));
            self.asks_of(top, there)
        };
        scope.meant().filter_map(ask).collect()
    }
}

/// A group, and the hierarchies that it belongs to, the longest first.
pub(super) fn hierarchies_of(group: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(group), |name| Some(name.rsplit_once('.')?.0))
}

impl Scope {
    /// The hierarchies in the arguments; of one that is there twice the last counts.  `listed`: what counts where there are none.
    pub(crate) fn new<'a>(
        mut named: Vec<(String, bool)>,
        listed: impl Iterator<Item = &'a str>,
    ) -> Self {
        named.sort_by(|a, b| a.0.cmp(&b.0));
        named.dedup_by(|later, earlier| {
            let is_same = later.0 == earlier.0;
            if is_same {
                earlier.1 = later.1;
            }
            is_same
        });
        let mut tops: Vec<&str> = Vec::new();
        if named.is_empty() {
            tops = listed.filter_map(|name| name.split('.').next()).collect();
            tops.sort_unstable();
            tops.dedup();
        }
        let tops = tops.into_iter().map(str::to_owned).collect();
        Self { named, tops }
    }

    /// The hierarchies that it names, and whether each is meant or left out.
    pub(crate) fn named(&self) -> &[(String, bool)] {
        &self.named
    }

    /// The hierarchies that it means where it names none.
    pub(crate) fn tops(&self) -> &[String] {
        &self.tops
    }

    /// The hierarchies of which it means something, in order.
    pub(crate) fn meant(&self) -> impl Iterator<Item = &str> {
        let named = self.named.iter().filter(|(_, is_in)| *is_in);
        let named = named.map(|(name, _)| name.as_str());
        named.chain(self.tops.iter().map(String::as_str))
    }

    /// The same without a hierarchy and those in it; none: it means nothing else.
    pub(crate) fn without(&self, hierarchy: &str) -> Option<Self> {
        let is_in = |name: &str| hierarchies_of(name).any(|above| above == hierarchy);
        let mut rest = self.clone();
        for (name, is_meant) in &mut rest.named {
            *is_meant &= !is_in(name);
        }
        rest.tops.retain(|name| !is_in(name));
        let means_something = rest.meant().next().is_some();
        means_something.then_some(rest)
    }

    /// Whether it means this group.
    pub(crate) fn means(&self, group: &str) -> bool {
        self.top_of(group).is_some()
    }

    /// The hierarchy of this group, as far as it means that.
    pub(crate) fn top_of<'a>(&self, group: &'a str) -> Option<&'a str> {
        if self.named.is_empty() {
            let top = group.split('.').next().unwrap_or_default();
            let found = self.tops.binary_search_by(|one| one.as_str().cmp(top));
            return found.is_ok().then_some(top);
        }
        hierarchies_of(group)
            .find_map(|name| Some((name, self.is_in(name)?)))
            .and_then(|(name, is_in)| is_in.then_some(name))
    }

    /// Whether it means a hierarchy that it names, or leaves it out.
    fn is_in(&self, name: &str) -> Option<bool> {
        let found = self.named.binary_search_by(|one| one.0.as_str().cmp(name));
        self.named.get(found.ok()?).map(|(_, is_in)| *is_in)
    }

    /// Whether it names nothing below a hierarchy: all below is then in the one that that is in.
    pub(crate) fn is_plain_below(&self, top: &str) -> bool {
        let mut named = self.named.iter();
        !named.any(|(name, _)| hierarchies_of(name).skip(1).any(|above| above == top))
    }

    /// Visits the groups that are here and that it means, each once, until that is enough.
    fn each_there(
        &self,
        each_in: EachIn<'_>,
        visit: &mut dyn FnMut(&Group) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        for top in self.meant() {
            // What lies below a hierarchy that is meant as well was visited with that.
            let mut above = hierarchies_of(top).skip(1);
            if above.any(|name| self.is_in(name) == Some(true)) {
                continue;
            }
            let mut visit_meant = |group: &Group| match self.means(group.name()) {
                true => visit(group),
                false => ControlFlow::Continue(()),
            };
            each_in(top, &mut visit_meant)?;
        }
        ControlFlow::Continue(())
    }
}

/// Visits groups of a hierarchy, until that is enough.
pub(super) type EachIn<'a> =
    &'a dyn Fn(&str, &mut dyn FnMut(&Group) -> ControlFlow<()>) -> ControlFlow<()>;

/// Visits all groups of a hierarchy, the one that is called so first, until that is enough.
pub(super) fn each_in(
    groups: &Groups,
    top: &str,
    visit: &mut dyn FnMut(&Group) -> ControlFlow<()>,
) -> ControlFlow<()> {
    if let Some(group) = groups.by_name(top) {
        visit(&group)?;
    }
    each_below(groups, top, visit)
}

/// Groups that are looked at in one go, at most.
const STEP_MAX: usize = 1024;

/// Visits the groups of a hierarchy, in order of their names, until that is enough: reads no others, but for some behind them.
fn each_below(
    groups: &Groups,
    top: &str,
    visit: &mut dyn FnMut(&Group) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let below = format!("{top}.");
    let (mut after, mut step) = (below.clone(), 2);
    loop {
        let (mut last, mut is_over) = (None, false);
        let mut flow = ControlFlow::Continue(());
        let more = groups.list(Some(&after), "", step, |group| {
            if !is_over && group.name().starts_with(&below) {
                flow = visit(group);
                is_over = flow.is_break();
                last = Some(group.name().to_owned());
            } else {
                is_over = true;
            }
        });
        flow?;
        match last {
            Some(last) if more && !is_over => after = last,
            _ => return ControlFlow::Continue(()),
        }
        step = (step * 2).min(STEP_MAX);
    }
}

#[cfg(test)]
mod tests {
    use newsreel_index::GroupRow;
    use newsreel_wire::{ArticleNumber, GroupId, UnixTime};

    use super::*;

    fn scope(named: &[(&str, bool)], listed: &[&str]) -> Scope {
        let named = named.iter().map(|it| (it.0.to_owned(), it.1)).collect();
        Scope::new(named, listed.iter().copied())
    }

    fn groups(names: &[&str]) -> Groups {
        let groups = Groups::default();
        for (id, name) in (1..).zip(names) {
            groups
                .make(&GroupRow {
                    id: GroupId(id),
                    created: UnixTime(1),
                    high: ArticleNumber(0),
                    name,
                    status: "y",
                    creator: "",
                    description: "Of it.",
                })
                .unwrap();
        }
        groups
    }

    #[test]
    fn scopes() {
        let all = [("de.alt", false), ("de", true), ("de.alt.test", true)];
        let scope = scope(&all, &["fr.x"]);
        for (group, top) in [
            ("de.comp", Some("de")),
            ("de", Some("de")),
            ("de.alt", None),
            ("de.alt.x", None),
            ("de.alt.test.y", Some("de.alt.test")),
            ("dea.x", None),
            ("comp.de", None),
            ("fr.x", None),
        ] {
            assert_eq!(scope.top_of(group), top, "{group}");
        }
    }

    #[test]
    fn a_scope_without_names_is_what_is_listed() {
        let scope = scope(&[], &["fr.x", "de.y", "fr.z"]);
        assert_eq!(scope.tops(), ["de", "fr"]);
        assert_eq!(scope.top_of("fr.z.a"), Some("fr"));
        assert!(!scope.means("frx.a") && scope.means("de"));
    }

    /// Whatever else sorts between a hierarchy and what is below it.
    #[test]
    fn the_groups_of_a_scope_are_visited_once_each() {
        let mut names = vec![
            "de", "de+x", "de-x.a", "de.a", "de.alt.a", "de.alt.b", "de.alt", "de.b.c", "de0",
            "dea.x",
        ];
        let many: Vec<String> = (0..5000).map(|n| format!("de.many.n{n}")).collect();
        names.extend(many.iter().map(String::as_str));
        let groups = groups(&names);
        let visited = |named: &[(&str, bool)]| {
            let mut visited = Vec::new();
            let all = &|top: &str, visit: &mut dyn FnMut(&Group) -> ControlFlow<()>| {
                each_in(&groups, top, visit)
            };
            let flow = scope(named, &["de.x"]).each_there(all, &mut |it| {
                visited.push(it.name().to_owned());
                ControlFlow::Continue(())
            });
            assert!(flow.is_continue());
            visited.retain(|name| !name.starts_with("de.many."));
            visited
        };
        let all = ["de", "de.a", "de.alt", "de.alt.a", "de.alt.b", "de.b.c"];
        assert_eq!(visited(&[]), all);
        assert_eq!(visited(&[("de", true)]), all);
        assert_eq!(visited(&[("de", true), ("de.alt", true)]), all);
        let some = ["de", "de.a", "de.alt.b", "de.b.c"];
        let named = [("de", true), ("de.alt", false), ("de.alt.b", true)];
        assert_eq!(visited(&named), some);
        assert_eq!(
            visited(&[("de.alt", true)]),
            ["de.alt", "de.alt.a", "de.alt.b"]
        );
        let count_to = |most: usize| {
            let mut count = 0;
            let all = &|top: &str, visit: &mut dyn FnMut(&Group) -> ControlFlow<()>| {
                each_in(&groups, top, visit)
            };
            let _ = scope(&[("de.many", true)], &[]).each_there(all, &mut |_| {
                count += 1;
                match count < most {
                    true => ControlFlow::Continue(()),
                    false => ControlFlow::Break(()),
                }
            });
            count
        };
        assert_eq!(count_to(usize::MAX), many.len());
        assert_eq!([1, 2, 3, 1000].map(count_to), [1, 2, 3, 1000]);
    }

    /// What is asked for of all groups is what is asked for of each.
    #[test]
    fn what_a_list_asks_for() {
        let wanted = |name: &str, is_moderated| Wanted {
            name: name.to_owned(),
            is_moderated,
            description: Some("Of it.".to_owned()),
        };
        let meaning = Meaning::Checkgroups {
            wanted: vec![
                wanted("de.a", false),
                wanted("de.b", true),
                wanted("de.c", true),
            ],
            scope: scope(&[("de", true), ("de.alt", false)], &[]),
        };
        let names = ["de.a", "de.b", "de.old", "de.alt.a", "fr.a"];
        let groups = groups(&names);
        let asks = meaning.asks(&groups);
        let asked: Vec<_> = asks
            .iter()
            .map(|it| (it.name(), std::mem::discriminant(it)))
            .collect();
        let kind =
            |name: &str, there| std::mem::discriminant(&meaning.asks_of(name, there).unwrap());
        let there = Some(("y", "Of it."));
        assert_eq!(
            asked,
            [
                ("de.b", kind("de.b", there)),
                ("de.c", kind("de.c", None)),
                ("de.old", kind("de.old", there)),
            ]
        );
        assert_eq!(meaning.asks_of("de.a", there), None);
        assert_eq!(meaning.asks_of("de.alt.a", there), None);
        assert_eq!(meaning.asks_of("de.old", None), None);
        assert_eq!(
            meaning.asks_of("de.b", Some(("x", "Of it."))),
            None,
            "closed stays"
        );
    }
}
