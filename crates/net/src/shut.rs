//! Networks that flood the listeners: the kernel drops what they begin, before it costs anybody anything.
//!
//! To refuse a connection it must be set up and taken down again, which the kernel does in the time of whoever runs: a few
//! ten thousand a second keep everybody else's packets waiting for milliseconds.  So a network that goes on after it was
//! refused is shut out for [`SHUT_FOR`]: a filter on the listening sockets drops the first packet (SYN) of its connections,
//! as a firewall would.  Connections that are there, and those from elsewhere, do not feel it.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::time::Duration;

use socket2::{SockFilter, SockRef};
use tokio::time::Instant;

/// How long a network is shut out.
pub const SHUT_FOR: Duration = Duration::from_secs(10);

/// Networks that are shut out at a time; beyond it the first is let in again.
pub const SHUT_MAX: usize = 64;

/// Who is shut out, and until when; in the order in which they are let in again.
#[derive(Debug, Default)]
pub(crate) struct Shut(VecDeque<(IpAddr, Instant)>);

impl Shut {
    /// Shuts a network out; false: it is already.
    pub(crate) fn add(&mut self, network: IpAddr, now: Instant) -> bool {
        if self.0.iter().any(|(shut, _)| *shut == network) {
            return false;
        }
        if self.0.len() >= SHUT_MAX {
            self.0.pop_front();
        }
        self.0.push_back((network, now + SHUT_FOR));
        true
    }

    /// When the next is let in again.
    pub(crate) fn opens_at(&self) -> Option<Instant> {
        self.0.front().map(|(_, until)| *until)
    }

    /// Lets those in again whose time is over.
    pub(crate) fn open(&mut self, now: Instant) {
        while self.opens_at().is_some_and(|until| until <= now) {
            self.0.pop_front();
        }
    }

    /// Has the kernel know, for one listening socket.
    ///
    /// # Errors
    /// When the kernel takes no filter; then they are refused one by one as before.
    pub(crate) fn apply(&self, listener: SockRef<'_>) -> std::io::Result<()> {
        let local = listener.local_addr()?;
        let family = |network: &IpAddr| network.is_ipv4() == local.is_ipv4();
        let networks: Vec<IpAddr> = self.0.iter().map(|(network, _)| *network).collect();
        let networks: Vec<IpAddr> = networks.into_iter().filter(family).collect();
        match networks.is_empty() {
            // There may be none.
            true => {
                let _ = listener.detach_filter();
                Ok(())
            }
            false => listener.attach_filter(&program(&networks)),
        }
    }
}

// A program of the classic Berkeley packet filter (filter.txt of the kernel's documentation): it begins at the TCP header,
// and finds the IP header from `NETWORK` on.
const LOAD_OCTET: u16 = 0x30;
const LOAD_WORD: u16 = 0x20;
const AND: u16 = 0x54;
const JUMP_IF_EQUAL: u16 = 0x15;
const RETURN: u16 = 0x06;
const NETWORK: u32 = (-0x10_0000_i32) as u32;
/// Source addresses, from the beginning of the IP header (RFC 791, RFC 8200).
const SOURCE_V4: u32 = NETWORK + 12;
const SOURCE_V6: u32 = NETWORK + 8;
/// The octet of flags (RFC 9293), SYN and ACK in it.
const FLAGS: u32 = 13;
const SYN_ACK: u32 = 0x12;
const SYN: u32 = 0x02;
const TAKEN: u32 = u32::MAX;
const DROPPED: u32 = 0;

