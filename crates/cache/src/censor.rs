//! The section `[[censor]]`: articles that readers are not shown, by what stands in a field of their headers (a feature of NNTPCACHE).
//!
//! Pure.  What is hidden is fetched and kept like any other article: rules hold in front of what is kept, so a rule that goes shows
//! it again.  The text of a field is compared as it stands, unfolded, large letters like small ones; words that are encoded (RFC 2047) are not
//! decoded.

use newsreel_wire::article::{Headers, Known};
use newsreel_wire::newsgroups;
use newsreel_wire::overview::unfold;
use newsreel_wire::wildmat::Wildmat;
use serde::{Deserialize, Serialize};

/// Overview's first fields, in their order.
const OVERVIEW: [&str; 7] = [
    "subject",
    "from",
    "date",
    "message-id",
    "references",
    "bytes",
    "lines",
];

/// Articles that a caching server shows nobody.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CensorRule {
    /// The groups in which it holds, a wildmat; of an article that is asked for by its message-id one of its groups must match.
    pub groups: String,
    /// The field that is looked at. Those of the overview (Subject, From, Date, Message-ID, References, Xref) are best: an article
    /// that another field hides is still in lists of articles, and is not there when it is asked for.
    pub field: String,
    /// What its text is where the article is hidden, large letters like small ones: `*` stands for any text, `?` for one character.
    pub matches: String,
}

impl Default for CensorRule {
    fn default() -> Self {
        Self {
            groups: "*".to_owned(),
            field: "Subject".to_owned(),
            matches: String::new(),
        }
    }
}

/// The list of what is not shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
pub struct CensorConfig {
    /// Articles that a caching server shows nobody, whoever asks: none that one of these rules hides.
    pub censor: Vec<CensorRule>,
}

/// What is wrong with the rules: key and what would be right.
#[must_use]
pub fn censor_problems(rules: &[CensorRule]) -> Vec<(String, String)> {
    let mut all = Vec::new();
    for (at, rule) in rules.iter().enumerate() {
        let mut tell = |key: &str, right: String| all.push((format!("[{at}].{key}"), right));
        if let Err(why) = Wildmat::parse(&rule.groups) {
            tell("groups", why.to_string());
        }
        if let Err(why) = pattern(&rule.matches) {
            tell("matches", why.to_string());
        }
        let is_name = |octet: u8| octet.is_ascii_graphic() && octet != b':';
        if rule.field.is_empty() || !rule.field.bytes().all(is_name) {
            let right = "the name of a field of the header, without its colon, as in \"Subject\"";
            tell("field", right.to_owned());
        }
    }
    all
}

fn pattern(text: &str) -> Result<Wildmat, newsreel_wire::WildmatError> {
    Wildmat::parse_text_pattern(text.to_lowercase().as_bytes())
}

#[derive(Debug)]
struct Rule {
    groups: Wildmat,
    field: Box<str>,
    matches: Wildmat,
}

impl Rule {
    fn hides(&self, content: &[u8]) -> bool {
        let mut text = Vec::new();
        unfold(content, &mut text);
        let text = String::from_utf8_lossy(&text).to_lowercase();
        self.matches.matches(text.trim())
    }
}

/// All rules.
#[derive(Debug)]
pub struct Censor(Vec<Rule>);

impl Censor {
    /// Those of a configuration that has no problems; none: nothing is hidden.
    #[must_use]
    pub fn new(rules: &[CensorRule]) -> Option<Self> {
        let rule = |rule: &CensorRule| {
            Some(Rule {
                groups: Wildmat::parse(&rule.groups).ok()?,
                field: rule.field.to_lowercase().into(),
                matches: pattern(&rule.matches).ok()?,
            })
        };
        let rules: Vec<Rule> = rules.iter().filter_map(rule).collect();
        (!rules.is_empty()).then_some(Self(rules))
    }

