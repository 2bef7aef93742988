//! What an endpoint costs its host while a window is measured: its own CPU time, and the bytes over its pipe.

use std::time::Duration;

use nix::time::{ClockId, clock_gettime};
use rxpath_record::hosts::ControlCost;

use super::outlet::Outlet;
use crate::clock::monotonic_ns;

/// The endpoint at an instant.
pub struct CostMark {
    t_ns: u64,
    cpu: Duration,
    bytes: u64,
}

impl CostMark {
    /// Reads it now; nothing if the kernel does not report the CPU time.
    pub fn take(outlet: &Outlet) -> Option<Self> {
        let cpu = clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID).ok()?;
        Some(Self { t_ns: monotonic_ns(), cpu: cpu.into(), bytes: outlet.bytes() })
    }

    /// What it has cost until `to`.
    pub fn until(&self, to: &Self) -> ControlCost {
        ControlCost {
            span_ns: to.t_ns - self.t_ns,
            cpu_ns: to.cpu.saturating_sub(self.cpu).as_nanos() as u64,
            control_bytes: to.bytes - self.bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::endpoint::wire::Said;

    #[test]
    fn lines_in_both_directions_and_work_in_between_are_counted() {
        let outlet = Outlet::new(Box::new(std::io::sink()));
        outlet.say(Said::Tick);
        let from = CostMark::take(&outlet).unwrap();
        outlet.say(Said::Tick);
        outlet.count_read(100);
        // A program's line is kept in a window, and written behind it.
        outlet.hold();
        outlet.say(Said::Out { program: 1, line: "x".repeat(1_000) });
        let deadline_ns = monotonic_ns() + 10_000_000_000;
        let is_done =
            || CostMark::take(&outlet).unwrap().cpu >= from.cpu + Duration::from_millis(5);
        while !is_done() {
            assert!(monotonic_ns() < deadline_ns, "this thread got no CPU time");
        }
        let cost = from.until(&CostMark::take(&outlet).unwrap());
        assert_eq!(cost.control_bytes, 100 + "\"tick\"\n".len() as u64);
        assert!(cost.cpu_ns >= 5_000_000 && cost.span_ns > 0, "{cost:?}");
    }
}
