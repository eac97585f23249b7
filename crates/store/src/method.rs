//! What a storage method must do, seen from the sequencer, the commit thread, readers and tools.
//!
//! The sequencer places articles into memory, batch by batch; the commit thread writes and syncs batches; readers ask
//! by token, at any time, on any thread.  One trait for each.  What they promise together is in
//! [`conformance`](crate::conformance), which every method passes.

use std::borrow::Cow;
use std::fmt::Debug;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use newsreel_wire::{BufferId, IdHash, Position, Sequence, SetId, Token, UnixTime};

use crate::addition::NewBuffer;
use crate::config::FileFormat;
use crate::error::{PlaceError, ReadError, Result};
use crate::facts::BufferFacts;
use crate::files::holes::Hole;
use crate::files::lent::Lent;
use crate::files::loose::PassedOver;
use crate::files::restore::{Cards, Written};
use crate::methods::cnfs::Resizing;

/// What takes nothing because its disk failed is tried again after so many seconds.
pub(crate) const TRIED_AGAIN_AFTER_S: u64 = 60;

/// An article that needs a place.
#[derive(Debug, Clone, Copy)]
pub struct Place<'a> {
    /// Its place in the log.
    pub sequence: Sequence,
    /// When it arrived.
    pub arrival: UnixTime,
    /// The hash of its message-id.
    pub id_hash: IdHash,
    /// Its message-id, angle brackets included.
    pub id: &'a [u8],
    /// The set the rules chose.
    pub set: SetId,
    /// The form of its file, where each article is one; none: what the set says.
    pub format: Option<FileFormat>,
    /// The content of its Xref: a server's name, and `group:number` for each place.  Empty where nothing is filed.
    pub xref: &'a [u8],
    /// Its final text in wire form, terminator included, in pieces.
    pub article: &'a [&'a [u8]],
    /// Octets of the header block, empty line not included.
    pub head_len: u32,
}

/// A region of a buffer that may be overwritten once the log says so durably: what lies one cycle before is gone then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reservation {
    /// The buffer.
    pub buffer: BufferId,
    /// Up to here it may be written.
    pub up_to: Position,
}

/// Where a buffer stands: what the log must keep to go on after a restart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Marks {
    /// The buffer.
    pub buffer: BufferId,
    /// Behind the last placed article.
    pub end: Position,
    /// Up to here it may be written.
    pub reserved: Position,
    /// Here an article begins of which others know than the log: it goes on behind that one, at least.
    pub known: Option<Position>,
}

impl Marks {
    /// Those of a buffer among these.
    pub(crate) fn of(marks: &[Self], buffer: BufferId) -> Option<&Self> {
        marks.iter().find(|marks| marks.buffer == buffer)
    }
}

/// Where the last article of a buffer begins of which the log knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LastKnown {
    /// The buffer.
    pub buffer: BufferId,
    /// That of the last checkpoint.
    pub sealed: Position,
    /// That, or one behind it.
    pub last: Position,
}

/// Who knows something of an article whose record is damaged.
pub trait Witness {
    /// Whether the log has it under this sequence.
    fn is_logged(&self, sequence: Sequence) -> bool;

    /// The sequence under which the log has it, if all that is known of it agrees with this text.
    fn vouches(&self, text: &[u8]) -> Option<Sequence>;
}

/// What writes the header of a damaged record again.
#[derive(Debug)]
pub struct HeaderWrite {
    /// Writes it, with the next commit.
    pub write: Box<dyn BatchWrite>,
    /// Nothing was left of it: there is no checksum with which the text could be compared.
    pub is_vouched: bool,
}

/// What the log does not have, though it may have had it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Missing {
    /// The last sequence that it has in front of it.
    pub last: Sequence,
    /// The sequence with which it goes on; none at its end.
    pub before: Option<Sequence>,
    /// No article is longer, octets: so far a damaged record may hide the next.
    pub article_octets_max: u64,
    /// No commit holds more, but for one article, octets.
    pub commit_octets_max: u64,
    /// More than what an unfinished commit leaves is known to be missing.
    pub is_hurt: bool,
}

