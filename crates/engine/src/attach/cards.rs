//! Articles that are known and lie in the file of another spool, and whose cards our catalogue has lost: made again when that file, or a
//! copy of it, is attached once more.
//!
//! Nothing is filed anew: the token is that of the history, the Xref that of the overview, so numbers stay.  A card is made only where the
//! article with that Xref, and the card, are as long as the token says, and where the file of the set is the one that was read.

use std::collections::BTreeMap;

use newsreel_index::{HistoryEntry, Wait};
use newsreel_store::Place;
use newsreel_wire::article::Headers;
use newsreel_wire::{
    ArticleNumber, BufferId, GroupId, IdHash, Position, Sequence, SetId, Token, UnixTime,
};

use super::{Attach, Found};
use crate::accept::small;
use crate::error::Error;
use crate::scrub_cards::LostCards;
use crate::shared::Shared;

/// In front of the content of Xref in a line of the overview.
const XREF: &[u8] = b"Xref: ";

/// Such an article, and where it lies.
pub(super) struct Cardless {
    token: Token,
    arrival: UnixTime,
    id_hash: IdHash,
    wire: Vec<u8>,
    head_len: u32,
    lies_at: String,
}

impl Cardless {
    /// Its place, but for the sequence.
    fn place<'a>(&'a self, set: SetId, xref: &'a [u8], article: &'a [&'a [u8]]) -> Place<'a> {
        Place {
            sequence: Sequence::ZERO,
            arrival: self.arrival,
            id_hash: self.id_hash,
            id: b"",
            set,
            format: None,
            xref,
            article,
            head_len: self.head_len,
        }
    }
}

/// Those of one buffer, by their places.
pub(super) type OfBuffer = BTreeMap<Position, Cardless>;

impl<'a> Attach<'a> {
    /// Whether a known article is one whose card is lost; then it is kept in mind.
    pub(super) fn is_cardless(
        &mut self,
        found: &Found<'_>,
        headers: &Headers<'_>,
        (id_hash, known): (IdHash, &HistoryEntry),
    ) -> bool {
        let store = &self.engine.shared.store;
        let token = known.token.filter(|token| store.is_live(token));
        let lost = token.filter(|token| {
            let buffer = store.buffer(token.buffer());
            buffer.is_some_and(|buffer| buffer.lacks_card(token))
        });
        let lies_at = found.reader.lies_at(&found.token);
        let Some((token, lies_at)) = lost.zip(lies_at) else {
            return false;
        };
        let cardless = Cardless {
            token,
            arrival: known.arrival,
            id_hash,
            wire: found.wire.to_vec(),
            head_len: small(headers.body_start().saturating_sub(2)),
            lies_at,
        };
        let of_buffer = self.cardless.entry(token.buffer()).or_default();
        of_buffer.insert(token.position(), cardless);
        true
    }

    /// Makes the cards of those again, or, where that is only asked, counts those of which it can be done.
    pub(super) fn make_cards(&mut self) -> Result<(), Error> {
        let shared: &'a Shared = &self.engine.shared;
        for (id, lost) in std::mem::take(&mut self.cardless) {
            let Some(buffer) = shared.store.buffer(id) else {
                continue;
            };
            let xrefs = self.xrefs(id, &lost)?;
            let cards = self.cards.entry(id).or_insert_with(|| {
                // Another file may be there than was looked at last.
                drop(buffer.lent());
                LostCards::new(shared, buffer)
            });
            let before = cards.made();
            let mut made = 0;
            for (at, lost) in &lost {
                let xref = xrefs.get(at).map_or(&b""[..], Vec::as_slice);
                let wire = [lost.wire.as_slice()];
                let place = lost.place(buffer.set(), xref, &wire);
                made += match self.what.dry_run {
                    true => {
                        let card = buffer.card_of_lent(&lost.lies_at, &place, &lost.token);
                        u64::from(card.is_some())
                    }
                    false => {
                        cards.is_of_lent(&lost.lies_at, &place, &lost.token)?;
                        0
                    }
                };
            }
            cards.restore();
            made += cards.made() - before;
            self.report.cards_made += made;
            self.report.cards_lost += (lost.len() as u64).saturating_sub(made);
        }
        Ok(())
    }

    /// The Xref of each of these, as the overview shows it; none of those in no group.
    fn xrefs(
        &self,
        buffer: BufferId,
        lost: &OfBuffer,
    ) -> Result<BTreeMap<Position, Vec<u8>>, Error> {
        let overview = self.engine.shared.views.overview();
        let (Some((first, _)), Some((last, _))) = (lost.first_key_value(), lost.last_key_value())
        else {
            return Ok(BTreeMap::new());
        };
        let stretch = *first..Position(last.0.saturating_add(1));
        let mut rows: BTreeMap<Position, (GroupId, ArticleNumber)> = BTreeMap::new();
        overview.rows_within(buffer, &stretch, |group, column, _| {
            let at = column.token.position();
            if lost.contains_key(&at) {
                rows.insert(at, (group, column.number));
            }
        })?;
        let mut xrefs = BTreeMap::new();
        for (at, (group, number)) in rows {
            let mut line = Vec::new();
            overview.lines(group, (number, number), usize::MAX, Wait::Yes, &mut line)?;
            let mut fields = line.trim_ascii_end().rsplit(|octet| *octet == b'\t');
            if let Some(xref) = fields.find_map(|field| field.strip_prefix(XREF)) {
                xrefs.insert(at, xref.to_vec());
            }
        }
        Ok(xrefs)
    }
}
