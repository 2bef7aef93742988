//! A host's files and answers as a tree that `--sysroot` takes: to look at elsewhere, to keep, to hand in with a report.
//!
//! The tree holds files as the kernel names them (`proc/`, `sys/`, `etc/`), links of sysfs as links, and what netlink
//! and ioctl answer as JSON below `netlink/` ([`crate::read::nic`]). Addresses, host and user names, UUIDs and keys are
//! replaced or left out unless told otherwise ([`scrub`]). Which files: [`sources`]. Only the target is written.
//!
//! Counters are read twice, at least [`SHORT_WINDOW`] apart; the second reading is a tree of its own below `later/`.
//! Only with both can a reader distinguish a count that rises from one that is old.

pub mod scrub;
pub mod sources;
mod tree;

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::thread;
use std::time::Instant;

use rxpath_core::Fact;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::read::cgroup::with_parents;
use crate::read::counter::SHORT_WINDOW;
use crate::read::environment;
use crate::read::nic::{self, Nic};
use crate::read::root::LATER;
use crate::read::startup::{self, SCRIPTS};
use crate::read::sysfs::device;
use crate::{HostError, Root};
use scrub::{HostNames, Replaced, Scrubber};
use sources::{Source, SourceKind};
use tree::Tree;

/// Version of the tree's form: what stands in it may grow, what stood in it stays.
const FORM: u32 = 1;

/// A file that is not in the tree, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OmittedFile {
    /// Its path.
    pub path: String,
    /// Why.
    pub why: String,
    /// Whether more privilege would show it.
    pub is_denied: bool,
}

/// What a capture wrote: `capture.json` in the tree.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Captured {
    /// Version of the tree's form.
    pub form: u32,
    /// Whether names and addresses were replaced.
    pub is_scrubbed: bool,
    /// Files written.
    pub files_count: u64,
    /// Links written.
    pub links_count: u64,
    /// Size of all files.
    pub total_bytes: u64,
    /// Network devices whose answers were recorded.
    pub devices: Vec<String>,
    /// What was replaced, and how often.
    pub replaced: Replaced,
    /// Files that exist and are not in the tree.
    pub left_out: Vec<OmittedFile>,
}

/// Captures the running host into `dir`, which is made, or is empty.
///
/// **Cost** reads some thousand small files, once each, and the counters once more. **Errors** when `dir` can't be written or is not empty; a file
/// that can't be read is left out and listed.
pub fn capture(dir: &Path, is_scrubbed: bool) -> Result<Captured, HostError> {
    let root = Root::host();
    make_empty(dir)?;
    let scrubber = if is_scrubbed { Scrubber::new(HostNames::of(&root)) } else { Scrubber::none() };
    let later = dir.join(LATER);
    let mut job = Job {
        started: Instant::now(),
        nics: Vec::new(),
        tree: Tree::new(dir),
        captured: Captured { form: FORM, is_scrubbed, ..Captured::default() },
        seen: BTreeSet::new(),
        root,
        scrubber,
    };
    for source in sources::all() {
        job.source(&source)?;
    }
    job.processes()?;
    job.cgroups()?;
    job.answers()?;
    job.again(&later)?;
    job.finish()
}

fn make_empty(dir: &Path) -> Result<(), HostError> {
    fs::create_dir_all(dir).map_err(|e| HostError::from_io("create", dir, e))?;
    let mut entries = fs::read_dir(dir).map_err(|e| HostError::from_io("list", dir, e))?;
    if entries.next().is_some() {
        return Err(HostError::malformed(dir, 0, "not empty: a capture needs an empty directory"));
    }
    Ok(())
}

/// A capture under way.
struct Job<'a> {
    root: Root,
    scrubber: Scrubber,
    tree: Tree<'a>,
    captured: Captured,
    seen: BTreeSet<String>,
    started: Instant,
    /// The first answers of each device.
    nics: Vec<(String, Nic)>,
}

impl<'a> Job<'a> {
    /// Reads the counters a second time, into a tree of its own.
    fn again(&mut self, dir: &'a Path) -> Result<(), HostError> {
        // why: two readings this far apart are what the second tree is for.
        thread::sleep(SHORT_WINDOW.saturating_sub(self.started.elapsed()));
        let first = std::mem::replace(&mut self.tree.base, dir);
        self.seen.clear();
        self.cgroups()?;
        for source in sources::all().iter().filter(|one| one.sort == SourceKind::Counters) {
            self.source(source)?;
        }
        if let Some(mut reader) = self.found("/netlink", nic::Reader::open()) {
            let qdiscs = reader.qdiscs();
            for (name, first) in std::mem::take(&mut self.nics) {
                let qdiscs = qdiscs.of(&first);
                let counted = reader.counted(&name, &first);
                let nic = Nic { link: Fact::default(), qdiscs, ..counted };
                let name = self.scrubber.name(&name);
                self.json(&nic::device_path(&name), &nic, &[])?;
            }
            self.json(nic::HOST_PATH, &reader.host_counted(), &[])?;
        }
        self.tree.base = first;
        Ok(())
    }

