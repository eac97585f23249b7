//! Articles from elsewhere that are no batches: mail folders, and directories with an article in each file.
//!
//! What is read is handed over to somebody, article by article; what becomes of it is that one's matter.

pub(crate) mod mbox;
pub(crate) mod tree;

use std::collections::BTreeMap;

use anyhow::Result;
use newsreel_wire::article::{ArticleFacts, Headers, check_relay};

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

/// Reasons that are named; of others there is a count.
const NAMED_MAX: usize = 100;

/// Counts what would be handed over, and of that what no server takes.
#[derive(Debug)]
pub(crate) struct Counts<'d> {
    pub(crate) articles: u64,
    /// Articles that lack what every article must have, by what it is.
    pub(crate) rejected: BTreeMap<String, u64>,
    pub(crate) damages: &'d mut Damages,
}

impl Takes for Counts<'_> {
    fn article(&mut self, article: &[u8]) -> Result<()> {
        let wire = posting::wire_of(article);
        if let Err(why) = id_of(&wire) {
            self.damages.add(None, &why);
            return Ok(());
        }
        self.articles += 1;
        let checked = Headers::scan(&wire).map_err(|fault| fault.to_string());
        let checked = checked.and_then(|headers| {
            let facts = ArticleFacts::of(&headers).map_err(|fault| fault.to_string())?;
            check_relay(&headers, &facts).map_err(|fault| fault.to_string())?;
            Ok(())
        });
        if let Err(why) = checked {
            let is_named = self.rejected.len() < NAMED_MAX || self.rejected.contains_key(&why);
            let why = if is_named {
                why
            } else {
                "other reasons".to_owned()
            };
            *self.rejected.entry(why).or_default() += 1;
        }
        Ok(())
    }

    fn damages(&mut self) -> &mut Damages {
        self.damages
    }
}
