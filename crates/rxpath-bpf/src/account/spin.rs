//! The truth that the probe is calibrated and judged by: a loop that reads the clock and adds up the gaps.
//!
//! A turn of the loop takes some 10 ns, and with work in it as long as the work takes. Whenever two readings lie
//! further apart, something took the CPU in between: an interrupt with its entry and exit, a softirq, the hypervisor,
//! another task. The turns themselves count the work that was done: two truths from one loop.

use std::hint::black_box;
use std::time::Duration;

use super::clock::{Scale, ticks};

/// Shorter gaps are the loop's own: a cache line of it that was evicted, a reading of the clock that took long.
const LEAST_GAP: Duration = Duration::from_nanos(200);

/// Gaps that are kept one by one: 10 s at 100,000 a second. More are counted and not kept.
const KEPT: usize = 1_000_000;

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
    /// Each gap, in ns, less one turn.
    pub each_ns: Vec<f32>,
}

impl Gaps {
    /// Time that the loop had for itself, by its gaps.
    pub fn own_ns(&self) -> f64 {
        (self.wall_ns - self.gaps_ns).max(0.0)
    }

    /// The mean gap of those that are at least this long, but not ten times their median: that is another task or
    /// the hypervisor, not an interrupt. `None` without gaps.
    pub fn typical_gap_ns(&self, least_ns: f64) -> Option<f64> {
        let mut sorted: Vec<f32> =
            self.each_ns.iter().copied().filter(|gap| f64::from(*gap) >= least_ns).collect();
        sorted.sort_unstable_by(f32::total_cmp);
        let median = *sorted.get(sorted.len() / 2)?;
        let kept: Vec<f64> =
            sorted.iter().filter(|gap| **gap < median * 10.0).map(|gap| f64::from(*gap)).collect();
        Some(kept.iter().sum::<f64>() / kept.len().max(1) as f64)
    }
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

/// Looks for gaps for this long, on the calling thread, with `rounds` of work in each turn.
pub fn look(time: Duration, rounds: u32) -> Gaps {
    let mut each: Vec<u32> = Vec::with_capacity(KEPT);
    let span = Scale::ticks_of(time);
    // With work in it a turn varies by some percent.
    let turn = turn_ticks(rounds);
    let threshold = Scale::ticks_of(LEAST_GAP).max(1) + turn + turn / 8;
    let scale = Scale::begin();
    let start = ticks();
    let (mut last, mut gaps, mut count, mut longest) = (start, 0u64, 0u64, 0u64);
    let (mut turns, mut state) = (0u64, start);
    while last.wrapping_sub(start) < span {
        state = work(rounds, state);
        let now = ticks();
        let step = now.wrapping_sub(last);
        if step >= threshold {
            gaps += step;
            count += 1;
            longest = longest.max(step);
            if each.len() < KEPT {
                each.push(step.min(u64::from(u32::MAX)) as u32);
            }
        }
        last = now;
        turns += 1;
    }
    black_box(state);
    let ns = scale.ns_per_tick();
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
        each_ns: each.iter().map(|step| ((f64::from(*step) - turn).max(0.0) * ns) as f32).collect(),
    }
}

/// One undisturbed turn: the shortest of many.
fn turn_ticks(rounds: u32) -> u64 {
    let mut state = 1;
    let mut shortest = u64::MAX;
    for _ in 0..2000 {
        let start = ticks();
        state = work(rounds, state);
        shortest = shortest.min(ticks().wrapping_sub(start));
    }
    black_box(state);
    shortest
}

/// Turns that are timed together: some microseconds, which most of the time nothing interrupts.
const TOGETHER: u32 = 64;

/// Time of one undisturbed turn with this work, in ns.
///
/// By the fastest of many rows of turns as [`look`] makes them, and not by one turn between two readings of the clock: a
/// CPU reads its clock before the work of the turn has ended and begins the next one early, so that single turns came
/// out a fifth too short.
pub fn undisturbed_turn_ns(rounds: u32) -> f64 {
    let scale = Scale::begin();
    let mut state = 1;
    let mut shortest = u64::MAX;
    for _ in 0..500 {
        let start = ticks();
        let mut last = start;
        for _ in 0..TOGETHER {
            state = work(rounds, state);
            last = black_box(ticks());
        }
        shortest = shortest.min(last.wrapping_sub(start));
    }
    black_box(state);
    shortest as f64 / f64::from(TOGETHER) * scale.ns_per_tick()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_time_and_gaps_make_the_whole() {
        let gaps = look(Duration::from_millis(20), 0);
        assert!(gaps.wall_ns >= 15e6, "{gaps:?}");
        assert!(gaps.own_ns() + gaps.gaps_ns <= gaps.wall_ns + 1.0);
        assert!(gaps.turn_ns > 0.0 && gaps.longest_ns <= gaps.wall_ns);
        assert_eq!(gaps.each_ns.len() as u64, gaps.gaps_count);
    }

    /// Whatever disturbs the loop takes time from it: work that nothing took cannot be more than the time there was, and
    /// on a machine that is left alone for some milliseconds it is nearly all of it.
    #[test]
    fn the_work_of_an_undisturbed_loop_is_its_time() {
        let rounds = 100;
        let shares: Vec<f64> = (0..50)
            .map(|_| {
                let turn_ns = undisturbed_turn_ns(rounds);
                let gaps = look(Duration::from_millis(5), rounds);
                gaps.turns as f64 * turn_ns / gaps.own_ns()
            })
            .collect();
        assert!(shares.iter().any(|share| (0.9..1.1).contains(share)), "{shares:?}");
    }

    #[test]
    fn a_long_gap_is_not_an_interrupt() {
        let gaps =
            Gaps { each_ns: vec![300.0, 5000.0, 6000.0, 7000.0, 4_000_000.0], ..Gaps::default() };
        let typical = gaps.typical_gap_ns(1000.0).unwrap();
        assert!((typical - 6000.0).abs() < 1e-6, "{typical}");
        assert_eq!(Gaps::default().typical_gap_ns(0.0), None);
    }
}
