//! `newsreel usenetfs mount`: in the foreground, or as a process of its own that is left behind when it serves.

use std::io::{BufRead as _, BufReader, Read as _};
use std::ops::RangeInclusive;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use newsreel_host::{RealClock, mounts, process};
use newsreel_layout::Algorithm;
use newsreel_usenetfs::{Access, BitKept, Mounted, Options, Settings, Unmounter};
use tokio::signal::unix::{SignalKind, signal};

use crate::output;

/// What the process left behind says when it serves; and when it is not root's.
const READY: &str = "mounted";
const READY_FOR_ONE: &str = "mounted for its user";

/// What that means.
const FOR_ONE: &str = "mounted by a user who may not open files by handle: nobody else can use it, and files are \
                       reached by name, which is slower";

/// So often it is said that a set-uid bit did not change; `status` counts all.
const NOTICES_EVERY: Duration = Duration::from_secs(60);

/// Files from this length on the kernel reads and writes itself.
const PASSTHROUGH_BYTES_MIN: u64 = 64 << 10;

/// More threads than this were never faster, so it is as many if it is not said.
const THREADS_USUAL: usize = 4;

/// So many may be said.
const THREADS: RangeInclusive<usize> = 1..=64;

#[derive(Debug, clap::Args)]
#[command(
    after_help = "A managed directory (chmod u+s on an empty one makes it managed) is shown flat, with `..` leading out of it and \
                  never into a bucket. The directory that is mounted is locked: nobody else may change it meanwhile, unless \
                  all mount it with --shared. Who is not root mounts for themselves alone, through fusermount3, and everything goes \
                  through the server. For mount(8), fstab and systemd, make a link to this \
                  program called /sbin/mount.fuse.newsreel; then `LOWER MOUNTPOINT fuse.newsreel OPTIONS 0 0` is a line of \
                  fstab. OPTIONS are the words below without dashes (algorithm=yyy, shared, inherit, strict_suid, \
                  passthrough=off, threads=2, log=FILE) and ro, dev, suid, noexec, noatime; `mount -o remount` changes these five.\n\n\
                  Examples:\n  newsreel usenetfs mount /var/spool/news/articles /var/spool/news/articles\n  \
                  newsreel usenetfs mount --algorithm yyy -o ro /srv/articles /mnt"
)]
pub(crate) struct Args {
    /// The directory that is shown
    #[arg(value_name = "LOWER")]
    lower: PathBuf,
    /// Where; it may be the same directory
    #[arg(value_name = "MOUNTPOINT")]
    at: PathBuf,
    /// How directories are managed whose set-uid bit is set through the mount
    #[arg(long, value_name = "NAME", value_parser = super::algorithm)]
    algorithm: Option<Algorithm>,
    /// Others change the directory meanwhile: remember what is there for a second only
    #[arg(long)]
    shared: bool,
    /// Directories made in managed ones are managed
    #[arg(long)]
    inherit: bool,
    /// Refuse to change the set-uid bit of a directory that is not empty, instead of keeping it quietly
    #[arg(long)]
    strict_suid: bool,
    /// Files that are opened to be written, and those of at least so many octets, are read and written by the kernel alone; or off
    #[arg(long, value_name = "OCTETS")]
    passthrough: Option<String>,
    /// Threads that answer the kernel; as many as processors, up to 4, if it is not said
    #[arg(long, value_name = "COUNT", value_parser = threads)]
    threads: Option<usize>,
    /// Where it is written, at the end, what the server says when it is left behind; else only `status` tells some of it
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// Options as of mount(8), separated by commas
    #[arg(short = 'o', value_name = "OPTIONS")]
    options: Vec<String>,
    /// Stay in the foreground until it is unmounted or a signal comes
    #[arg(long)]
    foreground: bool,
    /// Say on standard output when it serves
    #[arg(long, hide = true)]
    announce: bool,
    /// Called by mount(8)
    #[arg(long, hide = true)]
    helper: bool,
    /// Of mount(8): the type
    #[arg(short = 't', hide = true)]
    kind: Option<String>,
    /// Of mount(8): without a line in mtab
    #[arg(short = 'n', hide = true)]
    no_mtab: bool,
    /// Of mount(8): unknown options are none
    #[arg(short = 's', hide = true)]
    sloppy: bool,
    /// Of mount(8): do everything but mount
    #[arg(short = 'f', hide = true)]
    fake: bool,
    /// Of mount(8): say more
    #[arg(short = 'v', hide = true)]
    verbose: bool,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let words = Words::typed(args)?;
    let options = resolved(args, &words)?;
    if args.fake {
        return Ok(());
    }
    super::clear_dead(&args.at)?;
    if words.remount {
        if words.is_of_server() {
            output::warning(
                "a remount changes ro, dev, suid, noexec and noatime only: the other options are of the server, which has them from the next mount on",
            );
        }
        return mounts::remount(&options.at, options.access)
            .with_context(|| format!("cannot mount {} otherwise", options.at.display()));
    }
    super::not_overlapping(&options.lower, options.settings.is_shared)?;
    let log = args.log.as_ref().or(words.log.as_ref());
    let log = log.map(std::path::absolute).transpose()?;
    if !args.foreground {
        return leave_behind(args, &options, log.as_deref());
    }
    serve(&options, args.announce, log.as_deref())
}

