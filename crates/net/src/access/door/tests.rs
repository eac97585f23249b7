//! Doors: who is let in, who logs in, and who is banned.

use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use super::super::AccessConfig;
use super::super::checks::{PROGRAMS_AT_ONCE, PROGRAMS_KEPT, checks_at_once};
use super::*;

/// Everybody's password is their name twice; nobody else is there.
#[derive(Debug)]
struct Names(&'static [&'static str]);

impl Logins for Names {
    fn may_be_any(&self) -> bool {
        !self.0.is_empty()
    }

    fn ask_program(&self, _: &LoginConfig, _: &Credentials) -> Result<Option<User>, String> {
        Ok(None)
    }

    fn check(&self, said: &Credentials) -> Result<Option<User>, String> {
        let name = said.name.as_str();
        if name == "broken" {
            return Err("the disk failed".to_owned());
        }
        let is_right = self.0.contains(&name) && said.password == name.repeat(2);
        Ok(is_right.then(|| user(name)))
    }

    fn scram(&self, name: &str) -> Result<(ScramKeys, Option<User>), String> {
        if name == "broken" {
            return Err("the disk failed".to_owned());
        }
        let keys = ScramKeys {
            salt: vec![7; 16],
            iterations: 4096,
            stored: [0; 32],
            server: [0; 32],
        };
        let is_here = self.0.contains(&name);
        Ok((keys, is_here.then(|| user(name))))
    }

    fn vouched(&self, name: &str) -> Result<Option<User>, String> {
        Ok((name != "eve").then(|| user(name)))
    }
}

fn user(name: &str) -> User {
    let groups = match name {
        "ada" => vec!["staff".to_owned()],
        _ => Vec::new(),
    };
    User {
        name: name.to_owned(),
        groups,
    }
}

fn gate(text: &str) -> Arc<Gate> {
    secured_by(text, None)
}

fn secured_by(text: &str, tls: Option<Arc<Tls>>) -> Arc<Gate> {
    let config: AccessConfig = toml::from_str(text).unwrap();
    let rules = Rules::parse(&config.access).unwrap();
    let logins = Names(&["ada", "bob", "eve"]);
    Gate::new(
        rules,
        LoginConfig::default(),
        Counted::new(Some(Arc::new(logins))),
        tls,
    )
}

fn who(address: &str) -> Who {
    Who {
        address: address.parse().unwrap(),
        listen: None,
        is_tls: false,
        certificate: Vec::new(),
        user: None,
    }
}

const RULES: &str = "[[access]]\nname = 'staff'\nusers = ['@staff', 'bob']\nread = '*'\nconnections_max = 1\n\
     [[access]]\nname = 'users'\naddresses = ['192.0.2.0/24']\nusers = ['*']\nread = 'misc.*'\n\
     [[access]]\nname = 'local'\naddresses = ['local']\nread = 'local.*'\n";

#[tokio::test(start_paused = true)]
async fn a_login_looks_again() {
    let gate = gate(RULES);
    let mut door = gate.enter(who("192.0.2.1")).unwrap();
    assert_eq!(**door.grant(), Grant::nothing());
    assert!(door.may_log_in() && !door.takes_clear_text());
    assert_eq!(door.log_in("ada", "ada").await, Login::Wrong);
    assert_eq!(door.log_in("mallory", "mallorymallory").await, Login::Wrong);
    assert_eq!(door.log_in("broken", "x").await, Login::Failed);
    assert_eq!(door.log_in("ada", "adaada").await, Login::In);
    assert_eq!(
        (door.grant().name.as_str(), door.user()),
        ("staff", Some("ada"))
    );
    assert!(!door.may_log_in() && !door.login_helps(|_| true));
    // One connection of staff at a time; what was before stays.
    let mut other = gate.enter(who("127.0.0.1")).unwrap();
    assert_eq!(other.grant().name, "local");
    assert!(other.may_log_in() && other.takes_clear_text());
    assert_eq!(other.log_in("bob", "bobbob").await, Login::Full);
    assert_eq!((other.grant().name.as_str(), other.user()), ("local", None));
    drop(door);
    assert_eq!(other.log_in("bob", "bobbob").await, Login::In);
    assert_eq!(other.grant().name, "staff");
    // Who logs in may have less than before, or what everybody has.
    let mut plain = gate.enter(who("192.0.2.2")).unwrap();
    assert_eq!(plain.log_in("eve", "eveeve").await, Login::In);
    assert_eq!(plain.grant().name, "users");
}

