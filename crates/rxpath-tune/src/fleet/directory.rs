//! The reports in a directory, one file for each host.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use thiserror::Error;

use super::Fleet;

/// A report of 200 findings has about 150 kB; a file larger than this is not a report.
const LARGEST_BYTES: u64 = 64 << 20;

/// Depth of directories below the named directory.
const DEEPEST: usize = 8;

/// Why a directory could not be read.
#[derive(Debug, Error)]
pub enum Unreadable {
    /// The named directory itself.
    #[error(transparent)]
    Named(io::Error),
    /// One below it.
    #[error("list {}", path.display())]
    List {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A thread that read ended early.
    #[error("a reader of reports failed")]
    Reader,
}

/// Reads every file below `dir` as a report; also returns the number of bytes read.
///
/// # Errors
/// If a directory can't be listed. A file that can't be read is a bad file of the fleet.
pub fn read(dir: &Path) -> Result<(Fleet, u64), Unreadable> {
    let (files, mut fleet) = files(dir)?;
    let (read, total_bytes) = read_all(dir, &files)?;
    fleet.merge(read);
    Ok((fleet, total_bytes))
}

/// The files below `dir`, sorted, and other entries that are not files. Hidden entries are skipped.
fn files(dir: &Path) -> Result<(Vec<PathBuf>, Fleet), Unreadable> {
    let mut found = Vec::new();
    let mut odd = Fleet::default();
    let mut open = vec![(dir.to_owned(), 0)];
    while let Some((at, depth)) = open.pop() {
        let entries = match fs::read_dir(&at) {
            Ok(entries) => entries,
            Err(error) if depth == 0 => return Err(Unreadable::Named(error)),
            Err(error) => {
                odd.bad(&name(dir, &at), error.to_string());
                continue;
            }
        };
        for entry in entries {
            let entry = entry.map_err(|source| Unreadable::List { path: at.clone(), source })?;
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
fn read_all(dir: &Path, files: &[PathBuf]) -> Result<(Fleet, u64), Unreadable> {
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
            let (fleet, bytes) = worker.join().map_err(|_| Unreadable::Reader)?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_report_is_named_and_what_is_hidden_is_skipped() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str| fs::write(dir.path().join(name), "no report").unwrap();
        fs::create_dir(dir.path().join("rack")).unwrap();
        ["rack/b.json", "a", ".hidden"].into_iter().for_each(write);
        let (fleet, bytes) = read(dir.path()).unwrap();
        assert_eq!((fleet.hosts.len(), bytes), (0, 2 * "no report".len() as u64));
        let bad = fleet.summary().bad_files;
        let files: Vec<&str> = bad.iter().map(|bad| bad.file.as_str()).collect();
        assert_eq!(files, ["a", "rack/b"]);
        let none = read(&dir.path().join("none"));
        assert!(matches!(none, Err(Unreadable::Named(_))));
    }
}
