//! `rxpath check --summarize DIR`: a summary of the reports of many hosts.

use std::fs::{self, File};
use std::io::Read;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use anyhow::anyhow;
use rxpath_tune::fleet::{Fleet, Summary};

use crate::cmd::prelude::*;
use crate::output::check::summary::{Summarized, render};

/// A report of 200 findings has about 150 kB; a file larger than this is not a report.
const LARGEST_BYTES: u64 = 64 << 20;

/// Depth of directories below the named directory.
const DEEPEST: usize = 8;

/// Reads every report below `dir` and finds what the hosts have in common and which hosts differ.
pub fn run(dir: &Path, json: bool, all: bool) -> Outcome {
    let started = Instant::now();
    let (files, mut fleet) = files(dir)?;
    if files.is_empty() && fleet.is_nothing() {
        return Err(no_report(dir, "no file in it"));
    }
    let (read, total_bytes) = read(dir, &files)?;
    fleet.merge(read);
    if fleet.is_empty() {
        let bad = fleet.summary().bad_files;
        let first =
            bad.first().map_or_else(String::new, |bad| format!(": {}: {}", bad.file, bad.why));
        return Err(no_report(dir, &format!("none of its {} files is a report{first}", bad.len())));
    }
    let summary = fleet.summary();
    let warnings = warnings(&summary);
    let exit = if summary.bad_files.is_empty() { Exit::Done } else { Exit::Partial };
    let result = Summarized { summary, total_bytes, elapsed_s: started.elapsed().as_secs_f64() };
    if json {
        let settings = json!({ "directory": dir });
        output::json(&Envelope::new("check-summary", settings, result, warnings))?;
    } else {
        output::text(&render(&result, all))?;
        warnings.iter().for_each(output::warning);
    }
    Ok(exit)
}

fn no_report(dir: &Path, why: &str) -> Failure {
    Failure::usage(format!("--summarize {}: {why}", dir.display()))
        .hint("it takes a directory of files that `rxpath check --json` wrote, one for each host")
}

/// The files below `dir`, sorted, and other entries that are not files. Hidden entries are skipped.
fn files(dir: &Path) -> Result<(Vec<PathBuf>, Fleet), Failure> {
    let mut found = Vec::new();
    let mut odd = Fleet::default();
    let mut open = vec![(dir.to_owned(), 0)];
    while let Some((at, depth)) = open.pop() {
        let entries = match fs::read_dir(&at) {
            Ok(entries) => entries,
            Err(error) if depth == 0 => {
                return Err(error).or_usage(|| format!("--summarize {}", dir.display()));
            }
            Err(error) => {
                odd.bad(&name(dir, &at), error.to_string());
                continue;
            }
        };
        for entry in entries {
            let entry = entry.with_context(|| format!("list {}", at.display()))?;
            if entry.file_name().as_encoded_bytes().starts_with(b".") {
                continue;
            }
            let path = entry.path();
            // Links to files are followed, links to directories are not: they may form a loop.
            let is_link = entry.file_type().is_ok_and(|kind| kind.is_symlink());
            match fs::metadata(&path) {
                Ok(kind) if kind.is_file() => found.push(path),
                Ok(kind) if kind.is_dir() && !is_link && depth < DEEPEST => {
                    open.push((path, depth + 1));
                }
                Ok(kind) if kind.is_dir() => {
                    odd.bad(&name(dir, &path), "a directory, not entered".into());
                }
                Ok(_) => odd.bad(&name(dir, &path), "not a regular file".into()),
                Err(error) => odd.bad(&name(dir, &path), error.to_string()),
            }
        }
    }
    found.sort_unstable();
    Ok((found, odd))
}

/// Reads the files on all CPUs that this process may use; returns the reports and the number of bytes read.
fn read(dir: &Path, files: &[PathBuf]) -> anyhow::Result<(Fleet, u64)> {
    let next = AtomicUsize::new(0);
    let work = || {
        let (mut fleet, mut bytes, mut content) = (Fleet::default(), 0, Vec::new());
        while let Some(path) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
            let name = name(dir, path);
            match slurp(path, &mut content) {
                Ok(()) => {
                    bytes += content.len() as u64;
                    fleet.add(&name, &content);
                }
                Err(why) => fleet.bad(&name, why),
            }
        }
        (fleet, bytes)
    };
    let threads = thread::available_parallelism().map_or(1, usize::from).min(files.len().max(1));
    thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let mut all = (Fleet::default(), 0);
        for worker in workers {
            let (fleet, bytes) =
                worker.join().map_err(|_| anyhow!("a reader of reports failed"))?;
            all.0.merge(fleet);
            all.1 += bytes;
        }
        Ok(all)
    })
}

/// Reads the whole file into `content`, whose memory is reused.
fn slurp(path: &Path, content: &mut Vec<u8>) -> Result<(), String> {
    content.clear();
    let file = File::open(path).map_err(|error| error.to_string())?;
    file.take(LARGEST_BYTES + 1).read_to_end(content).map_err(|error| error.to_string())?;
    if content.len() as u64 > LARGEST_BYTES {
        return Err(format!("larger than {} MiB: not a report", LARGEST_BYTES >> 20));
    }
    Ok(())
}

/// The host's name: a file's path below the directory, without `.json`.
fn name(dir: &Path, path: &Path) -> String {
    let below = path.strip_prefix(dir).unwrap_or(path).to_string_lossy().into_owned();
    below.strip_suffix(".json").map_or(below.clone(), str::to_owned)
}

fn warnings(summary: &Summary) -> Vec<Warning> {
    let mut warnings = Vec::new();
    if !summary.bad_files.is_empty() {
        let count = summary.bad_files.len();
        let named: Vec<String> = summary
            .bad_files
            .iter()
            .take(5)
            .map(|bad| format!("{}: {}", bad.file, bad.why))
            .collect();
        let more = if count > named.len() { ", ..." } else { "" };
        let text = format!("{count} files could not be used: {}{more}", named.join(", "));
        warnings.push(
            Warning::new("bad-reports", text)
                .cure("run `rxpath check --json` again on those hosts"),
        );
    }
    if summary.goals.len() > 1 {
        let goals: Vec<String> =
            summary.goals.iter().map(|(goal, n)| format!("{n} for {goal}")).collect();
        warnings.push(
            Warning::new(
                "mixed-goals",
                format!("hosts were judged for different goals: {}", goals.join(", ")),
            )
            .because("a finding for one goal may be none for another")
            .cure("check all hosts with the same --goal"),
        );
    }
    warnings
}
