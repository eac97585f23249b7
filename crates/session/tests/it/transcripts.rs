//! Every transcript is a test of its own name.

use std::path::{Path, PathBuf};
use std::time::Duration;

use newsreel_service::memory::MemoryConfig;
use newsreel_session::{ListsConfig, SessionConfig};
use newsreel_testkit::transcript::parse;
use newsreel_testkit::{Report, Runner, Verdict};

use crate::driver::MemoryDriver;

pub(crate) fn tests_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests")
        .canonicalize()
        .unwrap()
}

#[expect(clippy::disallowed_methods, reason = "reads transcripts")]
pub(crate) fn read(name: &str) -> String {
    let path = tests_folder().join("transcripts").join(name);
    std::fs::read_to_string(path).unwrap()
}

/// Plays a text that is the transcript of this name, or was made of it.
pub(crate) fn play_text(name: &str, text: &str, bless: bool) -> Report {
    let shown = Path::new("tests/transcripts").join(name);
    let tests = tests_folder();
    let transcript = parse(&shown, &tests, text).unwrap_or_else(|error| panic!("{error}"));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    let mut driver = MemoryDriver::new(
        SessionConfig::default(),
        MemoryConfig::default(),
        &ListsConfig::default(),
    );
    runtime.block_on(async {
        let runner = Runner::new(&mut driver, Duration::from_secs(300));
        let mut runner = if bless { runner.blessing() } else { runner };
        runner.play(&transcript).await
    })
}

#[expect(clippy::disallowed_methods, reason = "blesses transcripts")]
#[expect(clippy::print_stdout, reason = "a skipped file says why")]
fn play(name: &str) {
    let bless = std::env::var_os("NEWSREEL_BLESS").is_some();
    let report = play_text(name, &read(name), bless);
    if let Some(text) = &report.blessed {
        std::fs::write(tests_folder().join("transcripts").join(name), text).unwrap();
    }
    for (with, verdict) in &report.verdicts {
        let is_skipped = if let Verdict::Skipped(reason) = verdict {
            println!("{name} {with}: skipped: {reason}");
            true
        } else {
            false
        };
        assert_eq!(is_skipped, SKIPPED.contains(&name), "{name} {with}");
    }
    if let Some(failure) = report.failure() {
        panic!("{failure}");
    }
}

macro_rules! transcripts {
    ($($folder:ident { $($name:ident),* $(,)? })*) => {
        $(mod $folder {
            $(#[test]
            fn $name() {
                super::play(concat!(stringify!($folder), "/", stringify!($name), ".nntp"));
            })*
        })*

        pub(crate) const LISTED: &[&str] =
            &[$($(concat!(stringify!($folder), "/", stringify!($name), ".nntp")),*),*];
    };
}

transcripts! {
    reader {
        access_certificates,
        access_connections,
        access_denied,
        access_groups,
        access_poster,
        access_list_not,
        access_list_not_yet,
        access_reader,
        authinfo,
        authinfo_all,
        authinfo_banned,
        authinfo_clear,
        authinfo_external,
        authinfo_first,
        authinfo_full,
        authinfo_helps,
        authinfo_no_help,
        authinfo_per_user,
        authinfo_sasl,
        authinfo_scram,
        authinfo_scram_given_up,
        article,
        body,
        cancel_posted,
        cancelled,
        capabilities,
        chunks,
        compress,
        compress_full,
        compress_none,
        compress_tls,
        damaged,
        date,
        date_form,
        faults,
        group,
        half_close,
        hdr,
        head,
        help,
        idle,
        last,
        line_ends,
        list,
        list_modtime,
        list_modtime_all,
        list_site,
        list_times,
        listgroup,
        mode,
        newgroups,
        newgroups_all,
        newnews,
        newnews_all,
        next,
        no_posting,
        not_nntp,
        over,
        pipelining,
        post,
        post_faults,
        post_limits,
        post_moderated,
        post_refused,
        post_smuggling,
        quit,
        removed,
        removed_selected,
        starttls,
        starttls_first,
        starttls_login,
        starttls_none,
        stat,
        stopping,
        syntax,
        too_many,
        too_many_from_one,
        unreadable,
        wildmat,
        xgtitle,
        xhdr,
        xover,
        xpat,
    }
    transit {
        access_feeder,
        bounded,
        cancel,
        check,
        control_only,
        dropped,
        duplicates,
        filter_down,
        filtered,
        full_group,
        hidden,
        ihave,
        ihave_faults,
        large,
        larger_numbers,
        octets,
        pipelining,
        refused,
        refused_by_config,
        relayed,
        smuggling,
        stalled,
        takethis,
        takethis_faults,
        tolerated,
        transit_mode,
    }
}

/// What only the binary can play: tools of the command line, settings of the engine and the listener, a damaged disk.
pub(crate) const SKIPPED: &[&str] = &[
    "reader/access_connections.nntp",
    "reader/access_denied.nntp",
    "reader/authinfo_banned.nntp",
    "reader/authinfo_full.nntp",
    "reader/authinfo_per_user.nntp",
    "reader/cancel_posted.nntp",
    "reader/cancelled.nntp",
    "reader/damaged.nntp",
    "reader/removed.nntp",
    "reader/removed_selected.nntp",
    "reader/too_many.nntp",
    "reader/too_many_from_one.nntp",
    "transit/cancel.nntp",
    "transit/filter_down.nntp",
    "transit/filtered.nntp",
    "transit/full_group.nntp",
    "transit/hidden.nntp",
    "transit/larger_numbers.nntp",
    "transit/refused_by_config.nntp",
];

/// Folders of `tests/transcripts` that the memory service plays.
const FOLDERS: [&str; 2] = ["reader", "transit"];

#[test]
#[expect(clippy::disallowed_methods, reason = "looks at the source tree")]
fn every_transcript_is_listed() {
    let mut found = Vec::new();
    for folder in FOLDERS {
        let path = tests_folder().join("transcripts").join(folder);
        for entry in std::fs::read_dir(path).unwrap() {
            found.push(format!(
                "{folder}/{}",
                entry.unwrap().file_name().to_str().unwrap()
            ));
        }
    }
    found.sort();
    let mut listed = LISTED.to_vec();
    listed.sort_unstable();
    assert_eq!(found, listed);
}
