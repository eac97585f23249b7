//! The spool's users as those who can log in, and whom a program knows besides.

use std::sync::Arc;

use newsreel_host::process::stand_back;
use newsreel_net::access::{Credentials, LoginConfig, Logins, ScramKeys, User};
use newsreel_users::Users;

use super::login_program;

/// The built-in store, for sessions.
#[derive(Debug)]
pub(super) struct Builtin(Users);

impl Builtin {
    pub(super) fn shared(users: Users) -> Arc<dyn Logins> {
        Arc::new(Self(users))
    }
}

impl Logins for Builtin {
    fn may_be_any(&self) -> bool {
        self.0.may_be_any()
    }

    fn check(&self, said: &Credentials) -> Result<Option<User>, String> {
        // Whoever guesses keeps this busy all the time, and readers are not to wait for it.
        let found = stand_back(|| self.0.check(&said.name, &said.password));
        let found = found.map_err(|error| error.to_string())?;
        Ok(found.map_err(|error| error.to_string())?.map(user_of))
    }

    fn ask_program(&self, login: &LoginConfig, said: &Credentials) -> Result<Option<User>, String> {
        // Of a name that is here the program's word does not count, but it is asked all the same: how long an answer takes
        // must not tell which names are here.
        let found = login_program::ask(login, said)?;
        let is_new = |name: &str| match self.0.find(name) {
            Ok(here) => Ok(here.is_none()),
            Err(error) => Err(error.to_string()),
        };
        let is_said_new = is_new(&said.name)?;
        match found {
            Some(user) if is_said_new && is_new(&user.name)? => Ok(Some(user)),
            _ => Ok(None),
        }
    }

    fn scram(&self, name: &str) -> Result<(ScramKeys, Option<User>), String> {
        let (keys, user) = self.0.scram(name).map_err(|error| error.to_string())?;
        let keys = ScramKeys {
            salt: keys.salt.to_vec(),
            iterations: keys.iterations,
            stored: keys.stored,
            server: keys.server,
        };
        Ok((keys, user.map(user_of)))
    }

    fn vouched(&self, name: &str) -> Result<Option<User>, String> {
        match self.0.find(name).map_err(|error| error.to_string())? {
            Some(user) if user.is_locked => Ok(None),
            Some(user) => Ok(Some(user_of(user))),
            None => Ok(newsreel_users::is_name(name).then(|| User {
                name: name.to_owned(),
                groups: Vec::new(),
            })),
        }
    }
}

fn user_of(user: newsreel_users::User) -> User {
    User {
        name: user.name,
        groups: user.groups,
    }
}
