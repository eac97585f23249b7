//! The server's end of the control socket.
//!
//! The socket is made under another name, closed to others, and then put in place; whoever connects must be the
//! server's user or root.  Lines, connections and time are bounded; a request runs on a blocking thread.

use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use newsreel_engine::Engine;
use newsreel_host::Disk;
use newsreel_net::DrainWatch;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::unix::OwnedWriteHalf;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::answers::{Running, answer};
use super::request::{Request, one_line};
use super::{Progress, REQUEST_OCTETS_MAX, Reply, short_path, socket_path};

/// How long a client may take to send a request or to take a reply; one that is idle for longer loses its connection.
pub(crate) const STALL: Duration = Duration::from_secs(60);

/// Progress lines that wait for a slow client.
pub(crate) const PROGRESS_LINES_MAX: usize = 16;

/// The bound socket; its name goes when this is dropped.
#[derive(Debug)]
pub(crate) struct ControlSocket {
    listener: UnixListener,
    path: PathBuf,
    disk: Arc<dyn Disk>,
}

/// Who answers what is asked on a socket.
pub(crate) trait Answers: Clone + Send + 'static {
    /// Answers one request; `progress` says whether anybody still listens.
    fn answer(
        &self,
        request: Request,
        progress: &mut dyn FnMut(Progress) -> bool,
    ) -> Result<Value, String>;
}

/// A server with its spool.
#[derive(Debug, Clone)]
pub(crate) struct Answering {
    pub(crate) engine: Arc<Engine>,
    pub(crate) server: Arc<dyn Running>,
}

impl Answers for Answering {
    fn answer(
        &self,
        request: Request,
        progress: &mut dyn FnMut(Progress) -> bool,
    ) -> Result<Value, String> {
        answer(&self.engine, Some(&*self.server), request, progress)
    }
}

impl ControlSocket {
    /// Makes the socket in a spool whose lock we hold; an old one is left from a crash and goes.
    pub(crate) fn bind(disk: &Arc<dyn Disk>, spool: &Path) -> io::Result<Self> {
        let path = socket_path(spool);
        let early = path.with_extension("new");
        for old in [&path, &early] {
            if disk.exists(old).map_err(io::Error::other)? {
                disk.remove(old).map_err(io::Error::other)?;
            }
        }
        let (short, _folder) = short_path(&early)?;
        let listener = UnixListener::bind(short)?;
        #[expect(
            clippy::disallowed_methods,
            reason = "a socket is no file that a Disk makes"
        )]
        std::fs::set_permissions(&early, std::fs::Permissions::from_mode(0o600))?;
        disk.rename(&early, &path).map_err(io::Error::other)?;
        Ok(Self {
            listener,
            path,
            disk: Arc::clone(disk),
        })
    }

    /// Answers until draining starts; requests under way end first.
    pub(crate) async fn run(
        self,
        answering: impl Answers,
        connections_max: usize,
        mut drain: DrainWatch,
    ) {
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                () = drain.started() => break,
                Some(_) = connections.join_next(), if !connections.is_empty() => {}
                accepted = self.listener.accept(), if connections.len() < connections_max => {
                    match accepted {
                        Ok((stream, _)) => {
                            connections.spawn(converse(stream, answering.clone()));
                        }
                        Err(error) => {
                            tracing::warn!(target: "newsreel::control", %error, "cannot accept");
                            tokio::time::sleep(Duration::from_millis(50)).await;
                        }
                    }
                }
            }
        }
        let all = async { while connections.join_next().await.is_some() {} };
        if tokio::time::timeout(Duration::from_secs(5), all)
            .await
            .is_err()
        {
            connections.shutdown().await;
        }
    }
}

impl Drop for ControlSocket {
    fn drop(&mut self) {
        if let Err(error) = self.disk.remove(&self.path) {
            tracing::debug!(target: "newsreel::control", %error, "the socket has gone already");
        }
    }
}

/// One connection, from its first request to its end.
async fn converse(stream: UnixStream, answering: impl Answers) {
    match stream.peer_cred() {
        Ok(peer) if is_welcome(peer.uid()) => {}
        Ok(peer) => {
            tracing::warn!(target: "newsreel::control", uid = peer.uid(), "refused");
            return;
        }
        Err(error) => {
            tracing::warn!(target: "newsreel::control", %error, "nobody knows who this is");
            return;
        }
    }
    if let Err(error) = requests(stream, answering).await {
        tracing::debug!(target: "newsreel::control", %error, "a client has gone");
    }
}

/// Root and the server's own user.
fn is_welcome(uid: u32) -> bool {
    uid == 0 || newsreel_host::process::own_uid() == uid
}

