//! The configuration as data: sample files in, messages out; and proofs that table, limits and structs agree.

use std::path::{Path, PathBuf};

use super::*;

fn fixtures(kind: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/fixtures/config")
        .join(kind);
    let entries = newsreel_host::Disk::list(&newsreel_host::RealDisk, &folder).unwrap();
    let paths: Vec<PathBuf> = entries
        .iter()
        .filter(|entry| entry.name.ends_with(".toml"))
        .map(|entry| folder.join(&entry.name))
        .collect();
    assert!(!paths.is_empty(), "no files in {}", folder.display());
    paths
}

fn text_of(path: &Path) -> String {
    let bytes = newsreel_host::read_whole(&newsreel_host::RealDisk, path, 1 << 20);
    let bytes = bytes.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    String::from_utf8(bytes).unwrap()
}

fn small() -> PathBuf {
    fixtures("valid")
        .into_iter()
        .find(|path| path.ends_with("small.toml"))
        .unwrap()
}

#[test]
fn valid_files_are_taken() {
    for path in fixtures("valid") {
        if let Err(error) = load(Some(&path), None) {
            panic!("{}: {error:#}", path.display());
        }
    }
}

#[test]
fn what_is_left_out_of_the_store_is_filled_in() {
    let store = parse("[[buffer]]\nname = \"A\"\noctets = 1048576\n", "x")
        .unwrap()
        .store;
    assert_eq!(
        (
            store.sets[0].buffers[0].as_str(),
            store.rules[0].set.as_str()
        ),
        ("A", "main")
    );
    let store = parse("[[set]]\nname = \"s\"\nbuffers = [\"C0\", \"C1\"]\n", "x");
    assert!(store.is_err(), "a set needs its buffers");
}

#[test]
fn invalid_files_are_refused_with_the_expected_words() {
    for path in fixtures("invalid") {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let problems = parse(&text_of(&path), &name).unwrap_err();
        let expected = path.with_extension("expected");
        let found = format!("{problems}\n");
        if std::env::var_os("NEWSREEL_BLESS").is_some() {
            newsreel_host::replace_file(&newsreel_host::RealDisk, &expected, found.as_bytes())
                .unwrap();
        }
        assert_eq!(
            found,
            text_of(&expected),
            "{name}: `cargo xtask bless` rewrites what is expected"
        );
    }
}

#[test]
fn an_empty_file_is_the_defaults() {
    assert_eq!(parse("", "x").unwrap(), Config::default());
}

#[test]
fn defaults_give_way_to_what_the_file_says_and_what_it_says_holds() {
    let small = "[[buffer]]\nname = \"A\"\noctets = \"1MiB\"\n";
    let config = parse(small, "x").unwrap();
    assert_eq!(
        config.articles.octets_max,
        248 << 10,
        "a quarter of the buffer"
    );
    let error = |text: &str| parse(text, "x").unwrap_err().to_string();
    let said = error(&format!("[articles]\noctets_max = \"1GiB\"\n{small}"));
    assert!(
        said.contains("x:2:14: articles.octets_max = 1073741824 is out of"),
        "{said}"
    );
    let said = error(&format!("[articles]\noctets_max = \"200MiB\"\n{small}"));
    for expected in [
        "x:2:14: articles.octets_max = 200MiB is more than session.article_bytes_max = 4MiB (the default) lets in",
        "x:2:14: articles.octets_max = 200MiB is more than a quarter of a buffer",
        "buffer.octets = 1MiB; give octets_max 248KiB or less, or a buffer.octets of 801MiB or more",
    ] {
        assert!(said.contains(expected), "{said}");
    }
    let config = parse("[session]\narticle_bytes_max = \"32KiB\"\n", "x").unwrap();
    let articles = (
        config.articles.octets_max,
        config.articles.header_octets_max,
    );
    assert_eq!(articles, (32 << 10, 32 << 10));
    let memory =
        |text: &str| parse(&format!("[session]\n{text}"), "x").map(|config| config.session);
    let session = memory("large_articles_bytes_max = \"1MiB\"\n").unwrap();
    assert_eq!(session.article_bytes_max, 256 << 10);
    let session = memory("article_bytes_max = \"100MiB\"\n").unwrap();
    assert_eq!(session.large_articles_bytes_max, 400 << 20);
    let said = memory("article_bytes_max = \"1MiB\"\nlarge_articles_bytes_max = \"1MiB\"\n");
    let said = said.unwrap_err().to_string();
    assert!(
        said.contains("x:3:28: session.large_articles_bytes_max = 1MiB has no room"),
        "{said}"
    );
    let config = parse("[articles]\nage_s_max = \"30d\"\n", "x").unwrap();
    assert_eq!(config.index.remember_s, 31 * 86_400);
    let shown = toml::to_string(&config.values().unwrap()).unwrap();
    assert_eq!(parse(&shown, "shown").unwrap(), config);
    let config = parse(small, "x").unwrap();
    let shown = toml::to_string(&config.values().unwrap()).unwrap();
    assert_eq!(parse(&shown, "shown").unwrap(), config);
}

