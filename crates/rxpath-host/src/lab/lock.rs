//! One lab at a time on a machine: a lock file that says who holds it, and a name for those who may not create the file.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::{HostError, command_line};

mod name;

/// The machine-wide lock of labs and benchmarks.
pub(crate) const LAB_LOCK: &str = "/run/rxpath.lock";
/// How often a waiter looks again; nobody measures while waiting.
const LOOK_AGAIN: Duration = Duration::from_millis(100);
/// How long one who takes a lock waits for those who have it for a moment only: who asks about it, and a child between its
/// fork and its exec, which has a copy of every open file.
const MOMENT: Duration = Duration::from_millis(500);

/// Who holds the lock, in its own words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// Its pid; `None` when it did not get to say it.
    pub pid: Option<i32>,
    /// Its command line.
    pub command: String,
}

impl std::fmt::Display for Holder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.pid {
            Some(pid) => write!(f, "process {pid} ({})", self.command),
            None => f.write_str("another process"),
        }
    }
}

/// The held lock; dropping it, or the process's death, frees it.
#[derive(Debug)]
pub struct LabLock {
    /// `None` for a user who may not create it: the name alone is held.
    file: Option<File>,
    /// `None` for what is no lab.
    _name: Option<UnixListener>,
}

impl LabLock {
    /// Takes the machine's lab lock, waiting for at most `patience` (zero: not at all). Needs no privilege.
    ///
    /// **Errors** `Kernel` with `EBUSY` that names the holder.
    pub fn take(patience: Duration) -> Result<Self, HostError> {
        Self::take_at(Path::new(LAB_LOCK), patience)
    }

    /// Who holds the machine's lab lock; `None` if nobody does.
    pub fn holder() -> Option<Holder> {
        name::holder(Path::new(LAB_LOCK))
    }

    /// As [`LabLock::take`], with another file.
    pub(crate) fn take_at(path: &Path, patience: Duration) -> Result<Self, HostError> {
        let begin = Instant::now();
        let file = match Self::take_for("lab", path, patience) {
            Ok(mut lock) => lock.file.take(),
            Err(HostError::Missing { .. } | HostError::Denied { .. }) => None,
            // The file may be one that its holder can't sign.
            Err(error @ HostError::Kernel { errno: libc::EBUSY, .. }) => {
                return Err(name::holder(path).map_or(error, |holder| busy("lab", path, &holder)));
            }
            Err(error) => return Err(error),
        };
        // Dropped by an error: the file then names nobody.
        let mut by_file = Self { file, _name: None };
        let held = take_name(path, begin + patience.max(MOMENT))?;
        Ok(Self { file: by_file.file.take(), _name: Some(held) })
    }

    /// As [`LabLock::take`], for something else that only one process may do at a time: by the file alone.
    pub fn take_for(what: &str, path: &Path, patience: Duration) -> Result<Self, HostError> {
        let io = |op| move |e| HostError::from_io(op, path, e);
        // The file is never removed: a lock on a name that others can replace is none.
        let file = open(path).map_err(io("open"))?;
        let begin = Instant::now();
        match lock(&file, patience, || begin.elapsed() < MOMENT) {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(busy(what, path, &signed_by(&file))),
            Err(TryLockError::Error(e)) => return Err(io("lock")(e)),
        }
        match sign(&file) {
            // Opened for reading only, because the file is another user's or a namespace: held, but not signed.
            Err(error) if matches!(error.raw_os_error(), Some(libc::EBADF | libc::ESPIPE)) => {}
            signed => signed.map_err(io("write"))?,
        }
        Ok(Self { file: Some(file), _name: None })
    }
}

impl Drop for LabLock {
    fn drop(&mut self) {
        if let Some(file) = &self.file {
            // The text would name one who is gone.
            let _ = file.set_len(0);
            // Closing does not free the lock while a child has a copy of the file.
            let _ = file.unlock();
        }
    }
}

