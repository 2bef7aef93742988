//! Adding up what a streaming client's threads did, and asking the server for its side.

use std::collections::BTreeMap;

use rxpath_core::Warning;
use rxpath_core::number::grouped;

use crate::LoadError;
use crate::limit::{Limit, Who};
use crate::schedule::KEPT_RATIO;
use crate::tcp::connection::{LISTED, TcpSummary};
use crate::tcp::flow::ZerocopyCount;
use crate::tcp::load::limit::{Side, of_stream};
use crate::tcp::load::options::StreamDirection;
use crate::tcp::load::stream::StreamClient;
use crate::tcp::load::stream::worker::Report;
use crate::tcp::preamble::SendMethod;
use crate::tcp::result::{Direction, ServerReport, StreamResult, ZerocopyResult};
use crate::tcp::serve::mismatch;
use crate::tcp::serve::options::ReceiveMethod;
use crate::workload::{Finished, listed};

pub(super) fn finish(stream: &mut StreamClient) -> Result<Finished<StreamResult>, LoadError> {
    let reports = stream.pool.join()?;
    let cpu = stream.pool.shared.cpu_time();
    let mut result = StreamResult {
        duration_s: stream.pool.shared.span_s(),
        verified: stream.options.common.verify,
        target_bps: stream.options.bitrate_bps.map(|bps| bps as f64),
        cpu_user_s: cpu.user_ns as f64 / 1e9,
        cpu_system_s: cpu.system_ns as f64 / 1e9,
        server: stream.session.report(),
        ..StreamResult::default()
    };
    add_lines(stream, &reports, &mut result);
    add_directions(stream, &mut result);
    let target_bytes: Option<u64> = reports.iter().map(|report| report.target_bytes).sum();
    let undrained: usize = reports.iter().map(|report| report.undrained).sum();
    stream.open = reports;
    result.limit = limit(stream, &result, target_bytes);
    let mut warnings = stream.warnings.clone();
    warnings.extend(notice(stream, &result, undrained));
    Ok(Finished { result, warnings, histograms: Vec::new() })
}

/// What the connections say.
fn add_lines(stream: &StreamClient, reports: &[Report], result: &mut StreamResult) {
    let (mut zerocopy, mut mapped) = (ZerocopyCount::default(), 0);
    for (index, report) in reports.iter().enumerate() {
        result.threads.push(report.thread.clone());
        for conn in &report.conns {
            if let Some(error) = &conn.error {
                *result.connection_errors_total.entry(error.clone()).or_default() += 1;
            }
            if let Some(feed) = &conn.feed {
                zerocopy.add(feed.zerocopy);
            }
            if let Some(sink) = &conn.sink {
                mapped += sink.mapped_bytes;
                result.mismatches.extend(sink.wrong(&conn.name));
            }
            if result.connections.len() < LISTED {
                result.connections.push(conn.result(index));
            }
        }
    }
    let conns = || reports.iter().flat_map(|report| &report.conns);
    result.tcp = TcpSummary::of(conns().filter_map(|conn| TcpSummary::read(conn.socket.fd())));
    let lost: u64 = result.connection_errors_total.values().sum();
    result.peer_lost = lost > 0 && lost == conns().count() as u64;
    result.zerocopy = (stream.options.send == SendMethod::Zerocopy
        && stream.options.direction.sends())
    .then(|| ZerocopyResult {
        completed_calls_count: zerocopy.completed,
        copied_calls_count: zerocopy.copied,
        copied_ratio: zerocopy.copied as f64 / zerocopy.completed.max(1) as f64,
        enobufs_count: zerocopy.enobufs,
    });
    let delivered = stream.pool.shared.sum(|tally| &tally.received_bytes);
    let maps =
        stream.options.direction.receives() && stream.options.receive == ReceiveMethod::Zerocopy;
    result.mapped_bytes = maps.then_some(mapped);
    result.mapped_ratio = (maps && delivered > 0).then(|| mapped as f64 / delivered as f64);
}

fn add_directions(stream: &StreamClient, result: &mut StreamResult) {
    let own_s = result.duration_s;
    let bps = |bytes: u64, s: f64| if s > 0.0 { bytes as f64 * 8.0 / s } else { 0.0 };
    let shared = &stream.pool.shared;
    let sent = shared.sum(|tally| &tally.sent_bytes);
    let delivered = shared.sum(|tally| &tally.received_bytes);
    let server = result.server.as_ref();
    result.to_server = stream.options.direction.sends().then(|| Direction {
        sent_bytes: sent,
        delivered_bytes: server.map(|server| server.delivered_bytes),
        delivered_bps: server.map(|server| bps(server.delivered_bytes, server.duration_s)),
    });
    result.to_client = stream.options.direction.receives().then(|| Direction {
        sent_bytes: server.map_or(0, |server| server.sent_bytes),
        delivered_bytes: Some(delivered),
        delivered_bps: Some(bps(delivered, own_s)),
    });
    let both = [result.to_server, result.to_client];
    let directions = || both.iter().flatten();
    result.sent_bytes = directions().map(|direction| direction.sent_bytes).sum();
    result.sent_bps = bps(result.sent_bytes, own_s);
    result.delivered_bytes = directions().map(|direction| direction.delivered_bytes).sum();
    result.delivered_bps = directions().map(|direction| direction.delivered_bps).sum();
}

