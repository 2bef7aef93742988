//! What control groups kept the readers from, over a window.

use std::collections::BTreeMap;

use rxpath_core::IntoMap;
use rxpath_host::Root;
use rxpath_host::read::cgroup::{self, GroupState};
use rxpath_record::evidence::{Halt, Throttled};

/// The groups of some processes at one moment.
pub(super) type States = BTreeMap<i32, GroupState>;

/// Reads the groups of these processes.
pub(super) fn read(pids: &[i32]) -> States {
    let root = Root::host();
    pids.iter().map(|pid| (*pid, cgroup::read(&root, *pid))).into_map()
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
        let now = now.throttled.as_ref()?;
        let was = before.throttled.as_ref().filter(|was| was.group == now.group)?;
        let stopped_ns = now.stopped_ns.saturating_sub(was.stopped_ns);
        let periods = now.periods_count.saturating_sub(was.periods_count);
        let used_up = now.used_up_count.saturating_sub(was.used_up_count);
        (stopped_ns > 0).then(|| Throttled {
            group: now.group.clone(),
            ratio: (stopped_ns as f64 / window_ns).min(1.0),
            used_up_ratio: (used_up as f64 / periods.max(1) as f64).min(1.0),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(stopped_ns: u64, is_frozen: bool) -> States {
        let throttled = Some(cgroup::Throttling {
            group: "/web".into(),
            stopped_ns,
            periods_count: stopped_ns / 50,
            used_up_count: stopped_ns / 100,
        });
        [(7, GroupState { throttled, is_frozen })].into()
    }

    #[test]
    fn what_was_before_the_window_does_not_count() {
        let groups = ReaderGroups { ends: [state(500, false), state(800, true)] };
        let throttled = groups.throttled(7, 1_000.0).unwrap();
        assert_eq!((throttled.group.as_str(), throttled.ratio), ("/web", 0.3));
        // Three of six periods.
        assert!((throttled.used_up_ratio - 0.5).abs() < 1e-9, "{throttled:?}");
        assert_eq!(groups.frozen(7), None);
        let frozen = ReaderGroups { ends: [state(500, true), state(500, true)] };
        assert_eq!((frozen.frozen(7), frozen.throttled(7, 1_000.0)), (Some(Halt::Freezer), None));
        assert_eq!(ReaderGroups::default().frozen(7), None);
    }
}
