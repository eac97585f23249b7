//! The corpus as a whole: golden octets, statistics, wire form, recognition.

use std::path::Path;

use newsreel_host::{Disk, FakeClock, MemoryDisk, OpenMode};
use newsreel_wire::article::{Headers, Known};

use super::*;

const BASE_TIME_SECS: u64 = 1_750_000_000;

fn corpus(args: CorpusArgs) -> Corpus {
    let args = CorpusArgs {
        base_time_secs: Some(BASE_TIME_SECS),
        ..args
    };
    Corpus::new(&args, &MemoryDisk::new(), &FakeClock::new(0)).unwrap()
}

fn whole(corpus: &Corpus, n: u64) -> Vec<u8> {
    let mut out = Vec::new();
    let body = corpus.write_article(n, &mut out);
    out.extend_from_slice(body);
    out.extend_from_slice(b".\r\n");
    out
}

fn message_id(corpus: &Corpus, n: u64) -> Vec<u8> {
    let mut id = Vec::new();
    corpus.write_message_id(n, &mut id);
    id
}

/// Whoever changes the generator changes every figure measured with it: do so knowingly.
#[test]
fn the_first_articles_are_what_they_have_always_been() {
    let text = corpus(CorpusArgs::default());
    let hash = (0..1000).fold(0, |hash, n| crc32c::crc32c_append(hash, &whole(&text, n)));
    let fixed = corpus(CorpusArgs {
        size: Size::Fixed(830),
        seed: 2,
        ..CorpusArgs::default()
    });
    let fixed = (0..1000).fold(0, |hash, n| crc32c::crc32c_append(hash, &whole(&fixed, n)));
    assert_eq!(
        (format!("{hash:08x}"), format!("{fixed:08x}")),
        ("009b0053".to_owned(), "1f38f26f".to_owned())
    );
}

#[test]
fn the_statistics_are_those_of_a_text_feed() {
    let corpus = corpus(CorpusArgs {
        articles: Some(30_000),
        ..CorpusArgs::default()
    });
    let facts = batch::facts(&corpus);
    let mean = facts.octets / facts.articles;
    let head = facts.head_octets / facts.articles;
    let crossposted = facts.crossposted as f64 / facts.articles as f64;
    let replies = facts.replies as f64 / facts.articles as f64;
    assert!((2_580..2_720).contains(&mean), "mean {mean}");
    assert!((450..700).contains(&head), "mean header {head}");
    assert!(
        facts.octets_max < 33_000 && facts.octets_min > 300,
        "{facts:?}"
    );
    assert!(
        (0.11..0.13).contains(&crossposted),
        "crossposted {crossposted}"
    );
    assert!((0.55..0.65).contains(&replies), "replies {replies}");
    assert!(facts.human().contains("30000 articles for 3000 groups"));
}

#[test]
fn small_articles_are_of_at_most_4_kb() {
    let corpus = corpus(CorpusArgs {
        size: Size::Small,
        articles: Some(5_000),
        ..CorpusArgs::default()
    });
    let facts = batch::facts(&corpus);
    assert!(
        (3_500..=4_096).contains(&facts.octets_max) && facts.octets_min > 300,
        "{facts:?}"
    );
}

#[test]
fn every_article_is_one_that_a_server_takes() {
    for size in [
        Size::Text,
        Size::Small,
        Size::Fixed(830),
        Size::Fixed(700_000),
    ] {
        let corpus = corpus(CorpusArgs {
            size,
            ..CorpusArgs::default()
        });
        for n in (0..2000).step_by(if size == Size::Fixed(700_000) { 500 } else { 1 }) {
            let wire = whole(&corpus, n);
            assert!(
                newsreel_wire::nntp::framing::is_whole_block(&wire),
                "article {n}"
            );
            let headers = Headers::scan(&wire).unwrap();
            for known in [
                Known::Path,
                Known::From,
                Known::Newsgroups,
                Known::Subject,
                Known::Date,
                Known::MessageId,
            ] {
                assert!(
                    headers.content(known).is_some(),
                    "article {n} lacks {known:?}"
                );
            }
            assert_eq!(
                headers.content(Known::MessageId),
                Some(&message_id(&corpus, n)[..])
            );
            let lines = headers.content(Known::Lines).unwrap();
            let body = headers.body();
            let body = body.strip_suffix(b".\r\n").unwrap_or(body);
            let counted = memchr::memchr_iter(b'\n', body).count();
            assert_eq!(lines, counted.to_string().as_bytes(), "article {n}");
            if let Size::Fixed(octets) = size {
                assert!(
                    wire.len().abs_diff(octets as usize) < 120,
                    "{} octets",
                    wire.len()
                );
            }
            assert_eq!(corpus.parts(n, &mut Vec::new()).1, body);
        }
    }
}

