//! `rxpath report`: from run directories to pages; only reads files.

use std::fs;
use std::io;

use clap::ValueEnum;
use rxpath_record::run::{REPORT, RunReader};

use crate::cmd::prelude::*;
use crate::cmd::values::value_name;

/// Options of `rxpath report`.
#[derive(Debug, clap::Args)]
pub struct ReportCommand {
    /// Run directories
    #[arg(required = true, value_name = "RUN")]
    runs: Vec<PathBuf>,
    /// File to write [default: report.html in the run directory; Markdown goes to standard output]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Report format
    #[arg(long, value_enum, default_value_t = Format::Html)]
    format: Format,
    /// Print the result as JSON: the files written
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// One self-contained page
    Html,
    /// Headline and tables as Markdown
    Md,
}

#[derive(Serialize, JsonSchema)]
struct Written {
    /// The run directory.
    run: PathBuf,
    /// The file; null if the text went to standard output.
    path: Option<PathBuf>,
    /// Missing or damaged parts of the run.
    problems: Vec<String>,
}

/// The `result` object.
#[derive(Serialize, JsonSchema)]
pub struct Reports {
    reports: Vec<Written>,
}

impl ReportCommand {
    /// Writes the reports. A directory that is not a run stops the command; an incomplete run gives a report and a
    /// warning.
    pub fn run(self) -> Outcome {
        if self.out.is_some() && self.runs.len() > 1 {
            return Err(Failure::usage("--out names one file, but there are several runs")
                .hint("without --out, each report is written into its run directory"));
        }
        if self.json && self.format == Format::Md && self.out.is_none() {
            return Err(Failure::usage("--json and --format md both print to standard output")
                .hint("use --out FILE for the Markdown"));
        }
        let mut reports = Vec::new();
        for path in &self.runs {
            let reader = RunReader::open(path).map_err(Failure::usage_of)?;
            reports.push(self.write(path, &reader)?);
        }
        if self.json {
            let warnings = reports.iter().flat_map(warnings).collect();
            let settings = json!({ "format": value_name(&self.format) });
            output::json(&Envelope::new("report", settings, Reports { reports }, warnings))?;
        }
        Ok(Exit::Done)
    }

    fn write(&self, path: &Path, reader: &RunReader) -> Result<Written, Failure> {
        let problems = reader.problems.iter().map(ToString::to_string).collect();
        let place = match (&self.out, self.format) {
            (Some(out), _) => Some(out.clone()),
            (None, Format::Html) => Some(reader.directory.join(REPORT)),
            (None, Format::Md) => None,
        };
        let text = match self.format {
            Format::Html => rxpath_report::html(reader),
            Format::Md => rxpath_report::markdown(reader),
        };
        match &place {
            Some(place) => {
                replace(place, &text).or_usage(|| format!("cannot write {}", place.display()))?;
                if !self.json {
                    output::line(&place.display().to_string())?;
                }
            }
            None => output::text(&text)?,
        }
        let written = Written { run: path.to_owned(), path: place, problems };
        if !self.json {
            warnings(&written).iter().for_each(output::warning);
        }
        Ok(written)
    }
}

fn warnings(written: &Written) -> Vec<Warning> {
    let warn = |problem: &String| Warning::new("run-not-whole", problem.clone());
    written.problems.iter().map(warn).collect()
}

/// Writes the page of a run into its directory and returns its path.
pub fn write_report(directory: &Path) -> Result<PathBuf, Failure> {
    let reader = RunReader::open(directory)?;
    let path = directory.join(REPORT);
    replace(&path, &rxpath_report::html(&reader))
        .with_context(|| format!("{}: cannot write the report", path.display()))
        .map_err(|error| Failure::new(Exit::Partial, error))?;
    Ok(path)
}

/// Writes a temporary file and renames it, so that a full disk does not damage the older report.
pub fn replace(place: &Path, text: &str) -> io::Result<()> {
    let mut beside = place.as_os_str().to_owned();
    beside.push(".new");
    let beside = PathBuf::from(beside);
    let done = fs::write(&beside, text).and_then(|()| fs::rename(&beside, place));
    if done.is_err() {
        // The partial file is of no use. The first error is the one to report.
        let _ = fs::remove_file(&beside);
    }
    done
}
