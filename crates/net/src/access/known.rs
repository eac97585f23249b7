//! Where somebody has logged in, and the password that a name had then: such logins go first, where more wait than can be judged.
//!
//! Networks are kept over restarts, as keyed prints, in a small file ([format](../../../../docs/formats/logins.md)); of one user there
//! are few, so that nobody with an account pushes out the networks of others.  Of passwords there are prints under a key that is in memory
//! only, one of each name; they are never written, and let nobody in.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use newsreel_host::{Disk, random_bytes, read_whole, replace_file};
use newsreel_wire::network_of;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::logins_file::{self, Contents, FILE_OCTETS_MAX, Row, Slowest};

/// Networks where somebody has logged in that are remembered, and names with their passwords.
pub const KNOWN_MAX: usize = 10_000;

/// Of one user.
pub const KNOWN_OF_ONE_MAX: usize = 16;

/// The file is not written sooner after it was written last, but at the end.
const WRITTEN_EVERY: Duration = Duration::from_secs(600);

type Key = [u8; 32];

/// What is remembered of logins that worked.
#[derive(Debug)]
pub(super) struct Known {
    table: Mutex<Table>,
    /// Held while the file is written.
    file: Mutex<Option<(Arc<dyn Disk>, PathBuf)>>,
}

struct Table {
    /// Of what is in the file.
    secret: Option<Key>,
    /// How slow the program was that is asked of users, while the rules name that one.
    slowest: Option<Slowest>,
    /// In the order of their last logins.
    rows: BTreeMap<u64, Row>,
    places: HashMap<Row, u64>,
    networks: HashMap<u64, usize>,
    users: HashMap<u64, usize>,
    /// Of what is in memory only.
    own: Option<Key>,
    passwords: HashMap<u64, (u64, u64)>,
    logins: u64,
    is_new: bool,
    written: Option<Instant>,
}

impl std::fmt::Debug for Table {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Table")
            .field("networks", &self.networks.len())
            .finish_non_exhaustive()
    }
}

/// Eight octets that follow from these, and tell nothing of them without the key.
fn print(key: &Key, these: &[&[u8]]) -> u64 {
    let mut hasher = blake3::Hasher::new_keyed(key);
    for octets in these {
        hasher.update(&(octets.len() as u64).to_le_bytes());
        hasher.update(octets);
    }
    let [a, b, c, d, e, f, g, h, ..] = *hasher.finalize().as_bytes();
    u64::from_le_bytes([a, b, c, d, e, f, g, h])
}

fn print_network(key: &Key, address: IpAddr) -> u64 {
    let network = network_of(address).to_string();
    print(key, &[b"network", network.as_bytes()])
}

fn print_user(key: &Key, name: &str) -> u64 {
    print(key, &[b"user", name.as_bytes()])
}

fn print_password(key: &Key, name: &str, password: &str) -> u64 {
    print(key, &[b"password", name.as_bytes(), password.as_bytes()])
}

fn print_program(key: &Key, program: &str) -> u64 {
    print(key, &[b"program", program.as_bytes()])
}

fn one_less(counts: &mut HashMap<u64, usize>, of: u64) {
    if let Some(count) = counts.get_mut(&of) {
        *count -= 1;
        if *count == 0 {
            counts.remove(&of);
        }
    }
}

impl Table {
    fn new() -> Self {
        Self {
            secret: random_bytes().ok(),
            slowest: None,
            rows: BTreeMap::new(),
            places: HashMap::new(),
            networks: HashMap::new(),
            users: HashMap::new(),
            own: random_bytes().ok(),
            passwords: HashMap::new(),
            logins: 0,
            is_new: false,
            written: None,
        }
    }

    fn forget(&mut self, place: u64) {
        if let Some(row) = self.rows.remove(&place) {
            self.places.remove(&row);
            one_less(&mut self.networks, row.network);
            one_less(&mut self.users, row.user);
        }
    }

    /// A login that worked: what is oldest of this user goes where they have as many as they may, and else what is oldest of all.
    fn note(&mut self, row: Row) {
        self.logins += 1;
        match self.places.get(&row) {
            Some(place) => self.forget(*place),
            None => self.is_new = true,
        }
        let of_user = self.users.get(&row.user).copied().unwrap_or_default();
        let oldest = match of_user >= KNOWN_OF_ONE_MAX {
            true => self.rows.iter().find(|(_, it)| it.user == row.user),
            false => self
                .rows
                .iter()
                .next()
                .filter(|_| self.rows.len() >= KNOWN_MAX),
        };
        if let Some(place) = oldest.map(|(place, _)| *place) {
            self.forget(place);
        }
        self.rows.insert(self.logins, row);
        self.places.insert(row, self.logins);
        *self.networks.entry(row.network).or_default() += 1;
        *self.users.entry(row.user).or_default() += 1;
    }

