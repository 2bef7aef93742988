//! Whether a run may begin: its privileges, and the lock that keeps two labs apart.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use nix::errno::Errno;
use rxpath_core::Warning;
use rxpath_host::HostError;
use rxpath_host::lab::lock::LabLock;

use crate::clock::monotonic_ns;
use crate::error::{LabError, cannot};
use crate::scenario::spec::Resolved;

/// How long to wait for another lab on this machine to end, unless told otherwise.
pub const LOCK_PATIENCE: Duration = Duration::from_secs(2);

/// The machine's lab lock.
pub(crate) fn lock(
    stop: &AtomicBool,
    patience: Duration,
    waiting: &mut dyn FnMut(&str),
) -> Result<LabLock, LabError> {
    let patience_ns = u64::try_from(patience.as_nanos()).unwrap_or(u64::MAX);
    let deadline_ns = monotonic_ns().saturating_add(patience_ns);
    let mut said = patience <= LOCK_PATIENCE;
    loop {
        // In slices, so that a signal ends the waiting.
        match LabLock::take(Duration::from_millis(100)) {
            Ok(lock) => return Ok(lock),
            Err(error) if !is_busy(&error) => return Err(error.into()),
            Err(_) if stop.load(Ordering::Relaxed) => return Err(LabError::Interrupted),
            Err(error) if monotonic_ns() >= deadline_ns => {
                let hint = "let it end and run this again, or wait for it with --wait";
                return Err(cannot(error.to_string(), hint));
            }
            Err(error) if !said => {
                said = true;
                waiting(&format!("waiting: {error}"));
            }
            Err(_) => {}
        }
    }
}

/// Loopback's counters are everybody's: the reader of the figures must know.
pub(super) fn shared_counters(resolved: &Resolved) -> Option<Warning> {
    resolved.variants.iter().any(|variant| variant.topology.is_loopback()).then(|| {
        let text = "on loopback the counters hold other programs' traffic too: what is lost or not accounted for \
                    may be theirs";
        Warning::new("shared-counters", text).because("topology.kind=local makes no lab of its own")
    })
}

fn is_busy(error: &HostError) -> bool {
    matches!(error, HostError::Kernel { errno, .. } if *errno == Errno::EBUSY as i32)
}

/// Whether a lab may be made.
///
/// `without_root` is a command that does the same on loopback, where there is one.
pub(crate) fn can_run(without_root: Option<&str>) -> Result<(), LabError> {
    let can = rxpath_host::caps::lab();
    let other = without_root.map(|command| format!(", or on loopback without it: {command}"));
    let hint = format!("run as root (sudo){}", other.unwrap_or_default());
    can.require("a lab of two network namespaces").map_err(|error| cannot(error.to_string(), hint))
}
