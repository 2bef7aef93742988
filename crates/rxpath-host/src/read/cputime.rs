//! Where each CPU's time went between two readings of `/proc/stat`, as shares of wall time.
//!
//! Idle time is exact, in steps of 10 ms, where the kernel stops its tick on idle CPUs (`CONFIG_NO_HZ_COMMON`:
//! fs/proc/stat.c `get_idle_time` asks `get_cpu_idle_time_us`). The split of busy time into user, system and
//! softirq is by ticks, unless the kernel has `CONFIG_IRQ_TIME_ACCOUNTING` or `CONFIG_VIRT_CPU_ACCOUNTING_NATIVE`:
//! each tick charges the whole of it to what it happened to interrupt. Work that runs between ticks, and
//! interrupts, which a tick can't interrupt, are charged to something else. Trust [`CpuUse::busy_ratio`], not the split.

use std::time::Instant;

use rxpath_core::CpuUse;

use crate::read::procfs::stat::{self, Stat, Ticks};
use crate::{HostError, Root};

/// A reading of every CPU's times.
#[derive(Clone, Debug)]
pub struct CpuTimes {
    at: Instant,
    stat: Stat,
}

/// The differences of two readings.
#[derive(Clone, Debug, PartialEq)]
pub struct CpuSpan {
    /// Wall time between the readings, in ns.
    pub span_ns: u64,
    /// Each CPU that was online at both readings.
    pub cpus: Vec<CpuUse>,
    /// CPUs that came, went, or whose times ran backwards (they were offline in between): no numbers for them.
    pub unknown: Vec<u32>,
}

impl CpuTimes {
    /// Reads `/proc/stat`.
    pub fn read(root: &Root) -> Result<Self, HostError> {
        Ok(Self { stat: root.parsed(stat::PATH, stat::parse)?, at: Instant::now() })
    }

    /// What happened from `earlier` to this reading.
    pub fn since(&self, earlier: &Self) -> CpuSpan {
        let span_ns = self.at.saturating_duration_since(earlier.at).as_nanos() as u64;
        shares(&earlier.stat, &self.stat, span_ns, user_hz())
    }
}

/// `USER_HZ`, the unit of `/proc/stat`: 100 on every architecture, asked all the same.
pub fn user_hz() -> u64 {
    match nix::unistd::sysconf(nix::unistd::SysconfVar::CLK_TCK) {
        Ok(Some(hz)) if hz > 0 => hz as u64,
        _ => 100,
    }
}

/// The shares of each CPU, from two readings that lie `span_ns` apart.
pub fn shares(before: &Stat, after: &Stat, span_ns: u64, hz: u64) -> CpuSpan {
    let wall = span_ns as f64 * hz as f64 / 1e9;
    let mut span = CpuSpan { span_ns, cpus: Vec::new(), unknown: Vec::new() };
    for (cpu, now) in &after.cpus {
        let earlier = before.cpus.iter().find(|(other, _)| other == cpu);
        match earlier.and_then(|(_, earlier)| one(*cpu, earlier, now, wall)) {
            Some(shares) => span.cpus.push(shares),
            None => span.unknown.push(*cpu),
        }
    }
    let gone = before.cpus.iter().map(|(cpu, _)| *cpu);
    span.unknown.extend(gone.filter(|cpu| !after.cpus.iter().any(|(other, _)| other == cpu)));
    span
}

