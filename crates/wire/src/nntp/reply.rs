//! Every reply line of the server: code and text, in one table.
//!
//! A code that has two meanings (211, 215, 481) has a row for each, so a row says exactly what was meant.  The whole line is
//! ready in the program's data: writing a plain reply is one copy.  Replies with arguments are built with [`ReplyLine`];
//! where RFC 3977 gives arguments a place, they come between code and text.

/// One reply: a code, its text, and whether a multi-line block follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reply {
    /// The three digits.
    pub code: u16,
    /// Whether a multi-line block follows the line.
    pub block: bool,
    /// The whole line without arguments, CRLF included.
    pub line: &'static str,
}

macro_rules! replies {
    ($($(#[$doc:meta])* $name:ident $code:literal $kind:ident $text:literal;)*) => {
        $(
            $(#[$doc])*
            pub const $name: Reply = Reply {
                code: $code,
                block: replies!(@$kind),
                line: concat!($code, " ", $text, "\r\n"),
            };
        )*

        /// All of them, by name.
        pub const TABLE: &[(&str, Reply)] = &[$((stringify!($name), $name),)*];
    };
    (@line) => { false };
    (@block) => { true };
}

replies! {
    /// HELP (RFC 3977 section 7.2).
    HELP 100 block "help text follows";
    /// CAPABILITIES (section 5.2).
    CAPABILITIES 101 block "capability list follows";
    /// DATE (section 7.1); the 14 digits stand for the text.
    DATE 111 line "server date and time";
    /// Greeting and MODE READER (sections 5.1 and 5.3).
    POSTING_ALLOWED 200 line "newsreel ready, posting allowed";
    /// Greeting and MODE READER (sections 5.1 and 5.3).
    POSTING_PROHIBITED 201 line "newsreel ready, posting prohibited";
    /// MODE STREAM (RFC 4644 section 2.3).
    STREAMING 203 line "streaming permitted";
    /// QUIT (RFC 3977 section 5.4).
    CLOSING 205 line "closing connection";
    /// GROUP (section 6.1.1): count, low, high, name.
    GROUP 211 line "group selected";
    /// LISTGROUP (section 6.1.2): count, low, high, name, then the numbers.
    LISTGROUP 211 block "article numbers follow";
    /// LIST in all its forms (section 7.6).
    LIST 215 block "list follows";
    /// ARTICLE (section 6.2.1): number, message-id.
    ARTICLE 220 block "article follows";
    /// HEAD (section 6.2.2): number, message-id.
    HEAD 221 block "headers follow";
    /// XHDR (RFC 2980 section 2.6).
    XHDR 221 block "header follows";
    /// BODY (RFC 3977 section 6.2.3): number, message-id.
    BODY 222 block "body follows";
    /// STAT, NEXT, LAST (sections 6.1.3, 6.1.4, 6.2.4): number, message-id.
    ARTICLE_EXISTS 223 line "article exists";
    /// OVER, XOVER (section 8.3).
    OVERVIEW 224 block "overview information follows";
    /// HDR (section 8.5).
    HDR 225 block "headers follow";
    /// NEWNEWS (section 7.4).
    NEWNEWS 230 block "list of new articles follows";
    /// NEWGROUPS (section 7.3).
    NEWGROUPS 231 block "list of new newsgroups follows";
    /// IHAVE, second stage (section 6.3.2).
    TRANSFERRED 235 line "article transferred, thank you";
    /// CHECK (RFC 4644 section 2.4): message-id.
    CHECK_WANTED 238 line "send article";
    /// TAKETHIS (section 2.5): message-id.
    TAKETHIS_RECEIVED 239 line "article received, thank you";
    /// POST, second stage (RFC 3977 section 6.3.1).
    POSTED 240 line "article received, thank you";
    /// AUTHINFO (RFC 4643 section 2.3).
    AUTHENTICATED 281 line "authentication accepted";
    /// IHAVE, first stage (RFC 3977 section 6.3.2).
    IHAVE_SEND 335 line "send article";
    /// POST, first stage (section 6.3.1).
    POST_SEND 340 line "send article";
    /// AUTHINFO USER (RFC 4643 section 2.3).
    PASSWORD_REQUIRED 381 line "enter password";
    /// STARTTLS (RFC 4642 section 2.2).
    TLS_CONTINUE 382 line "continue with TLS negotiation";
    /// Any time before the connection is closed from our side (RFC 3977 section 3.2.1).
    UNAVAILABLE 400 line "service temporarily unavailable";
    /// The session is in the wrong mode (section 3.2.1): the capability that would switch it.
    WRONG_MODE 401 line "wrong mode for this command";
    /// A fault of ours (section 3.2.1).
    INTERNAL_FAULT 403 line "internal fault, try again later";
    /// GROUP, LISTGROUP (sections 6.1.1 and 6.1.2).
    NO_SUCH_GROUP 411 line "no such newsgroup";
    /// A command that needs a selected group (section 6.1).
    NO_GROUP_SELECTED 412 line "no newsgroup selected";
    /// The current article number is invalid (section 6.1).
    NO_CURRENT_ARTICLE 420 line "no current article selected";
    /// NEXT (section 6.1.4).
    NO_NEXT_ARTICLE 421 line "no next article in this group";
    /// LAST (section 6.1.3).
    NO_PREVIOUS_ARTICLE 422 line "no previous article in this group";
    /// No article has the number, or one in the range (section 6.2).
    NO_SUCH_NUMBER 423 line "no article with that number";
    /// No article has the message-id (section 6.2).
    NO_SUCH_MESSAGE_ID 430 line "no article with that message-id";
    /// CHECK (RFC 4644 section 2.4): message-id.
    CHECK_LATER 431 line "try again later";
    /// IHAVE, first stage (RFC 3977 section 6.3.2).
    IHAVE_NOT_WANTED 435 line "article not wanted";
    /// IHAVE, either stage (section 6.3.2).
    IHAVE_LATER 436 line "transfer not possible, try again later";
    /// IHAVE, second stage (section 6.3.2).
    IHAVE_REJECTED 437 line "article rejected, do not try again";
    /// CHECK (RFC 4644 section 2.4): message-id.
    CHECK_NOT_WANTED 438 line "article not wanted";
    /// TAKETHIS (section 2.5): message-id.
    TAKETHIS_REJECTED 439 line "article rejected, do not try again";
    /// POST, first stage (RFC 3977 section 6.3.1).
    POSTING_NOT_PERMITTED 440 line "posting not permitted";
    /// POST, second stage (section 6.3.1).
    POSTING_FAILED 441 line "posting failed";
    /// The command needs authentication (RFC 4643 section 2.2).
    AUTHENTICATION_REQUIRED 480 line "authentication required";
    /// Wrong name or password (RFC 4643 section 2.3).
    AUTHENTICATION_FAILED 481 line "authentication failed";
    /// AUTHINFO PASS before USER (RFC 4643 section 2.3).
    AUTHENTICATION_SEQUENCE 482 line "authentication commands issued out of sequence";
    /// The command needs TLS (RFC 4643 section 2.2).
    ENCRYPTION_REQUIRED 483 line "encryption required";
    /// Unknown command (RFC 3977 section 3.2.1).
    UNKNOWN_COMMAND 500 line "unknown command";
    /// Known command, wrong arguments (section 3.2.1).
    SYNTAX_ERROR 501 line "syntax error";
    /// A line longer than the limit, or with octets no line may have (section 3.1).
    BAD_LINE 501 line "line too long or with forbidden octets";
    /// The client may not do this, and authenticating would not help (section 3.2.1).
    ACCESS_DENIED 502 line "access denied";
    /// The greeting of a server that does not serve this client (section 5.1).
    CONNECTION_REFUSED 502 line "access denied, closing connection";
    /// A part of a known command that we do not have (section 3.2.1).
    NOT_SUPPORTED 503 line "feature not supported";
    /// A base64 argument is malformed (section 3.2.1).
    BASE64_ERROR 504 line "base64 encoding error";
    /// STARTTLS (RFC 4642 section 2.2).
    TLS_UNAVAILABLE 580 line "cannot start TLS";
}

/// Octets of a code and the space behind it.
const CODE_OCTETS: usize = 4;

impl Reply {
    /// The text behind the code, without CRLF.
    #[must_use]
    pub fn text(&self) -> &'static str {
        self.line
            .get(CODE_OCTETS..)
            .unwrap_or_default()
            .trim_ascii_end()
    }

    /// Appends the line as it stands.
    #[inline]
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.line.as_bytes());
    }

    /// Appends code and one argument, as most streaming replies are: `238 <1@a.example>`.
    #[inline]
    pub fn write_with(&self, argument: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(self.line.as_bytes().get(..CODE_OCTETS).unwrap_or_default());
        out.extend_from_slice(argument);
        out.extend_from_slice(b"\r\n");
    }

    /// Appends the code and goes on with arguments.
    pub fn begin<'o>(&self, out: &'o mut Vec<u8>) -> ReplyLine<'o> {
        out.extend_from_slice(
            self.line
                .as_bytes()
                .get(..CODE_OCTETS - 1)
                .unwrap_or_default(),
        );
        ReplyLine { reply: *self, out }
    }
}

