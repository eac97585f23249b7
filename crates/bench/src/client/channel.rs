//! The octets of a connection: as they are, in TLS, compressed (RFC 8054), or both.
//!
//! Invariant: what is read and written here is plain text, whatever goes over the socket; and on a socket that does not block,
//! a read that brings less than there is room for has emptied it. No certificate is looked at: nothing that is sent is a secret.

use std::fmt;
use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, ClientConnection, DigitallySignedStruct, SignatureScheme};

/// Compressed octets that are read, or made, at once.
const PIECE_OCTETS: usize = 32 * 1024;

/// A connection, blocking until [`Channel::no_longer_blocks`].
pub(crate) struct Channel {
    stream: TcpStream,
    tls: Option<Box<ClientConnection>>,
    deflated: Option<Box<Deflated>>,
    blocks: bool,
}

impl fmt::Debug for Channel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Channel")
            .field("stream", &self.stream)
            .finish_non_exhaustive()
    }
}

/// Both directions of a compressed connection.
struct Deflated {
    inflate: Decompress,
    /// What came and is not inflated.
    came: Box<[u8]>,
    came_from: usize,
    came_to: usize,
    /// Whether the last octets were inflated into all the room there was: there may be more without another read.
    is_full: bool,
    deflate: Compress,
    /// What is compressed and not sent.
    going: Vec<u8>,
    gone: usize,
}

impl Channel {
    pub(crate) const fn new(stream: TcpStream) -> Self {
        Self {
            stream,
            tls: None,
            deflated: None,
            blocks: true,
        }
    }

    pub(crate) const fn stream(&self) -> &TcpStream {
        &self.stream
    }

    pub(crate) fn into_stream(self) -> TcpStream {
        self.stream
    }

    /// Begins TLS; the handshake is made when something is written or read.
    pub(crate) fn secure(&mut self) -> io::Result<()> {
        let provider = Arc::new(ring::default_provider());
        let verifier = Arc::new(AnyCertificate(Arc::clone(&provider)));
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(io::Error::other)?
            .dangerous()
            .with_custom_certificate_verifier(verifier)
            .with_no_client_auth();
        let name = ServerName::IpAddress(self.stream.peer_addr()?.ip().into());
        let tls = ClientConnection::new(Arc::new(config), name).map_err(io::Error::other)?;
        self.tls = Some(Box::new(tls));
        Ok(())
    }

    /// From here on everything is compressed.
    pub(crate) fn compress(&mut self) {
        self.deflated = Some(Box::new(Deflated {
            inflate: Decompress::new(false),
            came: vec![0; PIECE_OCTETS].into(),
            came_from: 0,
            came_to: 0,
            is_full: false,
            deflate: Compress::new(Compression::default(), false),
            going: Vec::new(),
            gone: 0,
        }));
    }

    pub(crate) fn no_longer_blocks(&mut self) -> io::Result<()> {
        self.blocks = false;
        self.stream.set_nonblocking(true)
    }

    fn read_once(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let Some(deflated) = &mut self.deflated else {
            return read_below(&self.stream, self.tls.as_deref_mut(), buf);
        };
        loop {
            if let Some(len) = deflated.inflate(buf)? {
                return Ok(len);
            }
            let came = read_below(&self.stream, self.tls.as_deref_mut(), &mut deflated.came)?;
            (deflated.came_from, deflated.came_to) = (0, came);
            if came == 0 {
                return Ok(0);
            }
        }
    }
}

impl Read for Channel {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if self.tls.is_none() && self.deflated.is_none() {
            return (&self.stream).read(buf);
        }
        let mut len = 0;
        while let Some(room) = buf.get_mut(len..).filter(|room| !room.is_empty()) {
            match self.read_once(room) {
                Ok(0) => break,
                Ok(more) => len += more,
                Err(error) if len > 0 && error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
            if self.blocks {
                break;
            }
        }
        Ok(len)
    }
}

impl Write for Channel {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        self.write_vectored(&[IoSlice::new(buf)])
    }

    fn write_vectored(&mut self, bufs: &[IoSlice<'_>]) -> io::Result<usize> {
        let Some(deflated) = &mut self.deflated else {
            return write_below(&self.stream, self.tls.as_deref_mut(), bufs);
        };
        deflated.send(&self.stream, self.tls.as_deref_mut())?;
        let taken = deflated.deflate(bufs)?;
        match deflated.send(&self.stream, self.tls.as_deref_mut()) {
            Err(error) if error.kind() != ErrorKind::WouldBlock => Err(error),
            _ => Ok(taken),
        }
    }

    /// Sends what was taken; it would block where the socket takes no more.
    fn flush(&mut self) -> io::Result<()> {
        if let Some(deflated) = &mut self.deflated {
            deflated.send(&self.stream, self.tls.as_deref_mut())?;
        }
        self.tls
            .as_deref_mut()
            .map_or(Ok(()), |tls| send_records(&self.stream, tls))
    }
}

