//! Adding up what the workers saw.

use rxpath_core::Warning;
use rxpath_core::number::grouped;

use crate::LoadError;
use crate::busy_poll;
use crate::limit::{Limit, Who, any_busy, busy_text, uneven};
use crate::quantiles::{Quantiles, merged};
use crate::udp::result::{ServeResult, SocketResult};
use crate::udp::serve::meter::without_margin;
use crate::udp::serve::options::{ServeEngine, Steer};
use crate::udp::serve::worker::Report;
use crate::udp::serve::{Serve, xdp};
use crate::udp::tracker;
use crate::workload::Finished;

pub(super) fn finish(serve: &mut Serve) -> Result<Finished<ServeResult>, LoadError> {
    let reports = serve.pool.join()?;
    let (shared, cpu) = (&serve.pool.shared, serve.pool.shared.cpu_time());
    let sockets = sockets(serve, &reports)?;
    let ledger = serve.taken.as_ref().map(|taken| taken.ledger(&reports)).transpose()?;
    let duration_s = shared.span_s();
    let delivered = shared.sum(|tally| &tally.units);
    let mut sequence = tracker::summarize(reports.iter().map(|report| &report.meter.tracker));
    sequence.unnumbered_packets = reports.iter().map(|report| report.meter.unnumbered).sum();
    let delay = merged(reports.iter().map(|report| &report.meter.delay));
    let delay = without_margin(delay, &serve.options.sender_clocks);
    let wait = merged(reports.iter().map(|report| &report.meter.wait));
    let mut result = ServeResult {
        duration_s,
        delivered_packets: delivered,
        delivered_pps: if duration_s > 0.0 { delivered as f64 / duration_s } else { 0.0 },
        delivered_bytes: shared.sum(|tally| &tally.received_bytes),
        socket_drops_packets: sockets.iter().map(|socket| socket.drops_packets).sum(),
        in_flight_bytes: sockets.iter().map(|socket| socket.rmem_bytes).sum(),
        truncated_packets: reports.iter().map(|report| report.truncated).sum(),
        sequence,
        one_way_delay_us: Quantiles::of(&delay),
        early_packets: reports.iter().map(|report| report.meter.early).sum(),
        socket_wait_us: Quantiles::of(&wait),
        cpu_user_s: cpu.user_ns as f64 / 1e9,
        cpu_system_s: cpu.system_ns as f64 / 1e9,
        limit: Limit::default(),
        threads: reports.into_iter().map(|report| report.thread).collect(),
        sockets,
        dropped_in_xdp_packets: (serve.settings.engine == ServeEngine::XdpDrop)
            .then(|| ledger.map_or(0, |ledger| ledger.dropped_packets)),
        xdp: ledger,
    };
    result.limit = limit(&result);
    let mut warnings = serve.warnings.clone();
    warnings.extend(notice(serve, &result));
    let histograms = vec![("one_way_delay", delay), ("socket_wait", wait)];
    Ok(Finished { result, warnings, histograms }.with_samples())
}

fn sockets(serve: &Serve, reports: &[Report]) -> Result<Vec<SocketResult>, LoadError> {
    let mut sockets = Vec::new();
    for (index, socket) in serve.sockets.iter().enumerate() {
        let memory = socket.meminfo().map_err(|e| LoadError::io("SO_MEMINFO", e))?;
        let napi_id = busy_poll::napi_id(socket).unwrap_or(0);
        let mut result = SocketResult {
            index: index as u32,
            drops_packets: memory.drops.into(),
            rcvbuf_bytes: memory.rcvbuf.into(),
            rmem_bytes: memory.rmem.into(),
            napi_id,
            ..SocketResult::default()
        };
        for (worker, report) in reports.iter().enumerate() {
            if serve.socket_of(worker) == index {
                result.delivered_packets += report.thread.packets;
                result.reads_count += report.reads;
                result.truesize_bytes = result.truesize_bytes.max(report.truesize);
            }
        }
        result.capacity_packets = result.truesize_bytes.map(|size| result.rcvbuf_bytes / size);
        sockets.push(result);
    }
    Ok(sockets)
}

fn limit(result: &ServeResult) -> Limit {
    let busy = busy_text(&result.threads, result.duration_s);
    let drops = result.socket_drops_packets;
    if let Some(dropped) = result.dropped_in_xdp_packets {
        let dropped = grouped(dropped);
        let evidence = format!("the XDP program dropped {dropped} datagrams, which is its task");
        return Limit::new(Who::NotHere, evidence);
    }
    if result.delivered_packets == 0 {
        return Limit::new(Who::NotHere, "nothing came");
    }
    if any_busy(&result.threads, result.duration_s) {
        let evidence = format!("{busy}, {} datagrams dropped at the socket", grouped(drops));
        return Limit::new(Who::Receiver, evidence);
    }
    let drops =
        drops + result.xdp.map_or(0, |xdp| xdp.socket_dropped_packets + xdp.ring_full_packets);
    if drops > 0 {
        let evidence = format!(
            "{} datagrams dropped at the socket with {busy}: bursts or stalls longer than the \
             receive buffer holds, or another task on its CPU",
            grouped(drops)
        );
        return Limit::new(Who::Receiver, evidence);
    }
    Limit::new(Who::NotHere, format!("{busy}, no drops at the socket"))
}

fn notice(serve: &Serve, result: &ServeResult) -> Vec<Warning> {
    let mut warnings = Vec::new();
    warnings.extend(imbalance(serve, result));
    warnings.extend(result.xdp.and_then(xdp::left_to_the_stack));
    if result.truncated_packets > 0 {
        let cut = grouped(result.truncated_packets);
        let text = format!("{cut} datagrams were longer than the buffer");
        warnings.push(
            Warning::new("truncated", text)
            .because(
                "their full length is counted, but only the start was copied: copying cost too little",
            )
            .cure("set --size to the size of the largest datagram"),
        );
    }
    let blind = result.sockets.iter().all(|socket| socket.napi_id == 0);
    if serve.options.busy_poll.is_some() && result.delivered_packets > 0 && blind {
        warnings.push(busy_poll::blind("datagrams"));
    }
    if result.in_flight_bytes > 0 {
        let queued = grouped(result.in_flight_bytes);
        let text = format!("{queued} bytes were still queued at the end");
        warnings.push(
            Warning::new("not-drained", text)
                .because("datagrams kept arriving while the queue was drained")
                .cure("stop the sender first"),
        );
    }
    warnings
}

fn imbalance(serve: &Serve, result: &ServeResult) -> Option<Warning> {
    let counts: Vec<u64> = result.sockets.iter().map(|socket| socket.delivered_packets).collect();
    let (most, least, mean) = uneven(&counts, result.delivered_packets)?;
    let streams = result.sequence.streams_count;
    let [most, least, mean] = [most, least, mean.round() as u64].map(grouped);
    let text =
        format!("one SO_REUSEPORT socket got {most} datagrams, another {least} (mean {mean})");
    let warning = Warning::new("reuseport-imbalance", text);
    Some(if serve.options.steer == Steer::Cpu {
        warning
            .because("--steer cpu follows the softirq, and the softirq ran mostly on one CPU")
            .cure("spread the softirq (RSS or RPS), or use --steer hash")
    } else {
        warning
            .because(format!(
                "hash collision: {streams} flows over {} sockets, and each flow stays on one socket",
                counts.len()
            ))
            .cure("use more flows than sockets (--flows), or --steer cpu with RSS or RPS")
    })
}
