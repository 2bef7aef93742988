//! Sources of packets: random processes, a file, or a stream that waits for its window.

use chacha20::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

use super::parameters::{Law, Parameters};
use super::slots::NEVER;
use super::stream::Stream;
use super::trace::{Arrival, TraceError};

/// A file of arrivals, read as it goes.
pub type Trace<'a> = Box<dyn Iterator<Item = Result<Arrival, TraceError>> + 'a>;

enum Kind<'a> {
    Poisson {
        mean: f64,
    },
    /// Times in 2^-32 ns, so that no rounding adds up.
    Cbr {
        at: u128,
        step: u128,
    },
    /// Of each state the packets per ns, and its mean time in ns.
    Modulated {
        states: Vec<(f64, f64)>,
        state: usize,
        until: f64,
    },
    Trace(Trace<'a>),
    Tcp(Stream),
}

/// The source of a simulation.
pub(super) struct Source<'a> {
    kind: Kind<'a>,
    random: ChaCha8Rng,
    clock: f64,
    bytes: u32,
    flows: u32,
    /// Cumulated popularity of the flows; empty when all are alike.
    popularity: Vec<f64>,
    /// What a trace broke off with.
    pub(super) broken: Option<TraceError>,
}

impl<'a> Source<'a> {
    pub(super) fn new(p: &Parameters, trace: Option<Trace<'a>>) -> Self {
        let mut random = ChaCha8Rng::seed_from_u64(p.seed);
        let mean = 1e9 / p.rate;
        let kind = match (&p.law, trace) {
            (_, Some(trace)) => Kind::Trace(trace),
            (Law::Poisson, _) => Kind::Poisson { mean },
            (Law::Cbr { phase }, _) => {
                let step = (mean * 4_294_967_296.0).round().max(1.0) as u128;
                Kind::Cbr { at: (step as f64 * phase) as u128, step }
            }
            (Law::OnOff { on, off }, _) => {
                let (on, off) = (*on as f64, *off as f64);
                // It starts in its steady state.
                let state = usize::from(random.random::<f64>() >= on / (on + off));
                let states = vec![(1.0 / mean, on), (0.0, off)];
                let until = exponential(&mut random, states[state].1);
                Kind::Modulated { states, state, until }
            }
            (Law::Mmpp(states), _) => {
                let states: Vec<(f64, f64)> =
                    states.iter().map(|state| (state.rate_pps / 1e9, state.mean_ns)).collect();
                let until = exponential(&mut random, states[0].1);
                Kind::Modulated { states, state: 0, until }
            }
            (Law::Tcp { window, rtt }, _) => Kind::Tcp(Stream::new(*window, *rtt, p.rate)),
            (Law::Trace { .. }, None) => Kind::Trace(Box::new(std::iter::empty())),
        };
        let (bytes, popularity) = (p.size as u32, popularity(p));
        Self { kind, random, clock: 0.0, bytes, flows: p.flows, popularity, broken: None }
    }

    /// The next arrival; its time is [`NEVER`] when there is none, or none as yet.
    #[inline]
    pub(super) fn next(&mut self, now: u64) -> Arrival {
        let at = match &mut self.kind {
            Kind::Poisson { mean } => {
                self.clock += exponential(&mut self.random, *mean);
                self.clock as u64
            }
            Kind::Cbr { at, step } => {
                let this = *at;
                *at += *step;
                // To the nearest ns.
                ((this + (1 << 31)) >> 32) as u64
            }
            Kind::Modulated { .. } => self.modulated(),
            Kind::Trace(trace) => match trace.next() {
                Some(Ok(arrival)) => return arrival,
                Some(Err(error)) => {
                    self.broken = Some(error);
                    NEVER
                }
                None => NEVER,
            },
            Kind::Tcp(stream) => stream.next(now),
        };
        Arrival { at, bytes: self.bytes, flow: self.flow() }
    }

    /// The stream that wants to know what became of its packets.
    #[inline]
    pub(super) fn stream(&mut self) -> Option<&mut Stream> {
        if let Kind::Tcp(stream) = &mut self.kind { Some(stream) } else { None }
    }

    #[inline]
    fn flow(&mut self) -> u32 {
        if self.flows == 1 {
            return 0;
        }
        if self.popularity.is_empty() {
            return self.random.random_range(0..self.flows);
        }
        let at = self.random.random::<f64>();
        self.popularity.partition_point(|sum| *sum <= at).min(self.flows as usize - 1) as u32
    }

    /// A Poisson process whose rate depends on a state: what is left of a gap goes on in the next state.
    fn modulated(&mut self) -> u64 {
        let Kind::Modulated { states, state, until } = &mut self.kind else { return NEVER };
        let mut need = exponential(&mut self.random, 1.0);
        loop {
            let rate = states[*state].0;
            let left = (*until - self.clock) * rate;
            if need <= left {
                self.clock += need / rate;
                return self.clock as u64;
            }
            need -= left;
            self.clock = *until;
            *state = (*state + 1) % states.len();
            *until = self.clock + exponential(&mut self.random, states[*state].1);
        }
    }
}

/// Cumulated shares of Zipf's law.
fn popularity(p: &Parameters) -> Vec<f64> {
    if p.zipf == 0.0 || p.flows == 1 {
        return Vec::new();
    }
    let mut sum = 0.0;
    let mut sums: Vec<f64> = Vec::with_capacity(p.flows as usize);
    for rank in 1..=p.flows {
        sum += f64::from(rank).powf(-p.zipf);
        sums.push(sum);
    }
    sums.iter().map(|part| part / sum).collect()
}

/// An exponential time.
#[inline]
pub(super) fn exponential(random: &mut ChaCha8Rng, mean: f64) -> f64 {
    -mean * (1.0 - random.random::<f64>()).ln()
}
