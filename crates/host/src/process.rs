//! Facts about a process from `/proc`: memory, processor time, threads; which process holds a lock, and whose this one is.
//!
//! A fact that cannot be read is an error, never a zero.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::disk::read_small;
use crate::error::{Error, Op, Result};

/// What `/proc` says about one process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessFacts {
    /// Memory held, in octets.
    pub rss_bytes: u64,
    /// Processor time in user mode, all threads.
    pub user: Duration,
    /// Processor time in the kernel, all threads.
    pub system: Duration,
    /// Living threads.
    pub threads: u64,
}

impl ProcessFacts {
    /// Processor time in all.
    #[must_use]
    pub const fn cpu(&self) -> Duration {
        self.user.saturating_add(self.system)
    }
}

/// Facts about this process.
pub fn own_facts() -> Result<ProcessFacts> {
    facts_from(PathBuf::from("/proc/self/stat"))
}

/// Facts about process `pid`.
pub fn facts_of(pid: u32) -> Result<ProcessFacts> {
    facts_from(PathBuf::from(format!("/proc/{pid}/stat")))
}

/// This process's id.
#[must_use]
pub fn own_pid() -> u32 {
    std::process::id()
}

/// The process that wrote its number into the first line of the file of a lock, if it is there still.
#[must_use]
pub fn lock_holder(lock: &Path) -> Option<u32> {
    let pid: u32 = read_small(lock).ok()?.lines().next()?.parse().ok()?;
    facts_of(pid).is_ok().then_some(pid)
}

/// A process that serves the mount with this device number (`major:minor`) by FUSE, as far as the kernel tells (since Linux 6.9) and
/// whoever asks may know.
#[must_use]
pub fn serving(device: &str) -> Option<u32> {
    let connection = device.strip_prefix("0:")?;
    let is_it = |pid: &u32| {
        let open = names_in(&format!("/proc/{pid}/fdinfo"));
        open.iter().any(|number| {
            let facts = read_small(Path::new(&format!("/proc/{pid}/fdinfo/{number}")));
            let facts = facts.unwrap_or_default();
            let mut lines = facts.lines();
            let found = lines.find_map(|line| line.strip_prefix("fuse_connection:"));
            found.is_some_and(|found| found.trim() == connection)
        })
    };
    let pids = names_in("/proc");
    let mut pids = pids.iter().filter_map(|name| name.parse().ok());
    pids.find(is_it)
}

/// The names in a directory of the kernel's; none where it cannot be listed.
fn names_in(dir: &str) -> Vec<String> {
    #[expect(
        clippy::disallowed_methods,
        reason = "what the kernel shows there is no file of a spool"
    )]
    let entries = std::fs::read_dir(dir);
    let entries = entries.into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect()
}

/// The number of the signal that ends who writes beyond the limit on the size of files, unless it is taken.
#[must_use]
pub const fn file_size_signal() -> i32 {
    rustix::process::Signal::XFSZ.as_raw()
}

/// Takes no permissions away from what this process makes: for those whose callers did that already.
pub fn clear_umask() {
    rustix::process::umask(rustix::fs::Mode::empty());
}

/// Where the standard error is to go: to the end of a file, which is made if it is not there; without one, nowhere.
#[derive(Debug)]
pub struct Errors(std::fs::File);

impl Errors {
    /// Opens it.
    ///
    /// # Errors
    /// When the file cannot be opened or made.
    pub fn open(file: Option<&Path>) -> io::Result<Self> {
        #[expect(
            clippy::disallowed_methods,
            reason = "a log is no file of the spool: it is appended to, and never synced"
        )]
        let file = std::fs::OpenOptions::new()
            .append(true)
            .create(file.is_some())
            .open(file.unwrap_or_else(|| Path::new("/dev/null")))?;
        Ok(Self(file))
    }

    /// What is written to standard error goes there from now on. Whoever had the other end of it is not needed any more once what is
    /// returned, where it went before, is dropped.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn begin(self) -> io::Result<Self> {
        let before = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stderr(), 0)?;
        rustix::stdio::dup2_stderr(&self.0)?;
        Ok(Self(before.into()))
    }
}

/// The user this process runs as.
#[must_use]
pub fn own_uid() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Whether this process is in a group; what it makes there, or changes, can have that group and its bit.
///
/// # Errors
/// When the kernel does not tell its groups.
pub fn is_in_group(gid: u32) -> io::Result<bool> {
    let own = rustix::process::getegid().as_raw();
    let others = rustix::process::getgroups()?;
    Ok(own == gid || others.iter().any(|other| other.as_raw() == gid))
}

/// What the database of users has of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// The name to log in with.
    pub name: String,
    /// The name of the person, as far as it says one.
    pub full_name: Option<String>,
}

