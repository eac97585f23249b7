//! The keyring of the spool: public keys by which control messages are verified; see `docs/formats/control-keys.md`.
//!
//! It is one small file, read whole for each signed message that a rule wants verified, once for a list of all that wait, and
//! replaced whole by each change, so a change holds at once.  Who takes a key into it vouches for its names.

use std::cell::OnceCell;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use newsreel_host::{Disk, read_whole, replace_file};
use newsreel_openpgp::{Certificate, Signature, Standing, certificates};

use crate::error::Error;

/// The file's name in a spool.
pub const KEYRING_FILE: &str = "control-keys";

/// The file is no larger, octets: some thousand keys.
pub const KEYRING_OCTETS_MAX: usize = 4 << 20;

/// What the file begins with, version included.
const MAGIC: &str = "newsreel control keys 1 ";

/// The keys of a spool.
#[derive(Debug, Clone)]
pub struct Keyring {
    disk: Arc<dyn Disk>,
    path: PathBuf,
}

/// What became of a file of keys.
#[derive(Debug, Default)]
pub struct Imported {
    /// Those that were taken, each of them new or in place of the same key.
    pub taken: Vec<Certificate>,
    /// Why others were not.
    pub refused: Vec<String>,
}

impl Keyring {
    /// That of a spool; the file need not be there.
    #[must_use]
    pub fn of_spool(disk: Arc<dyn Disk>, spool: &Path) -> Self {
        let path = spool.join(KEYRING_FILE);
        Self { disk, path }
    }

    /// All keys, in the order of their fingerprints.
    ///
    /// # Errors
    /// When the file cannot be read or is damaged.
    pub fn all(&self) -> Result<Vec<Certificate>, Error> {
        if !self.disk.exists(&self.path)? {
            return Ok(Vec::new());
        }
        let octets = read_whole(self.disk.as_ref(), &self.path, KEYRING_OCTETS_MAX)?;
        decode(&octets).map_err(|(line, why)| {
            let path = self.path.display();
            Error::Request(format!(
                "{path}, line {line}: {why}; restore it from a copy, or remove it and import the keys anew"
            ))
        })
    }

    /// Whether there is a key with this fingerprint or name, as rules write it.
    ///
    /// # Errors
    /// When the file cannot be read or is damaged.
    pub fn has(&self, which: &str) -> Result<bool, Error> {
        let keys = self.all()?;
        let mut keys = keys.iter();
        Ok(keys.any(|key| is_called(key, &key.standing(), which)))
    }

    /// Takes the keys of a file in, armored or not; one that is here already is replaced.  A dry run changes nothing.
    ///
    /// # Errors
    /// When it is no file of public keys, or the keyring cannot be read or written: then it is as it was.
    pub fn import(&self, octets: &[u8], dry_run: bool) -> Result<Imported, Error> {
        let found = certificates(octets).map_err(|why| Error::Request(why.to_string()))?;
        let mut imported = Imported::default();
        for one in found {
            match one {
                Ok(key) if key.standing().names.is_empty() => imported.refused.push(format!(
                    "{}: it has no name that it signed itself",
                    key.fingerprint()
                )),
                Ok(key) => imported.taken.push(key),
                Err(why) => imported.refused.push(why.to_string()),
            }
        }
        if !dry_run && !imported.taken.is_empty() {
            let new = imported.taken.clone();
            self.change(|keys| {
                for key in new {
                    keys.retain(|old| old.fingerprint() != key.fingerprint());
                    keys.push(key);
                }
                Ok(())
            })?;
        }
        Ok(imported)
    }

    /// Takes out the keys with this fingerprint or name; how many those are.
    ///
    /// # Errors
    /// When there is none, or the keyring cannot be read or written: then it is as it was.
    pub fn remove(&self, which: &str) -> Result<usize, Error> {
        let mut removed = 0;
        self.change(|keys| {
            let before = keys.len();
            keys.retain(|key| !is_called(key, &key.standing(), which));
            removed = before - keys.len();
            match removed {
                0 => Err(Error::Request(format!(
                    "there is no key {which}; `newsreel control keys list` shows those that there are"
                ))),
                _ => Ok(()),
            }
        })?;
        Ok(removed)
    }

    fn change(
        &self,
        change: impl FnOnce(&mut Vec<Certificate>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut lock = self.path.as_os_str().to_owned();
        lock.push(".lock");
        let _lock = self.disk.lock(&PathBuf::from(lock))?;
        let mut keys = self.all()?;
        change(&mut keys)?;
        let text = encode(&mut keys);
        if text.len() > KEYRING_OCTETS_MAX {
            return Err(Error::Request(format!(
                "the keyring would have more than {KEYRING_OCTETS_MAX} octets; import only the keys that rules name"
            )));
        }
        replace_file(self.disk.as_ref(), &self.path, text.as_bytes())?;
        Ok(())
    }

    /// The same, for signatures that are looked at one behind the other.
    pub(crate) const fn opened(self) -> OpenedKeyring {
        OpenedKeyring {
            keyring: self,
            keys: OnceCell::new(),
        }
    }
}

/// A keyring of which the file is read once, when it is wanted.
#[derive(Debug)]
pub(crate) struct OpenedKeyring {
    keyring: Keyring,
    keys: OnceCell<Vec<Certificate>>,
}

impl OpenedKeyring {
    fn keys(&self) -> Result<&[Certificate], Error> {
        match self.keys.get() {
            Some(keys) => Ok(keys),
            None => {
                let keys = self.keyring.all()?;
                Ok(self.keys.get_or_init(|| keys))
            }
        }
    }

