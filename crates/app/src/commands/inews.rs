//! `newsreel inews`, or a link to the program called `inews`: posts an article, with the options of INN's inews(1).
//!
//! A server that lets us post only as somebody is told the name and the password that a file of INN's has for it (passwd.nntp(5)).
//! What options say takes the place of the article's own fields.  Fields for the author, and for who really sends it, and a
//! signature are added as inews does; everything else an article needs is the server's to add, and its checks are the server's too.
//! Without `-h` all that is read is text, whatever its first lines look like.  What could not be posted is kept, as it may have
//! come through a pipe and be nowhere else.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use newsreel_host::process::{Account, host_name, own_account};
use newsreel_host::{Disk, OpenMode, RealDisk};
use newsreel_wire::article::{Headers, Known, first_mailbox, is_address};
use newsreel_wire::nntp::framing::{wire_to_lf, without_terminator};

use crate::posting::{NotLet, Server, Tls, TlsArgs};
use crate::{input, output, posting};

/// Where names and passwords for servers are looked for, if nothing else is said.
const PASSWD_NNTP: &str = "/etc/news/passwd.nntp";

/// A file of them is no larger, octets.
const PASSWD_OCTETS_MAX: usize = 1 << 20;

/// Where what could not be posted is kept, in the home directory.
const DEAD_ARTICLE: &str = "dead.article";

/// Longer signatures are refused, lines.
const SIGNATURE_LINES_MAX: usize = 4;

/// The longest signature that is read, octets.
const SIGNATURE_OCTETS_MAX: usize = 4096;

#[derive(Debug, Default, clap::Args)]
#[command(
    disable_help_flag = true,
    after_help = "Examples:\n  newsreel inews -h article.txt\n  newsreel inews -n misc.test -t 'A subject' < text\n  \
                  newsreel inews -D -n misc.test -t 'A subject' text"
)]
pub(crate) struct Args {
    /// The article [default: the standard input]
    #[arg(default_value = input::STANDARD_INPUT, hide_default_value = true)]
    file: PathBuf,
    /// Print this help
    #[arg(short = 'H', long, action = clap::ArgAction::Help)]
    help: Option<bool>,
    /// The Approved field
    #[arg(short = 'a', value_name = "APPROVED")]
    approved: Option<String>,
    /// The Control field
    #[arg(short = 'c', value_name = "CONTROL")]
    control: Option<String>,
    /// The Distribution field
    #[arg(short = 'd', value_name = "DISTRIBUTION")]
    distribution: Option<String>,
    /// The Expires field
    #[arg(short = 'e', value_name = "EXPIRES")]
    expires: Option<String>,
    /// The From field
    #[arg(short = 'f', value_name = "FROM")]
    from: Option<String>,
    /// The References field
    #[arg(short = 'F', value_name = "REFERENCES")]
    references: Option<String>,
    /// The Message-ID field
    #[arg(short = 'm', value_name = "MESSAGE-ID")]
    message_id: Option<String>,
    /// The Newsgroups field
    #[arg(short = 'n', value_name = "NEWSGROUPS")]
    newsgroups: Option<String>,
    /// The Organization field
    #[arg(short = 'o', value_name = "ORGANIZATION")]
    organization: Option<String>,
    /// The Reply-To field
    #[arg(short = 'r', value_name = "REPLY-TO")]
    reply_to: Option<String>,
    /// The Subject field
    #[arg(short = 't', value_name = "SUBJECT")]
    subject: Option<String>,
    /// The Followup-To field
    #[arg(short = 'w', value_name = "FOLLOWUP-TO")]
    followup_to: Option<String>,
    /// What stands in Path in front of its last entry
    #[arg(short = 'x', value_name = "PREFIX")]
    path_prefix: Option<String>,
    /// The server's port
    #[arg(short = 'p', value_name = "PORT")]
    port: Option<u16>,
    /// The server [default: $NNTPSERVER, else the one that runs on the spool]
    #[arg(long, value_name = "HOST[:PORT]")]
    server: Option<String>,
    /// A file with lines `host:name:password` as INN's passwd.nntp, for servers that want a login [default: /etc/news/passwd.nntp]
    #[arg(long, value_name = "FILE")]
    passwd: Option<PathBuf>,
    /// Log in without being asked
    #[arg(short = 'Y')]
    always_login: bool,
    #[command(flatten)]
    tls: TlsArgs,
    /// Print the article instead of posting it
    #[arg(short = 'D', short_alias = 'N')]
    dump: bool,
    /// The article has a header block; without this all of it is text
    #[arg(short = 'h')]
    has_header: bool,
    /// Say nothing of an article without text, which is not posted in any case
    #[arg(short = 'E')]
    discard_empty: bool,
    /// Add no Organization field from $ORGANIZATION
    #[arg(short = 'O')]
    no_organization: bool,
    /// Add no Sender field, and leave one that is there
    #[arg(short = 'P')]
    no_sender: bool,
    /// Refuse control messages
    #[arg(short = 'R')]
    no_control: bool,
    /// Add no signature
    #[arg(short = 'S')]
    no_signature: bool,
    /// Of no effect here, as in INN or because the server does it
    #[arg(short = 'A', short_aliases = ['I', 'L', 'M', 'V', 'W', 'X', 'v'], action = clap::ArgAction::Count)]
    ignored: u8,
    /// The same of options with a value
    #[arg(short = 'i', short_alias = 's', value_name = "VALUE")]
    ignored_value: Vec<String>,
    /// The spool directory [default: what the configuration says, else ./newsreel-spool]
    #[arg(long, value_name = "DIR")]
    spool: Option<PathBuf>,
    #[arg(long, value_name = "FILE", help = crate::config::HELP_WITH_SPOOL)]
    config: Option<PathBuf>,
}

