//! Which programs run: managers of settings, packet taps, pollers.

use rxpath_core::Fact;
use rxpath_host::procfs::task;
use rxpath_host::root::Root;

/// Programs that run, by `comm` (cut to 15 bytes by the kernel).
#[derive(Clone, Debug, Default)]
pub struct Processes {
    /// Process id and name.
    pub all: Vec<(i32, String)>,
}

impl Processes {
    /// Process ids of the programs of this name.
    pub fn of(&self, comm: &str) -> Vec<i32> {
        self.all.iter().filter(|(_, name)| name == comm).map(|(pid, _)| *pid).collect()
    }

    /// Whether a program of this name runs.
    pub fn runs(&self, comm: &str) -> bool {
        self.all.iter().any(|(_, name)| name == comm)
    }
}

pub(super) fn read(root: &Root) -> Fact<Processes> {
    match task::processes(root) {
        Ok(pids) if pids.is_empty() => Fact::absent("no process is to be seen in /proc"),
        Ok(pids) => {
            let name = |pid: i32| Some((pid, root.value(&format!("/proc/{pid}/comm")).ok()?));
            Fact::ok(Processes { all: pids.into_iter().filter_map(name).collect() })
        }
        Err(error) => error.into_gap(),
    }
}
