//! What each fuzz target of the server's own inputs does: lists of groups, configuration, control socket, connections; and
//! of the load generator's and of `newsreel post`: replies; and the machine's table of mounts.
//!
//! The app's tests include this file and replay the committed corpora, so it uses nothing but the crates under test.

/// A target: its name, which is also its corpus folder and its file in `fuzz_targets`, and its function.
pub type Target = (&'static str, fn(&[u8]));

/// Every target of the server's own inputs.
pub const TARGETS: &[Target] = &[
    ("answers", answers),
    ("article_ref", article_ref),
    ("cancel_lock", cancel_lock),
    ("configuration", configuration),
    ("control_request", control_request),
    ("control_rules", control_rules),
    ("filter_answer", filter_answer),
    ("framer", framer),
    ("group_list", group_list),
    ("mount_table", mount_table),
    ("proto_article", proto_article),
    ("replies", replies),
];

/// What a server answers to who posts there: an article is taken only where it was said so.
pub fn answers(data: &[u8]) {
    if let Ok(said) = newsreel_app::fuzz::answers(data) {
        assert!(said.starts_with("240"), "{said}");
    }
}

/// A line of a filter: what it says is of the article that was asked about, and has no end of a line in it.
pub fn filter_answer(data: &[u8]) {
    use newsreel_filter::{Answer, parse_answer};
    let line = String::from_utf8_lossy(data);
    let line = line.split('\n').next().unwrap_or_default().trim_end();
    let said = parse_answer(line, 7);
    let text = match said {
        Some(Answer::Label(word) | Answer::Class(word)) => {
            assert!(!word.is_empty() && !word.contains(char::is_whitespace));
            word
        }
        Some(Answer::Reject(text)) => text,
        Some(Answer::Accept | Answer::Drop) | None => "",
    };
    assert!(said.is_none() || line.starts_with("7 "), "{line}");
    assert!(line.ends_with(text), "{line}");
    assert!(parse_answer(line, 8).is_none() || said.is_none(), "{line}");
}

/// A `control.ctl` or the policy of a hierarchy: no more rules than a policy has, or than there are lines.
pub fn control_rules(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let (rules, _) = newsreel_app::fuzz::policies(&text);
    assert!(rules <= text.lines().count().max(3));
}

/// What the kernel says of mounts, or whoever chose their names: no more of them than lines.
pub fn mount_table(data: &[u8]) {
    let found = newsreel_host::mounts::mounts_in(data);
    assert!(found.len() <= data.split(|octet| *octet == b'\n').count());
}

/// What `article show` takes: its three forms are told apart, and a number is one.
pub fn article_ref(data: &[u8]) {
    use newsreel_engine::ArticleRef;
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    match text.parse() {
        Ok(ArticleRef::Id(id)) => assert!(id == text && text.starts_with('<')),
        Ok(ArticleRef::Token(token)) => {
            assert!(token == text && text.matches(':').count() == 2);
        }
        Ok(ArticleRef::Number(group, number)) => {
            assert!(text.starts_with(&group) && text.matches(':').count() == 1);
            let again = format!("{group}:{number}").parse();
            assert_eq!(again, Ok(ArticleRef::Number(group, number)));
        }
        Err(why) => assert!(!text.starts_with('<') && why.contains(&format!("{text:?}"))),
    }
}

/// A Cancel-Lock and a Cancel-Key, with a line between them: what was made for an article opens it, whatever stands beside.
pub fn cancel_lock(data: &[u8]) {
    use newsreel_service::cancel_lock::{ELEMENTS_MAX, Locksmith, Owner, locks, opened};
    let mut parts = data.splitn(2, |octet| *octet == b'\n');
    let (lock, key) = (
        parts.next().unwrap_or_default(),
        parts.next().unwrap_or_default(),
    );
    assert!(locks(lock).len() <= ELEMENTS_MAX && opened(key).len() <= ELEMENTS_MAX);
    let (smith, owner) = (Locksmith::new(&[7; 32]), Owner::User("ada"));
    let Ok(id) = newsreel_wire::MessageId::parse(b"<1@a.example>") else {
        return;
    };
    let with = |made: String, text: &[u8]| [made.as_bytes(), b"\r\n\t", text].concat();
    let (locks, keys) = (
        locks(&with(smith.lock(owner, id), lock)),
        opened(&with(smith.key(owner, id), key)),
    );
    assert_eq!(locks.first(), keys.first());
    assert!(!locks.is_empty());
}

/// A proto-article: what may be posted can be relayed when it was injected, with its body as it was; as a mail it has
/// one recipient field and its header block ends where it should.
pub fn proto_article(data: &[u8]) {
    use newsreel_service::cancel_lock::{Locksmith, Owner};
    use newsreel_service::posting::{Locks, PostingConfig, Site, check};
    use newsreel_wire::article::{ArticleFacts, HeaderLimits, Headers, Known, check_relay};
    let (config, now) = (
        PostingConfig::default(),
        newsreel_wire::UnixTime(1_767_225_600),
    );
    let Ok(proto) = check(data, HeaderLimits::USUAL, &config, now) else {
        return;
    };
    let site = Site {
        path_identity: "news.example",
        config: &config,
        account: Some([7; 12]),
        address: Some([192, 0, 2, 1].into()),
        locks: Some(Locks {
            smith: &Locksmith::new(&[7; 32]),
            owner: Some(Owner::User("ada")),
        }),
        now,
    };
    let made = newsreel_wire::MessageId::parse(b"<made@a.example>");
    let Some(id) = proto.message_id.or(made.ok()) else {
        return;
    };
    let injected = proto.inject(id, &site);
    let headers = Headers::scan(&injected);
    assert!(headers.is_ok(), "{headers:?}");
    let Ok(headers) = headers else { return };
    assert_eq!(headers.body(), proto.headers.body());
    let relay = ArticleFacts::of(&headers).and_then(|facts| check_relay(&headers, &facts));
    assert!(relay.is_ok(), "{relay:?}");
    assert_eq!(relay.ok().map(|relay| relay.message_id), Some(id));
    for encapsulate in [false, true] {
        let mail = proto.mail(id, &site, "mod@m.example", encapsulate);
        let headers = Headers::scan(&mail);
        assert!(headers.is_ok_and(|headers| headers.present().contains(Known::To)));
    }
}

/// A configuration file.
pub fn configuration(data: &[u8]) {
    if let Ok(text) = std::str::from_utf8(data) {
        let _ = newsreel_app::fuzz::configuration(text);
    }
}

/// A line on the control socket.
pub fn control_request(data: &[u8]) {
    let _ = newsreel_app::fuzz::control(data);
}

/// What a client sends: what is found does not depend on the pieces in which it comes.
pub fn framer(data: &[u8]) {
    let whole = newsreel_session::fuzz::frame(data, data.len());
    for step in [1, 3, 64] {
        assert_eq!(newsreel_session::fuzz::frame(data, step), whole, "{step}");
    }
}

/// A list of groups, an `active` file, and descriptions behind a NUL.
pub fn group_list(data: &[u8]) {
    let (good, bad) = newsreel_app::fuzz::import(data);
    assert!(good + bad <= data.split(|octet| *octet == b'\n').count() + 1);
}

/// What a server answers to the load generator: what is seen does not depend on the pieces in which it comes, nor on
/// whether blocks are taken whole.  Whether a line is too long does, so nothing longer is compared.
pub fn replies(data: &[u8]) {
    let _ = newsreel_bench::fuzz::replies(data, 4096, true);
    let data = data.get(..8192).unwrap_or(data);
    let whole = newsreel_bench::fuzz::replies(data, data.len(), false);
    for (step, in_parts) in [(1, false), (1, true), (7, true), (300, false)] {
        let seen = newsreel_bench::fuzz::replies(data, step, in_parts);
        assert_eq!(seen, whole, "{step} {in_parts}");
    }
}
