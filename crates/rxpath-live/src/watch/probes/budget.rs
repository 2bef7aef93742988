//! What the probes of `watch` may take of a CPU, and how that is divided among them.

use std::time::Duration;

use rxpath_bpf::turns::Rhythm;

/// What the probes may cost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ProbeLimit {
    /// What they take of one CPU, all together.
    pub cpu_ratio: f64,
    /// With the latency of stages, the hooks of which run for each packet.
    pub with_latency: bool,
    /// With any of them.
    pub with_any: bool,
}

/// What all take of one CPU, unless something else is asked for.
pub(in crate::watch) const CPU_RATIO: f64 = 0.0075;

/// What all but the drops take of it, putting their programs into place included: 2 ms of CPU time on a small virtual
/// machine, and 4 ms to take them away.
const REST: f64 = 0.67;

/// What drops take of it.
const DROPS: f64 = 0.2;

/// What the hook of reads takes of it after turns, as it waits for what is still unread.
const READS: f64 = 0.13;

/// CPU time that putting all but the drops into place takes, until it is measured.
pub(super) const SWITCHING: Duration = Duration::from_millis(2);

/// What the hook of reads takes for each read, in ns.
pub(super) const READ_NS: f64 = 100.0;

/// All but the drops.
pub(super) fn rest(cpu_ratio: f64) -> Rhythm {
    Rhythm {
        share: REST * cpu_ratio,
        shortest_turn: Duration::from_millis(10),
        longest_turn: Duration::from_millis(100),
        cycle: Duration::from_secs(2),
        longest_pause: Duration::from_secs(30),
    }
}

/// Drops.
pub(super) fn drops(cpu_ratio: f64) -> Rhythm {
    Rhythm {
        share: DROPS * cpu_ratio,
        cycle: Duration::from_secs(1),
        longest_pause: Duration::from_secs(10),
        ..rest(cpu_ratio)
    }
}

/// The hook of reads.
pub(super) fn reads(cpu_ratio: f64) -> f64 {
    READS * cpu_ratio
}
