//! Which programs run: managers of settings, packet taps, pollers.

use rxpath_core::Fact;
use rxpath_host::Root;
use rxpath_host::read::procfs::task;

use super::Gap;

/// Programs that run, by `comm` (cut to 15 bytes by the kernel).
#[derive(Clone, Debug, Default)]
pub struct RunningProcesses {
    /// Process id and name.
    pub all: Vec<(i32, String)>,
    /// Processes that are there and do not tell their names.
    pub unnamed_count: usize,
}

impl RunningProcesses {
    /// Process ids of the programs of this name.
    pub fn of(&self, comm: &str) -> Vec<i32> {
        self.all.iter().filter(|(_, name)| name == comm).map(|(pid, _)| *pid).collect()
    }

    /// That no program was found counts only where each process told its name.
    pub fn complete(&self) -> Result<(), Gap> {
        match self.unnamed_count {
            0 => Ok(()),
            count => Err(Gap::Absent(format!("the names of {count} processes cannot be read"))),
        }
    }

    /// Whether a program of this name runs.
    pub fn runs(&self, comm: &str) -> bool {
        self.all.iter().any(|(_, name)| name == comm)
    }
}

pub(super) fn read(root: &Root) -> Fact<RunningProcesses> {
    match task::processes(root) {
        Ok(pids) if pids.is_empty() => Fact::absent("no process is visible in /proc"),
        Ok(pids) => {
            let mut found = RunningProcesses::default();
            for pid in pids {
                match root.value(&format!("/proc/{pid}/comm")) {
                    Ok(name) => found.all.push((pid, name)),
                    // One that ended since is no gap.
                    Err(_) => {
                        found.unnamed_count += usize::from(root.is_dir(&format!("/proc/{pid}")));
                    }
                }
            }
            if found.all.is_empty() {
                return Fact::absent("no process name in /proc can be read");
            }
            Fact::ok(found)
        }
        Err(error) => error.into_gap(),
    }
}
