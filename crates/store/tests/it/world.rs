//! A store on a memory disk with a log that is a list, for the tests beside it.

use std::path::Path;
use std::sync::Arc;

use newsreel_host::{Disk, MemoryDisk};
use newsreel_store::{
    Access, BatchWrite, Blocking, Marks, Place, PlaceError, ReadError, Reservation, Store,
    StoreConfig, StoreReader, Stored, Want,
};
use newsreel_wire::{IdHash, Sequence, SetId, Token, UnixTime};

pub(crate) const SPOOL: [u8; 16] = [9; 16];

/// A store and what its log would know.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) store: Store,
    pub(crate) reader: Arc<StoreReader>,
    pub(crate) next: u64,
    pub(crate) marks: Vec<Marks>,
}

pub(crate) fn small(octets: u64) -> StoreConfig {
    let mut config = StoreConfig::two_buffers(octets);
    for buffer in &mut config.buffers {
        buffer.sparse = true;
    }
    config
}

pub(crate) fn open(disk: &Arc<dyn Disk>, config: &StoreConfig) -> Store {
    Store::open(
        disk.as_ref(),
        Path::new("/spool"),
        SPOOL,
        config,
        &[],
        Access::Write,
        &mut |_, _, _| {},
    )
    .unwrap()
}

/// An article of about `len` octets that says which it is.
pub(crate) fn article(n: u64, len: usize) -> (Vec<u8>, u32) {
    let mut out = format!("Subject: {n}\r\nMessage-ID: <{n}@t.example>\r\n").into_bytes();
    let head_len = u32::try_from(out.len()).unwrap();
    out.extend_from_slice(b"\r\n");
    let mut fill = n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    while out.len() < len {
        fill = fill.rotate_left(7).wrapping_add(n);
        out.extend_from_slice(format!("{fill:016x}\r\n").as_bytes());
    }
    out.extend_from_slice(b".\r\n");
    (out, head_len)
}

pub(crate) fn id_hash(n: u64) -> IdHash {
    let mut out = [0; 16];
    out[..8].copy_from_slice(&n.to_le_bytes());
    IdHash(out)
}

impl World {
    pub(crate) fn new(config: &StoreConfig) -> Self {
        let disk: Arc<dyn Disk> = Arc::new(MemoryDisk::new());
        Self::on(disk, config)
    }

    pub(crate) fn on(disk: Arc<dyn Disk>, config: &StoreConfig) -> Self {
        let store = open(&disk, config);
        let reader = store.reader();
        let mut world = Self {
            disk,
            store,
            reader,
            next: 1,
            marks: Vec::new(),
        };
        world.store.marks(&mut world.marks);
        world
    }

    /// Places an article; commits as often as reservations ask for it.
    pub(crate) fn place(&mut self, n: u64, len: usize) -> Token {
        let (text, head_len) = article(n, len);
        for _ in 0..4 {
            let place = Place {
                sequence: Sequence(self.next),
                arrival: UnixTime(1000 + n),
                id_hash: id_hash(n),
                set: SetId(0),
                article: &[&text[..5], &text[5..]],
                head_len,
            };
            match self.store.place(&place) {
                Ok(token) => {
                    self.next += 1;
                    return token;
                }
                Err(PlaceError::NeedsReservation) => self.commit(),
                Err(error) => panic!("{error}"),
            }
        }
        panic!("reserving led nowhere");
    }

    /// Writes and syncs the batch; then its reservations are durable.
    pub(crate) fn commit(&mut self) {
        let mut reservations: Vec<Reservation> = Vec::new();
        self.store.reservations(&mut reservations);
        let mut batches: Vec<Box<dyn BatchWrite>> = Vec::new();
        self.store.seal(&mut batches);
        for batch in &mut batches {
            batch.write().unwrap();
            batch.sync().unwrap();
        }
        for reservation in reservations {
            self.store.reserved(reservation);
        }
        self.store.recycle(&mut batches);
        self.marks.clear();
        self.store.marks(&mut self.marks);
    }

    pub(crate) fn read(&self, token: &Token) -> Result<(Vec<u8>, Stored), ReadError> {
        let mut memory = Vec::new();
        let stored = self
            .reader
            .read(token, Want::Whole, Blocking::Yes, &mut memory)?;
        Ok((memory[stored.octets.clone()].to_vec(), stored))
    }
}
