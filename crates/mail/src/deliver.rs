//! How one mail is handed on: to a program that takes it on its standard input, or to a mail server.
//!
//! No shell is involved: the program's arguments are words of the configuration, and the recipient is one word of them
//! that was checked to be an address.  Both ways have a time limit.

use std::fmt;
use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use newsreel_host::process::{has_ended, kill_group};
use newsreel_service::posting::{Mail, ModerationConfig};
use thiserror::Error as ThisError;

use crate::smtp::Smtp;

/// Why a mail could not be handed on.
#[derive(Debug, ThisError)]
#[error("{why}")]
pub struct Undelivered {
    why: String,
    /// Whether it is the mail that is not wanted: the same one would be refused another time, too.
    pub is_for_good: bool,
}

impl Undelivered {
    /// For this reason, which another time may not hold.
    pub fn new(why: impl fmt::Display) -> Self {
        Self {
            why: why.to_string(),
            is_for_good: false,
        }
    }

    /// For this reason, which lies in the mail.
    pub fn for_good(why: impl fmt::Display) -> Self {
        Self {
            is_for_good: true,
            ..Self::new(why)
        }
    }
}

/// A way to hand mails on.
pub trait Deliver: Send + Sync + fmt::Debug {
    /// Hands one mail on, and waits until that is done.
    ///
    /// # Errors
    /// Why it was not.
    fn deliver(&self, mail: &Mail) -> Result<(), Undelivered>;
}

/// The way that the configuration asks for.
#[must_use]
pub fn deliver_by(config: &ModerationConfig) -> Box<dyn Deliver> {
    let limit = Duration::from_secs(config.attempt_s_max);
    match config.smtp.parse() {
        Ok(server) => Box::new(Smtp { server, limit }),
        Err(_) => Box::new(Program {
            words: config
                .sendmail
                .split_whitespace()
                .map(str::to_owned)
                .collect(),
            limit,
        }),
    }
}

/// A program such as sendmail.
#[derive(Debug)]
pub struct Program {
    /// Its path and its arguments; `%s` is the recipient, `%f` the envelope sender.
    pub words: Vec<String>,
    /// It is killed after this, with what it started.
    pub limit: Duration,
}

/// How a program ends that refuses the mail and not the hour (sysexits.h): its data, its recipient, that one's host.
const REFUSED_FOR_GOOD: [i32; 3] = [65, 67, 68];

/// How often it is looked whether a program has ended.
const LOOK_EVERY: Duration = Duration::from_millis(20);

impl Program {
    fn start(&self, mail: &Mail) -> Result<Child, Undelivered> {
        let (path, arguments) = self
            .words
            .split_first()
            .ok_or_else(|| Undelivered::new("no program is configured"))?;
        let arguments = arguments.iter().map(|word| match word.as_str() {
            "%s" => mail.to.as_str(),
            "%f" => mail.sender.as_str(),
            word => word,
        });
        Command::new(path)
            .args(arguments)
            .stdin(Stdio::piped())
            .process_group(0)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| Undelivered::new(format_args!("cannot run {path}: {error}")))
    }

    /// Waits for the program's end, and brings it about when it is late; then, and when it has not read all, that of what it started, too:
    /// whoever holds its input must not hold us up.
    fn wait(
        &self,
        child: &mut Child,
        is_written: impl Fn() -> bool,
    ) -> Result<ExitStatus, Undelivered> {
        let mut waited = Duration::ZERO;
        loop {
            match has_ended(child.id()) {
                Ok(true) => {
                    // What it read may be written of just now.
                    std::thread::sleep(LOOK_EVERY);
                    if !is_written() {
                        kill_group(child.id());
                    }
                    return child.wait().map_err(Undelivered::new);
                }
                Ok(false) if waited < self.limit => {}
                Ok(false) => {
                    kill_group(child.id());
                    let _ = child.wait();
                    let limit_s = self.limit.as_secs();
                    return Err(Undelivered::new(format_args!(
                        "the program had not ended after {limit_s} s and was killed"
                    )));
                }
                Err(error) => return Err(Undelivered::new(error)),
            }
            std::thread::sleep(LOOK_EVERY);
            waited += LOOK_EVERY;
        }
    }
}

