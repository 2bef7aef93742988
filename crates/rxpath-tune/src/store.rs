//! Where the journals of tuning lie: one file each, numbered, and the locks so that one process at a time changes the
//! host.
//!
//! The question it answers: *what has been changed by `tune` and may be in force?* A finished journal stays for a while
//! as a record.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rxpath_host::lab::lock::{LabLock, is_held};
use rxpath_host::write::journal::{Contents, Journal};
use rxpath_host::{HostError, Target};

mod neighbours;

pub use neighbours::{Conflict, RUN_DIR, Unknown};

/// Where journals lie unless told otherwise: they outlive a restart, to say then that it has undone all.
pub const STATE_DIR: &str = "/var/lib/rxpath/tune";
/// Finished journals that are kept.
const KEPT: usize = 30;

/// The folder of journals.
#[derive(Clone, Debug)]
pub struct Store {
    dir: PathBuf,
    run: PathBuf,
}

/// The right to change the settings of this network namespace and to write the journals of a folder.
#[derive(Debug)]
pub struct TuneLock {
    _folder: LabLock,
    _host: Vec<LabLock>,
}

/// A journal of the folder, with the parts that can be read.
#[derive(Debug)]
pub struct StoredJournal {
    /// Its number.
    pub id: u32,
    /// What is on it; the error of one that can't be read.
    pub contents: Result<Contents, HostError>,
}

impl StoredJournal {
    /// Whether it may have changes in force. One that can't be read may.
    pub fn is_open(&self) -> bool {
        self.contents.as_ref().map_or(true, Contents::is_open)
    }
}

impl Store {
    /// The folder, made when it is not there.
    pub fn open(dir: &Path) -> Result<Self, HostError> {
        fs::create_dir_all(dir).map_err(|e| HostError::from_io("create", dir, e))?;
        Ok(Self::at(dir))
    }

    /// The folder, which need not be there.
    pub fn at(dir: &Path) -> Self {
        Self { dir: dir.into(), run: RUN_DIR.into() }
    }

    /// The same folder with another place for the locks, for tests.
    #[cfg(test)]
    #[must_use]
    pub(crate) fn with_run_dir(self, run: &Path) -> Self {
        Self { run: run.into(), ..self }
    }

    /// The right to change the host, waiting for each of its locks at most `patience`: of the folder, whose journals are numbered, and of
    /// the network namespace, whatever the folder.
    ///
    /// **Errors** `Kernel` with `EBUSY` that names the holder.
    pub fn lock(&self, patience: Duration) -> Result<TuneLock, HostError> {
        let folder = LabLock::take_for("tune", &self.dir.join("lock"), patience)?;
        Ok(TuneLock { _folder: folder, _host: neighbours::lock(&self.run, patience)? })
    }

    /// Whether somebody changes the host now and writes a journal of the folder: what is not on it yet may still come.
    pub fn is_held(&self) -> bool {
        is_held(&self.dir.join("lock"))
    }

    /// The file of a journal.
    pub fn path(&self, id: u32) -> PathBuf {
        self.dir.join(format!("{id}.journal"))
    }

    /// What the watchdog of a journal did.
    pub fn log(&self, id: u32) -> PathBuf {
        self.dir.join(format!("{id}.log"))
    }

    /// All journals, oldest first.
    pub fn list(&self) -> Result<Vec<StoredJournal>, HostError> {
        let entries = match fs::read_dir(&self.dir) {
            Ok(entries) => entries,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(e) => return Err(HostError::from_io("list", &self.dir, e)),
        };
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let mut ids: Vec<u32> =
            names.filter_map(|name| name.strip_suffix(".journal")?.parse().ok()).collect();
        ids.sort_unstable();
        let stored = |id| StoredJournal { id, contents: self.contents(id) };
        Ok(ids.into_iter().map(stored).collect())
    }

    /// What is on a journal: nothing yet, if its file is not there.
    pub(crate) fn contents(&self, id: u32) -> Result<Contents, HostError> {
        Contents::read(&self.path(id))?.map_or_else(Contents::begun, Ok)
    }

    /// Begins a journal of the next number, and lets go of old finished ones. The caller holds the lock.
    pub fn begin(&self) -> Result<(u32, Journal), HostError> {
        let listed = self.list()?;
        let id = listed.last().map_or(1, |last| last.id + 1);
        for one in listed.iter().rev().filter(|one| !one.is_open()).skip(KEPT) {
            // Only a record is lost or kept by this.
            let _ = fs::remove_file(self.path(one.id));
            let _ = fs::remove_file(self.log(one.id));
        }
        self.register();
        Ok((id, Journal::open(&self.path(id))?))
    }

