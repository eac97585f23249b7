//! Which articles go out by a feed, and which are taken from a peer: a pure function of what is known of an article, with the
//! reason in words.
//!
//! The groups are asked first and alone: what they say depends on Newsgroups and where an article is filed, so that whoever has many feeds asks them once
//! for each list of groups ([`Filter::takes_groups`]); the rest is asked of each article ([`Filter::judge`]).

use std::borrow::Cow;
use std::fmt;

use newsreel_engine::{FedArticle, FedGroups};
use newsreel_service::{Brought, Reject, Terms};
use newsreel_wire::article::Content;
use newsreel_wire::path::Path;
use newsreel_wire::{Verdict, Wildmat, newsgroups};

use crate::config::{FeedConfig, FeedContent, PeerConfig};
use crate::hashfeed::Hashfeed;

/// Why an article does not go out by a feed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// None of its groups goes.
    NoGroup,
    /// One of its groups meets a poison pattern.
    Poison(String),
    /// It came through this server.
    CameThrough(String),
    /// It came through more servers than may be.
    Hops(usize, u32),
    /// None of its distributions goes.
    Distribution(String),
    /// It has fewer octets than wanted.
    TooSmall(u32, u64),
    /// It has more octets than wanted.
    TooLarge(u32, u64),
    /// It names more groups than wanted.
    TooManyGroups(usize, u32),
    /// Its body is not what is wanted.
    Content(FeedContent),
    /// It is a control message.
    Control,
    /// It was not posted here.
    NotPosted,
    /// It belongs to another share of the hash.
    OtherShare,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoGroup => f.write_str("none of its groups is in `groups`"),
            Self::Poison(group) => {
                write!(f, "its group {group} meets a poison pattern of `groups`")
            }
            Self::CameThrough(name) => write!(f, "its Path has {name} already"),
            Self::Hops(hops, max) => {
                write!(f, "it came through {hops} servers, and `hops_max` is {max}")
            }
            Self::Distribution(those) => {
                write!(f, "its Distribution, {those}, is not in `distributions`")
            }
            Self::TooSmall(octets, min) => {
                write!(f, "it has {octets} octets, and `octets_min` is {min}")
            }
            Self::TooLarge(octets, max) => {
                write!(f, "it has {octets} octets, and `octets_max` is {max}")
            }
            Self::TooManyGroups(groups, max) => {
                write!(f, "it names {groups} groups, and `groups_max` is {max}")
            }
            Self::Content(FeedContent::Text) => {
                f.write_str("its body is a file, and `content` is text")
            }
            Self::Content(_) => f.write_str("its body is no file, and `content` is binary"),
            Self::Control => f.write_str("it is a control message, and `control` is false"),
            Self::NotPosted => f.write_str("it was not posted here, and `posted_only` is true"),
            Self::OtherShare => {
                f.write_str("its message-id is in none of the shares of `hashfeed`")
            }
        }
    }
}

/// What the conditions look at.
#[derive(Debug, Clone, Copy)]
struct Facts<'a> {
    id: &'a [u8],
    path: &'a [u8],
    /// Our own name is in front of Path.
    has_our_entry: bool,
    distribution: &'a [u8],
    octets: u32,
    is_posted: bool,
    is_control: bool,
    content: Option<Content>,
}

impl<'a> Facts<'a> {
    /// Of one that may go out.
    const fn of_fed(article: &FedArticle<'a>) -> Self {
        Self {
            id: article.id,
            path: article.path,
            has_our_entry: true,
            distribution: article.distribution,
            octets: article.octets,
            is_posted: article.is_posted,
            is_control: article.is_control,
            content: article.content,
        }
    }

    /// Of one that a peer brings.
    const fn of_brought(article: &Brought<'a>) -> Self {
        Self {
            id: article.id,
            path: article.path,
            has_our_entry: false,
            distribution: article.distribution,
            octets: article.octets,
            is_posted: false,
            is_control: article.is_control,
            content: article.content,
        }
    }
}

