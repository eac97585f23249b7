//! Articles that a scrub cannot unpack, as no copy of the dictionary of their file is left: told once, with how many there are.

use std::collections::BTreeMap;
use std::sync::Arc;

use newsreel_store::{Blocking, BufferReader, DICTIONARY_LOST, ReadError, Want};
use newsreel_wire::Position;

use crate::report::Damage;

/// Articles that cannot be unpacked as the dictionary of their file is lost: of each file the first is told, and how many there are.
#[derive(Debug, Default)]
pub(crate) struct Undone(BTreeMap<u32, (u64, Option<String>)>);

impl Undone {
    /// Whether what is damaged here is such an article, and not the first of its file.
    pub(crate) fn is_one_more(
        &mut self,
        buffer: &Arc<dyn BufferReader>,
        at: Position,
        damage: &Damage,
    ) -> bool {
        let Ok(token) = buffer.token_at(at) else {
            return false;
        };
        let read = buffer.read(&token, Want::Head, Blocking::Yes, &mut Vec::new());
        if !matches!(read, Err(ReadError::Corrupt { what, .. }) if what == DICTIONARY_LOST) {
            return false;
        }
        let of_file = self.0.entry(at.cycle()).or_default();
        of_file.0 += 1;
        of_file.1 = of_file.1.take().or_else(|| damage.message_id.clone());
        of_file.0 > 1
    }

    /// What it costs.
    pub(crate) fn told(self, buffer: &str) -> Vec<String> {
        let told = self.0.into_iter().map(|(file, (articles, first))| {
            let first = first.map_or(String::new(), |id| format!(", first {id}"));
            format!(
                "both copies of the dictionary of segment {file} are damaged: articles that cannot be unpacked without it: {articles}{first}"
            )
        });
        let told: Vec<String> = told.collect();
        for what in &told {
            tracing::error!(buffer, "{what}");
        }
        told.into_iter()
            .map(|what| format!("buffer {buffer}: {what}"))
            .collect()
    }
}
