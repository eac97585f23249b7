//! A file of our disks as the medium of a redb database.

use std::io;
use std::sync::Arc;

use newsreel_host::File;
use redb::StorageBackend;

use super::error::is_of_disk;

/// Whether it is what the disk said, and nothing that lies in the file.
pub(crate) fn is_fault_of_disk(fault: &redb::Error) -> bool {
    match fault {
        redb::Error::Io(error) => {
            let error = error.get_ref().and_then(|error| error.downcast_ref());
            error.is_some_and(is_of_disk)
        }
        redb::Error::PreviousIo => true,
        _ => false,
    }
}

/// The file.
#[derive(Debug)]
pub(crate) struct OnDisk(pub(crate) Arc<dyn File>);

impl StorageBackend for OnDisk {
    fn len(&self) -> io::Result<u64> {
        self.0.len().map_err(io::Error::other)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.0.read_exact_at(out, offset).map_err(io::Error::other)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len).map_err(io::Error::other)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.0.sync_data().map_err(io::Error::other)
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.0.write_at(data, offset).map_err(io::Error::other)
    }
}
