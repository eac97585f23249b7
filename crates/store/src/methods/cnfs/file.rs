//! One buffer's file: made, opened, and the marks that readers share with the sequencer.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use newsreel_host::{Disk, File, OpenMode};
use newsreel_wire::{BufferId, Position, Sequence, SetId};

use super::format::{FileHeader, PAGE, SECOND_HEADER, data_start};
use crate::config::BufferConfig;
use crate::error::{Error, Result};

/// Told how many octets of a new buffer were written, of how many.
pub type CreateProgress<'a> = &'a mut dyn FnMut(&str, u64, u64);

/// Zeros are written in steps of this, between which progress is told.
const FILL_STEP: u64 = 16 << 20;

/// A buffer as everyone may see it.
#[derive(Debug)]
pub struct Buffer {
    /// Its id in the spool.
    pub id: BufferId,
    /// Its name.
    pub name: String,
    /// The set it belongs to.
    pub set: SetId,
    /// Its file.
    pub file: Arc<dyn File>,
    /// Where articles begin.
    pub data_start: u64,
    /// Where they end: a multiple of the page.
    pub data_end: u64,
    /// The header it was opened with: hints.
    pub header: FileHeader,
    /// What was wrong with it when it was opened, if anything.
    pub complaint: Option<String>,
    /// Positions below are gone.
    pub(super) floor: AtomicU64,
    /// End of the last placed article, for people.
    pub(super) end: AtomicU64,
    /// Up to here it may be written, for people.
    pub(super) reserved: AtomicU64,
    /// It failed and takes nothing more.
    pub(super) suspended: AtomicBool,
}

impl Buffer {
    /// Positions below this are gone.
    #[must_use]
    pub fn floor(&self) -> Position {
        Position(self.floor.load(Ordering::SeqCst))
    }

    /// End of the last placed article.
    #[must_use]
    pub fn end(&self) -> Position {
        Position(self.end.load(Ordering::Relaxed))
    }

    /// Up to here it may be written.
    #[must_use]
    pub fn reserved(&self) -> Position {
        Position(self.reserved.load(Ordering::Relaxed))
    }

    /// Whether it failed and takes nothing more.
    #[must_use]
    pub fn is_suspended(&self) -> bool {
        self.suspended.load(Ordering::Relaxed)
    }

    /// Room for articles, octets.
    #[must_use]
    pub const fn capacity(&self) -> u64 {
        self.data_end - self.data_start
    }

    /// Makes the file of a new buffer.
    pub(crate) fn create(
        disk: &dyn Disk,
        config: &BufferConfig,
        path: &Path,
        (spool, id): ([u8; 16], BufferId),
        progress: CreateProgress<'_>,
    ) -> Result<()> {
        let dir = path.parent().unwrap_or(Path::new("."));
        disk.create_dir_all(dir)?;
        let temporary = path.with_extension("making");
        if disk.exists(&temporary)? {
            // An earlier making was cut off; the file never got its name.
            disk.remove(&temporary)?;
        }
        let file = disk.open(&temporary, OpenMode::CreateNew)?;
        let made = fill(file.as_ref(), config, &mut |done| {
            progress(&config.name, done, config.octets);
        });
        if let Err(error) = made {
            // Half a buffer is no use; what removal says does not matter beside the cause.
            let _ = disk.remove(&temporary);
            return Err(error.into());
        }
        let start = Position::new(1, data_start(config.octets));
        let header = FileHeader {
            spool,
            buffer: id.0,
            name: config.name.clone(),
            octets: config.octets,
            data_start: data_start(config.octets),
            end: start,
            reserved: start,
            sequence: Sequence(0),
        };
        write_headers(file.as_ref(), &header)?;
        file.sync_all()?;
        disk.rename(&temporary, path)?;
        disk.sync_dir(dir)?;
        Ok(())
    }

