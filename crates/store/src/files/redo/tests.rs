//! What a half is made of, and how it is read.

use newsreel_host::MemoryDisk;
use newsreel_wire::UnixTime;

use super::*;

fn collected(texts: &[&str]) -> Collected {
    let mut collected = Collected::default();
    for (at, text) in texts.iter().enumerate() {
        let start = collected.text.len();
        collected.text.extend_from_slice(text.as_bytes());
        collected.articles.push(Unwritten {
            position: Position(64 * (at as u64 + 1)),
            arrival: UnixTime(1),
            text: start..collected.text.len(),
            native: None,
            head_len: 0,
            names: vec![at.to_string()],
        });
    }
    collected
}

fn of(texts: &[&str]) -> Vec<u8> {
    let collected = collected(texts);
    Stretch::of(&collected, collected.articles.iter())
        .unwrap()
        .octets
}

#[test]
fn the_layout_is_fixed() {
    let out = of(&["a\r\n", "bc\r\n"]);
    let payload =
        b"\x40\0\0\0\0\0\0\0\x03\0\0\0\0\0\0\0a\r\n\x80\0\0\0\0\0\0\0\x04\0\0\0\0\0\0\0bc\r\n";
    let mut front = b"nr-redo\n\x01\0\0\0\x02\0\0\0\0\0\0\0\0\0\0\0\x27\0\0\0\0\0\0\0".to_vec();
    front.extend_from_slice(&crc32c::crc32c(payload).to_le_bytes());
    front.extend_from_slice(&[0; 8]);
    front.extend_from_slice(&crc32c::crc32c(&front).to_le_bytes());
    assert_eq!(out[..FRONT], front);
    assert_eq!(out[FRONT..FRONT + payload.len()], *payload);
    assert!(out[FRONT + payload.len()..].iter().all(|octet| *octet == 0));
    assert_eq!(out.len() as u64, PAGE);
}

#[test]
fn what_is_kept_is_told_as_it_was() {
    let long = "x".repeat(9000);
    let texts = ["", "one\r\n", &long];
    let out = of(&texts);
    let front = Front::decode(&out).unwrap();
    let found: Vec<Kept<'_>> = entries(&out[FRONT..][..front.octets as usize]).collect();
    let expected = texts
        .iter()
        .enumerate()
        .map(|(at, text)| (Position(64 * (at as u64 + 1)), text.as_bytes()));
    assert_eq!(found, expected.collect::<Vec<_>>());
}

/// A front that says more than there is, one that is damaged, and what no page begins with.
#[test]
fn stretches_are_found_behind_what_is_damaged() {
    let disk = MemoryDisk::new();
    let file = disk.open("/half".as_ref(), OpenMode::CreateNew).unwrap();
    let long = "y".repeat(5000);
    let (first, second) = (of(&[&long]), of(&["z"]));
    file.write_at(&first, 0).unwrap();
    let mut cut = second.clone();
    let front = Front {
        epoch: 3,
        octets: 1 << 40,
        files: 1,
        crc: 0,
    };
    cut[..FRONT].copy_from_slice(&front.encode());
    file.write_at(&cut, first.len() as u64).unwrap();
    file.write_at(&second, first.len() as u64 + PAGE).unwrap();
    let starts = || {
        let found = stretches(&*file).unwrap().into_iter();
        found.map(|(at, _)| at).collect::<Vec<u64>>()
    };
    assert_eq!(starts(), [0, first.len() as u64 + PAGE]);
    disk.flip_bit("/half".as_ref(), 20, 1).unwrap();
    assert_eq!(starts(), [first.len() as u64 + PAGE]);
}
