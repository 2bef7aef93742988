//! Control groups whose limits matter: of programs that receive, and of this process; or of the processes that were named.

use std::collections::BTreeSet;

use rxpath_host::read::cgroup::with_parents;

use super::{Gap, HostFacts, RequiredFact};

/// Where the one hierarchy of version 2 is mounted.
pub const MOUNT: &str = "/sys/fs/cgroup";

/// Groups to look at, and how many programs are in them.
#[derive(Clone, Debug, Default)]
pub struct Groups {
    /// Names below [`MOUNT`]: `/system.slice/app.service`.
    pub names: BTreeSet<String>,
    /// Programs whose group was shown: those with a receiving socket, or those that were named. This one is not among them.
    pub programs_count: usize,
}

impl HostFacts {
    /// The groups of the programs that receive, as far as they are shown, and of this process; where processes were named
    /// theirs alone.
    pub fn cgroups(&self) -> Result<Groups, Gap> {
        let mut groups = Groups::default();
        let pids = if let Some(named) = &self.scope.processes {
            named.clone()
        } else {
            groups.names.extend(self.cgroup_of("self")?);
            let readers = self.readers().into_value().unwrap_or_default();
            readers.seen.iter().map(|reader| reader.pid).collect()
        };
        for pid in pids {
            // One that ended since has no group.
            if let Ok(Some(group)) = self.cgroup_of(&pid.to_string()) {
                groups.programs_count += 1;
                groups.names.insert(group);
            }
        }
        Ok(groups)
    }

    /// The group of a process in the one hierarchy of version 2.
    fn cgroup_of(&self, process: &str) -> Result<Option<String>, Gap> {
        let groups = self.text(&format!("/proc/{process}/cgroup")).known()?;
        Ok(groups.lines().find_map(|line| line.strip_prefix("0::")).map(str::to_owned))
    }

    /// The files that count what the limits of these groups did.
    pub(super) fn cgroup_stat_files(&self) -> BTreeSet<String> {
        let names = self.cgroups().unwrap_or_default().names;
        let visible = names.iter().filter(|name| !is_outside(name));
        visible.flat_map(|name| with_parents(name)).map(|name| stat_file(&name)).collect()
    }
}

/// The file that counts what a group's limit did.
pub fn stat_file(group: &str) -> String {
    format!("{MOUNT}{group}/cpu.stat")
}

/// Whether a group lies outside the part of the tree that this process may see (cgroup_namespaces(7)).
pub fn is_outside(group: &str) -> bool {
    group.split('/').any(|part| part == "..")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_outside_is_one_above_the_visible_part() {
        assert!(is_outside("/../x") && !is_outside("/a..b"));
    }
}