    /// Opens a buffer; a damaged header is replaced by its copy and complained about.
    pub(crate) fn open(
        disk: &dyn Disk,
        config: &BufferConfig,
        path: &Path,
        (spool, set): ([u8; 16], SetId),
        mode: OpenMode,
    ) -> Result<Self> {
        let wrong = |why: String| Error::Buffer {
            name: config.name.clone(),
            path: path.to_path_buf(),
            why,
        };
        let file = disk.open(path, mode)?;
        let (header, complaint) = read_headers(file.as_ref()).map_err(&wrong)?;
        if header.spool != spool {
            return Err(wrong(
                "it belongs to another spool; attach it instead".to_owned(),
            ));
        }
        if header.name != config.name {
            return Err(wrong(format!(
                "it is buffer {:?}; mend the paths",
                header.name
            )));
        }
        let len = file.len()?;
        if len < header.octets {
            return Err(wrong(format!(
                "it has {len} octets, its header says {}",
                header.octets
            )));
        }
        if header.octets != config.octets {
            return Err(wrong(format!(
                "it has {} octets, the configuration says {}; set `octets` to the former",
                header.octets, config.octets
            )));
        }
        Ok(Self {
            id: BufferId(header.buffer),
            name: header.name.clone(),
            set,
            file,
            data_start: header.data_start,
            data_end: header.octets - header.octets % PAGE,
            floor: AtomicU64::new(header.reserved.one_cycle_before().0),
            end: AtomicU64::new(header.end.0),
            reserved: AtomicU64::new(header.reserved.0),
            suspended: AtomicBool::new(false),
            header,
            complaint,
        })
    }

    /// Brings both copies of the header up to date, one after the other, so that one is sound at
    /// any moment.
    pub(super) fn write_header(&self, marks: (Position, Position, Sequence)) -> Result<()> {
        let (end, reserved, sequence) = marks;
        let header = FileHeader {
            end,
            reserved,
            sequence,
            ..self.header.clone()
        };
        let page = header.encode();
        self.file.write_at(&page, 0)?;
        self.file.sync_data()?;
        self.file.write_at(&page, SECOND_HEADER)?;
        self.file.sync_data()?;
        Ok(())
    }
}

/// The path of a buffer: as configured, or its name in the spool's own directory.
pub(crate) fn path_of(config: &BufferConfig, spool_dir: &Path) -> PathBuf {
    match &config.path {
        Some(path) => path.clone(),
        None => spool_dir.join("buffers").join(&config.name),
    }
}

fn fill(
    file: &dyn File,
    config: &BufferConfig,
    told: &mut dyn FnMut(u64),
) -> newsreel_host::Result<()> {
    if config.sparse {
        return file.set_len(config.octets);
    }
    // Really written: later overwriting then costs no allocation, and the room is certain.
    let mut done = 0;
    while done < config.octets {
        let step = FILL_STEP.min(config.octets - done);
        file.zero_fill(done, step)?;
        done += step;
        told(done);
    }
    file.sync_all()
}

fn write_headers(file: &dyn File, header: &FileHeader) -> Result<()> {
    let page = header.encode();
    file.write_at(&page, 0)?;
    file.write_at(&page, SECOND_HEADER)?;
    Ok(())
}

/// The newer sound copy of the header, and what is wrong with the other.
pub(crate) fn read_headers(
    file: &dyn File,
) -> std::result::Result<(FileHeader, Option<String>), String> {
    let read = |at: u64| {
        let mut page = vec![0; PAGE as usize];
        file.read_exact_at(&mut page, at)
            .map_err(|error| error.to_string())?;
        FileHeader::decode(&page).map_err(str::to_owned)
    };
    match (read(0), read(SECOND_HEADER)) {
        (Ok(first), Ok(second)) => Ok((
            if second.sequence > first.sequence {
                second
            } else {
                first
            },
            None,
        )),
        (Ok(header), Err(why)) | (Err(why), Ok(header)) => Ok((
            header,
            Some(format!(
                "one header copy is damaged ({why}); the other is used"
            )),
        )),
        (Err(why), Err(_)) => Err(format!("{why}; neither header copy can be used")),
    }
}