/// Of a part and its whole the one that nobody wrote gives way, to either side.
#[test]
fn a_part_and_its_whole_fit_each_other_when_one_is_written() {
    let config = |text: &str| parse(text, "x").unwrap();
    let listen = config("[listen]\nconnections_max = 100\n").listen;
    assert_eq!(
        (listen.connections_per_address_max, listen.connections_max),
        (100, 100)
    );
    let listen = config("[listen]\nconnections_per_address_max = 20000\n").listen;
    assert_eq!(
        (listen.connections_per_address_max, listen.connections_max),
        (20_000, 20_000)
    );
    let engine = config("[engine]\noffers_max = 1000\nqueue_octets_max = \"1MiB\"\n").engine;
    assert_eq!(
        (engine.offers_per_connection_max, engine.offers_max),
        (1000, 1000)
    );
    assert_eq!(
        (engine.commit_octets_max, engine.queue_octets_max),
        (1 << 20, 1 << 20)
    );
    let large = "[engine]\noffers_per_connection_max = 600000\ncommit_octets_max = \"64MiB\"\n";
    let engine = config(large).engine;
    assert_eq!(
        (engine.offers_per_connection_max, engine.offers_max),
        (600_000, 600_000)
    );
    assert_eq!(
        (engine.commit_octets_max, engine.queue_octets_max),
        (64 << 20, 64 << 20)
    );
}

/// What is wrong with keys by themselves does not hide what is wrong between others; what could not be read is not held
/// against anything.
#[test]
fn keys_that_do_not_fit_are_told_beside_keys_that_are_wrong() {
    let said = |text: &str| -> Vec<String> {
        let problems = parse(text, "x").unwrap_err().list;
        problems.into_iter().map(|problem| problem.what).collect()
    };
    let both = "[listen]\nbacklogg = 3\n\
                [session]\narticle_bytes_max = \"1MiB\"\nlarge_articles_bytes_max = \"1MiB\"\n";
    let found = said(both);
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found[0].starts_with("unknown key `listen.backlogg`"));
    assert!(found[1].starts_with("session.large_articles_bytes_max = 1MiB has no room"));
    let complaint = "[logging]\nlevel = \"newsreel=loud\"\n[articles]\nage_s_max = \"30d\"\n[index]\nremember_s = \"7d\"\n";
    assert_eq!(said(complaint).len(), 2, "{:?}", said(complaint));
    let large = "[articles]\noctets_max = \"200MiB\"\n";
    for alone in [
        "[session]\narticle_bytes_max = \"many\"\n",
        "[session]\nartcle_bytes_max = \"250MiB\"\n",
        "[session]\nlarge_articles_bytes_max = \"many\"\n",
        "[sesion]\narticle_bytes_max = \"250MiB\"\n",
        "[listen]\narticle_bytes_max = \"250MiB\"\n",
        "session = 7\n",
    ] {
        let buffer = "[[buffer]]\nname = \"A\"\noctets = \"4GiB\"\n";
        let text = format!("{alone}{large}{buffer}");
        let found = said(&text);
        assert_eq!(found.len(), 1, "{text}: {found:?}");
    }
    let buffer = "[[buffer]]\nname = \"A\"\noctets = \"many\"\n";
    let session = "[session]\narticle_bytes_max = \"250MiB\"\n";
    let found = said(&format!("{large}{session}{buffer}"));
    assert_eq!(found.len(), 1, "{found:?}");
}

#[test]
fn the_reference_says_when_values_are_taken_over_and_what_tables_default_to() {
    let page = reference().unwrap();
    let entry = |key: &str| {
        let (_, rest) = page.split_once(&format!("### `{key}`\n")).unwrap();
        rest.split("\n#").next().unwrap().to_owned()
    };
    for (key, expected) in [
        ("articles.octets_max", "; taken over by SIGHUP"),
        ("log.segment_octets", "; needs a restart"),
        ("set.method", "- `\"cnfs\"`: "),
        ("set.method", "default `\"cnfs\"`"),
        ("set.recent_octets", "default `none`"),
        ("set.segment_octets", "default `\"64MiB\"`"),
        ("buffer.octets", "default `none, it must be given`"),
        ("buffer.sparse", "default `false`"),
        ("rule.match", "default `\"first\"`"),
        ("rule.larger_than", "default `none`"),
    ] {
        assert!(entry(key).contains(expected), "{key}: {}", entry(key));
    }
    assert!(
        page.contains("\n| A command line | 512 octets | "),
        "{page}"
    );
}

