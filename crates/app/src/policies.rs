//! Rules for `control.rules` from what other systems have: INN's `control.ctl`, and the policy files of hierarchies from which
//! it is made (a hierarchy a file: `hierarchy`, `groups`, `type`, `sender`, `key-id`).
//!
//! What cannot be carried over is told with its line, never left out silently.  Senders prove nothing: where a hierarchy has no
//! key its messages wait for approval, unless the user trusts senders.

use newsreel_engine::ControlConfig;
use toml::Value;

/// What was made of files.
#[derive(Debug, Default, PartialEq, Eq, serde::Serialize)]
pub(crate) struct Made {
    /// Where the mails of rules with `mail` go, if the user said so.
    pub(crate) mail_to: Option<String>,
    /// In order: the last that matches holds.
    pub(crate) rules: Vec<Rule>,
    /// Keys that they name.
    pub(crate) keys: Vec<Key>,
    /// What was left out.
    pub(crate) left: Vec<Left>,
}

/// A rule, and what it is for.
#[derive(Debug, PartialEq, Eq, serde::Serialize)]
pub(crate) struct Rule {
    /// As in `control.rules`.
    pub(crate) rule: String,
    /// Where it comes from.
    pub(crate) of: String,
}

/// A key that has to be imported.
#[derive(Debug, PartialEq, Eq, serde::Serialize)]
pub(crate) struct Key {
    /// What rules call it.
    pub(crate) name: String,
    /// Where it is said to be found.
    pub(crate) url: Option<String>,
    /// What it is said to be.
    pub(crate) fingerprint: Option<String>,
}

/// A line that no rule was made of.
#[derive(Debug, PartialEq, Eq, serde::Serialize)]
pub(crate) struct Left {
    /// The file.
    pub(crate) file: String,
    /// Counted from 1.
    pub(crate) line: usize,
    /// Why.
    pub(crate) why: String,
}

/// Messages that we heed.
const VERBS: [&str; 3] = ["checkgroups", "newgroup", "rmgroup"];

impl Made {
    /// A part of a configuration file.
    pub(crate) fn printed(&self) -> String {
        let mut text = String::new();
        if !self.keys.is_empty() {
            text.push_str("# Keys to import, when you have compared their fingerprints:\n");
        }
        for key in &self.keys {
            let (url, fingerprint) = (key.url.as_deref(), key.fingerprint.as_deref());
            let words = [Some(key.name.as_str()), url, fingerprint];
            let words: Vec<&str> = words.into_iter().flatten().collect();
            text.push_str(&format!("#   {}\n", comment(&words.join("  "))));
        }
        text.push_str("[control]\n");
        match &self.mail_to {
            Some(mail_to) => {
                text.push_str(&format!("mail_to = {}\n", Value::String(mail_to.clone())));
            }
            None if self.mails() => text.push_str(
                "# Where the mails of these rules go; without it the configuration is refused:\n\
                 # mail_to = \"usenet@example.org\"\n",
            ),
            None => {}
        }
        text.push_str("rules = [\n");
        let mut of = "";
        for rule in &self.rules {
            if rule.of != of && !rule.of.is_empty() {
                text.push_str(&format!("  # {}\n", comment(&rule.of)));
            }
            of = &rule.of;
            text.push_str(&format!("  {},\n", Value::String(rule.rule.clone())));
        }
        text.push_str("]\n");
        text
    }

    /// Whether a rule asks for mails.
    pub(crate) fn mails(&self) -> bool {
        self.rules.iter().any(|rule| rule.rule.ends_with(":mail"))
    }

    /// Takes a file in, whichever of the two it is.
    pub(crate) fn take(&mut self, file: &str, text: &str, trusts_senders: bool) {
        let is_policy = text.lines().any(|line| line.starts_with("hierarchy:"));
        match is_policy {
            true => self.take_policy(file, text, trusts_senders),
            false => self.take_ctl(file, text),
        }
    }

    fn leave(&mut self, file: &str, line: usize, why: &str) {
        self.left.push(Left {
            file: file.to_owned(),
            line,
            why: why.to_owned(),
        });
    }

    /// Adds a rule if it is one.
    fn push(&mut self, (file, line): (&str, usize), rule: String, of: &str) {
        let alone = ControlConfig {
            rules: vec![rule.clone()],
            // Of `mail` only the rest is looked at: where they go is said once for all rules.
            mail_to: "usenet@example.org".to_owned(),
            ..ControlConfig::default()
        };
        match alone.problems().into_iter().next() {
            Some((_, why)) => self.leave(file, line, &why),
            None => self.rules.push(Rule {
                rule,
                of: of.to_owned(),
            }),
        }
    }

    fn name_key(&mut self, name: &str, url: Option<&str>, fingerprint: Option<&str>) {
        let own = |text: Option<&str>| text.map(str::to_owned);
        match self.keys.iter_mut().find(|key| key.name == name) {
            Some(key) => {
                key.url = key.url.take().or_else(|| own(url));
                key.fingerprint = key.fingerprint.take().or_else(|| own(fingerprint));
            }
            None => self.keys.push(Key {
                name: name.to_owned(),
                url: own(url),
                fingerprint: own(fingerprint),
            }),
        }
    }

