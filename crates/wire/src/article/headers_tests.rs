//! Tests of the header scanner: text in, text out.

use expect_test::{Expect, expect};
use proptest::prelude::*;

use super::{HeaderLimits, Headers, Known};

/// Shows what the scanner makes of an article written with bare line feeds.
fn check(text: &str, expected: &Expect) {
    let wire = text.replace('\n', "\r\n");
    let shown = match Headers::scan(wire.as_bytes()) {
        Err(fault) => format!("{fault:?}\n"),
        Ok(headers) => {
            let show = |octets: &[u8]| String::from_utf8_lossy(octets).escape_debug().to_string();
            let mut out = String::new();
            for field in headers.fields() {
                let whole = headers.wire().get(field.start..field.end).unwrap();
                assert!(whole.ends_with(b"\r\n"));
                out += &format!(
                    "{}|{}|{:?}\n",
                    show(field.name),
                    show(field.content),
                    field.known()
                );
            }
            out += &format!(
                "doubled {:?} body {:?}\n",
                headers.doubled(),
                show(headers.body())
            );
            out
        }
    };
    expected.assert_eq(&shown);
}

#[test]
fn takes_an_article_apart() {
    check(
        "Path: a!b\nsubject:  two  words \nX-Other: \n  folded\n\tagain\nDATE:\tnow\n\nbody\n.\n",
        &expect![[r#"
            Path|a!b|Some(Path)
            subject|two  words |Some(Subject)
            X-Other|\r\n  folded\r\n\tagain|None
            DATE|now|Some(Date)
            doubled {} body "body\\r\\n.\\r\\n"
        "#]],
    );
}

#[test]
fn a_stuffed_dot_before_a_name_is_not_part_of_it() {
    check(
        "..Odd: 1\n.Odder: 2\n\n.\n",
        &expect![[r#"
        .Odd|1|None
        Odder|2|None
        doubled {} body ".\\r\\n"
    "#]],
    );
}

#[test]
fn the_first_of_a_doubled_field_counts() {
    check(
        "Path: a\nLines: 1\npath: b\n\n.\n",
        &expect![[r#"
        Path|a|Some(Path)
        Lines|1|Some(Lines)
        path|b|Some(Path)
        doubled {Path} body ".\\r\\n"
    "#]],
    );
    let headers = Headers::scan(b"Path: a\r\nPath: b\r\n\r\n.\r\n").unwrap();
    assert_eq!(headers.content(Known::Path), Some(&b"a"[..]));
}

#[test]
fn refuses_by_reason() {
    check("", &expect![["NoBlankLine { at: 0 }\n"]]);
    check("\nbody\n.\n", &expect![["NoFields\n"]]);
    check(" a: b\n\n.\n", &expect![["Continuation { at: 0 }\n"]]);
    check(
        "A: b\nno colon here\n\n.\n",
        &expect![["NoColon { at: 6 }\n"]],
    );
    check("A: b\nnocolon\n\n.\n", &expect![["NoColon { at: 6 }\n"]]);
    check("A : b\n\n.\n", &expect![["Name { at: 0 }\n"]]);
    check(": b\n\n.\n", &expect![["Name { at: 0 }\n"]]);
    check("A\u{e9}: b\n\n.\n", &expect![["Name { at: 0 }\n"]]);
    check("A:b\n\n.\n", &expect![["NoSpaceAfterColon { at: 0 }\n"]]);
    check("A:\n\n.\n", &expect![["NoSpaceAfterColon { at: 0 }\n"]]);
    check("A: b\n.\n", &expect![["NoBlankLine { at: 6 }\n"]]);
    check("A: b", &expect![["NoBlankLine { at: 0 }\n"]]);
}

#[test]
fn only_crlf_ends_a_line() {
    let fault = |wire: &[u8]| format!("{:?}", Headers::scan(wire).map(|_| ()));
    assert_eq!(fault(b"A: b\nB: c\r\n\r\n.\r\n"), "Err(BareLf { at: 4 })");
    assert_eq!(fault(b"A: b\r\n\n.\r\n"), "Err(BareLf { at: 6 })");
    // A bare CR is content: the octet facts report it.
    assert_eq!(fault(b"A: b\rB: c\r\n\r\n.\r\n"), "Ok(())");
}

#[test]
fn limits() {
    let HeaderLimits { octets, fields } = HeaderLimits::USUAL;
    check_limits(octets, fields, |wire| Headers::scan(wire));
    for (octets, fields) in [(1024, 1), (1 << 20, 10_000)] {
        check_limits(octets, fields, |wire| {
            Headers::scan_within(wire, HeaderLimits { octets, fields })
        });
    }
    assert!(Headers::scan_stored("A: b\r\n".repeat(65_535).as_bytes()).is_err());
    let most = format!("{}\r\n.\r\n", "A: b\r\n".repeat(65_535));
    assert!(Headers::scan_stored(most.as_bytes()).is_ok());
    assert!(Headers::scan_stored(format!("A: b\r\n{most}").as_bytes()).is_err());
}

fn check_limits(
    octets_max: usize,
    fields_max: usize,
    scan: impl Fn(&[u8]) -> Result<Headers<'_>, crate::error::HeaderFault>,
) {
    let block = |len: usize| format!("A: {}\r\n\r\n.\r\n", "x".repeat(len - 7));
    assert!(scan(block(octets_max).as_bytes()).is_ok());
    let fault = format!("{:?}", scan(block(octets_max + 1).as_bytes()).map(|_| ()));
    assert_eq!(fault, format!("Err(TooLarge {{ at: {} }})", octets_max - 1));

    let fields = |count: usize| format!("{}\r\n.\r\n", "A: b\r\n".repeat(count));
    let headers = fields(fields_max);
    assert_eq!(scan(headers.as_bytes()).unwrap().fields().len(), fields_max);
    assert_eq!(
        format!("{:?}", scan(fields(fields_max + 1).as_bytes()).map(|_| ())),
        format!("Err(TooManyFields {{ at: {} }})", 6 * fields_max)
    );
}

#[test]
fn find_by_any_name() {
    let headers = Headers::scan(b"X-a: 1\r\nx-A: 2\r\nDate: 3\r\n\r\n.\r\n").unwrap();
    let find = |name: &[u8]| headers.find(name).map(|field| field.content);
    assert_eq!(find(b"x-a"), Some(&b"1"[..]));
    assert_eq!(find(b"date"), Some(&b"3"[..]));
    assert_eq!(find(b"path"), None);
}

proptest! {
    #[test]
    fn prop_any_octets_scan_without_panic(wire in proptest::collection::vec(prop_oneof![
        Just(b'\r'), Just(b'\n'), Just(b'.'), Just(b':'), Just(b' '), Just(b'A'), any::<u8>()], 0..200)) {
        if let Ok(headers) = Headers::scan(&wire) {
            let mut end = 0;
            for field in headers.fields() {
                prop_assert_eq!(field.start, end);
                prop_assert!(field.content_start <= field.end - 2);
                end = field.end;
            }
            prop_assert_eq!(end + 2, headers.body_start());
            prop_assert_eq!(headers.block().len(), end);
            prop_assert_eq!(headers.block().split_inclusive(|&octet| octet == b'\n').count(), headers.lines());
        }
    }

    #[test]
    fn prop_fields_round_trip(fields in proptest::collection::vec(("[!-9;-~]{1,12}", "[ -~]{0,30}(\r\n [!-~]{1,9})?"), 1..60)) {
        let mut wire = Vec::new();
        for (name, content) in &fields {
            let stuffing = if name.starts_with('.') { "." } else { "" };
            wire.extend_from_slice(format!("{stuffing}{name}: {content}\r\n").as_bytes());
        }
        wire.extend_from_slice(b"\r\n.\r\n");
        let headers = Headers::scan(&wire).unwrap();
        let found: Vec<_> = headers.fields().map(|field| (field.name.to_vec(), field.content.to_vec())).collect();
        let expected: Vec<_> = fields.iter()
            .map(|(name, content)| (name.clone().into_bytes(), content.trim_start_matches(' ').as_bytes().to_vec()))
            .collect();
        prop_assert_eq!(found, expected);
    }
}