impl Deliver for Program {
    fn deliver(&self, mail: &Mail) -> Result<(), Undelivered> {
        let mut child = self.start(mail)?;
        let input = child.stdin.take();
        // Programs of this kind read lines that end in LF.
        let mut text = mail.text.clone();
        text.retain(|octet| *octet != b'\r');
        // A program that does not read must not hold us up: it is written to beside the wait.
        let (status, written) = std::thread::scope(|scope| {
            let writing = scope.spawn(move || match input {
                Some(mut input) => input.write_all(&text),
                None => Ok(()),
            });
            let status = self.wait(&mut child, || writing.is_finished());
            (status, writing.join())
        });
        match (status?, written) {
            (status, Ok(Ok(()))) if status.success() => Ok(()),
            (status, Ok(Err(error))) if status.success() => Err(Undelivered::new(format_args!(
                "the program did not read the whole mail: {error}"
            ))),
            (status, _) => {
                let why = format!("the program ended with {status}");
                let code = status.code().unwrap_or_default();
                Err(match REFUSED_FOR_GOOD.contains(&code) {
                    true => Undelivered::for_good(why),
                    false => Undelivered::new(why),
                })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader};
    use std::net::TcpListener;

    use newsreel_host::{RealDisk, read_whole};

    use super::*;
    use crate::format::tests::mail;

    fn shell(script: &str, limit: Duration) -> Program {
        let words = ["/bin/sh", "-c", script, "sh", "%s", "%f"];
        Program {
            words: words.map(str::to_owned).to_vec(),
            limit,
        }
    }

    /// Whether it does something: one that nobody has waited for does not.
    #[expect(clippy::disallowed_methods, reason = "looks at a process")]
    fn is_running(pid: u32) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
        stat.is_ok_and(|stat| !stat.contains(") Z "))
    }

    fn ends(pid: u32) -> bool {
        (0..100).any(|_| {
            std::thread::sleep(LOOK_EVERY);
            !is_running(pid)
        })
    }

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn a_program_gets_the_mail_and_the_recipient() {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("out");
        let script = format!("echo \"$1 $2\" > {0}; cat >> {0}", out.display());
        shell(&script, LONG).deliver(&mail("<1@a>")).unwrap();
        let got = read_whole(&RealDisk, &out, 1000).unwrap();
        let text = "mod@m.example usenet@a.example\nTo: mod@m.example\nSubject: s\n\n.\n";
        assert_eq!(got, [text.as_bytes(), b"\xff\n"].concat());
    }

    #[test]
    fn programs_that_fail_hang_or_are_not_there() {
        let fails = |program: Program, why: &str| {
            let mut large = mail("<1@a>");
            large.text = vec![b'x'; 1 << 20];
            let error = program.deliver(&large).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        };
        fails(shell("cat > /dev/null; exit 75", LONG), "75");
        for (status, is_for_good) in [(65, true), (67, true), (68, true), (69, false), (75, false)]
        {
            let refuses = shell(&format!("cat > /dev/null; exit {status}"), LONG);
            let error = refuses.deliver(&mail("<1@a>")).unwrap_err();
            assert_eq!(error.is_for_good, is_for_good, "{status}");
        }
        fails(shell("exit 0", LONG), "did not read");
        fails(shell("exec sleep 60", Duration::from_millis(100)), "killed");
        // What a program leaves behind that neither reads nor ends holds nobody up.
        // A shell gives what it starts beside itself no input but by another number.
        let left = "exec 3<&0; sleep 600 <&3 & echo $! > \"$PID\"";
        let folder = tempfile::tempdir().unwrap();
        let pid = folder.path().join("pid");
        let left = left.replace("$PID", &pid.display().to_string());
        fails(shell(&left, LONG), "did not read");
        let number = |pid: &std::path::Path| {
            let text = read_whole(&RealDisk, pid, 100).unwrap();
            let text = String::from_utf8(text).unwrap();
            text.trim().parse().unwrap()
        };
        assert!(ends(number(&pid)));
        // Of one that is late nothing is left.
        let late = format!("sleep 600 & echo $! > {}; wait", pid.display());
        fails(shell(&late, Duration::from_millis(300)), "killed");
        assert!(ends(number(&pid)));
        let none = Program {
            words: vec!["/no/such/program".to_owned()],
            limit: LONG,
        };
        fails(none, "/no/such/program");
    }

    /// One conversation of a mail server that answers EHLO and RCPT so; the lines that it was told, without their CRLF.
    fn serve_one(listener: &TcpListener, (ehlo, rcpt): (&str, &str)) -> Vec<String> {
        let (mut stream, _) = listener.accept().unwrap();
        let mut lines = BufReader::new(stream.try_clone().unwrap()).split(b'\n');
        let mut said = Vec::new();
        let mut in_data = false;
        stream.write_all(b"220 mail.example\r\n").unwrap();
        while let Some(Ok(line)) = lines.next() {
            let line = String::from_utf8_lossy(&line).into_owned();
            let line = line
                .strip_suffix('\r')
                .expect("CR before each LF")
                .to_owned();
            let answer = match line.as_str() {
                "." => "250 taken",
                _ if in_data => "",
                "DATA" => "354 go on",
                line if line.starts_with("RCPT") => rcpt,
                line if line.starts_with("EHLO") => ehlo,
                "QUIT" => "221 bye",
                _ => "250 fine",
            };
            let answer = match answer {
                "" => String::new(),
                answer => format!("{answer}\r\n"),
            };
            in_data = line == "DATA" || in_data && line != ".";
            said.push(line.clone());
            if stream.write_all(answer.as_bytes()).is_err() || line == "QUIT" {
                break;
            }
        }
        said
    }

    const EHLO: &str = "250-mail.example\r\n250 8BITMIME";

    /// What it got was one empty line longer than the article.
    #[test]
    fn a_mail_server_gets_envelope_and_text() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let smtp = Smtp {
            server: listener.local_addr().unwrap(),
            limit: LONG,
        };
        std::thread::scope(|scope| {
            let served = scope.spawn(|| serve_one(&listener, (EHLO, "250 fine")));
            smtp.deliver(&mail("<1@a>")).unwrap();
            let said = served.join().unwrap();
            let has = |line: &str| said.iter().any(|one| one.starts_with(line));
            assert!(has("MAIL FROM:<usenet@a.example>"), "{said:?}");
            assert!(has("RCPT TO:<mod@m.example>"), "{said:?}");
            let begin = said.iter().position(|line| line == "DATA").unwrap();
            let text = ["To: mod@m.example", "Subject: s", "", "..", "\u{fffd}", "."];
            assert_eq!(said[begin + 1..begin + 7], text);
        });
    }

    #[test]
    fn a_mail_server_that_refuses_or_is_not_there() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = listener.local_addr().unwrap();
        let smtp = Smtp {
            server,
            limit: LONG,
        };
        for (answers, why, is_for_good) in [
            ((EHLO, "451 not now"), "not now", false),
            ((EHLO, "550 nobody here"), "nobody here", true),
            (("250 mail.example", "250 fine"), "8BITMIME", true),
        ] {
            std::thread::scope(|scope| {
                scope.spawn(|| serve_one(&listener, answers));
                let error = smtp.deliver(&mail("<1@a>")).unwrap_err();
                assert!(error.to_string().contains(why), "{error}");
                assert_eq!(error.is_for_good, is_for_good, "{error}");
            });
        }
        drop(listener);
        let error = smtp.deliver(&mail("<1@a>")).unwrap_err();
        assert!(!error.is_for_good, "{error}");
        let no_address = Mail {
            to: "mod@".to_owned(),
            ..mail("<1@a>")
        };
        assert!(smtp.deliver(&no_address).unwrap_err().is_for_good);
    }
}
