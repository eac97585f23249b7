//! How a command gets at a spool: through the running server's control socket, or by itself.
//!
//! By itself it takes the spool's lock if it changes something; one that only looks replays the log in memory and writes
//! nothing, and so does any with `--read-only`, also beside a server.  What is asked and answered is the same.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, anyhow, bail};
use indicatif::{ProgressBar, ProgressStyle};
use newsreel_engine::{Engine, Error};
use newsreel_host::process::lock_holder;
use newsreel_host::{Clock, Disk, RealClock, RealDisk};
use serde_json::Value;

use crate::config::{self, Config};
use crate::control::Progress;
use crate::control::answers::answer;
use crate::control::client::Client;
use crate::control::request::Request;
use crate::output;

/// Options of every command that changes a spool.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct SpoolArgs {
    /// The spool directory [default: what the configuration says, else ./newsreel-spool]
    #[arg(long, value_name = "DIR")]
    pub(crate) spool: Option<PathBuf>,
    #[arg(long, value_name = "FILE", help = config::HELP_OFFLINE)]
    pub(crate) config: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Options of every command that looks at a spool, or can.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct LookArgs {
    #[command(flatten)]
    changing: SpoolArgs,
    /// Take no lock and write nothing, not even beside a running server: replay the log in memory
    #[arg(long)]
    pub(crate) read_only: bool,
}

impl From<&SpoolArgs> for LookArgs {
    fn from(changing: &SpoolArgs) -> Self {
        Self {
            changing: changing.clone(),
            read_only: false,
        }
    }
}

impl std::ops::Deref for LookArgs {
    type Target = SpoolArgs;

    fn deref(&self) -> &SpoolArgs {
        &self.changing
    }
}

/// The file in a spool that says what the server last ran with.
const LAST_CONFIG: &str = "last-config.toml";

/// A way to ask a spool.
#[derive(Debug)]
pub(crate) enum Access {
    /// A running server.
    Live(Client),
    /// Nobody has it: we do.
    Offline(Box<Engine>),
}

impl Access {
    /// Finds the way.  Without a server, who does not write only looks: whatever the configuration says, nothing is made.
    pub(crate) fn open(args: &LookArgs, writes: bool) -> Result<Self> {
        Self::open_for(args, (writes, false))
    }

    /// The same; who would rather have a server do it waits for one that starts, and looks without it when that takes long,
    /// which is said.
    fn open_for(args: &LookArgs, (writes, waits): (bool, bool)) -> Result<Self> {
        let (mut config, problems) =
            config::look_for(args.config.as_deref(), args.spool.as_deref())?;
        if let Some(spool) = &args.spool {
            config.server.spool.clone_from(spool);
        }
        let spool = config.server.spool.clone();
        let is_sound = problems.list.is_empty();
        // Of its file a server that runs needs no more than where it is: a mistake made since then keeps nobody from asking it.
        if !args.read_only
            && (is_sound || problems.is_spool_known || args.spool.is_some())
            && let Some(client) = Client::connect(&spool)?
        {
            if !is_sound {
                let (wrong, spool) = (problems.to_string(), spool.display());
                output::warning(&format!(
                    "{wrong}; the server of {spool} is asked all the same"
                ));
            }
            return Ok(Self::Live(client));
        }
        let mut config = problems.none_or(config)?;
        if !is_given(args, &config) {
            config = last_config(&spool)?.unwrap_or(config);
            config.server.spool.clone_from(&spool);
        }
        let disk: Arc<dyn Disk> = Arc::new(RealDisk);
        let clock = Arc::new(RealClock::new());
        if args.read_only {
            is_there(disk.as_ref(), &spool)?;
            let engine = Engine::open_read_only(config.engine_config(), disk, clock)?;
            return Ok(Self::Offline(Box::new(engine)));
        }
        if writes {
            no_foreign_root(&disk, &spool)?;
        }
        let tries = if waits { TRIES_STARTING } else { TRIES };
        let mut left = if waits { tries - 1 } else { 0 };
        open_by(&spool, tries, || {
            is_there(disk.as_ref(), &spool)?;
            match (writes, starting(&spool)) {
                (true, _) => return try_to_take(&config, &disk, clock.clone()),
                (false, Some(starting)) if left > 0 => {
                    left -= 1;
                    return Err(Refusal::Taken(starting));
                }
                (false, Some(starting)) if waits => {
                    output::warning(&format!("{starting}; without it nothing is mended"));
                }
                (false, _) => {}
            }
            try_to_look(&config, &disk, clock.clone())
        })
    }

