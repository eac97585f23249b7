//! Filters beside a running server: what peers and posters are told, what is kept, and INN's Perl filters.

use std::path::Path;

use newsreel_host::{Disk as _, RealDisk, replace_file};
use serde_json::json;

use crate::client::{NewsClient, article};
use crate::spool::Spool;

/// Judges by a word in the article, and dies of another for ever.
const JUDGE: &str = r#"test -e "$0.dead" && exit 1
echo "newsreel-filter 1"
while read -r _ number octets kind from; do
    case $(head -c "$octets") in
        *spam@t.example*) echo "$number reject EMP (md5)" ;;
        *drop@t.example*) echo "$number drop" ;;
        *die@t.example*) : > "$0.dead"; exit 1 ;;
        *who@t.example*) echo "$number reject $kind from $from" ;;
        *) echo "$number accept" ;;
    esac
done
"#;

/// A configuration with one filter, which a shell runs.
fn filter(folder: &Path, name: &str, script: &str, more: &str) -> String {
    let path = folder.join(name);
    replace_file(&RealDisk, &path, script.as_bytes()).unwrap();
    let path = path.display();
    format!("[[filter]]\nname = '{name}'\nprogram = '/bin/sh {path}'\n{more}\n")
}

fn ihave(client: &mut NewsClient, id: &str) -> String {
    assert!(client.ask(&format!("IHAVE {id}")).starts_with("335"));
    client.send(article(id, "misc.test").as_bytes());
    client.line()
}

fn post(client: &mut NewsClient, id: &str) -> String {
    assert!(client.ask("POST").starts_with("340"));
    let text = format!(
        "From: a@b.example\r\nNewsgroups: misc.test\r\nSubject: s\r\nMessage-ID: {id}\r\n\r\nx\r\n.\r\n"
    );
    client.send(text.as_bytes());
    client.line()
}

/// Every code that a verdict can be, in the order in which a client asks.
#[test]
fn peers_and_posters_are_told() {
    let spool = Spool::new();
    let filter = filter(spool.folder(), "judge", JUDGE, "when_down = 'defer'");
    spool.configure(&(Spool::changed(&[]) + &filter));
    let server = spool.serve();
    spool.text(&["group", "add", "misc.test"]);
    let mut client = NewsClient::connect(server.address);
    let takethis = |client: &mut NewsClient, id: &str| client.takethis(id, "misc.test");
    assert_eq!(takethis(&mut client, "<1@t.example>"), "239 <1@t.example>");
    let refused = takethis(&mut client, "<spam@t.example>");
    assert_eq!(refused, "439 <spam@t.example> EMP (md5)");
    assert_eq!(ihave(&mut client, "<spam@t.example>"), "437 EMP (md5)");
    assert_eq!(post(&mut client, "<spam@t.example>"), "441 EMP (md5)");
    assert_eq!(
        ihave(&mut client, "<who@t.example>"),
        "437 feed from 127.0.0.1"
    );
    assert_eq!(
        post(&mut client, "<who@t.example>"),
        "441 post from 127.0.0.1"
    );
    // It was taken, as far as anybody is told, and is not here.
    assert_eq!(
        takethis(&mut client, "<drop@t.example>"),
        "239 <drop@t.example>"
    );
    assert!(client.ask("STAT <drop@t.example>").starts_with("430"));
    assert!(client.ask("STAT <1@t.example>").starts_with("223"));
    assert_eq!(client.ask("GROUP misc.test"), "211 1 1 1 misc.test");
    let put_off = ihave(&mut client, "<die@t.example>");
    assert_eq!(put_off, "436 Try again: what judges articles is down");
    assert!(post(&mut client, "<2@t.example>").starts_with("441 Try again: "));
    let put_off = takethis(&mut client, "<2@t.example>");
    assert_eq!(
        put_off,
        "400 Cannot take articles now: what judges articles is down"
    );
    assert_eq!(client.line(), "", "the connection ends");
    let status = spool.json(&["status"]);
    assert_eq!(status["counters"]["dropped"], 1);
    let refused = &status["server"]["sessions"]["articles_refused"];
    assert_eq!(refused["filtered"], 5, "{status}");
    let counts = &status["filters"][0];
    assert_eq!(
        (&counts["name"], &counts["accepted"]),
        (&json!("judge"), &json!(1))
    );
    assert_eq!(
        (&counts["rejected"], &counts["dropped"]),
        (&json!(5), &json!(1))
    );
    assert_eq!(counts["unjudged"], 3);
    let said = spool.text(&["status"]);
    let words = "judge: accepted 1, dropped 1, rejected 5, unjudged 3";
    assert!(said.contains(words), "{said}");
    server.stop();
    let log = spool.log();
    assert!(log.contains("it closed its output"), "{log}");
}

