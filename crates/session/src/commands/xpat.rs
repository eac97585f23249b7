//! XPAT: one field of the articles whose field matches a pattern (RFC 2980 section 2.9).
//!
//! The words of the pattern are one pattern with a space between them; nothing that matches is an empty list.

use newsreel_service::NewsService;
use newsreel_wire::Wildmat;
use newsreel_wire::nntp::line::Command;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::core::Core;
use crate::end::End;
use crate::header;
use crate::overview::Style;
use crate::spec::{Needs, Spec};

pub(super) const SPEC: Spec = Spec {
    name: "XPAT",
    usage: "field range|message-id pattern",
    args: (3, 6),
    needs: Needs::Reader,
    capability: None,
    pipelined: false,
    codes: &[221, 412, 430, 503],
};

pub(super) async fn run<S, Io>(core: &mut Core<S, Io>, command: &Command<'_>) -> Result<(), End>
where
    S: NewsService,
    Io: AsyncRead + AsyncWrite + Unpin + Send,
{
    let words = command.args.get(2..).unwrap_or_default();
    let Ok(pattern) = Wildmat::parse_text_pattern(&words.join(&b' ')) else {
        core.reply("501 Malformed pattern\r\n");
        return Ok(());
    };
    header::header(
        core,
        command.arg(0).unwrap_or_default(),
        command.arg(1),
        Style::Rfc2980,
        Some(&pattern),
    )
    .await
}
