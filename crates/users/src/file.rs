//! The file of users; see `docs/formats/users.md`.

use crate::password::is_hash;

/// What the file begins with, version included.
const MAGIC: &str = "newsreel users 1 ";

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
}

/// Whether a user or group can have this name.
pub(crate) fn is_name(name: &str) -> bool {
    let is_of_name = |c: char| !c.is_whitespace() && !c.is_control() && !"@,:*\u{fffd}".contains(c);
    (1..=NAME_OCTETS_MAX).contains(&name.len()) && name.chars().all(is_of_name) && name != "-"
}

/// The text of a file.
pub(crate) fn encode(users: &[User]) -> String {
    let mut rows = String::new();
    for user in users {
        let state = if user.is_locked { "locked" } else { "open" };
        let groups = match user.groups.is_empty() {
            true => "-".to_owned(),
            false => user.groups.join(","),
        };
        rows.push_str(&[&user.name, state, &groups, &user.hash].join("\t"));
        rows.push('\n');
    }
    format!("{}{rows}", first_line(rows.as_bytes()))
}

/// The line that belongs in front of these rows.
fn first_line(rows: &[u8]) -> String {
    format!("{MAGIC}{:08x}\n", crc32c::crc32c(rows))
}

/// Octets behind the first line that belongs to them.
pub(crate) fn sealed(rows: &[u8]) -> Vec<u8> {
    [first_line(rows).as_bytes(), rows].concat()
}

/// Reads the text of a file: users in the order of their names, each once.
///
/// # Errors
/// The line, counted from 1, and what is wrong there.
pub(crate) fn decode(octets: &[u8]) -> Result<Vec<User>, (usize, &'static str)> {
    let text = std::str::from_utf8(octets).map_err(|_| (1, "it is not UTF-8"))?;
    let (first, rows) = text.split_once('\n').ok_or((1, "it has no first line"))?;
    let sum = first
        .strip_prefix(MAGIC)
        .ok_or((1, "it is no file of users of version 1"))?;
    if sum != format!("{:08x}", crc32c::crc32c(rows.as_bytes())) {
        return Err((1, "the checksum is wrong"));
    }
    if !rows.is_empty() && !rows.ends_with('\n') {
        return Err((1, "the last line has no end"));
    }
    let mut users: Vec<User> = Vec::new();
    for (at, row) in rows.split_terminator('\n').enumerate() {
        let user = user(row).map_err(|why| (at + 2, why))?;
        if users.last().is_some_and(|before| before.name >= user.name) {
            return Err((at + 2, "the names are not in order"));
        }
        users.push(user);
    }
    Ok(users)
}

fn user(row: &str) -> Result<User, &'static str> {
    let mut fields = row.split('\t');
    let fields = [
        fields.next(),
        fields.next(),
        fields.next(),
        fields.next(),
        fields.next(),
    ];
    let [Some(name), Some(state), Some(groups), Some(hash), None] = fields else {
        return Err("it has not four fields");
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
        }
    }

    #[test]
    fn the_file_is_as_its_page_says() {
        let users = [
            some("ada", &["staff", "news"], false),
            some("bob", &[], true),
        ];
        let text = encode(&users);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[1], format!("ada\topen\tstaff,news\t{HASH}"));
        assert_eq!(lines[2], format!("bob\tlocked\t-\t{HASH}"));
        assert_eq!(decode(text.as_bytes()).unwrap(), users);
        assert_eq!(decode(encode(&[]).as_bytes()).unwrap(), []);
    }

    #[test]
    fn damage_is_told_with_its_line() {
        let text = encode(&[some("ada", &[], false)]);
        let flipped = text.replace("open", "opem");
        assert_eq!(
            decode(flipped.as_bytes()),
            Err((1, "the checksum is wrong"))
        );
        assert_eq!(decode(b""), Err((1, "it has no first line")));
        assert_eq!(decode(b"\xff\n"), Err((1, "it is not UTF-8")));
        let other = text.replace("users 1", "users 2");
        assert_eq!(
            decode(other.as_bytes()),
            Err((1, "it is no file of users of version 1"))
        );
        let sealed = |rows: &str| String::from_utf8(sealed_rows(rows.as_bytes())).unwrap();
        let row = |name: &str, state: &str, groups: &str, hash: &str| {
            sealed(&format!("{name}\t{state}\t{groups}\t{hash}\n"))
        };
        for (text, why) in [
            (sealed("ada\topen\n"), "it has not four fields"),
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
            assert_eq!(decode(text.as_bytes()), Err((2, why)), "{text}");
        }
        let twice = format!("a\topen\t-\t{HASH}\n").repeat(2);
        assert_eq!(
            decode(sealed(&twice).as_bytes()),
            Err((3, "the names are not in order"))
        );
        assert_eq!(
            decode(sealed("a").as_bytes()),
            Err((1, "the last line has no end"))
        );
    }
}
