//! Removes what dead owners left.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use super::{Head, RUN_DIR, Thing, VERSION};
use crate::HostError;
use crate::lab::netns;
use crate::netlink::Netlink;
use crate::read::identity::boot_id;
use crate::read::process::ProcessId;

/// What a cleanup did.
#[derive(Debug, Default)]
pub struct Removed {
    /// Ids of the runs whose things were removed.
    pub runs: Vec<String>,
    /// Each thing that was there and is not any more, in words.
    pub things: Vec<String>,
    /// Ids of runs whose owner still lives: untouched.
    pub alive: Vec<String>,
    /// What could not be removed, or read; the record of it stays.
    pub failed: Vec<(String, HostError)>,
}

/// A record as it is on disk.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub head: Head,
    pub things: Vec<Thing>,
}

/// Removes what runs left whose owner no longer lives. Touches nothing that is not on their records.
///
/// **Errors** only when the directory of records can't be read; the rest is in [`Removed::failed`].
pub fn cleanup() -> Result<Removed, HostError> {
    cleanup_in(Path::new(RUN_DIR))
}

/// As [`cleanup`], with the records in another directory.
pub fn cleanup_in(dir: &Path) -> Result<Removed, HostError> {
    let mut removed = Removed::default();
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(removed),
        Err(e) => return Err(HostError::from_io("list", dir, e)),
    };
    let mut paths: Vec<PathBuf> = entries.filter_map(|e| Some(e.ok()?.path())).collect();
    paths.sort();
    let boot = boot_id()?;
    for path in paths {
        match path.extension().and_then(OsStr::to_str) {
            Some("draft") => remove_dead_draft(&path),
            Some(super::SUFFIX) => one(&path, &boot, &mut removed),
            _ => {}
        }
    }
    Ok(removed)
}

/// A draft is `ID.PID.START.draft`; nothing is made while its owner still writes it.
fn remove_dead_draft(path: &Path) {
    let name = path.file_stem().and_then(OsStr::to_str).unwrap_or_default();
    let mut parts = name.split('.').skip(1);
    let pid = parts.next().and_then(|pid| pid.parse().ok());
    let start = parts.next().and_then(|start| start.parse().ok());
    if let (Some(pid), Some(start_ticks)) = (pid, start)
        && !(ProcessId { pid, start_ticks }).is_alive()
    {
        let _ = fs::remove_file(path);
    }
}

fn one(path: &Path, boot: &str, removed: &mut Removed) {
    let name = path.display().to_string();
    let record = fs::read(path).map_err(|e| HostError::from_io("read", path, e));
    let record = match record.and_then(|bytes| parse(path, &bytes)) {
        Ok(record) => record,
        Err(error) => return removed.failed.push((name, error)),
    };
    let same_boot = record.head.boot_id == boot;
    if same_boot && record.head.owner.is_alive() {
        return removed.alive.push(record.head.id);
    }
    let before = removed.failed.len();
    // Processes first: they hold the namespaces.
    let (processes, others): (Vec<_>, Vec<_>) =
        record.things.iter().partition(|thing| matches!(thing, Thing::Process { .. }));
    for thing in processes.into_iter().filter(|_| same_boot).chain(others) {
        match remove(thing, &record.head.id) {
            Ok(Some(what)) => removed.things.push(what),
            Ok(None) => {}
            Err(error) => removed.failed.push((format!("{thing:?}"), error)),
        }
    }
    if removed.failed.len() == before {
        if let Err(e) = fs::remove_file(path) {
            removed.failed.push((name, HostError::from_io("remove", path, e)));
        }
        removed.runs.push(record.head.id);
    }
}

/// Removes one thing; `None` when it was not there.
fn remove(thing: &Thing, id: &str) -> Result<Option<String>, HostError> {
    let ours = |name: &str| name.starts_with(&format!("rxp-{id}-")) && !name.contains('/');
    match thing {
        Thing::Process { process } => {
            Ok(process.kill()?.then(|| format!("process {}", process.pid)))
        }
        // A record that names what no run of this id makes was edited: leave the thing alone.
        Thing::Netns { name } | Thing::Link { name } if !ours(name) => Ok(None),
        Thing::Netns { name } => Ok(netns::unname(name)?.then(|| format!("namespace {name}"))),
        Thing::Link { name } => match Netlink::route()?.delete_link(name) {
            Ok(()) => Ok(Some(format!("link {name}"))),
            Err(HostError::Kernel { errno: libc::ENODEV, .. }) => Ok(None),
            Err(error) => Err(error),
        },
    }
}