    /// Who made this signature of a text; why nobody here did.
    ///
    /// # Errors
    /// When the keyring cannot be read.
    pub(crate) fn signer(
        &self,
        signature: &Signature,
        text: &[u8],
    ) -> Result<Result<Signer, String>, Error> {
        let keys = self.keys()?;
        let may_be = |key: &&Certificate| match signature.issuer() {
            Some(issuer) => key.may_be(&issuer),
            None => true,
        };
        let mut why = "no key in the keyring made it".to_owned();
        for key in keys.iter().filter(may_be) {
            match key.verify(signature, text) {
                Ok(standing) => {
                    let fingerprint = key.fingerprint().to_string();
                    let names = standing.names;
                    return Ok(Ok(Signer { names, fingerprint }));
                }
                Err(error) => why = error.to_string(),
            }
        }
        Ok(Err(why))
    }
}

/// Whose signature it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Signer {
    pub(crate) names: Vec<String>,
    fingerprint: String,
}

impl Signer {
    /// As the log has it.
    pub(crate) const fn new(names: Vec<String>, fingerprint: String) -> Self {
        Self { names, fingerprint }
    }

    /// Which key it is.
    pub(crate) fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    /// Whether a rule means this key: by one of its names, or by its fingerprint.
    pub(crate) fn is(&self, key: &str) -> bool {
        self.names.iter().any(|name| is_name(name, key))
            || self.fingerprint.eq_ignore_ascii_case(key)
    }
}

fn is_called(key: &Certificate, standing: &Standing, which: &str) -> bool {
    let fingerprint = key.fingerprint().to_string();
    fingerprint.eq_ignore_ascii_case(which) || standing.names.iter().any(|it| is_name(it, which))
}

/// INN's rules have no blanks; a name with some is written with `_` there.
fn is_name(name: &str, key: &str) -> bool {
    name == key || name.contains(' ') && name.replace(' ', "_") == key
}

fn encode(keys: &mut [Certificate]) -> String {
    keys.sort_by(|a, b| a.fingerprint().cmp(b.fingerprint()));
    let rows = keys.iter().map(|key| {
        let octets = STANDARD.encode(key.octets());
        format!("{}\t{octets}\n", key.fingerprint())
    });
    let rows: String = rows.collect();
    format!("{MAGIC}{:08x}\n{rows}", crc32c::crc32c(rows.as_bytes()))
}

fn decode(octets: &[u8]) -> Result<Vec<Certificate>, (usize, &'static str)> {
    let text = std::str::from_utf8(octets).map_err(|_| (1, "it is not UTF-8"))?;
    let (first, rows) = text.split_once('\n').ok_or((1, "it has no first line"))?;
    let sum = first.strip_prefix(MAGIC);
    let sum = sum.ok_or((1, "it is no keyring of version 1"))?;
    if sum != format!("{:08x}", crc32c::crc32c(rows.as_bytes())) {
        return Err((1, "the checksum is wrong"));
    }
    if !rows.is_empty() && !rows.ends_with('\n') {
        return Err((1, "the last line has no end"));
    }
    let mut keys: Vec<Certificate> = Vec::new();
    for (line, row) in (2..).zip(rows.split_terminator('\n')) {
        let (fingerprint, octets) = row.split_once('\t').ok_or((line, "it has no TAB"))?;
        let octets = STANDARD.decode(octets);
        let octets = octets.map_err(|_| (line, "the key is not base64"))?;
        let mut found = certificates(&octets).map_err(|_| (line, "the key is malformed"))?;
        let (Some(Ok(key)), None) = (found.pop(), found.pop()) else {
            return Err((line, "it is not one key that is known here"));
        };
        if key.octets() != octets || key.fingerprint().to_string() != fingerprint {
            return Err((line, "the fingerprint is not that of the key"));
        }
        if keys
            .last()
            .is_some_and(|last| last.fingerprint() >= key.fingerprint())
        {
            return Err((line, "the fingerprints are not in order"));
        }
        keys.push(key);
    }
    Ok(keys)
}

/// The door for fuzzers: takes any octets for rows of a keyring; what is understood is written the same way again.
#[must_use]
pub(crate) fn decode_made(rows: &[u8]) -> bool {
    let first = format!("{MAGIC}{:08x}\n", crc32c::crc32c(rows));
    let octets = [first.as_bytes(), rows].concat();
    match decode(&octets) {
        Ok(mut keys) => {
            assert_eq!(encode(&mut keys).as_bytes(), octets);
            true
        }
        Err(_) => false,
    }
}
