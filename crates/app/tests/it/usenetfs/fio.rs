//! Blocks written by fio into a managed directory and verified by it, in every way that programs write.
//!
//! Skipped, with the reason printed, where fio is not installed.

use std::process::Command;

use super::{Place, skipped};
use crate::spool::said;

/// How the octets go, and whether several processes write side by side.
const WAYS: [(&str, &str); 4] = [
    ("write", "psync"),
    ("randwrite", "psync"),
    ("randwrite", "mmap"),
    ("randrw", "pvsync2"),
];

#[test]
fn what_fio_writes_into_a_managed_directory_it_reads_again() {
    if Command::new("fio").arg("--version").output().is_err() {
        return skipped("fio is not installed (apt-get install fio)");
    }
    let Some(place) = Place::new() else {
        return;
    };
    place.mount();
    let group = place.managed("group");
    for (how, engine) in WAYS {
        let mut fio = Command::new("fio");
        fio.args([
            "--name=n",
            "--size=2m",
            "--bs=4k",
            "--nrfiles=8",
            "--numjobs=2",
        ]);
        // Names of digits, so that they lie in buckets of numbers.
        fio.arg("--filename_format=$jobnum$filenum");
        fio.args([
            "--verify=crc32c",
            "--do_verify=1",
            "--verify_fatal=1",
            "--fallocate=none",
        ]);
        fio.args([format!("--rw={how}"), format!("--ioengine={engine}")]);
        fio.arg("--directory")
            .arg(&group)
            .current_dir(place.dir.path());
        said(fio.output().unwrap()).unwrap();
    }
    place.run(&["umount", "@mnt"]).unwrap();
    let verified = place.json(&["verify", "@lower/group"]);
    assert_eq!(verified["findings"], serde_json::json!([]), "{verified}");
    assert_eq!(verified["articles"], 16, "{verified}");
}