/// A program with a name and a password logs in wherever it is, and takes a refusal for a wrong password.
#[tokio::test(start_paused = true)]
async fn who_may_do_everything_can_log_in_where_there_are_users() {
    const RULES: &str = "[[access]]\nname = 'all'\nread = '*'\npost = '*'\n";
    let gate = gate(RULES);
    let mut door = gate.enter(who("127.0.0.1")).unwrap();
    assert!(door.may_log_in() && !door.login_helps(|_| true));
    assert_eq!(door.log_in("ada", "ada").await, Login::Wrong);
    assert_eq!(door.log_in("ada", "adaada").await, Login::In);
    assert_eq!(
        (door.grant().name.as_str(), door.user()),
        ("all", Some("ada"))
    );
    assert!(!door.may_log_in());
    let config: AccessConfig = toml::from_str(RULES).unwrap();
    let rules = Rules::parse(&config.access).unwrap();
    let none = Counted::new(Some(Arc::new(Names(&[]))));
    let gate = Gate::new(rules, LoginConfig::default(), none, None);
    assert!(!gate.enter(who("127.0.0.1")).unwrap().may_log_in());
}

#[tokio::test(start_paused = true)]
async fn who_fails_too_often_is_not_let_in() {
    let gate = gate(RULES);
    for _ in 0..10 {
        let mut door = gate.enter(who("192.0.2.1")).unwrap();
        assert_eq!(door.log_in("ada", "x").await, Login::Wrong);
    }
    assert_eq!(gate.enter(who("192.0.2.1")).unwrap_err(), Denied::Banned);
    assert!(gate.enter(who("192.0.2.2")).is_ok());
}

/// Connections that were open before a ban held passwords against the users as fast as there were connections, and let in
/// who guessed right.
#[tokio::test(start_paused = true)]
async fn a_ban_holds_for_who_is_in_already() {
    let gate = gate(RULES);
    let mut open = gate.enter(who("192.0.2.1")).unwrap();
    let mut elsewhere = gate.enter(who("192.0.2.2")).unwrap();
    let began = Instant::now();
    let mut guesses = tokio::task::JoinSet::new();
    for _ in 0..40 {
        let mut door = gate.enter(who("192.0.2.1")).unwrap();
        guesses.spawn(async move {
            let mut judged = Vec::new();
            while door.log_in("ada", "guess").await == Login::Wrong {
                judged.push(Instant::now());
            }
            judged
        });
    }
    let mut judged = guesses.join_all().await.concat();
    judged.sort();
    // The first few go together, from there on each waits for the pause of the one before, and nobody too long.
    assert!((5..=10).contains(&judged.len()), "{judged:?}");
    assert!((judged[3] - began).as_secs() >= 8);
    for pair in judged[4..].windows(2) {
        assert_eq!((pair[1] - pair[0]).as_secs(), 16);
    }
    let mut all = judged.len();
    while open.log_in("ada", "guess").await == Login::Wrong {
        all += 1;
    }
    assert_eq!(all, 10, "as many as may fail");
    assert_eq!(open.log_in("ada", "adaada").await, Login::Banned);
    assert_eq!(open.log_in_certified("ada").await, Login::Banned);
    assert_eq!(open.user(), None);
    assert_eq!(elsewhere.log_in("ada", "adaada").await, Login::In);
    drop(elsewhere);
    tokio::time::advance(Duration::from_secs(600)).await;
    assert_eq!(open.log_in("ada", "adaada").await, Login::In);
}