/// Whom the database of users has for the user that this process runs as.
#[must_use]
pub fn own_account() -> Option<Account> {
    let user = nix::unistd::User::from_uid(own_uid().into()).ok()??;
    let person = user.gecos.to_string_lossy();
    Some(Account {
        full_name: full_name(&user.name, &person),
        name: user.name,
    })
}

/// The name of a person in what the database says of one: up to the first comma, and `&` stands for the name to log in with.
fn full_name(name: &str, person: &str) -> Option<String> {
    let person = person.split(',').next().unwrap_or_default().trim();
    let mut letters = name.chars();
    let capital = letters.next().map(|first| first.to_ascii_uppercase());
    let capital: String = capital.into_iter().chain(letters).collect();
    let full = person.replace('&', &capital);
    let is_text = !full.is_empty() && !full.contains(|c: char| c.is_control() || c == '\u{fffd}');
    is_text.then_some(full)
}

/// A word as a shell takes it.
#[must_use]
pub fn shell_word(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+:@%,".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// The owner of a file or directory, if this process is root's and it is not.
///
/// # Errors
/// When it cannot be looked at.
pub fn owner_if_not_root(path: &Path) -> Result<Option<u32>> {
    if own_uid() != 0 {
        return Ok(None);
    }
    let stat = rustix::fs::stat(path).map_err(|errno| Error::Io {
        op: Op::Stat,
        path: path.to_path_buf(),
        source: errno.into(),
    })?;
    Ok(Some(stat.st_uid).filter(|uid| *uid != 0))
}

/// The user that a process runs as, if it is there and may be looked at.
#[must_use]
pub fn owner_of(pid: u32) -> Option<u32> {
    let stat = rustix::fs::stat(format!("/proc/{pid}"));
    stat.ok().map(|stat| stat.st_uid)
}

/// Ends the processes of a group at once; nothing where there is none.
pub fn kill_group(group: u32) {
    use rustix::process::{Pid, Signal, kill_process_group};
    let group = i32::try_from(group).ok().and_then(Pid::from_raw);
    if let Some(group) = group {
        // They have ended by themselves meanwhile.
        let _ = kill_process_group(group, Signal::KILL);
    }
}

/// How much less than others a thread wants that stands back (nice(2)): a tenth of a core, where others want all.
const BACK: i32 = 10;

/// Does something on a thread of its own that stands back behind all others, and waits for it: what needs much of a processor
/// and is in no hurry.
///
/// # Errors
/// When there can be no more threads, or it panicked.
pub fn stand_back<T: Send>(work: impl FnOnce() -> T + Send) -> io::Result<T> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("login-check".to_owned());
        let working = thread.spawn_scoped(scope, || {
            // On Linux this is the thread's alone.  Where it is refused, work is done in the first row.
            let own = Some(rustix::thread::gettid());
            let _ = rustix::process::setpriority_process(own, BACK);
            work()
        })?;
        let panicked = |_| io::Error::other("a thread panicked");
        working.join().map_err(panicked)
    })
}

/// Whether this is a file that this process may run.
#[must_use]
pub fn is_program(path: &Path) -> bool {
    use rustix::fs::{Access, FileType, access, stat};
    let is_file = |stat: rustix::fs::Stat| FileType::from_raw_mode(stat.st_mode).is_file();
    stat(path).is_ok_and(is_file) && access(path, Access::EXEC_OK).is_ok()
}

/// Whether a child has ended; it is not waited for by that, so its number, and its group's, stay its own.
///
/// # Errors
/// When it is no child of this process, or was waited for.
pub fn has_ended(child: u32) -> io::Result<bool> {
    use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
    let child = i32::try_from(child).ok().and_then(Pid::from_raw);
    let child = child.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    Ok(waitid(WaitId::Pid(child), options)?.is_some())
}

/// The machine's name, if it has one that can be told.
#[must_use]
pub fn host_name() -> Option<String> {
    let name = rustix::system::uname();
    let name = name.nodename().to_str().ok()?;
    (!name.is_empty()).then(|| name.to_owned())
}

/// Lets this process have as many files open as it may at most; says how many.
pub fn raise_open_files() -> Result<u64> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let most = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    setrlimit(Resource::Nofile, most).map_err(|errno| Error::Io {
        op: Op::Stat,
        path: PathBuf::from("RLIMIT_NOFILE"),
        source: errno.into(),
    })?;
    Ok(limit.maximum.unwrap_or(u64::MAX))
}

fn facts_from(path: PathBuf) -> Result<ProcessFacts> {
    let text = read_small(&path)?;
    let page_bytes = u64::try_from(rustix::param::page_size()).unwrap_or(4096);
    parse_stat(&text, rustix::param::clock_ticks_per_second(), page_bytes).ok_or_else(|| {
        Error::Io {
            op: Op::Stat,
            path,
            source: io::Error::other("not a stat line as in proc(5)"),
        }
    })
}

