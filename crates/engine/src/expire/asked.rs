//! A pass of expiry that somebody waits for, and one that only tells what would go.

use super::pass::{Expirer, Pass};
use super::report::ExpireReport;
use crate::config::Mode;
use crate::engine::Engine;
use crate::error::Error;

/// Goes as fast as it can, while somebody listens.
struct Asked<'a> {
    done: u64,
    total: u64,
    progress: &'a mut dyn FnMut(u64, u64) -> bool,
}

impl Expirer for Asked<'_> {
    fn worked(&mut self, _: u64, _: u64) -> bool {
        (self.progress)(self.done, self.total)
    }
}

impl Engine {
    /// Lets go what the rules of `[[expire]]` let go now, or with `dry_run` tells what that would be.  `progress` is told how
    /// many groups are done, of how many, and says whether to go on.
    ///
    /// # Errors
    /// When there are no rules, nothing may expire now, or the log takes nothing; some of the articles may be gone then.
    pub fn expire(
        &self,
        dry_run: bool,
        progress: &mut dyn FnMut(u64, u64) -> bool,
    ) -> Result<ExpireReport, Error> {
        let shared = &*self.shared;
        if shared.policy.load().expire.is_empty() {
            return Err(Error::Request(
                "there is no [[expire]] in the configuration, so nothing goes before its buffer or segment does; \
                 see docs/expiry.md"
                    .to_owned(),
            ));
        }
        if let Some(why) = shared.expiry_held() {
            return Err(Error::Request(format!("nothing expires: {why}")));
        }
        let groups = shared.views.groups().sorted();
        let mut asked = Asked {
            done: 0,
            total: groups.len() as u64,
            progress,
        };
        let mut pass = Pass::new(shared, shared.time.calendar(), (true, dry_run));
        if shared.config.sequencer.mode == Mode::Transit && !pass.has_cards() {
            return Err(Error::Request(
                "a server in mode transit has no groups to expire articles of: its buffers and segments drop them".to_owned(),
            ));
        }
        for id in groups.iter() {
            if !pass.group(*id, &mut asked)? {
                pass.report.is_cut = true;
                break;
            }
            asked.done += 1;
        }
        pass.finish(&mut asked)?;
        if !pass.report.is_cut {
            pass.report.is_cut = !pass.ungrouped(&mut asked)?;
        }
        Ok(pass.report)
    }
}