/// What lies in a buffer and the log does not have: commits that were not finished, or whose frames are damaged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Left {
    /// The buffer.
    pub buffer: BufferId,
    /// Its articles and their places in the log, in order.  Their headers are sound; they must be read.
    pub articles: Vec<(Sequence, Token)>,
    /// Behind the last of them.
    pub end: Position,
    /// Up to here it may have been reserved, as its files say.
    pub reserved: Position,
    /// In front of them or between them something cannot be read.
    pub has_gaps: bool,
    /// So does something behind the last of them: torn, or damaged.
    pub has_remains: bool,
}

/// The sequencer's half of one buffer set.
pub trait StorageMethod: Send + Debug {
    /// Gives the article a place and copies it into the open batch.
    fn place(&mut self, place: &Place<'_>) -> std::result::Result<Token, PlaceError>;

    /// Gives an article a place that stays where it lies, where `lies_at` of its reader says.  Only sets of articles of another spool are asked.
    fn refer(
        &mut self,
        _place: &Place<'_>,
        _lies_at: &str,
    ) -> std::result::Result<Token, PlaceError> {
        Err(PlaceError::NoSet)
    }

    /// Appends what must be reserved so that coming batches have room, and what may go by now; asked once a batch, before
    /// it is sealed.  Without a time to judge by nothing goes by its age.
    fn reservations(&mut self, now: Option<UnixTime>, out: &mut Vec<Reservation>);

    /// It is this time, and nothing was placed yet: what was placed in earlier runs arrived before.
    fn began(&mut self, _now: UnixTime) {}

    /// What must be reserved so that its oldest file goes, whatever its limits say; none: there is no other than the one that is
    /// written, or it has no files that go whole.
    fn oldest(&self) -> Option<Reservation> {
        None
    }

    /// A reservation of one of its buffers is durable: publishes the new floor first, then lets the region be
    /// written.
    fn reserved(&mut self, reservation: Reservation);

    /// Appends the collected batches, at most one a buffer.
    fn seal(&mut self, out: &mut Vec<Box<dyn BatchWrite>>);

    /// It has one buffer more, the last of its order.  Only sets of buffers are asked.
    fn add(&mut self, _buffer: NewBuffer) {}

    /// This buffer is not there any more, and nothing was left in it.  Only sets of buffers are asked.
    fn remove(&mut self, _buffer: BufferId) {}

    /// One of its buffers gets another size; `None`: it is none of them.  Only sets of buffers are asked.
    fn resize(&mut self, _resizing: &Resizing) -> Option<Result<()>> {
        None
    }

    /// Takes a buffer out of use; what is in it can still be read.
    fn suspend(&mut self, buffer: BufferId, why: &str);

    /// Appends where each buffer stands, the open batch included.
    fn marks(&self, out: &mut Vec<Marks>);

    /// An article that the log has since the last checkpoint, told during recovery, in order.
    fn replayed(&mut self, token: &Token);

    /// Articles that the log has withdrawn durably: tools find them no more, and where the set wants that their text is
    /// overwritten by what is appended to `out`.
    fn withdrawn(&mut self, tokens: &[Token], out: &mut Vec<Box<dyn BatchWrite>>);

    /// Before `resume`: whether a buffer knows of more than the log does.
    fn is_ahead(&self, marks: &[Marks], log_end: Sequence) -> Result<bool>;

    /// Before `resume`: whether a commit that the log does not have may have left something.
    fn may_have_left(&self, marks: &[Marks], missing: Missing) -> Result<bool>;

    /// Before `resume`: appends what each buffer has behind these marks that the log does not; `false` when that is more,
    /// at the end of the log, than the last commits can leave.  There what is torn is cleared away.
    fn left_over(&self, marks: &[Marks], missing: Missing, out: &mut Vec<Left>) -> Result<bool>;

    /// Before `resume`: the log is older than what was there (an old one was put back), so every buffer that was used
    /// is searched for its true end.
    fn distrust(&mut self);

    /// After recovery: each buffer goes on behind its last committed article, those that `marks` do not name at
    /// their beginning.  What was found is made durable, because a crash of the process alone may have left it in
    /// memory only.
    fn resume(&mut self, marks: &[Marks], log_end: Sequence) -> Result<()>;

    /// Behind `resume`, where the log is not known to be too old: looks for buffers that do not have any more what it knows of.
    ///
    /// # Errors
    /// When one cannot be read.
    fn find_lacking(&mut self, _known: &[LastKnown]) -> Result<()> {
        Ok(())
    }

    /// Appends what must be written for tools (headers, bitmaps) about everything placed so far.  It is written on
    /// another thread, when what is placed now is durable in the log, and not before.
    fn checkpoint(&mut self, out: &mut Vec<Box<dyn CheckpointWrite>>);
}

/// A batch on its way to one buffer.  Dropping it gives its memory back to the method.
pub trait BatchWrite: Send + Debug {
    /// The buffer.
    fn buffer(&self) -> BufferId;

