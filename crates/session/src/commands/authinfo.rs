//! AUTHINFO: who is there says so, with USER and PASS (RFC 4643 section 2.3) or in an exchange of SASL (section 2.4).
//!
//! Whether a name is known cannot be told from a reply.  What was selected and may not be read by who has logged in is
//! selected no more.

use newsreel_net::access::{Denied, Login, User};
use newsreel_service::NewsService;
use newsreel_wire::nntp::line::Command;
use ring::rand;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::core::Core;
use crate::end::End;
use crate::sasl::{self, Bad, Challenge, Exchange, First, Mechanism, Plain, Proof};
use crate::spec::{Needs, Spec};

/// What CAPABILITIES has one line for.
pub(super) const CAPABILITY: &str = "AUTHINFO";

/// The line of CAPABILITIES for the mechanisms of AUTHINFO SASL.
pub(super) const MECHANISMS: &str = "SASL";

pub(super) const SPEC: Spec = Spec {
    name: "AUTHINFO",
    usage: "USER name|PASS password|SASL mechanism [initial-response]",
    // A password may have blanks.
    args: (2, 6),
    needs: Needs::Nothing,
    capability: Some(CAPABILITY),
    pipelined: false,
    codes: &[281, 283, 381, 383, 481, 482, 483, 502, 503, 504],
};

const USAGE: &str =
    "501 AUTHINFO USER name, PASS password or SASL mechanism [initial-response]\r\n";
const NOBODY_NOW: &str = "403 Nobody can log in now; try again later\r\n";
const SOMEBODY_ELSE: &str = "481 Nobody acts for somebody else here\r\n";
const MALFORMED: &str = "482 Not a message of this mechanism\r\n";
const UNUSABLE: &str = "482 The response is too long or has NUL, CR or LF\r\n";
const NOT_IN_CLEAR: &str = "483 Passwords are not taken in clear here\r\n";

