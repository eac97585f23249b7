//! Posting as a client: over NNTP to a server that runs here, or to any other.
//!
//! One article a connection.  Every answer is one line of bounded length and is waited for a bounded time.

use std::fmt;
use std::io::{BufRead as _, BufReader, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, ToSocketAddrs as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, bail};
use newsreel_host::process::lock_holder;
use newsreel_net::client::{Client as NewsClient, Login, Remote, Security, Trust};
use newsreel_wire::nntp::framing::lf_to_wire;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _};

use crate::control::client::Client;
use crate::control::request::Request;
use crate::input;

/// The longest article that is read from a file.
pub(crate) const ARTICLE_OCTETS_MAX: usize = 64 << 20;

/// How long a server may take to answer: a commit may wait for a slow disk.
const PATIENCE: Duration = Duration::from_secs(120);

/// The longest answer, octets.
const LINE_OCTETS_MAX: u64 = 4096;

/// Where NNTP is spoken when no port is given, and over TLS from the first octet on.
const NNTP_PORT: u16 = 119;
const NNTPS_PORT: u16 = 563;

/// A file of passwords or authorities is no larger, octets.
const FILE_OCTETS_MAX: usize = 1 << 20;

/// How a connection is secured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub(crate) enum Tls {
    /// Not at all
    #[default]
    None,
    /// By STARTTLS before anything else
    Starttls,
    /// From the first octet on, as on port 563
    Implicit,
}

#[derive(Debug, Default, clap::Args)]
pub(crate) struct TlsArgs {
    /// How the connection is secured
    #[arg(long, value_enum, default_value_t = Tls::None)]
    pub(crate) tls: Tls,
    /// A file of the authorities that are believed, in PEM [default: those of this machine]
    #[arg(long, value_name = "FILE")]
    authority: Option<PathBuf>,
}

/// A server, by whatever it is called, and where it is.
#[derive(Debug, Clone)]
pub(crate) struct Server {
    /// Its name, or its address as it was written, without a port; none: it is the spool's.
    pub(crate) name: Option<String>,
    addresses: Vec<SocketAddr>,
}

/// The server does not let us post, as we are; somebody else may.
#[derive(Debug)]
pub(crate) struct NotLet(String);

impl fmt::Display for NotLet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for NotLet {}

impl Server {
    /// The first of its addresses.
    pub(crate) fn address(&self) -> Result<SocketAddr> {
        let first = self.addresses.first().copied();
        first.context("the server has no address")
    }

    fn port(&self) -> u16 {
        self.addresses.first().map_or(NNTP_PORT, SocketAddr::port)
    }

    /// The same at another port.
    pub(crate) fn at_port(mut self, port: u16) -> Self {
        for address in &mut self.addresses {
            address.set_port(port);
        }
        self
    }

    /// The server as somebody speaks with it, over TLS or not.
    ///
    /// # Errors
    /// When the file of authorities cannot be used, or a password would be readable on the way.
    pub(crate) fn spoken_to(
        &self,
        tls: &TlsArgs,
        login: Option<(String, String)>,
    ) -> Result<Remote> {
        let first = self.addresses.first().map(SocketAddr::ip);
        let host = match (&self.name, first) {
            (Some(name), _) => name.clone(),
            (None, first) => first.map_or_else(|| "localhost".to_owned(), |it| it.to_string()),
        };
        let trust = || {
            let authority = tls.authority.as_ref();
            let read = authority.map(|path| input::read(path, FILE_OCTETS_MAX));
            let octets = read.transpose()?.map(|read| read.octets);
            let trust = Trust::new(&host, octets.as_deref(), None);
            trust.map_err(|why| anyhow!("TLS cannot be spoken with {host}: {why}"))
        };
        let is_here = self.addresses.iter().all(|it| it.ip().is_loopback());
        if login.is_some() && tls.tls == Tls::None && !is_here {
            bail!(
                "the password would go to {host} in clear, and is not sent: secure the connection by --tls starttls or --tls implicit; in clear                  it goes to 127.0.0.1 and the like alone, where the server listens there"
            );
        }
        Ok(Remote {
            port: self.port(),
            security: match tls.tls {
                Tls::None => Security::None,
                Tls::Starttls => Security::Starttls(trust()?),
                Tls::Implicit => Security::Implicit(trust()?),
            },
            login: login.map(|(user, password)| Login {
                user,
                password,
                in_clear: is_here,
            }),
            reads: false,
            ..Remote::reader(&host)
        })
    }
}

