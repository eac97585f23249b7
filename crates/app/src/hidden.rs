//! A line that somebody types at the terminal, which does not show it.
//!
//! The terminal shows again what is typed however that ends: also behind a ^C, which ended the process before it could say so, and a ^Z, behind which a shell went
//! on with a terminal that showed nothing.

use std::io::Write as _;

use anyhow::{Context as _, Result, bail};
use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Asks at the terminal that the standard input is, on the standard error; what is typed, without the end of the line.
pub(crate) fn line(prompt: &str) -> Result<String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()
        .context("cannot begin to ask")?;
    // Before the terminal is changed: from here on these end nothing by themselves.
    let signals = {
        let _inside = runtime.enter();
        let wanted = [
            SignalKind::interrupt(),
            SignalKind::terminate(),
            SignalKind::hangup(),
            SignalKind::quit(),
            SignalKind::from_raw(rustix::process::Signal::TSTP.as_raw()),
        ];
        let signals: std::io::Result<Vec<Signal>> = wanted.into_iter().map(signal).collect();
        signals.context("cannot take signals")?
    };
    let terminal = std::io::stdin();
    let before = tcgetattr(&terminal).context("the terminal does not say how it is set")?;
    let mut hidden = before.clone();
    hidden.local_modes.remove(LocalModes::ECHO);
    tcsetattr(&terminal, OptionalActions::Flush, &hidden)
        .context("the terminal goes on showing what is typed")?;
    let asked = std::io::stderr().write_all(prompt.as_bytes());
    let typed = match asked {
        Ok(()) => runtime.block_on(typed(signals)),
        Err(error) => Err(error.into()),
    };
    let shown = tcsetattr(&terminal, OptionalActions::Flush, &before);
    // The end of the line was not shown either.
    let _ = std::io::stderr().write_all(b"\n");
    // Who was interrupted is still being read from.
    runtime.shutdown_background();
    shown.context("the terminal does not show again what is typed: say `stty echo`")?;
    typed
}

async fn typed(mut signals: Vec<Signal>) -> Result<String> {
    let reading = tokio::task::spawn_blocking(|| {
        let mut line = String::new();
        std::io::stdin().read_line(&mut line).map(|_| line)
    });
    let signalled = std::future::poll_fn(|cx| {
        let mut came = signals.iter_mut().map(|signal| signal.poll_recv(cx));
        match came.any(|came| came.is_ready()) {
            true => std::task::Poll::Ready(()),
            false => std::task::Poll::Pending,
        }
    });
    tokio::select! {
        line = reading => {
            let line = line.context("cannot read")?.context("cannot read")?;
            Ok(line.trim_end_matches(['\r', '\n']).to_owned())
        }
        () = signalled => bail!("interrupted; nothing was changed"),
    }
}
