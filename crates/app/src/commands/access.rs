//! `newsreel access explain|bans`: what somebody may do, and why; and who is refused since their logins failed.
//!
//! What is explained are the rules of a configuration, the same as the server's; a running server is asked only whether the address is
//! refused at present.  Bans are in its memory, and nowhere else.

use std::fmt::Write as _;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use anyhow::Result;
use newsreel_feed::Hosts;
use newsreel_host::RealDisk;
use newsreel_net::access::{Grant, User, Who, is_within};
use newsreel_users::Users;
use serde_json::{Value, json};

use crate::access::{self, SpoolArgs};
use crate::config::Config;
use crate::control::client::Client;
use crate::control::request::Request;
use crate::output;
use crate::server::hosts::look_up;

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Verb {
    /// Say which entry of [[access]] fits an address, and what it grants
    #[command(
        after_help = "Ends with 0 when an entry fits, with 1 when none does.\n\nExamples:\n  \
                      newsreel access explain 192.0.2.7 --config /etc/newsreel.toml\n  \
                      newsreel access explain ::1 ada --json"
    )]
    Explain {
        /// Where the connection comes from
        address: IpAddr,
        /// Who has logged in; the groups of a user of the spool are known
        user: Option<String>,
        /// Which of the server's addresses it comes to, for entries with `listen`
        #[arg(long, value_name = "ADDRESS:PORT", value_parser = crate::typed::address)]
        listen: Option<SocketAddr>,
        /// The connection is over TLS
        #[arg(long)]
        tls: bool,
        /// A name in the certificate that the client shows, which is over TLS
        #[arg(long, value_name = "NAME")]
        certificate: Vec<String>,
        /// A group of users that the user is in, instead of those that the spool knows: for users of `login.program`; may be
        /// given several times
        #[arg(long, value_name = "GROUP", requires = "user")]
        group: Vec<String>,
        #[command(flatten)]
        spool: SpoolArgs,
    },
    /// List the networks that are refused since too many of their logins failed, or let one in again
    #[command(
        after_help = "They are let in again by themselves when login.ban_s are over, or when the server starts anew. To lift a \
                      ban forgets all failed logins of the network, of those around an address (IPv6: its /64, /56 and /48), and of \
                      those within a network.\n\nExamples:\n  newsreel access bans\n  newsreel access bans --lift 192.0.2.7 --json"
    )]
    Bans {
        /// Let this one in again: an address, or a network such as 2001:db8::/48
        #[arg(long, value_name = "ADDRESS")]
        lift: Option<String>,
        #[command(flatten)]
        spool: SpoolArgs,
    },
}

const BANS: &[(&str, &str)] = &[
    ("NETWORK", "network"),
    ("FAILURES", "failures"),
    ("SECONDS LEFT", "left_s"),
];

pub(crate) fn run(verb: &Verb) -> Result<()> {
    let (who, config, spool) = match verb {
        Verb::Bans { lift, spool } => return bans(lift.clone(), spool),
        Verb::Explain {
            address,
            user,
            listen,
            tls,
            certificate,
            group,
            spool,
        } => {
            let config = access::config_of(spool)?;
            let user = user.as_ref().map(|name| known(&config, name, group));
            let who = Who {
                address: *address,
                listen: *listen,
                is_tls: *tls || !certificate.is_empty(),
                certificate: certificate.clone(),
                user: user.transpose()?,
            };
            (who, config, spool)
        }
    };
    explain(&who, &config, spool)
}

/// Who is refused since too many of their logins failed.
fn bans(lift: Option<String>, spool: &SpoolArgs) -> Result<()> {
    let answer = access::change(spool, Request::AccessBans { lift: lift.clone() })?;
    if let (Some(network), Some(false)) = (&lift, answer["lifted"].as_bool()) {
        anyhow::bail!("no login of {network} has failed lately: nothing is to be lifted");
    }
    if spool.json {
        return output::json(&answer);
    }
    let rows = answer["bans"].as_array().map_or(&[][..], Vec::as_slice);
    let mut said = String::new();
    if let Some(network) = lift {
        let _ = writeln!(said, "{network}: failed logins are forgotten");
    }
    match rows.is_empty() {
        true => said.push_str("nobody is refused\n"),
        false => said.push_str(&output::table(BANS, rows)),
    }
    output::text(&said)
}

fn explain(who: &Who, config: &Config, spool: &SpoolArgs) -> Result<()> {
    let hosts = look_up(Hosts::names(&config.peer));
    let (rules, address) = (config.access_rules(&hosts), &who.address);
    let passed = rules.explain(who);
    let passed: Vec<_> = passed
        .iter()
        .filter_map(|(name, why)| Some((*name, (*why)?)))
        .collect();
    let grant = rules.find(who);
    let ban = ban_of(who.address, config);
    if spool.json {
        let passed: Vec<Value> = passed
            .iter()
            .map(|(rule, why)| json!({"rule": rule, "why": why}))
            .collect();
        output::json(
            &json!({"address": address, "rule": grant.map(|it| &it.name),
            "grants": grant.map(|it| granted(it)), "passed_over": passed, "ban": ban}),
        )?;
    } else {
        let mut said = text(address, grant.map(AsRef::as_ref), &passed);
        if let Some(ban) = ban {
            let failed = output::count(ban["failures"].as_u64().unwrap_or_default(), "login");
            let (network, left_s) = (output::cell(&ban["network"]), &ban["left_s"]);
            let address = address.to_canonical();
            let _ = writeln!(
                said,
                "{address} is refused at present: {failed} of {network} failed, and it stays so for {left_s} s; \
                 `newsreel access bans --lift {address}` lets it in"
            );
        }
        output::text(&said)?;
    }
    match grant {
        Some(_) => Ok(()),
        None if rules.login_helps(who, |_| true) && who.user.is_none() => {
            anyhow::bail!(
                "no access rule is for {address} before a login: it is let in to log in, and `newsreel access explain {address} USER` \
                 says what that gives it"
            )
        }
        None if rules.tls_helps(who, |_| true)
            && !config.tls.certificate.as_os_str().is_empty() =>
        {
            anyhow::bail!("no access rule is for {address} without TLS")
        }
        None => anyhow::bail!("no access rule is for {address}: it is refused"),
    }
}

