//! Real articles of 1984 to 2022 through every method, every form of file and every layout: what is read is what was stored,
//! also after a restart.
//!
//! Only where the corpus lies beside the repository; elsewhere the test says so and does nothing.  In the daily run some of
//! each batch; all of them with `NEWSREEL_TEST_SCALE=full`, as CI sets it.
//! What they look like over the network the application's tests say.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::num::NonZero;
use std::path::Path;
use std::sync::{Arc, Mutex};

use newsreel_host::{Disk, MemoryDisk, RealDisk, read_whole};
use newsreel_layout::Algorithm;
use newsreel_store::conformance::{PACKED, config_of, id_hash};
use newsreel_store::methods::{METHODS, tradspool};
use newsreel_store::{
    Access, Blocking, FileFormat, Place, PlaceError, Store, StoreConfig, StoreReader, Want,
};
use newsreel_wire::{Sequence, SetId, Token, UnixTime};

/// The batches, and how many articles each has.
const BATCHES: [(&str, usize); 3] = [
    ("sources1984-1991.rnews.zst", 762),
    ("news1993.rnews.zst", 15_485),
    ("cobol1994-2022.rnews.zst", 45_364),
];
/// So many of each batch in the daily run.
const FEW: usize = 250;
/// Articles in one commit.
const COMMIT: usize = 2000;
/// Of one buffer of two, of one segment: all articles are alive to the end.
const OCTETS: u64 = 96 << 20;

/// An article as the engine hands it over.
struct Text {
    id: String,
    xref: String,
    wire: Vec<u8>,
    head_len: u32,
}

/// CR and LF at the end of each line, dots stuffed, a dot behind all.
fn wire_form(text: &[u8]) -> Vec<u8> {
    let mut wire = Vec::with_capacity(text.len() + text.len() / 16);
    for line in text.split_inclusive(|octet| *octet == b'\n') {
        if line.starts_with(b".") {
            wire.push(b'.');
        }
        wire.extend_from_slice(line.strip_suffix(b"\n").unwrap_or(line));
        wire.extend_from_slice(b"\r\n");
    }
    wire.extend_from_slice(b".\r\n");
    wire
}

/// The content of a header field, its first line.
fn field<'t>(head: &'t str, name: &str) -> Option<&'t str> {
    let mut fields = head.lines().filter_map(|line| line.split_once(':'));
    let found = fields.find(|(found, _)| found.eq_ignore_ascii_case(name));
    found.map(|(_, content)| content.trim())
}

/// What is filed where, as an Xref says it: the next number in each group.
fn xref<'t>(head: &'t str, numbers: &mut BTreeMap<&'t str, u64>) -> String {
    let mut xref = "news.example".to_owned();
    let is_name = |name: &&str| {
        let is_part =
            |part: &str| !part.is_empty() && part.bytes().all(|octet| octet.is_ascii_graphic());
        name.split('.').all(is_part)
    };
    let groups = field(head, "Newsgroups").unwrap_or_default().split(',');
    for group in groups.map(str::trim).filter(is_name) {
        let number = numbers.entry(group).or_default();
        *number += 1;
        xref += &format!(" {group}:{number}");
    }
    xref
}

/// The articles of a batch, as they lie there.
fn articles(mut rest: &[u8]) -> Vec<&[u8]> {
    let mut found = Vec::new();
    while !rest.is_empty() {
        let end = rest.iter().position(|octet| *octet == b'\n').unwrap();
        let line = std::str::from_utf8(&rest[..end]).unwrap();
        let len: usize = line.strip_prefix("#! rnews ").unwrap().parse().unwrap();
        let (text, behind) = rest[end + 1..].split_at(len);
        found.push(text);
        rest = behind;
    }
    found
}

fn unpacked(path: &Path) -> Vec<u8> {
    let packed = read_whole(&RealDisk, path, 1 << 30).unwrap();
    let mut decoder = zstd::Decoder::new(packed.as_slice()).unwrap();
    decoder.window_log_max(27).unwrap();
    let mut octets = Vec::new();
    decoder.read_to_end(&mut octets).unwrap();
    octets
}

/// Some of every batch, or all.
fn texts(folder: &Path) -> Vec<Text> {
    let is_full = std::env::var_os("NEWSREEL_TEST_SCALE").is_some_and(|scale| scale == "full");
    let mut texts = Vec::new();
    for (name, count) in BATCHES {
        let batch = unpacked(&folder.join(name));
        let articles = articles(&batch);
        assert_eq!(articles.len(), count, "{name}");
        let wanted = if is_full { count } else { FEW };
        let heads: Vec<String> = articles[..wanted]
            .iter()
            .map(|text| {
                let end = text.windows(2).position(|pair| pair == b"\n\n");
                String::from_utf8_lossy(&text[..end.unwrap_or(text.len())]).into_owned()
            })
            .collect();
        let mut numbers = BTreeMap::new();
        for (text, head) in articles.iter().zip(&heads) {
            let wire = wire_form(text);
            let head_end = wire.windows(4).position(|four| four == b"\r\n\r\n");
            let id = field(head, "Message-ID").map(str::to_owned);
            texts.push(Text {
                id: id.unwrap_or_else(|| format!("<{}@news.example>", texts.len())),
                xref: xref(head, &mut numbers),
                head_len: u32::try_from(head_end.unwrap() + 2).unwrap(),
                wire,
            });
        }
    }
    texts
}

