//! Coming in: the rules in force, what is counted beside them, and one connection's way through both.
//!
//! A connection has the grant of the entry that fits it; a login looks again.  Who may do nothing yet, but could by logging
//! in, is let in with nothing.  A password is held against its hash on a thread of its own kind, never on a session's.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::{Instant, sleep_until};

use super::checks::{Check, Checks};
use super::counted::Counted;
use super::failures::{Ban, answered_after};
use super::login::{ClearText, Credentials, LoginConfig, Logins, ScramKeys, User, is_user_name};
use super::network::net_of;
use super::pace::Pace;
use super::places::Place;
use super::rules::{Grant, Rules, Who};
use super::turns::{TURN_WAIT_MAX, Turn};
use crate::tls::Tls;

/// The rules in force.
#[derive(Debug)]
pub struct Gate {
    rules: Rules,
    login: LoginConfig,
    counted: Arc<Counted>,
    tls: Option<Arc<Tls>>,
}

/// Why somebody is not let in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Denied {
    /// No entry is for them.
    NoRule,
    /// Their entry has as many connections as it may.
    Full,
    /// They failed to log in too often.
    Banned,
}

impl Denied {
    /// The line the peer gets.
    #[must_use]
    pub const fn reply(self) -> &'static str {
        match self {
            Self::NoRule => "502 Access denied\r\n",
            Self::Full => "400 Too many connections, try again later\r\n",
            Self::Banned => "400 Too many failed logins, try again later\r\n",
        }
    }

    /// For the log.
    #[must_use]
    pub const fn why(self) -> &'static str {
        match self {
            Self::NoRule => "no access rule is for it",
            Self::Full => "its access rule has as many connections as it may",
            Self::Banned => "too many failed logins",
        }
    }
}

/// What became of a login.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Login {
    /// They are who they say, and have what their entry grants.
    In,
    /// Name or password is wrong, or they may not log in.
    Wrong,
    /// Their entry has as many connections as it may.
    Full,
    /// Too many logins of their network failed: this one was not judged.
    Banned,
    /// It cannot be said now; it was logged.
    Failed,
}

/// One connection that was let in.
#[derive(Debug)]
pub struct Door {
    gate: Arc<Gate>,
    who: Who,
    grant: Arc<Grant>,
    place: Option<Place>,
    /// The name whose keys of SCRAM were asked for, and the keys, if nothing was proved with them yet.
    challenge: Option<Box<(String, ScramKeys)>>,
}

/// A login whose turn it is: until this is dropped no other of a network that has failed is judged.
struct Attempt {
    name: String,
    /// The password, where one was said.
    password: Option<String>,
    /// Whether it was the name's when it logged in last.
    is_known: bool,
    _turn: Turn,
    /// When its judging began.
    began: Option<Instant>,
    /// It is not answered sooner, if it fails.
    least: Duration,
}

impl Gate {
    /// The certificate that it has, and its key.
    #[must_use]
    pub fn tls(&self) -> Option<Arc<Tls>> {
        self.tls.clone()
    }

    /// Rules, what is counted beside them, and what connections are secured with.
    #[must_use]
    pub fn new(
        rules: Rules,
        login: LoginConfig,
        counted: Arc<Counted>,
        tls: Option<Arc<Tls>>,
    ) -> Arc<Self> {
        Arc::new(Self {
            rules,
            login,
            counted,
            tls,
        })
    }

    /// Lets somebody in, or says why not.
    ///
    /// # Errors
    /// Why not.
    pub fn enter(self: &Arc<Self>, who: Who) -> Result<Door, Denied> {
        if self.counted.failures.are_too_many(who.address, &self.login) {
            return Err(Denied::Banned);
        }
        let (grant, place) = match self.rules.find(&who) {
            // Its certificate comes with the handshake: what it is for is found then.
            _ if who.is_tls && self.rules.certificate_helps(&who) => {
                (Arc::new(Grant::nothing()), None)
            }
            Some(grant) => {
                let place = self.counted.places.take(grant, who.address, None);
                (Arc::clone(grant), Some(place.ok_or(Denied::Full)?))
            }
            None if self.can_log_in(&who, |_| true) || self.can_secure(&who, |_| true) => {
                (Arc::new(Grant::nothing()), None)
            }
            None => return Err(Denied::NoRule),
        };
        Ok(Door {
            gate: Arc::clone(self),
            who,
            grant,
            place,
            challenge: None,
        })
    }

