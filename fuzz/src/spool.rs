//! What each fuzz target of the spool's files does with its input.
//!
//! Whatever lies on a disk is input: a decoder answers it or refuses it, and never panics.  The app's tests include this
//! file and replay the committed corpora, so it uses nothing but the crates under test.

/// A target: its name, which is also its corpus folder and its file in `fuzz_targets`, and its function.
pub type Target = (&'static str, fn(&[u8]));

/// Every target of the spool's files.
pub const TARGETS: &[Target] = &[
    ("buffer", buffer),
    ("cache_values", cache_values),
    ("changes", changes),
    ("control_keys", control_keys),
    ("control_message", control_message),
    ("directory_mark", directory_mark),
    ("feed_places", feed_places),
    ("pull_marks", pull_marks),
    ("history_page", history_page),
    ("log_record", log_record),
    ("log_segment", log_segment),
    ("logins", logins),
    ("manifest", manifest),
    ("openpgp", openpgp),
    ("register", register),
    ("scrub", scrub),
    ("sealed_parts", sealed_parts),
    ("sealed_run", sealed_run),
    ("spool_identity", spool_identity),
    ("users", users),
    ("waiting_mail", waiting_mail),
    ("xref", xref),
];

/// A cyclic buffer's file, as it is and behind right checksums: headers, records, bitmap, scans, reads.
pub fn buffer(data: &[u8]) {
    let made = newsreel_store::fuzz::decode_made_buffer(data);
    for digest in [newsreel_store::fuzz::decode_buffer(data), made]
        .iter()
        .flatten()
    {
        // Of each record the head and the whole.
        assert!(
            digest.read <= 2 * (digest.sound + digest.unsound),
            "{digest:?}"
        );
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

/// A segment of the log, as it is and behind right checksums: header, frames, records, recovery, a reader.
pub fn log_segment(data: &[u8]) {
    let made = newsreel_journal::decode_made_segment(data);
    for digest in [newsreel_journal::decode_segment(data), made]
        .iter()
        .flatten()
    {
        assert!(digest.payload_octets <= data.len() as u64, "{digest:?}");
    }
}

/// A file of networks where somebody has logged in, as it is and behind a right checksum.
pub fn logins(data: &[u8]) {
    let _ = newsreel_net::fuzz::decode_logins(data);
    let _ = newsreel_net::fuzz::decode_made_logins(data);
}

/// The manifest of the sealed files behind a right checksum.
pub fn manifest(data: &[u8]) {
    let _ = newsreel_index::fuzz::decode_manifest(data);
}

/// A part of a sealed file without its checksum, the part's number in front.
pub fn sealed_parts(data: &[u8]) {
    if let [part, octets @ ..] = data {
        let _ = newsreel_index::fuzz::decode_part(*part, octets);
    }
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

/// The file of how far groups were fetched.
pub fn pull_marks(data: &[u8]) {
    let _ = newsreel_feed::fuzz::decode_marks(data);
}

/// How far outgoing feeds are, as it is and behind a right checksum: what is understood is written the same way.
pub fn feed_places(data: &[u8]) {
    let _ = newsreel_feed::fuzz::decode_places(data);
}

/// What a scrub noted, as it is and behind a right checksum: what is understood is written the same way.
pub fn scrub(data: &[u8]) {
    let _ = newsreel_engine::fuzz::decode_scrub(data);
}

/// When groups changed last, as it is and behind a right checksum: what is understood is written the same way.
pub fn changes(data: &[u8]) {
    let _ = newsreel_engine::fuzz::decode_changes(data);
}

/// The file that makes a directory a spool.
pub fn spool_identity(data: &[u8]) {
    let _ = newsreel_engine::fuzz::decode_identity(data);
}

/// The Xref of a stored article, from which a rebuild and a cancel learn where it is filed: nothing is named that does not
/// stand in it.
pub fn xref(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let mut words = text.split_ascii_whitespace().skip(1);
    for (name, number) in newsreel_engine::fuzz::named(data) {
        let is_it = |word: &str| {
            word.rsplit_once(':')
                .is_some_and(|(before, after)| before == name && after.parse() == Ok(number))
        };
        assert!(words.any(is_it), "{name}:{number}");
    }
}

/// Rows of the keyring of control messages: what is read is written the same way.
pub fn control_keys(data: &[u8]) {
    let _ = newsreel_engine::fuzz::decode_keyring(data);
}

/// A newgroup, rmgroup or checkgroups message, signed or not: what it asks for is about what it names.
pub fn control_message(data: &[u8]) {
    let _ = newsreel_engine::fuzz::control_message(data);
}

/// Public keys, or a signature: what is read of a key is read again from its own octets, and says the same of itself.
pub fn openpgp(data: &[u8]) {
    use newsreel_openpgp::{Signature, certificates};
    let signature = Signature::read(data);
    for key in certificates(data).into_iter().flatten().flatten() {
        let again = certificates(key.octets()).map(|mut all| all.pop());
        let again = again.ok().flatten().and_then(Result::ok);
        assert_eq!(again.map(|again| again.standing()), Some(key.standing()));
        if let Ok(signature) = &signature {
            assert!(key.verify(signature, data).is_err());
        }
    }
}

/// The file of users: what is read is written the same way.
pub fn users(data: &[u8]) {
    let _ = newsreel_users::fuzz::decode(data);
    let _ = newsreel_users::fuzz::decode_made(data);
}

/// The file of a mail that waits, as it is and behind a right checksum: what is read is written the same way.
pub fn waiting_mail(data: &[u8]) {
    let _ = newsreel_mail::fuzz::decode(data);
    let _ = newsreel_mail::fuzz::decode_made(data);
}

/// Values of the cache's table: what is read is written the same way.
pub fn cache_values(data: &[u8]) {
    let _ = newsreel_cache::fuzz::decode(data);
}
