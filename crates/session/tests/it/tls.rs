//! STARTTLS where the other side does not do its part.

use std::time::Duration;

use newsreel_service::memory::MemoryConfig;
use newsreel_session::{ListsConfig, SessionConfig};
use newsreel_testkit::{Driver, Setup, Support};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::Instant;

use crate::driver::{HANDSHAKE_S, MemoryDriver};

/// A server that has a certificate.
async fn driver() -> MemoryDriver {
    let memory = MemoryConfig::default();
    let mut driver = MemoryDriver::new(SessionConfig::default(), memory, &ListsConfig::default());
    let config = [
        ("tls.certificate", "\"cert.pem\""),
        ("tls.key", "\"key.pem\""),
        ("access", "[{ name = \"all\", read = \"*\", feed = true }]"),
    ];
    let setup = Setup {
        config: config
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .into(),
        ..Setup::default()
    };
    assert_eq!(driver.start(&setup).await.unwrap(), Support::Done);
    driver
}

/// Says something behind STARTTLS; what came until the end, and when that was.
async fn behind_starttls(driver: &mut MemoryDriver, said: &[u8]) -> (Vec<u8>, Duration) {
    let mut stream = driver.open();
    stream.write_all(b"STARTTLS\r\n").await.unwrap();
    let mut came = Vec::new();
    while !came.ends_with(b"Begin TLS\r\n") {
        assert_ne!(stream.read_buf(&mut came).await.unwrap(), 0, "{came:?}");
    }
    let begun = Instant::now();
    let _ = stream.write_all(said).await;
    came.clear();
    stream.read_to_end(&mut came).await.unwrap();
    (came, begun.elapsed())
}

fn ended(driver: &MemoryDriver) -> Vec<(&'static str, u64)> {
    let mut ended = driver.metrics.snapshot().ended;
    ended.retain(|(_, count)| *count > 0);
    ended
}

#[tokio::test(start_paused = true)]
async fn a_handshake_that_fails_ends_the_connection() {
    let mut driver = driver().await;
    let (came, _) = behind_starttls(&mut driver, b"MODE READER\r\n").await;
    // An alert at most, and nothing in clear.
    assert!(came.is_empty() || came.starts_with(&[21, 3]), "{came:?}");
    assert_eq!(ended(&driver), [("no_tls", 1)]);
}

#[tokio::test(start_paused = true)]
async fn a_handshake_that_does_not_come_ends_in_time() {
    let mut driver = driver().await;
    let (came, passed) = behind_starttls(&mut driver, b"").await;
    assert_eq!((came, passed.as_secs()), (Vec::new(), HANDSHAKE_S));
    // A handshake that is begun and not gone on with has no more time.
    let (came, passed) = behind_starttls(&mut driver, &[22, 3, 1, 2, 0, 1, 0]).await;
    assert_eq!((came, passed.as_secs()), (Vec::new(), HANDSHAKE_S));
    assert_eq!(ended(&driver), [("no_tls", 2)]);
}