    /// A file of lines `message:from:newsgroups:action`.
    fn take_ctl(&mut self, file: &str, text: &str) {
        let mut of = String::new();
        for (line, text) in (1..).zip(text.lines()) {
            let text = text.trim();
            if let Some(title) = text.strip_prefix("##") {
                let title = title.trim();
                of = if title.is_empty() {
                    of
                } else {
                    title.to_owned()
                };
                continue;
            }
            if text.is_empty() || text.starts_with('#') {
                continue;
            }
            let [message, from, groups, action] = text.splitn(4, ':').collect::<Vec<_>>()[..]
            else {
                self.leave(
                    file,
                    line,
                    "it has not four parts with a colon between them",
                );
                continue;
            };
            if message != "all" && !VERBS.contains(&message) {
                self.leave(
                    file,
                    line,
                    "only newgroup, rmgroup and checkgroups are heeded here",
                );
                continue;
            }
            // Behind `=` is where INN tells of it.
            let action = action.split('=').next().unwrap_or_default();
            let action = match action {
                "doifarg" => "drop",
                action => action,
            };
            let before = self.rules.len();
            let rule = format!("{message}:{from}:{groups}:{action}");
            self.push((file, line), rule, &of);
            if let Some(key) = action.strip_prefix("verify-")
                && self.rules.len() > before
            {
                self.name_key(key, None, None);
            }
        }
    }

    /// A file that says what a hierarchy is.
    fn take_policy(&mut self, file: &str, text: &str, trusts_senders: bool) {
        let fields = fields(text);
        let field = |name: &str| fields.iter().find(|field| field.name == name);
        let value = |name: &str| field(name).map(|field| field.value.as_str());
        let Some(groups) = value("groups") else {
            self.leave(file, 1, "it does not say which groups it is about");
            return;
        };
        let kind = value("type").unwrap_or_default();
        let name = value("hierarchy").unwrap_or(groups);
        let of = match value("description") {
            Some(description) => format!("{name} ({kind}): {description}"),
            None => format!("{name} ({kind})"),
        };
        let key = value("key-id").filter(|_| value("pgp") == Some("yes"));
        let mut keys = false;
        let before = self.rules.len() + self.left.len();
        for verb in VERBS {
            let own = format!("{verb}-sender");
            let senders = value(&own).or_else(|| value("sender")).unwrap_or_default();
            let senders: Vec<&str> = senders.split_ascii_whitespace().collect();
            // What is private is so for us too until somebody says otherwise.
            let (from, action) = match kind {
                "public" if !senders.is_empty() => {
                    // What everybody may send nobody signs.
                    let action = match key.filter(|_| senders != ["*"]) {
                        Some(key) => format!("verify-{key}"),
                        None if trusts_senders => "doit".to_owned(),
                        None => "log".to_owned(),
                    };
                    (senders.join("|"), action)
                }
                "public" => continue,
                "defunct" | "historic" if verb == "rmgroup" => ("*".to_owned(), "log".to_owned()),
                _ => ("*".to_owned(), "drop".to_owned()),
            };
            keys |= action.starts_with("verify-");
            let line = field("groups").map_or(1, |field| field.line);
            self.push(
                (file, line),
                format!("{verb}:{from}:{groups}:{action}"),
                &of,
            );
        }
        if before == self.rules.len() + self.left.len() {
            let why = "nobody is said to send its control messages: they wait for approval";
            self.leave(file, 1, why);
        }
        if let Some(key) = key.filter(|_| keys) {
            self.name_key(key, value("key-url"), value("key-fingerprint"));
        }
    }
}

/// A text of a file that may stand in a comment: TOML takes no controls there.
fn comment(text: &str) -> String {
    text.replace(char::is_control, " ")
}

/// One field of a policy.
#[derive(Debug)]
struct Field {
    line: usize,
    name: String,
    value: String,
}

