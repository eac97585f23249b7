//! Any octets for a segment: decoders answer, they never panic; and frames round-trip.

use newsreel_host::{Disk, MemoryDisk, read_whole};
use newsreel_journal::{FrameBuilder, Recovery, decode_segment};
use newsreel_wire::Sequence;
use proptest::collection::vec;
use proptest::prelude::*;

use crate::support::{Dice, Log, SEGMENT, SPOOL, as_disk, config, dir};

fn segment() -> Vec<u8> {
    let memory = MemoryDisk::new();
    let (mut log, _) = Log::open(&as_disk(&memory), 1).unwrap();
    log.commit_all([1, 2, 30, 4, 1, 1]);
    drop(log);
    let names = memory.list(dir()).unwrap();
    read_whole(&memory, &dir().join(&names[0].name), 1 << 20).unwrap()
}

#[test]
fn a_sound_segment_is_digested() {
    let digest = decode_segment(&segment()).unwrap();
    assert!(digest.has_header && !digest.is_cut);
    assert_eq!((digest.frames, digest.records, digest.damaged), (6, 39, 0));
}

#[test]
fn mutated_segments_are_digested_without_panic() {
    let sound = segment();
    let used = sound.iter().rposition(|b| *b != 0).unwrap() as u64 + 1;
    for seed in 0..400 {
        let mut dice = Dice(seed);
        let mut octets = sound.clone();
        for _ in 0..1 + dice.roll(6) {
            let at = usize::try_from(dice.roll(used)).unwrap();
            match dice.roll(5) {
                0 => octets[at] ^= 1 << dice.roll(8),
                1 => octets[at] = dice.roll(256) as u8,
                2 => octets.truncate(octets.len().min(at)),
                3 => {
                    let page = at / 4096 * 4096;
                    let other = usize::try_from(dice.roll(SEGMENT / 4096)).unwrap() * 4096;
                    if let Some(copy) = sound.get(other..other + 4096)
                        && let Some(place) = octets.get_mut(page..page + 4096)
                    {
                        place.copy_from_slice(copy);
                    }
                }
                _ => {
                    let place = octets.get_mut(at..).unwrap_or_default();
                    place.iter_mut().take(8).for_each(|b| *b = 0xff);
                }
            }
            if octets.is_empty() {
                break;
            }
            octets.resize(octets.len().max(usize::try_from(used).unwrap()), 0);
        }
        let digest = decode_segment(&octets).unwrap();
        assert!(digest.records <= 39, "seed {seed}: nothing is made up");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn prop_any_octets_are_digested(octets in vec(any::<u8>(), 0..20_000)) {
        prop_assert_eq!(decode_segment(&octets).unwrap().frames, 0);
    }

    #[test]
    fn prop_frames_round_trip(
        frames in vec(vec((any::<u8>(), vec(any::<u8>(), 0..700)), 1..20), 1..12),
        vouch in any::<bool>(),
    ) {
        let disk = as_disk(&MemoryDisk::new());
        let open = || Recovery::open(disk.clone(), dir(), config(), SPOOL, Sequence(1));
        let (mut writer, _, recovered) = open().unwrap().finish().unwrap();
        let mut builder = FrameBuilder::new();
        for frame in &frames {
            let first = writer.next();
            builder.start(first, recovered.epoch);
            builder.vouch(if vouch { first } else { Sequence::ZERO });
            for (n, (kind, payload)) in frame.iter().enumerate() {
                if n % 2 == 0 {
                    builder.push(*kind, &[payload]);
                } else {
                    builder.record(*kind).extend_from_slice(payload);
                }
            }
            let mirrored: Vec<_> =
                builder.records().map(|r| (r.kind, r.payload.to_vec())).collect();
            prop_assert_eq!(&mirrored, frame);
            writer.write(&builder).unwrap();
        }
        writer.sync().unwrap();
        drop(writer);
        let mut recovery = open().unwrap();
        let mut sequence = 1;
        for frame in &frames {
            let found = recovery.next_frame().unwrap().unwrap();
            prop_assert_eq!(found.first(), Sequence(sequence));
            prop_assert_eq!(found.vouched_before().0, if vouch { sequence } else { 0 });
            prop_assert_eq!(found.epoch(), 1);
            let records: Vec<_> = found
                .records()
                .map(|r| {
                    assert_eq!(r.sequence, Sequence(sequence));
                    sequence += 1;
                    (r.kind, r.payload.to_vec())
                })
                .collect();
            prop_assert_eq!(&records, frame);
        }
        prop_assert!(recovery.next_frame().unwrap().is_none());
    }
}