/// What was typed, made sense of.
fn resolved(args: &Args, words: &Words) -> Result<Options> {
    let passthrough = args.passthrough.as_deref().or(words.passthrough.as_deref());
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = args.threads.or(words.threads);
    Ok(Options {
        lower: mounts::canonical(&args.lower),
        at: mounts::canonical(&args.at),
        settings: Settings {
            algorithm: args.algorithm.or(words.algorithm).unwrap_or_default(),
            inherits: args.inherit || words.inherit,
            is_strict: args.strict_suid || words.strict,
            is_shared: args.shared || words.shared,
            is_by_name: false,
        },
        access: words.access,
        passthrough_bytes_min: match passthrough {
            None => Some(PASSTHROUGH_BYTES_MIN),
            Some("off") => None,
            Some(number) => {
                let number = number.parse();
                Some(number.context("passthrough is a number of octets, or off")?)
            }
        },
        threads: threads.unwrap_or(cores.min(THREADS_USUAL)),
    })
}

/// How many threads somebody wants.
fn threads(text: &str) -> Result<usize> {
    let count = text.parse().ok().filter(|count| THREADS.contains(count));
    count.with_context(|| {
        format!(
            "threads is a number from {} to {}",
            THREADS.start(),
            THREADS.end()
        )
    })
}

/// The options of mount(8).
#[derive(Debug, Default)]
struct Words {
    algorithm: Option<Algorithm>,
    passthrough: Option<String>,
    threads: Option<usize>,
    shared: bool,
    inherit: bool,
    strict: bool,
    remount: bool,
    log: Option<PathBuf>,
    access: Access,
}

/// What changes nothing here: defaults, what is always so, what the file system below decides, and what mount(8) or fstab mean for
/// themselves.
const NOTHING: [&str; 25] = [
    // Seen before all others.
    "remount",
    "diratime",
    "group",
    "lazytime",
    "loud",
    "nodiratime",
    "nolazytime",
    "norelatime",
    "nostrictatime",
    "nousers",
    "silent",
    "strictatime",
    "defaults",
    "relatime",
    "allow_other",
    "default_permissions",
    "auto",
    "noauto",
    "user",
    "users",
    "nouser",
    "nofail",
    "_netdev",
    "async",
    "owner",
];

impl Words {
    /// All of what was typed behind `-o`.
    fn typed(args: &Args) -> Result<Self> {
        let lists = args.options.iter().map(String::as_str);
        Self::of(lists, args.sloppy, || {
            super::mounted_at(&args.at).map(|it| it.access)
        })
    }