/// Drops what begins a connection from one of these, which are all of one family; IPv6 ones are of /64.
fn program(networks: &[IpAddr]) -> Vec<SockFilter> {
    let step = |code, value| SockFilter::new(code, 0, 0, value);
    // When it is not this, so many steps are passed over.
    let unless = |value, past| SockFilter::new(JUMP_IF_EQUAL, 0, past, value);
    let mut program = vec![
        step(LOAD_OCTET, FLAGS),
        step(AND, SYN_ACK),
        SockFilter::new(JUMP_IF_EQUAL, 1, 0, SYN),
        step(RETURN, TAKEN),
    ];
    for network in networks {
        match network {
            IpAddr::V4(address) => program.extend([
                step(LOAD_WORD, SOURCE_V4),
                unless(address.to_bits(), 1),
                step(RETURN, DROPPED),
            ]),
            IpAddr::V6(address) => {
                let bits = address.to_bits();
                program.extend([
                    step(LOAD_WORD, SOURCE_V6),
                    unless((bits >> 96) as u32, 3),
                    step(LOAD_WORD, SOURCE_V6 + 4),
                    unless((bits >> 64) as u32, 1),
                    step(RETURN, DROPPED),
                ]);
            }
        }
    }
    program.push(step(RETURN, TAKEN));
    program
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::{SocketAddr, TcpListener, TcpStream};

    use newsreel_wire::network_of;
    use socket2::{Domain, Socket, Type};

    use super::*;

    /// Whether a connection from an address is there at once.
    fn comes(from: &str, listener: &TcpListener) -> Option<TcpStream> {
        let from = SocketAddr::new(from.parse().unwrap(), 0);
        let socket = Socket::new(Domain::for_address(from), Type::STREAM, None).unwrap();
        socket.bind(&from.into()).unwrap();
        let to = listener.local_addr().unwrap();
        let connected = socket.connect_timeout(&to.into(), Duration::from_millis(300));
        connected.ok().map(|()| socket.into())
    }

    #[test]
    fn who_is_shut_out_does_not_come_and_others_do() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let comes = |from: &str| comes(from, &listener);
        let (mut shut, now) = (Shut::default(), Instant::now());
        let mut before = comes("127.0.0.2").unwrap();
        let (mut taken, _) = listener.accept().unwrap();
        for last in 2..=40 {
            assert!(shut.add(IpAddr::from([127, 0, 0, last]), now));
        }
        assert!(!shut.add(IpAddr::from([127, 0, 0, 2]), now));
        shut.apply(SockRef::from(&listener)).unwrap();
        assert!(comes("127.0.0.2").is_none() && comes("127.0.0.40").is_none());
        // Who is there goes on, and others come.
        taken.write_all(b"x").unwrap();
        before.read_exact(&mut [0]).unwrap();
        assert!(comes("127.0.0.1").is_some() && comes("127.0.0.41").is_some());
        shut.open(now + SHUT_FOR - Duration::from_millis(1));
        assert!(shut.opens_at().is_some());
        shut.open(now + SHUT_FOR);
        shut.apply(SockRef::from(&listener)).unwrap();
        assert!(shut.opens_at().is_none() && comes("127.0.0.2").is_some());
        // Without a filter there is none to take off.
        shut.apply(SockRef::from(&listener)).unwrap();
    }

    /// `::1` is all that a machine has of IPv6 for sure, if it has any.
    #[test]
    fn networks_of_ipv6_are_shut_out_whole() {
        let Ok(listener) = TcpListener::bind("[::1]:0") else {
            println!("skipped: there is no IPv6");
            return;
        };
        let mut shut = Shut::default();
        for (network, is_let_in) in [
            ("2001:db8::1", true),
            ("0:0:0:1::", true),
            ("127.0.0.1", true),
            ("::2", false),
        ] {
            shut.add(network_of(network.parse().unwrap()), Instant::now());
            shut.apply(SockRef::from(&listener)).unwrap();
            assert_eq!(comes("::1", &listener).is_some(), is_let_in, "{network}");
        }
    }

    #[test]
    fn no_more_are_shut_out_than_there_is_room_for() {
        let (mut shut, now) = (Shut::default(), Instant::now());
        for n in 0..1000_u32 {
            shut.add(IpAddr::from(n.to_le_bytes()), now);
        }
        assert_eq!(shut.0.len(), SHUT_MAX);
    }
}
