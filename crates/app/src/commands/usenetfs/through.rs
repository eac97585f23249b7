//! A conversion that the server of a mount does: ordered by an extended attribute of the directory, which tells how far it is.

use std::ffi::OsStr;
use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, bail};
use newsreel_host::node::{Errno, Outcome, Pin, Stat};
use newsreel_host::{process, random_bytes};
use newsreel_usenetfs::{CONVERT_ATTRIBUTE, Order};
use serde_json::Value;

use super::convert::bar;

/// So often it is asked how far it is.
const LOOKS_EVERY: Duration = Duration::from_millis(100);

/// So often it is tried while somebody lists the directory, or another one is being converted.
const TRIES: u32 = 50;

/// What came of an order.
pub(super) enum Told {
    Planned(Value),
    Converted(Value),
}

/// Gives an order, and waits for what comes of it.
pub(super) fn told(path: &Path, order: Order) -> Result<Told> {
    let pin = Pin::of_folder(path)
        .map_err(std::io::Error::from)
        .with_context(|| format!("cannot open {}", path.display()))?;
    let name = format!(
        "{CONVERT_ATTRIBUTE}{:x}",
        u64::from_le_bytes(random_bytes()?)
    );
    let asked = Asked {
        pin: &pin,
        path,
        name: OsStr::new(&name),
    };
    let mut tries = 1;
    loop {
        let done = asked.give(order);
        let mut told = asked.look().unwrap_or_default();
        match (done, told["state"].as_str()) {
            (Ok(()), Some("planned")) => return Ok(Told::Planned(told["plan"].take())),
            (Ok(()), Some("converted")) => return Ok(Told::Converted(told["report"].take())),
            (Ok(()), _) => bail!("the server of the mount does not say what it did"),
            (Err(_), Some("busy")) if tries < TRIES => {
                tries += 1;
                thread::sleep(LOOKS_EVERY);
            }
            // The server has nothing to say to them.
            (Err(Errno::PERM), _) if told["error"].is_null() && !may_order(&pin) => bail!(
                "only root and the owner of {} can have it converted",
                path.display()
            ),
            (Err(Errno::NOTCONN | Errno::CONNABORTED), _) => bail!(
                "the server of the mount that shows {} has died: mount it again, and give the same order, which goes on where it was",
                path.display()
            ),
            (Err(errno), _) => {
                let error = told["error"]
                    .as_str()
                    .map(|error| anyhow!(error.to_owned()));
                let error = error.unwrap_or_else(|| std::io::Error::from(errno).into());
                return Err(error.context(format!("{} is not converted", path.display())));
            }
        }
    }
}

/// Whether who runs this may have a directory converted.
fn may_order(pin: &Pin) -> bool {
    let uid = process::own_uid();
    uid == 0 || Stat::of(pin).is_ok_and(|stat| stat.uid == uid)
}

/// An order, where it is given and told of.
#[derive(Clone, Copy)]
struct Asked<'a> {
    pin: &'a Pin,
    path: &'a Path,
    /// The attribute.
    name: &'a OsStr,
}

impl Asked<'_> {
    /// Gives the order once; shows how far it is, where somebody looks.
    fn give(self, order: Order) -> Outcome<()> {
        let (ended, end) = sync_channel(1);
        thread::scope(|scope| {
            scope.spawn(move || {
                let words = order.to_string();
                let done = self.pin.set_attribute(self.name, words.as_bytes(), 0);
                // Who waits for it is below.
                let _ = ended.send(done);
            });
            let bar = bar();
            let done = loop {
                match end.recv_timeout(LOOKS_EVERY) {
                    Err(RecvTimeoutError::Timeout) => {}
                    Ok(done) => break done,
                    Err(RecvTimeoutError::Disconnected) => break Err(Errno::IO),
                }
                if let Some(told) = self.look().filter(|told| told["state"] == "running") {
                    bar.set_length(told["total"].as_u64().unwrap_or_default());
                    bar.set_position(told["done"].as_u64().unwrap_or_default());
                    bar.set_message(told["step"].as_str().unwrap_or_default().to_owned());
                }
            };
            bar.finish_and_clear();
            done
        })
    }

    fn look(self) -> Option<Value> {
        let told = super::patiently(self.path, || self.pin.attribute(self.name)).ok()?;
        serde_json::from_slice(&told).ok()
    }
}