    /// Writes it.  A failure suspends the buffer; a batch of a suspended buffer is refused without touching the disk.
    fn write(&mut self) -> Result<()>;

    /// Makes it durable.  A failure suspends the buffer: the kernel has marked the pages clean, so that trying again
    /// would say "done" of what is lost.
    fn sync(&mut self) -> Result<()>;

    /// Whether it brings articles.  What does syncs all that was written of them before, and what does not, nothing of them.
    fn has_articles(&self) -> bool {
        false
    }

    /// An article of this batch, to be placed elsewhere after a failure; none where it brings no articles.
    fn article(&self, _token: &Token) -> Option<KeptArticle<'_>> {
        None
    }
}

/// An article that a batch still has in memory.
#[derive(Debug)]
pub struct KeptArticle<'b> {
    /// Its text in wire form.
    pub text: Cow<'b, [u8]>,
    /// Octets of its header block.
    pub head_len: u32,
    /// The form that its file has, where it is one.
    pub format: Option<FileFormat>,
}

/// Hints about a buffer on their way to it.
pub trait CheckpointWrite: Send + Debug {
    /// Writes and syncs them.
    fn write(&mut self) -> Result<()>;
}

/// How much of an article a reader wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Want {
    /// The header block.
    Head,
    /// Everything.
    Whole,
}

/// Whether a reader waits for the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Blocking {
    /// Only what is in memory.
    No,
    /// Waits.
    Yes,
}

/// Where an article lies in the caller's memory after a read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// The octets read: the whole article in wire form, or its header block.
    pub octets: Range<usize>,
    /// Length of the header block, empty line not included.
    pub head_len: usize,
    /// Its place in the log.
    pub sequence: Sequence,
    /// When it arrived.
    pub arrival: UnixTime,
    /// The hash of its message-id.
    pub id_hash: IdHash,
}

/// An article whose file is not there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Removed {
    /// The hash of its message-id.
    pub id_hash: IdHash,
    /// When it arrived.
    pub arrival: UnixTime,
    /// The content of its Xref.
    pub xref: Vec<u8>,
    /// Its directory is there, and not empty where it might be a file system that is not mounted: so somebody removed it, and
    /// who has opened the spool to write may withdraw it.
    pub is_certain: bool,
}

/// A file that lies in the directory of a set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lying {
    /// Where it lies.
    pub path: PathBuf,
    /// Its length.
    pub octets: u64,
    /// Nothing is mounted above it in that directory, and it does not lie behind a link: so no other path of it leads there.
    pub is_plain: bool,
    /// The symbolic link behind which it lies, below that directory.
    pub link: Option<Arc<Path>>,
}

/// A walk over the files that lie in the directory of a set.
pub trait FileWalk: Send + Debug {
    /// The next file with a name that an article's may have, and in `text` the front of it in wire form; `None` at the end.
    fn step(&mut self, text: &mut Vec<u8>) -> Result<Option<Lying>>;
}

/// Whose a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileOf {
    /// The article's.
    Article,
    /// Nobody's: the article has its file, which is as it was stored, and this one is a copy of its text.
    Copy,
    /// That cannot be told.
    Unknown,
}

