//! The common form of every `--json` answer.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Warning;

/// The object that `--json` prints at the end of a command.
///
/// With `--interval` the same parts are printed as JSON Lines instead; the schema of such a line is `NAME-line`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Envelope<S, R> {
    /// `rxpath/<name>/<major>.<minor>`.
    pub schema: String,
    /// The settings in force, after the kernel rounded or rejected them.
    pub settings: S,
    /// What came out.
    pub result: R,
    /// What to know before trusting it.
    pub warnings: Vec<Warning>,
}

impl<S, R> Envelope<S, R> {
    /// An envelope of schema `rxpath/<name>/1.0`.
    pub fn new(name: &str, settings: S, result: R, warnings: Vec<Warning>) -> Self {
        Self { schema: schema_id(name), settings, result, warnings }
    }
}

/// The schema id of `name` in its current major and minor version.
pub fn schema_id(name: &str) -> String {
    format!("rxpath/{name}/1.0")
}

/// The schema id of a line of the JSON Lines stream of `name`: `rxpath/<name>-line/1.0`.
pub fn line_schema_id(name: &str) -> String {
    schema_id(&format!("{name}-line"))
}

/// One line of a JSON Lines stream.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum StreamLine<S, I, R> {
    /// First line: the effective settings.
    Settings {
        /// Schema id of every line of the stream: `rxpath/<name>-line/<major>.<minor>`.
        schema: String,
        /// The settings.
        #[serde(flatten)]
        settings: S,
    },
    /// Set up and waiting for the first packet or for the order to start.
    Ready {
        /// Process id of the workload.
        pid: u32,
        /// Thread ids of its workers, in the order of `--cpu`.
        tids: Vec<i32>,
    },
    /// A client began its work, for a parent process that ordered the start.
    Started {
        /// When the first worker began, of `CLOCK_MONOTONIC`.
        t_ns: u64,
        /// How much later than ordered that was.
        late_ns: u64,
    },
    /// Events up to now (cumulative) and since the previous line.
    Interval(I),
    /// The end.
    Result(R),
    /// A warning, when it was noticed.
    Warning(Warning),
    /// The times behind the quantiles of the result, for a parent process that merges trials.
    Histogram {
        /// The timed quantity: `one_way_delay`, `service_time`. Its quantiles are the result's `NAME_us`.
        name: String,
        /// HdrHistogram V2 encoding of the values in ns, in base64 (RFC 4648).
        hdr_v2_base64: String,
    },
    /// The times of a slice of the run, for a parent process that asks how far a quantile could have come out otherwise.
    Slice {
        /// The timed quantity.
        name: String,
        /// Begin and end of the slice, of `CLOCK_MONOTONIC`.
        span_ns: [u64; 2],
        /// As in `histogram`.
        hdr_v2_base64: String,
    },
}
