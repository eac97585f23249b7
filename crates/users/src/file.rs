//! The file of users; see `docs/formats/users.md`.

use newsreel_host::sealed::{first_line, seal, unseal};

use crate::password::is_hash;
use crate::scram::{self, ScramKeys};

/// What the file begins with, version included.
const MAGIC: &str = "newsreel users 2 ";

/// What one of the version before begins with: it has neither a secret nor keys of SCRAM.
const MAGIC_1: &str = "newsreel users 1 ";

/// In front of the secret, in the second line.
const SECRET: &str = "secret\t";

/// The file is no larger, octets: some 100,000 users.
pub const FILE_OCTETS_MAX: usize = 16 << 20;

/// The longest name of a user or group, octets.
pub const NAME_OCTETS_MAX: usize = 64;

/// Somebody who can log in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    /// What they are called.
    pub name: String,
    /// The groups they are in.
    pub groups: Vec<String>,
    /// Whether they may not log in although the password is right.
    pub is_locked: bool,
    /// The password's hash.
    pub(crate) hash: String,
    /// What SCRAM needs of it, where that is kept.
    pub(crate) scram: Option<ScramKeys>,
}

/// What a file has.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Contents {
    /// What is told of people whom nobody knows depends on it, and on nothing that they know; none in version 1.
    pub(crate) secret: Option<[u8; 32]>,
    /// In the order of their names.
    pub(crate) users: Vec<User>,
}

impl Contents {
    /// Who has this name.
    pub(crate) fn find(&self, name: &str) -> Option<&User> {
        let place = self
            .users
            .binary_search_by(|user| user.name.as_str().cmp(name));
        place.ok().and_then(|place| self.users.get(place))
    }
}

/// Whether a user or group can have this name.
#[must_use]
pub fn is_name(name: &str) -> bool {
    let is_of_name = |c: char| !c.is_whitespace() && !c.is_control() && !",:*\u{fffd}".contains(c);
    (1..=NAME_OCTETS_MAX).contains(&name.len())
        && name.chars().all(is_of_name)
        && name != "-"
        && !name.starts_with('@')
}

/// The text of a file.
pub(crate) fn encode(secret: &[u8; 32], users: &[User]) -> String {
    let mut rows = format!("{SECRET}{}\n", scram::encode(secret));
    for user in users {
        let state = if user.is_locked { "locked" } else { "open" };
        let groups = match user.groups.is_empty() {
            true => "-".to_owned(),
            false => user.groups.join(","),
        };
        let keys = scram::print(user.scram.as_ref());
        rows.push_str(&[&user.name, state, &groups, &user.hash, &keys].join("\t"));
        rows.push('\n');
    }
    format!("{}{rows}", first_line(MAGIC, rows.as_bytes()))
}

/// Octets behind the first line that belongs to them.
pub(crate) fn sealed(rows: &[u8]) -> Vec<u8> {
    seal(MAGIC, rows)
}

/// Reads the text of a file: users in the order of their names, each once.
///
/// # Errors
/// The line, counted from 1, and what is wrong there.
pub(crate) fn decode(octets: &[u8]) -> Result<Contents, (usize, &'static str)> {
    let other = "it is no file of users of version 1 or 2";
    let (version, rows) = unseal(octets, &[MAGIC, MAGIC_1], other).map_err(|why| (1, why))?;
    let is_first = version == 1;
    let mut rows = (2..).zip(rows.split_terminator('\n'));
    let secret = match is_first {
        true => None,
        false => {
            let line = rows.next().and_then(|(_, line)| line.strip_prefix(SECRET));
            Some(
                line.and_then(scram::decode)
                    .ok_or((2, "the secret is malformed"))?,
            )
        }
    };
    let mut users: Vec<User> = Vec::new();
    for (line, row) in rows {
        let user = match is_first {
            true => user(&format!("{row}\t-")),
            false => user(row),
        };
        let user = user.map_err(|why| (line, why))?;
        if users.last().is_some_and(|before| before.name >= user.name) {
            return Err((line, "the names are not in order"));
        }
        users.push(user);
    }
    Ok(Contents { secret, users })
}

fn user(row: &str) -> Result<User, &'static str> {
    let mut fields = row.split('\t');
    let fields = [
        fields.next(),
        fields.next(),
        fields.next(),
        fields.next(),
        fields.next(),
        fields.next(),
    ];
    let [
        Some(name),
        Some(state),
        Some(groups),
        Some(hash),
        Some(keys),
        None,
    ] = fields
    else {
        return Err("it has not its fields");
    };
    let groups: Vec<String> = match groups {
        "-" => Vec::new(),
        groups => groups.split(',').map(str::to_owned).collect(),
    };
    if !is_name(name) || !groups.iter().all(|group| is_name(group)) {
        return Err("a name is malformed");
    }
    let is_locked = match state {
        "open" => false,
        "locked" => true,
        _ => return Err("the state is neither open nor locked"),
    };
    if !is_hash(hash) {
        return Err("the hash is not one of argon2id");
    }
    Ok(User {
        name: name.to_owned(),
        groups,
        is_locked,
        hash: hash.to_owned(),
        scram: scram::parse(keys).ok_or("the keys of SCRAM are malformed")?,
    })
}

