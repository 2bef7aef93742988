//! A receive queue: its share of the device, how it is polled, what it loses.

use rxpath_core::number::si;
use rxpath_record::watch::{QueueRow, WatchFrame};

/// If this share of polls uses up the budget, the CPU lags behind.
const EXHAUSTED: f64 = 0.2;
/// With fewer packets per poll, each interrupt serves few packets.
const FEW: f64 = 2.0;
/// Interrupts per second from which on this is mentioned.
const MANY_PER_S: f64 = 10_000.0;

pub(super) fn words(queue: &QueueRow, frame: &WatchFrame) -> Vec<String> {
    let name = format!("{} queue {}", queue.device, queue.queue);
    let mut words = vec![moved(&name, queue, frame)];
    words.extend(spread(queue, frame).map(str::to_owned));
    words.extend(polled(queue));
    if let Some(drops) = queue.drops_pps.value().filter(|drops| **drops > 0.0) {
        words.push(format!(
            "It lost {} packets/s: its CPU emptied the ring too late. A larger rx ring bridges bursts (`rxpath tune plan \
             --set {}/rings/rx=N`); against overload only more queues or more CPU time help.",
            si(*drops),
            queue.device
        ));
    }
    words
}

fn moved(name: &str, queue: &QueueRow, frame: &WatchFrame) -> String {
    let Some(pps) = queue.packets_pps.value() else {
        let why = queue.packets_pps.gap().unwrap_or_default();
        return format!("{name}: its packets are not known: {why}.");
    };
    let mut words = format!("{name} took {} packets/s", si(*pps));
    let all: f64 = siblings(queue, frame).filter_map(|one| one.packets_pps.value()).sum();
    if all > 0.0 {
        words += &format!(", {:.0} % of the packets of all the device's queues", 100.0 * pps / all);
    }
    if let Some(cpus) = queue.cpus.value().filter(|cpus| !cpus.is_empty()) {
        words += &format!(", on CPU {cpus}");
    }
    words + "."
}

fn siblings<'a>(queue: &'a QueueRow, frame: &'a WatchFrame) -> impl Iterator<Item = &'a QueueRow> {
    frame.queues.iter().filter(|one| one.device == queue.device)
}

fn spread(queue: &QueueRow, frame: &WatchFrame) -> Option<&'static str> {
    let pps = *queue.packets_pps.value()?;
    let rates: Vec<f64> =
        siblings(queue, frame).filter_map(|one| one.packets_pps.value().copied()).collect();
    let all: f64 = rates.iter().sum();
    // Half-way from a fair share to everything.
    let lopsided = f64::midpoint(1.0, 1.0 / rates.len().max(1) as f64);
    (rates.len() > 1 && all > 1.0 && pps / all > lopsided).then_some(
        "It has far more than its share: there are few flows, or the hash does not cover the fields in which they differ. \
         `rxpath check --flow` computes where a flow lands.",
    )
}

fn polled(queue: &QueueRow) -> Option<String> {
    let each = queue.packets_per_poll.value()?;
    let mut words = format!("{} packets a poll", si(*each));
    if let Some(exhausted) = queue.exhausted_ratio.value() {
        words += &format!("; {:.0} % of the polls used up their budget", 100.0 * exhausted);
        if *exhausted >= EXHAUSTED {
            words += ": packets arrive faster than its CPU takes them, the rest waits in the ring. \
                      Spread the flows over more queues or CPUs";
        }
    }
    let interrupts = queue.interrupts_per_s.value().copied().unwrap_or(0.0);
    if *each < FEW && interrupts > MANY_PER_S {
        words += &format!(
            "; {} interrupts/s, nearly one for each packet: coalescing (`rxpath explain irq-coalesce-rx-usecs`) or \
             gro_flush_timeout trades some latency for CPU time",
            si(interrupts)
        );
    }
    Some(words + ".")
}
