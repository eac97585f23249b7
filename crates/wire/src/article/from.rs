//! The From field, as far as a relaying agent looks at it (RFC 5536 section 3.1.2).
//!
//! It must be possible to say where an address begins and ends: angle brackets come in pairs.  Whether what stands there
//! is an address is not asked: articles from `(Some Name)`, `host!user` and `<user at home dot com>` have been relayed
//! since there is Usenet, and refusing them would lose articles that every other server has.

use crate::error::FromError;

/// Looks at the content of a From field.
///
/// # Errors
/// When an angle bracket has no partner, neither counted as it is nor outside quoted strings and comments.
pub(super) fn check(content: &[u8]) -> Result<(), FromError> {
    // Done for every article: nearly all have no brackets, or one pair around the end.
    match memchr::memchr2(b'<', b'>', content) {
        None => Ok(()),
        Some(first) => check_brackets(content, first),
    }
}

#[inline(never)]
fn check_brackets(content: &[u8], first: usize) -> Result<(), FromError> {
    let mut depth = 0usize;
    for octet in content.get(first..).unwrap_or_default() {
        match octet {
            b'<' => depth += 1,
            b'>' if depth == 0 => return outside(content),
            b'>' => depth -= 1,
            _ => {}
        }
    }
    if depth == 0 { Ok(()) } else { outside(content) }
}

/// The same outside quoted strings and comments; one that is not closed goes on to the end.
#[cold]
fn outside(content: &[u8]) -> Result<(), FromError> {
    let (mut depth, mut comments, mut quoted, mut escaped) = (0usize, 0usize, false, false);
    for octet in content {
        if escaped {
            escaped = false;
            continue;
        }
        match octet {
            b'\\' if quoted || comments > 0 => escaped = true,
            b'"' if comments == 0 => quoted = !quoted,
            _ if quoted => {}
            b'(' => comments += 1,
            b')' => comments = comments.saturating_sub(1),
            _ if comments > 0 => {}
            b'<' => depth += 1,
            b'>' => depth = depth.checked_sub(1).ok_or(FromError::Bracket)?,
            _ => {}
        }
    }
    if depth == 0 {
        Ok(())
    } else {
        Err(FromError::Bracket)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_on_the_net_is_taken() {
        for content in [
            "ada@a.example",
            "Ada <ada@a.example>",
            "\"A. B\" <ada@a.example>, bob@b.example (Bob)",
            "old.example!ada (Ada)",
            "Ada B. Example",
            "(Ada)",
            "()",
            "Ada <>",
            "Ada <@a.example>",
            "Ada <ada at a dot example>",
            "Ada <ada<nospam>@a.example>",
            "ada@a.example (the >real< one)",
            "ada@a.example (Ada \"<\")",
            "\"<Ada\" <ada@a.example>",
            "\"a\\\">\" ada@a.example",
            "ada@a.example (Ada",
            "ada@a.example \"(Ada",
        ] {
            assert_eq!(check(content.as_bytes()), Ok(()), "{content}");
        }
    }

    #[test]
    fn brackets_come_in_pairs() {
        for content in [
            "not an address at all <<<",
            "Ada <ada@a.example",
            "Ada ada@a.example>",
            "> ada@a.example <",
            "Ada <ada@a.example> <",
            "(<) Ada <ada@a.example",
        ] {
            assert_eq!(
                check(content.as_bytes()),
                Err(FromError::Bracket),
                "{content}"
            );
        }
    }

    proptest! {
        #[test]
        fn prop_without_brackets_all_is_taken(content in "[^<>]{0,60}") {
            prop_assert_eq!(check(content.as_bytes()), Ok(()));
        }
    }
}