    /// Takes a journal out of the list that nobody can read, and keeps its file. Where it is now.
    pub fn set_aside(&self, id: u32) -> Result<PathBuf, HostError> {
        let from = self.path(id);
        // Its number is given away again when it was the last one.
        let mut names = (1u32..).map(|n| self.dir.join(format!("{id}.{n}.unreadable")));
        let to = names.find(|to| !to.exists()).unwrap_or_else(|| self.dir.join("unreadable"));
        fs::rename(&from, &to).map_err(|e| HostError::from_io("rename", &from, e))?;
        Ok(to)
    }

    /// Whether a journal that is still open came after this one and changed the same settings.
    pub fn later_on_same(&self, id: u32, contents: &Contents) -> Result<Option<u32>, HostError> {
        let touches = |other: &Contents, is_same_netns: bool| {
            // Of two namespaces, what both share alone.
            let counts = |target: &&Target| is_same_netns || !neighbours::is_of_namespace(target);
            // What is only taken along counts on one side: two that both take it along restore it in any order.
            other.open_targets().filter(counts).any(|theirs| contents.may_restore(theirs))
                || contents.open_targets().filter(counts).any(|ours| other.may_restore(ours))
        };
        let listed = self.list()?;
        let same_place = |one: &&StoredJournal| {
            one.id > id
                && one.contents.as_ref().is_ok_and(|other| {
                    other.is_open()
                        && other.boot_id == contents.boot_id
                        && touches(other, other.netns == contents.netns)
                })
        };
        Ok(listed.iter().find(same_place).map(|one| one.id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "{\"step\":\"head\",\"v\":1,\"boot_id\":\"b\",\"netns\":1}\n";

    fn begin(n: u32, target: &str) -> String {
        format!(
            "{{\"step\":\"begin\",\"n\":{n},\"target\":\"{target}\",\"before\":\"1\",\"asked\":\"2\"}}\n"
        )
    }

    #[test]
    fn journals_are_numbered_and_finished_ones_are_let_go() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path()).unwrap().with_run_dir(&dir.path().join("run"));
        assert!(Store::at(&dir.path().join("none")).list().unwrap().is_empty());
        for expected in 1..=40 {
            assert_eq!(store.begin().unwrap().0, expected);
        }
        let left = store.list().unwrap();
        assert_eq!(left.len(), KEPT + 1, "journals without changes are finished");
        fs::write(store.path(41), "garbage\n").unwrap();
        let bad = store.list().unwrap().pop().unwrap();
        assert!(bad.contents.is_err() && bad.is_open(), "what can't be read may be in force");
        assert_eq!(store.begin().unwrap().0, 42);
    }

    #[test]
    fn a_later_change_of_the_same_setting_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path()).unwrap().with_run_dir(&dir.path().join("run"));
        let write = |id, lines: &[String]| {
            fs::write(store.path(id), format!("{HEAD}{}", lines.concat())).unwrap();
        };
        write(1, &[begin(0, "net.core.rmem_max")]);
        write(2, &[begin(0, "net.core.wmem_max")]);
        write(3, &[begin(0, "net.core.rmem_max"), "{\"step\":\"undone\",\"n\":0}\n".into()]);
        let first = Contents::read(&store.path(1)).unwrap().unwrap();
        assert_eq!(store.later_on_same(1, &first).unwrap(), None);
        write(4, &[begin(0, "net.core.rmem_max")]);
        assert_eq!(store.later_on_same(1, &first).unwrap(), Some(4));

        // In another namespace the sysctl is another one, the interrupt is the same.
        write(5, &[begin(0, "net.ipv4.udp_rmem_min"), begin(1, "irq/24")]);
        let elsewhere = HEAD.replace("\"netns\":1", "\"netns\":2");
        let theirs = [begin(0, "net.ipv4.udp_rmem_min")].concat();
        fs::write(store.path(6), format!("{elsewhere}{theirs}")).unwrap();
        let fifth = Contents::read(&store.path(5)).unwrap().unwrap();
        assert_eq!(store.later_on_same(5, &fifth).unwrap(), None);
        fs::write(store.path(7), format!("{elsewhere}{}", begin(0, "irq/24"))).unwrap();
        assert_eq!(store.later_on_same(5, &fifth).unwrap(), Some(7));
    }
}
