//! Mails about messages that wait, and what notices list: when the message has had its turn, and not before; after a crash, too.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use newsreel_engine::{GroupSpec, Keyring};
use newsreel_host::{Disk, MemoryDisk};
use newsreel_service::posting::{Account, Mail, MailDrop, MailRefused, Mailed};
use newsreel_service::{OfferedId, Outcome};

use crate::control_groups::{ADMIN, Article, groups, message};
use crate::control_newest::{at, waiting};
use crate::control_signed::{NOTICE, NOTICES, notice};
use crate::world::{World, article, config, open_on};

/// Mails, and the disk as a crash had left it when the first of them was given up.
#[derive(Debug, Default)]
struct Mails {
    mails: Mutex<Vec<String>>,
    disk: Mutex<Option<MemoryDisk>>,
    crashed: Mutex<Option<MemoryDisk>>,
    /// The Message-IDs of the mails, in their order.
    ids: Mutex<Vec<String>>,
    /// None is kept.
    is_full: AtomicBool,
}

impl MailDrop for Mails {
    fn find(&self, _: &OfferedId) -> Option<Mailed> {
        None
    }

    fn has_room(&self, _: Option<Account>) -> Result<(), MailRefused> {
        Ok(())
    }

    fn submit(&self, mail: &Mail, _: Option<Account>) -> Result<(), MailRefused> {
        if let Some(disk) = &*self.disk.lock().unwrap() {
            let mut crashed = self.crashed.lock().unwrap();
            crashed.get_or_insert_with(|| disk.crash_losing_all());
        }
        if self.is_full.load(Ordering::Relaxed) {
            return Err(MailRefused::Full);
        }
        let text = String::from_utf8(mail.text.clone()).unwrap();
        let own = text.lines().find(|line| line.starts_with("Message-ID: "));
        self.ids.lock().unwrap().push(own.unwrap().to_owned());
        let asked = text.lines().filter(|line| line.starts_with("    "));
        let asked: Vec<&str> = asked
            .map(str::trim)
            .filter(|it| it.starts_with("make ") || it.starts_with("remove "))
            .collect();
        let id = std::str::from_utf8(mail.id.as_bytes()).unwrap();
        let line = format!("{id} {}", asked.join(", "));
        self.mails.lock().unwrap().push(line);
        Ok(())
    }
}

impl Mails {
    fn taken(&self) -> Vec<String> {
        std::mem::take(&mut *self.mails.lock().unwrap())
    }
}

const BOSS: &str = "boss@a.example";

fn world_of(disk: &MemoryDisk) -> (World, Arc<Mails>) {
    let mut config = config(4 << 20);
    let rules = ["all:*:*:mail", "all:boss@a.example:*:doit"];
    config.control.rules = rules.map(str::to_owned).to_vec();
    config.control.mail_to = "usenet@n.example".to_owned();
    let world = World::on(Arc::new(disk.clone()), config);
    let mails = Arc::new(Mails::default());
    world.engine.set_mail_drops(mails.clone(), mails.clone());
    (world, mails)
}

fn say(name: &str, from: &str, control: &str) -> Article {
    message(name, from, control, "")
}

