//! Readers of large articles against a small buffer that wraps all the time: right octets or none.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use newsreel_host::RealDisk;
use newsreel_store::{Blocking, ReadError, Want};
use newsreel_wire::Token;

use crate::world::{World, article, small};

const LEN: usize = 700_000;
const ROUNDS: u64 = 300;

#[test]
fn overtaken_readers_never_get_mixed_octets() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = small(16 << 20);
    for buffer in &mut config.buffers {
        buffer.path = Some(dir.path().join(&buffer.name));
    }
    let mut world = World::on(Arc::new(RealDisk), &config);
    let newest: Arc<[(AtomicU64, parking_lot::Mutex<Option<Token>>)]> = (0..48)
        .map(|_| (AtomicU64::new(0), parking_lot::Mutex::new(None)))
        .collect();
    let done = Arc::new(AtomicBool::new(false));
    let readers: Vec<_> = (0..3usize)
        .map(|reader| {
            let (newest, done, store) = (newest.clone(), done.clone(), world.reader.clone());
            std::thread::spawn(move || {
                let mut memory = Vec::new();
                let (mut good, mut gone, mut at) = (0u64, 0u64, reader * 16);
                while !done.load(Ordering::Relaxed) {
                    at = (at + 1) % newest.len();
                    let Some(token) = *newest[at].1.lock() else {
                        continue;
                    };
                    let read = store.read(&token, Want::Whole, Blocking::Yes, &mut memory);
                    match read {
                        Ok(stored) => {
                            let text = &memory[stored.octets];
                            let n: u64 = std::str::from_utf8(&text[9..])
                                .map_or_else(|e| e.valid_up_to().to_string(), str::to_owned)
                                .split('\r')
                                .next()
                                .unwrap()
                                .parse()
                                .unwrap();
                            assert_eq!(text, article(n, LEN).0);
                            good += 1;
                        }
                        Err(ReadError::Gone) => gone += 1,
                        Err(error) => panic!("{error}"),
                    }
                }
                (good, gone)
            })
        })
        .collect();
    for n in 0..ROUNDS {
        let token = world.place(n, LEN);
        world.commit();
        let slot = &newest[(n % 48) as usize];
        *slot.1.lock() = Some(token);
    }
    done.store(true, Ordering::Relaxed);
    let counts: Vec<(u64, u64)> = readers.into_iter().map(|r| r.join().unwrap()).collect();
    assert!(
        counts.iter().map(|c| c.0).sum::<u64>() > 0,
        "nothing was read: {counts:?}"
    );
    assert!(
        counts.iter().map(|c| c.1).sum::<u64>() > 0,
        "nothing was overtaken: {counts:?}"
    );
}
