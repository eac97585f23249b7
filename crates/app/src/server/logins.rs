//! The spool's users as those who can log in.

use std::sync::Arc;

use newsreel_net::access::{Logins, ScramKeys, User};
use newsreel_users::Users;

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

    fn check(&self, name: &str, password: &str) -> Result<Option<User>, String> {
        let found = self
            .0
            .check(name, password)
            .map_err(|error| error.to_string())?;
        Ok(found.map(user_of))
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
}

fn user_of(user: newsreel_users::User) -> User {
    User {
        name: user.name,
        groups: user.groups,
    }
}
