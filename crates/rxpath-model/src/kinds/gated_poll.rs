//! A NAPI poll that takes what is there when it starts, at most `B`, and polls again while packets remain.
//!
//! Packets present at the starts of polls form a Markov chain: `n - k + Poisson(lambda (c_poll + k c_pkt))` with
//! `k = min(n, B)`; an empty ring waits for the next packet's interrupt. Assumes Poisson arrivals, an unlimited ring
//! and interrupts that cost nothing. The chain is cut where its tail has vanished and solved without subtraction.

use crate::inputs::{Code, Inputs, Outputs, Problem};
use crate::poisson;
use crate::queue::banded::{TransitionRow, stationary};

/// Multiplications beyond which the chain is not solved.
const MOST_WORK: f64 = 3e9;
/// Transitions rarer than this are left out.
const RAREST: f64 = 1e-40;

/// A poll loop.
#[derive(Clone, Copy, Debug)]
pub struct Poll {
    /// Packets per second.
    pub arrivals_pps: f64,
    /// Seconds per poll.
    pub poll_s: f64,
    /// Seconds per packet.
    pub packet_s: f64,
    /// Most packets per poll (NAPI weight).
    pub budget: u64,
}

/// What the loop does in the long run.
#[derive(Clone, Copy, Debug)]
pub struct Steady {
    /// Packets per poll.
    pub mean_batch: f64,
    /// Polls per second.
    pub polls_per_s: f64,
    /// Fraction of the CPU.
    pub cpu_busy: f64,
    /// Interrupts per second.
    pub interrupts_per_s: f64,
}

impl Poll {
    /// Packets per second that full polls one after the other carry.
    pub fn max_rate(&self) -> f64 {
        self.budget as f64 / (self.poll_s + self.budget as f64 * self.packet_s)
    }

    fn duration(&self, waiting: usize) -> f64 {
        self.poll_s + self.packet_s * (waiting as u64).min(self.budget) as f64
    }

    /// How many packets must be considered, and how much work that is.
    fn size(&self) -> (f64, f64) {
        let full = self.arrivals_pps * self.duration(self.budget as usize);
        let load = self.arrivals_pps * self.packet_s;
        let spread = |mean: f64| 15.0 * mean.sqrt() + 120.0;
        // Without a budget the chain is an autoregression of Poisson steps.
        let free = if load < 1.0 {
            let mean = self.arrivals_pps * self.poll_s / (1.0 - load);
            mean + spread(mean / (1.0 - load * load))
        } else {
            f64::INFINITY
        };
        // With it the tail falls geometrically; the diffusion's rate bounds it from below.
        let budget = self.budget as f64;
        let rate = (2.0 * (budget - full) / full.max(1e-300)).min(1.0);
        let limited = budget + full + spread(full) + 45.0 / rate;
        let (states, drift) =
            if free <= budget { (free, free * (1.0 - load)) } else { (limited, budget - full) };
        // Rows that reach a state from below, times how far they reach down from there.
        let width = spread(full.min(states));
        (states, states * width * (drift + width).min(states))
    }

    fn rows(&self, states: usize) -> Vec<TransitionRow> {
        let row = |waiting: usize| {
            if waiting == 0 {
                return TransitionRow { first: 1, p: vec![1.0] };
            }
            let kept = (waiting as u64).saturating_sub(self.budget) as usize;
            let mean = self.arrivals_pps * self.duration(waiting);
            let mut arrivals = 0;
            while (arrivals as f64) < mean && poisson::at(mean, arrivals) < RAREST {
                arrivals += 1;
            }
            let first = (kept + arrivals as usize).min(states - 1);
            let mut p = Vec::new();
            let mut left = 1.0;
            while first + p.len() < states - 1 {
                let next = poisson::at(mean, arrivals);
                if next < RAREST && arrivals as f64 > mean {
                    return TransitionRow { first, p };
                }
                p.push(next);
                left -= next;
                arrivals += 1;
            }
            p.push(left.max(0.0));
            TransitionRow { first, p }
        };
        (0..states).map(row).collect()
    }

