//! How results are printed: data on stdout, progress and errors on stderr.

#[cfg(feature = "lab")]
pub mod bars;
#[cfg(feature = "lab")]
pub mod between;
#[cfg(feature = "lab")]
pub mod capacity;
pub mod check;
pub mod color;
#[cfg(feature = "lab")]
pub mod experiment;
pub mod explain;
pub mod format;
#[cfg(feature = "lab")]
pub mod host_lines;
pub mod queues;
#[cfg(feature = "lab")]
pub mod rates;
pub mod steal;
pub mod table;
#[cfg(feature = "lab")]
pub mod tcp;
pub mod trace;
#[cfg(feature = "lab")]
pub mod udp;

use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};

use rxpath_core::{Envelope, Fact};
use serde::Serialize;
use thiserror::Error;

/// The reader closed the pipe: not an error, nothing more needs to be printed.
#[derive(Debug, Error)]
#[error("standard output is closed")]
pub struct Closed;

/// Columns of standard output: `COLUMNS`, else the terminal's, else 80; `None` if it is not a terminal and `COLUMNS` is
/// not set.
pub fn width() -> Option<usize> {
    /// The smallest width at which everything is still readable.
    const NARROWEST: usize = 40;
    let said = std::env::var("COLUMNS").ok().and_then(|columns| columns.trim().parse().ok());
    let asked = || {
        let size = terminal_size::terminal_size();
        size.map(|(columns, _)| usize::from(columns.0)).filter(|columns| *columns > 0).unwrap_or(80)
    };
    let columns: Option<usize> = said.or_else(|| io::stdout().is_terminal().then(asked));
    columns.map(|columns| columns.max(NARROWEST))
}

/// Writes text to stdout and flushes it.
pub fn text(text: &str) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    told(out.write_all(harmless(text).as_bytes()).and_then(|()| out.flush()))
}

/// Writes one line to stdout and flushes it.
pub fn line(line: &str) -> anyhow::Result<()> {
    text(&format!("{line}\n"))
}

/// Removes characters that would move a terminal's cursor or change its title: names of devices, programs and files
/// come from the host or a capture. Line ends, tabs and the colours that [`color::paint`] makes stay.
fn harmless(text: &str) -> Cow<'_, str> {
    let is_odd = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
    if !text.contains(is_odd) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(is_odd) {
        out.push_str(&rest[..at]);
        let odd = &rest[at..];
        let colour = colour_length(odd);
        if colour > 0 {
            out.push_str(&odd[..colour]);
        } else {
            out.push(char::REPLACEMENT_CHARACTER);
        }
        let width = odd.chars().next().map_or(0, char::len_utf8);
        rest = &odd[colour.max(width)..];
    }
    Cow::Owned(out + rest)
}

/// Length of the colour sequence at the beginning of the text; 0 if there is none (ECMA-48, SGR).
fn colour_length(text: &str) -> usize {
    let Some(codes) = text.strip_prefix("\u{1b}[") else { return 0 };
    let end = codes.find(|c: char| !c.is_ascii_digit() && c != ';');
    end.filter(|end| codes[*end..].starts_with('m')).map_or(0, |end| end + 3)
}

/// The value in words, or why it is not known.
pub fn known<T>(fact: &Fact<T>, words: impl FnOnce(&T) -> String) -> String {
    fact.value().map_or_else(|| fact.gap().unwrap_or_default(), words)
}

/// The name of a value in results.
pub fn word(value: &impl Serialize) -> String {
    serde_json::to_value(value).ok().and_then(|v| v.as_str().map(str::to_owned)).unwrap_or_default()
}

/// Writes one JSON value on one line and flushes it.
pub fn json_line(value: &impl Serialize) -> anyhow::Result<()> {
    line(&serde_json::to_string(value)?)
}

/// Writes one JSON value over several lines.
pub fn json(value: &impl Serialize) -> anyhow::Result<()> {
    line(&serde_json::to_string_pretty(value)?)
}

/// Prints an answer as JSON, or as text and then its warnings.
pub fn answer<S: Serialize, R: Serialize>(
    is_json: bool,
    answer: &Envelope<S, R>,
    shown: impl FnOnce(&R) -> String,
) -> anyhow::Result<()> {
    if is_json {
        return json(answer);
    }
    text(&shown(&answer.result))?;
    answer.warnings.iter().for_each(warning);
    Ok(())
}

/// Writes one line to stderr. A closed stderr is not an error.
pub fn say(line: std::fmt::Arguments<'_>) {
    let _ = writeln!(io::stderr().lock(), "{line}");
}

/// `eprintln!` that does not panic when stderr is closed.
#[macro_export]
macro_rules! note {
    ($($words:tt)*) => { $crate::output::say(format_args!($($words)*)) };
}

/// A warning on stderr: `warning: TEXT (CAUSE); REMEDY`.
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_moves_the_cursor_is_no_text() {
        let odd = '\u{fffd}';
        assert_eq!(harmless("eth0\u{1b}[2J\u{7}x"), format!("eth0{odd}[2J{odd}x"));
        assert_eq!(harmless("a\tb\nc"), "a\tb\nc");
        assert_eq!(
            harmless("\u{1b}[1;31mred\u{1b}[0m\u{9b}1m"),
            format!("\u{1b}[1;31mred\u{1b}[0m{odd}1m")
        );
    }

    proptest! {
        #[test]
        fn only_colours_are_left_of_controls(text in "(\\PC|\u{1b}|\\[|[0-9;m]|\u{7f}|\r){0,40}") {
            let out = harmless(&text).into_owned();
            let mut rest = out.as_str();
            while let Some(at) = rest.find(|c: char| c.is_control() && c != '\n' && c != '\t') {
                let length = colour_length(&rest[at..]);
                prop_assert!(length > 0, "{out:?}");
                rest = &rest[at + length..];
            }
        }
    }
}