#[test]
fn a_thread_stays_in_its_groups_and_names_its_ancestors() {
    let corpus = corpus(CorpusArgs::default());
    let mut threads = 0;
    for n in 0..2000 {
        let wire = whole(&corpus, n);
        let headers = Headers::scan(&wire).unwrap();
        let Some(references) = headers.content(Known::References) else {
            continue;
        };
        let root = references.split(u8::is_ascii_whitespace).next().unwrap();
        let root = corpus
            .find(root)
            .expect("the root is an article of the corpus");
        assert!(root < n);
        let root = whole(&corpus, root);
        let root = Headers::scan(&root).unwrap();
        assert!(root.content(Known::References).is_none());
        assert_eq!(
            root.content(Known::Newsgroups),
            headers.content(Known::Newsgroups)
        );
        let subject = [b"Re: ", root.content(Known::Subject).unwrap()].concat();
        assert_eq!(headers.content(Known::Subject), Some(&subject[..]));
        threads += 1;
    }
    assert!(threads > 800);
}

#[test]
fn an_article_is_recognised_by_its_id_and_only_within_its_corpus() {
    let first = corpus(CorpusArgs {
        first: 10,
        articles: Some(90),
        ..CorpusArgs::default()
    });
    let other = corpus(CorpusArgs {
        seed: 9,
        ..CorpusArgs::default()
    });
    for n in 10..100 {
        let id = message_id(&first, n);
        assert!(newsreel_wire::MessageId::parse(&id).is_ok());
        assert_eq!((first.find(&id), other.find(&id)), (Some(n), None));
    }
    assert_eq!(first.find(&message_id(&first, 100)), None);
    for id in [
        &b""[..],
        b"<",
        b"<.>",
        b"<0>",
        b"<fffffffffffffffff.x@y>",
        b"<g.x@y>",
    ] {
        assert_eq!(first.find(id), None);
    }
}

#[test]
fn the_base_time_changes_dates_and_nothing_else() {
    let args = CorpusArgs {
        base_time_secs: Some(86_400 * 365),
        ..CorpusArgs::default()
    };
    let then = Corpus::new(&args, &MemoryDisk::new(), &FakeClock::new(0)).unwrap();
    let now = corpus(CorpusArgs::default());
    for n in 0..100 {
        let without_date = |wire: Vec<u8>| {
            let lines = wire.split(|&octet| octet == b'\n');
            lines
                .filter(|line| !line.starts_with(b"Date:"))
                .collect::<Vec<_>>()
                .concat()
        };
        assert_ne!(whole(&then, n), whole(&now, n));
        assert_eq!(without_date(whole(&then, n)), without_date(whole(&now, n)));
    }
}

#[test]
fn a_written_batch_is_read_back_as_the_same_corpus() {
    let corpus = corpus(CorpusArgs {
        articles: Some(200),
        ..CorpusArgs::default()
    });
    let disk = MemoryDisk::new();
    for (name, packed) in [("/batch", false), ("/batch.zst", true)] {
        let mut octets = Vec::new();
        if packed {
            batch::write_packed_batch(&corpus, &mut octets).unwrap();
        } else {
            batch::write_batch(&corpus, &mut octets).unwrap();
        }
        let file = disk.open(Path::new(name), OpenMode::CreateNew).unwrap();
        file.write_at(&octets, 0).unwrap();
        let args = CorpusArgs {
            from: vec![name.into()],
            ..CorpusArgs::default()
        };
        let back = Corpus::new(&args, &disk, &FakeClock::new(0)).unwrap();
        assert_eq!((back.len(), back.left_out()), (200, 0));
        for n in 0..200 {
            assert_eq!(whole(&back, n), whole(&corpus, n), "article {n}");
            assert_eq!(back.find(&message_id(&corpus, n)), Some(n));
        }
    }
}

