//! Overview that is made from articles (R22): of those lines the message-id alone is kept, and they are made whenever somebody wants them.
//!
//! Where the article has gone, or another one is kept under that message-id, the line is not known any more, and the server is asked for it.

use std::sync::Arc;

use newsreel_net::client::Connect;
use newsreel_service::ServiceError;
use newsreel_wire::{ArticleNumber, IdHash, MessageId};

use super::Inner;
use super::line::line_in;
use super::numbers::{Blocks, Numbers};
use crate::keep::{BLOCK_NUMBERS, Block, Keep, Kept, places_in};

/// A line that is to be made.
#[derive(Debug)]
struct Wanted {
    /// Which of the blocks it is in, and at which place.
    at: (usize, u8),
    number: ArticleNumber,
    id: Box<[u8]>,
    hash: Option<IdHash>,
    line: Option<Vec<u8>>,
}

impl Wanted {
    /// Makes it from the article that is found, if that is in the group.
    fn make(&mut self, group: &str, find: impl FnOnce(&IdHash) -> Option<Arc<Kept>>) {
        let kept = self.hash.as_ref().and_then(find);
        self.line = kept.and_then(|kept| line_in(group, &self.id, &kept));
    }
}

/// The lines of a range that are to be made, in order.
fn wanted(keep: &Keep, blocks: &Blocks, range: Numbers) -> Vec<Wanted> {
    let each = blocks.iter().enumerate();
    let each = each.flat_map(|(at, (block, known))| {
        let bare = known.bare(places_in(*block, range.0, range.1));
        bare.map(move |(place, id)| Wanted {
            at: (at, place),
            number: ArticleNumber(block * BLOCK_NUMBERS + u64::from(place)),
            id: id.into(),
            hash: MessageId::parse(id).ok().map(|id| keep.id_hash(id)),
            line: None,
        })
    });
    each.collect()
}

/// The blocks with the lines that were made.
fn filled(mut blocks: Blocks, made: &[Wanted]) -> Blocks {
    for lines in made.chunk_by(|one, next| one.at.0 == next.at.0) {
        let Some((_, block)) = lines.first().and_then(|line| blocks.get_mut(line.at.0)) else {
            continue;
        };
        let places = lines.iter().fold(0, |all, line| all | 1 << line.at.1);
        let lines = lines
            .iter()
            .filter_map(|wanted| Some((wanted.at.1, wanted.line.as_deref()?)));
        let whole: Block = block.filled(places, lines);
        *block = Arc::new(whole);
    }
    blocks
}

impl<C: Connect> Inner<C> {
    /// The same blocks with all lines of a range, those that are made, too; none: of some of these the article has gone, and they are
    /// not known any more.
    pub(super) async fn made_whole(
        &self,
        (name, generation): (&Arc<str>, u64),
        blocks: Blocks,
        range: Numbers,
    ) -> Result<Option<Blocks>, ServiceError> {
        let mut wanted = wanted(&self.keep, &blocks, range);
        for line in &mut wanted {
            line.make(name, |id| self.keep.article_at_hand(id));
        }
        if wanted.iter().any(|wanted| wanted.line.is_none()) {
            let name = Arc::clone(name);
            let making = self.on_disk(move |keep| {
                let missing = wanted.iter_mut().filter(|line| line.line.is_none());
                missing.for_each(|line| line.make(&name, |id| keep.article_unasked(id)));
                let gone = wanted.iter().filter(|line| line.line.is_none());
                let gone: Vec<ArticleNumber> = gone.map(|line| line.number).collect();
                keep.forget_lines((&name, generation), &gone);
                gone.is_empty().then_some(wanted)
            });
            let Some(made) = making.await? else {
                return Ok(None);
            };
            wanted = made;
        }
        Ok(Some(filled(blocks, &wanted)))
    }
}
