//! Network namespaces of a lab: made by name, lived in by threads, deleted by their guard.
//!
//! The question it answers: *what does this namespace show and take, and how does a process get in?*
//! A namespace is a bind mount under `/run/netns`, as iproute2 makes them, so `ip netns` sees it.
//! It must not touch a namespace that the owner's run did not make.

use std::fs::{self, File, OpenOptions};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, setns, unshare};

use crate::HostError;
use crate::lab::owner::{Owner, Thing};
use crate::netlink::Netlink;

mod child;
mod inside;
mod thread;

pub use child::{NsChild, die_with_parent};
pub use inside::Inside;
pub use thread::NsThread;

/// Where named namespaces live (iproute2's `NETNS_RUN_DIR`).
pub const NETNS_DIR: &str = "/run/netns";

/// Moves the calling thread into the network namespace of this file (`/run/netns/NAME`, `/proc/PID/ns/net`), to look at
/// what is there.
pub fn enter(path: &Path) -> Result<(), HostError> {
    let file = File::open(path).map_err(|e| HostError::from_io("open", path, e))?;
    setns(file, CloneFlags::CLONE_NEWNET)
        .map_err(|errno| refused(format!("enter the namespace {}", path.display()), errno))
}

/// Moves the calling thread into the network namespace of this file, with a `/sys` of its own that shows that namespace's
/// devices. Threads that it starts from then on are there too.
///
/// **Errors** `Denied` without `CAP_SYS_ADMIN`.
pub fn move_into(path: &Path) -> Result<(), HostError> {
    enter(path)?;
    thread::own_mounts()
}

/// Moves the calling thread into a new network namespace without a name, with loopback up and a `/sys` of its own.
///
/// It is gone with the thread, however that ends. Nothing else can enter it, and nothing in it reaches another one.
///
/// **Errors** `Denied` without `CAP_SYS_ADMIN`.
pub fn move_apart() -> Result<(), HostError> {
    unshare(CloneFlags::CLONE_NEWNET).map_err(|e| refused("create a network namespace", e))?;
    thread::own_mounts()?;
    Netlink::route()?.set_up("lo", true)
}

/// A named namespace of this run, with one thread living in it. Dropping it deletes the namespace.
///
/// **Caveat** the kernel takes a namespace and its devices down in the background, once the last
/// process, thread and socket in it is gone.
#[derive(Debug)]
pub struct Namespace {
    // They are dropped in this order: the thread ends before the name goes.
    thread: NsThread,
    file: File,
    given: GivenName,
}

/// The name of a namespace of this run. Dropping it takes the name away.
#[derive(Debug)]
struct GivenName {
    name: String,
    owner: Owner,
}

impl Drop for GivenName {
    fn drop(&mut self) {
        if unname(&self.name).is_err() {
            self.owner.left_something();
        }
    }
}

impl Namespace {
    /// Makes the namespace `rxp-<id>-<role>`: recorded, then made, with loopback up.
    ///
    /// **Errors** `Kernel` with `EEXIST` when the name is taken; `Denied` without `CAP_SYS_ADMIN`.
    pub fn create(owner: &Owner, role: &str) -> Result<Self, HostError> {
        let name = owner.name(role);
        let path = named(&name);
        if path.exists() {
            // Checked before the record: what is on record may be removed by `cleanup`.
            return Err(taken(&name));
        }
        prepare_dir()?;
        owner.record(&Thing::Netns { name: name.clone() })?;
        OpenOptions::new().write(true).create_new(true).open(&path).map_err(|e| {
            if e.kind() == std::io::ErrorKind::AlreadyExists {
                taken(&name)
            } else {
                HostError::from_io("create", &path, e)
            }
        })?;
        let given = GivenName { name, owner: owner.clone() };
        let thread = NsThread::found(&path, &given.name, owner)?;
        let file = File::open(&path).map_err(|e| HostError::from_io("open", &path, e))?;
        thread.run(|inside| inside.route()?.set_up("lo", true))??;
        Ok(Self { thread, file, given })
    }

    /// Its name, as `ip netns` shows it.
    pub fn name(&self) -> &str {
        &self.given.name
    }

    /// Another thread that lives in it, for a reader that must not wait for others.
    pub fn thread(&self) -> Result<NsThread, HostError> {
        NsThread::enter(&self.file, &self.given.name, &self.given.owner)
    }

    /// Runs `job` in the namespace's own thread and gives its value. A panic in it goes on here.
    pub fn run<T, F>(&self, job: F) -> Result<T, HostError>
    where
        T: Send + 'static,
        F: FnOnce(&mut Inside) -> T + Send + 'static,
    {
        self.thread.run(job)
    }
}

fn named(name: &str) -> PathBuf {
    Path::new(NETNS_DIR).join(name)
}

fn taken(name: &str) -> HostError {
    HostError::Kernel {
        op: format!("create namespace {name}"),
        errno: libc::EEXIST,
        extack: Some("the name is taken".into()),
    }
}

fn refused(op: impl Into<String>, errno: Errno) -> HostError {
    let op = op.into();
    match errno {
        Errno::EPERM | Errno::EACCES => {
            HostError::Denied { what: op, capability: "CAP_SYS_ADMIN (root)".into() }
        }
        other => HostError::kernel(op, other as i32),
    }
}

const NOTHING: Option<&str> = None;

/// Makes `/run/netns` a shared mount, so that a deleted name goes in all mount namespaces.
///
/// **Source** iproute2 `ip/ipnetns.c`, `netns_add`; the lock is the one it takes.
fn prepare_dir() -> Result<(), HostError> {
    let dir = Path::new(NETNS_DIR);
    fs::create_dir_all(dir).map_err(|e| HostError::from_io("create", dir, e))?;
    let lock = File::open(dir).map_err(|e| HostError::from_io("open", dir, e))?;
    lock.lock().map_err(|e| HostError::from_io("lock", dir, e))?;
    let share = || mount(NOTHING, dir, NOTHING, MsFlags::MS_SHARED | MsFlags::MS_REC, NOTHING);
    match share() {
        Err(Errno::EINVAL) => {
            mount(Some(dir), dir, NOTHING, MsFlags::MS_BIND | MsFlags::MS_REC, NOTHING)
                .and_then(|()| share())
        }
        other => other,
    }
    .map_err(|errno| refused(format!("make {NETNS_DIR} a shared mount"), errno))
}

/// Takes a name away from its namespace; `false` when there is no such name.
///
/// The namespace itself goes when nothing uses it any more.
pub(crate) fn unname(name: &str) -> Result<bool, HostError> {
    let path = named(name);
    if fs::symlink_metadata(&path).is_err() {
        return Ok(false);
    }
    loop {
        match umount2(&path, MntFlags::MNT_DETACH | MntFlags::UMOUNT_NOFOLLOW) {
            Ok(()) => {}
            // Not a mount (any more): the file can go.
            Err(Errno::EINVAL | Errno::ENOENT) => break,
            Err(errno) => return Err(refused(format!("unmount {}", path.display()), errno)),
        }
    }
    match fs::remove_file(&path) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
            Err(HostError::from_io("remove", &path, e))
        }
        _ => Ok(true),
    }
}