    /// Asks, with a progress bar for a person who waits.
    pub(crate) fn ask(&mut self, request: Request) -> Result<Value> {
        let bar = bar();
        let mut progress = |at: Progress| {
            bar.set_length(at.total);
            bar.set_position(at.done);
        };
        let answer = match self {
            Self::Live(client) => client.ask(&request, &mut progress),
            Self::Offline(engine) => {
                let mut progress = |at| {
                    progress(at);
                    true
                };
                answer(engine, None, request, &mut progress).map_err(anyhow::Error::msg)
            }
        };
        bar.finish_and_clear();
        answer
    }

    /// The same without a bar, for who has one of its own.
    pub(crate) fn ask_quietly(&mut self, request: Request) -> Result<Value> {
        match self {
            Self::Live(client) => client.ask(&request, &mut |_| {}),
            Self::Offline(engine) => {
                answer(engine, None, request, &mut |_| true).map_err(anyhow::Error::msg)
            }
        }
    }

    /// Ends it; an own engine is shut down so that what was changed is on disk.
    pub(crate) fn close(self) -> Result<()> {
        match self {
            Self::Live(_) => Ok(()),
            Self::Offline(engine) => Ok(engine.shutdown()?),
        }
    }
}

/// Why a spool cannot be opened.
enum Refusal {
    /// Somebody is at work there: a command, or a server that starts or stops.
    Taken(anyhow::Error),
    /// It is not there, or not whole: a server may be about to make it.
    Missing(anyhow::Error),
    /// What waiting does not change.
    Final(anyhow::Error),
}

impl From<newsreel_host::Error> for Refusal {
    fn from(error: newsreel_host::Error) -> Self {
        Self::Final(error.into())
    }
}

impl From<Refusal> for anyhow::Error {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Taken(error) | Refusal::Missing(error) | Refusal::Final(error) => error,
        }
    }
}

/// How often a spool that is taken is tried again, and after what pause.
const TRIES: u32 = 100;
const PAUSE: Duration = Duration::from_millis(100);

/// The same for who would have a server do what it does itself only in part: one may have a long log to read.
const TRIES_STARTING: u32 = 600;

/// How often one that is not there is looked for: nobody wants to wait long for what never comes.
const TRIES_MISSING: u32 = 10;

/// A server that says nothing for so long hangs.
const SILENCE: Duration = Duration::from_secs(10);

/// Opens a spool by `open`, or finds the server that answers for it.  What is soon over is waited for.  The socket of a
/// server that is being killed may still take a connection, so only an answer counts.
fn open_by(
    spool: &Path,
    tries_taken: u32,
    mut open: impl FnMut() -> Result<Engine, Refusal>,
) -> Result<Access> {
    let mut tried = 0;
    loop {
        let (error, tries) = match open() {
            Ok(engine) => return Ok(Access::Offline(Box::new(engine))),
            Err(Refusal::Taken(error)) => (error, tries_taken),
            Err(Refusal::Missing(error)) => (error, TRIES_MISSING),
            Err(Refusal::Final(error)) => return Err(error),
        };
        if let Some(mut client) = Client::connect(spool)? {
            match client.is_alive(SILENCE)? {
                Some(true) => return Ok(Access::Live(client)),
                Some(false) => {}
                None => bail!(
                    "the spool {} is in use by a server that does not answer: wait if as many programs as \
                     `server.control_connections_max` says ask it already, else stop or kill it",
                    spool.display()
                ),
            }
        }
        tried += 1;
        if tried >= tries {
            return Err(error);
        }
        std::thread::sleep(PAUSE);
    }
}

/// Refuses where there is no spool.
fn is_there(disk: &dyn Disk, spool: &Path) -> Result<(), Refusal> {
    if disk.exists(&spool.join(newsreel_cache::keep::TABLE))? {
        return Err(Refusal::Final(anyhow!(
            "{} is the directory of a cache, and no spool: `newsreel cache stats`, `cache list` and the like tell of it",
            absolute(spool)
        )));
    }
    if disk.exists(spool)? && !disk.list(spool)?.is_empty() {
        return Ok(());
    }
    Err(Refusal::Missing(no_spool(spool)))
}

/// Says that there is no spool, and what helps.
pub(crate) fn no_spool(spool: &Path) -> anyhow::Error {
    anyhow!(
        "there is no spool in {}; `newsreel serve` makes one, or `newsreel store create`; for that of a server which runs elsewhere \
         give its --spool or --config",
        absolute(spool)
    )
}

