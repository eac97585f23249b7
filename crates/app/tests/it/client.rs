//! A plain NNTP client: says lines, reads replies, sends articles.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

pub(crate) struct NewsClient {
    stream: BufReader<TcpStream>,
}

impl NewsClient {
    /// Connects and takes the greeting.
    pub(crate) fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(30)))
            .unwrap();
        let mut client = Self {
            stream: BufReader::new(stream),
        };
        let greeting = client.line();
        assert!(
            greeting.starts_with("200") || greeting.starts_with("201"),
            "{greeting}"
        );
        client
    }

    /// A line that comes, without its end; empty at the end of the connection.
    pub(crate) fn line(&mut self) -> String {
        let mut line = Vec::new();
        self.stream.read_until(b'\n', &mut line).unwrap();
        String::from_utf8_lossy(&line).trim_end().to_owned()
    }

    /// Says something and takes the first line of the reply.
    pub(crate) fn ask(&mut self, command: &str) -> String {
        self.send(format!("{command}\r\n").as_bytes());
        self.line()
    }

    /// Sends octets.
    pub(crate) fn send(&mut self, octets: &[u8]) {
        self.stream.get_mut().write_all(octets).unwrap();
    }

    /// A second handle on the connection, to write from another thread.
    pub(crate) fn writer(&self) -> TcpStream {
        self.stream.get_ref().try_clone().unwrap()
    }

    /// The lines of a block as they come, without CRLF, up to its dot.
    pub(crate) fn raw_block(&mut self) -> Vec<Vec<u8>> {
        let mut lines = Vec::new();
        loop {
            let mut line = Vec::new();
            self.stream.read_until(b'\n', &mut line).unwrap();
            assert!(
                line.ends_with(b"\r\n"),
                "{:?}",
                line.escape_ascii().to_string()
            );
            line.truncate(line.len() - 2);
            if line == b"." {
                return lines;
            }
            lines.push(line);
        }
    }

    /// The lines of a block up to its dot.
    pub(crate) fn block(&mut self) -> Vec<String> {
        let mut lines = Vec::new();
        loop {
            let line = self.line();
            if line == "." {
                return lines;
            }
            lines.push(line);
        }
    }

    /// Offers an article by TAKETHIS; the reply.
    pub(crate) fn takethis(&mut self, id: &str, groups: &str) -> String {
        self.send(format!("TAKETHIS {id}\r\n{}", article(id, groups)).as_bytes());
        self.line()
    }
}

/// A small article in wire form.
pub(crate) fn article(id: &str, groups: &str) -> String {
    format!(
        "Path: peer.example!not-for-mail\r\nFrom: a@example.org\r\nNewsgroups: {groups}\r\n\
         Subject: a test\r\nDate: Wed, 31 Dec 2025 12:00:00 +0000\r\nMessage-ID: {id}\r\n\r\n\
         body of {id}\r\n.\r\n"
    )
}
