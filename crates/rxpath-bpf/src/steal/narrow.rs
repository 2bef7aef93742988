//! An answer about some of the tasks, or about what one network namespace's packets took.

use std::collections::BTreeSet;

use super::Steal;

/// Which rows are wanted; all by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Narrow {
    /// Rows of the threads of these processes.
    pub processes: Option<BTreeSet<u32>>,
    /// Rows from which packets took time that came through devices of this network namespace (its inode), and of what
    /// took it the polls of these devices and the flows through them. Polls of the backlog, which belongs to no
    /// namespace, are left out.
    pub netns: Option<u32>,
}

impl Steal {
    /// Leaves out the rows that are not wanted. CPUs and the times of a row stay whole.
    pub fn narrow(&mut self, narrow: &Narrow) {
        if let Some(processes) = &narrow.processes {
            self.tasks.retain(|task| processes.contains(&task.row.tgid));
        }
        let Some(netns) = narrow.netns else { return };
        let of_tasks = self.tasks.iter_mut().map(|it| (&mut it.row.taken_by, &mut it.taken_for));
        let of_victim = self.victim.iter_mut().map(|it| (&mut it.row.taken_by, &mut it.taken_for));
        for (by, flows) in of_tasks.chain(of_victim) {
            by.retain(|by| by.netns == netns);
            flows.retain(|flow| flow.netns == netns);
        }
        self.tasks.retain(|task| !task.row.taken_by.is_empty() || !task.taken_for.is_empty());
    }
}

#[cfg(test)]
mod tests {
    use rxpath_core::measured::{ProbeCost, TakenBy, TaskTime};

    use super::*;
    use crate::account::Reading;
    use crate::account::calibrate::IrqCalibration;
    use crate::steal::{StealInputs, TakenFor, TaskTaken, answer};

    fn task(tgid: u32, devices: &[u32], flows: &[u32]) -> TaskTaken {
        let by = |netns: &u32| TakenBy {
            dev: "eth0".into(),
            ifindex: 2,
            netns: *netns,
            napi_id: 1,
            queue: None,
            net_s: 0.1,
            polls_count: 1,
            packets: 1,
        };
        let flow = |netns: &u32| TakenFor {
            dev: "eth0".into(),
            ifindex: 2,
            netns: *netns,
            transport: None,
            to: None,
            port: 0,
            packets_seen_count: 1,
            net_s_estimated: 0.1,
        };
        let taken_by = devices.iter().map(by).collect();
        let row = TaskTime { pid: tgid + 1, tgid, taken_by, ..TaskTime::default() };
        TaskTaken { row, cgroup: 0, taken_for: flows.iter().map(flow).collect() }
    }

    /// An answer with these rows.
    fn steal(tasks: Vec<TaskTaken>) -> Steal {
        let (before, after) = (Reading::default(), Reading::default());
        let (steal, _) = answer(StealInputs {
            before: &before,
            after: &after,
            calibration: IrqCalibration::given(1.0),
            cost: ProbeCost::default(),
            probes: &[],
            flows_looked: std::time::Duration::ZERO,
        });
        Steal { tasks, ..steal }
    }

    fn left(narrow: &Narrow) -> Vec<(u32, usize, usize)> {
        let tasks = vec![
            task(10, &[7, 8, 0], &[7]),
            task(20, &[0], &[8]),
            task(30, &[0], &[]),
            task(10, &[], &[]),
        ];
        let mut steal = steal(tasks);
        steal.narrow(narrow);
        let lengths =
            |task: &TaskTaken| (task.row.tgid, task.row.taken_by.len(), task.taken_for.len());
        steal.tasks.iter().map(lengths).collect()
    }

    #[test]
    fn processes_are_victims_and_a_namespace_is_a_culprit() {
        let processes = Some([10].into());
        assert_eq!(left(&Narrow::default()).len(), 4);
        let of_one = Narrow { processes: processes.clone(), netns: None };
        assert_eq!(left(&of_one), [(10, 3, 1), (10, 0, 0)]);
        let by_one = Narrow { processes: None, netns: Some(8) };
        assert_eq!(left(&by_one), [(10, 1, 0), (20, 0, 1)], "and no polls of the backlog");
        assert_eq!(left(&Narrow { processes, netns: Some(8) }), [(10, 1, 0)]);
    }
}