    /// Networks that are refused since their logins failed.
    #[must_use]
    pub fn bans(&self) -> Vec<Ban> {
        self.counted.failures.bans(&self.login)
    }

    /// Forgets which logins of an address or network have failed; says whether any had.
    ///
    /// # Errors
    /// When it is neither.
    pub fn lift(&self, network: &str) -> Result<bool, String> {
        let network = net_of(network).ok_or_else(|| {
            format!("{network:?} is no address and no network, as in 192.0.2.1 or 2001:db8::/48")
        })?;
        Ok(self.counted.failures.lift(network.trunc()))
    }

    fn can_log_in(&self, who: &Who, wants: impl Fn(&Grant) -> bool) -> bool {
        self.counted.logins.is_some() && self.rules.login_helps(who, wants)
    }

    fn can_secure(&self, who: &Who, wants: impl Fn(&Grant) -> bool) -> bool {
        self.tls.is_some() && self.rules.tls_helps(who, wants)
    }
}

impl Door {
    /// A door that nobody watches: everything may be done, by whoever it is.
    #[must_use]
    pub fn open(grant: Grant, address: IpAddr) -> Self {
        Self {
            gate: Gate::new(
                Rules::default(),
                LoginConfig::default(),
                Counted::new(None),
                None,
            ),
            who: Who {
                address,
                listen: None,
                is_tls: false,
                certificate: Vec::new(),
                user: None,
            },
            grant: Arc::new(grant),
            place: None,
            challenge: None,
        }
    }

    /// What may be done.
    #[must_use]
    pub const fn grant(&self) -> &Arc<Grant> {
        &self.grant
    }

    /// The name of who has logged in.
    #[must_use]
    pub fn user(&self) -> Option<&str> {
        Some(self.who.user.as_ref()?.name.as_str())
    }

    /// How fast octets may be sent and come: anew after each change of what may be done.
    #[must_use]
    pub fn octets(&self) -> Pace {
        let own = || Pace::new(self.grant.octets_per_s_max);
        self.place.as_ref().map_or_else(own, Place::octets)
    }

    /// How fast commands are taken.
    #[must_use]
    pub fn commands(&self) -> Pace {
        let own = || Pace::new(self.grant.commands_per_s_max.into());
        self.place.as_ref().map_or_else(own, Place::commands)
    }

    /// How fast articles of others are taken, with all that come by the same entry; none: any number.
    #[must_use]
    pub fn articles(&self) -> Option<Pace> {
        let own = || Pace::new(self.grant.articles_per_s_of_all_max.into());
        let pace = self.place.as_ref().map_or_else(own, Place::articles);
        pace.at_once_max().map(|_| pace)
    }

    /// Whether logging in could let be done what is wanted.
    #[must_use]
    pub fn login_helps(&self, wants: impl Fn(&Grant) -> bool) -> bool {
        self.who.user.is_none() && self.gate.can_log_in(&self.who, wants)
    }

    /// Whether a login is taken: also of who can do no more by it, where there are users.  Programs that have a name and a
    /// password log in everywhere, and take a refusal for a wrong password.
    #[must_use]
    pub fn may_log_in(&self) -> bool {
        let are_any = || {
            let logins = self.gate.counted.logins.as_ref();
            let has_program = !self.gate.login.program.is_empty();
            self.place.is_some() && logins.is_some_and(|it| has_program || it.may_be_any())
        };
        let are_named =
            || self.gate.counted.logins.is_some() && self.gate.rules.knows_users(&self.who);
        self.who.user.is_none() && (are_named() || are_any())
    }

    /// What the connection is or can be secured with; none: it cannot.
    #[must_use]
    pub fn tls(&self) -> Option<&Arc<Tls>> {
        self.gate.tls.as_ref()
    }

    /// Whether TLS may begin now: not twice, and not for who has logged in (RFC 4642 section 2.2.2).
    #[must_use]
    pub fn may_start_tls(&self) -> bool {
        self.gate.tls.is_some() && !self.who.is_tls && self.who.user.is_none()
    }

