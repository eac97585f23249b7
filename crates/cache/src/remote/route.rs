//! Which server is asked for what: a pure function of the configuration.
//!
//! The numbers of a group come from exactly one server.  What has a message-id may come from any, those of a lower tier first.

use newsreel_wire::wildmat::Wildmat;

/// A wildmat is no longer than this in what is kept, octets.
const WILDMAT_OCTETS_MAX: usize = 4096;

/// What a server is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// How the server is called; no two are called the same.
    pub name: String,
    /// The groups that it is asked for.
    pub groups: Wildmat,
    /// Those of a lower tier are asked first, and those of a higher one only for what these do not have, or when they cannot be
    /// asked.
    pub tier: u32,
    /// Whether posts are sent to it.
    pub posting: bool,
}

/// All servers, in the order of the configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Routes(Vec<Route>);

impl Routes {
    /// The routes of servers in the order in which they are given.
    #[must_use]
    pub const fn new(routes: Vec<Route>) -> Self {
        Self(routes)
    }

    /// The servers that are asked for a group, each with its tier.
    fn asked_for(&self, group: &str) -> impl Iterator<Item = (u32, usize)> {
        let asked = self.0.iter().enumerate();
        let asked = asked.filter(move |(_, route)| route.groups.matches(group));
        asked.map(|(at, route)| (route.tier, at))
    }

    /// The server that a group's numbers come from: of those asked for it the first of the lowest tier.
    pub(super) fn numbering(&self, group: &str) -> Option<usize> {
        self.asked_for(group).min().map(|(_, at)| at)
    }

    /// The servers of that one's tier that are asked for the group, it first.
    pub(super) fn equals(&self, group: &str) -> impl Iterator<Item = usize> {
        let tier = self.asked_for(group).min().map(|(tier, _)| tier);
        let equals = self.asked_for(group);
        equals.filter_map(move |(its, at)| (Some(its) == tier).then_some(at))
    }

    /// The servers whose lists make the list of all groups: those that the numbers of some group come from, as far as the patterns
    /// alone tell.
    pub(super) fn listing(&self) -> Vec<usize> {
        let is_needed = |(at, route): (usize, &Route)| {
            let before = self.0.iter().enumerate();
            let before = before.filter(|(other, it)| (it.tier, *other) < (route.tier, at));
            let before: Vec<&Wildmat> = before.map(|(_, it)| &it.groups).collect();
            (!route.groups.is_covered(&before)).then_some(at)
        };
        self.0.iter().enumerate().filter_map(is_needed).collect()
    }

    /// Whether a server is asked for every group.
    pub(super) fn has_all_groups(&self, at: usize) -> bool {
        self.0
            .get(at)
            .is_some_and(|route| route.groups.matches_all())
    }

    /// The name of that server.
    #[must_use]
    pub fn numbering_name(&self, group: &str) -> Option<&str> {
        let route = self.0.get(self.numbering(group)?)?;
        Some(&route.name)
    }

    /// All servers as they are asked for what any may have; of a tier those first of which less is in use.
    pub(super) fn in_turn(&self, in_use: impl Fn(usize) -> usize) -> Vec<usize> {
        let mut all: Vec<_> = (0..self.0.len()).collect();
        all.sort_by_cached_key(|at| (self.0.get(*at).map(|route| route.tier), in_use(*at)));
        all
    }

    /// Whether posts are sent to any of them.
    pub(super) fn take_posts(&self) -> bool {
        self.0.iter().any(|route| route.posting)
    }

