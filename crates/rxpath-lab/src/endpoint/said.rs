//! What an endpoint says to its coordinator: one JSON object per line.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The longest line, in either direction. **Unit** bytes.
pub const LONGEST_LINE: usize = 16 << 20;

/// A line from the endpoint.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Said {
    /// Alive.
    Tick,
    /// The answer to a request.
    Answer {
        /// The request's number.
        id: u64,
        /// The answer.
        ok: Value,
    },
    /// A request that failed.
    Failure {
        /// The request's number.
        id: u64,
        /// What went wrong, in one sentence.
        text: String,
        /// What to do about it; empty where nothing is known.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        hint: String,
    },
    /// A line of a program's standard output.
    Out {
        /// The program.
        program: u32,
        /// The line.
        line: String,
    },
    /// A line of a program's standard error.
    Err {
        /// The program.
        program: u32,
        /// The line.
        line: String,
    },
    /// A program has ended, after its last line.
    Exit {
        /// The program.
        program: u32,
        /// Its wait status. **Source** wait(2).
        status: i32,
    },
}