impl Refusal {
    /// The same of what a peer brings, as it is told.
    const fn reject(&self) -> Reject {
        match self {
            Self::NoGroup | Self::Poison(_) => Reject::NotFromPeer,
            Self::CameThrough(_) => Reject::PeerPath,
            Self::Hops(..) => Reject::PeerHops,
            Self::Distribution(_) => Reject::PeerDistribution,
            Self::TooSmall(..) | Self::TooLarge(..) => Reject::PeerOctets,
            Self::TooManyGroups(..) => Reject::PeerGroups,
            Self::Content(_) => Reject::PeerContent,
            Self::Control | Self::NotPosted => Reject::PeerControl,
            Self::OtherShare => Reject::PeerShare,
        }
    }
}

type Condition = fn(&Filter, &Facts<'_>) -> Result<(), Refusal>;

/// Everything but the groups, what costs little first.
const CONDITIONS: [Condition; 7] = [
    Filter::judge_origin,
    Filter::judge_kind,
    Filter::judge_octets,
    Filter::judge_content,
    Filter::judge_path,
    Filter::judge_distribution,
    Filter::judge_share,
];

/// A feed's conditions, prepared.
#[derive(Debug)]
pub struct Filter {
    groups: Wildmat,
    groups_max: u32,
    distributions: Wildmat,
    /// The peer's names and those of `not_through`.
    not_through: Vec<String>,
    octets_min: u64,
    octets_max: u64,
    hops_max: u32,
    content: FeedContent,
    control: bool,
    posted_only: bool,
    hashfeed: Hashfeed,
}

impl Filter {
    /// Prepares what the configuration says.
    ///
    /// # Errors
    /// The key that cannot be used, and why.
    pub fn new(peer: &PeerConfig, feed: &FeedConfig) -> Result<Self, (&'static str, String)> {
        let wildmat = |key, text: &str| Wildmat::parse(text).map_err(|why| (key, why.to_string()));
        let names = [&peer.name].into_iter().chain(&peer.aliases);
        if feed.octets_max > 0 && feed.octets_min > feed.octets_max {
            let why = format!(
                "no article has {} octets and more, and {} at most",
                feed.octets_min, feed.octets_max
            );
            return Err(("octets_min", why));
        }
        Ok(Self {
            groups: wildmat("groups", &feed.groups)?,
            groups_max: feed.groups_max,
            distributions: wildmat("distributions", &all_but(&feed.distributions))?,
            not_through: names.chain(&feed.not_through).cloned().collect(),
            octets_min: feed.octets_min,
            octets_max: feed.octets_max,
            hops_max: feed.hops_max,
            content: feed.content,
            control: feed.control,
            posted_only: feed.posted_only,
            hashfeed: Hashfeed::parse(&feed.hashfeed).map_err(|why| ("hashfeed", why))?,
        })
    }

    /// What is taken from a peer: as what goes out by a feed, but that it may have come through the peer.
    ///
    /// # Errors
    /// The key that cannot be used, and why.
    pub fn of_what_comes(terms: &FeedConfig) -> Result<Self, (&'static str, String)> {
        let nobody = PeerConfig::default();
        let mut filter = Self::new(&nobody, terms)?;
        filter.not_through.clone_from(&terms.not_through);
        Ok(filter)
    }

    /// Whether the groups let an article through.
    ///
    /// # Errors
    /// Why not.
    pub fn takes_groups(&self, groups: &FedGroups<'_>) -> Result<(), Refusal> {
        let (mut named, mut takes) = (0, false);
        if let Some(group) = groups.filed_in {
            match self.groups.verdict(group) {
                Verdict::Match => takes = true,
                Verdict::NoMatch => {}
                Verdict::Poison => return Err(Refusal::Poison(group.to_owned())),
            }
        }
        for name in newsgroups::split(groups.newsgroups) {
            named += 1;
            // What no server can have counts as a name and matches nothing.
            let Ok(name) = name else { continue };
            match self.groups.verdict(name.as_str()) {
                Verdict::Match => takes |= !groups.is_strange,
                Verdict::NoMatch => {}
                Verdict::Poison => return Err(Refusal::Poison(name.as_str().to_owned())),
            }
        }
        if !takes {
            return Err(Refusal::NoGroup);
        }
        if self.groups_max > 0 && named > self.groups_max as usize {
            return Err(Refusal::TooManyGroups(named, self.groups_max));
        }
        Ok(())
    }

    /// Whether an article goes out.
    pub(crate) fn takes(&self, article: &FedArticle<'_>) -> bool {
        self.takes_groups(&article.groups).is_ok() && self.judge(article).is_ok()
    }

    /// Whether everything but the groups lets an article through.
    ///
    /// # Errors
    /// Why not, the first reason.
    pub fn judge(&self, article: &FedArticle<'_>) -> Result<(), Refusal> {
        self.judge_facts(&Facts::of_fed(article))
    }

    fn judge_facts(&self, facts: &Facts<'_>) -> Result<(), Refusal> {
        CONDITIONS.iter().try_for_each(|holds| holds(self, facts))
    }

    /// All reasons for which an article does not go out; none: it does.
    #[must_use]
    pub fn refusals(&self, article: &FedArticle<'_>) -> Vec<Refusal> {
        let groups = self.takes_groups(&article.groups).err();
        let facts = Facts::of_fed(article);
        let others = CONDITIONS
            .iter()
            .filter_map(|holds| holds(self, &facts).err());
        groups.into_iter().chain(others).collect()
    }

    fn judge_kind(&self, article: &Facts<'_>) -> Result<(), Refusal> {
        match self.control || !article.is_control {
            true => Ok(()),
            false => Err(Refusal::Control),
        }
    }

    fn judge_origin(&self, article: &Facts<'_>) -> Result<(), Refusal> {
        match !self.posted_only || article.is_posted {
            true => Ok(()),
            false => Err(Refusal::NotPosted),
        }
    }

    fn judge_octets(&self, article: &Facts<'_>) -> Result<(), Refusal> {
        let octets = article.octets;
        if u64::from(octets) < self.octets_min {
            return Err(Refusal::TooSmall(octets, self.octets_min));
        }
        if self.octets_max > 0 && u64::from(octets) > self.octets_max {
            return Err(Refusal::TooLarge(octets, self.octets_max));
        }
        Ok(())
    }

    fn judge_content(&self, article: &Facts<'_>) -> Result<(), Refusal> {
        let is_file = matches!(article.content, Some(Content::Binary | Content::YEnc));
        match self.content {
            FeedContent::Text if is_file => Err(Refusal::Content(self.content)),
            FeedContent::Binary if !is_file => Err(Refusal::Content(self.content)),
            _ => Ok(()),
        }
    }

    fn judge_share(&self, article: &Facts<'_>) -> Result<(), Refusal> {
        match self.hashfeed.takes(article.id) {
            true => Ok(()),
            false => Err(Refusal::OtherShare),
        }
    }

    fn judge_path(&self, article: &Facts<'_>) -> Result<(), Refusal> {
        if self.not_through.is_empty() && self.hops_max == 0 {
            return Ok(());
        }
        let Ok(path) = Path::parse(article.path) else {
            return Ok(());
        };
        let mut names = self.not_through.iter();
        if let Some(name) = names.find(|name| path.contains(name.as_bytes())) {
            return Err(Refusal::CameThrough(name.clone()));
        }
        let ours = usize::from(article.has_our_entry);
        let hops = || path.entries().count().saturating_sub(ours);
        if self.hops_max > 0 && hops() > self.hops_max as usize {
            return Err(Refusal::Hops(hops(), self.hops_max));
        }
        Ok(())
    }

    fn judge_distribution(&self, article: &Facts<'_>) -> Result<(), Refusal> {
        let content = article.distribution;
        if content.is_empty() || self.distributions.matches_all() {
            return Ok(());
        }
        let text = String::from_utf8_lossy(content);
        let verdicts = || {
            let those = text.split(',').map(str::trim).filter(|one| !one.is_empty());
            those.map(|one| self.distributions.verdict(one))
        };
        let takes = verdicts().any(|verdict| verdict == Verdict::Match);
        if takes && verdicts().all(|verdict| verdict != Verdict::Poison) {
            return Ok(());
        }
        Err(Refusal::Distribution(text.trim().to_owned()))
    }
}

/// A list that names only what does not go is of all others, as in INN's newsfeeds.
fn all_but(patterns: &str) -> Cow<'_, str> {
    let mut each = patterns.split(',').map(str::trim);
    match each.all(|pattern| pattern.starts_with(['!', '@'])) {
        true => format!("*,{patterns}").into(),
        false => patterns.into(),
    }
}