/// A path that says where it is, wherever the command was given.
fn absolute(path: &Path) -> String {
    let absolute = std::path::absolute(path);
    let path = absolute.as_deref().unwrap_or(path);
    path.display().to_string()
}

/// Says that somebody has a spool who does not answer, if so.
fn starting(spool: &Path) -> Option<anyhow::Error> {
    let holder = lock_holder(&spool.join("lock")).filter(|pid| *pid != std::process::id());
    holder.map(|pid| {
        anyhow!(
            "process {pid} has the spool {} and does not answer yet: it makes its buffers, starts or stops; try again",
            spool.display()
        )
    })
}

/// Looks at a spool as it is.  What a server is still making cannot be looked at.
fn try_to_look(
    config: &Config,
    disk: &Arc<dyn Disk>,
    clock: Arc<dyn Clock>,
) -> Result<Engine, Refusal> {
    let error = match Engine::open_read_only(config.engine_config(), Arc::clone(disk), clock) {
        Ok(engine) => return Ok(engine),
        Err(error) => error,
    };
    Err(match (starting(&config.server.spool), &error) {
        (Some(starting), _) => Refusal::Taken(starting),
        (None, Error::NotASpool { .. }) => Refusal::Missing(error.into()),
        (None, _) => Refusal::Final(error.into()),
    })
}

/// Takes a spool, and makes it where there is none.
fn try_to_take(
    config: &Config,
    disk: &Arc<dyn Disk>,
    clock: Arc<dyn Clock>,
) -> Result<Engine, Refusal> {
    let opened = Engine::open(
        config.engine_config(),
        Arc::clone(disk),
        clock,
        &mut making(),
    );
    let engine = opened.map_err(|error| match error {
        Error::Locked { .. } => Refusal::Taken(error.into()),
        _ => Refusal::Final(with_sizes(error, config)),
    })?;
    newsreel_feed::hold_log(&engine, disk.as_ref(), &config.server.spool);
    Ok(engine)
}

/// Why a spool cannot be opened, with what to do where a buffer is to have another size than it was last run with.
fn with_sizes(error: Error, config: &Config) -> anyhow::Error {
    let last = last_config(&config.server.spool).ok().flatten();
    let resized = last.map(|last| config::resized(&last, config));
    match (resized.filter(|resized| !resized.is_empty()), error) {
        // It says the same, without what to do.
        (Some(resized), Error::Store(newsreel_store::Error::Sizes { .. })) => {
            anyhow!(resized.join("; "))
        }
        (Some(resized), error) => anyhow::Error::from(error).context(resized.join("; ")),
        (None, error) => error.into(),
    }
}

/// Opens a spool to serve it, or finds the server that does.
pub(crate) fn open_when_free(
    config: &Config,
    disk: &Arc<dyn Disk>,
    clock: &Arc<dyn Clock>,
) -> Result<Access> {
    let spool = &config.server.spool;
    no_foreign_root(disk, spool)?;
    open_by(spool, TRIES, || {
        try_to_take(config, disk, Arc::clone(clock))
    })
}

/// Refuses to write as root what belongs to somebody else.
pub(crate) fn no_foreign_root(disk: &Arc<dyn Disk>, spool: &Path) -> Result<()> {
    if disk.exists(spool)?
        && let Some(uid) = newsreel_host::process::owner_if_not_root(spool)?
    {
        bail!(
            "the spool {} belongs to user {uid}, and what root writes there that user could not read; run this as that \
             user: setpriv --reuid {uid} --clear-groups newsreel ...",
            spool.display()
        );
    }
    Ok(())
}

/// Opens to change one thing, closes.
pub(crate) fn change(args: &SpoolArgs, request: Request) -> Result<Value> {
    ask(&args.into(), request)
}

/// Opens, asks one thing, closes.
pub(crate) fn ask(args: &LookArgs, request: Request) -> Result<Value> {
    if args.read_only && request.writes() {
        bail!("this changes the spool, which --read-only forbids");
    }
    let mut access = Access::open_for(args, (request.writes(), request.mends()))?;
    if matches!(
        (&access, &request),
        (Access::Live(_), Request::Expire { .. })
    ) {
        warn_of_rules(args)?;
    }
    let answer = access.ask(request);
    access.close()?;
    answer
}

