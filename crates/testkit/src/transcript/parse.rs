//! From text to steps.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{Action, Speech, Step, StepKind, Template, Transcript};

/// Reads a transcript; files it names are taken relative to `files`.
///
/// # Errors
/// With `path:line:` in front.
pub fn parse(path: &Path, files: &Path, text: &str) -> Result<Transcript, String> {
    let mut transcript = Transcript {
        path: path.to_owned(),
        title: String::new(),
        config: Vec::new(),
        mode: None,
        with: Vec::new(),
        reversed: Vec::new(),
        steps: Vec::new(),
        source: text.lines().map(str::to_owned).collect(),
    };
    for (place, line) in text.lines().enumerate() {
        let number = place + 1;
        parse_line(&mut transcript, files, number, line)
            .map_err(|what| format!("{}:{number}: {what}", path.display()))?;
    }
    if transcript.title.is_empty() {
        return Err(format!(
            "{}:1: the first line must say what is promised: # ...",
            path.display()
        ));
    }
    Ok(transcript)
}

fn parse_line(out: &mut Transcript, files: &Path, number: usize, line: &str) -> Result<(), String> {
    if !line.is_ascii() {
        return Err("not ASCII; write other octets as \\xHH".into());
    }
    if line.ends_with([' ', '\t']) {
        return Err("trailing blank; write it as \\x20".into());
    }
    if let Some(comment) = line.strip_prefix('#') {
        if out.title.is_empty() {
            out.title = comment.trim().to_owned();
        }
        return Ok(());
    }
    if line.is_empty() {
        return Ok(());
    }
    let kind = if let Some(directive) = line.strip_prefix('@') {
        match directive_of(out, files, directive)? {
            Some(action) => StepKind::Action(action),
            None => return Ok(()),
        }
    } else if let Some(text) = line.strip_prefix("O:") {
        StepKind::Output(Template::parse(text.strip_prefix(' ').unwrap_or(text))?)
    } else {
        speech_of(files, line)?
    };
    out.steps.push(Step { line: number, kind });
    Ok(())
}

fn speech_of(files: &Path, line: &str) -> Result<StepKind, String> {
    let by_client = match line.as_bytes().first() {
        Some(b'C') => true,
        Some(b'S') => false,
        _ => return Err("a line begins with C, S, O, @ or #".into()),
    };
    let mut rest = &line[1..];
    let mut connection = String::new();
    if let Some(named) = rest.strip_prefix('@') {
        let end = named
            .find(|c: char| !c.is_ascii_alphanumeric())
            .unwrap_or(named.len());
        connection = named[..end].to_owned();
        rest = &named[end..];
    }
    let mark = rest
        .chars()
        .next()
        .ok_or("the mark is missing: one of : | < * = + !")?;
    let text = &rest[1..];
    let text = text.strip_prefix(' ').unwrap_or(text);
    let template = || Template::parse(text);
    let speech = match (mark, by_client) {
        (':', _) => Speech::Line(template()?),
        ('|', _) => Speech::Raw(template()?),
        ('<', _) => Speech::File(files.join(text)),
        ('*', _) => {
            let (times, what) = text.split_once(' ').unwrap_or((text, ""));
            let times = times
                .parse()
                .map_err(|_| "* wants a number and a text".to_owned())?;
            Speech::Repeat(times, Template::parse(what)?)
        }
        ('=', false) => Speech::AnyOrder(template()?),
        ('~', false) => Speech::AnyTimes(template()?),
        ('+', false) => Speech::Must(template()?),
        ('!', false) => Speech::MustNot(template()?),
        _ => {
            return Err(format!(
                "the mark {mark:?} is not one of : | < * (and, after S, = ~ + !)"
            ));
        }
    };
    Ok(StepKind::Speech {
        by_client,
        connection,
        speech,
    })
}