/// A reply line being written: each part brings its own space.
#[derive(Debug)]
#[must_use = "a reply line needs its end"]
pub struct ReplyLine<'o> {
    reply: Reply,
    out: &'o mut Vec<u8>,
}

impl ReplyLine<'_> {
    /// One argument.  Control characters in it become `?`, so that it can never end the line.
    pub fn argument(self, argument: &[u8]) -> Self {
        self.out.push(b' ');
        self.out.extend(
            argument
                .iter()
                .map(|&octet| if octet < b' ' { b'?' } else { octet }),
        );
        self
    }

    /// A number as argument.
    pub fn number(self, number: u64) -> Self {
        self.out.push(b' ');
        self.out
            .extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
        self
    }

    /// The text of the table.
    pub fn text(self) -> Self {
        let text = self.reply.text();
        self.argument(text.as_bytes())
    }

    /// CRLF.
    pub fn end(self) {
        self.out.extend_from_slice(b"\r\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nntp::line::COMMAND_OCTETS_MAX;

    #[test]
    fn every_row_is_a_reply_line() {
        for (name, reply) in TABLE {
            let line = reply.line;
            assert!((100..600).contains(&reply.code), "{name}");
            assert!(
                line.starts_with(&format!("{} ", reply.code)) && line.ends_with("\r\n"),
                "{name}"
            );
            assert!(
                !reply.text().is_empty()
                    && reply
                        .text()
                        .bytes()
                        .all(|octet| (b' '..0x7f).contains(&octet)),
                "{name}"
            );
            assert!(line.len() <= COMMAND_OCTETS_MAX, "{name}");
            assert!(
                !reply.block || reply.code < 300,
                "{name}: only success is followed by a block"
            );
        }
    }

    #[test]
    fn rows_of_one_code_differ_in_text_or_block() {
        for (at, (name, reply)) in TABLE.iter().enumerate() {
            for (other_name, other) in &TABLE[at + 1..] {
                assert_ne!(name, other_name);
                assert_ne!(reply, other, "{name} and {other_name}");
            }
        }
    }

    #[test]
    fn lines_with_arguments() {
        let mut out = Vec::new();
        CLOSING.write(&mut out);
        CHECK_WANTED.write_with(b"<1@a.example>", &mut out);
        GROUP
            .begin(&mut out)
            .number(2)
            .number(1)
            .number(7)
            .argument(b"misc.test")
            .end();
        ARTICLE
            .begin(&mut out)
            .number(0)
            .argument(b"<1@a\r\n>")
            .text()
            .end();
        let expected = "205 closing connection\r\n238 <1@a.example>\r\n211 2 1 7 misc.test\r\n220 0 <1@a??> article follows\r\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