async fn requests(stream: UnixStream, answering: impl Answers) -> io::Result<()> {
    let (reader, mut writer) = stream.into_split();
    let mut reader = BufReader::new(reader);
    loop {
        let mut line = Vec::new();
        let mut limited = (&mut reader).take(REQUEST_OCTETS_MAX);
        tokio::time::timeout(STALL, limited.read_until(b'\n', &mut line)).await??;
        if line.last() != Some(&b'\n') {
            return Ok(());
        }
        let (replies, coming) = mpsc::channel(PROGRESS_LINES_MAX);
        let answering = answering.clone();
        let work = tokio::task::spawn_blocking(move || reply_to(&line, &answering, &replies));
        let sent = send(coming, &mut writer).await;
        // Whoever has gone, or takes nothing, keeps the place until the work that was begun is done.
        work.await?;
        sent?;
    }
}

/// Sends what comes until there is no more.
async fn send(mut coming: mpsc::Receiver<Reply>, writer: &mut OwnedWriteHalf) -> io::Result<()> {
    while let Some(reply) = coming.recv().await {
        let mut line = serde_json::to_vec(&reply)?;
        line.push(b'\n');
        tokio::time::timeout(STALL, writer.write_all(&line)).await??;
    }
    Ok(())
}

/// Runs on a blocking thread; a client that goes away ends only its progress, and what is done for nobody but it.
fn reply_to(line: &[u8], answering: &impl Answers, replies: &mpsc::Sender<Reply>) {
    let reply = match serde_json::from_slice::<Request>(line) {
        Ok(request) => {
            let what = request.is_logged().then(|| request.summary());
            let mut progress = |at| {
                // A slow client misses some of the progress, never the answer.
                let _ = replies.try_send(Reply::Progress(at));
                !replies.is_closed()
            };
            let answered = answering.answer(request, &mut progress);
            match (what, &answered) {
                (None, _) => {}
                (Some(what), Ok(_)) => {
                    tracing::info!(target: "newsreel::control", %what, "done");
                }
                (Some(what), Err(why)) => {
                    let why = one_line(why);
                    tracing::info!(target: "newsreel::control", %what, %why, "refused");
                }
            }
            match answered {
                Ok(value) => Reply::Ok(value),
                Err(error) => Reply::Error(error),
            }
        }
        Err(error) => Reply::Error(format!("not a request: {error}")),
    };
    let _ = replies.blocking_send(reply);
}

#[cfg(test)]
mod tests {
    use newsreel_engine::EngineConfig;
    use newsreel_feed::{Batching, Pulling};
    use newsreel_host::{FakeClock, MemoryDisk};

    use super::*;
    use crate::control::request::PeerAction;

    #[derive(Debug)]
    struct Nobody;

    impl Running for Nobody {
        fn facts(&self) -> Value {
            Value::Null
        }

        fn reload(&self) -> Result<Value, String> {
            Ok(Value::Null)
        }

        fn peer(&self, _: PeerAction, _: &str) -> Result<Value, String> {
            Ok(Value::Null)
        }

        fn resize(
            &self,
            _: &[(String, u64)],
            _: bool,
            _: &mut dyn FnMut(u64, u64),
        ) -> Result<Value, String> {
            Ok(Value::Null)
        }

        fn batch(
            &self,
            _: &Batching,
            _: &mut dyn FnMut(Progress) -> bool,
        ) -> Result<Value, String> {
            Ok(Value::Null)
        }

        fn pull(&self, _: &Pulling, _: &mut dyn FnMut(Progress) -> bool) -> Result<Value, String> {
            Ok(Value::Null)
        }

        fn pulls(&self) -> Value {
            Value::Null
        }

        fn bans(&self, _: Option<&str>) -> Result<Value, String> {
            Ok(Value::Null)
        }

        fn stop(&self) {}
    }

    fn answering() -> Answering {
        let mut config = EngineConfig::new("/spool".into());
        for buffer in &mut config.store.buffers {
            buffer.octets = 1 << 20;
        }
        let disk = Arc::new(MemoryDisk::new());
        let clock = Arc::new(FakeClock::new(1_700_000_000));
        let engine = Engine::open(config, disk, clock, &mut |_, _, _| {}).unwrap();
        Answering {
            engine: Arc::new(engine),
            server: Arc::new(Nobody),
        }
    }

    /// One that says nothing, half a request, or a request and then nothing, gives its place back.
    #[tokio::test(start_paused = true)]
    async fn an_idle_client_does_not_keep_its_connection() {
        let answering = answering();
        for said in [&b""[..], b"{\"request\"", b"{\"request\":\"dance\"}\n"] {
            let (ours, mut theirs) = UnixStream::pair().unwrap();
            theirs.write_all(said).await.unwrap();
            let conversation = requests(ours, answering.clone());
            let ended = tokio::time::timeout(2 * STALL, conversation).await;
            let error = ended.expect("it is still there").unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::TimedOut, "{said:?}");
        }
    }
}