/// Says so where a server is asked that has other rules of expiry than the file that was given.
fn warn_of_rules(args: &SpoolArgs) -> Result<()> {
    let (given, _) = config::look_for(args.config.as_deref(), args.spool.as_deref())?;
    let spool = args.spool.as_ref().unwrap_or(&given.server.spool);
    if let Some(file) = given.file.as_ref().filter(|_| args.config.is_some())
        && let Ok(Some(run_with)) = last_config(spool)
        && run_with.expire != given.expire
    {
        output::warning(&format!(
            "the server of {} goes by its own rules, which are not those of {}; it takes those over by a reload (SIGHUP)",
            spool.display(),
            file.display()
        ));
    }
    Ok(())
}

pub(crate) fn bar() -> ProgressBar {
    if !output::is_watched() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{bar:40} {pos}/{len} {eta}");
    let bar = ProgressBar::new(0);
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar
}

/// Shows how far a new buffer's file is written, to whoever watches.
pub(crate) fn making() -> impl FnMut(&str, u64, u64) {
    let bar = if output::is_watched() {
        ProgressBar::new(0)
    } else {
        ProgressBar::hidden()
    };
    let style = ProgressStyle::with_template("making {msg} {bar:40} {bytes}/{total_bytes} {eta}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    move |name: &str, done: u64, total: u64| {
        bar.set_message(name.to_owned());
        bar.set_length(total);
        bar.set_position(done);
        if done >= total {
            bar.finish_and_clear();
        }
    }
}

/// Whether somebody said which configuration it is: by an option, the environment or the usual place.
fn is_given(args: &SpoolArgs, config: &Config) -> bool {
    args.config.is_some() || config.file.is_some()
}

/// The configuration a spool is run with: the one that is given, what its server last ran with, or the defaults.
pub(crate) fn config_of(args: &SpoolArgs) -> Result<Config> {
    let mut config = config::load(args.config.as_deref(), args.spool.as_deref())?;
    if let Some(spool) = &args.spool {
        config.server.spool.clone_from(spool);
    }
    let is_told = is_given(args, &config) || !RealDisk.exists(&config.server.spool)?;
    let last = if is_told {
        None
    } else {
        last_config(&config.server.spool)?
    };
    Ok(last.unwrap_or(config))
}

/// Notes in the spool what a server runs with, for offline commands after it: at its start, and whenever that changes.
pub(crate) fn note_config(disk: &dyn Disk, config: &Config) -> Result<()> {
    note_values(disk, &config.server.spool, &config.values()?)
}

/// The same of the values of a configuration.
pub(crate) fn note_values(disk: &dyn Disk, spool: &Path, values: &toml::Table) -> Result<()> {
    let text = format!(
        "# What the server last ran with, read by offline commands.\n{}",
        toml::to_string(values)?
    );
    newsreel_host::replace_file(disk, &spool.join(LAST_CONFIG), text.as_bytes())?;
    Ok(())
}

/// What the server ran with had these buffers in the sizes that they have now.
pub(crate) fn note_sizes(disk: &dyn Disk, config: &Config, names: &[String]) -> Result<()> {
    let Some(mut last) = last_config(&config.server.spool)? else {
        return Ok(());
    };
    last.server.spool.clone_from(&config.server.spool);
    for buffer in &mut last.store.buffers {
        let mut now = config.store.buffers.iter();
        let now = now.find(|it| it.name == buffer.name && names.contains(&it.name));
        buffer.octets = now.map_or(buffer.octets, |now| now.octets);
    }
    note_config(disk, &last)
}

/// Who may look at a spool.
pub(crate) const ONLY_THE_OWNER: &str = "only the spool's owner and root may do this";

fn is_forbidden(error: &anyhow::Error) -> bool {
    let mut causes = error.chain();
    causes.any(|cause| {
        let system = cause.downcast_ref::<std::io::Error>();
        system.is_some_and(|error| error.kind() == std::io::ErrorKind::PermissionDenied)
    })
}

pub(crate) fn last_config(spool: &Path) -> Result<Option<Config>> {
    let path = spool.join(LAST_CONFIG);
    if !RealDisk.exists(&path)? {
        return Ok(None);
    }
    match config::load_noted(&path) {
        Ok(config) => Ok(Some(config)),
        Err(error) if is_forbidden(&error) => Err(error.context(ONLY_THE_OWNER)),
        Err(error) => {
            Err(error.context("give --config FILE, or remove that file to use the defaults"))
        }
    }
}
