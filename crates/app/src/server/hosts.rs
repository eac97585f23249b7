//! The hosts that peers are known by: their addresses, looked up again and again while the server runs.
//!
//! Invariant: nobody waits for the resolver but this task, except the doors at the start, [`FIRST`] at the most; and what it did not answer
//! changes nothing.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use newsreel_feed::Hosts;
use newsreel_net::DrainWatch;
use tokio::net::lookup_host;
use tokio::sync::oneshot::Sender;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::running::Server;

/// From one look to the next: who gets another address is known again before the peer gives up.
const EVERY: Duration = Duration::from_secs(600);
/// A name that is not answered for in this time is not waited for; the thread that asks is given back by the resolver.
const ANSWER: Duration = Duration::from_secs(10);
/// So long the doors stay shut at the start, so that who is known by a name is no stranger.
pub(super) const FIRST: Duration = Duration::from_secs(3);

impl Server {
    /// Looks up hosts until told to stop; `first` goes when each was asked for once.
    pub(super) async fn look_up_hosts(self: Arc<Self>, first: Sender<()>, mut stop: DrainWatch) {
        let (mut silent, mut first) = (BTreeSet::new(), Some(first));
        while !stop.is_started() {
            tokio::select! {
                () = self.look_up_once(&mut silent) => {}
                () = stop.started() => return,
            }
            drop(first.take());
            tokio::select! {
                () = sleep(EVERY) => {}
                () = self.beside.peers_changed.notified() => {}
                () = stop.started() => {}
            }
        }
    }

    async fn look_up_once(&self, silent: &mut BTreeSet<String>) {
        let names = self.settings.host_names();
        silent.retain(|name| names.contains(name));
        // Side by side: one that is not answered for holds no other.
        let mut asked = JoinSet::new();
        for name in names {
            asked.spawn(async move {
                let found = addresses_of(&name).await;
                (name, found)
            });
        }
        while let Some((name, found)) = next_of(&mut asked).await {
            match found {
                Ok(addresses) => {
                    silent.remove(&name);
                    if self.settings.found(&name, &addresses) {
                        tracing::info!(target: "newsreel::server", host = name, ?addresses, "a host that a peer is known by");
                    }
                }
                Err(why) if silent.insert(name.clone()) => {
                    tracing::warn!(target: "newsreel::server", host = name, why,
                        "a host that a peer is known by has no address; what was known of it stays");
                }
                Err(_) => {}
            }
        }
    }
}

/// The next answer; one whose task ended without any holds no other.
async fn next_of<T: 'static>(asked: &mut JoinSet<T>) -> Option<T> {
    loop {
        match asked.join_next().await? {
            Ok(answer) => return Some(answer),
            Err(error) => {
                tracing::error!(target: "newsreel::server", %error, "a look for a host that a peer is known by ended without an answer");
            }
        }
    }
}

async fn addresses_of(name: &str) -> Result<Vec<IpAddr>, String> {
    let found = timeout(ANSWER, lookup_host((name, 0))).await;
    let found = found.map_err(|_| "the resolver does not answer".to_owned())?;
    let found = found.map_err(|error| error.to_string())?;
    let addresses: Vec<IpAddr> = found.map(|address| address.ip()).collect();
    match addresses.is_empty() {
        true => Err("the resolver knows no address".to_owned()),
        false => Ok(addresses),
    }
}

/// The same for a command, which waits for the resolver.
pub(crate) fn look_up(names: BTreeSet<String>) -> Hosts {
    let mut hosts = Hosts::default();
    for name in names {
        if let Ok(found) = std::net::ToSocketAddrs::to_socket_addrs(&(name.as_str(), 0)) {
            hosts.found(&name, found.map(|address| address.ip()));
        }
    }
    hosts
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All answers behind it were dropped.
    #[tokio::test]
    async fn a_task_that_ends_without_an_answer_holds_no_other() {
        let mut asked = JoinSet::new();
        let ended = asked.spawn(std::future::pending());
        asked.spawn(async {
            // The other has ended by then.
            tokio::task::yield_now().await;
            7
        });
        ended.abort();
        assert_eq!(next_of(&mut asked).await, Some(7));
        assert_eq!(next_of(&mut asked).await, None);
    }
}