/// Whoever runs this.
#[derive(Debug, Default)]
struct Author {
    /// `name@host`, with a full name perhaps.
    from: Option<String>,
    /// The same of the account, whatever the environment says.
    sender: Option<String>,
    organization: Option<String>,
    signature: Option<String>,
}

#[expect(
    clippy::disallowed_methods,
    reason = "inews takes these from the environment"
)]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// A From field of who is called so in the environment, or else in the database of users, at this host.
fn from(
    (user, name): (Option<String>, Option<String>),
    account: Option<Account>,
    host: &str,
) -> Option<String> {
    let is_it = |account: &Account| user.as_ref().is_none_or(|user| *user == account.name);
    let account = account.filter(is_it);
    let name = name.or_else(|| account.as_ref()?.full_name.clone());
    let user = user.or(account.map(|account| account.name))?;
    Some(match name {
        Some(name) => format!("{} <{user}@{host}>", phrase(&name)),
        None => format!("{user}@{host}"),
    })
}

/// A name as it may stand in front of an address (RFC 5322 section 3.2.5).
fn phrase(name: &str) -> String {
    let is_plain = |c: char| {
        c == ' ' || !c.is_ascii() || c.is_alphanumeric() || "!#$%&'*+-/=?^_`{|}~".contains(c)
    };
    if name.chars().all(is_plain) || name.starts_with('"') && name.ends_with('"') {
        return name.to_owned();
    }
    format!("\"{}\"", name.replace('\\', r"\\").replace('"', "\\\""))
}

