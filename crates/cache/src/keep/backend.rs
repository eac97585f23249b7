//! A file of our disks as the medium of a redb database.

use std::io;
use std::sync::Arc;

use newsreel_host::File;
use redb::StorageBackend;

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
