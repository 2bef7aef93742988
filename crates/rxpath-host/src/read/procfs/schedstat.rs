//! `/proc/PID/schedstat` and `/proc/PID/task/TID/schedstat`: time on a CPU and time waiting for one.
//!
//! **Source** fs/proc/base.c, `proc_pid_schedstat`; Documentation/scheduler/sched-stats.rst. Absent without
//! `CONFIG_SCHED_INFO`.

use crate::parse::{ParseError, number};
use crate::{HostError, Root};

/// Scheduler times of a thread. The file of a process (`/proc/PID/schedstat`) is its leader's only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SchedStat {
    /// Time on a CPU, in ns. Softirqs that ran on top of the thread are part of it unless the kernel has
    /// `CONFIG_IRQ_TIME_ACCOUNTING`.
    ///
    /// **Caveat** of a thread that is running now it is as old as the last tick (up to `1/HZ`).
    pub run_ns: u64,
    /// Time runnable and waiting for a CPU, in ns; counted when the wait ends.
    pub wait_ns: u64,
    /// Times that it was put on a CPU.
    pub slices: u64,
}

/// Reads the file's text.
pub fn parse(text: &str) -> Result<SchedStat, ParseError> {
    let mut words = text.split_ascii_whitespace();
    let stat = SchedStat {
        run_ns: number(1, "run time", words.next())?,
        wait_ns: number(1, "wait time", words.next())?,
        slices: number(1, "time slices", words.next())?,
    };
    if words.next().is_some() { Err(ParseError::new(1, "more than 3 numbers")) } else { Ok(stat) }
}

/// Reads one thread.
///
/// **Errors** [`HostError::Missing`] when it is gone or the kernel has no scheduler statistics.
pub fn read(root: &Root, pid: i32, tid: i32) -> Result<SchedStat, HostError> {
    let path = format!("/proc/{pid}/task/{tid}/schedstat");
    // Three numbers of at most 20 digits.
    let mut buffer = [0; 128];
    parse(root.once(&path, &mut buffer)?).map_err(|error| error.at(root.path(&path)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_numbers_and_no_more() {
        assert_eq!(
            parse("1354663 90739 2\n").unwrap(),
            SchedStat { run_ns: 1_354_663, wait_ns: 90_739, slices: 2 }
        );
        for text in ["", "1 2", "1 2 x", "1 2 3 4"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
