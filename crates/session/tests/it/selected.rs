//! A selected group that goes: no group that could be selected, whatever is asked for in it (RFC 3977 sections 6.1.2 to 6.2.1 and 8.3.1).

use std::sync::Arc;

use newsreel_net::Drain;
use newsreel_net::Stream;
use newsreel_net::access::{Door, Grant};
use newsreel_service::memory::{MemoryConfig, MemoryService};
use newsreel_service::{Beside, Connection, ConnectionId, NewsService, Outcome};
use newsreel_session::{Lists, SessionConfig, Shared, serve};
use newsreel_testkit::CLOCK_START_S;
use newsreel_wire::UnixTime;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, duplex};

use crate::driver::ADDRESS;

/// Commands, and what each is answered where nothing of the kind is in the group.
const COMMANDS: [(&str, &str); 19] = [
    ("STAT", "420"),
    ("STAT 2", "423"),
    ("ARTICLE 2", "423"),
    ("HEAD", "420"),
    ("BODY 2", "423"),
    ("OVER", "420"),
    ("OVER 1-", "423"),
    ("OVER 5-2", "423"),
    ("XOVER 1-", "420"),
    ("HDR Subject 1-", "423"),
    ("HDR Organization 1-", "423"),
    ("XHDR Subject 1-", "420"),
    ("XHDR Organization", "420"),
    ("XPAT Subject 1- *", "221"),
    ("XPAT Organization 2 *", "221"),
    ("XPAT Subject 5-2 *", "221"),
    ("NEXT", "421"),
    ("LAST", "422"),
    ("LISTGROUP", "211"),
];

const WIRE: &str = "Path: peer.example!not-for-mail\r\nFrom: a@example.org\r\nNewsgroups: misc.test\r\nSubject: s\r\n\
                    Date: Wed, 31 Dec 2025 12:00:00 +0000\r\nMessage-ID: <1@t>\r\n\r\nbody\r\n.\r\n";

/// A service with a group that has one article.
fn with_group(name: &str) -> Arc<MemoryService> {
    let service = MemoryService::new(MemoryConfig::default(), UnixTime(CLOCK_START_S));
    service.add_group(name, "y", "");
    let wire = WIRE.replace("misc.test", name);
    assert_eq!(service.inject(b"<1@t>", wire.as_bytes()), Outcome::Accepted);
    Arc::new(service)
}

/// The codes of the answers to a command in a group, after this was done to it, and to STAT behind it.
async fn answered(
    service: Arc<impl NewsService>,
    group: &str,
    command: &str,
    done: impl FnOnce(),
) -> [String; 2] {
    let (ours, theirs) = duplex(1 << 16);
    let session = serve(
        Stream::Plain(theirs),
        service,
        Shared::new(SessionConfig::default(), Lists::default(), Arc::default()),
        Connection::new(ConnectionId(1), Some(ADDRESS), None),
        Door::open(Grant::everything("test"), ADDRESS),
        Drain::new().watch(),
    );
    let asking = async {
        let mut io = BufReader::new(ours);
        let mut codes = Vec::new();
        let mut done = Some(done);
        for said in ["", &format!("GROUP {group}"), command, "STAT", "QUIT"] {
            if !said.is_empty() {
                let line = format!("{said}\r\n");
                io.get_mut().write_all(line.as_bytes()).await.unwrap();
            }
            let mut line = String::new();
            io.read_line(&mut line).await.unwrap();
            codes.push(line[..3].to_owned());
            let is_block = matches!(&line[..3], "221" | "224" | "225")
                || line.starts_with("211") && said == "LISTGROUP";
            while is_block && line != ".\r\n" {
                line.clear();
                io.read_line(&mut line).await.unwrap();
            }
            if said.starts_with("GROUP")
                && let Some(done) = done.take()
            {
                done();
            }
        }
        assert_eq!((&*codes[1], &*codes[4]), ("211", "205"), "{command}");
        [codes.swap_remove(2), codes.swap_remove(3)]
    };
    tokio::join!(session, asking).1
}

/// Each was answered as in a group without articles: XPAT with an empty list, others with codes that say that the group is there.
#[tokio::test]
async fn in_a_group_that_has_gone_nothing_is_selected() {
    for (command, in_empty) in COMMANDS {
        let service = with_group("misc.test");
        let removing = || service.remove_group("misc.test");
        let told = answered(Arc::clone(&service), "misc.test", command, removing).await;
        assert_eq!(told, ["412", "412"], "{command}");
        // One of that name that is made then is another.
        let service = with_group("misc.test");
        let making_again = || {
            service.remove_group("misc.test");
            service.add_group("misc.test", "y", "");
        };
        let told = answered(Arc::clone(&service), "misc.test", command, making_again).await;
        match command {
            "LISTGROUP" => assert_eq!(told, ["211", "420"], "it selects the new one"),
            _ => assert_eq!(told, ["412", "412"], "{command}"),
        }
        // It is there, and only has nothing.
        let service = with_group("misc.test");
        let emptying = || service.remove(b"<1@t>");
        let told = answered(Arc::clone(&service), "misc.test", command, emptying).await;
        assert_eq!(told, [in_empty, "420"], "{command}");
    }
}

/// The same where it is a server's own, or another's beside it.
#[tokio::test]
async fn either_sides_group_may_go() {
    for (command, _) in COMMANDS {
        for goes in ["misc.test", "misc.there"] {
            let (local, there) = (with_group("misc.test"), with_group("misc.there"));
            let both = Arc::new(Beside::new(Arc::clone(&local), Arc::clone(&there)));
            let removing = || {
                local.remove_group(goes);
                there.remove_group(goes);
            };
            let told = answered(both, goes, command, removing).await;
            assert_eq!(told, ["412", "412"], "{goes} {command}");
        }
    }
}
