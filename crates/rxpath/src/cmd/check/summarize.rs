//! `rxpath check --summarize DIR`: a summary of the reports of many hosts.

use std::time::Instant;

use rxpath_tune::fleet::directory::{self, Unreadable};

use crate::cmd::prelude::*;
use crate::output::check::summary::{Summarized, render};

/// Reads every report below `dir` and finds what the hosts have in common and which hosts differ.
pub fn run(dir: &Path, json: bool, all: bool) -> Outcome {
    let started = Instant::now();
    let (fleet, total_bytes) = directory::read(dir).map_err(|error| match error {
        Unreadable::Named(error) => {
            Failure::usage_of(anyhow::Error::from(error).context(named(dir)))
        }
        other => other.into(),
    })?;
    if fleet.is_empty() {
        let bad = fleet.summary().bad_files;
        let Some(first) = bad.first() else { return Err(no_report(dir, "no file in it")) };
        let why = format!("{}: {}", first.file, first.why);
        let why = format!("none of its {} files is a report: {why}", bad.len());
        return Err(no_report(dir, &why));
    }
    let summary = fleet.summary();
    let warnings = summary.warnings();
    let exit = if summary.bad_files.is_empty() { Exit::Done } else { Exit::Partial };
    let result = Summarized { summary, total_bytes, elapsed_s: started.elapsed().as_secs_f64() };
    let settings = json!({ "directory": dir.display().to_string() });
    let answer = Envelope::new("check-summary", settings, result, warnings);
    output::answer(json, &answer, |it| render(it, all))?;
    Ok(exit)
}

fn named(dir: &Path) -> String {
    format!("--summarize {}", dir.display())
}

fn no_report(dir: &Path, why: &str) -> Failure {
    Failure::usage(format!("{}: {why}", named(dir)))
        .hint("it takes a directory of files that `rxpath check --json` wrote, one for each host")
}
