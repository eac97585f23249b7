//! LAST: moves to the previous article (RFC 3977 section 6.1.3).

use newsreel_service::{Direction, NewsService};
use newsreel_wire::nntp::line::Command;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::core::Core;
use crate::end::End;
use crate::retrieve;
use crate::spec::{Needs, Spec};

pub(super) const SPEC: Spec = Spec {
    name: "LAST",
    usage: "",
    args: (0, 0),
    needs: Needs::Reader,
    capability: Some("READER"),
    pipelined: false,
    codes: &[223, 412, 420, 422],
};

pub(super) async fn run<S, Io>(core: &mut Core<S, Io>, _command: &Command<'_>) -> Result<(), End>
where
    S: NewsService,
    Io: AsyncRead + AsyncWrite + Unpin + Send,
{
    retrieve::step(core, Direction::Last).await
}
