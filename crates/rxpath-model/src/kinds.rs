//! The kinds of cases: one file each, and one line in the list below.

use crate::inputs::{Inputs, Outputs, Problem};

pub mod balls;
pub mod coalesce_frames;
pub mod coalesce_usecs;
pub mod gated_poll;
pub mod inverse;
pub mod line_rate;
pub mod livelock;
pub mod md1;
pub mod md1k;
pub mod mg1;
pub mod mm1;
pub mod mm1k;
pub mod mmc;
pub mod napi_budget;
pub mod onoff;
pub mod priority;
pub mod share;
pub mod socket_capacity;
pub mod stall;
pub mod toeplitz;
pub mod token_cbr;
pub mod token_poisson;
pub mod vacation;

/// What computes a kind.
pub type Compute = fn(&Inputs) -> Result<Outputs, Problem>;

/// The name of every kind in the field `kind` of a case, and its formula.
pub const ALL: &[(&str, Compute)] = &[
    ("M/M/1/K", mm1k::compute),
    ("M/D/1/K", md1k::compute),
    ("M/M/1", mm1::compute),
    ("M/D/1", md1::compute),
    ("M/G/1", mg1::compute),
    ("D/D/1/N, server frozen T at the start of each period P", stall::compute),
    (
        "M/D/1 with setup T (rx-usecs timer armed by the first packet of an idle period, exhaustive poll)",
        coalesce_usecs::compute,
    ),
    ("interrupt coalescing usecs T or frames F, zero service time", coalesce_frames::compute),
    (
        "M/D/1, multiple fixed vacations V, exhaustive (polling reader that sleeps V when the queue is empty)",
        vacation::compute,
    ),
    (
        "gated limited poll loop: a poll takes the min(n,B) packets present at its start, lasts c_poll+k c_pkt, \
         infinite ring, no coalescing; poll again at once if packets remain, else interrupt on the next arrival \
         (zero interrupt cost)",
        gated_poll::compute,
    ),
    ("token bucket, CBR R for stall tau, ring D full of ready tokens at t=0", token_cbr::compute),
    ("line rate and time to exhaust D tokens with no refill", line_rate::compute),
    (
        "Poisson arrivals (mean a=R tau) into D ready descriptors with no refill for tau",
        token_poisson::compute,
    ),
    (
        "one CPU, softirq c_s per packet preempts an application of c_a per packet",
        livelock::compute,
    ),
    (
        "two independent Poisson classes, preemptive resume, deterministic service",
        priority::compute,
    ),
    ("one exponential on/off fluid source into buffer B, constant drain c", onoff::compute),
    ("Microsoft verification suite key", toeplitz::compute),
    ("F equal flows hashed uniformly on Q queues", balls::compute),
    ("M/M/c (c threads reading one socket)", mmc::compute),
    (
        "NAPIs x queued packets on one CPU, no arrivals, weight 64, netdev_budget 300, no time limit hit",
        napi_budget::compute,
    ),
    (
        "CPU share of the receiver against n always-runnable nice-0 tasks on ONE cpu, same cgroup/autogroup",
        share::compute,
    ),
    ("UDP socket queue capacity in packets, no reader", socket_capacity::compute),
    (
        "inverse calibration of the paper's UDP runs with the one-CPU livelock line \
         (receiver: one Pentium II 350 MHz)",
        inverse::compute,
    ),
];