/// Takes some time for each, and tells in which order they were asked; a program knows those whose password is `program`, and takes
/// longer for `root`.
#[derive(Debug, Default)]
struct Slow(parking_lot::Mutex<Vec<String>>);

const OF_ROOT: Duration = Duration::from_millis(600);

impl Logins for Slow {
    fn may_be_any(&self) -> bool {
        true
    }

    fn check(&self, said: &Credentials) -> Result<Option<User>, String> {
        std::thread::sleep(Duration::from_millis(2));
        self.0.lock().push(said.name.clone());
        Ok((said.password == "right").then(|| user(&said.name)))
    }

    fn ask_program(&self, _: &LoginConfig, said: &Credentials) -> Result<Option<User>, String> {
        if said.name == "root" {
            std::thread::sleep(OF_ROOT);
        }
        Ok((said.password == "program").then(|| user(&said.name)))
    }

    fn scram(&self, name: &str) -> Result<(ScramKeys, Option<User>), String> {
        Names(&[]).scram(name)
    }

    fn vouched(&self, _: &str) -> Result<Option<User>, String> {
        Ok(None)
    }
}

fn slow(login: LoginConfig) -> (Arc<Slow>, Arc<Gate>) {
    let users = Arc::new(Slow::default());
    let rules = "[[access]]\nname = 'users'\nusers = ['*']\nread = '*'\n";
    let config: AccessConfig = toml::from_str(rules).unwrap();
    let rules = Rules::parse(&config.access).unwrap();
    let counted = Counted::new(Some(Arc::clone(&users) as Arc<dyn Logins>));
    (users, Gate::new(rules, login, counted, None))
}

/// Guesses from 200 networks kept everybody's logins waiting for 25 seconds.
#[tokio::test(start_paused = true)]
async fn guesses_from_many_networks_keep_nobody_waiting() {
    let (users, gate) = slow(LoginConfig::default());
    let mut guesses = tokio::task::JoinSet::new();
    for n in 0..400 {
        let address = format!("198.51.{}.{}", n / 4 / 50, n / 4 % 50);
        let mut door = gate.enter(who(&address)).unwrap();
        guesses.spawn(async move { door.log_in("bob", "wrong").await });
    }
    // Somebody who is new here; a user at whose name is guessed, from where somebody has logged in, and from elsewhere by the password
    // that was right; and somebody who has erred once.
    for (address, name, others_max) in [
        ("192.0.2.1", "ada", 20),
        ("192.0.2.1", "bob", 2),
        ("203.0.113.1", "bob", 2),
        ("192.0.2.2", "eve", 200),
    ] {
        if name == "eve" {
            let failures = &gate.counted.failures;
            failures.note(address.parse().unwrap(), name, &gate.login);
        }
        while users.0.lock().len() < 20 {
            tokio::task::yield_now().await;
        }
        let before = users.0.lock().len();
        let mut door = gate.enter(who(address)).unwrap();
        assert_eq!(door.log_in(name, "right").await, Login::In);
        let others = users.0.lock().len() - before;
        assert!(
            others <= others_max + 2 * checks_at_once(),
            "{name}: {others}"
        );
    }
    assert_eq!(guesses.join_all().await, [Login::Wrong; 400]);
}

/// Who guesses passwords kept those waiting, too, whose names are only looked up.
#[tokio::test(start_paused = true)]
async fn guesses_keep_no_look_up_waiting() {
    let (_, gate) = slow(LoginConfig::default());
    let mut guesses = tokio::task::JoinSet::new();
    for n in 0..200 {
        let mut door = gate.enter(who(&format!("198.51.100.{n}"))).unwrap();
        guesses.spawn(async move { door.log_in("ada", "wrong").await });
    }
    tokio::task::yield_now().await;
    let mut door = gate.enter(who("192.0.2.1")).unwrap();
    door.scram("ada").await.unwrap();
    let judged = gate.counted.failures.bans(&LoginConfig {
        failures_max: 1,
        ..LoginConfig::default()
    });
    assert!(judged.len() < 100, "{}", judged.len());
    guesses.join_all().await;
}

