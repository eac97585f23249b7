//! A program that knows names and passwords, asked as INN asks its authenticators (its page external-auth): lines
//! `ClientAuthname: NAME`, `ClientPassword: PASSWORD` and a dot on the standard input; status 0 and a line `user:NAME` when it
//! knows them, any other status when not.
//!
//! No shell is involved, and nothing a client says is a word of the command line.  A program that is late is killed; one that
//! cannot be run, or says what cannot be, lets nobody in and is reported.  What it started goes with it, however it ends: each
//! login would leave some more.

use std::io::{Read as _, Write as _};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::time::Duration;

use newsreel_host::process::{has_ended, kill_group};
use newsreel_host::{Clock as _, RealClock};
use newsreel_net::access::{Credentials, LoginConfig, User};
use newsreel_users::is_name;

/// Of what a program says no more is read, octets: a name and its groups.
pub(crate) const SAID_OCTETS_MAX: usize = 4096;

/// How often it is looked whether a program has ended.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// Who that is, by the program.  Blocks.
///
/// # Errors
/// Why it cannot be said.
pub(super) fn ask(login: &LoginConfig, said: &Credentials) -> Result<Option<User>, String> {
    // A line end in a name would be a line of our own.
    if [&said.name, &said.password]
        .iter()
        .any(|text| text.contains(char::is_control))
    {
        return Ok(None);
    }
    let mut words = login.program.split_ascii_whitespace();
    let path = words.next().unwrap_or_default();
    let failed =
        |what: &str, error: &dyn std::fmt::Display| format!("login.program {path} {what}: {error}");
    // A socket and no pipe, as what it says must not be waited for longer than its time, whoever has its other end by then.
    let (ours, theirs) =
        UnixStream::pair().map_err(|error| failed("cannot be spoken to", &error))?;
    let input = theirs.try_clone();
    let input = input.map_err(|error| failed("cannot be spoken to", &error))?;
    let mut child = Command::new(path)
        .args(words)
        .stdin(OwnedFd::from(input))
        .stdout(OwnedFd::from(theirs))
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .map_err(|error| failed("cannot be run", &error))?;
    let lines = format!(
        "ClientIP: {}\r\nClientAuthname: {}\r\nClientPassword: {}\r\n.\r\n",
        said.address.to_canonical(),
        said.name,
        said.password
    );
    let limit = Duration::from_secs(login.program_s_max);
    let said = converse(child.id(), ours, lines.as_bytes(), limit);
    // Before it is waited for its group's number is nobody else's.
    kill_group(child.id());
    let ended = child.wait().map_err(|error| error.to_string());
    let text = said.and_then(|text| match ended?.code() {
        Some(0) => Ok(Some(text)),
        Some(_) => Ok(None),
        None => Err("a signal ended it".to_owned()),
    });
    match text {
        Ok(text) => text.map(|text| user_of(&text)).transpose(),
        Err(why) => Err(failed("lets nobody in", &why)),
    }
}

/// What a program says until it ends.
fn converse(
    program: u32,
    mut stream: UnixStream,
    lines: &[u8],
    limit: Duration,
) -> Result<Vec<u8>, String> {
    let said = |error: std::io::Error| error.to_string();
    stream.set_read_timeout(Some(LOOK_EVERY)).map_err(said)?;
    stream.set_write_timeout(Some(limit)).map_err(said)?;
    // It may end without reading all of it; what it says then counts.
    let _ = stream.write_all(lines);
    stream.shutdown(Shutdown::Write).map_err(said)?;
    let (mut text, mut part) = (Vec::new(), [0; 512]);
    let (begun, mut is_over) = (RealClock::new(), false);
    loop {
        match stream.read(&mut part) {
            // It has closed its side, and ends soon.
            Ok(0) if !is_over => std::thread::sleep(LOOK_EVERY),
            Ok(0) => return Ok(text),
            Ok(octets) => {
                text.extend_from_slice(part.get(..octets).unwrap_or_default());
                if text.len() > SAID_OCTETS_MAX {
                    return Err("it says too much".to_owned());
                }
                continue;
            }
            Err(_) if is_over => return Ok(text),
            Err(_) => {}
        }
        is_over = has_ended(program).map_err(said)?;
        if !is_over && begun.monotonic() >= limit {
            let limit_s = limit.as_secs();
            return Err(format!(
                "it had not ended after {limit_s} s (login.program_s_max)"
            ));
        }
    }
}

/// Who it says that is: a line `user:NAME`, and perhaps one `groups:GROUP,GROUP`; or a line `error:WHY`, if it cannot tell.
fn user_of(text: &[u8]) -> Result<User, String> {
    let bad = |why: &str| format!("login.program said {why}");
    if text.len() > SAID_OCTETS_MAX {
        return Err(bad("too much"));
    }
    let text = std::str::from_utf8(text).map_err(|_| bad("what is no UTF-8"))?;
    let (mut name, mut groups) = (None, Vec::new());
    for line in text.lines() {
        match line.split_once(':') {
            Some((key, value)) if key.eq_ignore_ascii_case("user") => name = Some(value),
            Some((key, why)) if key.eq_ignore_ascii_case("error") => {
                return Err(format!("login.program said: {why}"));
            }
            Some((key, value)) if key.eq_ignore_ascii_case("groups") => {
                groups = value.split(',').map(str::to_owned).collect();
            }
            _ => {}
        }
    }
    let name = name.ok_or_else(|| bad("no line user:NAME"))?;
    if !is_name(name) || !groups.iter().all(|group| is_name(group)) {
        return Err(bad("a name that no user or group can have here"));
    }
    Ok(User {
        name: name.to_owned(),
        groups,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_program_says() {
        for (text, name, groups) in [
            ("User:ada\r\n", "ada", &[][..]),
            ("user:ada\ngroups:staff,news\n", "ada", &["staff", "news"]),
            ("hello\nuser:ada", "ada", &[]),
            ("user:ada@b.example", "ada@b.example", &[]),
        ] {
            let user = user_of(text.as_bytes()).unwrap();
            assert_eq!(
                (user.name.as_str(), user.groups),
                (name, groups.iter().map(|it| (*it).to_owned()).collect())
            );
        }
        for text in [
            "",
            "ada\n",
            "user: ada\n",
            "user:\n",
            "user:@staff\n",
            "user:ada\ngroups:\n",
            "user:ada\ngroups:a b\n",
            "error:no idea\nuser:ada\n",
        ] {
            assert!(user_of(text.as_bytes()).is_err(), "{text}");
        }
        assert!(user_of(&[b'x'; SAID_OCTETS_MAX + 1]).is_err());
        assert!(user_of(b"user:\xff\n").is_err());
    }
}