    fn source(&mut self, source: &Source) -> Result<(), HostError> {
        let release = self.root.value("/proc/sys/kernel/osrelease").unwrap_or_default();
        for path in sources::expand(&self.root, &source.pattern) {
            // Of the installed kernels only the running one matters.
            let kernel = path
                .strip_prefix("/boot/config-")
                .or_else(|| path.split_once("/modules/")?.1.strip_suffix("/config"))
                .filter(|_| source.sort == SourceKind::Binary);
            if kernel.is_some_and(|of| of != release) {
                continue;
            }
            match source.sort {
                SourceKind::Below => self.below(&path, 0)?,
                SourceKind::Link => self.link(&path)?,
                sort => self.file(&path, sort)?,
            }
        }
        Ok(())
    }

    /// Everything below a directory.
    fn below(&mut self, dir: &str, depth: usize) -> Result<(), HostError> {
        const MAX_DEPTH: usize = 8;
        let names = self.root.list(dir);
        for name in self.found(dir, names).unwrap_or_default() {
            let path = format!("{dir}/{name}");
            if self.root.is_dir(&path) {
                if depth < MAX_DEPTH {
                    self.below(&path, depth + 1)?;
                }
            } else {
                self.file(&path, SourceKind::File)?;
            }
        }
        Ok(())
    }

    fn file(&mut self, path: &str, sort: SourceKind) -> Result<(), HostError> {
        let name = path.rsplit('/').next().unwrap_or_default();
        if sources::is_secret(name) || !self.seen.insert(path.to_owned()) || self.root.is_dir(path)
        {
            return Ok(());
        }
        let bytes = match self.root.bytes(path) {
            Ok(bytes) => bytes,
            // A driver without the attribute, or a trigger that is only written.
            Err(HostError::Missing { .. } | HostError::Unsupported { .. }) => return Ok(()),
            Err(HostError::Denied { .. }) if self.is_write_only(path) => return Ok(()),
            // A pattern that means a directory met a file.
            Err(HostError::Io { source, .. }) if source.raw_os_error() == Some(libc::ENOTDIR) => {
                return Ok(());
            }
            Err(error) => {
                self.leave_out(path, error);
                return Ok(());
            }
        };
        if SCRIPTS.contains(&path) && !startup::is_run(&self.root, path) {
            let why = "it is not executable, so nothing runs it at boot";
            self.leave_out(path, HostError::malformed(path, 0, why));
            return Ok(());
        }
        let content = match self.content(bytes, sort) {
            // A start-up file that names no setting.
            Ok(content) if content.is_empty() && sort == SourceKind::Startup => return Ok(()),
            Ok(content) => content,
            Err(why) => {
                self.leave_out(path, HostError::malformed(path, 0, why));
                return Ok(());
            }
        };
        let place = self.tree.place(&mut self.scrubber, path, true)?;
        self.tree.write(&place, &content)
    }

    fn is_write_only(&self, path: &str) -> bool {
        fs::metadata(self.root.path(path))
            .is_ok_and(|metadata| metadata.permissions().mode() & 0o444 == 0)
    }

