//! Adding up what a server's threads did.

use std::sync::atomic::Ordering::Relaxed;

use rxpath_core::Warning;
use rxpath_core::number::grouped;

use crate::LoadError;
use crate::busy_poll;
use crate::limit::{Limit, Who, any_busy, busy_text};
use crate::tcp::result::{Mismatch, ServeResult};
use crate::tcp::serve::Serve;
use crate::tcp::serve::options::ReceiveMethod;
use crate::workload::{Finished, listed};

pub(super) fn finish(serve: &mut Serve) -> Result<Finished<ServeResult>, LoadError> {
    serve.open = serve.pool.join()?;
    let threads = serve.open.iter().map(|report| report.thread.clone()).collect();
    let (shared, cpu) = (&serve.pool.shared, serve.pool.shared.cpu_time());
    let duration_s = shared.span_s();
    let per_s = |count: u64| if duration_s > 0.0 { count as f64 / duration_s } else { 0.0 };
    let delivered_bytes = shared.sum(|tally| &tally.received_bytes);
    let sent_bytes = shared.sum(|tally| &tally.sent_bytes);
    let transactions_total = shared.sum(|tally| &tally.units);
    let past = serve.server.past().clone();
    let maps = serve.options.receive == ReceiveMethod::Zerocopy;
    let mapped_bytes = maps.then(|| past.mapped_bytes.unwrap_or(0));
    let mut result = ServeResult {
        duration_s,
        delivered_bytes,
        delivered_bps: per_s(delivered_bytes) * 8.0,
        sent_bytes,
        sent_bps: per_s(sent_bytes) * 8.0,
        transactions_total,
        achieved_tps: per_s(transactions_total),
        mapped_bytes,
        mapped_ratio: mapped_bytes
            .filter(|_| delivered_bytes > 0)
            .map(|mapped| mapped as f64 / delivered_bytes as f64),
        cpu_user_s: cpu.user_ns as f64 / 1e9,
        cpu_system_s: cpu.system_ns as f64 / 1e9,
        threads,
        ..past
    };
    let [blind, polled] = serve.server.napi.each_ref().map(|count| count.load(Relaxed));
    result.limit = limit(&result);
    let mut warnings = serve.warnings.clone();
    warnings.extend(notice(serve, &result));
    if serve.options.socket.busy_poll.is_some() && blind > 0 && polled == 0 {
        warnings.push(busy_poll::blind("connections"));
    }
    Ok(Finished { result, warnings, histograms: Vec::new() })
}

fn limit(result: &ServeResult) -> Limit {
    if result.delivered_bytes + result.sent_bytes == 0 {
        return Limit::new(Who::NotHere, "nothing came");
    }
    let evidence = busy_text(&result.threads, result.duration_s);
    let who = match any_busy(&result.threads, result.duration_s) {
        false => Who::NotHere,
        // It answers as much as it receives.
        true if result.transactions_total > 0 => Who::Server,
        true => Who::Receiver,
    };
    Limit::new(who, evidence)
}

fn notice(serve: &Serve, result: &ServeResult) -> Vec<Warning> {
    let mut warnings = Vec::new();
    warnings.extend(result.mismatches.first().map(mismatch));
    if let Some(count) = result.accept_errors_total.get("EMFILE") {
        let limit = serve.settings.descriptors_count;
        let text = format!("accepting failed {} times with EMFILE", grouped(*count));
        warnings.push(
            Warning::new("descriptors", text)
                .because(format!("the process may open {limit} file descriptors (RLIMIT_NOFILE)"))
                .cure("raise the hard limit (`ulimit -Hn`), or use fewer connections"),
        );
    }
    let strangers: u64 = result.refused_total.values().sum();
    if strangers > 0 {
        let text = format!("connections were refused: {}", listed(&result.refused_total));
        warnings.push(
            Warning::new("refused", text)
                .because("they did not begin with this version's preamble")
                .cure("use `rxpath load tcp` of the same version; `ss -tn` shows who connects"),
        );
    }
    if serve.options.receive == ReceiveMethod::Zerocopy
        && result.mapped_ratio.is_some_and(|ratio| ratio < 0.01)
    {
        warnings.push(
            Warning::new("nothing-mapped", "zero-copy receive mapped almost no data")
                .because(
                    "only payload that fills whole pages can be mapped: the device must split headers \
                     from data and the MTU must hold whole pages, or the sender must hand over pages",
                )
                .cure("use --receive read: it is faster where nothing can be mapped"),
        );
    }
    warnings
}

/// Wrong data, told the same way by both sides.
pub(crate) fn mismatch(wrong: &Mismatch) -> Warning {
    let Mismatch { connection, offset_bytes } = wrong;
    let text = format!(
        "connection {connection}: the received data differ from the sent data at offset {offset_bytes}"
    );
    Warning::new("payload-mismatch", text)
        .because("something between the two programs changed, lost or repeated bytes")
}