/// Where nobody is banned, one who failed held up all behind the same gateway for up to half a minute.
#[tokio::test(start_paused = true)]
async fn users_of_a_gateway_do_not_wait_for_each_other() {
    let (_, gate) = slow(LoginConfig {
        failures_max: 0,
        ..LoginConfig::default()
    });
    let mut failing = tokio::task::JoinSet::new();
    for n in 0..40 {
        let mut door = gate.enter(who("192.0.2.1")).unwrap();
        let name = format!("user{}", n % 20);
        failing.spawn(async move { door.log_in(&name, "wrong").await });
    }
    tokio::time::advance(Duration::from_millis(1)).await;
    let began = Instant::now();
    let mut door = gate.enter(who("192.0.2.1")).unwrap();
    assert_eq!(door.log_in("ada", "right").await, Login::In);
    assert!(
        began.elapsed() < Duration::from_secs(1),
        "{:?}",
        began.elapsed()
    );
    // Of one name each still waits for the pause of the one before.
    let mut judged = Vec::new();
    for _ in 0..3 {
        let began = Instant::now();
        let mut door = gate.enter(who("192.0.2.1")).unwrap();
        assert_eq!(door.log_in("bob", "wrong").await, Login::Wrong);
        judged.push(began.elapsed().as_secs());
    }
    assert_eq!(judged, [1, 2, 4]);
    failing.join_all().await;
}

/// A program that took 1.9 s for names that it knows, and 0.9 s for others, told them: answers came after 2 s and after 1 s.  And since then
/// each typing error waited for 10 s, however fast the program was.
#[tokio::test(start_paused = true)]
async fn what_a_program_took_does_not_show() {
    for (program, after_s) in [("", [1, 1]), ("/bin/slow", [10, 1])] {
        let (_, gate) = slow(LoginConfig {
            program: program.to_owned(),
            ..LoginConfig::default()
        });
        let mut took = Vec::new();
        for address in ["192.0.2.1", "192.0.2.2"] {
            let began = Instant::now();
            let mut door = gate.enter(who(address)).unwrap();
            assert_eq!(door.log_in("ada", "wrong").await, Login::Wrong);
            took.push(began.elapsed().as_secs());
            if !program.is_empty() {
                assert_eq!(door.log_in("ada", "program").await, Login::In);
            }
        }
        assert_eq!(took, after_s, "{program}");
    }
}

/// A program that takes longer for names it knows told them by load: the last of many guesses at one came later.
#[tokio::test]
async fn what_a_program_takes_does_not_show_by_load() {
    const STRANGERS: usize = PROGRAMS_AT_ONCE - PROGRAMS_KEPT;
    let of = async |name: &'static str, hang_up: bool| {
        let (_, gate) = slow(LoginConfig {
            program: "/bin/slow".to_owned(),
            program_s_max: 1,
            ..LoginConfig::default()
        });
        let guess = |n: usize| {
            let mut door = gate.enter(who(&format!("192.0.2.{n}"))).unwrap();
            async move { door.log_in(name, "wrong").await }
        };
        let began = Instant::now();
        let mut first: tokio::task::JoinSet<_> = (0..STRANGERS).map(guess).collect();
        if hang_up {
            tokio::time::sleep(Duration::from_millis(200)).await;
            first.abort_all();
        }
        let behind: tokio::task::JoinSet<_> = (STRANGERS..2 * STRANGERS).map(guess).collect();
        assert_eq!(behind.join_all().await, [Login::Wrong; STRANGERS]);
        began.elapsed().as_secs()
    };
    let took = tokio::join!(
        of("root", false),
        of("nosuch", false),
        of("root", true),
        of("nosuch", true)
    );
    assert_eq!(took, (2, 2, 2, 2));
}