impl Author {
    fn find(args: &Args) -> Self {
        let user = variable("USER").or_else(|| variable("LOGNAME"));
        let host = variable("FROMHOST").or_else(host_name);
        let (called, account) = ((user, variable("NAME")), own_account());
        let address = |host: &String| Some(format!("{}@{host}", account.as_ref()?.name));
        let sender = host.as_ref().and_then(address);
        Self {
            sender: sender.filter(|it| is_address(it.as_bytes()) && !args.no_sender),
            from: host.and_then(|host| from(called, account, &host)),
            organization: variable("ORGANIZATION").filter(|_| !args.no_organization),
            signature: variable("HOME")
                .filter(|_| !args.no_signature)
                .and_then(|home| {
                    let path = Path::new(&home).join(".signature");
                    let read = input::read(&path, SIGNATURE_OCTETS_MAX).ok()?;
                    String::from_utf8(read.octets).ok()
                }),
        }
    }
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let octets = input::read(&args.file, posting::ARTICLE_OCTETS_MAX)?.octets;
    let Some(wire) = compose(args, &octets, &Author::find(args))? else {
        return Ok(());
    };
    if args.dump {
        let mut text = Vec::new();
        wire_to_lf(&wire, &mut text);
        return output::octets_out(&text);
    }
    deliver(args, &wire).map_err(|error| {
        let home = variable("HOME").map(PathBuf::from);
        kept(&RealDisk, home.as_deref(), &wire, error)
    })
}

/// Keeps what could not be posted, behind what is there already, and says where, and why it was not posted.
fn kept(disk: &dyn Disk, home: Option<&Path>, wire: &[u8], error: anyhow::Error) -> anyhow::Error {
    let Some(home) = home else {
        return error.context("the article was not posted, and is kept nowhere: HOME is not set");
    };
    let path = home.join(DEAD_ARTICLE);
    let mut text = Vec::new();
    wire_to_lf(wire, &mut text);
    let written = || {
        let file = disk.open(&path, OpenMode::CreateOrOpen)?;
        let before = file.len()?;
        file.write_at(&text, before)?;
        file.sync_all()?;
        disk.sync_dir(home)?;
        Ok::<_, newsreel_host::Error>(before)
    };
    let path = path.display();
    error.context(match written() {
        Ok(0) => format!("the article was not posted; it is in {path}"),
        Ok(_) => format!("the article was not posted; it is at the end of {path}"),
        Err(why) => {
            format!("the article was not posted, and could not be kept in {path} ({why})")
        }
    })
}

/// Finds the server, and posts.
fn deliver(args: &Args, wire: &[u8]) -> Result<()> {
    let named = args.server.clone().or_else(|| variable("NNTPSERVER"));
    let server = match named {
        Some(name) => posting::find(&name, args.port, args.tls.tls)?,
        None => {
            let spool = super::post::spool(args.spool.as_deref(), args.config.as_deref())?;
            let server = posting::server_of(&spool)?;
            match args.port {
                Some(port) => server.at_port(port),
                None => server,
            }
        }
    };
    post(args, &server, wire)
}

/// Posts as nobody in particular, and where that is not let, or more was asked for, as somebody.
fn post(args: &Args, server: &Server, wire: &[u8]) -> Result<()> {
    let not_let = match args.always_login || args.tls.tls != Tls::None {
        true => None,
        false => match posting::post(server, wire) {
            Err(error) if error.is::<NotLet>() => Some(error),
            posted => return posted.map(drop),
        },
    };
    let login = login(args, server)?;
    if login.is_none() && (not_let.is_some() || args.always_login) {
        let refused = not_let.map_or_else(String::new, |error| format!("{error}; "));
        let file = args.passwd.as_deref().unwrap_or(Path::new(PASSWD_NNTP));
        bail!(
            "{refused}{} has no login for the server: a line `HOST:NAME:PASSWORD` there is one",
            file.display()
        );
    }
    let remote = server.spoken_to(&args.tls, login)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(posting::post_as(&remote, wire))?;
    Ok(())
}

