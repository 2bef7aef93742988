//! Whether a process has a handler for a signal.

use std::fs;

use nix::sys::signal::Signal;

/// Whether the signal would be caught; false for a process that is gone. **Source** proc(5), status, `SigCgt`.
pub fn catches(pid: i32, signal: Signal) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask & 1 << (signal as u32 - 1) != 0)
}