    fn note_password(&mut self, key: &Key, name: &str, password: &str) {
        let of = print_user(key, name);
        if self.passwords.len() >= KNOWN_MAX && !self.passwords.contains_key(&of) {
            let oldest = self.passwords.iter().min_by_key(|(_, (_, place))| *place);
            if let Some(oldest) = oldest.map(|(of, _)| *of) {
                self.passwords.remove(&oldest);
            }
        }
        let print = print_password(key, name, password);
        self.passwords.insert(of, (print, self.logins));
    }

    fn take(&mut self, contents: &Contents) {
        self.secret = Some(contents.secret);
        self.slowest = contents.slowest;
        for row in &contents.rows {
            self.note(*row);
        }
        self.is_new = false;
    }
}

impl Default for Known {
    fn default() -> Self {
        Self {
            table: Mutex::new(Table::new()),
            file: Mutex::default(),
        }
    }
}

impl Known {
    /// With what is in a file, which is written again; one that cannot be read is begun anew.
    pub(super) fn of_file(disk: Arc<dyn Disk>, path: PathBuf) -> Self {
        let known = Self::default();
        match disk.exists(&path) {
            Ok(false) => {}
            _ => match read_whole(disk.as_ref(), &path, FILE_OCTETS_MAX) {
                Ok(octets) => match logins_file::decode(&octets) {
                    Ok(contents) => known.table.lock().take(&contents),
                    Err((line, why)) => {
                        let path = path.display();
                        tracing::warn!(target: "newsreel::net", %path, line, why,
                            "where people have logged in is not known any more: the file is damaged, and begun anew");
                    }
                },
                Err(error) => tracing::warn!(target: "newsreel::net", %error,
                    "where people have logged in is not known any more: the file cannot be read, and is begun anew"),
            },
        }
        *known.file.lock() = Some((disk, path));
        known
    }

    /// Whether somebody has logged in from there.
    pub(super) fn has_network(&self, address: IpAddr) -> bool {
        let table = self.table.lock();
        let key = table.secret.as_ref();
        key.is_some_and(|key| table.networks.contains_key(&print_network(key, address)))
    }

    /// Whether this was the name's password when it logged in last.
    pub(super) fn has_password(&self, name: &str, password: &str) -> bool {
        let table = self.table.lock();
        table.own.as_ref().is_some_and(|key| {
            let known = table.passwords.get(&print_user(key, name));
            known.is_some_and(|(print, _)| *print == print_password(key, name, password))
        })
    }

    /// Somebody has logged in from there.
    pub(super) fn note(&self, address: IpAddr, user: &str) {
        let mut table = self.table.lock();
        if let Some(key) = table.secret {
            table.note(Row {
                user: print_user(&key, user),
                network: print_network(&key, address),
            });
        }
    }

    /// With this name and password.
    pub(super) fn note_password(&self, name: &str, password: &str) {
        let mut table = self.table.lock();
        if let Some(key) = table.own {
            table.note_password(&key, name, password);
        }
    }

    /// How slow this program was at most, lately.
    pub(super) fn slowest(&self, program: &str) -> Option<Duration> {
        let table = self.table.lock();
        let own = print_program(table.secret.as_ref()?, program);
        let slowest = table.slowest.filter(|it| it.program == own)?;
        Some(Duration::from_millis(slowest.ms))
    }

    /// So slow this program was at most, lately.
    pub(super) fn note_slowest(&self, program: &str, took: Duration) {
        let mut table = self.table.lock();
        let Some(key) = table.secret else {
            return;
        };
        let slowest = Some(Slowest {
            program: print_program(&key, program),
            ms: u64::try_from(took.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX),
        });
        table.is_new |= table.slowest != slowest;
        table.slowest = slowest;
    }

    /// Whether there is something new, and the file was not written for long.
    pub(super) fn is_due(&self) -> bool {
        let table = self.table.lock();
        let is_recent = |written: Instant| written.elapsed() < WRITTEN_EVERY;
        table.is_new && !table.written.is_some_and(is_recent)
    }