/// The name and the password for a server; the usual file need not be there, or ours to read.
fn login(args: &Args, server: &Server) -> Result<Option<(String, String)>> {
    let usual = Path::new(PASSWD_NNTP);
    let file = args.passwd.as_deref().unwrap_or(usual);
    if args.passwd.is_none() && !RealDisk.exists(file).unwrap_or(false) {
        return Ok(None);
    }
    let octets = match input::read(file, PASSWD_OCTETS_MAX) {
        Err(_) if args.passwd.is_none() => return Ok(None),
        read => read?.octets,
    };
    let text = String::from_utf8(octets);
    let text = text.with_context(|| format!("{} is not UTF-8", file.display()))?;
    let own_name = host_name();
    let mut names = match &server.name {
        Some(name) => vec![name.as_str()],
        None => vec!["localhost"],
    };
    if server.name.is_none() {
        names.extend(own_name.as_deref());
    }
    Ok(names.into_iter().find_map(|host| login_of(&text, host)))
}

/// What passwd.nntp(5) has for a host: `host:name:password`, and perhaps `:authinfo`.
fn login_of(text: &str, host: &str) -> Option<(String, String)> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.into_iter().find_map(|line| {
        let fields: Vec<&str> = line.split(':').collect();
        let ([of, name, password] | [of, name, password, "authinfo"]) = fields.as_slice() else {
            return None;
        };
        let is_it = of.trim().eq_ignore_ascii_case(host);
        let has_both = !name.is_empty() && !password.is_empty();
        (is_it && has_both).then(|| ((*name).to_owned(), (*password).to_owned()))
    })
}

/// The fields that options set.
fn options(args: &Args) -> impl Iterator<Item = (Known, &str)> {
    let fields = [
        (Known::Approved, &args.approved),
        (Known::Control, &args.control),
        (Known::Distribution, &args.distribution),
        (Known::Expires, &args.expires),
        (Known::From, &args.from),
        (Known::References, &args.references),
        (Known::MessageId, &args.message_id),
        (Known::Newsgroups, &args.newsgroups),
        (Known::Organization, &args.organization),
        (Known::ReplyTo, &args.reply_to),
        (Known::Subject, &args.subject),
        (Known::FollowupTo, &args.followup_to),
    ];
    let set = fields.into_iter();
    set.filter_map(|(field, value)| Some((field, value.as_deref()?)))
}

/// The header block of what was read, if it is one.
fn header_block<'w>(args: &Args, wire: &'w [u8]) -> Result<Option<Headers<'w>>> {
    match (args.has_header, Headers::scan(wire)) {
        (true, Err(fault)) => bail!("the article's header block is malformed: {fault}"),
        (true, Ok(headers)) => Ok(Some(headers)),
        (false, Ok(headers))
            if args.newsgroups.is_none() && headers.content(Known::Newsgroups).is_some() =>
        {
            bail!("the article begins with a header block, which is text without -h; give -h")
        }
        (false, _) => Ok(None),
    }
}

/// The Sender field: who runs this, where From says somebody else, or another Sender is there.
fn sender<'a>(args: &Args, headers: Option<&Headers<'_>>, author: &'a Author) -> Option<&'a str> {
    let sender = author.sender.as_deref()?;
    let own = |field| headers.and_then(|headers| headers.content(field));
    let given = args.from.as_deref().map(str::as_bytes);
    let default = || author.from.as_deref().map(str::as_bytes);
    let from = given.or_else(|| own(Known::From)).or_else(default)?;
    let is_from = first_mailbox(from).is_ok_and(|it| it.eq_ignore_ascii_case(sender.as_bytes()));
    (!is_from || own(Known::Sender).is_some()).then_some(sender)
}

