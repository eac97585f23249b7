//! A buffer through many rounds: everything that computes as alive reads back, octet for octet.

use std::collections::BTreeMap;
use std::path::Path;

use newsreel_host::OpenMode;
use newsreel_store::methods::cnfs::Scanned;
use newsreel_store::{Access, BatchWrite, Blocking, CheckpointWrite, ReadError, Store, Want};
use newsreel_wire::{Sequence, Token};
use proptest::prelude::*;

use crate::world::{SPOOL, World, article, id_hash, open, small};

fn check_all(world: &World, placed: &BTreeMap<u64, (Token, usize)>) -> usize {
    let mut alive = 0;
    for (n, (token, len)) in placed {
        match world.read(token) {
            Ok((text, stored)) => {
                assert!(world.reader.is_live(token));
                assert_eq!(text, article(*n, *len).0, "article {n}");
                assert_eq!(stored.id_hash, id_hash(*n));
                alive += 1;
            }
            Err(ReadError::Gone) => assert!(!world.reader.is_live(token), "article {n}"),
            Err(error) => panic!("article {n}: {error}"),
        }
    }
    alive
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn prop_alive_reads_back_through_many_rounds(
        sizes in proptest::collection::vec(60usize..30_000, 100..400),
        every in 1usize..20,
        octets in (1u64 << 20)..(2 << 20),
    ) {
        let mut world = World::new(&small(octets));
        let mut placed = BTreeMap::new();
        for (n, len) in sizes.iter().enumerate() {
            let n = n as u64;
            let token = world.place(n, *len);
            placed.insert(n, (token, *len));
            if (n as usize).is_multiple_of(every) {
                world.commit();
            }
        }
        world.commit();
        let alive = check_all(&world, &placed);
        // The newest articles are alive: at least half of what the two buffers hold.
        let total: usize = sizes.iter().sum();
        let expect = if total < octets as usize { sizes.len() } else { 1 };
        prop_assert!(alive >= expect, "{} alive of {}", alive, sizes.len());
    }
}

#[test]
fn a_restart_goes_on_behind_the_last_article() {
    let config = small(1 << 20);
    let mut world = World::new(&config);
    let mut placed = BTreeMap::new();
    for n in 0..300 {
        placed.insert(n, (world.place(n, 9000), 9000));
    }
    world.commit();
    let before = check_all(&world, &placed);
    let marks = world.marks.clone();
    let next = world.next;
    let disk = world.disk.clone();
    drop(world);
    let mut world = World::on(disk, &config);
    world.store.resume(&marks, Sequence(next - 1)).unwrap();
    world.next = next;
    assert_eq!(check_all(&world, &placed), before);
    for n in 300..310 {
        placed.insert(n, (world.place(n, 9000), 9000));
    }
    world.commit();
    assert!(check_all(&world, &placed) + 30 > before);
}

#[test]
fn a_buffer_ahead_of_the_log_is_not_overwritten_in_its_cycle() {
    let config = small(1 << 20);
    let mut world = World::new(&config);
    let old_marks = world.marks.clone();
    let mut placed = BTreeMap::new();
    for n in 0..40 {
        placed.insert(n, (world.place(n, 3000), 3000));
    }
    world.commit();
    let mut writes: Vec<Box<dyn CheckpointWrite>> = Vec::new();
    world.store.checkpoint(&mut writes);
    for write in &mut writes {
        write.write().unwrap();
    }
    let disk = world.disk.clone();
    drop(world);
    // An old log was put back: it knows nothing of these articles.
    let mut world = World::on(disk, &config);
    world.store.resume(&old_marks, Sequence(3)).unwrap();
    world.next = 4;
    assert_eq!(
        check_all(&world, &placed),
        placed.len(),
        "all of it can still be read"
    );
    let token = world.place(1000, 3000);
    world.commit();
    assert!(token.position().cycle() >= 2, "it went on in a new cycle");
    // Only what lies at the start, where the new cycle begins, has gone.
    assert!(
        placed
            .range(15..)
            .all(|(_, (token, _))| world.reader.is_live(token))
    );
}

