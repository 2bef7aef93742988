//! Whether and how to colour.

use std::io::IsTerminal;
use std::sync::OnceLock;

/// The choice of `--color`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum When {
    /// On a terminal, unless `NO_COLOR` is set.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// Where a text goes.
#[derive(Clone, Copy, Debug)]
#[allow(dead_code, reason = "commands choose their stream")]
pub enum Stream {
    /// Standard output.
    Out,
    /// Standard error.
    Err,
}

/// The colours in use; meaning never rests on colour alone.
#[derive(Clone, Copy, Debug)]
#[allow(dead_code, reason = "the palette of all commands")]
pub enum Paint {
    /// Headings and what matters most.
    Bold,
    /// Good.
    Green,
    /// Warning.
    Yellow,
    /// Bad.
    Red,
    /// Less important.
    Dim,
}

static CHOICE: OnceLock<When> = OnceLock::new();

/// Sets the choice, once, before anything is printed.
pub fn choose(when: When) {
    let _ = CHOICE.set(when);
}

/// Whether text on this stream is coloured (<https://no-color.org>).
pub fn is_on(stream: Stream) -> bool {
    match CHOICE.get().copied().unwrap_or(When::Auto) {
        When::Always => true,
        When::Never => false,
        When::Auto => {
            let terminal = match stream {
                Stream::Out => std::io::stdout().is_terminal(),
                Stream::Err => std::io::stderr().is_terminal(),
            };
            terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
        }
    }
}

/// The text in this colour, when the stream has colours.
pub fn paint(paint: Paint, stream: Stream, text: &str) -> String {
    let code = match paint {
        Paint::Bold => "1",
        Paint::Green => "32",
        Paint::Yellow => "33",
        Paint::Red => "31",
        Paint::Dim => "2",
    };
    if is_on(stream) { format!("\x1b[{code}m{text}\x1b[0m") } else { text.into() }
}
