//! Reads the readable parts of a run and lists the rest.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, ErrorKind, Read};
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;

use super::problem::{RunError, RunProblem};
use super::writer::sha256;
use super::{ENVIRONMENT, EVENTS, MANIFEST, SAMPLES, salvage};
use crate::environment::Environment;
use crate::event::{RunEvent, What};
use crate::manifest::{Manifest, Status};
use crate::samples::TrialSamples;

/// Longest event line; the writer's largest are some kilobytes.
const MAX_LINE_BYTES: u64 = 16 << 20;
/// Longest line of samples: an hour at 1 kHz of some dozen series.
const MAX_SAMPLES_BYTES: u64 = 1 << 30;
/// Problems listed one by one for the events; the rest is counted.
const MAX_LISTED: usize = 20;

/// What a run directory holds.
#[derive(Clone, Debug)]
pub struct RunReader {
    /// The run directory.
    pub directory: PathBuf,
    /// The manifest. If it is missing or unreadable: reconstructed from the events, with `status: running`.
    pub manifest: Manifest,
    /// The host facts, when they were readable.
    pub environment: Option<Environment>,
    /// The events that were readable, in the order of the file.
    pub events: Vec<RunEvent>,
    /// Queues over time, one entry for each trial that was sampled.
    pub samples: Vec<TrialSamples>,
    /// What could not be read, was cut or contradicts itself.
    pub problems: Vec<RunProblem>,
}

impl RunReader {
    /// Reads the run at `directory` (or the run that `directory` is the manifest of).
    ///
    /// Only a path without a manifest and without events is an error; everything else is a problem in the list next to
    /// the readable parts.
    pub fn open(directory: &Path) -> Result<Self, RunError> {
        let directory = match directory.file_name() {
            Some(name) if name == MANIFEST && directory.is_file() => {
                directory.parent().unwrap_or(Path::new(".")).to_owned()
            }
            _ => directory.to_owned(),
        };
        let not_a_run = |why: &str| RunError::NotARun { path: directory.clone(), why: why.into() };
        if !directory.is_dir() {
            let there = directory.exists();
            return Err(not_a_run(if there { "not a directory" } else { "no such directory" }));
        }
        let has = |name: &str| directory.join(name).is_file();
        if !has(MANIFEST) && !has(EVENTS) {
            return Err(not_a_run("no manifest.json and no events.jsonl in it"));
        }
        let mut problems = Vec::new();
        let events = events(&directory, &mut problems);
        let manifest = manifest(&directory, &events, &mut problems);
        let environment = environment(&directory, &mut problems);
        let samples = samples(&directory, &mut problems);
        let mut run = Self { directory, manifest, environment, events, samples, problems };
        run.check_files();
        run.problems.extend(contradictions(&run.manifest));
        if run.manifest.status == Status::Running {
            let text = run.partial().unwrap_or_default();
            run.problem(MANIFEST, text);
        }
        Ok(run)
    }

    /// Why the run is not whole, when it is not: killed, interrupted or failed.
    pub fn partial(&self) -> Option<String> {
        let is_valid = |it: &&RunEvent| matches!(&it.what, What::TrialEnded { void: None, .. });
        let trials = self.events.iter().filter(is_valid).count();
        let word = match self.manifest.status {
            Status::Complete => return None,
            Status::Running => "was killed or is still running",
            Status::Interrupted => "was interrupted",
            Status::Failed => "failed",
        };
        let last = match (self.events.first(), self.events.last()) {
            (Some(first), Some(last)) => {
                let after = last.t_ns.saturating_sub(first.t_ns) as f64 / 1e9;
                format!("; its last event came {after:.1} s after its first")
            }
            _ => "; it has no events".into(),
        };
        Some(format!("the run {word}: {trials} valid trials ended{last}"))
    }

    fn problem(&mut self, file: &str, text: impl Into<String>) {
        self.problems.push(RunProblem::new(file, None, text));
    }

    fn check_files(&mut self) {
        for (name, expected) in self.manifest.files.clone() {
            let inside = Path::new(&name);
            let plain = |c| matches!(c, std::path::Component::Normal(_));
            if !inside.components().all(plain) {
                self.problem(MANIFEST, format!("`{name}` is not a file of the run: not read"));
                continue;
            }
            match sha256(&self.directory.join(inside)) {
                Ok(Some(sum)) if sum == expected => {}
                Ok(Some(_)) => self.problem(
                    &name,
                    "does not have the checksum that manifest.json gives: one of the two was changed \
                     after the run",
                ),
                Ok(None) => self.problem(&name, "is listed in manifest.json and missing"),
                Err(error) => self.problem(&name, format!("cannot be read: {error}")),
            }
        }
    }
}

/// Figures that an edit by hand leaves inconsistent.
fn contradictions(manifest: &Manifest) -> Vec<RunProblem> {
    let mut found = Vec::new();
    for trial in &manifest.trials {
        let ledger = &trial.ledger;
        let out = i128::from(ledger.delivered_packets)
            + i128::from(ledger.in_flight_packets)
            + ledger.drops.iter().map(|drop| i128::from(drop.packets)).sum::<i128>();
        let rest = i128::from(ledger.offered_packets) - out;
        let Some(said) = ledger.unaccounted_packets else { continue };
        if rest != i128::from(said) {
            found.push(format!(
                "the ledger of trial {} does not add up: {rest} datagrams are unaccounted for, and it \
                 says {said}",
                trial.number(),
            ));
        }
    }
    for variant in &manifest.variants {
        let valid = |t: &&crate::manifest::Trial| t.variant == variant.name && t.void.is_none();
        let count = manifest.trials.iter().filter(valid).count();
        // Block 0 runs a variant twice and may be left out of its summary.
        if count < variant.trials_count as usize {
            found.push(format!(
                "variant {} claims {} trials and {count} are there",
                variant.name, variant.trials_count
            ));
        }
    }
    found.into_iter().map(|text| RunProblem::new(MANIFEST, None, text)).collect()
}

