//! Doing something as another user, on this thread only: what is made then belongs to that user.
//!
//! What the thread may do stays as it is (who asks was let through before), except that limits of room bind it: a
//! quota holds for its user whoever writes.  A process that is not root's does everything as itself.

use std::cell::Cell;

use rustix::io::Errno;
use rustix::process::{Gid, Uid};
use rustix::thread::{
    CapabilitiesSecureBits, CapabilitySet, capabilities, capabilities_secure_bits,
    set_capabilities, set_capabilities_secure_bits, set_thread_res_gid, set_thread_res_uid,
};

use crate::process;

/// Makes the limits of room bind this thread, whatever it does next.
///
/// # Errors
/// When it cannot be changed.
pub fn obey_quotas() -> Result<(), Errno> {
    standing().map(|_| ())
}

/// Who asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Caller {
    /// The user.
    pub uid: u32,
    /// The group.
    pub gid: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    /// This thread was not looked at yet.
    Unknown,
    /// It may become anyone and keeps what it may do.
    Root,
    /// It stays who it is.
    Ordinary,
}

thread_local! {
    static STANDING: Cell<Standing> = const { Cell::new(Standing::Unknown) };
}

impl Caller {
    /// Does something as this user.
    ///
    /// # Errors
    /// When this thread cannot become that user, or what was done says so.
    pub fn act<T>(self, act: impl FnOnce() -> Result<T, Errno>) -> Result<T, Errno> {
        if self.is_root() || standing()? == Standing::Ordinary {
            return act();
        }
        let _back = Guise::put_on(self)?;
        act()
    }

    const fn is_root(self) -> bool {
        self.uid == 0 && self.gid == 0
    }
}

/// Being another user, until it is dropped.
struct Guise;

impl Guise {
    fn put_on(caller: Caller) -> Result<Self, Errno> {
        // Made first, so that whatever was done of it is taken back.
        let guise = Self;
        set_thread_res_gid(None, Gid::from_raw(caller.gid), None)?;
        set_thread_res_uid(None, Uid::from_raw(caller.uid), None)?;
        Ok(guise)
    }
}

impl Drop for Guise {
    fn drop(&mut self) {
        let back = set_thread_res_uid(None, Uid::ROOT, None)
            .and_then(|()| set_thread_res_gid(None, Gid::ROOT, None));
        // A thread that stayed somebody else would do the next work in the wrong name.
        assert!(back.is_ok(), "this thread cannot be root again: {back:?}");
    }
}

/// Makes this thread ready to become others, once.
fn standing() -> Result<Standing, Errno> {
    let known = STANDING.get();
    if known != Standing::Unknown {
        return Ok(known);
    }
    let is = if process::own_uid() == 0 {
        keep_powers()?;
        Standing::Root
    } else {
        Standing::Ordinary
    };
    STANDING.set(is);
    Ok(is)
}

/// What a thread of root may do no longer follows from its user; going over quotas is given up.
fn keep_powers() -> Result<(), Errno> {
    let bits = capabilities_secure_bits()?;
    set_capabilities_secure_bits(bits | CapabilitiesSecureBits::NO_SETUID_FIXUP)?;
    let mut sets = capabilities(None)?;
    sets.effective.remove(CapabilitySet::SYS_RESOURCE);
    set_capabilities(None, sets)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn what_is_made_as_somebody_belongs_to_them() {
        if process::own_uid() != 0 {
            println!("skipped: only root can become somebody else");
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let make = |name: &str| {
            let path = dir.path().join(name);
            #[expect(
                clippy::disallowed_methods,
                reason = "makes what is looked at as somebody else"
            )]
            std::fs::create_dir(&path).unwrap();
            #[expect(clippy::disallowed_methods, reason = "looks at it")]
            let facts = std::fs::metadata(&path).unwrap();
            (facts.uid(), facts.gid())
        };
        let caller = Caller { uid: 61, gid: 62 };
        // The directory is root's alone: what the thread may do is kept.
        assert_eq!(caller.act(|| Ok(make("theirs"))), Ok((61, 62)));
        assert_eq!(make("ours"), (0, 0));
        let failed = caller.act(|| Err::<(), _>(Errno::NOSPC));
        assert_eq!(failed, Err(Errno::NOSPC));
        assert_eq!(make("ours again"), (0, 0));
    }
}