    fn content(&mut self, bytes: Vec<u8>, sort: SourceKind) -> Result<Vec<u8>, &'static str> {
        if !self.captured.is_scrubbed {
            return Ok(bytes);
        }
        let text = match (String::from_utf8(bytes), sort) {
            (Err(error), SourceKind::Binary) => {
                return Ok(sources::cut(error.into_bytes()));
            }
            (Ok(text), SourceKind::Binary) => return Ok(sources::cut(text.into_bytes())),
            (Ok(text), SourceKind::Version) => return Ok(text.into_bytes()),
            (Err(_), _) => return Err("not text: names in it could not be replaced"),
            (Ok(text), SourceKind::Settings) => sources::without_comments(&text),
            (Ok(text), SourceKind::CommandLine) => environment::known_parameters(&text),
            (Ok(text), SourceKind::Startup) => {
                let devices = device::names(&self.root).unwrap_or_default();
                startup::names_only(&text, &devices)
            }
            (Ok(text), _) => text,
        };
        Ok(self.scrubber.text(&text).into_bytes())
    }

    fn link(&mut self, path: &str) -> Result<(), HostError> {
        match self.root.link(path) {
            Ok(to) => {
                let place = self.tree.place(&mut self.scrubber, path, false)?;
                let to = self.scrubber.name(&to.to_string_lossy());
                self.tree.link(&place, &to)
            }
            Err(HostError::Missing { .. } | HostError::Unsupported { .. }) => Ok(()),
            Err(error) => {
                self.leave_out(path, error);
                Ok(())
            }
        }
    }

    /// Names and states of the programs and kernel threads that matter to the receive path.
    fn processes(&mut self) -> Result<(), HostError> {
        for pid in crate::read::procfs::task::processes(&self.root).unwrap_or_default() {
            let comm = self.root.value(&format!("/proc/{pid}/comm")).unwrap_or_default();
            if environment::is_known_program(&comm) {
                for file in ["comm", "stat", "status"] {
                    self.file(&format!("/proc/{pid}/{file}"), SourceKind::File)?;
                }
            }
        }
        Ok(())
    }

    /// The limits of this process's control group and of those above it, and what came of them.
    fn cgroups(&mut self) -> Result<(), HostError> {
        let groups = self.root.text("/proc/self/cgroup").unwrap_or_default();
        let own = groups.lines().find_map(|line| line.strip_prefix("0::")).unwrap_or_default();
        if own.split('/').any(|part| part == "..") {
            return Ok(());
        }
        for group in with_parents(own).iter().rev().filter(|group| !group.is_empty()) {
            for file in ["cpu.max", "cpu.stat"] {
                self.file(&format!("/sys/fs/cgroup{group}/{file}"), SourceKind::File)?;
            }
        }
        Ok(())
    }

    /// What netlink and ioctl answer.
    fn answers(&mut self) -> Result<(), HostError> {
        let names = device::names(&self.root)?;
        let Some(mut reader) = self.found("/netlink", nic::Reader::open()) else { return Ok(()) };
        let qdiscs = reader.qdiscs();
        for name in &names {
            let nic = reader.device(name);
            self.device(name, Nic { qdiscs: qdiscs.of(&nic), ..nic })?;
        }
        self.json(nic::HOST_PATH, &reader.host(&names), &[])
    }

    fn device(&mut self, name: &str, mut nic: Nic) -> Result<(), HostError> {
        if self.captured.is_scrubbed
            && let Fact::Ok { value } = &mut nic.rss
            && value.key.value().is_some()
        {
            value.key = Fact::absent(KEY);
        }
        let scrubbed = self.scrubber.name(name);
        self.json(&nic::device_path(&scrubbed), &nic, &VERSIONS)?;
        self.captured.devices.push(scrubbed);
        self.nics.push((name.to_owned(), nic));
        Ok(())
    }

    /// Writes `value` scrubbed, but for the texts at the JSON pointers `kept`.
    fn json(&mut self, path: &str, value: &impl Serialize, kept: &[&str]) -> Result<(), HostError> {
        let bad = |e: serde_json::Error| HostError::malformed(path, 0, e.to_string());
        let mut value = serde_json::to_value(value).map_err(bad)?;
        let mut aside = Vec::new();
        for pointer in kept {
            aside.extend(value.pointer_mut(pointer).map(|text| (*pointer, text.take())));
        }
        let text = serde_json::to_string(&value).map_err(bad)?;
        let mut value: Value = serde_json::from_str(&self.scrubber.text(&text)).map_err(bad)?;
        for (pointer, text) in aside {
            if let Some(place) = value.pointer_mut(pointer) {
                *place = text;
            }
        }
        let text = serde_json::to_string_pretty(&value).map_err(bad)? + "\n";
        let place = self.tree.plain(path);
        self.tree.write(&place, text.as_bytes())
    }

    /// What was read; where it could not be read, the capture says why it is left out.
    fn found<T>(&mut self, path: &str, read: Result<T, HostError>) -> Option<T> {
        read.map_err(|error| self.leave_out(path, error)).ok()
    }

    fn leave_out(&mut self, path: &str, error: HostError) {
        let is_denied = matches!(
            error,
            HostError::Denied { .. } | HostError::Kernel { errno: libc::EPERM | libc::EACCES, .. }
        );
        let why = match error {
            HostError::Denied { capability, .. } => format!("needs {capability}"),
            HostError::Malformed { why, .. } => why,
            HostError::Io { source, .. } => source.to_string(),
            other => other.to_string(),
        };
        let path = self.scrubber.name(path);
        self.captured.left_out.push(OmittedFile { path, why, is_denied });
    }

    fn finish(mut self) -> Result<Captured, HostError> {
        self.captured.replaced = self.scrubber.replaced();
        self.captured.files_count = self.tree.files_count;
        self.captured.links_count = self.tree.links_count;
        self.captured.total_bytes = self.tree.total_bytes;
        let text = serde_json::to_string_pretty(&self.captured)
            .map_err(|e| HostError::malformed("capture.json", 0, e.to_string()))?;
        let place = self.tree.plain("/capture.json");
        self.tree.write(&place, (text + "\n").as_bytes())?;
        Ok(self.captured)
    }
}

/// Versions among a device's answers: four numbers with dots are no address there.
const VERSIONS: [&str; 2] = ["/driver/value/firmware", "/driver/value/version"];

const KEY: &str = "left out of the capture: with the key, attackers can direct flows to one queue (--no-scrub keeps it)";

#[cfg(test)]
mod tests;