    /// `mounted` tells what may be done with what is mounted again: what is not said stays as it is.
    fn of<'w>(
        lists: impl Iterator<Item = &'w str>,
        sloppy: bool,
        mounted: impl FnOnce() -> Result<Access>,
    ) -> Result<Self> {
        let typed: Vec<&str> = lists.flat_map(|list| list.split(',')).collect();
        let mut words = Self {
            remount: typed.contains(&"remount"),
            ..Self::default()
        };
        if words.remount {
            words.access = mounted()?;
        }
        for word in typed.into_iter().filter(|word| !word.is_empty()) {
            words.take(word, sloppy)?;
        }
        Ok(words)
    }

    /// Whether something is said that the server of a mount begins with.
    fn is_of_server(&self) -> bool {
        let settings = [self.shared, self.inherit, self.strict];
        settings.contains(&true)
            || self.algorithm.is_some()
            || self.passthrough.is_some()
            || self.threads.is_some()
            || self.log.is_some()
    }

    fn take(&mut self, word: &str, sloppy: bool) -> Result<()> {
        let (key, value) = match word.split_once('=') {
            Some((key, value)) => (key, Some(value)),
            None => (word, None),
        };
        match (key, value) {
            ("algorithm", Some(name)) => self.algorithm = Some(name.parse()?),
            ("passthrough", Some(octets)) => self.passthrough = Some(octets.to_owned()),
            ("threads", Some(count)) => self.threads = Some(threads(count)?),
            ("log", Some(file)) => self.log = Some(file.into()),
            ("shared", None) => self.shared = true,
            ("inherit", None) => self.inherit = true,
            ("strict_suid", None) => self.strict = true,
            // The last of two that say the opposite counts.
            ("ro" | "rw", None) => self.access.read_only = key == "ro",
            ("dev" | "nodev", None) => self.access.devices = key == "dev",
            ("suid" | "nosuid", None) => self.access.set_uid = key == "suid",
            ("exec" | "noexec", None) => self.access.no_exec = key == "noexec",
            ("atime" | "noatime", None) => self.access.no_atime = key == "noatime",
            (known, None) if NOTHING.contains(&known) => {}
            ("user", Some(_)) => {}
            // What mount(8) has from the kernel's table when it mounts again.
            ("user_id" | "group_id" | "max_read" | "blksize", Some(_)) if self.remount => {}
            ("sync" | "dirsync", None) => bail!(
                "{word:?} is not kept here: the kernel writes some files past the server; programs that sync files are heard"
            ),
            (key, _) if key.starts_with("x-") || key.starts_with("comment") => {}
            _ if sloppy => {}
            _ => bail!("{word:?} is no option of this file system"),
        }
        Ok(())
    }
}

/// Serves until it is unmounted, or a signal asks for that.
fn serve(options: &Options, announce: bool, log: Option<&Path>) -> Result<()> {
    process::raise_open_files()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot wait for signals")?;
    let _entered = runtime.enter();
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    // The end of a session, of whoever mounted it, is none of the mount's.
    let _hangup = signal(SignalKind::hangup())?;
    // Where that fails nothing is mounted.
    let errors = announce.then(|| process::Errors::open(log));
    let errors = errors.transpose().context("cannot write the log (--log)")?;
    let mounted = Mounted::new(options, Arc::new(RealClock::default()))?;
    let unmounter = mounted.unmounter();
    let is_for_everybody = mounted.view().is_for_everybody();
    let notices = mounted.view().notices();
    std::thread::Builder::new()
        .name("usenetfs-notices".to_owned())
        .spawn(move || {
            while let Ok(kept) = notices.recv() {
                output::warning(&bit_kept(&kept));
                // Whoever does it over and over does not fill the log.
                std::thread::sleep(NOTICES_EVERY);
                notices.try_iter().for_each(drop);
            }
        })
        .context("cannot start a thread")?;
    let (ended, mut end) = tokio::sync::oneshot::channel();
    let server = std::thread::Builder::new()
        .name("usenetfs".to_owned())
        .spawn(move || {
            let served = mounted.serve();
            // Nobody waits any more when a signal came first.
            let _ = ended.send(());
            served
        })
        .context("cannot start a thread")?;
    if let Err(error) = say_that_it_serves(errors, is_for_everybody) {
        // Nobody knows of it: it does not stay behind without its server.
        unmounter.unmount()?;
        let _ = server.join();
        return Err(error);
    }
    runtime.block_on(async {
        let signalled = async || {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
        };
        tokio::select! {
            ended = end_by(signalled, &unmounter, &options.at) => ended,
            _ = &mut end => Ok(()),
        }
    })?;
    match server.join() {
        Ok(served) => Ok(served?),
        Err(_) => bail!("the thread that served the mount broke"),
    }
}

/// Says it to whoever started this, who reads no further.
fn say_that_it_serves(errors: Option<process::Errors>, is_for_everybody: bool) -> Result<()> {
    let said = match is_for_everybody {
        true => READY,
        false => READY_FOR_ONE,
    };
    if let Some(errors) = errors {
        let before = errors.begin().context("cannot write the log (--log)")?;
        if let Err(error) = output::text(&format!("{said}\n")) {
            // Why it ends is for whoever started it.
            before.begin()?;
            return Err(error.context("it cannot be said on standard output that it serves"));
        }
    } else if !is_for_everybody {
        output::warning(FOR_ONE);
    }
    Ok(())
}

/// Unmounts when a signal comes.  What lies elsewhere by then, or under something, ends with its last user, or with one
/// more signal.
async fn end_by(mut signalled: impl AsyncFnMut(), unmounter: &Unmounter, at: &Path) -> Result<()> {
    signalled().await;
    if unmounter.unmount()? {
        return Ok(());
    }
    output::warning(&format!(
        "the mount lies on {0} no more, or under something else: its server ends with its last user, or with one more signal",
        at.display()
    ));
    signalled().await;
    bail!(
        "ended by a second signal; what is open in the mount that lay on {} is lost",
        at.display()
    )
}

