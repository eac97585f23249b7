//! What lies in a stretch of a buffer, as history and overview tell it, beside the model.

use std::collections::BTreeSet;
use std::ops::Range;

use newsreel_index::Wait;
use newsreel_wire::{BufferId, GroupId, Position, Token};

use crate::world::{World, hash};

impl World {
    /// Asks for the middle of each buffer, and for all of it.
    pub(crate) fn check_places(&self) {
        for buffer in (0..4).map(BufferId) {
            let here = |token: &Token| token.buffer() == buffer && self.is_live(token);
            let known = self.model.history.values();
            let mut places: Vec<Position> = known
                .filter_map(|(token, _)| token.filter(here))
                .map(|token| token.position())
                .collect();
            places.sort_unstable();
            let nth = |part: usize| places.get(places.len() * part / 4).copied();
            let all = Position::ZERO..Position(u64::MAX);
            let middle = nth(1).unwrap_or_default()..nth(3).unwrap_or_default();
            for stretch in [all, middle] {
                self.check_history_in(buffer, &stretch);
                self.check_rows_in(buffer, &stretch);
            }
        }
    }

    fn check_history_in(&self, buffer: BufferId, stretch: &Range<Position>) {
        let is_here = |token: &Token| {
            token.buffer() == buffer && stretch.contains(&token.position()) && self.is_live(token)
        };
        let expect: BTreeSet<_> = self
            .model
            .history
            .iter()
            .filter_map(|(key, (token, _))| Some((hash(*key).0, token.filter(is_here)?.position())))
            .collect();
        let history = self.views.history();
        let (mut found, mut walk) = (
            BTreeSet::new(),
            history.tokens_in(buffer, stretch.clone()).unwrap(),
        );
        let mut shown = Vec::new();
        while walk.step(history, |led| shown.push(led)).unwrap() {}
        for led in shown {
            let (hash, token) = (led.hash, led.token);
            assert!(token.buffer() == buffer && stretch.contains(&token.position()));
            let entry = history.lookup(&hash).unwrap();
            if entry.is_some_and(|entry| entry.leads_to(&token)) {
                found.insert((hash.0, token.position()));
            }
        }
        assert_eq!(found, expect, "{buffer:?} {stretch:?}");
    }

    fn check_rows_in(&self, buffer: BufferId, stretch: &Range<Position>) {
        let is_here =
            |token: &Token| token.buffer() == buffer && stretch.contains(&token.position());
        let mut expect = BTreeSet::new();
        for (id, group) in &self.model.groups {
            let live = self.live(group).into_iter();
            let here = live.filter(|(_, article)| is_here(&article.token));
            let here = here.map(|(number, article)| (*id, number, article.token.position()));
            expect.extend(here.filter(|_| !group.is_removed));
        }
        let (overview, mut found) = (self.views.overview(), BTreeSet::new());
        let mut visit = |group: GroupId, number, token: Token| {
            assert!(is_here(&token));
            let (exists, mut id) = (self.views.groups().exists(group), Vec::new());
            let column = overview.column(group, number, Wait::Yes, &mut id).unwrap();
            if exists && column.is_some_and(|column| column.token == token) {
                found.insert((group.0, number.0, token.position()));
            }
        };
        let seen = overview.rows_within(buffer, stretch, |group, column, _| {
            visit(group, column.number, column.token);
        });
        seen.unwrap();
        assert_eq!(found, expect, "{buffer:?} {stretch:?}");
    }
}
