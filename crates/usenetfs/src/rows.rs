//! A list that grows by pieces and stays dense: no element is moved when it grows, and the last one fills the place of
//! one that goes.
//!
//! A list in one piece has twice the memory for a while each time it grows, and what was freed stays with the allocator.

/// Elements of a piece.
const PIECE: usize = 256;

/// The list; the places of its elements are `0..len()`.
#[derive(Debug)]
pub(crate) struct Rows<T> {
    /// All but the last are full, and none is empty.
    pieces: Vec<Vec<T>>,
}

impl<T> Default for Rows<T> {
    fn default() -> Self {
        Self { pieces: Vec::new() }
    }
}

impl<T: Copy> Rows<T> {
    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        match self.pieces.as_slice() {
            [] => 0,
            [full @ .., last] => full.len() * PIECE + last.len(),
        }
    }

    /// The octets it takes.
    #[cfg(test)]
    pub(crate) fn allocation_size(&self) -> usize {
        self.pieces.capacity() * size_of::<Vec<T>>() + self.pieces.len() * PIECE * size_of::<T>()
    }

    pub(crate) fn get(&self, at: usize) -> Option<&T> {
        self.pieces.get(at / PIECE)?.get(at % PIECE)
    }

    pub(crate) fn get_mut(&mut self, at: usize) -> Option<&mut T> {
        self.pieces.get_mut(at / PIECE)?.get_mut(at % PIECE)
    }

    /// Puts one behind the last; returns its place.
    pub(crate) fn push(&mut self, row: T) -> usize {
        let at = self.len();
        match self.pieces.last_mut() {
            Some(last) if last.len() < PIECE => last.push(row),
            _ => {
                let mut piece = Vec::with_capacity(PIECE);
                piece.push(row);
                self.pieces.push(piece);
            }
        }
        at
    }

    /// Takes one out.  The last one has its place from now on, unless it was the last itself: then it is returned, with
    /// the place that it had.
    pub(crate) fn take(&mut self, at: usize) -> Option<(T, usize)> {
        let had = self.len().checked_sub(1)?;
        let piece = self.pieces.last_mut()?;
        let last = piece.pop()?;
        if piece.is_empty() {
            self.pieces.pop();
        }
        *self.get_mut(at)? = last;
        Some((last, had))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_fills_the_place_of_one_that_goes() {
        let mut rows = Rows::default();
        for row in 0..PIECE + 1 {
            assert_eq!(rows.push(row), row);
        }
        assert_eq!(rows.take(3), Some((PIECE, PIECE)));
        assert_eq!((rows.get(3), rows.len()), (Some(&PIECE), PIECE));
        assert_eq!(rows.pieces.len(), 1);
        assert_eq!(rows.take(PIECE - 1), None);
        assert_eq!((rows.get(PIECE - 1), rows.len()), (None, PIECE - 1));
        for _ in 0..PIECE - 1 {
            rows.take(0);
        }
        assert_eq!((rows.len(), rows.take(0), rows.pieces.len()), (0, None, 0));
    }
}