/// `name: value`, or `name: [ value ... ]` over several lines; quotes are no part of a value.
fn fields(text: &str) -> Vec<Field> {
    let mut fields: Vec<Field> = Vec::new();
    let mut is_open = false;
    for (line, text) in (1..).zip(text.lines()) {
        let text = text.trim();
        if let (true, Some(last)) = (is_open, fields.last_mut()) {
            last.value.push(' ');
            last.value.push_str(text);
        } else if let Some((name, value)) = text.split_once(':').filter(|_| !text.starts_with('#'))
        {
            fields.push(Field {
                line,
                name: name.trim().to_owned(),
                value: value.trim().to_owned(),
            });
        }
        is_open = fields
            .last()
            .is_some_and(|last| last.value.starts_with('[') && !last.value.ends_with(']'));
    }
    for field in &mut fields {
        let value = field.value.trim_start_matches('[').trim_end_matches(']');
        field.value = value.replace('"', "").trim().to_owned();
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(made: &Made) -> Vec<&str> {
        made.rules.iter().map(|it| it.rule.as_str()).collect()
    }

    #[test]
    fn lines_of_control_ctl_are_taken_as_they_are() {
        let text = "## Format\n# a comment\n\n/maxdocheckgroups/:*:*:10\nall:*:*:mail\nsendsys:*:*:doit=miscctl\n\
                    ## ALT (open)\nnewgroup:*:alt.*:doit=newgroup\nrmgroup:a@b.example|*@c.example:alt.*|x.*:drop\n\
                    checkgroups:a@b.example:news.*:verify-news.announce=mail\nnewgroup:x:alt.*:perhaps\nnewgroup\n";
        let mut made = Made::default();
        made.take("control.ctl", text, false);
        assert_eq!(
            rules(&made),
            [
                "all:*:*:mail",
                "newgroup:*:alt.*:doit",
                "rmgroup:a@b.example|*@c.example:alt.*|x.*:drop",
                "checkgroups:a@b.example:news.*:verify-news.announce",
            ]
        );
        assert_eq!(
            (made.rules[0].of.as_str(), made.rules[1].of.as_str()),
            ("Format", "ALT (open)")
        );
        assert_eq!(made.keys[0].name, "news.announce");
        assert!(
            made.printed().contains("\n# mail_to = "),
            "nobody said where"
        );
        made.mail_to = Some("me@a.example".to_owned());
        let printed = made.printed();
        assert!(
            printed.contains("[control]\nmail_to = \"me@a.example\"\nrules = [\n"),
            "{printed}"
        );
        let left: Vec<usize> = made.left.iter().map(|left| left.line).collect();
        assert_eq!(left, [4, 6, 11, 12], "{:?}", made.left);
    }

    #[test]
    fn a_policy_becomes_rules_by_its_kind() {
        let made = |text: &str, trusts: bool| {
            let mut made = Made::default();
            made.take("x", text, trusts);
            made
        };
        let signed = "hierarchy: A, B\ngroups: a.*|b.*\ntype: public\ndescription: \"Some\"\nsender: [ x@a.example\n  y@a.example ]\n\
                      rmgroup-sender: [ z@a.example ]\npgp: yes\nkey-id: a.announce\nkey-url: \"http://a.example/\"\n\
                      key-fingerprint: \"AB CD\"\ncomment: [\n  \"type: private\"\n]\n";
        let found = made(signed, true);
        assert_eq!(
            rules(&found),
            [
                "checkgroups:x@a.example|y@a.example:a.*|b.*:verify-a.announce",
                "newgroup:x@a.example|y@a.example:a.*|b.*:verify-a.announce",
                "rmgroup:z@a.example:a.*|b.*:verify-a.announce",
            ]
        );
        assert_eq!(found.rules[0].of, "A, B (public): Some");
        assert_eq!(
            (
                found.keys[0].url.as_deref(),
                found.keys[0].fingerprint.as_deref()
            ),
            (Some("http://a.example/"), Some("AB CD"))
        );
        let open = "hierarchy: H\ngroups: h.*\ntype: public\nnewgroup-sender: [ * ]\nrmgroup-sender: [ x@h.example ]\npgp: yes\nkey-id: h\n";
        assert_eq!(
            rules(&made(open, true)),
            ["newgroup:*:h.*:doit", "rmgroup:x@h.example:h.*:verify-h"]
        );
        let plain = "hierarchy: C\ngroups: c.*\ntype: public\nsender: [ x@c.example ]\n";
        assert_eq!(
            rules(&made(plain, false))[1],
            "newgroup:x@c.example:c.*:log"
        );
        assert_eq!(
            rules(&made(plain, true))[1],
            "newgroup:x@c.example:c.*:doit"
        );
        let of = |kind: &str| {
            made(
                &format!("hierarchy: D\ngroups: d.*\ntype: {kind}\nsender: [ x@d.example ]\n"),
                true,
            )
        };
        for (kind, rmgroup) in [
            ("defunct", "log"),
            ("historic", "log"),
            ("private", "drop"),
            ("local", "drop"),
            ("reserved", "drop"),
        ] {
            let found = of(kind);
            assert_eq!(rules(&found)[1], "newgroup:*:d.*:drop", "{kind}");
            assert_eq!(rules(&found)[2], format!("rmgroup:*:d.*:{rmgroup}"));
        }
        let nobody = made("hierarchy: E\ngroups: e.*\ntype: public\n", true);
        assert_eq!((rules(&nobody).len(), nobody.left.len()), (0, 1));
        assert_eq!(made("hierarchy: F\n", true).left.len(), 1);
        let bad = made("hierarchy: G\ngroups: g.*,h.*\ntype: local\n", true);
        assert_eq!(
            (bad.rules.len(), bad.left.len()),
            (0, 3),
            "a comma is none of a rule's"
        );
    }
}
