//! Whether and how to colour.

use std::ffi::OsString;
use std::io::IsTerminal;
use std::sync::OnceLock;

/// The choice of `--color`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum When {
    /// On a terminal, unless `NO_COLOR` is set or `TERM` is `dumb`
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// The stream that a text goes to.
#[derive(Clone, Copy, Debug)]
pub enum Stream {
    /// Standard output.
    Out,
    /// Standard error.
    Err,
}

/// The colours in use; no meaning depends on colour alone.
#[derive(Clone, Copy, Debug)]
pub enum Paint {
    /// Headings and important text.
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
            terminal && wanted(std::env::var_os("NO_COLOR"), std::env::var_os("TERM"))
        }
    }
}

/// Whether the environment allows colours. A terminal without `TERM` allows them.
fn wanted(no_color: Option<OsString>, term: Option<OsString>) -> bool {
    no_color.is_none_or(|value| value.is_empty()) && term.is_none_or(|term| term != "dumb")
}

/// The text in this colour if the stream has colours.
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

/// A heading or important text of standard output.
pub fn bold(text: &str) -> String {
    paint(Paint::Bold, Stream::Out, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dumb_terminal_and_no_color_have_none() {
        let os = |text: &str| Some(OsString::from(text));
        assert!(wanted(None, os("xterm")) && wanted(None, None) && wanted(os(""), os("xterm")));
        assert!(!wanted(None, os("dumb")) && !wanted(os("1"), os("xterm")));
    }
}