#[test]
fn arguments_that_make_no_sense_are_refused() {
    for (args, name) in [
        (
            CorpusArgs {
                groups: 0,
                ..CorpusArgs::default()
            },
            "groups is 0",
        ),
        (
            CorpusArgs {
                crossposted_percent: 101,
                ..CorpusArgs::default()
            },
            "crossposted is 101",
        ),
        (
            CorpusArgs {
                replies_percent: 101,
                ..CorpusArgs::default()
            },
            "replies is 101",
        ),
        (
            CorpusArgs {
                size: Size::Fixed(10),
                ..CorpusArgs::default()
            },
            "size is 10",
        ),
    ] {
        let error = Corpus::new(&args, &MemoryDisk::new(), &FakeClock::new(0)).unwrap_err();
        assert!(error.to_string().starts_with(name), "{error}");
    }
}

#[test]
fn what_is_made_ahead_is_what_is_made_on_the_way() {
    let prepared = corpus(CorpusArgs {
        first: 7,
        articles: Some(300),
        ..CorpusArgs::default()
    });
    let long = corpus(CorpusArgs {
        articles: Some(u64::MAX),
        ..CorpusArgs::default()
    });
    for n in 7..307 {
        assert_eq!(whole(&prepared, n), whole(&long, n));
    }
}

/// Original and clones are one corpus: each is found by its id, and a server's copy of it is known.
#[test]
fn clones_come_behind_their_originals() {
    let args = CorpusArgs {
        first: 10,
        articles: Some(40),
        clones: 2,
        ..CorpusArgs::default()
    };
    let all = corpus(args.clone());
    let originals = corpus(CorpusArgs { clones: 0, ..args });
    assert_eq!((all.first(), all.end(), all.len()), (10, 130, 120));
    let (mut scratch, mut other) = (Vec::new(), Vec::new());
    for n in 10..130 {
        let id = message_id(&all, n);
        assert_eq!(all.find(&id), Some(n));
        let (head, body) = all.parts(n, &mut scratch);
        assert_eq!([head, body, b".\r\n"].concat(), whole(&all, n));
        let original = 10 + (n - 10) % 40;
        assert_eq!(body, originals.parts(original, &mut other).1);
        let said = String::from_utf8_lossy(head).into_owned();
        let id = String::from_utf8(id).unwrap();
        assert!(
            said.contains(&format!("\r\nMessage-ID: {id}\r\n")),
            "{said}"
        );
        let clone = id
            .rsplit_once('=')
            .map_or("0", |(_, number)| number.trim_end_matches('>'));
        assert_eq!(clone, ((n - 10) / 40).to_string());
        assert!(
            newsreel_wire::MessageId::parse(id.as_bytes()).is_ok(),
            "{id}"
        );
    }
    assert_eq!(originals.find(&message_id(&all, 50)), None);
    assert_eq!(
        all.find(&message_id(&corpus(CorpusArgs::default()), 60)),
        None
    );
    assert_eq!(all.find(b"<x@y=1>"), None);
}

/// The same seed feeds the same octets, and a batch of clones counts its own.
#[test]
fn a_digest_tells_corpora_apart() {
    let cloned = |clones, seed| {
        corpus(CorpusArgs {
            articles: Some(30),
            clones,
            seed,
            ..CorpusArgs::default()
        })
    };
    let digest = |clones, seed| batch::digest(&cloned(clones, seed));
    assert_eq!(digest(2, 1), digest(2, 1));
    assert_ne!(digest(2, 1), digest(2, 2));
    assert_ne!(digest(2, 1), digest(1, 1));
    let mut octets = Vec::new();
    batch::write_batch(&cloned(2, 1), &mut octets).unwrap();
    assert_eq!(blake3::hash(&octets).to_hex().as_str(), digest(2, 1));
    let disk = MemoryDisk::new();
    disk.create_dir_all(Path::new("/in")).unwrap();
    let file = disk.open(Path::new("/in/b"), OpenMode::CreateNew).unwrap();
    file.write_at(&octets, 0).unwrap();
    let args = CorpusArgs {
        from: vec!["/in/b".into()],
        clones: 1,
        ..CorpusArgs::default()
    };
    let read = Corpus::new(&args, &disk, &FakeClock::new(0)).unwrap();
    assert_eq!((read.len(), read.left_out()), (180, 0));
    assert_eq!(batch::digest(&read.part(0, 90)), digest(2, 1));
    // A clone of a clone is neither of them.
    let again = message_id(&read, 40 + 90);
    assert_eq!(
        String::from_utf8(again.clone())
            .unwrap()
            .matches('=')
            .count(),
        2
    );
    assert_eq!(read.find(&again), Some(130));
}