#[test]
fn readable_values_become_plain_ones() {
    let config = parse(&text_of(&small()), "small").unwrap();
    assert_eq!(config.articles.age_s_max, 30 * 86_400);
    assert_eq!(config.articles.octets_max, 512 << 10);
    assert_eq!(config.listen.addresses.len(), 2);
    assert!(config.logging.articles);
}

#[test]
fn paths_count_from_the_files_directory() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("newsreel.toml");
    newsreel_host::replace_file(
        &newsreel_host::RealDisk,
        &file,
        b"[server]\nspool = \"s\"\n",
    )
    .unwrap();
    let config = load(Some(&file), None).unwrap();
    assert_eq!(config.server.spool, folder.path().join("s"));
    assert_eq!(config.file, Some(file));
}

#[test]
fn what_show_prints_is_readable_and_read_back_the_same() {
    let config = parse(&text_of(&small()), "small").unwrap();
    let text = shown(&config).unwrap();
    assert_eq!(parse(&text, "shown").unwrap(), config);
    for line in [
        "octets = \"1GiB\"",
        "age_s_max = \"30d\"",
        "octets_max = \"512KiB\"",
    ] {
        assert!(text.contains(line), "{line} in {text}");
    }
}

/// Every path of a table of values, tables in lists without their places.
fn paths(values: &toml::Table, prefix: &str, out: &mut Vec<String>) {
    for (name, value) in values {
        let path = if prefix.is_empty() {
            name.clone()
        } else {
            format!("{prefix}.{name}")
        };
        match value {
            toml::Value::Table(table) => paths(table, &path, out),
            toml::Value::Array(list) => {
                for table in list.iter().filter_map(toml::Value::as_table) {
                    paths(table, &path, out);
                }
                out.push(path);
            }
            _ => out.push(path),
        }
    }
}

#[test]
fn the_table_of_keys_and_the_structs_name_the_same_keys() {
    let mut named = Vec::new();
    paths(&Config::default().values().unwrap(), "", &mut named);
    for path in &named {
        assert!(
            schema::find(path).is_some(),
            "{path} is not in keys.toml: `cargo xtask docs`"
        );
    }
    for key in schema::keys() {
        let section = key.path.split('.').next().unwrap();
        assert!(
            named.iter().any(|path| path.starts_with(section)),
            "{} is in no struct",
            key.path
        );
    }
}

/// Both ends of every number's limits are taken by the section it belongs to.
#[test]
fn limits_lie_within_what_the_sections_take() {
    for key in schema::keys() {
        let (Some(limits), Some((section, name))) = (&key.limits, key.path.split_once('.')) else {
            continue;
        };
        if name.contains('.') || !schema::is_section(section) {
            continue;
        }
        for end in [limits.start(), limits.end()] {
            if let Err(problems) = parse(&format!("[{section}]\n{name} = {end}\n"), "limits") {
                // What does not fit another key names both; a section's own complaint has these words.
                let own = format!("{} is not as it must be", key.path);
                let own = problems.list.iter().any(|p| p.what == own);
                assert!(!own, "{} = {end}: {problems}", key.path);
            }
        }
    }
}

#[test]
fn every_key_and_section_is_explained() {
    let config = Config::default();
    for key in schema::keys() {
        let (text, value) = explain(&key.path, &config).unwrap();
        assert!(
            text.contains(&key.doc) && text.contains("default"),
            "{text}"
        );
        assert_eq!(value["key"], key.path.as_str());
    }
    let (text, _) = explain("listen.drain_s", &config).unwrap();
    assert!(
        text.contains("a duration (seconds)") && text.contains("\"10s\""),
        "{text}"
    );
    let (text, _) = explain("listen", &config).unwrap();
    assert!(text.contains("listen.backlog"), "{text}");
    let error = explain("listen.adresses", &config).unwrap_err();
    assert_eq!(
        error.to_string(),
        "no key \"listen.adresses\"; did you mean listen.addresses? [listen] has addresses, tls_addresses, drain_s, backlog, \
         keepalive_s, connections_max, loopback_unlimited, connections_per_address_max, connections_per_s_per_address_max"
    );
    let error = explain("backlog", &config).unwrap_err();
    assert_eq!(
        error.to_string(),
        "no key \"backlog\"; did you mean listen.backlog?"
    );
}

#[test]
fn blocks_of_configuration_in_the_readme_are_sound() {
    let text = text_of(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md"));
    let blocks: Vec<&str> = text.split("```toml\n").skip(1).collect();
    assert!(!blocks.is_empty(), "there is none");
    for block in blocks {
        let block = block.split("```").next().unwrap();
        if let Err(problems) = parse(block, "README.md") {
            panic!("{problems}\n{block}");
        }
    }
}