/// Reads a record. A last line that was cut off is left out: what it names was not made yet.
pub(crate) fn parse(path: &Path, bytes: &[u8]) -> Result<Record, HostError> {
    let text = String::from_utf8_lossy(bytes);
    let mut lines = text.split_inclusive('\n').enumerate();
    let bad = |line: usize, why: String| HostError::malformed(path, line + 1, why);
    let (_, first) = lines.next().ok_or_else(|| bad(0, "the record is empty".into()))?;
    let version: serde_json::Value =
        serde_json::from_str(first).map_err(|e| bad(0, format!("not a record: {e}")))?;
    match version.get("v").and_then(serde_json::Value::as_u64) {
        Some(v) if v == u64::from(VERSION) => {}
        Some(v) if v > u64::from(VERSION) => {
            let why = format!("written by a newer rxpath (form {v}, this one knows {VERSION})");
            return Err(bad(0, why));
        }
        _ => return Err(bad(0, "not a record: no version".into())),
    }
    let head = serde_json::from_value(version).map_err(|e| bad(0, e.to_string()))?;
    let mut things = Vec::new();
    for (number, line) in lines.filter(|(_, line)| line.ends_with('\n')) {
        things.push(serde_json::from_str(line).map_err(|e| bad(number, e.to_string()))?);
    }
    Ok(Record { head, things })
}

#[cfg(test)]
mod tests {
    use super::super::Owner;
    use super::*;
    use crate::any_bytes::takes_any_bytes;

    fn netns(name: &str) -> Thing {
        Thing::Netns { name: name.into() }
    }

    #[test]
    fn a_record_cut_anywhere_loses_only_what_was_not_made() {
        let dir = tempfile::tempdir().unwrap();
        let owner = Owner::register_in(dir.path(), "0a1b2c").unwrap();
        for role in ["tx", "rx"] {
            owner.record(&netns(&owner.name(role))).unwrap();
        }
        let path = dir.path().join("0a1b2c.owner");
        let whole = fs::read(&path).unwrap();
        let head_end = whole.iter().position(|b| *b == b'\n').unwrap();
        for end in 0..=whole.len() {
            let record = parse(&path, &whole[..end]);
            let complete = whole[..end].split(|b| *b == b'\n').count() - 1;
            if end >= head_end {
                assert_eq!(
                    record.unwrap().things.len(),
                    complete.saturating_sub(1),
                    "cut at {end}"
                );
            } else {
                assert!(record.is_err(), "cut at {end}");
            }
        }
    }

    #[test]
    fn a_living_owner_is_left_alone_and_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let owner = Owner::register_in(dir.path(), "0a1b2d").unwrap();
        assert_eq!(cleanup_in(dir.path()).unwrap().alive, ["0a1b2d"]);
        assert!(Owner::register_in(dir.path(), "0a1b2d").is_err(), "the id is taken");
        drop(owner);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_dead_owner_is_cleaned_up_and_edited_names_are_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let owner = ProcessId { pid: std::process::id() as i32, start_ticks: 1 };
        let head = Head { v: VERSION, id: "0a1b2e".into(), owner, boot_id: boot_id().unwrap() };
        let lines = [
            serde_json::to_string(&head).unwrap(),
            serde_json::to_string(&netns("not-ours")).unwrap(),
            serde_json::to_string(&netns("rxp-0a1b2e-../../x")).unwrap(),
            String::new(),
        ];
        fs::write(dir.path().join("0a1b2e.owner"), lines.join("\n")).unwrap();
        fs::write(dir.path().join("0a1b2e.1.1.draft"), "").unwrap();
        fs::write(dir.path().join("somebody.else"), "").unwrap();
        let removed = cleanup_in(dir.path()).unwrap();
        assert_eq!(removed.runs, ["0a1b2e"]);
        assert!(removed.things.is_empty() && removed.failed.is_empty(), "{removed:?}");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_newer_record_is_refused_in_words() {
        let error = parse(Path::new("x"), b"{\"v\":9}\n").unwrap_err();
        assert!(error.to_string().contains("newer rxpath"), "{error}");
    }

    #[test]
    fn ids_are_six_hex_digits() {
        let dir = tempfile::tempdir().unwrap();
        for id in ["", "12345", "1234567", "12345G", "ABCDEF", "../../"] {
            assert!(Owner::register_in(dir.path(), id).is_err(), "{id}");
        }
    }

    takes_any_bytes!(300, bytes => parse(Path::new("x"), &bytes));
}
