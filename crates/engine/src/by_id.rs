//! OVER and HDR by message-id: the overview line of an article, wherever it stands.
//!
//! The article's own Xref says where its line is.  Groups go, and are made again with other numbers, but the article stays
//! readable by its id: then the line is made from the article itself, as a rebuild of the overview would make it.

use newsreel_index::{Error as IndexError, Wait};
use newsreel_service::{
    ArticleBuf, ArticleQuery, NewsService as _, OverviewRows, Part, ServiceError,
};
use newsreel_wire::article::{ArticleFacts, Headers, Known};
use newsreel_wire::{ArticleNumber, MessageId, overview};

use crate::local::{LocalService, index_fault, or_wait};
use crate::places::{Places, Retired, places, write_line};
use crate::shared::Shared;

impl LocalService {
    /// Appends the line of the article of this id, whose header block is in `article`, with 0 for its number.  `false`:
    /// it is gone by now.
    pub(crate) async fn write_line_of(
        &self,
        id: MessageId<'_>,
        article: &mut ArticleBuf,
        rows: &mut OverviewRows,
    ) -> Result<bool, ServiceError> {
        let xref = xref_of(article.content());
        let places = places(self.shared.views.groups(), &Retired::new(), &xref);
        if let Some(line) = self.kept_line(id, places).await? {
            rows.push(ArticleNumber(0), &line);
            return Ok(true);
        }
        let query = ArticleQuery::ById(id);
        if self.article(query, Part::Whole, article).await?.is_none() {
            return Ok(false);
        }
        let Ok(headers) = Headers::scan_stored(article.content()) else {
            return Ok(false);
        };
        let Ok(facts) = ArticleFacts::of(&headers) else {
            return Ok(false);
        };
        let mut line = Vec::new();
        write_line(&headers, &facts, &mut line);
        rows.push(ArticleNumber(0), &line);
        Ok(true)
    }

    /// The line that the overview has in one of these places.
    async fn kept_line(
        &self,
        id: MessageId<'_>,
        places: Places,
    ) -> Result<Option<Vec<u8>>, ServiceError> {
        let shared = &self.shared;
        let id = id.as_str().to_owned();
        or_wait!(
            shared,
            kept_line(shared, &id, &places, Wait::No),
            move |shared: &Shared| kept_line(shared, &id, &places, Wait::Yes)
        )
        .map_err(|error| index_fault(&error))
    }
}

/// The content of Xref in a header block.
fn xref_of(head: &[u8]) -> Vec<u8> {
    let block = [head, b"\r\n"].concat();
    let headers = Headers::scan_stored(&block).ok();
    let xref = headers.and_then(|headers| headers.content(Known::Xref).map(<[u8]>::to_vec));
    xref.unwrap_or_default()
}

/// The first line of this article among these places.  A place that cannot be read is passed over: the article is there.
fn kept_line(
    shared: &Shared,
    id: &str,
    places: &Places,
    wait: Wait,
) -> Result<Option<Vec<u8>>, IndexError> {
    let view = shared.views.overview();
    for (group, number) in places {
        let mut line = Vec::new();
        let range: (ArticleNumber, ArticleNumber) = (*number, *number);
        match view.lines(*group, range, 1, wait, &mut line) {
            Ok(_) => {}
            Err(IndexError::WouldBlock) => return Err(IndexError::WouldBlock),
            Err(_) => continue,
        }
        let behind_number = line.iter().position(|octet| *octet == b'\t');
        let Some(line) = behind_number.and_then(|at| line.get(at + 1..line.len() - 2)) else {
            continue;
        };
        // Another group may have the name, and that number, by now.
        if overview::message_id(line) == Some(id.as_bytes()) {
            return Ok(Some(line.to_vec()));
        }
    }
    Ok(None)
}
