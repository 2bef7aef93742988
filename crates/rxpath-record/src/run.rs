//! The run directory: one run, self-contained, readable without the program that wrote it.
//!
//! ```text
//! RUN/manifest.json     what was asked, run and found; replaced whole after each trial
//! RUN/environment.json  host facts, each ok, absent or denied
//! RUN/calibration.json  what its predictions were made from, where there are any
//! RUN/events.jsonl      what happened, one line each, appended while the run goes on
//! RUN/samples.jsonl.gz  queues over time, one line per trial
//! RUN/histograms/*.hlog HDR V2 logs
//! RUN/report.html       made from the others
//! ```
//!
//! A killed run can be read up to its last complete event. A run of a newer version, a cut file or an edited manifest
//! is read where possible, with a list of problems and their places.

pub mod hlog;
mod id;
mod problem;
mod reader;
mod salvage;
mod shown;
mod writer;

pub use id::run_id;
pub use problem::{RunError, RunProblem};
pub use reader::{RunReader, parse_environment, parse_events, parse_manifest};
pub use writer::RunWriter;

/// File name of the manifest.
pub const MANIFEST: &str = "manifest.json";
/// File name of the host facts.
pub const ENVIRONMENT: &str = "environment.json";
/// File name of the calibration that the predictions were made from.
pub const CALIBRATION: &str = "calibration.json";
/// File name of the events.
pub const EVENTS: &str = "events.jsonl";
/// File name of the samples.
pub const SAMPLES: &str = "samples.jsonl.gz";
/// Directory of the histograms.
pub const HISTOGRAMS: &str = "histograms";
/// File name of the report; made from the run, so not among its checksums.
pub const REPORT: &str = "report.html";

/// Schema id of the manifest.
pub const MANIFEST_SCHEMA: &str = "rxpath/run/1.0";
/// Schema id of the host facts.
pub const ENVIRONMENT_SCHEMA: &str = "rxpath/environment/1.0";
/// Major version that this program writes and fully understands.
pub const MAJOR: u64 = 1;
