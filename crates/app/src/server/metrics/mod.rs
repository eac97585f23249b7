//! Figures for Prometheus: a page of text at `/metrics`, on addresses of its own, for both kinds of server.
//!
//! It speaks as much of HTTP/1 as that needs: one GET a connection.  Head, time and connections are bounded, and nothing but the page
//! can be had.

mod of_cache;
mod of_engine;
mod page;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use newsreel_net::DrainWatch;
use newsreel_session::MetricsSnapshot;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::config::METRICS;

pub(crate) use of_engine::LOOKS_MAX;
pub(super) use page::Page;

/// Connections at the same time; others wait.
pub(crate) const CONNECTIONS_MAX: usize = 8;

/// The longest head of a request, octets.
pub(crate) const HEAD_OCTETS_MAX: u64 = 8 << 10;

/// How long one connection may take in all.
pub(crate) const EXCHANGE: Duration = Duration::from_secs(10);

/// How long accept pauses after an error.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Who has figures.
pub(super) trait Measured: Send + Sync + 'static {
    /// Writes them; may wait for the disk.
    fn measure(&self, page: &mut Page);
}

/// The bound sockets.
#[derive(Debug)]
pub(super) struct MetricsDoor(Vec<TcpListener>);

impl MetricsDoor {
    /// Binds these addresses, or none; within the runtime.  That which nobody asked for may be taken.
    pub(super) fn bind(addresses: &[SocketAddr]) -> Result<Self> {
        let bind = |address: &SocketAddr| {
            let listener = std::net::TcpListener::bind(address)?;
            listener.set_nonblocking(true)?;
            TcpListener::from_std(listener)
        };
        let mut bound = Vec::new();
        for address in addresses {
            match bind(address) {
                Ok(listener) => bound.push(listener),
                Err(error) if addresses == [METRICS] => {
                    tracing::info!(
                        target: "newsreel::server", %address, %error,
                        "no figures for Prometheus: another address may be named by server.metrics"
                    );
                }
                Err(error) => {
                    let what = format!("cannot serve figures on {address} (server.metrics)");
                    return Err(error).context(what);
                }
            }
        }
        Ok(Self(bound))
    }

    /// Where they are served.
    pub(super) fn addresses(&self) -> Vec<SocketAddr> {
        let addresses = self.0.iter().map(TcpListener::local_addr);
        addresses.filter_map(Result::ok).collect()
    }

    /// Serves them until draining starts.
    pub(super) async fn run(self, of: Arc<impl Measured>, mut drain: DrainWatch) {
        for address in self.addresses() {
            tracing::info!(target: "newsreel::server", %address, "figures for Prometheus at /metrics");
        }
        let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        let mut accepting = JoinSet::new();
        for listener in self.0 {
            let (of, places) = (Arc::clone(&of), Arc::clone(&places));
            accepting.spawn(accept(listener, of, places));
        }
        drain.started().await;
        accepting.shutdown().await;
    }
}