    /// Whether an article is hidden, in a group or, without one, in any of its own; its header block is enough.
    #[must_use]
    pub fn hides_article(&self, wire: &[u8], group: Option<&str>) -> bool {
        let Ok(headers) = Headers::scan_stored(wire) else {
            return false;
        };
        let named = headers.content(Known::Newsgroups).unwrap_or_default();
        self.0.iter().any(|rule| {
            let is_for = |group: &str| rule.groups.matches(group);
            let is_in = match group {
                Some(group) => is_for(group),
                None => {
                    let mut groups = newsgroups::split(named).flatten();
                    groups.any(|group| is_for(group.as_str()))
                }
            };
            let mut fields = headers.fields();
            is_in
                && fields.any(|field| {
                    field.name.eq_ignore_ascii_case(rule.field.as_bytes())
                        && rule.hides(field.trimmed())
                })
        })
    }

    /// Whether an article is hidden in a group, by its overview line without the number.
    #[must_use]
    pub fn hides_line(&self, line: &[u8], group: &str) -> bool {
        self.0.iter().any(|rule| {
            rule.groups.matches(group)
                && overview_field(line, &rule.field).is_some_and(|it| rule.hides(it))
        })
    }
}

/// A field of an overview line, by its name in small letters.
fn overview_field<'l>(line: &'l [u8], name: &str) -> Option<&'l [u8]> {
    let mut fields = line.split(|octet| *octet == b'\t');
    if let Some(place) = OVERVIEW.iter().position(|it| *it == name) {
        return fields.nth(place);
    }
    fields.skip(OVERVIEW.len()).find_map(|field| {
        let (own, content) = field.split_at_checked(name.len())?;
        let content = content.strip_prefix(b":")?;
        own.eq_ignore_ascii_case(name.as_bytes())
            .then(|| content.trim_ascii())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(groups: &str, field: &str, matches: &str) -> CensorRule {
        CensorRule {
            groups: groups.to_owned(),
            field: field.to_owned(),
            matches: matches.to_owned(),
        }
    }

    #[test]
    fn an_article_is_hidden_by_its_header_and_by_its_overview() {
        let rules = [
            rule("alt.*", "Subject", "*make money*"),
            rule("*", "from", "*@spam.example>"),
            rule("*", "Xref", "* alt.bad:*"),
            rule("*", "X-Secret", "?*"),
        ];
        let censor = Censor::new(&rules).unwrap();
        let article =
            |fields: &str| format!("Newsgroups: misc.test,alt.test\r\n{fields}\r\n\r\nx\r\n.\r\n");
        let hides = |fields: &str, group: Option<&str>| {
            censor.hides_article(article(fields).as_bytes(), group)
        };
        assert!(hides("Subject: How to MAKE\r\n money fast", None));
        assert!(hides("Subject: make money", Some("alt.test")));
        assert!(!hides("Subject: make money", Some("misc.test")));
        assert!(hides("From: A <a@SPAM.example>", Some("misc.test")));
        assert!(hides("X-Secret: y", None) && !hides("X-Secret:", None));
        assert!(!hides("Subject: hello", None));
        let line = b"Make Money\ta@b\tDate\t<1@t>\t\t9\t1\tXref: t alt.bad:5 misc.test:1";
        assert!(censor.hides_line(line, "misc.test"));
        let line = b"Make Money\ta@b\tDate\t<1@t>\t\t9\t1\tXref: t alt.good:5";
        assert!(censor.hides_line(line, "alt.test"));
        assert!(!censor.hides_line(line, "misc.test"));
        assert!(!censor.hides_line(b"\t", "alt.test"));
        assert!(Censor::new(&[]).is_none());
    }

    #[test]
    fn what_is_wrong_with_a_rule_is_told_by_its_place() {
        let rules = [
            rule("*", "Subject", "x"),
            rule("[", "Sub ject", ""),
            rule("*", "A:", "["),
        ];
        let keys: Vec<String> = censor_problems(&rules).into_iter().map(|it| it.0).collect();
        let expected = [
            "[1].groups",
            "[1].matches",
            "[1].field",
            "[2].matches",
            "[2].field",
        ];
        assert_eq!(keys, expected);
    }
}
