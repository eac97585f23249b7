//! Posting as a client: over NNTP to a server that runs here, or to any other.
//!
//! One article a connection.  Every answer is one line of bounded length and is waited for a bounded time.

use std::io::{BufRead as _, BufReader, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, ToSocketAddrs as _};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, bail};
use newsreel_feed::{Dial as _, NetDial, PeerConfig};
use newsreel_host::RealDisk;
use newsreel_wire::nntp::framing::lf_to_wire;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _};

use crate::control::client::Client;
use crate::control::request::Request;

/// The longest article that is read from a file.
pub(crate) const ARTICLE_OCTETS_MAX: usize = 64 << 20;

/// How long a server may take to answer: a commit may wait for a slow disk.
const PATIENCE: Duration = Duration::from_secs(120);

/// The longest answer, octets.
const LINE_OCTETS_MAX: u64 = 4096;

/// Where NNTP is spoken when no port is given.
const NNTP_PORT: u16 = 119;

/// A server by its name or address, with or without a port.
pub(crate) fn find(name: &str, port: Option<u16>) -> Result<SocketAddr> {
    if let (Ok(address), None) = (name.parse(), port) {
        return Ok(address);
    }
    let port = port.unwrap_or(NNTP_PORT);
    let found = match (name.parse::<IpAddr>(), name.split_once(':')) {
        (Err(_), Some(_)) => name.to_socket_addrs(),
        _ => (name, port).to_socket_addrs(),
    };
    let mut found = found.with_context(|| format!("cannot find the server {name}"))?;
    found
        .next()
        .ok_or_else(|| anyhow!("the server {name} has no address"))
}

/// The server that runs on a spool.
pub(crate) fn server_of(spool: &Path) -> Result<SocketAddr> {
    let Some(mut client) = Client::connect(spool)? else {
        bail!(
            "no server is running on the spool {}: start one with `newsreel serve`, or name another with --server",
            spool.display()
        );
    };
    let status = client.ask(&Request::Status, &mut |_| {})?;
    let first = status["server"]["listening"][0]
        .as_str()
        .unwrap_or_default();
    let address: SocketAddr = first
        .parse()
        .context("the server does not say where it listens")?;
    // What listens everywhere is nearest here.
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    Ok(SocketAddr::new(ip, address.port()))
}

/// A text with LF or CRLF line ends in wire form.  A CR that ends no line stays, for the server to refuse.
pub(crate) fn wire_of(text: &[u8]) -> Vec<u8> {
    let mut lines = Vec::with_capacity(text.len());
    for (nth, line) in text.split(|octet| *octet == b'\n').enumerate() {
        if nth > 0 {
            lines.push(b'\n');
        }
        lines.extend_from_slice(line);
        if lines.ends_with(b"\r") {
            lines.pop();
        }
    }
    // The last line may have had no LF: its CR was no line end.
    if text.ends_with(b"\r") {
        lines.push(b'\r');
    }
    let mut wire = Vec::with_capacity(lines.len() + 64);
    lf_to_wire(&lines, &mut wire);
    wire
}

/// Posts an article in wire form; what the server said of it.
pub(crate) fn post(server: SocketAddr, wire: &[u8]) -> Result<String> {
    let stream = TcpStream::connect_timeout(&server, PATIENCE)
        .with_context(|| format!("cannot connect to {server}"))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    hand_over(BufReader::new(stream), wire)
}

/// Posts an article in wire form as a user, on a connection secured as is said; what the server said of it.
pub(crate) async fn post_as(server: &PeerConfig, wire: &[u8]) -> Result<String> {
    let talking = async {
        let dial = NetDial::new(Arc::new(RealDisk));
        let io = dial.dial(server).await?;
        let mut stream = tokio::io::BufReader::new(io);
        for (said, code, refused) in [
            (&b"MODE READER\r\n"[..], "200", "does not let us post"),
            (b"POST\r\n", "340", "does not let us post"),
            (wire, "240", "did not take the article"),
        ] {
            stream.write_all(said).await?;
            stream.flush().await?;
            let (mut line, mut rest) = (Vec::new(), (&mut stream).take(LINE_OCTETS_MAX));
            rest.read_until(b'\n', &mut line).await?;
            let answer = expected(&line, code, refused)?;
            if code == "240" {
                // It has the article: whether it hears this does not matter.
                let _ = stream.write_all(b"QUIT\r\n").await;
                let _ = stream.flush().await;
                return Ok(answer);
            }
        }
        bail!("the server did not take the article")
    };
    let talking = tokio::time::timeout(PATIENCE, talking);
    talking.await.context("the server does not answer")?
}

/// The whole conversation; what the server said of the article.
pub(crate) fn hand_over<S: Read + Write>(mut stream: BufReader<S>, wire: &[u8]) -> Result<String> {
    expect(&mut stream, "2", "does not serve us")?;
    stream.get_mut().write_all(b"MODE READER\r\n")?;
    expect(&mut stream, "200", "does not let us post")?;
    stream.get_mut().write_all(b"POST\r\n")?;
    expect(&mut stream, "340", "does not let us post")?;
    stream.get_mut().write_all(wire)?;
    let said = expect(&mut stream, "240", "did not take the article")?;
    // It has the article: whether it hears this does not matter.
    let _ = stream.get_mut().write_all(b"QUIT\r\n");
    Ok(said)
}

/// The next line, which must begin so.
fn expect<S: Read>(stream: &mut BufReader<S>, code: &str, refused: &str) -> Result<String> {
    let mut line = Vec::new();
    let read = stream
        .by_ref()
        .take(LINE_OCTETS_MAX)
        .read_until(b'\n', &mut line);
    read.context("the server does not answer")?;
    expected(&line, code, refused)
}

/// A line of the server's, which must begin so.
fn expected(line: &[u8], code: &str, refused: &str) -> Result<String> {
    let line = String::from_utf8_lossy(line).trim_end().to_owned();
    if line.is_empty() {
        bail!("the server closed the connection");
    }
    if !line.starts_with(code) {
        bail!("the server {refused}: {}", crate::output::printable(&line));
    }
    Ok(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_ends() {
        for (text, wire) in [
            ("a\n\n.b\n", "a\r\n\r\n..b\r\n.\r\n"),
            ("a\r\n\r\n.b\r\n", "a\r\n\r\n..b\r\n.\r\n"),
            ("a\n\nb", "a\r\n\r\nb\r\n.\r\n"),
            ("a\rb\n\nc\r", "a\rb\r\n\r\nc\r\r\n.\r\n"),
        ] {
            let got = wire_of(text.as_bytes());
            assert_eq!(String::from_utf8(got).unwrap(), wire, "{text:?}");
        }
    }

    #[test]
    fn servers() {
        let check = |name, port, address: &str| {
            assert_eq!(find(name, port).unwrap().to_string(), address);
        };
        check("127.0.0.1:1119", None, "127.0.0.1:1119");
        check("127.0.0.1", None, "127.0.0.1:119");
        check("127.0.0.1", Some(1119), "127.0.0.1:1119");
        check("::1", Some(1119), "[::1]:1119");
        check("[::1]:9", None, "[::1]:9");
    }
}
