//! The threads that send mails, to moderators and about control messages, from the server's start to its end.
//!
//! Each kind has a queue and a thread of its own: strangers cause the second, and one that is slow to send keeps no moderator's waiting.

use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context as _, Result};
use newsreel_host::{Clock, Disk};
use newsreel_mail::{FOLDER, MailQueue, NOTICES_FOLDER, Pace, deliver_by};
use newsreel_service::posting::ModerationConfig;

use crate::config::Config;

/// How long a stop waits for the mails that are being sent.  They stay in their queues until they were, so the next start sends them.
const STOP_WAITS: Duration = Duration::from_secs(5);
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// A queue with its thread.
#[derive(Debug)]
struct Sending {
    queue: Arc<MailQueue>,
    thread: JoinHandle<()>,
}

/// The queues of a spool.
#[derive(Debug)]
pub(super) struct Mailing {
    moderators: Sending,
    notices: Sending,
}

impl Mailing {
    /// Takes up what waits in the spool, and begins to send.
    pub(super) fn start(
        config: &Config,
        disk: &Arc<dyn Disk>,
        clock: &Arc<dyn Clock>,
    ) -> Result<Self> {
        let start = |folder: &str, thread: &str| {
            let folder = config.server.spool.join(folder);
            Sending::start(&config.moderation, disk, clock, (&folder, thread))
        };
        Ok(Self {
            moderators: start(FOLDER, "mail")?,
            notices: start(NOTICES_FOLDER, "mail-notices")?,
        })
    }

    /// Where mails to moderators go.
    pub(super) fn moderators(&self) -> Arc<MailQueue> {
        Arc::clone(&self.moderators.queue)
    }

    /// Where those about control messages go.
    pub(super) fn notices(&self) -> Arc<MailQueue> {
        Arc::clone(&self.notices.queue)
    }

    /// Ends it.
    pub(super) fn stop(self) {
        let both = [self.moderators, self.notices];
        for sending in &both {
            sending.queue.stop();
        }
        let mut waited = Duration::ZERO;
        let is_sending = |it: &Sending| !it.thread.is_finished();
        while both.iter().any(is_sending) && waited < STOP_WAITS {
            std::thread::sleep(LOOK_EVERY);
            waited += LOOK_EVERY;
        }
        for sending in both {
            if sending.thread.is_finished() {
                let _ = sending.thread.join();
            }
        }
    }
}

impl Sending {
    fn start(
        moderation: &ModerationConfig,
        disk: &Arc<dyn Disk>,
        clock: &Arc<dyn Clock>,
        (folder, thread): (&Path, &str),
    ) -> Result<Self> {
        let pace = Pace {
            mails_max: moderation.queue_mails_max as usize,
            first: Duration::from_secs(moderation.retry_s_min),
            longest: Duration::from_secs(moderation.retry_s_max),
        };
        let queue = MailQueue::open(Arc::clone(disk), Arc::clone(clock), folder, pace);
        let about = || format!("cannot open the queue of mails {}", folder.display());
        let queue = Arc::new(queue.with_context(about)?);
        let (sending, deliver) = (Arc::clone(&queue), deliver_by(moderation));
        let thread = std::thread::Builder::new()
            .name(thread.to_owned())
            .spawn(move || sending.run(deliver.as_ref()))
            .context("cannot start a thread that sends mails")?;
        Ok(Self { queue, thread })
    }
}