    /// The servers that a post to these groups may go to, in order.
    pub(super) fn for_posting<'g>(
        &self,
        groups: impl Iterator<Item = &'g str> + Clone,
    ) -> Vec<usize> {
        let takes = |at: &usize| {
            let route = self.0.get(*at);
            let is_wanted = |route: &Route| groups.clone().any(|it| route.groups.matches(it));
            route.is_some_and(|route| route.posting && is_wanted(route))
        };
        self.in_turn(|_| 0).into_iter().filter(takes).collect()
    }

    /// The servers that a post to these groups is for: for each group the first that takes posts to it, each once.
    pub(super) fn post_targets<'g>(&self, groups: impl Iterator<Item = &'g str>) -> Vec<usize> {
        let mut targets = Vec::new();
        for group in groups {
            let first = self.for_posting(std::iter::once(group)).into_iter().next();
            targets.extend(first.filter(|at| !targets.contains(at)));
        }
        targets
    }

    /// The servers by which a post can go to one that it is for, in order: that one, and those of the groups that it is first
    /// for.  One that is not in the configuration any more is all that may take it.
    pub(super) fn by_way_of<'g>(
        &self,
        target: &str,
        groups: impl Iterator<Item = &'g str> + Clone,
    ) -> Vec<usize> {
        let is_it = |at: &usize| self.0.get(*at).is_some_and(|route| route.name == target);
        let its = groups.clone().filter(|group| {
            let first = self.for_posting(std::iter::once(*group)).into_iter().next();
            first.as_ref().is_some_and(is_it)
        });
        let its: Vec<&str> = its.collect();
        if its.is_empty() {
            return self.for_posting(groups);
        }
        self.for_posting(its.iter().copied())
    }

    /// The name of a server.
    pub(super) fn name(&self, at: usize) -> Option<&str> {
        Some(&self.0.get(at)?.name)
    }

    /// As they are kept, so that another configuration is noticed: a line for each server.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let line =
            |route: &Route| format!("{} {} {}\n", route.tier, route.name, route.groups.as_str());
        self.0.iter().map(line).collect::<String>().into_bytes()
    }

    /// From what was kept; none: it is no such thing.
    #[must_use]
    pub fn decode(octets: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(octets).ok()?;
        let route = |line: &str| {
            let mut words = line.splitn(3, ' ');
            let (tier, name, groups) = (words.next()?, words.next()?, words.next()?);
            Some(Route {
                tier: tier.parse().ok()?,
                name: name.to_owned(),
                groups: Wildmat::parse(groups)
                    .ok()
                    .filter(|groups| groups.as_str().len() <= WILDMAT_OCTETS_MAX)?,
                posting: true,
            })
        };
        text.lines().map(route).collect::<Option<_>>().map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn routes(all: &[(&str, &str, u32)]) -> Routes {
        let route = |(name, groups, tier): &(&str, &str, u32)| Route {
            name: (*name).to_owned(),
            groups: Wildmat::parse(groups).unwrap(),
            tier: *tier,
            posting: *name != "reads",
        };
        Routes::new(all.iter().map(route).collect())
    }

    #[test]
    fn numbers_come_from_one_server_and_articles_from_any() {
        let routes = routes(&[
            ("backup", "*", 1),
            ("main", "*,!local.*", 0),
            ("reads", "*,!local.*", 0),
            ("local", "local.*", 0),
        ]);
        assert_eq!(routes.numbering_name("misc.test"), Some("main"));
        assert_eq!(routes.numbering_name("local.test"), Some("local"));
        assert_eq!(routes.in_turn(|at| usize::from(at == 1)), [2, 3, 1, 0]);
        let posted = |groups: &[&str]| routes.for_posting(groups.iter().copied());
        assert_eq!(posted(&["misc.test"]), [1, 0]);
        assert_eq!(posted(&["local.test", "misc.test"]), [1, 3, 0]);
        assert_eq!(posted(&["local.test"]), [3, 0]);
        let targets = |groups: &[&str]| routes.post_targets(groups.iter().copied());
        assert_eq!(targets(&["misc.test", "local.test", "misc.a"]), [1, 3]);
        let way = |target: &str| routes.by_way_of(target, ["misc.test", "local.test"].into_iter());
        assert_eq!((way("main"), way("local")), (vec![1, 0], vec![3, 0]));
        assert_eq!(way("not there any more"), [1, 3, 0]);
        assert!(routes.take_posts() && !Routes::new(vec![routes.0[2].clone()]).take_posts());
        let equals = |group: &str| routes.equals(group).collect::<Vec<_>>();
        assert_eq!(
            (equals("misc.test"), equals("local.test")),
            (vec![1, 2], vec![3])
        );
        assert_eq!(
            routes.listing(),
            [1, 3],
            "of the others no group's numbers come"
        );
        let none = Routes::new(Vec::new());
        assert_eq!(
            (none.numbering("misc.test"), none.in_turn(|_| 0).len()),
            (None, 0)
        );
    }

    #[test]
    fn what_is_kept_is_what_is_read() {
        let all = routes(&[("a:119", "*,!b.*", 0), ("[::1]:563", "b.*", 7)]);
        assert_eq!(Routes::decode(&all.encode()), Some(all));
        for bad in ["x a:119 *\n", "1 a:119\n", "1 a:119 [\n"] {
            assert_eq!(Routes::decode(bad.as_bytes()), None, "{bad}");
        }
        assert_eq!(Routes::decode(b"\xff"), None);
    }
}