pub(super) async fn run<S, Io>(core: &mut Core<S, Io>, command: &Command<'_>) -> Result<(), End>
where
    S: NewsService,
    Io: AsyncRead + AsyncWrite + Unpin + Send,
{
    if command.arg_is(0, "SASL") {
        return begin(core, command).await;
    }
    let is_user = command.arg_is(0, "USER");
    let said = match (is_user, &*command.args) {
        (true, [_, name]) => Some(*name),
        (false, [pass, ..]) if command.arg_is(0, "PASS") => command.rest.get(pass.len()..),
        _ => None,
    };
    // Blanks in a password are its own, those around it are not (RFC 4643 section 3.1).
    let said = said.and_then(|said| std::str::from_utf8(said.trim_ascii()).ok());
    let Some(said) = said else {
        core.reply(USAGE);
        return Ok(());
    };
    if !core.may_log_in() {
        let line = core.not_permitted(|_| true);
        core.reply(line);
    } else if !core.door.takes_clear_text() {
        core.reply(NOT_IN_CLEAR);
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

/// AUTHINFO SASL: the exchange begins, and may be over with the initial response.
async fn begin<S, Io>(core: &mut Core<S, Io>, command: &Command<'_>) -> Result<(), End>
where
    S: NewsService,
    Io: AsyncRead + AsyncWrite + Unpin + Send,
{
    if command.args.len() > 3 {
        core.reply(USAGE);
        return Ok(());
    }
    if !core.may_log_in() {
        let line = core.not_permitted(|_| true);
        core.reply(line);
        return Ok(());
    }
    let mechanism = command.arg(1).and_then(Mechanism::find);
    let is_spoken = |mechanism: &Mechanism| match mechanism {
        Mechanism::Plain => true,
        Mechanism::Scram => core.door.takes_scram(),
        Mechanism::External => core.door.certified("").is_some(),
    };
    let Some(mechanism) = mechanism.filter(is_spoken) else {
        core.reply("503 No such mechanism\r\n");
        return Ok(());
    };
    if mechanism == Mechanism::Plain && !core.door.takes_clear_text() {
        core.reply(NOT_IN_CLEAR);
        return Ok(());
    }
    core.exchange = Some(Exchange::First(mechanism));
    if command.arg(2).is_some() {
        return respond(core, command.arg(2)).await;
    }
    // In all it is the client who begins: an empty challenge.
    core.reply("383 =\r\n");
    Ok(())
}

/// What the client says in an exchange; none: something that it cannot say.
pub(crate) async fn respond<S, Io>(core: &mut Core<S, Io>, said: Option<&[u8]>) -> Result<(), End>
where
    S: NewsService,
    Io: AsyncRead + AsyncWrite + Unpin + Send,
{
    let Some(exchange) = core.exchange.take() else {
        return refuse(core, UNUSABLE);
    };
    let message = match said {
        None => Err(UNUSABLE),
        Some(b"*") => Err("481 Cancelled\r\n"),
        Some(said) => sasl::decode(said).ok_or("504 The response is not base64\r\n"),
    };
    let is_challenged = matches!(exchange, Exchange::Proof(_));
    let refused = match (exchange, message) {
        (_, Err(line)) => line,
        (Exchange::First(Mechanism::Plain), Ok(message)) => match sasl::plain(&message) {
            Plain::Login(name, password) => return log_in(core, name, password).await,
            Plain::SomebodyElse => SOMEBODY_ELSE,
            Plain::Malformed => MALFORMED,
        },
        (Exchange::First(Mechanism::Scram), Ok(message)) => match First::parse(&message) {
            Ok(first) => return challenge(core, first).await,
            Err(Bad::SomebodyElse) => SOMEBODY_ELSE,
            Err(Bad::Malformed) => MALFORMED,
        },
        (Exchange::First(Mechanism::External), Ok(message)) => {
            match std::str::from_utf8(&message) {
                Ok(wanted) => return external(core, wanted).await,
                Err(_) => MALFORMED,
            }
        }
        (Exchange::Proof(challenge), Ok(message)) => match challenge.verify(&message) {
            Proof::Malformed => MALFORMED,
            Proof::Wrong => return prove(core, None, "").await,
            Proof::Right(user, ours) => return prove(core, Some(user), &ours).await,
        },
    };
    match is_challenged {
        true => give_up(core, refused).await,
        false => refuse(core, refused),
    }
}

fn refuse<S, Io>(core: &mut Core<S, Io>, line: &str) -> Result<(), End>
where
    S: NewsService,
    Io: AsyncRead + AsyncWrite + Unpin + Send,
{
    core.reply(line);
    Ok(())
}

/// SCRAM: who they say they are gets something to prove it with.
async fn challenge<S, Io>(core: &mut Core<S, Io>, first: First) -> Result<(), End>
where
    S: NewsService,
    Io: AsyncRead + AsyncWrite + Unpin + Send,
{
    core.flush().await?;
    let known = Box::pin(core.door.scram(&first.name)).await;
    let more = rand::generate::<[u8; 18]>(&rand::SystemRandom::new());
    let ((keys, user), more) = match (known, more) {
        (Ok(known), Ok(more)) => (known, more),
        (Err(login), _) => {
            tell(core, login, "");
            return Ok(());
        }
        (_, Err(_)) => return refuse(core, NOBODY_NOW),
    };
    let challenge = Challenge::new(first, keys, user, &more.expose());
    core.reply_parts(&[b"383 ", sasl::encode(challenge.text()).as_bytes()]);
    core.exchange = Some(Exchange::Proof(Box::new(challenge)));
    Ok(())
}

/// SCRAM: a proof has come, and whose it is.
async fn prove<S, Io>(core: &mut Core<S, Io>, user: Option<User>, ours: &str) -> Result<(), End>
where
    S: NewsService,
    Io: AsyncRead + AsyncWrite + Unpin + Send,
{
    core.flush().await?;
    let login = Box::pin(core.door.prove(user)).await;
    // Success has our own proof with it (RFC 4643 section 2.4.1).
    tell(core, login, &["283 ", &sasl::encode(ours)].concat());
    Ok(())
}

/// SCRAM: no proof has come, which is a failed login.
async fn give_up<S, Io>(core: &mut Core<S, Io>, line: &str) -> Result<(), End>
where
    S: NewsService,
    Io: AsyncRead + AsyncWrite + Unpin + Send,
{
    core.flush().await?;
    match Box::pin(core.door.prove(None)).await {
        Login::Wrong => core.reply(line),
        login => tell(core, login, ""),
    }
    Ok(())
}

/// EXTERNAL: the certificate says who it is, by the name that is wanted or by its first.
async fn external<S, Io>(core: &mut Core<S, Io>, wanted: &str) -> Result<(), End>
where
    S: NewsService,
    Io: AsyncRead + AsyncWrite + Unpin + Send,
{
    let Some(name) = core.door.certified(wanted).map(str::to_owned) else {
        return refuse(core, SOMEBODY_ELSE);
    };
    core.flush().await?;
    let login = Box::pin(core.door.log_in_certified(&name)).await;
    tell(core, login, "281 Logged in");
    Ok(())
}

async fn log_in<S, Io>(core: &mut Core<S, Io>, name: &str, password: &str) -> Result<(), End>
where
    S: NewsService,
    Io: AsyncRead + AsyncWrite + Unpin + Send,
{
    // What was said before must not wait for this.
    core.flush().await?;
    let login = Box::pin(core.door.log_in(name, password)).await;
    tell(core, login, "281 Logged in");
    Ok(())
}

/// Says what became of a login, and takes over what it grants.
fn tell<S, Io>(core: &mut Core<S, Io>, login: Login, success: &str)
where
    S: NewsService,
    Io: AsyncRead + AsyncWrite + Unpin + Send,
{
    match login {
        Login::In => {
            core.take_grant();
            core.reply_parts(&[success.as_bytes()]);
        }
        Login::Wrong => core.reply("481 Wrong name or password\r\n"),
        Login::Failed => core.reply(NOBODY_NOW),
        Login::Full => {
            core.reply("400 Too many connections of this user; try again later\r\n");
            core.ending = Some(End::NoService);
        }
        Login::Banned => {
            core.reply(Denied::Banned.reply());
            core.ending = Some(End::NoService);
        }
    }
}