#[cfg(test)]
mod tests {
    use super::sealed as sealed_rows;
    use super::*;

    const HASH: &str = "$argon2id$v=19$m=19456,t=2,p=1$bmV3c3JlZWwtbm9ib2R5$bmV3c3JlZWwtbm9ib2R5LW5ld3NyZWVsLW5vYm9keS0";

    fn some(name: &str, groups: &[&str], is_locked: bool) -> User {
        User {
            name: name.into(),
            groups: groups.iter().map(|&group| group.to_owned()).collect(),
            is_locked,
            hash: HASH.into(),
            scram: is_locked.then(|| scram::of_nobody(&[1; 32], name)),
        }
    }

    const OWN: [u8; 32] = [7; 32];

    #[test]
    fn the_file_is_as_its_page_says() {
        let users = [
            some("ada", &["staff", "news"], false),
            some("bob", &[], true),
        ];
        let text = encode(&OWN, &users);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines[1],
            "secret\tBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc="
        );
        assert_eq!(lines[2], format!("ada\topen\tstaff,news\t{HASH}\t-"));
        assert!(lines[3].starts_with(&format!("bob\tlocked\t-\t{HASH}\t65536:")));
        let read = decode(text.as_bytes()).unwrap();
        assert_eq!((read.secret, &read.users[..]), (Some(OWN), &users[..]));
        assert_eq!(decode(encode(&OWN, &[]).as_bytes()).unwrap().users, []);
    }

    /// Whoever had users before there was SCRAM has them still.
    #[test]
    fn the_version_before_is_read() {
        let rows = format!("ada\topen\tstaff,news\t{HASH}\n");
        let text = format!("{}{rows}", first_line(MAGIC_1, rows.as_bytes()));
        let read = decode(text.as_bytes()).unwrap();
        let users = vec![some("ada", &["staff", "news"], false)];
        assert_eq!(
            read,
            Contents {
                secret: None,
                users
            }
        );
        let damaged = text.replace("open", "opem");
        assert_eq!(
            decode(damaged.as_bytes()),
            Err((1, "the checksum is wrong"))
        );
    }

    #[test]
    fn damage_is_told_with_its_line() {
        let text = encode(&OWN, &[some("ada", &[], false)]);
        let flipped = text.replace("open", "opem");
        assert_eq!(
            decode(flipped.as_bytes()),
            Err((1, "the checksum is wrong"))
        );
        assert_eq!(decode(b""), Err((1, "it has no first line")));
        assert_eq!(decode(b"\xff\n"), Err((1, "it is not UTF-8")));
        let other = text.replace("users 2", "users 3");
        assert_eq!(
            decode(other.as_bytes()),
            Err((1, "it is no file of users of version 1 or 2"))
        );
        let sealed = |rows: &str| {
            let rows = format!("{SECRET}{}\n{rows}", scram::encode(&OWN));
            String::from_utf8(sealed_rows(rows.as_bytes())).unwrap()
        };
        let row = |name: &str, state: &str, groups: &str, hash: &str| {
            sealed(&format!("{name}\t{state}\t{groups}\t{hash}\t-\n"))
        };
        for (text, why) in [
            (sealed("ada\topen\n"), "it has not its fields"),
            (row("a b", "open", "-", HASH), "a name is malformed"),
            (row("a", "open", "x,,y", HASH), "a name is malformed"),
            (
                row("a", "shut", "-", HASH),
                "the state is neither open nor locked",
            ),
            (
                row("a", "open", "-", "x"),
                "the hash is not one of argon2id",
            ),
        ] {
            assert_eq!(decode(text.as_bytes()), Err((3, why)), "{text}");
        }
        let keys = format!("a\topen\t-\t{HASH}\t65536:\n");
        let malformed = (3, "the keys of SCRAM are malformed");
        assert_eq!(decode(sealed(&keys).as_bytes()), Err(malformed));
        let none = sealed_rows(b"");
        assert_eq!(decode(&none), Err((2, "the secret is malformed")));
        let twice = format!("a\topen\t-\t{HASH}\t-\n").repeat(2);
        assert_eq!(
            decode(sealed(&twice).as_bytes()),
            Err((4, "the names are not in order"))
        );
        assert_eq!(
            decode(sealed("a").as_bytes()),
            Err((1, "the last line has no end"))
        );
    }
}