/// One buffer as readers, recovery and tools see it.
pub trait BufferReader: Send + Sync + Debug {
    /// Its id in the spool.
    fn id(&self) -> BufferId;

    /// Its name, as in the text form of tokens.
    fn name(&self) -> &str;

    /// The set it belongs to.
    fn set(&self) -> SetId;

    /// Where a file ends that somebody cut and of which what is left is read.
    fn cut_at(&self) -> Option<u64> {
        None
    }

    /// Where what is noted behind a segment, of articles that were withdrawn, is damaged, if that is looked at alone.
    fn notes_damaged_at(&self) -> Option<u64> {
        None
    }

    /// Files in its directory that have no names of articles, and so were not read; none: there are no such.
    fn passed_over(&self) -> Option<PassedOver> {
        None
    }

    /// Looks whether the directory is there that its set has for its files, for who is about to call something lost or to remove it: where
    /// it is not, nothing is taken until it is back.
    ///
    /// # Errors
    /// That it is not there.
    fn look(&self) -> Result<()> {
        Ok(())
    }

    /// Positions below this are gone; it never falls.
    fn floor(&self) -> Position;

    /// Octets from one cycle's start to the next one's, about.
    fn cycle_octets(&self) -> u64;

    /// What an article of so many octets takes of the room there, unless it is packed.
    fn octets_for(&self, article_len: u64) -> u64;

    /// What comes one behind the other, octets, before the first of it is overwritten, at the least; none where nothing is
    /// overwritten.
    fn round_octets(&self) -> Option<u64> {
        None
    }

    /// Reads an article into `memory`, which may be longer than needed and is used again.  What it returns was alive
    /// before and after the copy and passed its checksums.
    fn read(
        &self,
        token: &Token,
        want: Want,
        blocking: Blocking,
        memory: &mut Vec<u8>,
    ) -> std::result::Result<Stored, ReadError>;

    /// What lies from here on will be read soon.  May wait for the disk a little.
    fn will_need(&self, _from: Position, _octets: u64) {}

    /// For recovery: whether the record is whole and is this article, alive or not.
    fn verify(
        &self,
        token: &Token,
        sequence: Sequence,
        id_hash: &IdHash,
        memory: &mut Vec<u8>,
    ) -> std::result::Result<(), ReadError>;

    /// What is known of an article whose file is not there; none where it is there, or no file of its own.
    fn removed(&self, _token: &Token) -> Option<Removed> {
        None
    }

    /// Whether each article has a file of its own, which is removed when it goes.
    fn removes_files(&self) -> bool {
        false
    }

    /// The file of its own that an article has, or should have; none where several share one, or nothing tells it.
    fn file_of(&self, _token: &Token) -> Option<PathBuf> {
        None
    }

    /// The files that lie in the directory of its set, whoever made them; none where articles have no files of their own, or nothing
    /// may be removed.
    fn files(self: Arc<Self>) -> Option<Box<dyn FileWalk>> {
        None
    }

    /// The same, for who only looks.
    fn files_to_look_at(self: Arc<Self>) -> Option<Box<dyn FileWalk>> {
        None
    }

    /// Whether a file in the directory of its set is the file of this article; `front` is the front of it in wire form, or nothing.
    fn is_file_of(&self, _file: &Lying, _front: &[u8], _token: &Token) -> FileOf {
        FileOf::Unknown
    }

    /// The record of the card that an article had, made again from a file, if that card cannot be read any more and this is the file of
    /// the article; of its place all but the text is told.
    fn card_again(&self, _file: &Lying, _place: &Place<'_>, _token: &Token) -> Option<Vec<u8>> {
        None
    }

    /// Where an article lies in this file, as a card in the catalogue of another spool says it; none where no such card leads here.
    fn lies_at(&self, _token: &Token) -> Option<String> {
        None
    }

    /// Whether an article lies in the file of another spool, and the card that leads there cannot be read any more.
    fn lacks_card(&self, _token: &Token) -> bool {
        false
    }

    /// The record of that card, made again, if the article lies here in the file of its set; of its place the text is that of the other spool,
    /// and Xref is ours.
    fn card_of_lent(&self, _lies_at: &str, _place: &Place<'_>, _token: &Token) -> Option<Vec<u8>> {
        None
    }

