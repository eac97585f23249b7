//! Articles from elsewhere that are no batches: mail folders, and directories with an article in each file.
//!
//! What is read is handed over to somebody, article by article; what becomes of it is that one's matter.

pub(crate) mod mbox;
pub(crate) mod tree;

use anyhow::Result;

use crate::batches::damages::Damages;
use crate::batches::{Taker, id_of};
use crate::posting;

/// Who gets the articles.
pub(crate) trait Takes {
    /// An article, with LF or CRLF line ends.
    fn article(&mut self, article: &[u8]) -> Result<()>;
    /// Where damage is told.
    fn damages(&mut self) -> &mut Damages;
    /// What was given may wait no longer.
    fn flush(&mut self) {}
}

impl Takes for Taker<'_, '_> {
    fn article(&mut self, article: &[u8]) -> Result<()> {
        Taker::article(self, article)
    }

    fn damages(&mut self) -> &mut Damages {
        self.damages
    }

    fn flush(&mut self) {
        Taker::flush(self);
    }
}

/// Counts what would be handed over.
#[derive(Debug)]
pub(crate) struct Counts<'d> {
    pub(crate) articles: u64,
    pub(crate) damages: &'d mut Damages,
}

impl Takes for Counts<'_> {
    fn article(&mut self, article: &[u8]) -> Result<()> {
        match id_of(&posting::wire_of(article)) {
            Ok(_) => self.articles += 1,
            Err(why) => self.damages.add(None, &why),
        }
        Ok(())
    }

    fn damages(&mut self) -> &mut Damages {
        self.damages
    }
}