impl Deflated {
    /// Inflates what is here; `None`: nothing comes of it.
    fn inflate(&mut self, buf: &mut [u8]) -> io::Result<Option<usize>> {
        let input = self.came.get(self.came_from..self.came_to);
        let input = input.unwrap_or_default();
        if input.is_empty() && !self.is_full {
            return Ok(None);
        }
        let before = (self.inflate.total_in(), self.inflate.total_out());
        let status = self.inflate.decompress(input, buf, FlushDecompress::None);
        let status = status.map_err(|error| io::Error::new(ErrorKind::InvalidData, error))?;
        self.came_from += (self.inflate.total_in() - before.0) as usize;
        let len = (self.inflate.total_out() - before.1) as usize;
        self.is_full = len == buf.len();
        if len == 0 && status == Status::StreamEnd {
            return Ok(Some(0));
        }
        Ok((len > 0).then_some(len))
    }

    /// Compresses all of it, so that the other side can read it at once.
    fn deflate(&mut self, bufs: &[IoSlice<'_>]) -> io::Result<usize> {
        let broken = |error| io::Error::new(ErrorKind::InvalidData, error);
        let mut taken = 0;
        for buf in bufs {
            let mut left: &[u8] = buf;
            while !left.is_empty() {
                self.going.reserve(PIECE_OCTETS);
                let before = self.deflate.total_in();
                let (deflate, going) = (&mut self.deflate, &mut self.going);
                deflate
                    .compress_vec(left, going, FlushCompress::None)
                    .map_err(broken)?;
                let len = (self.deflate.total_in() - before) as usize;
                left = left.get(len..).unwrap_or_default();
                taken += len;
            }
        }
        if taken == 0 {
            return Ok(0);
        }
        loop {
            self.going.reserve(PIECE_OCTETS);
            let (deflate, going) = (&mut self.deflate, &mut self.going);
            deflate
                .compress_vec(&[], going, FlushCompress::Sync)
                .map_err(broken)?;
            // A flush is complete when it leaves room behind it.
            if self.going.len() < self.going.capacity() {
                return Ok(taken);
            }
        }
    }

    fn send(
        &mut self,
        stream: &TcpStream,
        mut tls: Option<&mut ClientConnection>,
    ) -> io::Result<()> {
        while let Some(left) = self.going.get(self.gone..).filter(|left| !left.is_empty()) {
            self.gone += write_below(stream, tls.as_deref_mut(), &[IoSlice::new(left)])?;
        }
        self.going.clear();
        self.gone = 0;
        Ok(())
    }
}

/// Reads what is compressed, or plain.
fn read_below(
    mut stream: &TcpStream,
    tls: Option<&mut ClientConnection>,
    buf: &mut [u8],
) -> io::Result<usize> {
    let Some(tls) = tls else {
        return stream.read(buf);
    };
    loop {
        match tls.reader().read(buf) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            read => return read,
        }
        // What the handshake has to say.
        match send_records(stream, tls) {
            Err(error) if error.kind() != ErrorKind::WouldBlock => return Err(error),
            _ => {}
        }
        // Where the socket has ended, the reader says how.
        tls.read_tls(&mut stream)?;
        tls.process_new_packets()
            .map_err(|error| io::Error::new(ErrorKind::InvalidData, error))?;
    }
}

fn write_below(
    mut stream: &TcpStream,
    tls: Option<&mut ClientConnection>,
    bufs: &[IoSlice<'_>],
) -> io::Result<usize> {
    let Some(tls) = tls else {
        return stream.write_vectored(bufs);
    };
    send_records(stream, tls)?;
    let taken = tls.writer().write_vectored(bufs)?;
    match send_records(stream, tls) {
        Err(error) if error.kind() != ErrorKind::WouldBlock => Err(error),
        _ if taken == 0 => Err(ErrorKind::WouldBlock.into()),
        _ => Ok(taken),
    }
}

fn send_records(mut stream: &TcpStream, tls: &mut ClientConnection) -> io::Result<()> {
    while tls.wants_write() {
        tls.write_tls(&mut stream)?;
    }
    Ok(())
}

/// Whoever it is: only what the handshake costs is to be as it always is.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