fn one(cpu: u32, before: &Ticks, after: &Ticks, wall: f64) -> Option<CpuUse> {
    if wall <= 0.0 {
        return None;
    }
    // Rounding can put a share a little above the wall time; steps of one tick back are the kernel's own
    // (iowait moves to idle), more than that is a CPU that started again.
    let share = |before: u64, after: u64| match after.checked_sub(before) {
        Some(ticks) => Some((ticks as f64 / wall).min(1.0)),
        None if before - after <= 1 => Some(0.0),
        None => None,
    };
    Some(CpuUse {
        cpu,
        user_ratio: share(before.user + before.nice, after.user + after.nice)?,
        system_ratio: share(before.system, after.system)?,
        irq_ratio: share(before.irq, after.irq)?,
        softirq_ratio: share(before.softirq, after.softirq)?,
        steal_ratio: share(before.steal, after.steal)?,
        // Added, because time moves between the two.
        idle_ratio: share(before.idle + before.iowait, after.idle + after.iowait)?,
        foreign_ratio: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn stat(cpus: &[(u32, Ticks)]) -> Stat {
        Stat { cpus: cpus.to_vec(), ..Stat::default() }
    }

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-9
    }

    #[test]
    fn shares_are_of_wall_time() {
        let before = Ticks { user: 5, idle: 100, iowait: 50, ..Ticks::default() };
        let after =
            Ticks { user: 25, softirq: 10, idle: 160, iowait: 50, steal: 10, ..Ticks::default() };
        let span = shares(&stat(&[(1, before)]), &stat(&[(1, after)]), 1_000_000_000, 100);
        let cpu = &span.cpus[0];
        assert!(
            near(cpu.user_ratio, 0.2) && near(cpu.softirq_ratio, 0.1) && near(cpu.idle_ratio, 0.6)
        );
        // Ticks missed 10 % of the busy time; what is not idle was busy all the same.
        assert!(near(cpu.steal_ratio, 0.1) && near(cpu.busy_ratio(), 0.3));
    }

    #[test]
    fn iowait_that_turns_into_idle_is_not_lost() {
        let before = Ticks { idle: 100, iowait: 50, ..Ticks::default() };
        let after = Ticks { idle: 230, iowait: 20, ..Ticks::default() };
        let span = shares(&stat(&[(0, before)]), &stat(&[(0, after)]), 1_000_000_000, 100);
        assert!(near(span.cpus[0].idle_ratio, 1.0), "{span:?}");
    }

    #[test]
    fn a_cpu_that_went_or_restarted_is_unknown_and_not_idle() {
        let old = Ticks { user: 500, idle: 500, ..Ticks::default() };
        let before = stat(&[(0, old), (1, old), (2, old)]);
        let after = stat(&[(0, old), (1, Ticks::default()), (3, old)]);
        let span = shares(&before, &after, 1_000_000_000, 100);
        assert_eq!(span.cpus.len(), 1);
        assert_eq!(span.unknown, [1, 3, 2]);
    }

    #[test]
    fn this_host_adds_up() {
        let root = Root::host();
        let is_busy_seen = || {
            let first = CpuTimes::read(&root).unwrap();
            let start = Instant::now();
            while start.elapsed().as_millis() < 120 {
                std::hint::spin_loop();
            }
            let span = CpuTimes::read(&root).unwrap().since(&first);
            assert!(span.unknown.is_empty());
            let sum = |cpu: &CpuUse| cpu.busy_ratio() + cpu.idle_ratio + cpu.steal_ratio;
            assert!(span.cpus.iter().all(|cpu| near(sum(cpu), 1.0)), "{span:?}");
            span.cpus.iter().any(|cpu| cpu.busy_ratio() > 0.3)
        };
        // A hypervisor may take the CPU away.
        assert!((0..50).any(|_| is_busy_seen()));
    }

    proptest! {
        #[test]
        fn no_share_leaves_its_range(a in proptest::array::uniform8(0u64..1 << 40), b in proptest::array::uniform8(0u64..1 << 40), span in 0u64..1 << 40) {
            let ticks = |n: [u64; 8]| Ticks { user: n[0], nice: n[1], system: n[2], idle: n[3], iowait: n[4], irq: n[5], softirq: n[6], steal: n[7] };
            for cpu in shares(&stat(&[(0, ticks(a))]), &stat(&[(0, ticks(b))]), span, 100).cpus {
                for ratio in [cpu.user_ratio, cpu.system_ratio, cpu.softirq_ratio, cpu.idle_ratio, cpu.busy_ratio(), cpu.steal_ratio] {
                    prop_assert!((0.0..=1.0).contains(&ratio));
                }
            }
        }
    }
}