    /// What writes such cards into their places, and says what became of them; to be carried out on the thread of commits.  None where nothing may be written.
    fn restoring(
        self: Arc<Self>,
        _cards: Cards,
        _written: Arc<Written>,
    ) -> Option<Box<dyn BatchWrite>> {
        None
    }

    /// Where no card can be read though something was written there; nothing where there are no cards, or nothing may be written.
    fn holes(&self) -> Result<Vec<Hole>> {
        Ok(Vec::new())
    }

    /// What closes those, to be [written](Self::restoring), but for the cards of these articles, which are in order of their places.
    fn closed(&self, _holes: &[Hole], _wanted: &[Token]) -> Cards {
        Cards::new()
    }

    /// Whether a file in the directory of its set has this text in wire form, octet for octet.
    fn has_text(&self, _file: &Lying, _text: &[u8]) -> bool {
        false
    }

    /// Whether a path leads to one of the files of this article, or that cannot be told; never where it has none of its own.
    fn may_own(&self, _path: &Path, _token: &Token) -> bool {
        false
    }

    /// Whether a path is one of those at which this article is, or was, to have a file: its card says so.
    fn is_named(&self, _path: &Path, _token: &Token) -> bool {
        false
    }

    /// The directory on the way to a path that somebody has turned over (Usenetfs): what lies in it may lie elsewhere than a card says, and stays.
    fn turned_over(&self, _path: &Path) -> Option<PathBuf> {
        None
    }

    /// Removes a file that is [`FileOf::Copy`], or one of an article that lies elsewhere.
    fn remove_copy(&self, _path: &Path) -> Result<()> {
        Ok(())
    }

    /// Gives files of these articles that have a later name their own, where nobody has that any more; how many have it.
    fn name_plainly(&self, _later: &[(PathBuf, Token)]) -> Result<u64> {
        Ok(0)
    }

    /// The token of the article at a position, by looking there.
    fn token_at(&self, position: Position) -> std::result::Result<Token, ReadError>;

    /// For who walked past without having met it: whether an article that should begin here is lost.  It is not where it was
    /// overwritten since, or erased because it was withdrawn.
    fn is_lost(&self, position: Position) -> bool {
        position >= self.floor()
    }

    /// Looks whether what its file says of itself is as it was written, and writes it again where it is not; says what was
    /// wrong, and what was done.  Who only looks writes nothing.
    fn mend_header(&self) -> Result<Option<String>> {
        Ok(None)
    }

    /// What writes the header of a damaged record again, if what is left of it proves that the article is what it was, or all but
    /// its sequence and its own checksum does and the log has this article under a sequence that it may have had; or nothing of it is
    /// left, and the witness vouches for the text; to be carried out on the thread of commits.  None where nothing may be written.
    fn mending(
        self: Arc<Self>,
        _token: &Token,
        _arrival: UnixTime,
        _id_hash: &IdHash,
        _witness: &dyn Witness,
    ) -> Option<HeaderWrite> {
        None
    }

    /// What is wrong in its bitmap between two positions of a cycle, given where articles begin there, ascending; nothing where it has
    /// none, nor behind where that is out of date.
    fn wrong_bits(&self, _stretch: Range<Position>, _starts: &[Position]) -> Result<WrongBits> {
        Ok(WrongBits::default())
    }

    /// Where its bitmap says that articles begin between two positions of a cycle, as far as it is up to date; `None` where it is
    /// out of date from the first on, or there is none.
    fn bits(&self, _stretch: Range<Position>) -> Result<Option<Vec<Position>>> {
        Ok(None)
    }

    /// Whether its bitmap may be damaged, as its header was when it was opened.
    fn has_doubtful_bits(&self) -> bool {
        false
    }

    /// Writes bits as they should be, but for what was overwritten meanwhile; whether it may.
    fn mend_bits(&self, _wrong: &WrongBits) -> Result<bool> {
        Ok(false)
    }

    /// Whether an article that lay there is gone, as the buffer was put back as it had been before it came.
    fn lacks(&self, _start: Position) -> bool {
        false
    }

