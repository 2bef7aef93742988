//! Adding up what the workers did.

use std::net::SocketAddr;

use rxpath_core::Warning;
use rxpath_core::number::grouped;

use crate::LoadError;
use crate::limit::{Limit, Who, any_busy, busy_text};
use crate::schedule::KEPT_RATIO;
use crate::udp::header::flow_of;
use crate::udp::load::Load;
use crate::udp::result::{DestinationResult, FramesLedger, Lateness, LoadResult};
use crate::workload::{Finished, listed};
use rxpath_stats::Histogram;

/// A sender blocked for this share of its time was not open-loop.
const BLOCKED_RATIO: f64 = 0.01;

pub(super) fn finish(load: &mut Load) -> Result<Finished<LoadResult>, LoadError> {
    let mut result = LoadResult::default();
    let (mut lateness, mut streams) = (Histogram::of_times(), Vec::new());
    for report in load.pool.join()? {
        result.target_packets += report.target;
        result.refused_count += report.refused;
        result.hidden_errors_count += report.hidden;
        result.blocked_s += report.thread.blocked_s;
        result.frames = result.frames.into_iter().chain(report.frames).reduce(FramesLedger::and);
        result.threads.push(report.thread);
        streams.extend(report.streams);
        if let Some(ledger) = report.xdp {
            *result.xdp.get_or_insert_default() += ledger;
        }
        // Equal bounds always fit.
        let _ = lateness.merge(&report.lateness);
        for (number, count) in report.errors {
            let name = format!("{:?}", nix::errno::Errno::from_raw(number));
            *result.send_errors.entry(name).or_default() += count;
        }
    }
    result.destinations = destinations(&load.options.to, &streams);
    let (shared, cpu) = (&load.pool.shared, load.pool.shared.cpu_time());
    result.duration_s = shared.span_s();
    result.offered_packets = shared.sum(|tally| &tally.offered);
    result.sent_packets = shared.sum(|tally| &tally.units);
    if result.duration_s > 0.0 {
        result.sent_pps = result.sent_packets as f64 / result.duration_s;
    }
    result.send_errors_packets = result.send_errors.values().sum();
    result.target_pps = load.options.rate_pps.map(|rate| rate as f64);
    result.lateness_us = Lateness::of(&lateness);
    result.bypasses_udp = load.options.engine.bypasses_udp();
    result.segments_per_send = load.options.segments() as u32;
    result.cpu_user_s = cpu.user_ns as f64 / 1e9;
    result.cpu_system_s = cpu.system_ns as f64 / 1e9;
    result.limit = limit(&result);
    let mut warnings = load.warnings.clone();
    warnings.extend(notice(&result));
    let histograms = vec![("lateness", lateness)];
    Ok(Finished { result, warnings, histograms }.with_samples())
}

/// What was attempted to each of several destinations; flows take them in turn.
fn destinations(to: &[SocketAddr], streams: &[(u32, u64)]) -> Vec<DestinationResult> {
    if to.len() < 2 || streams.is_empty() {
        return Vec::new();
    }
    let mut all: Vec<DestinationResult> =
        to.iter().map(|to| DestinationResult { to: *to, offered_packets: 0 }).collect();
    for (stream, offered) in streams {
        all[usize::from(flow_of(*stream)) % to.len()].offered_packets += offered;
    }
    all
}

fn limit(result: &LoadResult) -> Limit {
    let busy = busy_text(&result.threads, result.duration_s);
    let blocked = blocked_ratio(result);
    if result.offered_packets == 0 {
        return Limit::new(Who::NotHere, "nothing was sent");
    }
    if result.target_pps.is_some() {
        let kept = result.offered_packets as f64 / result.target_packets.max(1) as f64;
        if kept >= KEPT_RATIO {
            let evidence =
                format!("{:.2} % of the scheduled datagrams offered in time, {busy}", 100.0 * kept);
            return Limit::new(Who::Schedule, evidence);
        }
    }
    if blocked >= BLOCKED_RATIO {
        let evidence =
            format!("blocked {:.0} % of the time on a full send buffer, {busy}", 100.0 * blocked);
        return Limit::new(Who::Path, evidence);
    }
    if any_busy(&result.threads, result.duration_s) {
        let why = "on veth and loopback its system calls contain the receive path, too";
        return Limit::new(Who::Sender, format!("{busy} ({why})"));
    }
    Limit::new(Who::NotHere, busy)
}

fn blocked_ratio(result: &LoadResult) -> f64 {
    let time = result.duration_s * result.threads.len() as f64;
    if time > 0.0 { result.blocked_s / time } else { 0.0 }
}

fn notice(result: &LoadResult) -> Vec<Warning> {
    let mut warnings = Vec::new();
    if blocked_ratio(result) >= BLOCKED_RATIO {
        let text = format!("the sender was blocked for {:.3} s", result.blocked_s);
        warnings.push(
            Warning::new("closed-loop", text)
            .because(
                "its send buffer was full: the path slowed the sender instead of losing datagrams",
            )
            .cure("raise --sndbuf, or treat the rate as that of a closed loop"),
        );
    }
    if result.send_errors_packets > 0 {
        let text = format!("the kernel refused datagrams: {}", listed(&result.send_errors));
        warnings.push(Warning::new("send-errors", text));
    }
    if result.refused_count > 0 {
        let text = format!("{} sends failed with ECONNREFUSED", grouped(result.refused_count));
        warnings.push(
            Warning::new("refused", text)
                .because("no socket listens on that port at the destination")
                .cure("start the receiver first, and end it last"),
        );
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::udp::header::first_stream;

    #[test]
    fn flows_take_destinations_in_turn() {
        let to: Vec<SocketAddr> =
            ["192.0.2.1:9", "192.0.2.2:9"].map(|it| it.parse::<SocketAddr>().unwrap()).to_vec();
        let stream = |number: u32, offered: u64| (first_stream(9, 3) | number, offered);
        // Of two threads, as each has its flows.
        let streams = [stream(0, 5), stream(2, 6), stream(1, 7), stream(3, 8)];
        let offered: Vec<u64> =
            destinations(&to, &streams).iter().map(|it| it.offered_packets).collect();
        assert_eq!(offered, [11, 15]);
        assert_eq!(destinations(&to[..1], &streams), []);
    }
}
