//! What `rxpath check` prints, in each of its forms.

pub mod junit;
pub mod lines;
pub mod markdown;
pub mod ndjson;
pub mod sarif;
pub mod summary;
pub mod table;

use rxpath_tune::Report;

/// The form of the result on stdout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Form {
    /// Text for reading
    Table,
    /// One JSON object
    Json,
    /// One JSON object per line: settings, each answer, the counts
    Jsonl,
    /// The JSON object on one line, with host, boot and time: a line per host of a fleet
    Ndjson,
    /// Markdown, for a ticket
    Md,
    /// JUnit XML for a build server: a test case per rule
    Junit,
    /// SARIF 2.1.0 for programs that collect findings
    Sarif,
}

/// What a report without findings leaves open.
fn among(report: &Report) -> &'static str {
    if report.unjudged_rules().total() == 0 { "" } else { " in what could be judged" }
}