/// The article in wire form; none: it is empty, and that is to be passed over.
fn compose(args: &Args, octets: &[u8], author: &Author) -> Result<Option<Vec<u8>>> {
    let wire = posting::wire_of(octets);
    let headers = header_block(args, &wire)?;
    let mut out = Vec::with_capacity(wire.len() + 512);
    let mut has = Vec::new();
    if let Some(prefix) = &args.path_prefix {
        field(Known::Path, &format!("{prefix}!not-for-mail"), &mut out)?;
        has.push(Known::Path);
    }
    for (known, value) in options(args) {
        field(known, value, &mut out)?;
        has.push(known);
    }
    let sender = sender(args, headers.as_ref(), author);
    if let Some(sender) = sender {
        field(Known::Sender, sender, &mut out)?;
        has.push(Known::Sender);
    }
    for own in headers.iter().flat_map(Headers::fields) {
        let known = own.known();
        if !known.is_some_and(|known| has.contains(&known)) {
            out.extend_from_slice(wire.get(own.start..own.end).unwrap_or_default());
        }
    }
    has.extend(headers.iter().flat_map(|headers| headers.present().iter()));
    for (known, value) in [
        (Known::From, &author.from),
        (Known::Organization, &author.organization),
    ] {
        if let Some(value) = value
            && !has.contains(&known)
        {
            field(known, value, &mut out)?;
        }
    }
    if args.no_control && has.contains(&Known::Control) {
        bail!("control messages are refused (-R)");
    }
    out.extend_from_slice(b"\r\n");
    let body = headers.as_ref().map_or(&wire[..], Headers::body);
    if !has.contains(&Known::Control) && without_terminator(body).trim_ascii().is_empty() {
        match args.discard_empty {
            true => return Ok(None),
            false => bail!("the article has no text"),
        }
    }
    match &author.signature {
        Some(signature) => signed(body, signature, &mut out)?,
        None => out.extend_from_slice(body),
    }
    Ok(Some(out))
}

/// One field; what would begin another line is refused.
fn field(known: Known, value: &str, out: &mut Vec<u8>) -> Result<()> {
    if value.chars().any(char::is_control) || value.trim().is_empty() {
        bail!("the {known} field must be one line with something on it");
    }
    out.extend_from_slice(format!("{known}: {value}\r\n").as_bytes());
    Ok(())
}

