//! A cyclic buffer drawn as a strip: what of it is of this cycle, of the one before, about to be overwritten, or free.

use serde_json::Value;

use crate::output;

/// Characters of a strip.
const WIDTH: u64 = 64;

/// What the characters mean.
pub(crate) const KEY: &str = "# this cycle   > the next article   ~ reserved, about to be overwritten   = the cycle before   . empty\n";

/// What cannot be told from a moment of articles.
const NOT_KNOWN: &str = "not known before an hour of articles is there";

/// Room for articles; where each of them is a file, what is free there.
pub(crate) fn room(report: &Value) -> String {
    match report["octets"].is_null() {
        true => format!("{} free", output::octets(&report["free_octets"])),
        false => output::octets(&report["octets"]),
    }
}

/// How many articles are in it.
pub(crate) fn articles(report: &Value, key: &str) -> String {
    let about = match report["articles_are_estimated"] == true {
        true => "~",
        false => "",
    };
    match report[key].as_u64() {
        Some(articles) => format!("{about}{articles}"),
        None => "-".to_owned(),
    }
}

/// What is the matter with it, and how long that takes, where it is known.
pub(crate) fn state(report: &Value) -> String {
    let state = output::cell(&report["state"]);
    match report["becomes_in_s"].is_null() || !state.starts_with("narrowing") {
        true => state,
        false => format!("{state}, in {}", output::duration(&report["becomes_in_s"])),
    }
}

/// A buffer as `store inspect` shows it.
pub(crate) fn buffer(report: &Value) -> String {
    let number = |key: &str| report[key].as_u64().unwrap_or(0);
    let (octets, live) = (number("octets"), number("live_octets"));
    let percent = |part: u64| (u128::from(part) * 100 / u128::from(octets.max(1))).to_string();
    let behind = number("free_offset").saturating_sub(number("data_offset"));
    let rate = match report["octets_a_day"].as_u64() {
        Some(_) => format!("{} a day", output::octets(&report["octets_a_day"])),
        None => NOT_KNOWN.to_owned(),
    };
    let stays = match report["lasts_s"].is_null() {
        true => NOT_KNOWN.to_owned(),
        false => output::duration(&report["lasts_s"]),
    };
    let (is_cyclic, is_in_files) = (report["method"] == "cnfs", report["octets"].is_null());
    let octets_of = output::octets(&report["articles_octets"]);
    let (cycle, offset) = (number("cycle"), number("free_offset"));
    let mut facts = vec![
        ("buffer", output::cell(&report["name"])),
        ("set", output::cell(&report["set"])),
        ("file", output::cell(&report["path"])),
        ("room", room(report)),
        (
            "articles",
            match report["articles"].is_null() {
                true => "not known: a part of the history is being rebuilt".to_owned(),
                false => format!("{}, {octets_of}", articles(report, "articles")),
            },
        ),
    ];
    if !is_in_files {
        let alive = output::octets(&live.into());
        facts.push(("alive", format!("{alive} ({} %)", percent(live))));
        let next = match is_cyclic {
            false => format!("segment {cycle}, offset {offset:#x}"),
            true => format!(
                "cycle {cycle}, offset {offset:#x}, {} % of the way",
                percent(behind)
            ),
        };
        facts.push(("next article", next));
    }
    let (date, age) = (output::date(&report["oldest"]), &report["oldest_age_s"]);
    let age = match age.is_null() {
        true => String::new(),
        false => format!(", {} old", output::duration(age)),
    };
    facts.push(("oldest article", format!("{date}{age}")));
    facts.push(("comes in", rate));
    let is_told = is_cyclic || !report["lasts_s"].is_null();
    if is_told && report["takes_articles"] != false {
        facts.push(("an article stays", stays));
    }
    facts.push(("state", state(report)));
    let facts = output::facts(&facts);
    match is_cyclic {
        true => format!("{facts}[{}]\n", strip(report)),
        // Nothing of it is overwritten.
        false => facts,
    }
}