fn limit(stream: &StreamClient, result: &StreamResult, target_bytes: Option<u64>) -> Limit {
    let server = result.server.as_ref();
    let side = Side { threads: &result.threads, duration_s: result.duration_s, server };
    if result.sent_bytes + result.delivered_bytes.unwrap_or(0) == 0 {
        return Limit::new(Who::NotHere, "nothing was sent");
    }
    if let Some(target) = target_bytes.filter(|target| *target > 0) {
        let kept = result.sent_bytes as f64 / target as f64;
        if kept >= KEPT_RATIO {
            let evidence =
                format!("{:.1} % of the scheduled bytes were sent", 100.0 * kept.min(1.0));
            return Limit::new(Who::Schedule, evidence);
        }
    }
    let there = server.and_then(|server| server.tcp.as_ref());
    match stream.options.direction {
        StreamDirection::Send => of_stream(&side, result.tcp.as_ref(), true),
        StreamDirection::Receive => of_stream(&side, there, false),
        StreamDirection::Both => {
            let (to, back) =
                (of_stream(&side, result.tcp.as_ref(), true), of_stream(&side, there, false));
            let evidence = format!("to the server: {}; to the client: {back}", to.evidence);
            Limit::new(to.who, evidence)
        }
    }
}

fn notice(stream: &StreamClient, result: &StreamResult, undrained: usize) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let there = result.server.iter().flat_map(|server: &ServerReport| &server.mismatches);
    warnings.extend(result.mismatches.iter().chain(there).next().map(mismatch));
    warnings.extend(lost(&result.connection_errors_total, result.peer_lost));
    if undrained > 0 {
        let undrained = grouped(undrained as u64);
        let text = format!("{undrained} connections still had bytes in flight after 10 s");
        warnings.push(
            Warning::new("not-drained", text)
                .because("the server reads slowly or not at all")
                .cure("not all sent bytes were delivered: use delivered_bytes"),
        );
    }
    warnings.extend(no_report(result.server.as_ref()));
    if let Some(zerocopy) = result.zerocopy
        && zerocopy.copied_ratio > 0.5
    {
        let text = format!(
            "the kernel copied {:.0} % of the zero-copy sends anyway",
            100.0 * zerocopy.copied_ratio
        );
        warnings.push(
            Warning::new("zerocopy-copied", text)
            .because(
                "the receiver is local (loopback, veth), or the device cannot gather and checksum",
            )
            .cure("--send copy costs less here: it pins no pages and reads no completions"),
        );
    }
    if let Some((most, least)) = uneven(result, stream.options.common.connections()) {
        let [most, least] = [most, least].map(grouped);
        let text = format!("one connection moved {most} bytes, another {least}");
        warnings.push(Warning::new("uneven", text));
    }
    warnings
}

/// The server's side stayed unknown.
pub(in crate::tcp::load) fn no_report(server: Option<&ServerReport>) -> Option<Warning> {
    server.is_none().then(|| {
        Warning::new("no-report", "the server's results are missing")
            .because("its control connection is closed or silent")
    })
}

/// What connections were lost by.
pub(in crate::tcp::load) fn lost(
    errors: &BTreeMap<String, u64>,
    peer_lost: bool,
) -> Option<Warning> {
    if errors.is_empty() {
        return None;
    }
    let kinds = listed(errors);
    let text = if peer_lost {
        format!("the server was lost before the end: {kinds}")
    } else {
        format!("connections were lost before the end: {kinds}")
    };
    Some(Warning::new(if peer_lost { "peer-lost" } else { "connections-lost" }, text).because(
        "EOF: the server exited; ECONNRESET, EPIPE: it was killed or refuses; ETIMEDOUT: it is unreachable",
    ))
}

/// Most and least bytes of a connection, when they differ more than threefold.
fn uneven(result: &StreamResult, connections: usize) -> Option<(u64, u64)> {
    let bytes = || result.connections.iter().map(|c| c.sent_bytes.max(c.delivered_bytes));
    let (most, least) = (bytes().max()?, bytes().min()?);
    (connections > 1 && most > 1 << 20 && most > 3 * least).then_some((most, least))
}