/// Else a network that fails all the time, where nobody is refused for that, would hold up its logins for ever.
#[tokio::test(start_paused = true)]
async fn nobody_waits_for_ever_for_their_turn() {
    let counted = Counted::new(Some(Arc::new(Names(&["ada"]))));
    let config: AccessConfig = toml::from_str(RULES).unwrap();
    let rules = Rules::parse(&config.access).unwrap();
    let login = LoginConfig {
        failures_max: 0,
        ..LoginConfig::default()
    };
    let gate = Gate::new(rules, login, counted, None);
    let mut logins = tokio::task::JoinSet::new();
    for _ in 0..20 {
        let mut door = gate.enter(who("192.0.2.1")).unwrap();
        logins.spawn(async move { door.log_in("ada", "guess").await });
    }
    let began = Instant::now();
    let all = logins.join_all().await;
    let refused = all.iter().filter(|login| **login == Login::Banned).count();
    assert!((10..18).contains(&refused), "{all:?}");
    assert!(began.elapsed() <= TURN_WAIT_MAX + Duration::from_secs(16));
}

/// Who was locked between the challenge and the proof was let in.
#[tokio::test(start_paused = true)]
async fn what_is_proved_is_held_against_the_users_of_now() {
    #[derive(Debug)]
    struct Changing(AtomicU8);
    impl Logins for Changing {
        fn may_be_any(&self) -> bool {
            true
        }
        fn check(&self, _: &Credentials) -> Result<Option<User>, String> {
            Ok(None)
        }
        fn ask_program(&self, _: &LoginConfig, _: &Credentials) -> Result<Option<User>, String> {
            Ok(None)
        }
        fn scram(&self, name: &str) -> Result<(ScramKeys, Option<User>), String> {
            let (keys, _) = Names(&[]).scram(name)?;
            let password = self.0.load(Ordering::Relaxed);
            let stored = [password; 32];
            Ok((
                ScramKeys { stored, ..keys },
                (password > 0).then(|| user(name)),
            ))
        }
        fn vouched(&self, _: &str) -> Result<Option<User>, String> {
            Ok(None)
        }
    }
    for (becomes, login) in [(1, Login::In), (0, Login::Wrong), (2, Login::Wrong)] {
        let users = Arc::new(Changing(AtomicU8::new(1)));
        let config: AccessConfig = toml::from_str(RULES).unwrap();
        let rules = Rules::parse(&config.access).unwrap();
        let counted = Counted::new(Some(Arc::clone(&users) as Arc<dyn Logins>));
        let gate = Gate::new(rules, LoginConfig::default(), counted, None);
        let mut door = gate.enter(who("192.0.2.1")).unwrap();
        let (_, proved) = door.scram("ada").await.unwrap();
        users.0.store(becomes, Ordering::Relaxed);
        assert_eq!(door.prove(proved).await, login, "{becomes}");
        assert_eq!(door.user().is_some(), login == Login::In);
    }
}

/// Asking for keys of SCRAM cost nothing, so that anybody could keep the threads busy that look users up.
#[tokio::test(start_paused = true)]
async fn keys_that_nothing_is_proved_with_are_failed_logins() {
    let gate = gate(RULES);
    let failed = |gate: &Gate| {
        let one = LoginConfig {
            failures_max: 1,
            ..LoginConfig::default()
        };
        let address = "192.0.2.1".parse().unwrap();
        gate.counted.failures.are_too_many(address, &one)
    };
    let mut door = gate.enter(who("192.0.2.1")).unwrap();
    assert_eq!(door.scram("broken").await.unwrap_err(), Login::Failed);
    let (_, user) = door.scram("ada").await.unwrap();
    assert_eq!(door.prove(user).await, Login::In);
    drop(door);
    assert!(!failed(&gate));
    for _ in 0..10 {
        let mut door = gate.enter(who("192.0.2.1")).unwrap();
        door.scram("ada").await.unwrap();
        drop(door);
        assert!(failed(&gate));
    }
    assert_eq!(gate.enter(who("192.0.2.1")).unwrap_err(), Denied::Banned);
}

