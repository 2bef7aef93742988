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

/// A turn that costs much is paid for by a pause of this length at most: the exporter's budget holds over this time, and samples
/// are no older. At a share of 0.5 % it pays for 1.5 s of CPU time, so for turns of 10 ms on more than 100 CPUs.
const LONGEST_PAUSE: Duration = Duration::from_secs(300);

/// All but the drops.
pub(super) fn rest(cpu_ratio: f64) -> Rhythm {
    Rhythm {
        share: REST * cpu_ratio,
        shortest_turn: Duration::from_millis(10),
        longest_turn: Duration::from_millis(100),
        cycle: Duration::from_secs(2),
        longest_pause: LONGEST_PAUSE,
    }
}

/// Drops.
pub(super) fn drops(cpu_ratio: f64) -> Rhythm {
    Rhythm { share: DROPS * cpu_ratio, cycle: Duration::from_secs(1), ..rest(cpu_ratio) }
}

/// The hook of reads.
pub(super) fn reads(cpu_ratio: f64) -> f64 {
    READS * cpu_ratio
}

#[cfg(test)]
mod tests {
    use rxpath_bpf::turns::{Spent, Turns};

    use super::*;

    /// From the begin of a turn of 10 ms, in which programs took so much, to the next one, in s.
    fn cycle_s(rhythm: Rhythm, programs: Duration) -> f64 {
        let mut turns = Turns::new(rhythm);
        assert!(turns.end(Duration::from_millis(10), Spent { programs, ..Spent::default() }));
        turns.due().as_secs_f64()
    }

    #[test]
    fn pauses_keep_the_share_on_a_hundred_busy_cpus_and_samples_are_never_older_than_five_minutes()
    {
        let (rest, drops) = (rest(CPU_RATIO), drops(CPU_RATIO));
        // 140 CPUs that do nothing but run the programs; 80 million drops a second of 0.5 us.
        for (rhythm, taken) in
            [(rest, Duration::from_millis(1_400)), (drops, Duration::from_millis(400))]
        {
            let cpus = taken.as_secs_f64() / cycle_s(rhythm, taken);
            assert!(cpus <= rhythm.share * (1.0 + 1e-6), "{cpus} {rhythm:?}");
            assert!(cycle_s(rhythm, 100 * taken) < LONGEST_PAUSE.as_secs_f64() + 1.0);
        }
    }
}
