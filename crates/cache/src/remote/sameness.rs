//! Whether a server has the numbers that another one had, as is declared of it: some of those that are kept are asked for.
//!
//! A number that the server does not have says nothing, as servers keep articles for different times; another article under it
//! says that the numbers are others.

use newsreel_net::client::Connect;
use newsreel_service::{ArticleBuf, ArticleQuery, NewsService as _, Part, ServiceError};
use newsreel_wire::{ArticleNumber, GroupName};

use super::RServer;
use crate::keep::{Keep, Renumbered};

/// So many groups are compared at most, far apart in the order of their names.
pub const SAMPLED_GROUPS_MAX: usize = 20;

/// ... and so many numbers of each.
pub const SAMPLED_NUMBERS_MAX: usize = 5;

/// What came of comparing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Sameness {
    /// Numbers that have the article they had.
    pub same: u64,
    /// The first number that has another one, and its group.
    pub other: Option<(Box<str>, ArticleNumber)>,
}

impl<C: Connect> RServer<C> {
    /// Asks the servers that groups' numbers come from now for some numbers that are kept.
    ///
    /// # Errors
    /// When one cannot be asked.
    pub async fn compared(
        &self,
        keep: &Keep,
        groups: &[Renumbered],
    ) -> Result<Sameness, ServiceError> {
        let mut sameness = Sameness::default();
        let step = groups.len().div_ceil(SAMPLED_GROUPS_MAX).max(1);
        for group in groups.iter().step_by(step) {
            let name = &group.group;
            let Ok(parsed) = GroupName::parse(name.as_bytes()) else {
                continue;
            };
            // One that is not there has no numbers.
            let Some(info) = self.group(parsed).await? else {
                continue;
            };
            for (number, expected) in keep.sampled(name, SAMPLED_NUMBERS_MAX) {
                let mut out = ArticleBuf::new();
                let query = ArticleQuery::ByNumber(info.id, number);
                let found = self.article(query, Part::Stat, &mut out).await?;
                match found {
                    None => {}
                    Some(_) if out.id() == &*expected => sameness.same += 1,
                    Some(_) => {
                        sameness.other = Some((name.clone(), number));
                        return Ok(sameness);
                    }
                }
            }
        }
        Ok(sameness)
    }
}
