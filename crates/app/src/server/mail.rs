//! The thread that sends mails to moderators, from the server's start to its end.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context as _, Result};
use newsreel_host::{Clock, Disk};
use newsreel_mail::{FOLDER, MailQueue, Pace, deliver_by};

use crate::config::Config;

/// How long a stop waits for the mail that is being sent.  It stays in the queue until it was, so the next start sends it.
const STOP_WAITS: Duration = Duration::from_secs(5);
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// The queue with its thread.
#[derive(Debug)]
pub(super) struct Mailing {
    queue: Arc<MailQueue>,
    thread: JoinHandle<()>,
}

impl Mailing {
    /// Takes up what waits in the spool, and begins to send.
    pub(super) fn start(
        config: &Config,
        disk: &Arc<dyn Disk>,
        clock: &Arc<dyn Clock>,
    ) -> Result<Self> {
        let moderation = &config.moderation;
        let pace = Pace {
            mails_max: moderation.queue_mails_max as usize,
            first: Duration::from_secs(moderation.retry_s_min),
            longest: Duration::from_secs(moderation.retry_s_max),
        };
        let folder = config.server.spool.join(FOLDER);
        let queue = MailQueue::open(Arc::clone(disk), Arc::clone(clock), &folder, pace);
        let queue = Arc::new(queue.context("cannot open the queue of mails to moderators")?);
        let (sending, deliver) = (Arc::clone(&queue), deliver_by(moderation));
        let thread = std::thread::Builder::new()
            .name("mail".to_owned())
            .spawn(move || sending.run(deliver.as_ref()))
            .context("cannot start the thread that sends mails")?;
        Ok(Self { queue, thread })
    }

    pub(super) fn queue(&self) -> Arc<MailQueue> {
        Arc::clone(&self.queue)
    }

    /// Ends it.
    pub(super) fn stop(self) {
        self.queue.stop();
        let mut waited = Duration::ZERO;
        while !self.thread.is_finished() && waited < STOP_WAITS {
            std::thread::sleep(LOOK_EVERY);
            waited += LOOK_EVERY;
        }
        if self.thread.is_finished() {
            let _ = self.thread.join();
        }
    }
}