    /// Whether what is wanted could be done over TLS.
    #[must_use]
    pub fn tls_helps(&self, wants: impl Fn(&Grant) -> bool) -> bool {
        self.may_start_tls() && self.gate.can_secure(&self.who, wants)
    }

    /// From here on the connection is over TLS, and the other side has shown a certificate with these names, or none.
    ///
    /// # Errors
    /// When the entry that is for it now has as many connections as it may, or there is none.
    pub fn secured(&mut self, certificate: Vec<String>) -> Result<(), Denied> {
        self.pass(Who {
            is_tls: true,
            certificate,
            ..self.who.clone()
        })?;
        match self.place.is_some() || self.gate.can_log_in(&self.who, |_| true) {
            true => Ok(()),
            false => Err(Denied::NoRule),
        }
    }

    /// Who the certificate says that they are: by the name they ask for, or by its first that can be a user's.
    #[must_use]
    pub fn certified(&self, wanted: &str) -> Option<&str> {
        let names = self.who.certificate.iter().map(String::as_str);
        let mut names = names.filter(|name| is_user_name(name));
        names.find(|name| wanted.is_empty() || *name == wanted)
    }

    /// Lets in whom the certificate says that they are.
    pub async fn log_in_certified(&mut self, name: &str) -> Login {
        let Some(mut attempt) = self.attempt(name).await else {
            return Login::Banned;
        };
        let (name, lookups) = (name.to_owned(), &self.gate.counted.lookups);
        let asked = self.ask(lookups, &mut attempt, move |logins| logins.vouched(&name));
        match asked.await {
            Ok(user) => self.judged(attempt, user).await,
            Err(login) => login,
        }
    }

    /// Whether a password may come as it is: nobody can listen in, or that is allowed.
    #[must_use]
    pub fn takes_clear_text(&self) -> bool {
        match self.gate.login.clear_text {
            _ if self.who.is_tls => true,
            ClearText::Loopback => self.who.address.to_canonical().is_loopback(),
            ClearText::Everywhere => true,
            ClearText::Nowhere => false,
        }
    }

    /// Whether SCRAM-SHA-256 is spoken.
    #[must_use]
    pub fn takes_scram(&self) -> bool {
        self.gate.login.scram
    }

    /// Holds a name and a password against the users.  A wrong one is answered late.
    pub async fn log_in(&mut self, name: &str, password: &str) -> Login {
        let Some(mut attempt) = self.attempt(name).await else {
            return Login::Banned;
        };
        let said = Credentials {
            name: name.to_owned(),
            password: password.to_owned(),
            address: self.who.address,
        };
        attempt.is_known = self.gate.counted.known.has_password(name, password);
        attempt.password = Some(said.password.clone());
        match self.check(&mut attempt, said).await {
            Ok(user) => self.judged(attempt, user).await,
            Err(login) => login,
        }
    }

    /// Who it is by the users that are here, or by the program, where there is one.
    async fn check(&self, attempt: &mut Attempt, said: Credentials) -> Result<Option<User>, Login> {
        let Gate { counted, login, .. } = self.gate.as_ref();
        let said = Arc::new(said);
        let of_here = Arc::clone(&said);
        let here = self.ask(&counted.checks, attempt, move |it| it.check(&of_here));
        match here.await? {
            None if !login.program.is_empty() => self.ask_program(attempt, said).await,
            found => Ok(found),
        }
    }

