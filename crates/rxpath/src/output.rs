//! How results are printed: data on stdout, progress and errors on stderr.

pub mod bars;
pub mod check;
pub mod color;
pub mod experiment;
pub mod explain;
pub mod format;
pub mod queues;
pub mod rates;
pub mod steal;
pub mod table;
pub mod tcp;
pub mod trace;

use std::io::{self, IsTerminal, Write};

use serde::Serialize;
use thiserror::Error;

/// Our reader closed the pipe: no failure, there is just nobody left to print for.
#[derive(Debug, Error)]
#[error("standard output is closed")]
pub struct Closed;

/// Columns of standard output: `COLUMNS`, else the terminal's, else 80; `None` where it is no terminal and nobody said.
pub fn width() -> Option<usize> {
    /// What everything is readable at, still.
    const NARROWEST: usize = 40;
    let said = std::env::var("COLUMNS").ok().and_then(|columns| columns.trim().parse().ok());
    let asked = || {
        let size = ratatui::crossterm::terminal::size().ok();
        size.map(|(columns, _)| usize::from(columns)).filter(|columns| *columns > 0).unwrap_or(80)
    };
    let columns: Option<usize> = said.or_else(|| io::stdout().is_terminal().then(asked));
    columns.map(|columns| columns.max(NARROWEST))
}

/// Writes text to stdout and flushes it.
pub fn text(text: &str) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    told(out.write_all(text.as_bytes()).and_then(|()| out.flush()))
}

/// Writes one line to stdout and flushes it.
pub fn line(text: &str) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    told(writeln!(out, "{text}").and_then(|()| out.flush()))
}

/// Writes one JSON value on one line and flushes it.
pub fn json_line(value: &impl Serialize) -> anyhow::Result<()> {
    line(&serde_json::to_string(value)?)
}

/// Writes one JSON value over several lines.
pub fn json(value: &impl Serialize) -> anyhow::Result<()> {
    line(&serde_json::to_string_pretty(value)?)
}

/// Writes one line to stderr. Nobody may be reading it any more, and that keeps us from nothing.
pub fn say(line: std::fmt::Arguments<'_>) {
    let _ = writeln!(io::stderr().lock(), "{line}");
}

/// `eprintln!` that does not panic when stderr is closed.
#[macro_export]
macro_rules! note {
    ($($words:tt)*) => { $crate::output::say(format_args!($($words)*)) };
}

/// A warning on stderr: `warning: TEXT (CAUSE); CURE`.
pub fn warning(warning: &rxpath_core::Warning) {
    crate::note!(
        "{} {warning}",
        color::paint(color::Paint::Yellow, color::Stream::Err, "warning:")
    );
}

fn told(done: io::Result<()>) -> anyhow::Result<()> {
    match done {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Err(Closed.into()),
        other => Ok(other?),
    }
}
