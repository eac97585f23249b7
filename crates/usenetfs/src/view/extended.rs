//! Extended attributes and the text of links: passed on, but for what is the layout's own.
//!
//! The layout's mark is not shown and cannot be changed.  Access control lists are refused: the kernel would not hold
//! what is not asked of it.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use newsreel_host::node::{Errno, Outcome};
use newsreel_layout::ATTRIBUTE;

use super::{ROOT, STATUS_ATTRIBUTE, View};
use crate::counters::Op;

/// Where access control lists are.
const LISTS: &[u8] = b"system.";

impl View {
    /// The text of a symbolic link, as it was written.
    pub fn read_link(&self, node: u64) -> Outcome<Vec<u8>> {
        self.counters.count(Op::ReadLink);
        self.pin(node)?.read_link()
    }

    /// An extended attribute.
    pub fn attribute(&self, node: u64, name: &OsStr) -> Outcome<Vec<u8>> {
        self.counters.count(Op::GetXattr);
        if node == ROOT && name == STATUS_ATTRIBUTE {
            return Ok(self.status().into_bytes());
        }
        readable(name)?;
        self.pin(node)?.attribute(name)
    }

    /// How long an extended attribute is: the kernel asks that of every file before it is written.
    pub fn attribute_len(&self, node: u64, name: &OsStr) -> Outcome<usize> {
        self.counters.count(Op::GetXattr);
        if node == ROOT && name == STATUS_ATTRIBUTE {
            return Ok(self.status().len());
        }
        readable(name)?;
        self.pin(node)?.attribute_len(name)
    }

    /// The names of the extended attributes, each with a NUL behind it.
    pub fn attribute_names(&self, node: u64) -> Outcome<Vec<u8>> {
        self.counters.count(Op::GetXattr);
        let names = self.pin(node)?.attributes()?;
        let shown = names.split_inclusive(|octet| *octet == 0).filter(|name| {
            let name = name.strip_suffix(&[0]).unwrap_or(name);
            !name.starts_with(LISTS) && !is_own(OsStr::from_bytes(name))
        });
        Ok(shown.flatten().copied().collect())
    }

    /// Sets an extended attribute; `flags` as of `setxattr(2)`.
    pub fn set_attribute(&self, node: u64, name: &OsStr, value: &[u8], flags: u32) -> Outcome<()> {
        self.counters.count(Op::SetXattr);
        changeable(name)?;
        self.pin(node)?.set_attribute(name, value, flags)
    }

    /// Removes an extended attribute.
    pub fn remove_attribute(&self, node: u64, name: &OsStr) -> Outcome<()> {
        self.counters.count(Op::SetXattr);
        changeable(name)?;
        self.pin(node)?.remove_attribute(name)
    }
}

fn is_own(name: &OsStr) -> bool {
    name == ATTRIBUTE || name == STATUS_ATTRIBUTE
}

fn readable(name: &OsStr) -> Outcome<()> {
    if name.as_bytes().starts_with(LISTS) {
        return Err(Errno::OPNOTSUPP);
    }
    if is_own(name) {
        return Err(Errno::NODATA);
    }
    Ok(())
}

fn changeable(name: &OsStr) -> Outcome<()> {
    if name.as_bytes().starts_with(LISTS) {
        return Err(Errno::OPNOTSUPP);
    }
    if is_own(name) {
        return Err(Errno::PERM);
    }
    Ok(())
}
