//! Processes inside a namespace: they die with the thread that spawned them, and are on record.

use std::ops::{Deref, DerefMut};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use nix::sys::prctl;
use nix::sys::signal::Signal;
use nix::unistd::{Pid, getppid};

use crate::HostError;
use crate::lab::owner::{Owner, Thing};
use crate::read::process::ProcessId;

/// A child process in a namespace. Dropping it kills and reaps it.
#[derive(Debug)]
pub struct NsChild {
    child: Child,
    /// Pid and start time.
    pub id: ProcessId,
}

impl NsChild {
    /// Spawns `command` in the namespace of the calling thread.
    ///
    /// Its standard input is a pipe: the child sees its end when this process dies. Should it not
    /// look, `PR_SET_PDEATHSIG` kills it when the **thread** that calls this ends.
    pub(super) fn spawn(mut command: Command, owner: &Owner) -> Result<Self, HostError> {
        command.stdin(Stdio::piped());
        die_with_parent(&mut command);
        let program = command.get_program().to_string_lossy().into_owned();
        let mut child = command.spawn().map_err(|e| match e.raw_os_error() {
            Some(libc::ENOENT) => HostError::Missing { path: program.clone().into() },
            code => HostError::kernel(format!("start {program}"), code.unwrap_or(libc::EIO)),
        })?;
        let recorded = ProcessId::of(child.id() as i32)
            .and_then(|id| owner.record(&Thing::Process { process: id }).map(|()| id));
        match recorded {
            Ok(id) => Ok(Self { child, id }),
            Err(error) => {
                let _ = child.kill();
                let _ = child.wait();
                Err(error)
            }
        }
    }
}

/// Makes the process that `command` starts die by SIGKILL when the **thread** that starts it ends.
pub fn die_with_parent(command: &mut Command) {
    let parent = Pid::this();
    let ask = move || {
        prctl::set_pdeathsig(Signal::SIGKILL)?;
        // The parent may have died before the line above: then no signal comes any more.
        if getppid() == parent { Ok(()) } else { Err(nix::errno::Errno::ESRCH.into()) }
    };
    // SAFETY: between fork and exec the closure makes two system calls, which are
    // async-signal-safe, and allocates nothing (an Errno converts without allocation).
    unsafe { command.pre_exec(ask) };
}

impl Deref for NsChild {
    type Target = Child;

    fn deref(&self) -> &Child {
        &self.child
    }
}

impl DerefMut for NsChild {
    fn deref_mut(&mut self) -> &mut Child {
        &mut self.child
    }
}

impl Drop for NsChild {
    fn drop(&mut self) {
        // Both only fail when it was reaped already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