/// The strip itself.
fn strip(report: &Value) -> String {
    let number = |key: &str| report[key].as_u64().unwrap_or(0);
    let (data, octets, cycle) = (number("data_offset"), number("octets"), number("cycle"));
    let free = number("free_offset").saturating_sub(data);
    let reserved = number("reserved_offset").saturating_sub(data);
    // The reserved region may lie around the end of the file.
    let is_reserved = |at: u64| {
        if reserved >= free {
            (free..reserved).contains(&at)
        } else {
            at >= free || at < reserved
        }
    };
    // Where nothing new comes all that is alive lies right in front of the free pointer, around the end of the file.
    let (live, is_filled) = (number("live_octets"), report["takes_articles"] != false);
    let is_gone = |end: u64| {
        let behind = (free + octets).saturating_sub(end) % octets.max(1);
        !is_filled && behind >= live
    };
    let character = |column: u64| {
        let at = octets * column / WIDTH;
        let end = octets * (column + 1) / WIDTH;
        if (at..end.max(at + 1)).contains(&free) {
            '>'
        } else if is_gone(end) {
            '.'
        } else if is_filled && is_reserved(at) {
            '~'
        } else if at < free {
            '#'
        } else if cycle > 1 {
            '='
        } else {
            '.'
        }
    };
    (0..WIDTH).map(character).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn offsets_are_marked_as_hexadecimal() {
        for method in ["cnfs", "segment"] {
            let said = buffer(&json!({"method": method, "octets": 1 << 20, "cycle": 3,
                "free_offset": 0x22000}));
            assert!(said.contains(" 3, offset 0x22000"), "{said}");
        }
    }

    #[test]
    fn where_articles_are_files_nothing_is_made_up() {
        let said = buffer(
            &json!({"method": "timehash", "name": "T", "set": "T", "path": "/t", "cycle": 3,
            "free_offset": 0x22000, "free_octets": 5 << 20, "state": "ok", "articles": 7,
            "articles_octets": 3000}),
        );
        assert_eq!(
            said,
            "buffer          T\nset             T\nfile            /t\nroom            5120 KiB free\n\
             articles        7, 3000 B\noldest article  -\n\
             comes in        not known before an hour of articles is there\nstate           ok\n"
        );
    }

    #[test]
    fn estimates_are_marked_and_what_is_not_known_is_said() {
        let report = json!({"method": "segment", "octets": 1 << 20, "articles": 70_000,
            "articles_are_estimated": true, "octets_a_day": 5 << 20, "lasts_s": 86400});
        let said = buffer(&report);
        assert!(said.contains(" ~70000, -\n"), "{said}");
        assert!(said.contains("comes in        "), "{said}");
        assert!(said.contains("an article stays"), "{said}");
        let said = buffer(&json!({"method": "cnfs", "octets": 1 << 20}));
        assert!(said.contains(" not known: a part of the history"), "{said}");
        assert!(
            said.contains("an article stays  not known before"),
            "{said}"
        );
    }

    #[test]
    fn a_strip_shows_where_a_buffer_stands() {
        let strip = |cycle: u64, free: u64, reserved: u64| {
            strip(&json!({"octets": 6400, "data_offset": 100, "cycle": cycle,
                "free_offset": free, "reserved_offset": reserved}))
        };
        let (dots, rest) = (".".repeat(63), "=".repeat(43));
        assert_eq!(strip(1, 100, 100), format!(">{dots}"));
        assert_eq!(
            strip(1, 1100, 2100),
            format!("{}>{}{}", "#".repeat(10), "~".repeat(9), ".".repeat(44))
        );
        assert_eq!(
            strip(7, 1100, 2200),
            format!("{}>{}{rest}", "#".repeat(10), "~".repeat(10))
        );
        let retired = |cycle: u64, free: u64, live: u64| {
            self::strip(
                &json!({"octets": 6400, "data_offset": 100, "cycle": cycle, "free_offset": free,
                "reserved_offset": free, "live_octets": live, "takes_articles": false}),
            )
        };
        assert_eq!(
            retired(7, 1100, 0),
            format!("{}>{}", ".".repeat(10), ".".repeat(53))
        );
        assert_eq!(
            retired(7, 1100, 400),
            format!("......####>{}", ".".repeat(53))
        );
        let around = format!("{}>{}{}", "#".repeat(10), ".".repeat(50), "=".repeat(3));
        assert_eq!(retired(7, 1100, 1300), around);
        // What is reserved goes on from the start.
        assert_eq!(strip(2, 6300, 400), format!("~~~{}>~", "#".repeat(59)));
    }
}
