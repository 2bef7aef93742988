//! CPU time of processes that ended between two readings: no later list of threads names them.
//!
//! **Source** kernel/exit.c `wait_task_zombie`: who waits for a child gets its CPU time added, with that of the
//! children it had waited for itself; `/proc/PID/stat` shows it as `cutime` and `cstime`.

use std::collections::HashMap;

use crate::read::cputime::user_hz;
use crate::read::procfs::task;
use crate::{HostError, Root};

/// CPU time of every process and of its ended children at one moment.
///
/// **Cost** one file for each process.
#[derive(Clone, Debug)]
pub struct Processes(HashMap<i32, Times>);

/// Times in `USER_HZ`.
#[derive(Clone, Copy, Debug)]
struct Times {
    start: u64,
    own: u64,
    children: u64,
}

impl Processes {
    /// Reads them.
    ///
    /// **Errors** when `/proc` can't be listed.
    pub fn take(root: &Root) -> Result<Self, HostError> {
        let times = |pid| {
            let stat = task::read(root, pid, None).ok()?;
            let own = stat.utime + stat.stime;
            Some((pid, Times { start: stat.start_time, own, children: stat.children }))
        };
        Ok(Self(task::processes(root)?.into_iter().filter_map(times).collect()))
    }

    /// What processes that ended until `later` used since this reading, in ns; without children of the processes `own`.
    ///
    /// **Caveat** in steps of `USER_HZ` (10 ms) for each process that waited. A process whose parent ignores `SIGCHLD`
    /// leaves its time to nobody.
    pub fn ended_ns(&self, later: &Self, own: &[i32]) -> u64 {
        let mut left = 0;
        let mut before_ticks = 0;
        for (pid, before) in self.0.iter().filter(|(pid, _)| !own.contains(pid)) {
            match later.0.get(pid).filter(|now| now.start == before.start) {
                Some(now) => left += now.children.saturating_sub(before.children),
                // It ended: what it and its children had used by now is in what it left, too.
                None => before_ticks += before.own + before.children,
            }
        }
        // Parents that began in between.
        let new = later.0.iter().filter(|(pid, now)| {
            !own.contains(pid) && self.0.get(pid).is_none_or(|before| before.start != now.start)
        });
        left += new.map(|(_, now)| now.children).sum::<u64>();
        left.saturating_sub(before_ticks) * 1_000_000_000 / user_hz()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Processes as (pid, start, own ticks, ticks of ended children).
    fn at(processes: &[(i32, u64, u64, u64)]) -> Processes {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("proc")).unwrap();
        for (pid, start, own, children) in processes {
            let line = format!(
                "{pid} (make) S 1 42 42 0 -1 4194304 96 0 0 0 {own} 0 0 {children} 20 0 1 0 {start} 3133440 360 \
                 18446744073709551615 1 1 1 0 0 0 0 0 0 0 0 0 17 1 0 0 0 0 0 1 1 1 1 1 1 1 0\n"
            );
            std::fs::create_dir(dir.path().join(format!("proc/{pid}"))).unwrap();
            std::fs::write(dir.path().join(format!("proc/{pid}/stat")), line).unwrap();
        }
        Processes::take(&Root::tree(dir.path()).unwrap()).unwrap()
    }

    fn ticks(count: u64) -> u64 {
        count * 1_000_000_000 / user_hz()
    }

    #[test]
    fn what_ended_children_used_counts_at_who_waited_for_them() {
        let before = at(&[(1, 0, 5, 100), (7, 9, 5, 0), (8, 9, 5, 0)]);
        // 8 is ours; 9 began in between and waited for a child of its own.
        let later = at(&[(1, 0, 5, 100), (7, 9, 50, 30), (8, 9, 5, 70), (9, 20, 1, 4)]);
        assert_eq!(before.ended_ns(&later, &[8]), ticks(34));
    }

    #[test]
    fn what_a_process_used_before_is_not_counted_when_it_ends() {
        let before = at(&[(7, 9, 5, 10), (8, 9, 200, 40)]);
        let later = at(&[(7, 9, 5, 10 + 200 + 40 + 15)]);
        assert_eq!(before.ended_ns(&later, &[]), ticks(15));
        // Its parent ignores children: nothing is known of it, and nothing is taken from others.
        assert_eq!(before.ended_ns(&at(&[(7, 9, 5, 10)]), &[]), 0);
    }

    #[test]
    fn a_pid_that_was_given_again_is_another_process() {
        let before = at(&[(7, 9, 5, 500), (8, 9, 3, 0)]);
        let later = at(&[(7, 60, 1, 2), (8, 9, 3, 505 + 12)]);
        assert_eq!(before.ended_ns(&later, &[]), ticks(14));
    }
}