#[test]
fn headers_and_bitmap_are_written_and_a_damaged_copy_is_survived() {
    let config = small(1 << 20);
    let mut world = World::new(&config);
    for n in 0..200 {
        world.place(n, 12_000);
        world.commit();
    }
    let mut writes: Vec<Box<dyn CheckpointWrite>> = Vec::new();
    world.store.checkpoint(&mut writes);
    assert!(!writes.is_empty());
    for write in &mut writes {
        write.write().unwrap();
    }
    let disk = world.disk.clone();
    let path = Path::new("/spool/buffers/C0");
    let file = disk.open(path, OpenMode::ReadWrite).unwrap();
    file.write_at(&[0xff; 50], 4).unwrap();
    let again = open(&disk, &config);
    let buffer = &again.reader().buffers()[0].clone();
    assert!(
        buffer
            .complaint
            .as_deref()
            .unwrap_or_default()
            .contains("one header copy")
    );
    file.write_at(&[0xff; 50], 4100).unwrap();
    let error = Store::open(
        disk.as_ref(),
        Path::new("/spool"),
        SPOOL,
        &config,
        &[],
        Access::Write,
        &mut |_, _, _| {},
    );
    assert!(error.unwrap_err().to_string().contains("neither"));
}

#[test]
fn a_flipped_bit_is_noticed_and_costs_one_article() {
    let config = small(1 << 20);
    let mut world = World::new(&config);
    let mut placed = Vec::new();
    for n in 0..30 {
        placed.push(world.place(n, 3000));
    }
    world.commit();
    let victim = placed[7];
    let buffer = world.reader.buffer(victim.buffer()).unwrap();
    let at = victim.position().offset() + 1500;
    let mut octet = [0];
    buffer.file.read_exact_at(&mut octet, at).unwrap();
    buffer.file.write_at(&[octet[0] ^ 1], at).unwrap();
    for (n, token) in placed.iter().enumerate() {
        match world.read(token) {
            Ok((text, _)) => assert_eq!(text, article(n as u64, 3000).0),
            Err(ReadError::Corrupt { .. }) => assert_eq!(n, 7),
            Err(error) => panic!("{error}"),
        }
    }
    // The header block is sound, so HEAD still serves it.
    let mut memory = Vec::new();
    let head = world
        .reader
        .read(&victim, Want::Head, Blocking::Yes, &mut memory)
        .unwrap();
    assert!(memory[head.octets].starts_with(b"Subject: 7\r\n"));
    // A scan finds all records and which one is not sound.
    let mut unsound = Vec::new();
    let mut count = 0;
    for buffer in world.reader.buffers() {
        let mut scan = world.reader.scan(buffer.id).unwrap();
        while let Some(found) = scan.step().unwrap() {
            match found {
                Scanned::Record { token, sound, .. } => {
                    count += 1;
                    if !sound {
                        unsound.push(token);
                    }
                }
                Scanned::Damaged { from, to } => panic!("damage from {from} to {to}"),
            }
        }
    }
    assert_eq!((count, unsound), (30, vec![victim]));
}

#[test]
fn a_failed_buffer_gives_its_articles_back() {
    let config = small(1 << 20);
    let mut world = World::new(&config);
    world.commit();
    let token = world.place(1, 3000);
    let mut batches: Vec<Box<dyn BatchWrite>> = Vec::new();
    world.store.seal(&mut batches);
    let (text, head_len) = article(1, 3000);
    let found = batches
        .iter()
        .find_map(|batch| batch.article(&token))
        .unwrap();
    assert_eq!(found, (&text[..], head_len));
    world.store.suspend(token.buffer());
    let other = world.place(1, 3000);
    assert_ne!(other.buffer(), token.buffer());
    world.store.suspend(other.buffer());
    let place = newsreel_store::Place {
        sequence: Sequence(9),
        arrival: newsreel_wire::UnixTime(0),
        id_hash: id_hash(1),
        set: newsreel_wire::SetId(0),
        article: &[&text],
        head_len,
    };
    assert_eq!(
        world.store.place(&place),
        Err(newsreel_store::PlaceError::Suspended)
    );
}
