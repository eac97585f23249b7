//! Buffers of 16 TB, and the largest there can be: places at their ends, tokens, bits, and the way around.  Sparse, so that a test has room.

use std::path::Path;
use std::sync::Arc;

use newsreel_host::{MemoryDisk, OpenMode};
use newsreel_store::conformance::Rig;
use newsreel_store::methods::cnfs::{FileHeader, Geometry, Hints, PAGE};
use newsreel_store::{Access, BufferReader};
use newsreel_wire::{OFFSET_MAX, Position, Token, TokenText};

use crate::common::{ARTICLE, FILE, alive, recovered, sized};

/// What the issue asks for, what positions have bits for, and the unit more that a file of 16 TiB has.
const SIZES: [u64; 3] = [16_000_000_000_000, OFFSET_MAX - OFFSET_MAX % PAGE, 1 << 44];
/// Where it stands: so much is left in front of its end.
const LEFT: u64 = 300_000;

#[test]
fn positions_and_bits_reach_to_the_end() {
    for octets in SIZES {
        for block in [64, 4096] {
            let geometry = Geometry::of(octets, block).unwrap();
            assert_eq!(geometry.data_end, octets.min(OFFSET_MAX) / PAGE * PAGE);
            let last = geometry.data_end - block;
            let at = Position::checked(7, last).unwrap();
            assert_eq!((at.cycle(), at.offset()), (7, last));
            assert!(geometry.holds(at, block) && !geometry.holds(at, block + 1));
            // A bit for every block, behind two headers and in front of the first article.
            let bits = (geometry.data_start - 2 * PAGE) * 8;
            assert!(bits >= geometry.data_end / block, "{octets} {block}");
            assert!(
                bits < geometry.data_end / block + 2 * 8 * PAGE,
                "{octets} {block}"
            );
            let start = geometry.start_of(8).unwrap();
            assert!(start > at && start.offset() == geometry.data_start);
            let text = TokenText {
                name: "SD1",
                position: at,
            }
            .to_string();
            assert_eq!(text, format!("SD1:{last:x}:7"));
            let (name, position) = TokenText::parse(&text)
                .map(|it| (it.name, it.position))
                .unwrap();
            assert_eq!((name, position), ("SD1", at));
        }
    }
    assert!(
        Geometry::of((1 << 44) + 1, 64).is_none(),
        "one octet more than positions have"
    );
    assert!(Position::checked(0, 1 << 44).is_none());
}

/// A buffer that stands shortly before its end, in its first cycle.
fn near_the_end(octets: u64) -> Rig {
    let config = sized(octets);
    let rig = Rig::new(Arc::new(MemoryDisk::new()), &config).unwrap();
    let file = rig.disk.open(Path::new(FILE), OpenMode::ReadWrite).unwrap();
    let mut page = vec![0; 4096];
    file.read_exact_at(&mut page, 0).unwrap();
    let header = FileHeader::decode(&page).unwrap();
    let end = header.geometry().unwrap().data_end - LEFT / PAGE * PAGE;
    let at = Position::checked(1, end).unwrap();
    let hints = Hints {
        end: at,
        reserved: at,
        bitmap_end: at,
        ..header.hints
    };
    for (generation, copy) in [(header.generation + 1, 0), (header.generation + 2, PAGE)] {
        let header = FileHeader {
            generation,
            hints,
            ..header.clone()
        };
        file.write_at(&header.encode(), copy).unwrap();
    }
    file.sync_all().unwrap();
    recovered(&rig, &config).unwrap()
}

#[test]
fn articles_go_up_to_the_end_and_around_it() {
    for octets in SIZES {
        let config = sized(octets);
        let mut rig = near_the_end(octets);
        let facts = rig.reader.facts().remove(0);
        assert_eq!((facts.cycle, facts.octets), (1, octets));
        assert!(
            facts.free_offset > octets - 400_000,
            "{}",
            facts.free_offset
        );
        for n in 0..200 {
            rig.place(n, ARTICLE).unwrap();
            if n % 10 == 9 {
                rig.commit().unwrap();
            }
        }
        let tokens = alive(&rig);
        let (ahead, around): (Vec<Token>, Vec<Token>) = tokens
            .iter()
            .copied()
            .partition(|token| token.position().cycle() == 1);
        assert_eq!(
            tokens.len(),
            200,
            "what is older is not overwritten by these"
        );
        assert!((80..120).contains(&ahead.len()), "{}", ahead.len());
        let last = ahead.iter().map(|token| token.position().offset()).max();
        assert!(last.unwrap() > octets - 20_000, "{last:?}");
        let start = Geometry::of(octets, 64).unwrap().start_of(2).unwrap();
        let first = around.iter().map(|token| token.position()).min();
        assert_eq!(first, Some(start));
        let all = rig.read_all();
        assert_eq!((all.read, all.corrupt), (200, 0));

        // Its bits, and a start behind a power cut.
        rig.checkpoint().unwrap();
        let buffer = Arc::clone(rig.reader.buffers()[0]);
        let stretch = Position::checked(1, octets - (1 << 20)).unwrap()
            ..Position::checked(1, OFFSET_MAX).unwrap();
        let bits = bits(buffer.as_ref(), stretch);
        let expected: Vec<_> = ahead.iter().map(|token| token.position()).collect();
        assert_eq!(bits, expected);
        let again = recovered(&rig, &config).unwrap();
        assert_eq!((again.read_all(), alive(&again)), (all, tokens));
        let disk = Arc::clone(&rig.disk);
        let looking = Rig::recover(disk, &config, rig.log.clone(), Access::ReadOnly).unwrap();
        assert_eq!(looking.read_all(), all);
    }
}

fn bits(buffer: &dyn BufferReader, stretch: std::ops::Range<Position>) -> Vec<Position> {
    buffer.bits(stretch).unwrap().unwrap()
}