impl Terms for Filter {
    fn refuse(&self, article: &Brought<'_>) -> Option<Reject> {
        let groups = match self.groups.matches_all() && self.groups_max == 0 {
            true => Ok(()),
            false => self.takes_groups(&FedGroups::named(article.newsgroups)),
        };
        let judged = groups.and_then(|()| self.judge_facts(&Facts::of_brought(article)));
        judged.err().map(|why| why.reject())
    }

    fn ask_content(&self) -> bool {
        self.content != FeedContent::Any
    }
}

#[cfg(test)]
mod tests {
    use newsreel_wire::{Sequence, UnixTime};
    use proptest::prelude::*;

    use super::*;

    const PLAIN: FedArticle<'static> = FedArticle {
        sequence: Sequence(1),
        arrival: UnixTime(0),
        octets: 1000,
        place: None,
        token: None,
        id: b"<1@example.org>",
        path: b"us.example!from.example!!far.example!not-for-mail",
        groups: FedGroups::named(b"misc.test,alt.test"),
        distribution: b"world, na",
        is_posted: false,
        is_control: true,
        content: None,
    };

    fn filter(feed: &str) -> Filter {
        let peer = PeerConfig {
            name: "peer.example".to_owned(),
            aliases: vec!["old.example".to_owned()],
            ..PeerConfig::default()
        };
        Filter::new(&peer, &toml::from_str(feed).unwrap()).unwrap()
    }

    /// What a feed says of the plain article, changed a little.
    fn check(feed: &str, change: impl Fn(&mut FedArticle<'static>)) -> Option<String> {
        let (filter, mut article) = (filter(feed), PLAIN);
        change(&mut article);
        let verdict = filter.takes_groups(&article.groups);
        let verdict = verdict.and_then(|()| filter.judge(&article));
        let all = filter.refusals(&article);
        assert_eq!(all.first(), verdict.as_ref().err(), "{feed}");
        verdict.err().map(|why| why.to_string())
    }

    #[test]
    fn all_reasons_are_told() {
        let filter = filter(
            "groups = 'comp.*'\noctets_max = 10\nposted_only = true\ndistributions = 'local'",
        );
        let all = filter.refusals(&PLAIN);
        let said: Vec<String> = all.iter().map(ToString::to_string).collect();
        assert_eq!(
            said,
            [
                "none of its groups is in `groups`",
                "it was not posted here, and `posted_only` is true",
                "it has 1000 octets, and `octets_max` is 10",
                "its Distribution, world, na, is not in `distributions`",
            ]
        );
    }

    #[test]
    fn every_condition_says_why() {
        for (feed, why) in [
            ("", ""),
            ("groups = 'alt.*'", ""),
            ("groups = '*,!misc.*'", ""),
            ("groups = '*,!misc.*,!alt.*'", "none of its groups"),
            ("groups = '*,@misc.*'", "its group misc.test meets a poison"),
            ("groups_max = 1", "it names 2 groups, and `groups_max` is 1"),
            ("groups_max = 2", ""),
            ("distributions = 'na'", ""),
            (
                "distributions = 'eu'",
                "its Distribution, world, na, is not",
            ),
            ("distributions = '*,@na'", "its Distribution"),
            ("distributions = '!local'", ""),
            ("distributions = '!na,!local'", ""),
            ("distributions = '!na,!world'", "its Distribution"),
            (
                "not_through = ['FAR.example']",
                "its Path has FAR.example already",
            ),
            ("not_through = ['not-for-mail']", ""),
            ("hops_max = 2", ""),
            ("hops_max = 1", "it came through 2 servers"),
            ("octets_min = 1000\noctets_max = 1000", ""),
            (
                "octets_min = 1001",
                "it has 1000 octets, and `octets_min` is 1001",
            ),
            (
                "octets_max = 999",
                "it has 1000 octets, and `octets_max` is 999",
            ),
            ("control = false", "it is a control message"),
            ("posted_only = true", "it was not posted here"),
            ("hashfeed = '43/1000'", ""),
            ("hashfeed = '44/1000'", "in none of the shares"),
        ] {
            let said = check(feed, |_| {});
            match why {
                "" => assert_eq!(said, None, "{feed}"),
                why => assert!(
                    said.as_ref().is_some_and(|it| it.contains(why)),
                    "{feed}: {said:?}"
                ),
            }
        }
    }

    /// A control message goes where its groups or the one that it is filed in go (a newgroup to those who would have the group), and what is
    /// filed in `junk`, as none of its groups is here, goes where `junk` goes. Patterns of these matched nothing, and who wrote `!junk` sent all of it.
    #[test]
    fn what_is_filed_apart_goes_by_where_it_is_filed() {
        let junk = FedGroups::filed(b"no.such", "junk");
        let cancel = FedGroups::filed(b"misc.test,no.such", "control.cancel");
        let newgroup = FedGroups::filed(b"no.such", "control.newgroup");
        let plain = FedGroups::filed(b"misc.test,no.such", "misc.test");
        for (feed, expected) in [
            ("*", [true, true, true, true]),
            ("*,!control,!control.*,!junk", [false, true, true, true]),
            ("*,@control.*,@junk", [false, false, false, true]),
            ("control,control.*", [false, true, true, false]),
            ("control.newgroup", [false, false, true, false]),
            ("junk", [true, false, false, false]),
            ("no.*", [false, true, true, true]),
            ("junk,@no.*", [false, false, false, false]),
            ("misc.*", [false, true, false, true]),
        ] {
            let filter = filter(&format!("groups = '{feed}'"));
            let takes = [junk, cancel, newgroup, plain].map(|of| filter.takes_groups(&of).is_ok());
            assert_eq!(takes, expected, "{feed}");
        }
    }

    /// What comes from a peer is held against the same conditions; that it came through the peer, and not through us yet, is
    /// how it should be.
    #[test]
    fn what_comes_from_a_peer_is_told_why_it_is_not_taken() {
        let brought = Brought {
            id: PLAIN.id,
            path: b"peer.example!!far.example!not-for-mail",
            newsgroups: PLAIN.groups.newsgroups,
            distribution: PLAIN.distribution,
            octets: PLAIN.octets,
            is_control: true,
            content: Some(Content::Text),
        };
        for (terms, why) in [
            ("", None),
            ("groups = '*,!misc.*'", None),
            ("groups = 'comp.*'", Some(Reject::NotFromPeer)),
            ("groups = '*,@misc.*'", Some(Reject::NotFromPeer)),
            ("groups_max = 2", None),
            ("groups_max = 1", Some(Reject::PeerGroups)),
            ("distributions = 'na'", None),
            ("distributions = 'eu'", Some(Reject::PeerDistribution)),
            ("not_through = ['near.example']", None),
            ("not_through = ['FAR.example']", Some(Reject::PeerPath)),
            ("hops_max = 2", None),
            ("hops_max = 1", Some(Reject::PeerHops)),
            ("octets_min = 1000\noctets_max = 1000", None),
            ("octets_min = 1001", Some(Reject::PeerOctets)),
            ("octets_max = 999", Some(Reject::PeerOctets)),
            ("content = 'text'", None),
            ("content = 'binary'", Some(Reject::PeerContent)),
            ("control = false", Some(Reject::PeerControl)),
            ("hashfeed = '43/1000'", None),
            ("hashfeed = '44/1000'", Some(Reject::PeerShare)),
        ] {
            let filter = Filter::of_what_comes(&toml::from_str(terms).unwrap()).unwrap();
            assert_eq!(filter.refuse(&brought), why, "{terms}");
            assert_eq!(filter.ask_content(), terms.contains("content"), "{terms}");
        }
    }

    #[test]
    fn what_has_been_at_the_peer_does_not_go_there() {
        for (path, goes) in [
            (&b"us.example!peer.example!x"[..], false),
            (b"us.example!old.example!x", false),
            (b"us.example!peer.example", true),
            (b"us.example!super.peer.example!x", true),
        ] {
            assert_eq!(check("", |it| it.path = path).is_none(), goes, "{path:?}");
        }
        assert_eq!(
            check("distributions = 'na'", |it| it.distribution = b""),
            None
        );
        assert_eq!(check("posted_only = true", |it| it.is_posted = true), None);
    }

    #[test]
    fn text_and_files_go_apart() {
        for (content, text, binary) in [
            (None, true, false),
            (Some(Content::Text), true, false),
            (Some(Content::Binary), false, true),
            (Some(Content::YEnc), false, true),
        ] {
            let goes = |feed| check(feed, |it| it.content = content).is_none();
            assert_eq!(goes("content = 'text'"), text, "{content:?}");
            assert_eq!(goes("content = 'binary'"), binary, "{content:?}");
            assert!(goes("content = 'any'"));
        }
        let why = check("content = 'text'", |it| it.content = Some(Content::YEnc));
        assert_eq!(why.unwrap(), "its body is a file, and `content` is text");
    }

    #[test]
    fn what_cannot_be_used_is_refused() {
        for (feed, key) in [
            ("groups = ''", "groups"),
            ("distributions = 'a,,b'", "distributions"),
            ("octets_min = 2\noctets_max = 1", "octets_min"),
            ("hashfeed = 'half'", "hashfeed"),
        ] {
            let refused = Filter::new(&PeerConfig::default(), &toml::from_str(feed).unwrap());
            assert_eq!(refused.unwrap_err().0, key);
        }
    }

    proptest! {
        /// Two feeds that part the sizes, as the CNFS paper has it, send each article once.
        #[test]
        fn prop_feeds_by_size_share_everything(octets: u32, at in 1u64..200_000) {
            let small = filter(&format!("octets_max = {at}"));
            let large = filter(&format!("octets_min = {}", at + 1));
            let article = FedArticle { octets, ..PLAIN };
            prop_assert!(small.judge(&article).is_ok() != large.judge(&article).is_ok());
        }

        #[test]
        fn prop_no_article_is_a_defect(newsgroups: Vec<u8>, path: Vec<u8>, distribution: Vec<u8>, id: Vec<u8>) {
            let filter = filter("groups = 'a.*,!b,@c'\ndistributions = 'x'\nhops_max = 3\nhashfeed = '1/2'");
            let article = FedArticle { path: &path, distribution: &distribution, id: &id, ..PLAIN };
            let _ = filter.takes_groups(&FedGroups::named(&newsgroups));
            let _ = filter.judge(&article);
        }
    }
}
