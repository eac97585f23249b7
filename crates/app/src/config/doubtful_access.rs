//! Doubts about who gets in from elsewhere: addresses that everybody can reach and nobody may use, users who cannot log in.

use std::net::{IpAddr, SocketAddr};

use newsreel_net::access::{AccessRule, ClearText};

use super::doubts::Doubt;
use super::{Clients, Config};

/// All of them.
pub(super) fn doubts(config: &Config) -> Vec<Doubt> {
    let Some(public) = public_address(config) else {
        return Vec::new();
    };
    let doubts = [nobody_gets_in(config, public), no_logins(config)];
    doubts.into_iter().flatten().collect()
}

/// The key that names an address to which others than this machine can connect.
fn public_address(config: &Config) -> Option<&'static str> {
    let listen = &config.listen;
    let is_public = |address: &SocketAddr| !address.ip().to_canonical().is_loopback();
    let keys = [
        ("listen.addresses", &listen.addresses),
        ("listen.tls_addresses", &listen.tls_addresses),
    ];
    let mut public = keys.iter().filter(|(_, all)| all.iter().any(is_public));
    public.next().map(|(key, _)| *key)
}

/// Whether an entry may be for somebody elsewhere.
fn is_for_others(rule: &AccessRule) -> bool {
    let is_here = |text: &String| {
        let address = text.split('/').next().unwrap_or_default();
        let address = address.parse::<IpAddr>();
        text == "local" || address.is_ok_and(|it| it.to_canonical().is_loopback())
    };
    rule.addresses.is_empty() || !rule.addresses.iter().all(is_here)
}

/// It listens for others, and lets none of them in.
fn nobody_gets_in(config: &Config, key: &str) -> Option<Doubt> {
    let lets_in = match config.access.as_slice() {
        [] => config.server.clients == Clients::All,
        rules => rules.iter().any(is_for_others),
    };
    if lets_in || config.peer.iter().any(|peer| peer.is_known()) {
        return None;
    }
    let what = "others than this machine can connect there, and all of them are refused (502): add an [[access]] entry with their addresses, or \
                without any for everybody, and another with addresses = [\"local\"] for this machine";
    Some((key.to_owned(), what.to_owned()))
}

/// Users elsewhere whose passwords are not taken.
fn no_logins(config: &Config) -> Option<Doubt> {
    let has_tls = !config.tls.certificate.as_os_str().is_empty();
    if has_tls || config.login.scram || config.login.clear_text == ClearText::Everywhere {
        return None;
    }
    let mut rules = config.access.iter();
    let at = rules.position(|rule| !rule.users.is_empty() && is_for_others(rule))?;
    let what = "users log in from this machine alone: elsewhere their passwords are refused (483), as there is no [tls] to secure them; give its \
                certificate and key, or login.scram";
    Some((format!("access[{at}].users"), what.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::super::doubts::tests::check;

    const PUBLIC: &str = "[listen]\naddresses = ['127.0.0.1:1119', '192.0.2.1:119']\n";

    #[test]
    fn an_address_for_others_of_whom_none_gets_in() {
        let said = check(PUBLIC, &[("listen.addresses", 2)]);
        assert!(said.contains("refused (502)"), "{said}");
        let entry = |addresses: &str| {
            format!("{PUBLIC}[[access]]\nname = 'a'\nread = '*'\naddresses = [{addresses}]\n")
        };
        check(
            &entry("'local', '127.0.0.0/8', '::1'"),
            &[("listen.addresses", 2)],
        );
        check(&entry("'local', '192.0.2.0/24'"), &[]);
        check(&entry(""), &[]);
        check(&format!("{PUBLIC}[server]\nclients = 'all'\n"), &[]);
        check(
            "[listen]\naddresses = ['127.0.0.1:1119', '[::1]:1119']\n",
            &[],
        );
        check(
            &format!("{PUBLIC}[[peer]]\nname = 'b'\nfeed = []\nfrom_addresses = ['192.0.2.7']\n"),
            &[],
        );
    }

    #[test]
    fn users_elsewhere_whose_passwords_are_refused() {
        let entry = |addresses: &str, login: &str| {
            format!(
                "{PUBLIC}{login}[[access]]\nname = 'a'\nusers = ['*']\nread = '*'\n{addresses}\n\
                 [[access]]\nname = 'all'\nread = 'misc.*'\n"
            )
        };
        let said = check(&entry("", ""), &[("access[0].users", 5)]);
        assert!(said.contains("refused (483)"), "{said}");
        check(&entry("addresses = ['local']", ""), &[]);
        check(&entry("", "[login]\nscram = true\n"), &[]);
        check(&entry("", "[login]\nclear_text = 'everywhere'\n"), &[]);
        let local = entry("", "").replace("192.0.2.1", "127.0.0.2");
        check(&local, &[]);
    }
}