    /// Writes the file, where there is one and something new to write.  Blocks.
    pub(super) fn write(&self) {
        let file = self.file.lock();
        let Some((disk, path)) = file.as_ref() else {
            return;
        };
        let contents = {
            let mut table = self.table.lock();
            let (true, Some(secret)) = (table.is_new, table.secret) else {
                return;
            };
            table.is_new = false;
            table.written = Some(Instant::now());
            let rows = table.rows.values().copied().collect();
            Contents {
                secret,
                slowest: table.slowest,
                rows,
            }
        };
        let text = logins_file::encode(&contents);
        if let Err(error) = replace_file(disk.as_ref(), path, text.as_bytes()) {
            self.table.lock().is_new = true;
            tracing::warn!(target: "newsreel::net", %error,
                "where people have logged in will not be known after a restart");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use newsreel_host::MemoryDisk;

    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    fn spool() -> (Arc<MemoryDisk>, PathBuf) {
        let disk = MemoryDisk::new();
        disk.create_dir_all(Path::new("/spool")).unwrap();
        (Arc::new(disk), PathBuf::from("/spool/logins"))
    }

    fn of_file(disk: &Arc<MemoryDisk>, path: &Path) -> Known {
        let disk: Arc<dyn Disk> = Arc::clone(disk) as Arc<dyn Disk>;
        Known::of_file(disk, path.to_owned())
    }

    /// After each start a typing error waited for as long as a program may take, until somebody had erred.
    #[tokio::test(start_paused = true)]
    async fn how_slow_a_program_was_is_known_after_a_restart() {
        let (disk, path) = spool();
        let known = of_file(&disk, &path);
        assert_eq!(known.slowest("/bin/a"), None);
        known.note_slowest("/bin/a", Duration::from_micros(1_500_001));
        known.write();
        let known = of_file(&disk, &path);
        let seen = ["/bin/a", "/bin/b"].map(|program| known.slowest(program));
        assert_eq!(seen, [Some(Duration::from_millis(1_501)), None]);
        known.note_slowest("/bin/a", Duration::from_micros(1_500_100));
        assert!(!known.is_due(), "it is the same");
        known.note_slowest("/bin/b", Duration::from_millis(7));
        known.write();
        let known = of_file(&disk, &path);
        let seen = ["/bin/a", "/bin/b"].map(|program| known.slowest(program));
        assert_eq!(seen, [None, Some(Duration::from_millis(7))]);
    }

    /// After a restart guesses shut out everybody: nobody's network was known any more.
    #[tokio::test(start_paused = true)]
    async fn networks_are_known_after_a_restart_and_passwords_are_not() {
        let (disk, path) = spool();
        let known = of_file(&disk, &path);
        known.write();
        assert!(!disk.exists(&path).unwrap(), "there is nothing to know");
        known.note(address("192.0.2.1"), "zoe");
        known.note(address("2001:db8::1"), "zoe");
        known.note_password("zoe", "horse");
        assert!(known.is_due());
        known.write();
        assert!(!known.is_due());
        known.note(address("192.0.2.2"), "yve");
        assert!(!known.is_due(), "it was written just now");
        let written = read_whole(disk.as_ref(), &path, FILE_OCTETS_MAX).unwrap();
        let text = String::from_utf8(written).unwrap();
        for told in ["zoe", "horse", "192.0.2", "2001"] {
            assert!(!text.contains(told), "{text}");
        }
        let again = of_file(&disk, &path);
        let is_known = |known: &Known, text| known.has_network(address(text));
        assert!(is_known(&again, "192.0.2.1") && is_known(&again, "2001:db8::ffff"));
        assert!(!is_known(&again, "192.0.2.2") && !is_known(&again, "2001:db8:0:1::1"));
        assert!(known.has_password("zoe", "horse") && !again.has_password("zoe", "horse"));
        tokio::time::advance(WRITTEN_EVERY).await;
        assert!(known.is_due());
        known.write();
        assert!(is_known(&of_file(&disk, &path), "192.0.2.2"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_damaged_file_is_begun_anew() {
        let (disk, path) = spool();
        let known = of_file(&disk, &path);
        known.note(address("192.0.2.1"), "ada");
        known.write();
        let mut octets = read_whole(disk.as_ref(), &path, FILE_OCTETS_MAX).unwrap();
        *octets.last_mut().unwrap() ^= 1;
        replace_file(disk.as_ref(), &path, &octets).unwrap();
        let again = of_file(&disk, &path);
        assert!(!again.has_network(address("192.0.2.1")));
        again.note(address("192.0.2.9"), "ada");
        again.write();
        assert!(of_file(&disk, &path).has_network(address("192.0.2.9")));
    }

    #[test]
    fn only_the_last_password_of_a_name_is_known() {
        let known = Known::default();
        known.note_password("ada", "old");
        known.note_password("ada", "new");
        assert!(known.has_password("ada", "new") && !known.has_password("ada", "old"));
        assert!(!known.has_password("bob", "new") && !known.has_password("adan", "ew"));
    }

    /// Who had an account and a wide network could push out where all others had logged in.
    #[test]
    fn the_tables_are_bounded_and_nobody_fills_them_alone() {
        let known = Known::default();
        let from = |n: u32| IpAddr::V4(n.into());
        known.note(from(1), "ada");
        for n in 2..=100 {
            known.note(from(n), "eve");
        }
        let is_known = |n: u32| known.has_network(from(n));
        assert!(is_known(1) && is_known(100) && is_known(85) && !is_known(84));
        // What is used again is not the oldest any more.
        known.note(from(85), "eve");
        known.note(from(101), "eve");
        assert!(is_known(85) && !is_known(86));
        for n in 0..=KNOWN_MAX as u32 {
            known.note(from(1000 + n), &format!("user{n}"));
            known.note_password(&format!("user{n}"), "x");
        }
        let table = known.table.lock();
        assert_eq!(table.rows.len(), KNOWN_MAX);
        assert_eq!(
            (table.places.len(), table.networks.len()),
            (KNOWN_MAX, KNOWN_MAX)
        );
        assert_eq!(
            (table.users.len(), table.passwords.len()),
            (KNOWN_MAX, KNOWN_MAX)
        );
        drop(table);
        assert!(!is_known(1000) && is_known(1001));
        assert!(!known.has_password("user0", "x") && known.has_password("user1", "x"));
    }
}