/// Locks a file, waiting for at most `patience`, and for those who only ask about it while `waits_for_askers` says so.
fn lock(
    file: &File,
    patience: Duration,
    mut waits_for_askers: impl FnMut() -> bool,
) -> Result<(), TryLockError> {
    let deadline = Instant::now() + patience;
    loop {
        match file.try_lock() {
            Err(TryLockError::WouldBlock) if waits_for_askers() && only_askers_have(file) => {
                // why: an asker has the lock for microseconds, and nothing says when it ends; the caller limits this wait.
                std::thread::sleep(Duration::from_millis(1));
            }
            Err(TryLockError::WouldBlock) if Instant::now() < deadline => {
                let left = deadline.saturating_duration_since(Instant::now());
                // why: flock has no wait with a time limit; this one has the deadline above.
                std::thread::sleep(LOOK_AGAIN.min(left));
            }
            done => return done,
        }
    }
}

/// Whether a lock that can't be taken is only shared, as [`is_held`] has it while it looks.
fn only_askers_have(file: &File) -> bool {
    file.try_lock_shared().is_ok() && file.unlock().is_ok()
}

/// Writes into a lock file who holds it.
fn sign(mut file: &File) -> io::Result<()> {
    let command = command_line::words();
    let text = format!("{} {}\n", std::process::id(), command.join(" ").replace('\n', " "));
    file.seek(SeekFrom::Start(0))?;
    file.write_all(text.as_bytes())?;
    file.set_len(text.len() as u64)
}

/// Binds the lab's name, which another holder may have.
fn take_name(path: &Path, deadline: Instant) -> Result<UnixListener, HostError> {
    loop {
        match name::bind(path) {
            Ok(held) => return Ok(held),
            Err(error) if error.kind() != io::ErrorKind::AddrInUse => {
                return Err(HostError::from_io("bind the name of", path, error));
            }
            Err(_) if Instant::now() < deadline => {
                let left = deadline.saturating_duration_since(Instant::now());
                // why: nothing says when an address is free; this wait has the deadline of its caller.
                std::thread::sleep(LOOK_AGAIN.min(left));
            }
            Err(_) => {
                let unknown = || Holder { pid: None, command: String::new() };
                return Err(busy("lab", path, &name::holder(path).unwrap_or_else(unknown)));
            }
        }
    }
}

/// For writing, or for reading where only that is allowed: a lock needs no more.
fn open(path: &Path) -> std::io::Result<File> {
    let signed = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path);
    match signed {
        Err(error)
            if matches!(error.raw_os_error(), Some(libc::EACCES | libc::EPERM | libc::EROFS)) =>
        {
            File::open(path)
        }
        signed => signed,
    }
}

fn busy(what: &str, path: &Path, holder: &Holder) -> HostError {
    HostError::Kernel {
        op: format!("take the {what} lock {}", path.display()),
        errno: libc::EBUSY,
        extack: Some(format!("one {what} at a time; {holder} has it")),
    }
}

/// Who a lock file says holds it.
fn signed_by(mut file: &File) -> Holder {
    let mut text = String::new();
    let _ = file.read_to_string(&mut text);
    holder(&text)
}

fn holder(text: &str) -> Holder {
    let (pid, command) = text.trim().split_once(' ').unwrap_or((text.trim(), ""));
    Holder { pid: pid.parse().ok(), command: command.into() }
}

