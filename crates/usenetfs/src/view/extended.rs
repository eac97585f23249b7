//! Extended attributes and the text of links: passed on, but for what is the layout's own.
//!
//! The layout's mark is not shown and cannot be changed.  Access control lists that are there below are shown, because the
//! kernel decides by them who may do what; they cannot be changed here: what is made in a bucket would not inherit them.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use newsreel_host::caller::obey_quotas;
use newsreel_host::node::{Errno, OpenFile, Outcome};
use newsreel_layout::ATTRIBUTE;

use super::{ROOT, STATUS_ATTRIBUTE, View};
use crate::counters::Op;
use crate::orders::CONVERT_ATTRIBUTE;

/// What belongs to the kernel, access control lists among it.
const SYSTEM: &[u8] = b"system.";

/// The access control lists.
const LISTS: [&[u8]; 2] = [b"system.posix_acl_access", b"system.posix_acl_default"];

impl View {
    /// The text of a symbolic link, as it was written.
    pub fn read_link(&self, node: u64) -> Outcome<Vec<u8>> {
        self.counters.count(Op::ReadLink);
        self.pin(node)?.read_link()
    }

    /// An extended attribute.
    pub fn attribute(&self, node: u64, name: &OsStr) -> Outcome<Vec<u8>> {
        self.counters.count(Op::GetXattr);
        if let Some(told) = self.own_attribute(node, name)? {
            return Ok(told.into_bytes());
        }
        readable(name)?;
        let found = self.pin(node)?.attribute(name);
        none_where_there_are_no_lists(name, found)
    }

    /// How long an extended attribute is: the kernel asks that before every writing, of the file that is open then.
    pub fn attribute_len(
        &self,
        node: u64,
        name: &OsStr,
        open: Option<&OpenFile>,
    ) -> Outcome<usize> {
        self.counters.count(Op::GetXattr);
        if let Some(told) = self.own_attribute(node, name)? {
            return Ok(told.len());
        }
        readable(name)?;
        let found = match open {
            Some(file) => file.attribute_len(name),
            None => self.pin(node)?.attribute_len(name),
        };
        none_where_there_are_no_lists(name, found)
    }

    /// What is told of the mount, and of conversions that were ordered.
    fn own_attribute(&self, node: u64, name: &OsStr) -> Outcome<Option<String>> {
        if is_order(name) {
            return self.told.of(node, name).map(Some).ok_or(Errno::NODATA);
        }
        Ok((node == ROOT && name == STATUS_ATTRIBUTE).then(|| self.status()))
    }

    /// The names of the extended attributes, each with a NUL behind it.
    pub fn attribute_names(&self, node: u64) -> Outcome<Vec<u8>> {
        self.counters.count(Op::GetXattr);
        let names = self.pin(node)?.attributes()?;
        let shown = names.split_inclusive(|octet| *octet == 0).filter(|name| {
            let name = name.strip_suffix(&[0]).unwrap_or(name);
            let is_shown = !name.starts_with(SYSTEM) || LISTS.contains(&name);
            is_shown && !is_own(OsStr::from_bytes(name))
        });
        Ok(shown.flatten().copied().collect())
    }

    /// Sets an extended attribute; `flags` as of `setxattr(2)`.
    pub fn set_attribute(&self, node: u64, name: &OsStr, value: &[u8], flags: u32) -> Outcome<()> {
        self.counters.count(Op::SetXattr);
        changeable(name)?;
        obey_quotas()?;
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
    name == ATTRIBUTE || name == STATUS_ATTRIBUTE || is_order(name)
}

/// Whether setting an attribute orders a conversion.
pub(crate) fn is_order(name: &OsStr) -> bool {
    name.as_bytes().starts_with(CONVERT_ATTRIBUTE.as_bytes())
}

fn is_list(name: &OsStr) -> bool {
    LISTS.contains(&name.as_bytes())
}

/// Where the file system below has no access control lists, nothing has one; otherwise nobody could be let in.
fn none_where_there_are_no_lists<T>(name: &OsStr, found: Outcome<T>) -> Outcome<T> {
    match found {
        Err(Errno::OPNOTSUPP) if is_list(name) => Err(Errno::NODATA),
        other => other,
    }
}

fn readable(name: &OsStr) -> Outcome<()> {
    if name.as_bytes().starts_with(SYSTEM) && !is_list(name) {
        return Err(Errno::OPNOTSUPP);
    }
    if is_own(name) {
        return Err(Errno::NODATA);
    }
    Ok(())
}

fn changeable(name: &OsStr) -> Outcome<()> {
    if name.as_bytes().starts_with(SYSTEM) {
        return Err(Errno::OPNOTSUPP);
    }
    if is_own(name) {
        return Err(Errno::PERM);
    }
    Ok(())
}
