//! The formulas against packets: each queue is run arrival by arrival with parameters that no reference case has.
//!
//! Tolerances are several standard errors of the seeded run.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::VecDeque;

use chacha20::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};

#[path = "support/formula.rs"]
mod formula;

use formula::outputs;

const ARRIVALS: usize = 2_000_000;

#[track_caller]
fn near(outputs: &Value, name: &str, simulated: f64, relative: f64) {
    let got = outputs[name].as_f64().unwrap();
    assert!(
        (got / simulated - 1.0).abs() < relative,
        "{name}: formula {got}, simulated {simulated}"
    );
}

fn exponential(random: &mut ChaCha8Rng, mean: f64) -> f64 {
    -mean * (1.0 - random.random::<f64>()).ln()
}

fn seeded(seed: u64) -> ChaCha8Rng {
    ChaCha8Rng::seed_from_u64(seed)
}

/// Waits in a queue of one server, by Lindley's recursion.
fn waits(arrivals_pps: f64, seed: u64, service_us: impl Fn(&mut ChaCha8Rng) -> f64) -> Vec<f64> {
    let mut random = seeded(seed);
    let (mut wait, mut all) = (0.0_f64, Vec::with_capacity(ARRIVALS));
    for _ in 0..ARRIVALS {
        all.push(wait);
        let service = service_us(&mut random);
        wait = (wait + service - exponential(&mut random, 1e6 / arrivals_pps)).max(0.0);
    }
    all
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn quantile(values: &mut [f64], q: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    values[(values.len() as f64 * q) as usize]
}

#[test]
fn waits_of_unlimited_queues() {
    let mut fixed = waits(70_000.0, 1, |_| 10.0);
    let got = outputs("M/D/1", &json!({"service_us": 10.0, "rho": 0.7}));
    near(&got, "mean_wait_us", mean(&fixed), 0.02);
    near(&got, "wait_us_p90", quantile(&mut fixed, 0.9), 0.02);
    near(&got, "wait_us_p99", quantile(&mut fixed, 0.99), 0.03);

    let mut spread = waits(60_000.0, 2, |random| exponential(random, 10.0));
    let got = outputs("M/M/1", &json!({"lam": 60_000, "mu": 100_000}));
    near(&got, "mean_sojourn_us", mean(&spread) + 10.0, 0.03);
    near(&got, "wait_us_p90", quantile(&mut spread, 0.9), 0.03);

    let several = waits(70_000.0, 3, |random| match random.random::<f64>() {
        part if part < 0.6 => 4.0,
        part if part < 0.95 => 9.0,
        _ => 60.0,
    });
    let service = json!([{"p": 0.6, "us": 4.0}, {"p": 0.35, "us": 9.0}, {"p": 0.05, "us": 60.0}]);
    let got = outputs("M/G/1", &json!({"lam": 70_000, "service": service}));
    near(&got, "mean_wait_us", mean(&several), 0.03);
}

/// Loss of a queue of `places`, by a list of departures.
fn blocked(rho: f64, places: usize, seed: u64, service: impl Fn(&mut ChaCha8Rng) -> f64) -> f64 {
    let mut random = seeded(seed);
    let mut leaving: VecDeque<f64> = VecDeque::new();
    let (mut now, mut lost) = (0.0, 0);
    for _ in 0..ARRIVALS {
        now += exponential(&mut random, 1.0 / rho);
        while leaving.front().is_some_and(|gone| *gone <= now) {
            leaving.pop_front();
        }
        if leaving.len() < places {
            let start = leaving.back().copied().unwrap_or(now);
            leaving.push_back(start + service(&mut random));
        } else {
            lost += 1;
        }
    }
    f64::from(lost) / ARRIVALS as f64
}

#[test]
fn bounded_queues_block() {
    let fixed = outputs("M/D/1/K", &json!({"rho": 1.1, "K": 9}));
    near(&fixed, "block", blocked(1.1, 9, 4, |_| 1.0), 0.02);
    let spread = outputs("M/M/1/K", &json!({"rho": 0.85, "K": 7}));
    near(&spread, "block", blocked(0.85, 7, 5, |random| exponential(random, 1.0)), 0.03);
}

/// A server that rests: `rest` gives how long after the arrival that ends an idle time service begins.
fn resting(arrivals_pps: f64, service: f64, seed: u64, rest: impl Fn(f64) -> f64) -> (f64, f64) {
    let mut random = seeded(seed);
    let (mut now, mut free, mut total, mut wakes) = (0.0, 0.0, 0.0, 0.0);
    for _ in 0..ARRIVALS {
        now += exponential(&mut random, 1e6 / arrivals_pps);
        let start = if now >= free {
            wakes += 1.0;
            now + rest(now - free)
        } else {
            free
        };
        total += start - now;
        free = start + service;
    }
    (total / ARRIVALS as f64, wakes * 1e6 / now)
}

#[test]
fn servers_that_rest() {
    let (wait, interrupts) = resting(150_000.0, 3.0, 6, |_| 30.0);
    let inputs = json!({"lam": 150_000, "service_us": 3.0, "rx_usecs": 30.0});
    let got = outputs("M/D/1 with setup", &inputs);
    near(&got, "mean_wait_us", wait, 0.01);
    near(&got, "interrupts_per_s", interrupts, 0.01);
    // A reader that looks again every 200 us after its queue ran empty.
    let (wait, _) = resting(60_000.0, 10.0, 7, |idle| 200.0 - idle % 200.0);
    let inputs = json!({"lam": 60_000, "service_us": 10.0, "vacation_us": 200.0});
    near(&outputs("M/D/1, multiple fixed vacations", &inputs), "mean_wait_us", wait, 0.01);
}

#[test]
fn coalescing_by_frames() {
    let (arrivals, timer, frames) = (250_000.0, 40.0, 6);
    let mut random = seeded(8);
    let (mut hold, mut batch, mut delay, mut cycles, mut time) = (0.0, 0.0, 0.0, 0.0, 0.0);
    while batch < ARRIVALS as f64 {
        let mut offsets = vec![0.0];
        let mut at = exponential(&mut random, 1e6 / arrivals);
        while at < timer && offsets.len() < frames {
            offsets.push(at);
            at += exponential(&mut random, 1e6 / arrivals);
        }
        let fired = if offsets.len() == frames { offsets[frames - 1] } else { timer };
        hold += fired;
        batch += offsets.len() as f64;
        delay += offsets.iter().map(|offset| fired - offset).sum::<f64>();
        time += fired + exponential(&mut random, 1e6 / arrivals);
        cycles += 1.0;
    }
    let inputs = json!({"lam": arrivals, "rx_usecs": timer, "rx_frames": frames});
    let got = outputs("interrupt coalescing usecs", &inputs);
    near(&got, "mean_hold_us", hold / cycles, 0.01);
    near(&got, "mean_batch", batch / cycles, 0.01);
    near(&got, "mean_delay_us", delay / batch, 0.01);
    near(&got, "interrupts_per_s", cycles * 1e6 / time, 0.01);
}

#[test]
fn gated_polls() {
    let (arrivals, poll, packet, budget) = (450_000.0, 0.9, 1.2, 16);
    let mut random = seeded(9);
    let (mut next, mut waiting) = (0.0, 0_usize);
    let (mut now, mut polls, mut packets, mut interrupts) = (0.0, 0.0, 0.0, 0.0);
    while packets < ARRIVALS as f64 {
        if waiting == 0 {
            now = next;
            waiting = 1;
            next += exponential(&mut random, 1e6 / arrivals);
            interrupts += 1.0;
        }
        let work = waiting.min(budget);
        waiting -= work;
        packets += work as f64;
        polls += 1.0;
        now += poll + packet * work as f64;
        while next <= now {
            waiting += 1;
            next += exponential(&mut random, 1e6 / arrivals);
        }
    }
    let inputs = json!({"lam": arrivals, "c_poll_us": poll, "c_pkt_us": packet, "budget": budget});
    let got = outputs("gated limited poll loop", &inputs);
    near(&got, "mean_batch", packets / polls, 0.01);
    near(&got, "polls_per_s", polls * 1e6 / now, 0.01);
    near(&got, "interrupts_per_s", interrupts * 1e6 / now, 0.02);
}

#[test]
fn bursts_into_a_buffer() {
    let (peak, drain, on, off, buffer) = (300_000.0, 150_000.0, 0.003, 0.005, 500.0);
    let mut random = seeded(10);
    let (mut queue, mut lost, mut offered) = (0.0_f64, 0.0, 0.0);
    for _ in 0..ARRIVALS {
        let burst = exponential(&mut random, on);
        offered += peak * burst;
        let level = queue + (peak - drain) * burst;
        lost += (level - buffer).max(0.0);
        queue = (level.min(buffer) - drain * exponential(&mut random, off)).max(0.0);
    }
    let inputs =
        json!({"peak": peak, "drain": drain, "mean_on_s": on, "mean_off_s": off, "B": buffer});
    near(&outputs("one exponential on/off", &inputs), "loss_fraction", lost / offered, 0.01);
}

/// Mean time of the second class in the system, the first preempting it; rates in 1/s, services in us.
fn preempted(first: (f64, f64), second: (f64, f64)) -> f64 {
    let mut random = seeded(11);
    let (mut next_first, mut next_second) = (0.0, 0.0);
    let (mut now, mut high): (f64, f64) = (0.0, 0.0);
    let mut low: VecDeque<(f64, f64)> = VecDeque::new();
    let (mut total, mut count) = (0.0, 0.0);
    while count < ARRIVALS as f64 / 4.0 {
        let event = f64::min(next_first, next_second);
        // Work until the next arrival: the first class, then the second.
        let served = high.min(event - now);
        high -= served;
        let mut left = event - now - served;
        while let Some((arrived, work)) = low.front_mut() {
            if *work > left {
                *work -= left;
                break;
            }
            left -= *work;
            total += event - left - *arrived;
            count += 1.0;
            low.pop_front();
        }
        now = event;
        if next_first <= next_second {
            high += first.1;
            next_first += exponential(&mut random, 1e6 / first.0);
        } else {
            low.push_back((now, second.1));
            next_second += exponential(&mut random, 1e6 / second.0);
        }
    }
    total / count
}

#[test]
fn a_softirq_that_preempts() {
    let (first, second) = ((250_000.0, 1.2), (80_000.0, 4.0));
    let inputs = json!({"l1": first.0, "s1_us": first.1, "l2": second.0, "s2_us": second.1});
    let got = outputs("two independent Poisson", &inputs);
    let alone = waits(first.0, 12, |_| first.1);
    near(&got, "T1_us", mean(&alone) + first.1, 0.01);
    near(&got, "T2_us", preempted(first, second), 0.02);
}

#[test]
fn flows_on_queues() {
    let mut random = seeded(13);
    let (flows, queues, trials) = (20, 6, 300_000);
    let mut sum = 0;
    for _ in 0..trials {
        let mut counts = vec![0; queues];
        for _ in 0..flows {
            counts[random.random_range(0..queues)] += 1;
        }
        sum += counts.iter().max().unwrap();
    }
    let got = outputs("F equal flows", &json!({"flows": flows, "queues": queues}));
    near(&got, "expected_max", f64::from(sum) / f64::from(trials), 0.002);
}
