//! What the schedulers keep of a thread.

use super::parameters::Parameters;
use crate::kinds::share::{slice_ms, weight};

/// `MAX_SLEEP_AVG`: one second, at HZ=1000 (kernel/sched.c of 2.6).
pub(super) const MOST_SLEEP: u64 = 1_000_000_000;
/// `MAX_BONUS`.
const BONUSES: u64 = 10;

/// What the schedulers keep of a thread.
#[derive(Clone, Debug, Default)]
pub(super) struct Fair {
    pub weight: u64,
    /// Virtual runtime and deadline: ns at nice 0.
    pub runtime: u64,
    pub deadline: u64,
    /// When it was given the CPU.
    pub since: u64,
    /// O(1): slice left, whether it is in the active array, and how much it sleeps.
    pub slice_left: u64,
    pub active: bool,
    pub sleep: u64,
    pub asleep_since: u64,
    /// Order of becoming ready.
    pub turn: u64,
}

impl Fair {
    pub(super) fn new(p: &Parameters, nice: i64, slept: bool) -> Self {
        let weight = weight(nice).unwrap_or(1024.0) as u64;
        Self {
            weight,
            deadline: p.slice * 1024 / weight,
            slice_left: slice_ms(nice) * 1_000_000,
            active: true,
            // A reader has waited for its stream since long before.
            sleep: if slept { MOST_SLEEP } else { 0 },
            ..Self::default()
        }
    }

    pub(super) fn virtual_time(&self, ns: u64) -> u64 {
        ns * 1024 / self.weight
    }

    pub(super) fn bonus(&self) -> u64 {
        self.sleep * BONUSES / MOST_SLEEP
    }

    /// `effective_prio`: lower is better.
    pub(super) fn priority(&self, nice: i64) -> i64 {
        120 + nice - (self.bonus() as i64 - BONUSES as i64 / 2)
    }

    /// `TASK_INTERACTIVE`.
    pub(super) fn interactive(&self, nice: i64) -> bool {
        let delta = nice * BONUSES as i64 / 40 + 2;
        self.priority(nice) <= 120 + nice - delta
    }
}