    /// The stretches of which this is known.
    fn lacking(&self) -> Vec<Range<Position>> {
        Vec::new()
    }

    /// Told of one that an earlier start found.
    fn lacked(&self, _stretch: Range<Position>) {}

    /// Whether the record of an article that is withdrawn has to say so, as no bit there does; never where nothing may be written.
    fn marks_withdrawn(&self, _start: Position) -> bool {
        false
    }

    /// The cycles below this one have files that go early when nothing in them is left, if somebody [says so](Self::vacated); what
    /// is placed and not yet written lies in none of them.  `None`: nothing goes before its turn.
    fn vacatable(&self) -> Option<u32> {
        None
    }

    /// No article is left in cycles below this one.
    fn vacated(&self, _cycle: u32) {}

    /// No article is left of those that were placed before here.  A buffer that is retired and takes nothing drains at once then, with
    /// the next commit.
    fn emptied(&self, _end: Position) {}

    /// Walks the records.
    fn scan(self: Arc<Self>, range: ScanRange) -> Box<dyn RecordScan>;

    /// Walks what is alive without reading the articles, where each is a file of its own: what the walk shows of one is the
    /// content of its Xref.  What does not tell it is not sound.
    fn cards(self: Arc<Self>) -> Option<Box<dyn RecordScan>> {
        None
    }

    /// The file of another spool in which its articles lie, opened anew; none where they are ours.
    fn lent(&self) -> Option<Result<Lent>> {
        None
    }

    /// What there is to know about it; costs no I/O.
    fn facts(&self) -> BufferFacts;

    /// Takes the memory that articles will need from the system now, so that none of them waits for it.
    fn take_memory(&self) {}
}

/// Bits of a bitmap that are not as they should be.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WrongBits {
    /// An article begins here and has none; one that was withdrawn has none, either.
    pub missing: Vec<Position>,
    /// Nothing begins here.
    pub extra: Vec<Position>,
}

/// Which records a scan shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScanRange {
    /// What is alive, oldest first.
    Live,
    /// What is alive from there on, where an earlier walk had come to.
    LiveFrom(Position),
    /// Everything that can be read, alive or not, in the order of the file.
    All,
}

/// One thing found in a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scanned {
    /// A record whose header is sound.
    Record {
        /// Its token.
        token: Token,
        /// Octets of its header block.
        head_len: u32,
        /// Its place in the log.
        sequence: Sequence,
        /// When it arrived.
        arrival: UnixTime,
        /// The hash of its message-id.
        id_hash: IdHash,
        /// Whether the article passes its checksums.
        sound: bool,
        /// Whether it is alive.
        live: bool,
    },
    /// Articles should be here, but none can be read.
    Damaged {
        /// In this cycle; none where those of several lie beside each other.
        cycle: Option<u32>,
        /// From this offset in the file.
        from: u64,
        /// To this offset.
        to: u64,
    },
    /// A piece was read in which there is nothing to tell of: so no step takes long.
    Passed,
}

/// A walk over the records of a buffer.  It resynchronises behind damage; its memory is bounded by the largest
/// article.
pub trait RecordScan: Send + Debug {
    /// Goes back to where the last step met damage, and reads what lies there anew, no more; whether it can.
    fn again_from(&mut self, _at: Position) -> bool {
        false
    }

    /// The next thing found; `None` at the end.
    fn step(&mut self) -> Result<Option<Scanned>>;

    /// Whether the article of the record that was found last is in a file that this program may not read.
    fn is_denied(&self) -> bool {
        false
    }

    /// Appends the stretches of whole pages that were passed since this was asked last, between records of one cycle, in which
    /// nothing of that cycle is written: articles are written without such gaps.
    fn take_gaps(&mut self, _out: &mut Vec<Range<Position>>) {}

    /// The article of the record that the last step found; where that was damage, what may be one as far as it is in memory.
    fn article(&self) -> &[u8];

    /// Everything alive before this was told, where it walks what is alive.
    fn at(&self) -> Position;

    /// Octets that were read so far.
    fn octets_read(&self) -> u64;
}
