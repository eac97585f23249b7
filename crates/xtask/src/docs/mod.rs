//! Makes the generated documents: the table of configuration keys from the sources, then the pages from that.
//!
//! The doc comments of the section structs are the only description of a key; nothing here adds to it.

mod section;

use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context as _, Result};

use self::section::Key;
use crate::tree::Tree;

/// The table of configuration keys, read by the app at build time.
pub(crate) const KEYS_PATH: &str = "crates/app/src/config/keys.toml";

/// The sections of the configuration: name in the file, source file, struct.
const SECTIONS: &[(&str, &str, &str)] = &[
    ("server", "crates/app/src/config/own.rs", "ServerConfig"),
    ("logging", "crates/app/src/config/own.rs", "LoggingConfig"),
    ("listen", "crates/net/src/config.rs", "ListenConfig"),
    ("tls", "crates/net/src/tls.rs", "TlsConfig"),
    ("session", "crates/session/src/config.rs", "SessionConfig"),
    ("lists", "crates/session/src/lists.rs", "ListsConfig"),
    ("", "crates/store/src/config/mod.rs", "StoreConfig"),
    ("login", "crates/net/src/access/login.rs", "LoginConfig"),
    ("", "crates/net/src/access/config.rs", "AccessConfig"),
    ("", "crates/feed/src/config.rs", "PeersConfig"),
    ("feeds", "crates/feed/src/config.rs", "FeedsConfig"),
    ("", "crates/feed/src/pull/config.rs", "PullsConfig"),
    ("cache", "crates/cache/src/config.rs", "CacheConfig"),
    ("", "crates/cache/src/config.rs", "UpstreamsConfig"),
    ("", "crates/cache/src/censor.rs", "CensorConfig"),
    ("articles", "crates/engine/src/config.rs", "ArticlesConfig"),
    ("", "crates/filter/src/config.rs", "FilterConfig"),
    (
        "posting",
        "crates/service/src/posting/config.rs",
        "PostingConfig",
    ),
    (
        "moderation",
        "crates/service/src/posting/config.rs",
        "ModerationConfig",
    ),
    (
        "control",
        "crates/engine/src/control/config.rs",
        "ControlConfig",
    ),
    ("engine", "crates/engine/src/config.rs", "SequencerConfig"),
    ("scrub", "crates/engine/src/config.rs", "ScrubConfig"),
    ("", "crates/engine/src/expire/config.rs", "ExpireConfig"),
    (
        "expiry",
        "crates/engine/src/expire/config.rs",
        "ExpiryConfig",
    ),
    ("log", "crates/journal/src/config.rs", "JournalConfig"),
    ("index", "crates/index/src/config.rs", "IndexConfig"),
];

/// Writes the table of keys, then lets the app's tests write the pages made from it.
#[expect(
    clippy::disallowed_methods,
    reason = "the task writes documents, not a spool"
)]
pub(crate) fn run() -> Result<()> {
    let root = crate::root();
    let keys = config_keys(&Tree::load(&root)?)?;
    let path = root.join(Path::new(KEYS_PATH));
    std::fs::write(&path, keys).with_context(|| format!("cannot write {}", path.display()))?;
    crate::bless::rewrite("newsreel-app", &["--test", "it", "docs"])
}

/// The table of keys as the sources say it now.
pub(crate) fn config_keys(tree: &Tree) -> Result<String> {
    keys_of(tree, SECTIONS)
}

fn keys_of(tree: &Tree, sections: &[(&str, &str, &str)]) -> Result<String> {
    let mut out =
        "# Made from the doc comments of the section structs by `cargo xtask docs`; edit those.\n"
            .to_owned();
    for (name, path, structure) in sections {
        let text = tree
            .text(path)
            .with_context(|| format!("{path} does not exist"))?;
        let mut keys = Vec::new();
        section::read(text, structure, name, &mut keys)
            .with_context(|| format!("section [{name}] in {path}"))?;
        for key in &keys {
            print(key, &mut out);
        }
    }
    Ok(out)
}

fn print(key: &Key, out: &mut String) {
    let text = |text: &str| toml::Value::String(text.to_owned()).to_string();
    let _ = write!(
        out,
        "\n[[key]]\npath = {}\nkind = {}\n",
        text(&key.path),
        text(&key.kind)
    );
    if !key.choices.is_empty() {
        out.push_str("choices = [\n");
        for (name, doc) in &key.choices {
            let _ = writeln!(out, "    [{}, {}],", text(name), text(doc));
        }
        out.push_str("]\n");
    }
    let _ = writeln!(out, "doc = {}", text(&key.doc));
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "//! Config.\n\
        /// `[a]`: things.\n\
        #[derive(Deserialize)]\n\
        #[serde(deny_unknown_fields, default)]\n\
        pub struct A {\n\
            /// How many\n\
            /// at once.\n\
            pub things_max: u32,\n\
            /// When \"it\" ends.\n\
            pub end: End,\n\
            /// The parts.\n\
            #[serde(rename = \"part\")]\n\
            pub parts: Vec<Part>,\n\
            #[serde(skip)]\n\
            pub hidden: u8,\n\
        }\n\
        #[serde(rename_all = \"kebab-case\")]\n\
        pub enum End {\n\
            /// At once.\n\
            RightNow,\n\
            /// Later.\n\
            Later,\n\
        }\n\
        pub struct Part {\n\
            /// Its name.\n\
            pub name: Option<String>,\n\
        }\n";

    #[test]
    fn keys_kinds_and_texts_come_from_the_struct() {
        let tree = Tree::of(&[("a.rs", SOURCE)]);
        let keys = keys_of(&tree, &[("a", "a.rs", "A")]).unwrap();
        let (_, keys) = keys.split_once('\n').unwrap();
        assert_eq!(
            keys,
            "\n[[key]]\npath = \"a.things_max\"\nkind = \"integer\"\ndoc = \"How many at once.\"\n\
             \n[[key]]\npath = \"a.end\"\nkind = \"choice\"\nchoices = [\n    \
             [\"right-now\", \"At once.\"],\n    [\"later\", \"Later.\"],\n]\n\
             doc = 'When \"it\" ends.'\n\
             \n[[key]]\npath = \"a.part\"\nkind = \"list of table\"\ndoc = \"The parts.\"\n\
             \n[[key]]\npath = \"a.part.name\"\nkind = \"optional text\"\ndoc = \"Its name.\"\n"
        );
    }

    #[test]
    fn a_key_without_a_text_is_refused() {
        let tree = Tree::of(&[("a.rs", "pub struct A { pub x: u8 }\n")]);
        let error = keys_of(&tree, &[("a", "a.rs", "A")]).unwrap_err();
        assert_eq!(
            format!("{error:#}"),
            "section [a] in a.rs: a.x has no doc comment"
        );
        let error = keys_of(&tree, &[("a", "a.rs", "B")]).unwrap_err();
        assert_eq!(
            format!("{error:#}"),
            "section [a] in a.rs: no struct or enum B there"
        );
    }
}
