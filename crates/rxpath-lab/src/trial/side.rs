//! What a program on one side of a trial left.

use serde_json::Value;

use super::line::Line;
use super::result::WorkloadResult;

/// What one program left.
#[derive(Default)]
pub struct SideMeasurements {
    /// Its interval lines, or the kernel's in its place.
    pub lines: Vec<Line>,
    /// Whether the lines are its own.
    pub own_lines: bool,
    /// Its result.
    pub result: WorkloadResult,
    /// Its effective settings.
    pub settings: Value,
    /// Its process id.
    pub pid: u32,
    /// Its worker threads, as it named them.
    pub tids: Vec<i32>,
    /// Times behind its quantiles: name and HdrHistogram V2 in base64.
    pub histograms: Vec<(String, String)>,
    /// The same in slices, when it told them.
    pub slices: Vec<SliceOfTimes>,
    /// What each host's program left, where the side has several.
    pub parts: Vec<(String, SideMeasurements)>,
}

impl SideMeasurements {
    /// What each host's program left, in the order of the hosts.
    pub fn programs(&self) -> impl Iterator<Item = &Self> {
        let alone = self.parts.is_empty().then_some(self);
        alone.into_iter().chain(self.parts.iter().map(|(_, part)| part))
    }

    /// What stands under this name; of several hosts also what each of them left, behind it.
    pub fn named<'a>(&'a self, name: &'a str) -> impl Iterator<Item = (String, &'a Self)> {
        let parts = self.parts.iter().map(move |(host, part)| (format!("{name}@{host}"), part));
        std::iter::once((name.to_owned(), self)).chain(parts)
    }

    /// With lines made of the kernel's counters, where it printed none.
    #[must_use]
    pub fn or_lines(self, kernel: Vec<Line>) -> Self {
        if self.own_lines { self } else { Self { lines: kernel, ..self } }
    }
}

/// The times of a slice of a trial.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SliceOfTimes {
    /// The timed quantity.
    pub name: String,
    /// Begin and end, of `CLOCK_MONOTONIC`.
    pub span_ns: [u64; 2],
    /// HdrHistogram V2 in base64.
    pub hdr_v2_base64: String,
}
