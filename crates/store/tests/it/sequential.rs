//! Buffers that are filled one after the other: what lies in one goes when the set comes to it again, and not before.

use std::sync::Arc;

use newsreel_host::MemoryDisk;
use newsreel_store::conformance::{Rig, config_of};
use newsreel_store::{Access, SetOrder, StoreConfig};
use newsreel_wire::Token;

const SIZES: [u64; 3] = [1 << 20, 3 << 20, 2 << 20];
const ARTICLE: usize = 3000;
/// Some cycles of all of them.
const ARTICLES: u64 = 6000;

fn config(block_octets: u64) -> StoreConfig {
    let mut config = config_of("cnfs", 1 << 20);
    let mut third = config.buffers[0].clone();
    third.name = "C2".to_owned();
    config.buffers.push(third);
    config.sets[0].buffers.push("C2".to_owned());
    for (buffer, octets) in config.buffers.iter_mut().zip(SIZES) {
        (buffer.octets, buffer.block_octets) = (octets, Some(block_octets));
    }
    config.sets[0].order = SetOrder::Sequential;
    config
}

/// A turn: what was placed in one buffer before the set went on to the next.
struct Turn {
    first: Token,
    count: u64,
}

/// Places articles and looks after each commit: what is gone are the oldest of all, all of one buffer, and only when that has its turn.
/// Starts anew now and then.
fn turns(block_octets: u64, restart_every: Option<u64>) -> Vec<Turn> {
    let config = config(block_octets);
    let mut rig = Rig::new(Arc::new(MemoryDisk::new()), &config).unwrap();
    let (mut tokens, mut turns): (Vec<Token>, Vec<Turn>) = (Vec::new(), Vec::new());
    let mut dead = 0;
    for number in 0..ARTICLES {
        if restart_every.is_some_and(|every| number % every == every - 1) {
            rig.commit().unwrap();
            let (disk, log) = (Arc::clone(&rig.disk), rig.log.clone());
            rig = Rig::recover(disk, &config, log, Access::Write).unwrap();
        }
        let token = rig.place(number, ARTICLE).unwrap();
        tokens.push(token);
        match turns.last_mut() {
            Some(turn) if turn.first.buffer() == token.buffer() => turn.count += 1,
            _ => turns.push(Turn {
                first: token,
                count: 1,
            }),
        }
        let what = format!("{number}, blocks of {block_octets}, {restart_every:?}");
        while let Some(oldest) = tokens.get(dead).filter(|it| !rig.reader.is_live(it)) {
            // Behind the turn goes what lay in the rest of its cycle.
            let mut last = turns.iter().rev().take(2).map(|turn| turn.first);
            let turn = last.find(|first| first.buffer() == oldest.buffer());
            let is_before = |turn: &Token| oldest.position().cycle() < turn.position().cycle();
            assert!(turn.as_ref().is_some_and(is_before), "{what}: {oldest:?}");
            dead += 1;
        }
        let alive = tokens[dead..].iter().filter(|it| rig.reader.is_live(it));
        assert_eq!(alive.count(), tokens.len() - dead, "{what}");
        if number % 7 == 0 {
            rig.commit().unwrap();
        }
    }
    rig.commit().unwrap();
    assert_eq!(rig.read_all().corrupt, 0);
    turns
}

/// A reservation reached into the next cycle while the last of a buffer was filled, so that its oldest articles went before the next buffer
/// was ever written.
#[test]
fn nothing_of_a_buffer_goes_before_the_set_comes_to_it_again() {
    for block_octets in [64, 4096] {
        for restart_every in [None, Some(11), Some(97)] {
            let turns = turns(block_octets, restart_every);
            assert!(turns.len() > 2 * SIZES.len());
            for (nth, turn) in turns.iter().enumerate() {
                let what = format!("turn {nth}, blocks of {block_octets}, {restart_every:?}");
                let at = nth % SIZES.len();
                assert_eq!(usize::from(turn.first.buffer().0), at + 1, "{what}");
                let cycle = 1 + (nth / SIZES.len()) as u32;
                assert_eq!(turn.first.position().cycle(), cycle, "{what}");
                // A batch begins on a page.
                let is_last = nth + 1 == turns.len();
                let octets = turn.count * (ARTICLE as u64 + 4096);
                assert!(is_last || octets > SIZES[at], "{what}: {}", turn.count);
            }
        }
    }
}

/// What is too large for the others goes to the largest, also when it is not its turn; that ends nobody's turn.
#[test]
fn a_large_article_out_of_turn_costs_no_turn() {
    let config = config(64);
    let mut rig = Rig::new(Arc::new(MemoryDisk::new()), &config).unwrap();
    let largest = config.buffers[1].octets / 5;
    let mut turns: Vec<(u16, u64)> = Vec::new();
    for number in 0..ARTICLES {
        if number % 150 == 0 {
            let token = rig.place(1_000_000 + number, largest as usize).unwrap();
            assert_eq!(token.buffer().0, 2);
            rig.commit().unwrap();
        }
        let buffer = rig.place(number, ARTICLE).unwrap().buffer().0;
        match turns.last_mut() {
            Some((of, count)) if *of == buffer => *count += 1,
            _ => turns.push((buffer, 1)),
        }
        if number % 7 == 0 {
            rig.commit().unwrap();
        }
    }
    assert_eq!(rig.read_all().corrupt, 0);
    turns.pop();
    for (nth, (buffer, count)) in turns.iter().enumerate() {
        assert_eq!(usize::from(*buffer), nth % 3 + 1, "{turns:?}");
        // The largest has what is large as well, and one of those may be all that was left of its cycle.
        assert!(*buffer == 2 || *count > 100, "{turns:?}");
        assert!(*count > 1, "{turns:?}");
    }
}