/// Whether somebody holds a lock now; one that can't be looked at counts as free.
///
/// It is taken shared for a moment, for whose end [`LabLock::take`] waits. `/proc/locks` would need no lock, but it is read in
/// pieces, and a piece leaves out a lock when one before it goes meanwhile (fs/seq_file.c `seq_read_iter`, Linux 6.18).
pub fn is_held(path: &Path) -> bool {
    File::open(path)
        .is_ok_and(|file| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_is_told_who_is_first() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        let first = LabLock::take_at(&path, Duration::ZERO).unwrap();
        let refused = LabLock::take_at(&path, Duration::from_millis(1)).unwrap_err().to_string();
        assert!(refused.contains(&format!("process {}", std::process::id())), "{refused}");
        assert!(is_held(&path));
        drop(first);
        assert!(!is_held(&path) && !is_held(&dir.path().join("none")));
        LabLock::take_at(&path, Duration::ZERO).unwrap();
    }

    /// Who asks whether the lock is held does not keep anybody from taking it.
    #[test]
    fn asking_refuses_nobody() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        let done = std::sync::atomic::AtomicBool::new(false);
        let refused = std::thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(std::sync::atomic::Ordering::Relaxed) {
                    is_held(&path);
                }
            });
            let refused =
                (0..2000).filter_map(|_| LabLock::take_at(&path, Duration::ZERO).err()).count();
            done.store(true, std::sync::atomic::Ordering::Relaxed);
            refused
        });
        // A busy machine may stop the asker, which then has the lock for longer than a moment.
        assert!(refused < 20, "{refused} of 2000");
    }

    #[test]
    fn a_copy_of_the_file_in_a_child_holds_no_lock() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        let lock = LabLock::take_for("lab", &path, Duration::ZERO).unwrap();
        let copy = lock.file.as_ref().unwrap().try_clone().unwrap();
        drop(lock);
        LabLock::take_for("lab", &path, Duration::ZERO).unwrap();
        drop(copy);
    }

    #[test]
    fn a_name_that_is_freed_in_a_moment_is_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        let is_taken = || {
            let limit = Instant::now() + Duration::from_secs(60);
            let mut named = Some(take_name(&path, limit).unwrap());
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    // why: the taker shall meet the name.
                    std::thread::sleep(Duration::from_millis(20));
                    drop(named.take());
                });
                LabLock::take_at(&path, Duration::ZERO).is_ok()
            })
        };
        // On a busy machine it may be freed later than in a moment.
        assert!((0..5).any(|_| is_taken()));
    }

    #[test]
    fn one_who_only_asks_is_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        let mut asker = Some(File::create(&path).unwrap());
        asker.as_ref().unwrap().lock_shared().unwrap();
        let file = File::open(&path).unwrap();
        let refused = lock(&file, Duration::ZERO, || false);
        assert!(matches!(refused, Err(TryLockError::WouldBlock)), "{refused:?}");
        let mut met = 0;
        let taken = lock(&file, Duration::ZERO, || {
            met += 1;
            // It is still there when it is met for the first time.
            drop(asker.take_if(|_| met == 2));
            true
        });
        taken.unwrap();
        assert_eq!(met, 2);
    }

    #[test]
    fn a_waiter_gets_it_when_it_is_freed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        let first = LabLock::take_at(&path, Duration::ZERO).unwrap();
        let waiter = std::thread::spawn({
            let path = path.clone();
            move || LabLock::take_at(&path, Duration::from_secs(20)).is_ok()
        });
        drop(first);
        assert!(waiter.join().unwrap());
    }

    /// As for an ordinary user on a freshly booted host: the directory is another's.
    #[test]
    fn who_may_not_create_the_file_holds_the_name_and_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        let by_name_only = LabLock { file: None, _name: Some(name::bind(&path).unwrap()) };
        let refused = LabLock::take_at(&path, Duration::ZERO).unwrap_err().to_string();
        let first = format!("one lab at a time; process {} (", std::process::id());
        assert!(refused.contains(&first), "{refused}");
        drop(by_name_only);
        let both = LabLock::take_at(&path, Duration::ZERO).unwrap();
        let holder = name::holder(&path).unwrap();
        assert_eq!(holder.pid, Some(std::process::id() as i32));
        assert_eq!(name::bind(&path).unwrap_err().kind(), io::ErrorKind::AddrInUse);
        drop(both);
        // A child that another test starts has a copy of the name until it becomes its program.
        let deadline = Instant::now() + Duration::from_secs(60);
        while let Some(holder) = name::holder(&path) {
            assert!(Instant::now() < deadline, "{holder}");
            std::thread::yield_now();
        }
        // Another host of this machine has a directory of its own.
        let other = tempfile::tempdir().unwrap();
        let _first = LabLock::take_at(&path, Duration::ZERO).unwrap();
        LabLock::take_at(&other.path().join("lock"), Duration::ZERO).unwrap();
    }

    #[test]
    fn garbage_names_nobody() {
        assert_eq!(holder("").to_string(), "another process");
        assert_eq!(holder("x y").pid, None);
        assert_eq!(holder("12 rxpath run a\n").to_string(), "process 12 (rxpath run a)");
    }
}