/// A server by its name or address, with or without a port.
pub(crate) fn find(name: &str, port: Option<u16>, tls: Tls) -> Result<Server> {
    let usual = match tls {
        Tls::Implicit => NNTPS_PORT,
        Tls::None | Tls::Starttls => NNTP_PORT,
    };
    let bare = name.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
    let name = bare.unwrap_or(name);
    let (host, own) = match (name.parse::<IpAddr>(), name.parse::<SocketAddr>()) {
        (Ok(_), _) => (name.to_owned(), None),
        (_, Ok(address)) => (address.ip().to_string(), Some(address.port())),
        _ => match name.rsplit_once(':') {
            Some((host, own)) => {
                let own = own.parse();
                let own =
                    own.map_err(|_| anyhow!("{name}: what stands behind the colon is no port"))?;
                (host.to_owned(), Some(own))
            }
            None => (name.to_owned(), None),
        },
    };
    let port = own.or(port).unwrap_or(usual);
    let found = (host.as_str(), port).to_socket_addrs();
    let found = found.with_context(|| format!("cannot find the server {name}"))?;
    let addresses: Vec<SocketAddr> = found.collect();
    if addresses.is_empty() {
        bail!("the server {name} has no address");
    }
    Ok(Server {
        name: Some(host),
        addresses,
    })
}

/// How often a server that starts is looked for, and after what pause.
const TRIES: u32 = 50;
const PAUSE: Duration = Duration::from_millis(100);

/// The server that runs on a spool, if one does; one that starts is waited for.
fn running(spool: &Path) -> Result<Option<Client>> {
    for _ in 0..TRIES {
        if let Some(client) = Client::connect(spool)? {
            return Ok(Some(client));
        }
        // Who has the spool and takes no connection starts, or stops.
        if lock_holder(&spool.join("lock")).is_none() {
            return Ok(None);
        }
        std::thread::sleep(PAUSE);
    }
    bail!(
        "the server on the spool {} does not answer yet: it starts or stops, or another command has the spool; try again",
        spool.display()
    )
}

/// The server that runs on a spool.
pub(crate) fn server_of(spool: &Path) -> Result<Server> {
    let Some(mut client) = running(spool)? else {
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
    Ok(Server {
        name: None,
        addresses: vec![SocketAddr::new(ip, address.port())],
    })
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
pub(crate) fn post(server: &Server, wire: &[u8]) -> Result<String> {
    let mut refused = None;
    let stream = server.addresses.iter().find_map(|address| {
        match TcpStream::connect_timeout(address, PATIENCE) {
            Ok(stream) => Some(stream),
            Err(error) => {
                let what = format!("cannot connect to {address}");
                refused = Some(anyhow::Error::new(error).context(what));
                None
            }
        }
    });
    let stream = match (stream, refused) {
        (Some(stream), _) => stream,
        (None, refused) => {
            return Err(refused.unwrap_or_else(|| anyhow!("the server has no address")));
        }
    };
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    hand_over(BufReader::new(stream), wire)
}

/// Posts an article in wire form as a user, on a connection secured as is said; what the server said of it.
pub(crate) async fn post_as(server: &Remote, wire: &[u8]) -> Result<String> {
    let talking = async {
        let client = NewsClient::connect(server).await?;
        let io = client
            .into_io()
            .context("the server says more than it was asked")?;
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
    let said = || format!("the server {refused}: {}", crate::output::printable(&line));
    let is_for_others = ["201", "440", "480"].iter().any(|it| line.starts_with(it));
    match () {
        () if line.starts_with(code) => Ok(line),
        () if is_for_others => Err(NotLet(said()).into()),
        () => bail!("{}", said()),
    }
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
            let found = find(name, port, Tls::None).unwrap();
            assert_eq!(found.addresses[0].to_string(), address);
        };
        check("127.0.0.1:1119", None, "127.0.0.1:1119");
        check("127.0.0.1", None, "127.0.0.1:119");
        check("127.0.0.1", Some(1119), "127.0.0.1:1119");
        check("::1", Some(1119), "[::1]:1119");
        check("[::1]:9", None, "[::1]:9");
        check("[::1]", None, "[::1]:119");
        check("127.0.0.1:9", Some(1119), "127.0.0.1:9");
        let over_tls = find("127.0.0.1", None, Tls::Implicit).unwrap();
        assert_eq!(over_tls.port(), 563);
        assert!(find("localhost:x", None, Tls::None).is_err());
    }

    /// That it would go in clear was said, and to permit that, which no option does; nor that --tls secures it.
    #[test]
    fn a_password_goes_in_clear_to_this_machine_alone() {
        let ada = || Some(("ada".to_owned(), "correct-horse".to_owned()));
        let to = |name, login| {
            let server = find(name, None, Tls::None).unwrap();
            server.spoken_to(&TlsArgs::default(), login)
        };
        assert!(to("127.0.0.1", ada()).is_ok() && to("::1", ada()).is_ok());
        assert!(to("192.0.2.1", None).is_ok());
        let refused = to("192.0.2.1", ada()).map(|_| ()).unwrap_err().to_string();
        assert!(refused.contains("to 192.0.2.1 in clear") && refused.contains("--tls starttls"));
    }
}
