//! Headers of the files of a set, as they are written while the next file is made.

use newsreel_host::MemoryDisk;

use super::*;
use crate::records::geometry::BLOCK_MIN;

fn segments(disk: &Arc<dyn Disk>) -> Segments {
    let geometry = Geometry::of(SEGMENT_OCTETS_MIN, BLOCK_MIN).unwrap();
    let header = FileHeader {
        spool: [3; 16],
        uuid: [4; 16],
        buffer: 7,
        name: "text".to_owned(),
        octets: SEGMENT_OCTETS_MIN,
        block: BLOCK_MIN,
        data_start: geometry.data_start,
        generation: 0,
        hints: Hints::default(),
        narrowing: None,
    };
    let found = Found {
        files: BTreeMap::new(),
        header: first_header(header, &geometry),
        newest_at: 0,
        is_rescued: false,
        complaint: None,
    };
    let kind = Kind {
        number: 2,
        name: "segment",
        is_of_articles: true,
    };
    let dir = (PathBuf::from("/segments"), None);
    Segments::new(kind, disk, dir, false, geometry, found)
}

/// A checkpoint wrote the header of the next file into the one that it had opened.
#[test]
fn a_file_never_gets_the_header_of_the_next() {
    let disk: Arc<dyn Disk> = Arc::new(MemoryDisk::new());
    let segments = segments(&disk);
    for cycle in [1, 2] {
        segments.make(cycle, UnixTime(cycle.into())).unwrap();
    }
    let file = segments.file(1).unwrap();
    let hints = segments.written();
    segments.write_header(1, &*file, hints).unwrap();
    for cycle in [1, 2] {
        segments.write_both_headers(hints).unwrap();
        let header = segments.header_of(cycle).unwrap().unwrap();
        assert_eq!(header.hints.bitmap_end.cycle(), cycle);
    }
}
