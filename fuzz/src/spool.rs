//! What each fuzz target of the spool's files does with its input.
//!
//! Whatever lies on a disk is input: a decoder answers it or refuses it, and never panics.  The app's tests include this
//! file and replay the committed corpora, so it uses nothing but the crates under test.

/// A target: its name, which is also its corpus folder and its file in `fuzz_targets`, and its function.
pub type Target = (&'static str, fn(&[u8]));

/// Every target of the spool's files.
pub const TARGETS: &[Target] = &[
    ("buffer", buffer),
    ("directory_mark", directory_mark),
    ("history_page", history_page),
    ("log_record", log_record),
    ("log_segment", log_segment),
    ("register", register),
    ("sealed_parts", sealed_parts),
    ("sealed_run", sealed_run),
    ("spool_identity", spool_identity),
];

/// A cyclic buffer's file: headers, records, bitmap, scans, reads.
pub fn buffer(data: &[u8]) {
    if let Ok(digest) = newsreel_store::fuzz::decode_buffer(data) {
        assert!(digest.read <= digest.sound, "{digest:?}");
    }
}

/// The attribute of a managed directory: what is understood is written the same way.
pub fn directory_mark(data: &[u8]) {
    use newsreel_layout::Mark;
    let written = match Mark::decode(data) {
        Some(Mark::Managed(algorithm)) => format!("1 {algorithm}"),
        Some(Mark::UnderWay(under_way)) => under_way.to_string(),
        Some(Mark::None | Mark::WithoutBit(_)) | None => return,
    };
    assert_eq!(written.as_bytes(), data);
}

/// The payload of a log record, its kind in front.
pub fn log_record(data: &[u8]) {
    if let [kind, payload @ ..] = data {
        let _ = newsreel_engine::fuzz::decode_record(*kind, payload);
    }
}

/// A segment of the log: header, frames, records, recovery, a reader.
pub fn log_segment(data: &[u8]) {
    if let Ok(digest) = newsreel_journal::decode_segment(data) {
        assert!(digest.payload_octets <= data.len() as u64, "{digest:?}");
    }
}

/// Parts of sealed files without their checksums.
pub fn sealed_parts(data: &[u8]) {
    let _ = newsreel_index::fuzz::decode_parts(data);
}

/// A sealed run of any kind behind right checksums: header, footer, sections, an overview pack's blocks and their texts.
pub fn sealed_run(data: &[u8]) {
    let _ = newsreel_index::fuzz::open_run(data);
}

/// A page of history behind a right checksum.
pub fn history_page(data: &[u8]) {
    let _ = newsreel_index::fuzz::decode_page(data);
}

/// The register of buffers.
pub fn register(data: &[u8]) {
    let _ = newsreel_store::fuzz::decode_register(data);
}

/// The file that makes a directory a spool.
pub fn spool_identity(data: &[u8]) {
    let _ = newsreel_engine::fuzz::decode_identity(data);
}
