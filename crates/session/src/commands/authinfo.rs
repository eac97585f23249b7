//! AUTHINFO USER and PASS: who is there says so (RFC 4643 section 2.3).
//!
//! Whether a name is known cannot be told from a reply.  What was selected and may not be read by who has logged in is
//! selected no more.

use newsreel_net::access::Login;
use newsreel_service::NewsService;
use newsreel_wire::nntp::line::Command;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::core::Core;
use crate::dispatch::NOT_PERMITTED;
use crate::end::End;
use crate::spec::{Needs, Spec};

/// What CAPABILITIES has one line for.
pub(super) const CAPABILITY: &str = "AUTHINFO";

pub(super) const SPEC: Spec = Spec {
    name: "AUTHINFO",
    usage: "USER name|PASS password",
    args: (2, 2),
    needs: Needs::Nothing,
    capability: Some(CAPABILITY),
    pipelined: false,
    codes: &[281, 381, 481, 482, 483, 502],
};

pub(super) async fn run<S, Io>(core: &mut Core<S, Io>, command: &Command<'_>) -> Result<(), End>
where
    S: NewsService,
    Io: AsyncRead + AsyncWrite + Unpin + Send,
{
    let is_user = command.arg_is(0, "USER");
    let said = command
        .arg(1)
        .and_then(|said| std::str::from_utf8(said).ok());
    let Some(said) = said.filter(|_| is_user || command.arg_is(0, "PASS")) else {
        core.reply("501 AUTHINFO USER name or AUTHINFO PASS password, in UTF-8\r\n");
        return Ok(());
    };
    if !core.door.may_log_in() {
        core.reply(NOT_PERMITTED);
    } else if !core.door.takes_clear_text() {
        core.reply("483 Passwords are not taken in clear here\r\n");
    } else if is_user {
        core.login = Some(said.into());
        core.reply("381 Password required\r\n");
    } else if let Some(name) = core.login.take() {
        return log_in(core, &name, said).await;
    } else {
        core.reply("482 Say AUTHINFO USER first\r\n");
    }
    Ok(())
}

async fn log_in<S, Io>(core: &mut Core<S, Io>, name: &str, password: &str) -> Result<(), End>
where
    S: NewsService,
    Io: AsyncRead + AsyncWrite + Unpin + Send,
{
    // What was said before must not wait for this.
    core.flush().await?;
    match core.door.log_in(name, password).await {
        Login::In => {
            core.take_grant();
            core.reply("281 Logged in\r\n");
        }
        Login::Wrong => core.reply("481 Wrong name or password\r\n"),
        Login::Failed => core.reply("403 Nobody can log in now; try again later\r\n"),
        Login::Full => {
            core.reply("400 Too many connections of this user; try again later\r\n");
            core.ending = Some(End::NoService);
        }
    }
    Ok(())
}