/// Reads the text of a manifest: what is readable of it, and what is wrong with the rest.
pub fn parse_manifest(text: &str) -> (Manifest, Vec<RunProblem>) {
    let mut problems = Vec::new();
    let manifest = salvage::manifest(text, &[], &mut problems);
    problems.extend(contradictions(&manifest));
    (manifest, problems)
}

/// Reads the text of `environment.json`; `None` when it is no JSON object.
pub fn parse_environment(text: &str) -> (Option<Environment>, Vec<RunProblem>) {
    let mut problems = Vec::new();
    let environment = salvage::environment(text, &mut problems);
    (environment, problems)
}

/// Reads events line by line; what is no event is left out and named.
///
/// The last line may be cut: a run that was killed while it wrote leaves that behind.
pub fn parse_events(mut from: impl BufRead) -> (Vec<RunEvent>, Vec<RunProblem>) {
    let (mut events, mut problems) = (Vec::new(), Vec::new());
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        let problem = |text: String| RunProblem::new(EVENTS, Some(number), text);
        match from.by_ref().take(MAX_LINE_BYTES).read_until(b'\n', &mut line) {
            Ok(0) => break,
            Ok(_) => {}
            Err(error) => {
                problems.push(problem(format!("cannot be read on: {error}")));
                break;
            }
        }
        let whole = line.ends_with(b"\n");
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        match serde_json::from_slice::<RunEvent>(&line) {
            Ok(event) => events.push(event),
            Err(_) if !whole && line.len() as u64 == MAX_LINE_BYTES => {
                problems.push(problem("the line is too long to be an event; stopped here".into()));
                break;
            }
            Err(_) if !whole => {
                problems
                    .push(problem("the last line is cut: the events before it are shown".into()));
            }
            Err(error) => problems.push(problem(format!("not an event, left out: {error}"))),
        }
    }
    (events, problems)
}

/// Why a file of the run was not opened; `missing` is said of one that is not there.
fn unreadable(name: &str, missing: &str, error: &io::Error) -> RunProblem {
    match error.kind() {
        ErrorKind::NotFound => RunProblem::new(name, None, missing),
        _ => RunProblem::new(name, None, format!("cannot be read: {error}")),
    }
}

/// Reads one file whole.
fn text(
    directory: &Path,
    name: &str,
    missing: &str,
    problems: &mut Vec<RunProblem>,
) -> Option<String> {
    problems.push(match fs::read(directory.join(name)).map(String::from_utf8) {
        Ok(Ok(text)) => return Some(text),
        Ok(Err(error)) => {
            let end = error.utf8_error().valid_up_to();
            let line = String::from_utf8_lossy(&error.as_bytes()[..end]).lines().count();
            RunProblem::new(name, Some(line.max(1) as u64), "is not UTF-8: not read")
        }
        Err(error) => unreadable(name, missing, &error),
    });
    None
}

/// The whole lines of `samples.jsonl.gz`; none when there is no such file.
fn samples(directory: &Path, problems: &mut Vec<RunProblem>) -> Vec<TrialSamples> {
    let Ok(file) = File::open(directory.join(SAMPLES)) else { return Vec::new() };
    let mut all = Vec::new();
    let mut lines = BufReader::new(MultiGzDecoder::new(file));
    for at in 1.. {
        let mut line = Vec::new();
        let why = match lines.by_ref().take(MAX_SAMPLES_BYTES).read_until(b'\n', &mut line) {
            Ok(0) => break,
            Ok(_) => match serde_json::from_slice(&line) {
                Ok(trial) => {
                    all.push(trial);
                    continue;
                }
                Err(error) => format!("read: {error}"),
            },
            Err(error) => format!("unpacked: {error}"),
        };
        let text = format!("cannot be {why}: not read from here on");
        problems.push(RunProblem::new(SAMPLES, Some(at), text));
        break;
    }
    all
}

fn manifest(directory: &Path, events: &[RunEvent], problems: &mut Vec<RunProblem>) -> Manifest {
    match text(directory, MANIFEST, "is missing: only events are shown", problems) {
        Some(text) => salvage::manifest(&text, events, problems),
        None => salvage::from_events(events),
    }
}

fn environment(directory: &Path, problems: &mut Vec<RunProblem>) -> Option<Environment> {
    let text = text(directory, ENVIRONMENT, "is missing: host facts are not known", problems)?;
    salvage::environment(&text, problems)
}

fn events(directory: &Path, problems: &mut Vec<RunProblem>) -> Vec<RunEvent> {
    let file = match File::open(directory.join(EVENTS)) {
        Ok(file) => file,
        Err(error) => {
            problems.push(unreadable(EVENTS, "is missing: there is no course of events", &error));
            return Vec::new();
        }
    };
    let (lines, mut found) = parse_events(BufReader::new(file));
    let more = found.len().saturating_sub(MAX_LISTED);
    found.truncate(MAX_LISTED);
    problems.append(&mut found);
    if more > 0 {
        problems.push(RunProblem::new(EVENTS, None, format!("{more} more lines were left out")));
    }
    lines
}