    /// Solves the chain.
    pub fn steady(&self) -> Result<Steady, Problem> {
        let (states, work) = self.size();
        if work.is_nan() || work > MOST_WORK {
            let text = format!(
                "the Markov chain would need {states:.1e} states: the load is too close to the limit"
            );
            return Err(Problem::new(Code::TooLarge, text));
        }
        let pi = stationary(self.rows((states.ceil() as usize).max(3)))
            .ok_or_else(|| Problem::new(Code::NoValue, "the Markov chain has no steady state"))?;
        let (mut polls, mut packets, mut busy) = (0.0, 0.0, 0.0);
        for (waiting, p) in pi.iter().enumerate().skip(1) {
            polls += p;
            packets += p * (waiting as u64).min(self.budget) as f64;
            busy += p * self.duration(waiting);
        }
        let time = busy + pi[0] / self.arrivals_pps;
        Ok(Steady {
            mean_batch: packets / polls,
            polls_per_s: polls / time,
            cpu_busy: busy / time,
            interrupts_per_s: pi[0] / time,
        })
    }
}

pub(super) fn compute(inputs: &Inputs) -> Result<Outputs, Problem> {
    let poll = Poll {
        arrivals_pps: inputs.positive("lam")?,
        poll_s: inputs.not_negative("c_poll_us")? / 1e6,
        packet_s: inputs.not_negative("c_pkt_us")? / 1e6,
        budget: inputs.whole("budget", 1..=1_000_000_000)?,
    };
    if poll.poll_s + poll.packet_s <= 0.0 {
        return Err(Problem::bad("c_pkt_us", "a poll must take time: this and `c_poll_us` are 0"));
    }
    let max_rate = poll.max_rate();
    let steady = if poll.arrivals_pps >= max_rate {
        Err(Problem::unstable("polls", poll.arrivals_pps / max_rate))
    } else {
        poll.steady()
    };
    Ok(match steady {
        Ok(got) => Outputs::default()
            .with("mean_batch", got.mean_batch)
            .with("polls_per_s", got.polls_per_s)
            .with("cpu_busy", got.cpu_busy)
            .with("interrupts_per_s", got.interrupts_per_s)
            .with("max_rate", max_rate),
        Err(problem) => Outputs::default().with("max_rate", max_rate).but(problem),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What comes in goes out: packets polled per second are the arrivals.
    #[test]
    fn flow_is_conserved() {
        for (arrivals, poll_us, packet_us, budget) in [
            (50_000.0, 5.0, 2.0, 64),
            (300_000.0, 2.0, 1.0, 3),
            (900_000.0, 2.0, 1.0, 64),
            (1_000.0, 0.0, 1.0, 1),
            (960_000.0, 2.0, 1.0, 64),
            (990_000.0, 2.0, 1.0, 1_000_000),
        ] {
            let poll = Poll {
                arrivals_pps: arrivals,
                poll_s: poll_us / 1e6,
                packet_s: packet_us / 1e6,
                budget,
            };
            let got = poll.steady().unwrap();
            let carried = got.mean_batch * got.polls_per_s;
            assert!((carried / arrivals - 1.0).abs() < 1e-9, "{poll:?}: {carried}");
            let busy = got.polls_per_s * poll.poll_s + arrivals * poll.packet_s;
            assert!((busy / got.cpu_busy - 1.0).abs() < 1e-9, "{poll:?}: {busy}");
        }
    }

    #[test]
    fn a_budget_of_one_without_poll_cost_is_the_plain_queue() {
        // M/D/1: the CPU is idle 1 - rho, and idle periods end at rate lambda (1 - rho).
        let poll = Poll { arrivals_pps: 700_000.0, poll_s: 0.0, packet_s: 1e-6, budget: 1 };
        let got = poll.steady().unwrap();
        assert!((got.cpu_busy - 0.7).abs() < 1e-12, "{got:?}");
        assert!((got.interrupts_per_s / 210_000.0 - 1.0).abs() < 1e-10, "{got:?}");
    }
}
