//! Reading little-endian fields out of octets that may be damaged.
//!
//! Every read is bounds-checked and says what was missing; nothing here panics or allocates.

/// Why octets could not be decoded; the caller knows the file and the place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bad(pub(crate) &'static str);

/// What remains to be read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cursor<'a> {
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    /// Reads from the start of `bytes`.
    pub(crate) const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// The next `len` octets.
    pub(crate) fn take(&mut self, len: usize) -> Result<&'a [u8], Bad> {
        let (taken, rest) = self
            .rest
            .split_at_checked(len)
            .ok_or(Bad("it ends too early"))?;
        self.rest = rest;
        Ok(taken)
    }

    /// The next `N` octets.
    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], Bad> {
        let (taken, rest) = self
            .rest
            .split_first_chunk::<N>()
            .ok_or(Bad("it ends too early"))?;
        self.rest = rest;
        Ok(*taken)
    }

    pub(crate) fn u8(&mut self) -> Result<u8, Bad> {
        Ok(u8::from_le_bytes(self.array()?))
    }

    pub(crate) fn u16(&mut self) -> Result<u16, Bad> {
        Ok(u16::from_le_bytes(self.array()?))
    }

    pub(crate) fn u32(&mut self) -> Result<u32, Bad> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    pub(crate) fn u64(&mut self) -> Result<u64, Bad> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    /// Octets not read yet.
    pub(crate) const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// An error unless everything was read.
    pub(crate) fn finish(self) -> Result<(), Bad> {
        if self.rest.is_empty() {
            return Ok(());
        }
        Err(Bad("it is longer than its fields"))
    }
}

/// The `N` octets at `at`, or zeros when a validated length was wrong after all (which tests rule out).
pub(crate) fn array_at<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    bytes
        .get(at..)
        .and_then(<[u8]>::first_chunk::<N>)
        .copied()
        .unwrap_or([0; N])
}
