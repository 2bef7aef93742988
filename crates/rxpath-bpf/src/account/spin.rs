//! The reference for calibration and validation of the probe: a loop that reads the clock and sums the gaps.
//!
//! An iteration of the loop takes some 10 ns plus its work. If two readings lie further apart, something took the CPU
//! in between: an interrupt with its entry and exit, a softirq, the hypervisor, another task. The number of iterations
//! measures the work done: a second reference from the same loop.

use std::hint::black_box;
use std::time::Duration;

use super::clock::{TickScale, ticks};

/// Shorter gaps are the loop's own: a cache line of it that was evicted, a reading of the clock that took long.
const LEAST_GAP: Duration = Duration::from_nanos(200);

/// What the loop saw.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Gaps {
    /// From first to last reading.
    pub wall_ns: f64,
    /// Time in gaps, each less one turn of the loop.
    pub gaps_ns: f64,
    /// Gaps.
    pub gaps_count: u64,
    /// The longest.
    pub longest_ns: f64,
    /// Turns of the loop.
    pub turns: u64,
    /// One turn of the loop without a gap, on average.
    pub turn_ns: f64,
}

/// One piece of work: a chain of `rounds` multiplications, each of which waits for the one before.
#[inline]
fn work(rounds: u32, mut state: u64) -> u64 {
    for _ in 0..rounds {
        // Knuth's MMIX generator: any chain would do.
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    }
    state
}

/// A loop that is ready to run. What it has to know is measured before, by another thread of the same CPU: a thread
/// that is accounted for then does nothing but the loop, and its time on the CPU is the loop's.
#[derive(Clone, Copy, Debug)]
pub struct Prepared {
    rounds: u32,
    span: u64,
    threshold: u64,
    scale: TickScale,
}

impl Prepared {
    /// Looks for gaps for this long, with `rounds` of work in each turn.
    pub fn new(time: Duration, rounds: u32) -> Self {
        let scale = TickScale::begin();
        let span = TickScale::ticks_of(time);
        // With work in it a turn varies by some percent.
        let turn = fastest_row(rounds, 1);
        let threshold = TickScale::ticks_of(LEAST_GAP).max(1) + turn + turn / 8;
        Self { rounds, span, threshold, scale }
    }

    /// Runs it on the calling thread.
    pub fn look(&self) -> Gaps {
        let start = ticks();
        let (mut last, mut gaps, mut count, mut longest) = (start, 0u64, 0u64, 0u64);
        let (mut turns, mut state) = (0u64, start);
        while last.wrapping_sub(start) < self.span {
            state = work(self.rounds, state);
            let now = ticks();
            let step = now.wrapping_sub(last);
            if step >= self.threshold {
                gaps += step;
                count += 1;
                longest = longest.max(step);
            }
            last = now;
            turns += 1;
        }
        black_box(state);
        let ns = self.scale.ns_per_tick();
        let wall = last.wrapping_sub(start);
        // Turns without a gap took what is left: their mean is one turn.
        let turn = wall.saturating_sub(gaps) as f64 / turns.saturating_sub(count).max(1) as f64;
        Gaps {
            wall_ns: wall as f64 * ns,
            gaps_ns: (gaps as f64 - count as f64 * turn).max(0.0) * ns,
            gaps_count: count,
            longest_ns: longest as f64 * ns,
            turns,
            turn_ns: turn * ns,
        }
    }
}

/// Turns of the two rows that are timed: some microseconds with work in them, which also on a busy CPU nothing
/// interrupts now and then.
const ROWS: [u32; 2] = [2, 6];

/// Time of one undisturbed turn with this work, in ns.
///
/// By the difference of the fastest of many short and of many longer rows of turns, made as [`Prepared::look`] makes
/// them: a CPU reads its clock before the work of the turn has ended and begins the next one early, so that single
/// turns came out a fifth too short, and that error is in both rows.
pub fn undisturbed_turn_ns(rounds: u32) -> f64 {
    let scale = TickScale::begin();
    let [short, long] = ROWS.map(|turns| fastest_row(rounds, turns));
    long.saturating_sub(short) as f64 / f64::from(ROWS[1] - ROWS[0]) * scale.ns_per_tick()
}

/// Ticks of the fastest of many rows.
fn fastest_row(rounds: u32, turns: u32) -> u64 {
    let (mut state, mut shortest) = (1, u64::MAX);
    for _ in 0..2000 {
        let start = ticks();
        let mut last = start;
        for _ in 0..turns {
            state = work(rounds, state);
            last = black_box(ticks());
        }
        shortest = shortest.min(last.wrapping_sub(start));
    }
    black_box(state);
    shortest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_are_part_of_the_whole() {
        let gaps = Prepared::new(Duration::from_millis(20), 0).look();
        assert!(gaps.wall_ns >= 15e6, "{gaps:?}");
        assert!(gaps.gaps_ns <= gaps.wall_ns + 1.0);
        assert!(gaps.turn_ns > 0.0 && gaps.longest_ns <= gaps.wall_ns);
    }
}
