//! The built program, run to its end, and what it said.

use std::fmt;
use std::process::{Command, Output};

use serde_json::Value;

/// How a run ended, and what it printed.
#[derive(Clone)]
pub struct Said {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
    /// Its words, for a test that fails.
    of: String,
}

/// Runs it with these words.
pub fn rxpath(words: &[&str]) -> Said {
    said(Command::new(env!("CARGO_BIN_EXE_rxpath")).args(words))
}

/// Runs a command.
pub fn said(command: &mut Command) -> Said {
    let output = command.output().unwrap();
    Said { of: format!("{command:?}"), ..Said::from(output) }
}

impl Said {
    /// What it said until it ended.
    pub fn new(code: Option<i32>, [out, err]: [String; 2]) -> Self {
        Self { code, out, err, of: String::new() }
    }

    /// What it printed, if it ended well.
    #[track_caller]
    pub fn ok(self) -> String {
        self.ends(0).out
    }

    /// It must have ended with this status.
    #[track_caller]
    pub fn ends(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{self:?}");
        self
    }

    /// It must have printed this.
    #[track_caller]
    pub fn prints(self, part: &str) -> Self {
        assert!(self.out.contains(part), "no {part:?} in {self:?}");
        self
    }

    /// Its errors must have this.
    #[track_caller]
    pub fn warns(self, part: &str) -> Self {
        assert!(self.err.contains(part), "no {part:?} in {self:?}");
        self
    }

    /// Its errors must be the program's own, begin with `first` and have `part`.
    #[track_caller]
    pub fn refuses(self, first: &str, part: &str) -> Self {
        assert!(self.err.starts_with(&format!("rxpath: {first}")), "no {first:?} in {self:?}");
        self.warns(part)
    }

    /// It must have printed nothing.
    #[track_caller]
    pub fn prints_nothing(self) -> Self {
        assert!(self.out.is_empty(), "{self:?}");
        self
    }

    /// The document that it printed.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

impl From<Output> for Said {
    fn from(output: Output) -> Self {
        let text = |bytes| {
            String::from_utf8(bytes).unwrap_or_else(|error| {
                panic!("{error}: {}", String::from_utf8_lossy(error.as_bytes()))
            })
        };
        Self::new(output.status.code(), [text(output.stdout), text(output.stderr)])
    }
}

impl fmt::Debug for Said {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { code, out, err, of } = self;
        write!(f, "{of} ended with {code:?}; it printed:\n{out}\nits errors:\n{err}")
    }
}