/// Whether their entry is the same as before or another one.
#[tokio::test(start_paused = true)]
async fn a_user_has_so_many_connections() {
    for entry in ["", "users = ['*']\n"] {
        let gate = gate(&format!(
            "[[access]]\nname = 'a'\nconnections_per_user_max = 1\n{entry}[[access]]\nname = 'b'\nusers = ['ada']\n"
        ));
        let mut one = gate.enter(who("192.0.2.1")).unwrap();
        let mut other = gate.enter(who("192.0.2.2")).unwrap();
        assert_eq!(one.log_in("ada", "adaada").await, Login::In);
        assert_eq!(other.log_in("ada", "adaada").await, Login::Full, "{entry}");
        assert_eq!(other.log_in("eve", "eveeve").await, Login::In);
        let mut third = gate.enter(who("192.0.2.2")).unwrap();
        drop(one);
        assert_eq!(third.log_in("ada", "adaada").await, Login::In);
    }
}

#[test]
fn over_tls_passwords_are_taken() {
    let gate = gate(RULES);
    for is_tls in [false, true] {
        let who = Who {
            is_tls,
            ..who("192.0.2.1")
        };
        assert_eq!(gate.enter(who).unwrap().takes_clear_text(), is_tls);
    }
}

fn some_tls() -> Option<Arc<Tls>> {
    let made = rcgen::generate_simple_self_signed(["a.example".to_owned()]).unwrap();
    let (certificate, key) = (made.cert.pem(), made.signing_key.serialize_pem());
    let tls = Tls::from_pem(certificate.as_bytes(), key.as_bytes(), 1);
    Some(Arc::new(tls.unwrap()))
}

#[tokio::test(start_paused = true)]
async fn who_begins_tls_has_what_is_for_tls() {
    const RULES: &str = "[[access]]\nname = 'safe'\naddresses = ['192.0.2.1']\ntls = true\n\
         connections_max = 1\n[[access]]\nname = 'users'\naddresses = ['192.0.2.2']\nusers = ['ada']\n";
    // Without a certificate nobody is let in for TLS.
    let none = gate(RULES).enter(who("192.0.2.1"));
    assert_eq!(none.unwrap_err(), Denied::NoRule);
    let gate = secured_by(RULES, some_tls());
    let mut door = gate.enter(who("192.0.2.1")).unwrap();
    assert_eq!(**door.grant(), Grant::nothing());
    assert!(door.tls_helps(|_| true) && door.may_start_tls() && !door.takes_clear_text());
    let mut late = gate.enter(who("192.0.2.1")).unwrap();
    door.secured(Vec::new()).unwrap();
    assert_eq!(door.grant().name, "safe");
    assert!(!door.tls_helps(|_| true) && !door.may_start_tls() && door.takes_clear_text());
    // Its places are taken as those of any entry.
    assert_eq!(late.secured(Vec::new()), Err(Denied::Full));
    assert_eq!(late.grant().name, "nobody");
    drop(door);
    late.secured(Vec::new()).unwrap();
    // Who has logged in begins no TLS (RFC 4642 section 2.2.2).
    let mut user = gate.enter(who("192.0.2.2")).unwrap();
    assert!(user.may_start_tls() && !user.tls_helps(|_| true));
    assert_eq!(user.log_in("ada", "adaada").await, Login::In);
    assert!(!user.may_start_tls());
    assert_eq!(gate.enter(who("192.0.2.3")).unwrap_err(), Denied::NoRule);
}