/// A mail told of what was asked for before what stood in front of it in the same write was done.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_mail_tells_of_what_is_left_when_its_turn_comes() {
    let (world, mails) = world_of(&MemoryDisk::new());
    let sent = [
        say("1", BOSS, "newgroup alt.new"),
        say("2", ADMIN, "newgroup alt.new"),
        say("3", BOSS, "newgroup alt.more"),
        at("22:01:00", say("4", ADMIN, "rmgroup alt.more")),
        say("5", ADMIN, "rmgroup alt.none"),
        message("6", ADMIN, "checkgroups de", "de.a\tA.\nde.b\tB.\n"),
        // Of what had nothing to ask for when it was read, too.
        at("22:02:00", say("7", BOSS, "rmgroup misc.other")),
        at("22:03:00", say("8", ADMIN, "newgroup misc.other")),
    ];
    assert!(
        world
            .send(&sent)
            .await
            .iter()
            .all(|it| *it == Outcome::Accepted)
    );
    assert_eq!(groups(&world)[..2], ["alt.more y", "alt.new y"]);
    let expected = [
        "<4@t.example> remove alt.more",
        "<6@t.example> make de.a y A., make de.b y B.",
        "<8@t.example> make misc.other y",
    ];
    assert_eq!(mails.taken(), expected);
    let expected = ["<4@t.example>", "<6@t.example>", "<8@t.example>"];
    assert_eq!(waiting(&world), expected);
    // Nothing is due any more.
    let world = world.restart();
    world.engine.set_mail_drops(mails.clone(), mails.clone());
    world.engine.do_what_is_due();
    assert_eq!(mails.taken(), [""; 0]);
    assert_eq!(world.problems(), [""; 0]);
}

/// A message that was refused, as another article had its message-id, was told of all the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_is_told_of_what_is_refused() {
    let (world, mails) = world_of(&MemoryDisk::new());
    let (id, plain) = article(1, "misc.test");
    let refused = say("x", ADMIN, "newgroup alt.new");
    let text = String::from_utf8(refused.1).unwrap();
    let refused = (id.clone(), text.replace("<x@t.example>", &id).into_bytes());
    let outcomes = world.send(&[(id, plain), refused]).await;
    assert_eq!(outcomes, [Outcome::Accepted, Outcome::Duplicate]);
    assert_eq!(mails.taken(), [""; 0]);
    assert_eq!(waiting(&world), [""; 0]);
}

/// The server is killed when a message is on disk and its mail is not.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_mail_that_a_crash_cut_off_is_made_at_the_next_start() {
    let disk = MemoryDisk::new();
    let (world, mails) = world_of(&disk);
    *mails.disk.lock().unwrap() = Some(disk.clone());
    let sent = [
        say("1", ADMIN, "newgroup alt.new"),
        say("2", ADMIN, "newgroup alt.more"),
    ];
    world.send(&sent).await;
    let expected = [
        "<1@t.example> make alt.new y",
        "<2@t.example> make alt.more y",
    ];
    assert_eq!(mails.taken(), expected);
    let crashed = mails.crashed.lock().unwrap().take().unwrap();
    let crashed: Arc<dyn Disk> = Arc::new(crashed);
    let after = open_on(Arc::clone(&crashed), &world.config, &world.clock);
    assert_eq!(waiting(&after), ["<1@t.example>", "<2@t.example>"]);
    after.engine.set_mail_drops(mails.clone(), mails.clone());
    // What the log said may be gone by then.
    after.seal();
    let after = after.restart();
    after.engine.set_mail_drops(mails.clone(), mails.clone());
    after.engine.do_what_is_due();
    assert_eq!(mails.taken(), expected);
    // Who got the first ones too can tell that these are the same.
    let ids = std::mem::take(&mut *mails.ids.lock().unwrap());
    assert!(
        ids.len() == 4 && ids[..2] == ids[2..] && ids[0] != ids[1],
        "{ids:?}"
    );
    after.engine.do_what_is_due();
    let after = after.restart();
    after.engine.set_mail_drops(mails.clone(), mails.clone());
    after.engine.do_what_is_due();
    assert_eq!(mails.taken(), [""; 0]);
    assert_eq!(after.problems(), [""; 0]);
}

/// A mail that the disk had no room for was never made.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_mail_that_was_not_kept_is_made_at_the_next_start() {
    let (world, mails) = world_of(&MemoryDisk::new());
    mails.is_full.store(true, Ordering::Relaxed);
    world.send(&[say("1", ADMIN, "newgroup alt.new")]).await;
    assert_eq!(mails.taken(), [""; 0]);
    mails.is_full.store(false, Ordering::Relaxed);
    let world = world.restart();
    world.engine.set_mail_drops(mails.clone(), mails.clone());
    world.engine.do_what_is_due();
    assert_eq!(mails.taken(), ["<1@t.example> make alt.new y"]);
}

