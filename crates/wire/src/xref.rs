//! What an Xref says (RFC 5536 section 3.2.14): a server's name, then `group:number` for each place.
//!
//! Whatever does not have that form is passed over: an Xref is no reason to refuse anything.

use crate::ArticleNumber;

/// The groups and numbers in the content of an Xref, folded or not.
pub fn places(xref: &[u8]) -> impl Iterator<Item = (&str, ArticleNumber)> {
    let xref = std::str::from_utf8(xref).unwrap_or_default();
    xref.split_ascii_whitespace().skip(1).filter_map(|place| {
        let (name, number) = place.rsplit_once(':')?;
        Some((name, ArticleNumber(number.parse().ok()?)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_xref_is_taken_apart() {
        let found: Vec<_> = places(b"us misc.test:7 x\r\n misc.a:b:8 misc.c:x").collect();
        let expect = [
            ("misc.test", ArticleNumber(7)),
            ("misc.a:b", ArticleNumber(8)),
        ];
        assert_eq!(found, expect);
        assert_eq!(places(b"us \xff:1").count(), 0);
    }
}