/// A directive: what is carried out, or `None` for a part of the set-up.
fn directive_of(out: &mut Transcript, files: &Path, text: &str) -> Result<Option<Action>, String> {
    let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
    let setup = matches!(word, "config" | "mode" | "with" | "upstream" | "sink");
    if setup {
        let begun = out
            .steps
            .iter()
            .any(|step| matches!(step.kind, StepKind::Speech { .. }));
        if begun {
            return Err(format!("@{word} must come before the first C or S line"));
        }
        setup_of(out, word, rest)?;
        return Ok(None);
    }
    let words = || {
        rest.split_whitespace()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let connection = rest.trim().to_owned();
    Ok(Some(match word {
        "group" => group_of(rest)?,
        "user" => user_of(&words())?,
        "article" => article_of(files, rest)?,
        "clock" => Action::Clock(seconds_of(rest).ok_or("@clock wants 2026-01-31T12:00:00Z")?),
        "advance" => Action::Advance(duration_of(rest).ok_or("@advance wants 90s, 5m, 2h or 10d")?),
        "wait" => Action::Wait(duration_of(rest).ok_or("@wait wants 90s, 5m, 2h or 10d")?),
        "expire" => Action::Expire,
        "restart" => Action::Restart,
        "crash" => Action::Crash,
        "stop" => Action::Stop,
        "fault" => Action::Fault(words()),
        "run" => Action::Run(words()),
        "metric" => {
            let (name, value) = rest
                .split_once(' ')
                .ok_or("@metric wants a name and a value")?;
            Action::Metric(name.to_owned(), value.to_owned())
        }
        "closed" => Action::Closed(connection),
        "shutdown" => Action::Shutdown(connection),
        "tls" => match connection.rsplit_once("as ") {
            Some((before, name)) => Action::Tls(before.trim().to_owned(), Some(name.to_owned())),
            None => Action::Tls(connection, None),
        },
        "deflate" => Action::Deflate(connection),
        "drop" => Action::Drop(connection),
        _ => return Err(format!("no directive @{word}")),
    }))
}

fn setup_of(out: &mut Transcript, word: &str, rest: &str) -> Result<(), String> {
    let pair = || {
        let (key, value) = rest
            .split_once('=')
            .ok_or(format!("@{word} wants key = value"))?;
        Ok::<_, String>((key.trim().to_owned(), value.trim().to_owned()))
    };
    match word {
        "config" => out.config.push(pair()?),
        "with" => {
            let (key, values) = pair()?;
            let values = values
                .split(',')
                .map(|value| value.trim().to_owned())
                .collect();
            out.with.push((key, values));
        }
        "mode" => out.mode = Some(rest.to_owned()),
        _ => out.reversed.push(rest.trim().to_owned()),
    }
    Ok(())
}

fn group_of(rest: &str) -> Result<Action, String> {
    let mut words = rest.splitn(3, ' ');
    let name = words
        .next()
        .filter(|name| !name.is_empty())
        .ok_or("@group wants a name")?;
    Ok(Action::Group {
        name: text_of(name)?,
        status: words.next().unwrap_or("y").to_owned(),
        description: text_of(words.next().unwrap_or_default())?,
    })
}

fn user_of(words: &[String]) -> Result<Action, String> {
    let [name, password, groups @ ..] = words else {
        return Err("@user wants a name and a password".into());
    };
    Ok(Action::User {
        name: name.clone(),
        password: password.clone(),
        groups: groups.to_vec(),
    })
}

fn article_of(files: &Path, rest: &str) -> Result<Action, String> {
    let words: Vec<&str> = rest.split_whitespace().collect();
    let [id, groups, file] = words.as_slice() else {
        return Err("@article wants an id, groups and a file".into());
    };
    let group = |text: &str| match text.split_once(':') {
        None => Ok((text_of(text)?, None)),
        Some((name, number)) => {
            let number = number
                .parse()
                .map_err(|_| format!("{number:?} is no article number"))?;
            Ok((text_of(name)?, Some(number)))
        }
    };
    let groups = groups
        .split(',')
        .map(group)
        .collect::<Result<_, String>>()?;
    Ok(Action::Article {
        id: (*id).to_owned(),
        groups,
        file: PathBuf::from(files).join(file),
    })
}

/// Text with `\xHH`, which must come out as UTF-8.
fn text_of(text: &str) -> Result<String, String> {
    let octets = Template::parse(text)?.say(&super::Bindings::new())?;
    String::from_utf8(octets).map_err(|_| "not UTF-8".to_owned())
}

/// `90s`, `5m`, `2h`, `10d`.
fn duration_of(text: &str) -> Option<Duration> {
    let text = text.trim();
    let (number, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let seconds = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 86_400,
        _ => return None,
    };
    Some(Duration::from_secs(number.parse::<u64>().ok()? * seconds))
}

/// `2026-01-31T12:00:00Z` as seconds since 1970 (proleptic Gregorian, from 1970 on).
fn seconds_of(text: &str) -> Option<u64> {
    let text = text.trim().strip_suffix('Z')?;
    let (date, time) = text.split_once('T')?;
    let numbers = |text: &str, mark: char| -> Option<[u64; 3]> {
        let all: Vec<u64> = text
            .split(mark)
            .map(|n| n.parse().ok())
            .collect::<Option<_>>()?;
        all.try_into().ok()
    };
    let [year, month, day] = numbers(date, '-')?;
    let [hour, minute, second] = numbers(time, ':')?;
    let valid = (1970..=9999).contains(&year)
        && (1..=12).contains(&month)
        && (1..=31).contains(&day)
        && hour < 24
        && minute < 60
        && second < 60;
    if !valid {
        return None;
    }
    let leap = |year: u64| {
        year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
    };
    let days_before: u64 = (1970..year)
        .map(|year| if leap(year) { 366 } else { 365 })
        .sum();
    let months = [
        31,
        if leap(year) { 29 } else { 28 },
        31,
        30,
        31,
        30,
        31,
        31,
        30,
        31,
        30,
        31,
    ];
    let in_year: u64 = months.iter().take(usize::try_from(month - 1).ok()?).sum();
    Some(((days_before + in_year + day - 1) * 24 + hour) * 3600 + minute * 60 + second)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Transcript, String> {
        parse(Path::new("t.nntp"), Path::new("/tests"), text)
    }

    #[test]
    fn a_whole_file() {
        let text = "# A promise.  RFC 3977 6.1.1\n@with store = a, b\n@config x.y = 3\n@mode transit peer=p\n\
            @upstream up\n@group misc.test y Some words\n@article <1@t> misc.test:3,misc.b fixtures/a.eml\n\
            C: GROUP misc.test\nS: 211 {*}\nC@b| QU\nC@b* 3 x\nS@b+ READER\nC< f.wire\n@advance 10d\n@closed b\nO: ok\n";
        let read = read(text).unwrap();
        assert_eq!(read.title, "A promise.  RFC 3977 6.1.1");
        assert_eq!(read.with, [("store".into(), vec!["a".into(), "b".into()])]);
        assert_eq!(read.config, [("x.y".into(), "3".into())]);
        assert_eq!(read.mode.as_deref(), Some("transit peer=p"));
        assert_eq!(read.reversed, ["up"]);
        let lines: Vec<usize> = read.steps.iter().map(|step| step.line).collect();
        assert_eq!(lines, [6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]);
        let StepKind::Action(Action::Article { groups, file, .. }) = &read.steps[1].kind else {
            panic!("{:?}", read.steps[1]);
        };
        assert_eq!(
            groups[..],
            [("misc.test".into(), Some(3)), ("misc.b".into(), None)]
        );
        assert_eq!(file, Path::new("/tests/fixtures/a.eml"));
    }

    #[test]
    fn slips_are_told_with_their_line() {
        for (text, expected) in [
            ("# t\nX: hello\n", "t.nntp:2: a line begins with"),
            ("# t\nC hello\n", "t.nntp:2: the mark ' ' is not"),
            ("# t\nC= hello\n", "t.nntp:2: the mark '=' is not"),
            ("# t\nC: hello \n", "t.nntp:2: trailing blank"),
            ("# t\n\nC: \u{e9}\n", "t.nntp:3: not ASCII"),
            ("# t\n@gruop x\n", "t.nntp:2: no directive @gruop"),
            (
                "# t\nC: x\n@config a = b\n",
                "t.nntp:3: @config must come before",
            ),
            ("# t\nS: {x\n", "t.nntp:2: { without }"),
            ("# t\n@advance 5\n", "t.nntp:2: @advance wants"),
            ("C: x\n", "t.nntp:1: the first line must say"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.starts_with(expected), "{error}");
        }
    }

    #[test]
    fn times() {
        assert_eq!(seconds_of("1970-01-01T00:00:00Z"), Some(0));
        assert_eq!(seconds_of("2026-01-01T00:00:00Z"), Some(1_767_225_600));
        assert_eq!(seconds_of("2024-03-01T00:00:01Z"), Some(1_709_251_201));
        assert_eq!(seconds_of("2026-13-01T00:00:00Z"), None);
        assert_eq!(duration_of("2h"), Some(Duration::from_secs(7200)));
        assert_eq!(duration_of("h"), None);
    }
}