/// Every method; where articles are files each form of them, and each layout in one of the forms.
fn configs() -> Vec<(String, StoreConfig)> {
    let mut configs = vec![(PACKED.to_owned(), config_of(PACKED, OCTETS))];
    for method in METHODS {
        let plain = config_of(method.name, OCTETS);
        if !method.in_files {
            configs.push((method.name.to_owned(), plain));
            continue;
        }
        // A layout gives a file its name and has nothing to do with what is in it.
        let forms = [FileFormat::Native, FileFormat::Wire].into_iter().cycle();
        let mut layouts = vec!["flat".to_owned(); 2];
        if method.name == tradspool::NAME {
            layouts.extend(Algorithm::ALL.map(|layout| layout.to_string()));
        }
        for (layout, format) in layouts.iter().zip(forms) {
            let mut config = plain.clone();
            config.sets[0].format = Some(format);
            if method.name == tradspool::NAME {
                config.sets[0].layouts = vec![format!("* {layout}")];
            }
            configs.push((format!("{}, {format:?}, {layout}", method.name), config));
        }
    }
    configs
}

fn open(disk: &MemoryDisk, config: &StoreConfig) -> Store {
    let disk: Arc<dyn Disk> = Arc::new(disk.clone());
    let (dir, access) = (Path::new("/spool"), Access::Write);
    Store::open(&disk, dir, [9; 16], config, &[], access, &mut |_, _, _| {}).unwrap()
}

fn commit(store: &mut Store) {
    let (mut reservations, mut batches) = (Vec::new(), Vec::new());
    store.reservations(None, &mut reservations);
    store.seal(&mut batches);
    for batch in &mut batches {
        batch.write().unwrap();
        batch.sync().unwrap();
    }
    store.recycle(&mut batches);
    for reservation in reservations {
        store.reserved(reservation);
    }
}

fn place(store: &mut Store, at: usize, text: &Text) -> Token {
    let number = at as u64;
    let place = Place {
        sequence: Sequence(number + 1),
        arrival: UnixTime(1_000_000 + number / 10),
        id_hash: id_hash(number),
        id: text.id.as_bytes(),
        set: SetId(0),
        format: None,
        xref: text.xref.as_bytes(),
        article: &[&text.wire],
        head_len: text.head_len,
    };
    loop {
        match store.place(&place) {
            Err(PlaceError::NeedsReservation) => commit(store),
            placed => return placed.unwrap(),
        }
    }
}

/// ARTICLE, HEAD and BODY of every one.
fn all_are_as_sent(reader: &StoreReader, texts: &[Text], tokens: &[Token]) {
    let mut memory = Vec::new();
    for (at, (text, token)) in texts.iter().zip(tokens).enumerate() {
        let head_len = text.head_len as usize;
        for (want, sent) in [
            (Want::Whole, &text.wire[..]),
            (Want::Head, &text.wire[..head_len]),
        ] {
            let stored = reader.read(token, want, Blocking::Yes, &mut memory);
            let stored = stored.unwrap_or_else(|error| panic!("{}: {error}", text.id));
            assert!(
                memory[stored.octets.clone()] == *sent,
                "{}: {want:?}",
                text.id
            );
            assert_eq!(stored.head_len, head_len, "{}", text.id);
            assert_eq!(stored.id_hash, id_hash(at as u64), "{}", text.id);
        }
    }
}

#[test]
fn real_articles_are_read_as_they_were_stored_whatever_keeps_them() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus");
    if !folder.is_dir() {
        println!("skipped: the corpus does not lie beside this repository (../shared/corpus)");
        return;
    }
    let texts = texts(&folder);
    let configs = Mutex::new(configs());
    let threads = std::thread::available_parallelism().map_or(1, NonZero::get);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let next = configs.lock().unwrap().pop();
                    let Some((name, config)) = next else { return };
                    println!("{} articles: {name}", texts.len());
                    all_come_back(&config, &texts);
                }
            });
        }
    });
}

fn all_come_back(config: &StoreConfig, texts: &[Text]) {
    let disk = MemoryDisk::new();
    let mut store = open(&disk, config);
    store.resume(&[], Sequence(0)).unwrap();
    let mut tokens = Vec::with_capacity(texts.len());
    for (at, text) in texts.iter().enumerate() {
        tokens.push(place(&mut store, at, text));
        if at % COMMIT == COMMIT - 1 {
            commit(&mut store);
        }
    }
    commit(&mut store);
    all_are_as_sent(&store.reader(), texts, &tokens);
    let mut marks = Vec::new();
    store.marks(&mut marks);
    drop(store);

    let mut store = open(&disk, config);
    tokens.iter().for_each(|token| store.replayed(token));
    store.resume(&marks, Sequence(texts.len() as u64)).unwrap();
    all_are_as_sent(&store.reader(), texts, &tokens);
}
