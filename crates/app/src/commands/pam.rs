//! `newsreel pam`: who somebody is, by PAM; asked as `login.program` is, and so in a process of its own.
//!
//! A module of PAM is somebody's code: it may wait, fork and change the process it runs in (decision 0021).  The server starts this for
//! one login, gives it a time, and ends it with all that it started.  No prompt is answered but those for a name and a password.

use std::ffi::{OsStr, OsString};
use std::io::Read as _;

use anyhow::{Context as _, Result, bail};
use nonstick::items::ItemsMut as _;
use nonstick::{
    AuthnFlags, ConversationAdapter, ErrorCode, PamShared as _, Transaction as _,
    TransactionBuilder,
};

use crate::output;

/// Nobody's name and password are longer, octets.
const ASKED_OCTETS_MAX: u64 = 4096;

#[derive(Debug, clap::Args)]
#[command(
    after_help = "It is for login.program, and asked like one: lines `ClientIP: ADDRESS`, `ClientAuthname: NAME`, `ClientPassword: PASSWORD` and \
                  a dot on the standard input. If PAM knows them it prints `user:NAME`; if not it ends with status 1; if that cannot be told it \
                  prints `error:` and why. Modules that need root are asked by root: `sudo -n newsreel pam`.\n\n\
                  Examples:\n  newsreel pam < asked\n  newsreel config explain login.program"
)]
pub(crate) struct Args {
    /// The service: its modules are in /etc/pam.d
    #[arg(long, default_value = "newsreel")]
    service: String,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let mut asked = String::new();
    std::io::stdin()
        .take(ASKED_OCTETS_MAX)
        .read_to_string(&mut asked)
        .context("what is asked cannot be read")?;
    let said = Said::read(&asked).context("a name and a password are wanted, see --help")?;
    match ask(&args.service, &said) {
        Ok(()) => output::text(&format!("user:{}\n", said.name)),
        Err(why) if is_no(why) => bail!("PAM does not let {} in: {why}", said.name),
        Err(why) => output::text(&format!("error:PAM cannot tell: {why}\n")),
    }
}

/// What a client said.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Said {
    address: Option<String>,
    name: String,
    password: String,
}

impl Said {
    fn read(asked: &str) -> Option<Self> {
        let (mut address, mut name, mut password) = (None, None, None);
        for line in asked.lines().take_while(|line| *line != ".") {
            let (key, value) = line.split_once(": ")?;
            let place = match key {
                "ClientIP" => &mut address,
                "ClientAuthname" => &mut name,
                "ClientPassword" => &mut password,
                // Others may come with time.
                _ => continue,
            };
            *place = Some(value.to_owned());
        }
        Some(Self {
            address,
            name: name?,
            password: password?,
        })
    }
}

impl ConversationAdapter for Said {
    fn prompt(&self, _: impl AsRef<OsStr>) -> nonstick::Result<OsString> {
        Ok(self.name.clone().into())
    }

    fn masked_prompt(&self, _: impl AsRef<OsStr>) -> nonstick::Result<OsString> {
        Ok(self.password.clone().into())
    }

    fn error_msg(&self, _: impl AsRef<OsStr>) {}

    fn info_msg(&self, _: impl AsRef<OsStr>) {}
}

/// Whether they are who they say, and may come in.
fn ask(service: &str, said: &Said) -> nonstick::Result<()> {
    let mut transaction = TransactionBuilder::new_with_service(service)
        .username(&said.name)
        .build(said.clone().into_conversation())?;
    if let Some(address) = &said.address {
        let mut items = transaction.items_mut();
        items.set_remote_host(Some(OsStr::new(address)))?;
    }
    transaction.authenticate(AuthnFlags::SILENT | AuthnFlags::DISALLOW_NULL_AUTHTOK)?;
    transaction.account_management(AuthnFlags::SILENT)
}

/// Whether this is PAM's word that they may not come in, and no fault.
const fn is_no(why: ErrorCode) -> bool {
    matches!(
        why,
        ErrorCode::AuthenticationError
            | ErrorCode::UserUnknown
            | ErrorCode::PermissionDenied
            | ErrorCode::MaxTries
            | ErrorCode::AccountExpired
            | ErrorCode::CredentialsExpired
            | ErrorCode::NewAuthTokRequired
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked() {
        let said = Said::read(
            "ClientIP: ::1\r\nClientHost: x\r\nClientAuthname: ada\r\nClientPassword: a: b \r\n.\r\nClientAuthname: eve\r\n",
        );
        let expected = Said {
            address: Some("::1".to_owned()),
            name: "ada".to_owned(),
            password: "a: b ".to_owned(),
        };
        assert_eq!(said, Some(expected));
        for bad in [
            "",
            "ClientAuthname: ada\n",
            "ClientAuthname: ada\nx\nClientPassword: b\n",
        ] {
            assert_eq!(Said::read(bad), None, "{bad}");
        }
    }
}