/// What is said when `chmod` could not do what it was meant to.
fn bit_kept(kept: &BitKept) -> String {
    let (is, verb) = if kept.is_managed {
        ("managed", "off")
    } else {
        ("not managed", "on")
    };
    let directory = kept.directory.to_string_lossy();
    // Its name is of whoever made it.
    let directory = output::printable(&directory).replace('\n', "?");
    format!(
        "{directory} stays {is}, because it is not empty: its set-uid bit was not changed; newsreel usenetfs convert {verb} turns it over"
    )
}

/// Starts this program again in the foreground of a process group of its own, in no directory that is in anybody's way, and waits
/// until it serves.
fn leave_behind(args: &Args, options: &Options, log: Option<&Path>) -> Result<()> {
    let program = std::env::current_exe().context("cannot find this program")?;
    let mut command = Command::new(program);
    command.args(["usenetfs", "mount", "--foreground", "--announce"]);
    for list in &args.options {
        command.args(["-o", list]);
    }
    if let Some(algorithm) = args.algorithm {
        command.args(["--algorithm", &algorithm.to_string()]);
    }
    if let Some(octets) = &args.passthrough {
        command.args(["--passthrough", octets]);
    }
    if let Some(threads) = args.threads {
        command.args(["--threads", &threads.to_string()]);
    }
    let flags = [
        (args.shared, "--shared"),
        (args.inherit, "--inherit"),
        (args.strict_suid, "--strict-suid"),
        (args.sloppy, "-s"),
    ];
    let set = flags.iter().filter(|(is_set, _)| *is_set);
    command.args(set.map(|(_, flag)| flag));
    if let Some(file) = log {
        command.arg("--log").arg(file);
    }
    command.arg("--").arg(&options.lower).arg(&options.at);
    command
        .process_group(0)
        .stdin(Stdio::null())
        .current_dir("/");
    // Neither of ours is left open in it: whoever waits for our output need not wait for its end.
    let mut server = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .context("cannot start the server of the mount")?;
    let mut line = String::new();
    if let Some(said) = server.stdout.take() {
        BufReader::new(said).read_line(&mut line)?;
    }
    match line.trim_end() {
        READY => return Ok(()),
        READY_FOR_ONE => {
            output::warning(FOR_ONE);
            return Ok(());
        }
        _ => {}
    }
    let mut why = String::new();
    if let Some(mut complaint) = server.stderr.take() {
        complaint.read_to_string(&mut why)?;
    }
    server.wait()?;
    bail!("{}", why.trim_end().trim_start_matches("error: "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(list: &str) -> Result<Words> {
        let mounted = Access {
            devices: true,
            no_atime: true,
            ..Access::default()
        };
        Words::of(std::iter::once(list), false, || Ok(mounted))
    }

    #[test]
    fn odd_names_reach_no_log() {
        let kept = BitKept {
            directory: "/a\n\x1b[2J".into(),
            inode: 5,
            is_managed: true,
        };
        let said = bit_kept(&kept);
        assert!(said.starts_with("/a??[2J stays managed"), "{said}");
    }

    #[test]
    fn options_of_mount() {
        let read = words("rw,algorithm=yyy,shared,ro,noatime,x-systemd.automount,nofail").unwrap();
        assert_eq!(read.algorithm, Some(Algorithm::YYY));
        assert!(read.shared && read.access.read_only && read.access.no_atime);
        assert!(!read.access.devices && !read.inherit);
        let read = words("remount,noexec,user=news,nodiratime,strictatime,log=/var/log/x").unwrap();
        assert!(read.remount && read.access.no_exec && !read.access.read_only);
        // What was not said is as it was.
        assert!(read.access.devices && read.access.no_atime && !read.access.set_uid);
        assert!(read.is_of_server() && read.log == Some(PathBuf::from("/var/log/x")));
        let read = words("remount,nodev,atime,ro").unwrap();
        assert!(!read.access.devices && !read.access.no_atime && read.access.read_only);
        assert!(!read.is_of_server());
        for wrong in [
            "rubbish",
            "algorithm=zzz",
            "algorithm",
            "threads=x",
            "threads=0",
            "threads=65",
            "ro=1",
            "sync",
        ] {
            assert!(words(wrong).is_err(), "{wrong}");
        }
    }
}
