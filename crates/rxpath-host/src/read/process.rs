//! A process, distinguished from a later one with the same pid.

use serde::{Deserialize, Serialize};

use crate::read::procfs::task;
use crate::{HostError, Root};

/// Pid and start time: together they name one process of one boot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ProcessId {
    /// Process id.
    pub pid: i32,
    /// **Unit** clock ticks since boot. **Source** `/proc/PID/stat` field 22.
    pub start_ticks: u64,
}

impl ProcessId {
    /// This process.
    pub fn own() -> Result<Self, HostError> {
        Self::of(std::process::id() as i32)
    }

    /// The process that has this pid now.
    ///
    /// **Errors** `Missing` when there is none.
    pub fn of(pid: i32) -> Result<Self, HostError> {
        Ok(Self { pid, start_ticks: task::read(&Root::host(), pid, None)?.start_time })
    }

    /// Whether it still runs (a zombie does not).
    pub fn is_alive(&self) -> bool {
        let stat = task::read(&Root::host(), self.pid, None);
        stat.is_ok_and(|stat| {
            stat.start_time == self.start_ticks && !matches!(stat.state, 'Z' | 'X')
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_start_time_is_another_process() {
        let own = ProcessId::own().unwrap();
        assert!(own.is_alive());
        let other = ProcessId { start_ticks: own.start_ticks + 1, ..own };
        assert!(!other.is_alive());
    }
}