    /// Who it is by the program.  A place among the programs is given back when a failed login is answered, and no sooner: how long others
    /// wait for one does not tell how long a program takes for a name, nor is it free for who hangs up.
    async fn ask_program(
        &self,
        attempt: &mut Attempt,
        said: Arc<Credentials>,
    ) -> Result<Option<User>, Login> {
        let (logins, check) = self.turn(&self.gate.counted.programs, attempt).await?;
        let (gate, began) = (Arc::clone(&self.gate), Instant::now());
        attempt.began = Some(began);
        let least = gate.counted.least(&gate.login);
        let (tell, told) = oneshot::channel();
        let asking = async move {
            let (asked, whom) = (Arc::clone(&gate), Arc::clone(&said));
            let ask = move || logins.ask_program(&asked.login, &whom);
            let found = tokio::task::spawn_blocking(ask).await;
            let found = found.unwrap_or_else(|error| Err(error.to_string()));
            let Gate { counted, login, .. } = gate.as_ref();
            let is_right = matches!(found, Ok(Some(_)));
            if found.is_ok() {
                let took = began.elapsed();
                counted.note_answer(login, &said, (took, is_right));
            }
            // What others learned of it meanwhile shortens nothing that was begun before.
            let least = least.max(counted.least(login));
            let _ = tell.send((found, least));
            if !is_right {
                sleep_until(began + least).await;
            }
            drop(check);
        };
        #[expect(
            clippy::disallowed_methods,
            reason = "as many as programs are asked at once, each for a program's time; they hold nothing but their place"
        )]
        tokio::spawn(asking);
        let (found, least) = told.await.map_err(|_| Login::Failed)?;
        attempt.least = least;
        self.said(found)
    }

    /// What a proof of this name is held against, and who has it.  If nothing is proved with it, that is a failed login.
    ///
    /// # Errors
    /// What became of the login.
    pub async fn scram(&mut self, name: &str) -> Result<(ScramKeys, Option<User>), Login> {
        let mut attempt = self.attempt(name).await.ok_or(Login::Banned)?;
        let (asked, lookups) = (name.to_owned(), &self.gate.counted.lookups);
        let asked = self.ask(lookups, &mut attempt, move |logins| logins.scram(&asked));
        let found = asked.await;
        let keys = found.as_ref().ok().map(|(keys, _)| keys.clone());
        self.challenge = keys.map(|keys| Box::new((name.to_owned(), keys)));
        found
    }

    /// Lets in who has proved with keys of SCRAM to be a user; nobody has: that is answered late.
    pub async fn prove(&mut self, user: Option<User>) -> Login {
        let challenge = self.challenge.take();
        let name = challenge.as_deref().map_or("", |(name, _)| name.as_str());
        let Some(mut attempt) = self.attempt(name).await else {
            return Login::Banned;
        };
        let Some(user) = user else {
            return self.judged(attempt, None).await;
        };
        // Who was removed or locked meanwhile, or has another password, has proved nothing any more.
        let is_the_same = |keys: &ScramKeys| challenge.as_deref().is_some_and(|it| it.1 == *keys);
        let (name, lookups) = (user.name, &self.gate.counted.lookups);
        let asked = self.ask(lookups, &mut attempt, move |logins| logins.scram(&name));
        match asked.await {
            Ok((keys, user)) => {
                let user = user.filter(|_| is_the_same(&keys));
                self.judged(attempt, user).await
            }
            Err(login) => login,
        }
    }

    /// Waits until a login of this network may be judged; none: too many have failed, also while it waited.
    async fn attempt(&self, name: &str) -> Option<Attempt> {
        let (address, login) = (self.who.address, &self.gate.login);
        let counted = &self.gate.counted;
        if counted.failures.are_too_many(address, login) {
            return None;
        }
        // Without bans users of one network, as behind a gateway, do not wait for each other.
        let of_one = (login.failures_max == 0).then_some(name);
        let mut turn = counted.turns.stand(address, of_one);
        let taken = tokio::time::timeout(TURN_WAIT_MAX, async {
            let mut shares = 0;
            // While it waited one may have failed: then it goes alone.
            while shares < counted.failures.shares(address, name, login) {
                shares = counted.failures.shares(address, name, login);
                turn.take(shares).await;
            }
        });
        let is_taken = taken.await.is_ok();
        let may_try = is_taken && !counted.failures.are_too_many(address, login);
        may_try.then(|| Attempt {
            name: name.to_owned(),
            password: None,
            is_known: false,
            _turn: turn,
            began: None,
            least: Duration::ZERO,
        })
    }

    /// The users, and a place among the few that they are asked for at the same time.
    async fn turn(
        &self,
        few: &Checks,
        attempt: &Attempt,
    ) -> Result<(Arc<dyn Logins>, Check), Login> {
        let (address, counted) = (self.who.address, &self.gate.counted);
        let Some(logins) = counted.logins.clone().filter(|_| self.may_log_in()) else {
            return self.said(Err("there are no users".to_owned()));
        };
        let (gate, is_known) = (Arc::clone(&self.gate), attempt.is_known);
        let rank = move || gate.counted.rank(address, &gate.login, is_known);
        let taken = few.take(address, &attempt.name, rank);
        let check = tokio::time::timeout(TURN_WAIT_MAX, taken).await;
        let Some(check) = check.ok().flatten() else {
            if let Some(more) = counted.lines.late.admit() {
                tracing::warn!(target: "newsreel::net", %address, more,
                    "a login was not judged: more wait than can be judged in time");
            }
            return Err(Login::Failed);
        };
        match counted.failures.are_too_many(address, &self.gate.login) {
            true => Err(Login::Banned),
            false => Ok((logins, check)),
        }
    }

    /// Asks the users on a thread that may wait, when that is one of the few that are asked at the same time.
    async fn ask<T: Send + 'static>(
        &self,
        few: &Checks,
        attempt: &mut Attempt,
        what: impl FnOnce(&dyn Logins) -> Result<T, String> + Send + 'static,
    ) -> Result<T, Login> {
        let (logins, check) = self.turn(few, attempt).await?;
        attempt.began = Some(Instant::now());
        let asked = tokio::task::spawn_blocking(move || {
            let said = what(logins.as_ref());
            drop(check);
            said
        });
        let asked = asked.await;
        self.said(asked.unwrap_or_else(|error| Err(error.to_string())))
    }

    /// What the users said; why they cannot say anything is in the log.
    fn said<T>(&self, asked: Result<T, String>) -> Result<T, Login> {
        asked.map_err(|error| {
            if let Some(more) = self.gate.counted.lines.unsaid.admit() {
                tracing::error!(target: "newsreel::net", %error, more, "nobody can log in");
            }
            Login::Failed
        })
    }

    /// Lets in whom a login was found to be of; nobody: that is answered late.
    async fn judged(&mut self, attempt: Attempt, user: Option<User>) -> Login {
        let address = self.who.address;
        let Gate { counted, login, .. } = self.gate.as_ref();
        let Some(user) = user else {
            let pause = counted.failures.note(address, &attempt.name, login);
            if let Some(more) = counted.lines.failed.admit() {
                tracing::info!(target: "newsreel::net", %address, more, "a login failed");
            }
            let began = attempt.began.unwrap_or_else(Instant::now);
            let after = answered_after(pause, attempt.least, began.elapsed());
            sleep_until(began + after).await;
            return Login::Wrong;
        };
        if counted.failures.are_too_many(address, login) {
            return Login::Banned;
        }
        counted.known.note(address, &user.name);
        if let Some(password) = &attempt.password {
            counted.known.note_password(&attempt.name, password);
        }
        if counted.known.is_due() {
            let counted = Arc::clone(counted);
            tokio::task::spawn_blocking(move || counted.remember());
        }
        tracing::info!(target: "newsreel::net", %address, user = %user.name, "logged in");
        let who = Who {
            user: Some(user),
            ..self.who.clone()
        };
        match self.pass(who) {
            Ok(()) => Login::In,
            Err(_) => Login::Full,
        }
    }

    /// Becomes somebody else, with what they may do.
    fn pass(&mut self, who: Who) -> Result<(), Denied> {
        let (grant, place) = match self.gate.rules.find(&who) {
            Some(grant) if grant.name == self.grant.name && self.place.is_some() => {
                if let (Some(place), Some(user)) = (&mut self.place, &who.user)
                    && !place.count_user(&user.name)
                {
                    return Err(Denied::Full);
                }
                (Arc::clone(grant), self.place.take())
            }
            Some(grant) => {
                let user = who.user.as_ref().map(|user| user.name.as_str());
                let place = self.gate.counted.places.take(grant, who.address, user);
                (Arc::clone(grant), Some(place.ok_or(Denied::Full)?))
            }
            None => (Arc::new(Grant::nothing()), None),
        };
        self.who = who;
        self.grant = grant;
        self.place = place;
        Ok(())
    }
}

impl Drop for Door {
    /// Who asks for keys and goes has failed: else it would cost nothing to ask.
    fn drop(&mut self) {
        if let Some((name, _)) = self.challenge.as_deref() {
            let Gate { counted, login, .. } = self.gate.as_ref();
            counted.failures.note(self.who.address, name, login);
        }
    }
}

#[cfg(test)]
mod tests;
