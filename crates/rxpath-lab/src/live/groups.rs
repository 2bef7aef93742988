//! What control groups kept the readers from, over a window.

use std::collections::BTreeMap;

use rxpath_host::Root;
use rxpath_host::cgroup::{self, GroupState};
use rxpath_record::evidence::{Halt, Throttled};

/// The groups of some processes at one moment.
pub(super) type States = BTreeMap<i32, GroupState>;

/// Reads the groups of these processes.
pub(super) fn read(pids: &[i32]) -> States {
    let root = Root::host();
    pids.iter().map(|pid| (*pid, cgroup::read(&root, *pid))).collect()
}

/// The groups of the processes that may read at both ends of a window.
#[derive(Debug, Default)]
pub(crate) struct ReaderGroups {
    pub(super) ends: [States; 2],
}

impl ReaderGroups {
    fn of(&self, pid: i32) -> Option<[&GroupState; 2]> {
        let [before, now] = &self.ends;
        Some([before.get(&pid)?, now.get(&pid)?])
    }

    /// Whether a process was frozen at both ends.
    pub(super) fn frozen(&self, pid: i32) -> Option<Halt> {
        self.of(pid).filter(|ends| ends.iter().all(|end| end.is_frozen)).map(|_| Halt::Freezer)
    }

    /// The quota that stopped a process in the window.
    pub(super) fn throttled(&self, pid: i32, window_ns: f64) -> Option<Throttled> {
        let [before, now] = self.of(pid)?;
        let (group, total_ns) = now.throttled.as_ref()?;
        let was = before.throttled.as_ref().filter(|(name, _)| name == group);
        let stopped_ns = total_ns.saturating_sub(was?.1);
        let ratio = (stopped_ns as f64 / window_ns).min(1.0);
        (stopped_ns > 0).then(|| Throttled { group: group.clone(), ratio })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(throttled_ns: u64, is_frozen: bool) -> States {
        let throttled = Some(("/web".to_owned(), throttled_ns));
        [(7, GroupState { throttled, is_frozen })].into()
    }

    #[test]
    fn what_was_before_the_window_does_not_count() {
        let groups = ReaderGroups { ends: [state(500, false), state(800, true)] };
        let throttled = groups.throttled(7, 1_000.0).unwrap();
        assert_eq!((throttled.group.as_str(), throttled.ratio), ("/web", 0.3));
        assert_eq!(groups.frozen(7), None);
        let frozen = ReaderGroups { ends: [state(500, true), state(500, true)] };
        assert_eq!((frozen.frozen(7), frozen.throttled(7, 1_000.0)), (Some(Halt::Freezer), None));
        assert_eq!(ReaderGroups::default().frozen(7), None);
    }
}