/// Reads a `/proc/PID/stat` line.  The name in parentheses may hold anything, so fields count from the last `)`.
fn parse_stat(text: &str, ticks_per_second: u64, page_bytes: u64) -> Option<ProcessFacts> {
    let (_, after_name) = text.rsplit_once(')')?;
    // Field 3 of proc(5) is the first here.
    let field = |number: usize| {
        after_name
            .split_whitespace()
            .nth(number - 3)?
            .parse::<u64>()
            .ok()
    };
    let time = |ticks: u64| {
        let millis = ticks.saturating_mul(1000) / ticks_per_second.max(1);
        Duration::from_millis(millis)
    };
    Some(ProcessFacts {
        user: time(field(14)?),
        system: time(field(15)?),
        threads: field(20)?,
        rss_bytes: field(24)?.saturating_mul(page_bytes),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_persons() {
        for (person, expected) in [
            ("Ada Lovelace,Room 1,,", Some("Ada Lovelace")),
            ("& Lovelace", Some("Ada Lovelace")),
            ("", None),
            (",,,", None),
            ("a\tb", None),
        ] {
            assert_eq!(full_name("ada", person).as_deref(), expected, "{person:?}");
        }
        // Whoever runs this, root is known wherever there is a database.
        let own = own_account();
        assert!(own_uid() != 0 || own.is_none_or(|own| own.name == "root"));
    }

    #[test]
    fn a_shell_takes_a_word_for_what_it_is() {
        for word in ["", "a b", "<a'$(id)'@b>", "`id`;\\\n'"] {
            let line = format!("printf %s {}", shell_word(word));
            let said = std::process::Command::new("sh")
                .args(["-c", &line])
                .output();
            assert_eq!(String::from_utf8(said.unwrap().stdout).unwrap(), word);
        }
        assert_eq!(shell_word("/var/spool"), "/var/spool");
    }

    #[test]
    fn stat_line_with_a_hostile_name() {
        let line =
            "7 (a) b (c) S 1 7 7 0 -1 4194560 100 0 0 0 250 30 0 0 20 0 5 0 100 1000000 512 0";
        let facts = parse_stat(line, 100, 4096).unwrap();
        assert_eq!(facts.user, Duration::from_millis(2500));
        assert_eq!(facts.system, Duration::from_millis(300));
        assert_eq!(facts.cpu(), Duration::from_millis(2800));
        assert_eq!((facts.threads, facts.rss_bytes), (5, 512 * 4096));
        assert_eq!(parse_stat("7 (a", 100, 4096), None);
        assert_eq!(parse_stat("7 (a) S 1", 100, 4096), None);
    }

    #[test]
    fn the_limit_of_open_files_goes_up_and_not_down() {
        let files = raise_open_files().unwrap();
        assert!(files >= 256, "{files}");
        assert_eq!(raise_open_files().unwrap(), files);
    }

    /// Who guessed passwords slowed readers down.
    #[test]
    fn who_stands_back_does_so_alone() {
        use rustix::process::getpriority_process;
        let own = || getpriority_process(Some(rustix::thread::gettid())).unwrap();
        let before = own();
        assert_eq!(stand_back(own).unwrap(), BACK);
        assert_eq!(own(), before);
        assert!(stand_back(|| panic!("as it may")).is_err());
    }

    /// Only the child was killed once, and what it had started went on.
    #[test]
    fn a_group_goes_with_all_that_its_leader_started() {
        use std::io::{BufRead as _, BufReader, Read as _};
        use std::os::unix::process::CommandExt as _;
        let mut child = std::process::Command::new("/bin/sh")
            .args(["-c", "sleep 600 & echo $!; wait"])
            .process_group(0)
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        let started: u32 = line.trim().parse().unwrap();
        assert!(facts_of(started).is_ok());
        assert!(!has_ended(child.id()).unwrap());
        kill_group(child.id());
        while !has_ended(child.id()).unwrap() {
            std::thread::yield_now();
        }
        assert!(!child.wait().unwrap().success());
        // Who holds the other end is gone when there is no more to come.
        assert_eq!(output.read_to_string(&mut line).unwrap(), 0);
        assert!(has_ended(child.id()).is_err());
        kill_group(0);
        kill_group(u32::MAX);
    }

    #[test]
    fn own_facts_are_plausible() {
        let facts = own_facts().unwrap();
        assert!(facts.rss_bytes > 100_000 && facts.threads >= 1, "{facts:?}");
        assert!(facts_of(own_pid()).unwrap().rss_bytes > 100_000);
        assert!(facts_of(u32::MAX).is_err());
    }
}