/// A body with the signature behind it.
fn signed(body: &[u8], signature: &str, out: &mut Vec<u8>) -> Result<()> {
    if signature.lines().count() > SIGNATURE_LINES_MAX {
        bail!("the signature has more than {SIGNATURE_LINES_MAX} lines; shorten it, or use -S");
    }
    out.extend_from_slice(without_terminator(body));
    out.extend_from_slice(b"-- \r\n");
    out.extend_from_slice(&posting::wire_of(signature.as_bytes()));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn composed(args: &Args, text: &str, author: &Author) -> Result<String, String> {
        let wire = compose(args, text.as_bytes(), author).map_err(|error| error.to_string())?;
        let wire = wire.unwrap_or_default();
        Ok(String::from_utf8(wire).unwrap().replace("\r\n", "\n"))
    }

    fn some(text: &str) -> Option<String> {
        Some(text.to_owned())
    }

    #[test]
    fn options_take_the_place_of_fields_and_the_author_is_added() {
        let args = Args {
            newsgroups: some("misc.test"),
            subject: some("new"),
            path_prefix: some("gate"),
            message_id: some("<1@a.example>"),
            has_header: true,
            ..Args::default()
        };
        let author = Author {
            from: some("Ada <ada@a.example>"),
            organization: some("A site"),
            signature: some("Ada\n.dot\n"),
            ..Author::default()
        };
        let text = "Subject: old\nX-Kept:  a\n b\n\n.body\n";
        let expected = "Path: gate!not-for-mail\nMessage-ID: <1@a.example>\nNewsgroups: misc.test\nSubject: new\n\
            X-Kept:  a\n b\n\
            From: Ada <ada@a.example>\nOrganization: A site\n\n..body\n-- \nAda\n..dot\n.\n";
        assert_eq!(composed(&args, text, &author).as_deref(), Ok(expected));
        let own = "From: Bob <b@b.example>\nOrganization: Mine\nNewsgroups: a.b\n\nx\n";
        let none = Author {
            signature: None,
            ..author
        };
        let whole = Args {
            has_header: true,
            ..Args::default()
        };
        let got = composed(&whole, own, &none).unwrap();
        assert_eq!(got, format!("{own}.\n"));
    }

    /// Whoever wrote another name into From was nowhere in the article.
    #[test]
    fn who_sends_it_is_told_where_somebody_else_is_its_author() {
        let author = Author {
            from: some("Ada <ada@a.example>"),
            sender: some("ada@a.example"),
            ..Author::default()
        };
        let args = |from: Option<&str>| Args {
            from: from.map(str::to_owned),
            has_header: true,
            ..Args::default()
        };
        for (given, block, sender) in [
            (None, "", None),
            (None, "From: ADA <Ada@A.example>\n", None),
            (None, "From: bob@b.example\n", some("ada@a.example")),
            (Some("bob@b.example"), "", some("ada@a.example")),
            (
                Some("bob@b.example"),
                "From: ada@a.example\n",
                some("ada@a.example"),
            ),
            (
                None,
                "From: bob@b.example\nSender: x@y\n\tz\n",
                some("ada@a.example"),
            ),
            (None, "Sender: eve@b.example\n", some("ada@a.example")),
        ] {
            let text = format!("Subject: s\n{block}\nx\n");
            let got = composed(&args(given), &text, &author).unwrap();
            let found: Vec<&str> = got
                .lines()
                .filter_map(|it| it.strip_prefix("Sender: "))
                .collect();
            assert_eq!(found, Vec::from_iter(sender.as_deref()), "{text}: {got}");
            assert!(!got.contains("\tz"), "the old one goes as a whole: {got}");
        }
        // With -P nobody is known, and what is there stays.
        let nobody = Author {
            sender: None,
            ..author
        };
        let own = "From: bob@b.example\nSender: eve@b.example\n\nx\n";
        assert_eq!(
            composed(&args(None), own, &nobody).unwrap(),
            format!("{own}.\n")
        );
    }

    /// What was piped and refused was lost.
    #[test]
    fn what_was_not_posted_is_kept() {
        let disk = newsreel_host::MemoryDisk::new();
        let home = Path::new("/home/ada");
        disk.create_dir_all(home).unwrap();
        let refused = |disk: &dyn Disk, home, text: &str| {
            let wire = posting::wire_of(text.as_bytes());
            let error = kept(disk, home, &wire, anyhow::anyhow!("441 no"));
            output::chain(&error)
        };
        let said = refused(&disk, Some(home), "A: b\n\n.x\n");
        assert_eq!(
            said,
            "the article was not posted; it is in /home/ada/dead.article: 441 no"
        );
        let said = refused(&disk, Some(home), "C: d\n\ny\n");
        assert!(
            said.contains("at the end of /home/ada/dead.article: 441"),
            "{said}"
        );
        // Also when the power goes.
        let crashed = disk.crash_losing_all();
        let text = newsreel_host::read_whole(&crashed, &home.join(DEAD_ARTICLE), 1000).unwrap();
        assert_eq!(text, b"A: b\n\n.x\nC: d\n\ny\n");
        let nowhere = refused(&disk, Some(Path::new("/none")), "A: b\n\nx\n");
        assert!(
            nowhere.contains("could not be kept in /none/dead.article"),
            "{nowhere}"
        );
        assert!(nowhere.ends_with(": 441 no"), "{nowhere}");
        let homeless = refused(&disk, None, "A: b\n\nx\n");
        assert!(homeless.contains("HOME is not set: 441 no"), "{homeless}");
    }

    /// A first paragraph such as `Note: x` became a header field.
    #[test]
    fn without_the_option_all_is_text() {
        let args = Args {
            newsgroups: some("misc.test"),
            ..Args::default()
        };
        for text in [
            "just a text\nof two lines\n",
            "Note: x\n\nof two paragraphs\n",
            "Newsgroups: other\n\nx\n",
        ] {
            let got = composed(&args, text, &Author::default());
            let expected = format!("Newsgroups: misc.test\n\n{text}.\n");
            assert_eq!(got.unwrap(), expected);
        }
        // Who forgets it is told.
        let forgot = composed(
            &Args::default(),
            "Newsgroups: a.b\n\nx\n",
            &Author::default(),
        );
        assert!(forgot.unwrap_err().contains("give -h"));
        let args = Args {
            has_header: true,
            ..args
        };
        assert!(
            composed(&args, "just a text\n", &Author::default())
                .unwrap_err()
                .contains("header")
        );
    }

    #[test]
    fn what_has_no_text_is_not_posted() {
        let author = Author {
            signature: some("Ada\n"),
            ..Author::default()
        };
        let args = |discard_empty| Args {
            has_header: true,
            discard_empty,
            ..Args::default()
        };
        for empty in ["A: b\n\n", "A: b\n\n \n\n"] {
            let refused = composed(&args(false), empty, &author);
            assert!(refused.unwrap_err().contains("no text"));
            assert_eq!(composed(&args(true), empty, &author).unwrap(), "");
        }
        let control = "Control: newgroup a.b\n\n";
        assert!(composed(&args(true), control, &Author::default()).unwrap() != "");
    }

    /// Where the environment says nobody there was no From: INN asks the database of users.
    #[test]
    fn who_has_written_it() {
        let account = |full_name| Account {
            name: "ada".to_owned(),
            full_name,
        };
        for (user, name, full_name, expected) in [
            (None, None, None, "ada@h.example"),
            (None, None, some("Ada L"), "Ada L <ada@h.example>"),
            (None, some("Me"), some("Ada L"), "Me <ada@h.example>"),
            (some("ada"), None, some("Ada L"), "Ada L <ada@h.example>"),
            (some("bob"), None, some("Ada L"), "bob@h.example"),
            (
                None,
                None,
                some(r#"A. "L" \ (x)"#),
                r#""A. \"L\" \\ (x)" <ada@h.example>"#,
            ),
            (None, some(r#""A. L""#), None, r#""A. L" <ada@h.example>"#),
        ] {
            let got = from((user, name), Some(account(full_name)), "h.example");
            assert_eq!(got.as_deref(), Some(expected));
        }
        assert_eq!(from((None, None), None, "h.example"), None);
    }

    #[test]
    fn logins_are_those_of_passwd_nntp() {
        let text = "# localhost:no:no\n\nmit.example:bbn:mypasswd\nUUNET.example:bbn:yoyoma:authinfo\n\
                    other.example:a:b:kerberos\nempty.example::x\nmit.example:second:x\nbad\n";
        for (host, login) in [
            ("mit.example", Some(("bbn", "mypasswd"))),
            ("uunet.EXAMPLE", Some(("bbn", "yoyoma"))),
            ("other.example", None),
            ("empty.example", None),
            ("localhost", None),
            ("bad", None),
        ] {
            let found = login_of(text, host);
            let login = login.map(|(name, password)| (name.to_owned(), password.to_owned()));
            assert_eq!(found, login, "{host}");
        }
    }

    #[test]
    fn what_is_refused_here() {
        let author = Author::default();
        let refused = |args: &Args, text: &str| composed(args, text, &author).unwrap_err();
        let two_lines = Args {
            subject: some("a\nControl: x"),
            ..Args::default()
        };
        assert!(refused(&two_lines, "x\n").contains("Subject"));
        let no_control = Args {
            no_control: true,
            has_header: true,
            ..Args::default()
        };
        assert!(refused(&no_control, "Control: cancel <1@a>\n\nx\n").contains("-R"));
        let long = Author {
            signature: some("1\n2\n3\n4\n5\n"),
            ..Author::default()
        };
        assert!(composed(&Args::default(), "A: b\n\nx\n", &long).is_err());
    }
}