/// The ban that an address is under, as a running server tells it.
fn ban_of(address: IpAddr, config: &Config) -> Option<Value> {
    let mut client = Client::connect(&config.server.spool).ok()??;
    let asked = client.ask(&Request::AccessBans { lift: None }, &mut |_| {});
    let answer = asked.ok()?;
    let mut bans = answer["bans"].as_array()?.iter();
    let is_its = |ban: &&Value| is_within(address, ban["network"].as_str().unwrap_or_default());
    bans.find(is_its).cloned()
}

/// A user of the spool, with its groups; or one of the program's, with those that are said.
fn known(config: &Config, name: &str, groups: &[String]) -> Result<User> {
    let has_program = !config.login.program.is_empty();
    if has_program && !groups.is_empty() {
        return Ok(User {
            name: name.to_owned(),
            groups: groups.to_vec(),
        });
    }
    if !groups.is_empty() {
        anyhow::bail!(
            "--group is for users of login.program, and there is none: `newsreel user groups` changes those of the spool's"
        );
    }
    let users = Users::new(
        Arc::new(RealDisk),
        config.server.spool.join(newsreel_users::FILE),
    );
    let groups = match users.find(name)? {
        Some(user) => user.groups,
        // Which names it knows, only a password tells.
        None if has_program => Vec::new(),
        None => anyhow::bail!("there is no user {name}; `newsreel user list` shows who there is"),
    };
    Ok(User {
        name: name.to_owned(),
        groups,
    })
}

/// What a rule grants.
fn granted(grant: &Grant) -> Value {
    let groups = |groups: &Option<newsreel_wire::Wildmat>| match groups {
        Some(groups) => json!(groups.as_str()),
        None => Value::Null,
    };
    json!({
        "read": groups(&grant.read),
        "post": groups(&grant.post),
        "approve": grant.approve,
        "feed": grant.feed,
        "newnews": grant.newnews,
        "list": grant.list,
        "list_not": grant.list_not,
        "octets_per_s_max": grant.octets_per_s_max,
        "commands_per_s_max": grant.commands_per_s_max,
        "octets_per_s_per_address_max": grant.octets_per_s_per_address_max,
        "commands_per_s_per_address_max": grant.commands_per_s_per_address_max,
        "octets_per_s_per_user_max": grant.octets_per_s_per_user_max,
        "commands_per_s_per_user_max": grant.commands_per_s_per_user_max,
        "connections_max": grant.connections_max,
        "connections_per_address_max": grant.connections_per_address_max,
        "connections_per_user_max": grant.connections_per_user_max,
    })
}

fn text(address: &IpAddr, grant: Option<&Grant>, passed: &[(&str, &str)]) -> String {
    let mut out = String::new();
    for (rule, why) in passed {
        let _ = writeln!(out, "not {rule:?}: it {why}");
    }
    let Some(grant) = grant else { return out };
    let _ = writeln!(out, "{address} has what {:?} grants:", grant.name);
    for (key, value) in granted(grant).as_object().into_iter().flatten() {
        let value = match value {
            Value::Null => "no groups".to_owned(),
            Value::Bool(true) => "yes".to_owned(),
            Value::Bool(false) => "no".to_owned(),
            Value::Number(most) if most.as_u64() == Some(0) => "any number".to_owned(),
            Value::String(text) => text.clone(),
            Value::Array(words) if words.is_empty() => "none".to_owned(),
            Value::Array(words) => {
                let words: Vec<_> = words.iter().filter_map(Value::as_str).collect();
                words.join(", ")
            }
            other => other.to_string(),
        };
        let _ = writeln!(out, "  {key:28} {value}");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_read_what_is_granted_and_why() {
        let grant = Grant {
            post: None,
            commands_per_s_max: 5,
            ..Grant::everything("inside")
        };
        let address = "192.0.2.7".parse().unwrap();
        let said = text(
            &address,
            Some(&grant),
            &[("peer", "is for other addresses")],
        );
        let lines: Vec<&str> = said.lines().collect();
        assert_eq!(lines[0], "not \"peer\": it is for other addresses");
        assert_eq!(lines[1], "192.0.2.7 has what \"inside\" grants:");
        for line in [
            "  read                         *",
            "  post                         no groups",
            "  feed                         yes",
            "  commands_per_s_max           5",
            "  connections_max              any number",
        ] {
            assert!(lines.contains(&line), "{line}: {said}");
        }
        assert!(text(&address, None, &[]).is_empty());
    }
}
