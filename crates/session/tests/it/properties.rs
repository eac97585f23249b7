//! Whatever comes, in whatever pieces: the same answers, and always an end.

use std::time::Duration;

use newsreel_service::memory::MemoryConfig;
use newsreel_session::{ListsConfig, SessionConfig};
use proptest::prelude::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::driver::MemoryDriver;

/// Everything a session answers to `input`, cut at `cuts`, until it ends.
fn answers(input: &[u8], cuts: &[usize]) -> String {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    let config = SessionConfig {
        article_bytes_max: 1024,
        input_chunk_bytes: 4096,
        reply_chunk_bytes: 1024,
        pipeline_replies_max: 3,
        ..SessionConfig::default()
    };
    let output = runtime.block_on(async {
        let mut driver =
            MemoryDriver::new(config, MemoryConfig::default(), &ListsConfig::default());
        driver.service.add_group("misc.test", "y", "words");
        let (mut read, mut write) = tokio::io::split(driver.open());
        #[expect(
            clippy::disallowed_methods,
            reason = "a test's runtime ends all its tasks"
        )]
        let reading = tokio::spawn(async move {
            let mut output = Vec::new();
            let _ = read.read_to_end(&mut output).await;
            output
        });
        let mut from = 0;
        for to in cuts.iter().copied().chain([input.len()]) {
            let to = to.clamp(from, input.len());
            if write.write_all(&input[from..to]).await.is_err() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
            from = to;
        }
        let _ = write.shutdown().await;
        tokio::time::timeout(Duration::from_secs(100), reading)
            .await
            .unwrap()
            .unwrap()
    });
    String::from_utf8_lossy(&output).into_owned()
}

fn article(id: &str, body: &str) -> String {
    format!(
        "Path: p\r\nFrom: a@example.org\r\nNewsgroups: misc.test\r\nSubject: s\r\n\
         Date: 1 Jan 2026 00:00:00 GMT\r\nMessage-ID: {id}\r\n\r\n{body}\r\n.\r\n"
    )
}

/// Whole commands, articles, and what breaks them.
fn piece() -> impl Strategy<Value = Vec<u8>> {
    let fixed = [
        "GROUP misc.test\r\n",
        "STAT\r\n",
        "NEXT\r\n",
        "ARTICLE 1\r\n",
        "LISTGROUP misc.test\r\n",
        "OVER 1-\r\n",
        "LIST NEWSGROUPS\r\n",
        "HELP\r\n",
        "CAPABILITIES\r\n",
        "CHECK <check@t>\r\n",
        "CHECK bad\r\n",
        "IHAVE <9@t>\r\n",
        "TAKETHIS\r\n",
        "TAKETHIS <cut@t>\r\nPath",
        "MODE STREAM\r\n",
        "\r\n",
        "\r\n.\r\n",
        ".\r\n",
        "\r",
        "\n",
        "\0",
        ".",
        "nonsense ",
    ];
    let plain = proptest::sample::select(fixed.to_vec()).prop_map(|text| text.as_bytes().to_vec());
    let transfer = (0..4_u8, "[a.\r\n]{0,8}").prop_map(|(n, body)| {
        let id = format!("<{n}@t>");
        format!("TAKETHIS {id}\r\n{}", article(&id, &body)).into_bytes()
    });
    let ihave = (4..6_u8).prop_map(|n| {
        let id = format!("<{n}@t>");
        format!("IHAVE {id}\r\n{}", article(&id, "body")).into_bytes()
    });
    let long = (0..3000_usize).prop_map(|len| vec![b'x'; len]);
    prop_oneof![6 => plain, 3 => transfer, 1 => ihave, 1 => long]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    #[test]
    fn prop_pieces_do_not_matter(
        pieces in proptest::collection::vec(piece(), 0..25),
        cuts in proptest::collection::vec(0..6000_usize, 0..30),
    ) {
        let input = pieces.concat();
        let mut cuts = cuts;
        cuts.sort_unstable();
        let whole = answers(&input, &[]);
        prop_assert_eq!(&answers(&input, &cuts), &whole);
        prop_assert!(whole.starts_with("200 ") && whole.ends_with("\r\n"), "{}", whole);
    }

    #[test]
    fn prop_any_octets_come_to_an_end(
        input in proptest::collection::vec(prop_oneof![
            3 => any::<u8>(), 1 => Just(b'\r'), 1 => Just(b'\n'), 1 => Just(b'.'), 1 => Just(b' ')], 0..3000),
    ) {
        let whole = answers(&input, &[]);
        prop_assert!(whole.starts_with("200 ") && whole.ends_with("\r\n"), "{}", whole);
    }
}

/// One octet at a time, the hardest chunking.
#[test]
fn octet_by_octet() {
    let input = format!(
        "GROUP misc.test\r\nTAKETHIS <1@t>\r\n{}CHECK <2@t>\r\nBODY 1\r\nSTAT\r\nQUIT\r\n",
        article("<1@t>", "..\r\nbody")
    );
    let cuts: Vec<usize> = (0..input.len()).collect();
    let whole = answers(input.as_bytes(), &[]);
    assert_eq!(answers(input.as_bytes(), &cuts), whole);
    let codes: Vec<&str> = whole.lines().filter_map(|line| line.get(..3)).collect();
    assert_eq!(
        codes,
        ["200", "211", "239", "238", "222", "bod", "223", "205"],
        "{whole}"
    );
}