async fn accept(listener: TcpListener, of: Arc<impl Measured>, places: Arc<Semaphore>) {
    let mut exchanges = JoinSet::new();
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else {
            return;
        };
        while exchanges.try_join_next().is_some() {}
        match listener.accept().await {
            Ok((stream, _)) => {
                let of = Arc::clone(&of);
                exchanges.spawn(async move {
                    let _place = place;
                    let exchange = tokio::time::timeout(EXCHANGE, exchange(stream, of));
                    if let Ok(Err(error)) = exchange.await {
                        tracing::debug!(target: "newsreel::server", %error, "figures were not taken");
                    }
                });
            }
            Err(error) => {
                tracing::debug!(target: "newsreel::server", %error, "cannot accept");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// What a request's first line asks for.
#[derive(Debug, PartialEq, Eq)]
enum Asked {
    Page,
    Other(&'static str),
}

fn asked(line: &[u8]) -> Asked {
    let line = String::from_utf8_lossy(line);
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    match *words {
        ["GET", path, version] if version.starts_with("HTTP/1.") => {
            match path.split('?').next() == Some("/metrics") {
                true => Asked::Page,
                false => Asked::Other("404 Not Found"),
            }
        }
        [_, _, version] if version.starts_with("HTTP/1.") => Asked::Other("405 Method Not Allowed"),
        _ => Asked::Other("400 Bad Request"),
    }
}

async fn exchange(mut stream: TcpStream, of: Arc<impl Measured>) -> io::Result<()> {
    let mut head = BufReader::new(&mut stream).take(HEAD_OCTETS_MAX);
    let (mut first, mut line) = (Vec::new(), Vec::new());
    head.read_until(b'\n', &mut first).await?;
    // The rest of the head is read, so that closing does not cut the answer off.
    while head.read_until(b'\n', &mut line).await? > 0 && !line.trim_ascii().is_empty() {
        line.clear();
    }
    let (status, text) = match asked(&first) {
        Asked::Page => {
            let making = tokio::task::spawn_blocking(move || {
                let mut page = Page::default();
                of.measure(&mut page);
                page.into_text()
            });
            ("200 OK", making.await?)
        }
        Asked::Other(status) => (status, format!("{status}: figures are at /metrics\n")),
    };
    let octets = text.len();
    let answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n\
         Content-Length: {octets}\r\nConnection: close\r\n\r\n{text}"
    );
    stream.write_all(answer.as_bytes()).await?;
    stream.shutdown().await
}

/// What every server has.
fn common(page: &mut Page, limits: &newsreel_net::Limits, sessions: &MetricsSnapshot, up_s: u64) {
    let version = env!("CARGO_PKG_VERSION");
    page.gauge("newsreel_info", "Version of the server.");
    page.value(&[("version", version)], 1);
    page.gauge("newsreel_uptime_seconds", "Since the start.");
    page.value(&[], up_s);
    let memory = newsreel_host::process::own_facts().map_or(0, |facts| facts.rss_bytes);
    page.gauge("newsreel_resident_memory_bytes", "Memory of the process.");
    page.value(&[], memory);
    let limits = limits.snapshot();
    page.gauge("newsreel_connections", "Connections that are open.");
    page.value(&[], limits.open as u64);
    page.counter("newsreel_connections_total", "Connections that came.");
    page.value(&[("outcome", "admitted")], limits.admitted);
    let refused = limits.refused_total + limits.refused_address;
    page.value(&[("outcome", "refused")], refused);
    page.value(&[("outcome", "error")], limits.accept_errors);
    page.counter("newsreel_commands_total", "Commands of readers and peers.");
    for (verb, count) in sessions.commands.iter().filter(|(_, count)| *count > 0) {
        page.value(&[("verb", *verb)], *count);
    }
    page.counter("newsreel_replies_total", "Replies to them.");
    for (code, count) in &sessions.replies {
        page.value(&[("code", code.to_string().as_str())], *count);
    }
    page.counter(
        "newsreel_articles_refused_total",
        "Articles refused for what they are, by reason.",
    );
    for (reason, count) in &sessions.rejected {
        page.value(&[("reason", *reason)], *count);
    }
    page.counter("newsreel_bytes_total", "Octets of all connections.");
    page.value(&[("direction", "in")], sessions.octets_in);
    page.value(&[("direction", "out")], sessions.octets_out);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct One;

    impl Measured for One {
        fn measure(&self, page: &mut Page) {
            page.gauge("one", "One.");
            page.value(&[], 1);
        }
    }

    /// A second server on one machine starts, though the first has the address that both mean when nothing is said.
    #[tokio::test]
    async fn only_an_address_that_was_named_must_be_free() {
        // Or another program has it.
        let _taken = std::net::TcpListener::bind(METRICS);
        assert_eq!(MetricsDoor::bind(&[METRICS]).unwrap().addresses(), []);
        assert_eq!(MetricsDoor::bind(&[]).unwrap().addresses(), []);
        let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = taken.local_addr().unwrap();
        let error = MetricsDoor::bind(&[address]).unwrap_err();
        assert!(error.to_string().contains("server.metrics"), "{error:#}");
    }

    async fn said(request: &[u8]) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let talking = async {
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream.write_all(request).await.unwrap();
            let mut text = String::new();
            stream.read_to_string(&mut text).await.unwrap();
            text
        };
        let serving = async {
            let (stream, _) = listener.accept().await.unwrap();
            exchange(stream, Arc::new(One)).await
        };
        let (text, _) = tokio::join!(talking, serving);
        text
    }

    #[tokio::test]
    async fn the_page_is_all_that_can_be_had() {
        let page = said(b"GET /metrics?x=1 HTTP/1.1\r\nHost: a\r\n\r\n").await;
        assert!(page.starts_with("HTTP/1.1 200 OK\r\n"), "{page}");
        assert!(page.contains("\r\nContent-Length: 39\r\n"), "{page}");
        assert!(
            page.ends_with("\r\n\r\n# HELP one One.\n# TYPE one gauge\none 1\n"),
            "{page}"
        );
        for (request, status) in [
            (&b"GET / HTTP/1.1\r\n\r\n"[..], "404"),
            (b"POST /metrics HTTP/1.1\r\n\r\n", "405"),
            (b"QUIT\r\n\r\n", "400"),
            (b"GET /metrics HTTP/1.1 x\n\n", "400"),
        ] {
            let answer = said(request).await;
            assert!(
                answer.starts_with(&format!("HTTP/1.1 {status} ")),
                "{answer}"
            );
        }
    }
}