fn shown(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

#[tokio::test(start_paused = true)]
async fn who_shows_a_certificate_has_what_is_for_it() {
    const RULES: &str = "[[access]]\nname = 'peer'\ncertificates = ['news.peer.example']\nconnections_max = 1\n\
         [[access]]\nname = 'users'\ncertificates = ['*']\nusers = ['ada', 'bob']\n\
         [[access]]\nname = 'public'\naddresses = ['192.0.2.0/24']\nconnections_max = 1\n";
    let gate = secured_by(RULES, some_tls());
    let over_tls = |address: &str| Who {
        is_tls: true,
        ..who(address)
    };
    // Until it has been shown nothing is granted and no place taken, not even of what fits anybody.
    let mut peer = gate.enter(over_tls("192.0.2.1")).unwrap();
    let mut late = gate.enter(over_tls("192.0.2.1")).unwrap();
    let public = gate.enter(who("192.0.2.2")).unwrap();
    assert_eq!(public.grant().name, "public");
    assert_eq!(**peer.grant(), Grant::nothing());
    peer.secured(shown(&["x", "news.peer.example"])).unwrap();
    assert_eq!(peer.grant().name, "peer");
    let full = late.secured(shown(&["news.peer.example"]));
    assert_eq!(full, Err(Denied::Full));
    // Who shows none, or one that helps nobody, has what everybody has there, and elsewhere nothing.
    assert_eq!(late.secured(Vec::new()), Err(Denied::Full));
    drop(public);
    late.secured(Vec::new()).unwrap();
    assert_eq!(late.grant().name, "public");
    let mut stranger = gate.enter(over_tls("203.0.113.1")).unwrap();
    assert_eq!(stranger.secured(Vec::new()), Err(Denied::NoRule));
    // Who can log in by it is let in for that.
    let mut user = gate.enter(over_tls("203.0.113.1")).unwrap();
    user.secured(shown(&["A B", "bob", "c@d.example", "ada"]))
        .unwrap();
    assert_eq!(**user.grant(), Grant::nothing());
    assert_eq!(
        (user.certified(""), user.certified("ada")),
        (Some("bob"), Some("ada"))
    );
    assert_eq!((user.certified("eve"), user.certified("A B")), (None, None));
    assert_eq!(user.log_in_certified("ada").await, Login::In);
    assert_eq!(
        (user.grant().name.as_str(), user.user()),
        ("users", Some("ada"))
    );
    // Whom the store locks out the certificate does not let in.
    let mut locked = gate.enter(over_tls("203.0.113.1")).unwrap();
    locked.secured(shown(&["eve"])).unwrap();
    assert_eq!(locked.log_in_certified("eve").await, Login::Wrong);
}

#[test]
fn an_entry_called_nobody_counts_as_others_do() {
    let gate = gate("[[access]]\nname = 'nobody'\nusers = ['*']\nconnections_max = 1\n");
    let mut doors: Vec<Door> = (0..2)
        .map(|_| gate.enter(who("192.0.2.1")).unwrap())
        .collect();
    let ada = || Who {
        user: Some(User {
            name: "ada".to_owned(),
            groups: Vec::new(),
        }),
        ..who("192.0.2.1")
    };
    assert_eq!(doors[0].pass(ada()), Ok(()));
    assert_eq!(doors[1].pass(ada()), Err(Denied::Full));
}

#[test]
fn whom_no_login_helps_is_not_let_in() {
    let gate = gate("[[access]]\nname = 'a'\naddresses = ['192.0.2.1']\nusers = ['ada']\n");
    assert!(gate.enter(who("192.0.2.1")).is_ok());
    assert_eq!(gate.enter(who("192.0.2.2")).unwrap_err(), Denied::NoRule);
    let nobody = Gate::new(
        Rules::default(),
        LoginConfig::default(),
        Counted::new(None),
        None,
    );
    assert_eq!(nobody.enter(who("127.0.0.1")).unwrap_err(), Denied::NoRule);
}