/// It waited for the next start, however long that was away.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_mail_that_was_not_kept_is_made_again_a_minute_later() {
    let (world, mails) = world_of(&MemoryDisk::new());
    mails.is_full.store(true, Ordering::Relaxed);
    world.send(&[say("1", ADMIN, "newgroup alt.new")]).await;
    world.clock.advance(Duration::from_secs(61));
    // It is tried, in vain, and put off once more.
    tokio::time::sleep(Duration::from_secs(3)).await;
    mails.is_full.store(false, Ordering::Relaxed);
    assert_eq!(mails.taken(), [""; 0]);
    world.clock.advance(Duration::from_secs(61));
    let mut made = Vec::new();
    for _ in 0..1500 {
        made.extend(mails.taken());
        if !made.is_empty() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(made, ["<1@t.example> make alt.new y"]);
    let world = world.restart();
    world.engine.set_mail_drops(mails.clone(), mails.clone());
    world.engine.do_what_is_due();
    assert_eq!(mails.taken(), [""; 0]);
}

/// Mails to moderators stood in one queue with those that strangers cause by control messages.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn control_messages_take_no_place_of_moderators_mails() {
    let (world, notices) = {
        let mut config = config(4 << 20);
        config.control.rules = vec!["all:*:*:mail".to_owned()];
        config.control.mail_to = "usenet@n.example".to_owned();
        let world = World::on(Arc::new(MemoryDisk::new()), config);
        (world, Arc::new(Mails::default()))
    };
    let moderators = Arc::new(Mails::default());
    moderators.is_full.store(true, Ordering::Relaxed);
    world
        .engine
        .set_mail_drops(moderators.clone(), notices.clone());
    world.send(&[say("1", ADMIN, "newgroup alt.new")]).await;
    assert_eq!(notices.taken(), ["<1@t.example> make alt.new y"]);
    assert_eq!(moderators.taken(), [""; 0]);
}

/// A notice that was refused, as another article had its message-id, took out what it lists; and what stood in front of one in the same
/// write was refused.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_notice_has_its_effect_when_it_is_taken() {
    let mut config = config(4 << 20);
    config.control.nocem = vec!["notices@a.example:spam".to_owned()];
    let disk = Arc::new(MemoryDisk::new());
    let keyring = Keyring::of_spool(disk.clone(), &config.spool);
    let world = World::on(disk.clone(), config);
    let filed = GroupSpec::new("alt.nocem.misc");
    world.engine.add_groups(vec![filed]).unwrap();
    keyring.import(NOTICES.as_bytes(), false).unwrap();
    let (id, plain) = article(5, "misc.test");
    let refused = notice("x", "alt.nocem.misc", NOTICE);
    let text = String::from_utf8(refused.1).unwrap();
    let refused = (id.clone(), text.replace("<x@t.example>", &id).into_bytes());
    let sent = [article(1, "misc.test"), (id, plain), refused];
    let taken = Outcome::Accepted;
    assert_eq!(world.send(&sent).await, [taken, taken, Outcome::Duplicate]);
    let left = |world: &World| world.engine.group("misc.test").unwrap().count;
    assert_eq!(left(&world), 2);
    // In front of it and behind it in one write.
    let sent = [
        article(2, "misc.test"),
        notice("a", "alt.nocem.misc", NOTICE),
        notice("later", "misc.test", "x\n"),
        article(6, "misc.test"),
    ];
    assert_eq!(world.send(&sent).await, [taken; 4]);
    assert_eq!(left(&world), 2, "5 and 6");
    let after = Arc::new(disk.crash_losing_all());
    let world = open_on(after, &world.config, &world.clock);
    world.engine.do_what_is_due();
    assert_eq!(left(&world), 2);
    assert_eq!(world.problems(), [""; 0]);
}
