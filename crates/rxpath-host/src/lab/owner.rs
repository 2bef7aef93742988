//! Who made what: a record under `/run/rxpath` that outlives the process that made it.
//!
//! Each thing that a run makes is recorded, and the record synced, **before** it is made; so a run that
//! is killed at any moment leaves nothing that is not on record. [`cleanup()`] removes what dead owners
//! left and touches nothing else. A record of something that never came to be costs nothing.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use crate::HostError;
use crate::read::identity::boot_id;
use crate::read::process::ProcessId;

pub mod cleanup;
mod kill;

pub use cleanup::{Removed, cleanup, cleanup_in};

/// Where owners leave their records.
pub const RUN_DIR: &str = "/run/rxpath";
const SUFFIX: &str = "owner";

/// First line of a record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Head {
    /// Version of the form.
    pub v: u32,
    /// The run's id: 6 hex digits.
    pub id: String,
    /// The owner.
    pub owner: ProcessId,
    /// `/proc/sys/kernel/random/boot_id` when it was written.
    pub boot_id: String,
}

/// A thing that is about to be made, or a process that was started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "thing", rename_all = "kebab-case")]
pub enum Thing {
    /// A named network namespace.
    Netns {
        /// Its name under `/run/netns`.
        name: String,
    },
    /// A child process.
    Process {
        /// Pid and start time.
        process: ProcessId,
    },
    /// A device in the namespace that the owner lives in (those in own namespaces go with them).
    Link {
        /// Its name.
        name: String,
    },
}

#[derive(Debug)]
struct Inner {
    id: String,
    path: PathBuf,
    file: Mutex<File>,
    /// Something could not be removed: the record stays for `cleanup`.
    left: AtomicBool,
}

/// This process as the owner of one run's things. Clones share the record.
///
/// The record is removed when the last clone is dropped and everything recorded was removed.
#[derive(Clone, Debug)]
pub struct Owner {
    inner: Arc<Inner>,
}

/// Version of the record's form.
pub(crate) const VERSION: u32 = 1;

impl Owner {
    /// Registers this process as owner of the run `id` (6 hex digits).
    ///
    /// **Errors** `Kernel` with `EEXIST` when a run of that id is on record; `Denied` without root.
    pub fn register(id: &str) -> Result<Self, HostError> {
        Self::register_in(Path::new(RUN_DIR), id)
    }

    /// As [`Owner::register`], with the records in another directory.
    pub(crate) fn register_in(dir: &Path, id: &str) -> Result<Self, HostError> {
        if id.len() != 6 || !id.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')) {
            let why = format!("`{id}` is not a run id: 6 lower-case hex digits");
            return Err(HostError::malformed("run id", 0, why));
        }
        fs::create_dir_all(dir).map_err(|e| HostError::from_io("create", dir, e))?;
        let owner = ProcessId::own()?;
        let boot_id = boot_id()?;
        let path = dir.join(format!("{id}.{SUFFIX}"));
        let head = Head { v: VERSION, id: id.into(), owner, boot_id };
        // Written next to it and linked in place: a record is never seen without its head, and an
        // existing one is never replaced.
        let draft = dir.join(format!("{id}.{}.{}.draft", owner.pid, owner.start_ticks));
        let mut file = OpenOptions::new()
            .append(true)
            .create_new(true)
            .mode(0o600)
            .open(&draft)
            .map_err(|e| HostError::from_io("create", &draft, e))?;
        let written = append(&mut file, &draft, &head).and_then(|()| {
            fs::hard_link(&draft, &path).map_err(|e| match e.raw_os_error() {
                Some(errno @ libc::EEXIST) => {
                    HostError::kernel(format!("register run {id} in {}", dir.display()), errno)
                }
                _ => HostError::from_io("create", &path, e),
            })
        });
        let _ = fs::remove_file(&draft);
        written?;
        // tmpfs, where /run lives, has nothing to sync; elsewhere a failure costs only crash safety.
        let _ = File::open(dir).and_then(|dir| dir.sync_all());
        let inner =
            Inner { id: id.into(), path, file: Mutex::new(file), left: AtomicBool::new(false) };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// The run's id.
    pub fn id(&self) -> &str {
        &self.inner.id
    }

    /// The name of a thing of this run: `rxp-1a2b3c-tx`.
    pub fn name(&self, role: &str) -> String {
        format!("rxp-{}-{role}", self.inner.id)
    }

    /// Puts a thing on record; it is on disk when this returns. To be called before the thing is made
    /// (a process: at once after).
    pub fn record(&self, thing: &Thing) -> Result<(), HostError> {
        let mut file = self.inner.file.lock().unwrap_or_else(PoisonError::into_inner);
        append(&mut file, &self.inner.path, thing)
    }

    /// Something recorded could not be removed: keep the record for `cleanup`.
    pub(crate) fn left_something(&self) {
        self.inner.left.store(true, Ordering::Relaxed);
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if !*self.left.get_mut() {
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn append<T: Serialize>(file: &mut File, path: &Path, line: &T) -> Result<(), HostError> {
    let mut text = serde_json::to_string(line)
        .map_err(|e| HostError::malformed(path, 0, format!("cannot be written as JSON: {e}")))?;
    text.push('\n');
    file.write_all(text.as_bytes())
        .and_then(|()| file.sync_data())
        .map_err(|e| HostError::from_io("write", path, e))
}
