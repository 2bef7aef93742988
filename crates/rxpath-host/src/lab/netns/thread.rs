//! A thread that lives in a namespace and runs the jobs that it gets.

use std::any::Any;
use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::sync::mpsc::{Sender, channel, sync_channel};
use std::thread::JoinHandle;

use nix::errno::Errno;
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, setns, unshare};

use super::{Inside, NOTHING, refused};
use crate::HostError;
use crate::lab::owner::Owner;

type Job = Box<dyn FnOnce(&mut Inside) + Send>;

/// The value of a job. A channel for each type of value would be 12 kB of code for each type.
type Given = Box<dyn Any + Send>;

/// A thread inside a namespace, in a mount namespace of its own where `/sys` is the namespace's.
///
/// So what it runs sees the namespace's devices in `/sys/class/net` with their queues; for `/proc/net`
/// it must read `/proc/thread-self/net` ([`Inside::root`] does). Dropping it ends the thread and,
/// by their parent-death signal, the children that it spawned.
#[derive(Debug)]
pub struct NsThread {
    jobs: Option<Sender<Job>>,
    thread: Option<JoinHandle<()>>,
    name: String,
}

impl NsThread {
    /// Starts a thread in a new namespace and gives the namespace the name at `path`.
    pub(super) fn found(path: &Path, name: &str, owner: &Owner) -> Result<Self, HostError> {
        let path = path.to_path_buf();
        Self::start(name, owner, move || {
            unshare(CloneFlags::CLONE_NEWNET)
                .map_err(|e| refused("create a network namespace", e))?;
            let own = Some("/proc/thread-self/ns/net");
            mount(own, &path, NOTHING, MsFlags::MS_BIND, NOTHING)
                .map_err(|e| refused(format!("mount {}", path.display()), e))
        })
    }

    /// Starts a thread in an existing namespace.
    pub(super) fn enter(ns: &File, name: &str, owner: &Owner) -> Result<Self, HostError> {
        let ns = ns.try_clone().map_err(|e| HostError::from_io("open", Path::new(name), e))?;
        let what = format!("enter namespace {name}");
        Self::start(name, owner, move || {
            setns(ns, CloneFlags::CLONE_NEWNET).map_err(|errno| refused(what, errno))
        })
    }

    fn start<F>(name: &str, owner: &Owner, arrive: F) -> Result<Self, HostError>
    where
        F: FnOnce() -> Result<(), HostError> + Send + 'static,
    {
        let (jobs, inbox) = channel::<Job>();
        let (report, arrived) = sync_channel(1);
        let mut inside = Inside::new(name, owner.clone());
        // The kernel cuts thread names at 15 bytes; the run's id and the role are what tells.
        let short = name.strip_prefix("rxp-").unwrap_or(name).to_owned();
        let thread = std::thread::Builder::new()
            .name(short)
            .spawn(move || {
                let ready = arrive().and_then(|()| own_mounts());
                let failed = ready.is_err();
                if report.send(ready).is_err() || failed {
                    return;
                }
                for job in inbox {
                    job(&mut inside);
                }
            })
            .map_err(|e| HostError::from_io("start a thread in", Path::new(name), e))?;
        let started = Self { jobs: Some(jobs), thread: Some(thread), name: name.into() };
        match arrived.recv() {
            Ok(ready) => ready.map(|()| started),
            Err(_) => Err(started.gone()),
        }
    }

    /// Runs `job` in the namespace and gives its value. A panic in it goes on in the caller.
    ///
    /// **Cost** two thread switches, 10 to 50 us.
    pub fn run<T, F>(&self, job: F) -> Result<T, HostError>
    where
        T: Send + 'static,
        F: FnOnce(&mut Inside) -> T + Send + 'static,
    {
        let given = self.given(Box::new(move |inside| Box::new(job(inside))))?;
        given.downcast::<T>().map(|value| *value).map_err(|_| self.gone())
    }

    fn given(&self, job: Box<dyn FnOnce(&mut Inside) -> Given + Send>) -> Result<Given, HostError> {
        let (reply, answer) = sync_channel(1);
        let job: Job = Box::new(move |inside| {
            // The caller may have ended: then the value is not needed.
            let _ = reply.send(catch_unwind(AssertUnwindSafe(|| job(inside))));
        });
        let sent = self.jobs.as_ref().is_some_and(|jobs| jobs.send(job).is_ok());
        match answer.recv() {
            Ok(Ok(value)) if sent => Ok(value),
            Ok(Err(panic)) => resume_unwind(panic),
            _ => Err(self.gone()),
        }
    }

    fn gone(&self) -> HostError {
        HostError::Kernel {
            op: format!("run in namespace {}", self.name),
            errno: libc::ESRCH,
            extack: Some("its thread is gone".into()),
        }
    }
}

impl Drop for NsThread {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// An own mount namespace whose `/sys` shows the thread's network namespace, with what is mounted below `/sys` in its place.
///
/// A sysfs shows the namespace of the task that mounted it (fs/sysfs/mount.c `sysfs_init_fs_context`).
/// Slave, not private: names deleted under `/run/netns` must go here too, or they stay pinned.
pub(super) fn own_mounts() -> Result<(), HostError> {
    unshare(CloneFlags::CLONE_NEWNS).map_err(|e| refused("create a mount namespace", e))?;
    mount(NOTHING, "/", NOTHING, MsFlags::MS_SLAVE | MsFlags::MS_REC, NOTHING)
        .map_err(|e| refused("make mounts slaves", e))?;
    let below = below_sys();
    match mount(Some("sysfs"), "/sys", Some("sysfs"), MsFlags::empty(), NOTHING) {
        Ok(()) => {}
        Err(Errno::EBUSY) => return Err(HostError::kernel("mount a sysfs on /sys", libc::EBUSY)),
        Err(errno) => return Err(refused("mount a sysfs on /sys", errno)),
    }
    for (place, file) in below {
        // A device's own place is not in the other sysfs: what was mounted there stays hidden.
        let hidden = format!("/proc/self/fd/{}", file.as_raw_fd());
        let flags = MsFlags::MS_BIND | MsFlags::MS_REC;
        let _ = mount(Some(hidden.as_str()), place.as_str(), NOTHING, flags, NOTHING);
    }
    Ok(())
}

/// What is mounted below `/sys`, held open: control groups, security, bpf, debug. Those below another one come with it.
fn below_sys() -> Vec<(String, File)> {
    let mounts = std::fs::read_to_string("/proc/thread-self/mounts").unwrap_or_default();
    let places = mounts.lines().filter_map(|line| line.split(' ').nth(1));
    let mut uppermost: Vec<&str> = Vec::new();
    for place in places.filter(|place| place.starts_with("/sys/")) {
        if !uppermost.iter().any(|above| Path::new(place).starts_with(above)) {
            uppermost.push(place);
        }
    }
    let open = |place: &str| {
        let file = OpenOptions::new().read(true).custom_flags(libc::O_PATH).open(place).ok()?;
        Some((place.to_owned(), file))
    };
    uppermost.into_iter().filter_map(open).collect()
}