/// A filter as people have it for INN, with what cleanfeed uses of its hooks.
const INN_FILTER: &str = r#"
use strict;
use vars qw(%hdr %seen);
sub filter_after_reload { INN::syslog('notice', 'reloaded'); %seen = () }
sub filter_art {
    return 'Loop' if INN::havehist($hdr{'Message-ID'});
    my $body = $hdr{__BODY__};
    return "Seen ($hdr{__LINES__} lines)" if $seen{$body}++;
    return "From\r\n$hdr{From}" if $hdr{Subject} =~ /MAKE MONEY\tFAST/i;
    die "what is this\n" if $body =~ /die/;
    return '';
}
# INN asks for no true value at the end.
"#;

#[test]
fn filters_of_inn_judge() {
    if !RealDisk.exists(Path::new("/usr/bin/perl")).unwrap() {
        println!("skipped: there is no /usr/bin/perl");
        return;
    }
    let spool = Spool::new();
    let file = spool.folder().join("filter_innd.pl");
    replace_file(&RealDisk, &file, INN_FILTER.as_bytes()).unwrap();
    let adapter = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../contrib/filter/inn-filter");
    let config = format!(
        "{}[[filter]]\nname = 'inn'\nprogram = '/usr/bin/perl {} {}'\nwhen_down = 'defer'\n",
        Spool::changed(&[]),
        adapter.display(),
        file.display()
    );
    spool.configure(&config);
    let server = spool.serve();
    spool.text(&["group", "add", "misc.test"]);
    let mut client = NewsClient::connect(server.address);
    let mut send = |id: &str, subject: &str, body: &str| {
        let text = article(id, "misc.test");
        let text = text.replace("Subject: a test", &format!("Subject: {subject}"));
        let text = text.replace(&format!("body of {id}"), body);
        client.send(format!("TAKETHIS {id}\r\n{text}").as_bytes());
        client.line()
    };
    assert_eq!(
        send("<1@t.example>", "a test", "one\r\n..two"),
        "239 <1@t.example>"
    );
    let again = send("<2@t.example>", "another", "one\r\n..two");
    assert_eq!(again, "439 <2@t.example> Seen (2 lines)");
    // A folded field is one line of text, and a reason one line of a reply.
    let folded = send("<3@t.example>", "make money\r\n\tfast", "three");
    assert_eq!(folded, "439 <3@t.example> From a@example.org");
    assert_eq!(send("<4@t.example>", "a test", "die"), "239 <4@t.example>");
    assert_eq!(send("<5@t.example>", "a test", "five"), "239 <5@t.example>");
    // INN's own spelling stands in front of it, whatever the article's is.
    let text = article("<6@t.example>", "misc.test");
    let text = text.replace("Subject: a test", "sUBJECT: make money\r\n\tfast");
    let text = text.replace("From: ", "FROM: ");
    client.send(format!("TAKETHIS <6@t.example>\r\n{text}").as_bytes());
    assert_eq!(client.line(), "439 <6@t.example> From a@example.org");
    server.stop();
}
