//! What entries of lists are called in messages: by their names, or `the second [[rule]]`; people do not count from 0.
//!
//! Inside, a key of an entry is a path with a place, `buffer[1].octets`; it becomes words only here.

use newsreel_store::StoreConfig;

/// Words for places; later ones are numbers.
const ORDINALS: [&str; 10] = [
    "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth",
];

/// The lists of tables.
const TABLES: [&str; 10] = [
    "access", "peer", "pull", "upstream", "censor", "filter", "buffer", "set", "rule", "expire",
];

/// A message whose paths with places are words.  What stands in quotes is somebody's text and stays.
pub(super) fn in_words(message: &str, store: &StoreConfig) -> String {
    let mut out = String::with_capacity(message.len());
    let is_of_path = |c: char| c.is_ascii_alphanumeric() || "_.[]".contains(c);
    let (mut rest, mut is_quoted) = (message, false);
    while let Some(first) = rest.chars().next() {
        let len = match rest.find(|c| !is_of_path(c)) {
            Some(0) => first.len_utf8(),
            Some(len) => len,
            None => rest.len(),
        };
        let (word, behind) = rest.split_at(len);
        rest = behind;
        is_quoted ^= word == "\"" && !out.ends_with('\\');
        let Some((key, of)) = (!is_quoted).then(|| words(word, store)).flatten() else {
            out.push_str(word);
            continue;
        };
        // Of a key in backticks only its name is to be there.
        let ticked = out.ends_with('`') && rest.starts_with('`') && !key.is_empty();
        out.push_str(&key);
        if ticked {
            out.push('`');
            rest = rest.get(1..).unwrap_or_default();
        }
        let between = if key.is_empty() { "" } else { " of " };
        out.push_str(&format!("{between}{of}"));
    }
    out
}

/// `buffer[1].octets` as `octets` and `buffer "B"`; `None` for what has no place.
fn words(path: &str, store: &StoreConfig) -> Option<(String, String)> {
    if !path.contains('[') {
        return None;
    }
    let (before, last) = path.rsplit_once('.').unwrap_or(("", path));
    let Some((list, place)) = placed(last) else {
        let (key, of) = words(before, store)?;
        let of = match key.as_str() {
            "" => entry(before, store, last == "name").unwrap_or(of),
            key => format!("{key} of {of}"),
        };
        return Some((last.to_owned(), of));
    };
    if before.is_empty() && TABLES.contains(&list) {
        return Some((String::new(), entry(path, store, false)?));
    }
    let of = match words(before, store) {
        Some((_, of)) if list == "feed" => {
            let which = format!("the {} [[peer.feed]] of {of}", ordinal(place));
            return Some((String::new(), which));
        }
        Some((_, of)) => format!("{list} of {of}"),
        None if before.is_empty() => list.to_owned(),
        None => format!("{before}.{list}"),
    };
    Some((String::new(), format!("the {} of {of}", ordinal(place))))
}

/// `buffer[1]` in two.
fn placed(segment: &str) -> Option<(&str, usize)> {
    let (list, place) = segment.strip_suffix(']')?.split_once('[')?;
    Some((list, place.parse().ok()?))
}

/// What `buffer[1]` is called: by its name, if it has one of its own that is not what is spoken of.
fn entry(path: &str, store: &StoreConfig, is_of_name: bool) -> Option<String> {
    let (list, place) = placed(path)?;
    let names: Vec<&str> = match list {
        "buffer" => store.buffers.iter().map(|it| it.name.as_str()).collect(),
        "set" => store.sets.iter().map(|it| it.name.as_str()).collect(),
        _ => Vec::new(),
    };
    let name = names.get(place).filter(|name| {
        let own = names.iter().filter(|other| other == name).count() == 1;
        own && !is_of_name && !super::read::is_stand_in(name)
    });
    Some(match name {
        Some(name) => format!("{list} {name:?}"),
        None => format!("the {} [[{list}]]", ordinal(place)),
    })
}

fn ordinal(place: usize) -> String {
    match ORDINALS.get(place) {
        Some(word) => (*word).to_owned(),
        None => format!("{}th", place + 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_said_as_people_count() {
        let mut store = StoreConfig::default();
        store.buffers[1].name = "unread-12".to_owned();
        let check = |message: &str| in_words(message, &store);
        for (message, expected) in [
            ("buffer[0].octets = 5", "octets of buffer \"C0\" = 5"),
            ("buffer[0].name is", "name of the first [[buffer]] is"),
            (
                "buffer[1] needs `octets`",
                "the second [[buffer]] needs `octets`",
            ),
            (
                "unknown key `buffer[1].colour`; x",
                "unknown key `colour` of the second [[buffer]]; x",
            ),
            ("rule[11].set", "set of the 12th [[rule]]"),
            (
                "set[0].buffers[2] is",
                "the third of buffers of set \"main\" is",
            ),
            (
                "listen.addresses[0] = \"a\": b",
                "the first of listen.addresses = \"a\": b",
            ),
            (
                "\"rule[0].set\" and \"[::1]:119\"",
                "\"rule[0].set\" and \"[::1]:119\"",
            ),
            (
                "write [[buffer]] or [set.x]; see 4.",
                "write [[buffer]] or [set.x]; see 4.",
            ),
        ] {
            assert_eq!(check(message), expected);
        }
    }
}
