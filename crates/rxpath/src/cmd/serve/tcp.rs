//! `rxpath serve tcp`: the options, and the result for people.

use rxpath_core::Bytes;
use rxpath_core::number::{grouped, si};
use rxpath_load::tcp::result::{Interval, ServeResult};
use rxpath_load::tcp::serve::Serve;
use rxpath_load::tcp::serve::options::ServeOptions;
use rxpath_load::workload::WorkloadHandle;

use crate::cmd::conduct::{ConductArgs, EndArgs, Shown, block, conduct};
use crate::cmd::values::{cpu_time, value_name};
use crate::cmd::workload_text::{placed, stalls};
use crate::exit::{Exit, Outcome};
use crate::output::rates::Rows;
use crate::output::tcp::{connection_rows, kinds, socket_text, tcp_rows, tcp_text};

/// `rxpath serve tcp …`
#[derive(Debug, clap::Args)]
pub struct ServeTcp {
    #[command(flatten)]
    options: ServeOptions,
    #[command(flatten)]
    end: EndArgs,
    #[command(flatten)]
    conduct: ConductArgs,
}

impl ServeTcp {
    /// Runs it.
    pub fn run(self) -> Outcome {
        conduct(Serve::open(self.options), &self.conduct, self.conduct.ends(self.end))
    }
}

impl Shown for Serve {
    fn settings_text(&self) -> String {
        let s = WorkloadHandle::settings(self);
        let buffer = Bytes(s.buffer_bytes as u64);
        let mut rows = vec![
            ("threads", placed(&s.threads)),
            ("listeners", value_name(&s.sockets)),
            ("receive", format!("{}, {buffer} a call", value_name(&s.receive))),
            ("call", s.call.clone()),
            ("sockets", socket_text(&s.socket)),
            ("preamble", format!("version {}", s.preamble_version)),
        ];
        if let Some(bytes) = s.low_water_bytes {
            rows.push(("low water", format!("streams are read when {} wait", Bytes(bytes))));
        }
        if s.work_ns > 0 {
            rows.push(("work", format!("{} ns a read or transaction", s.work_ns)));
        }
        rows.extend(s.stall.map(|stall| ("stall", stalls(stall))));
        block(&format!("serve tcp {}", s.addr), &rows)
    }

    fn result_text(&self, r: &ServeResult) -> String {
        let (delivered, rate) = (grouped(r.delivered_bytes), si(r.delivered_bps));
        let mut rows = vec![
            ("delivered", format!("{delivered} bytes in {:.3} s, {rate}b/s", r.duration_s)),
            ("sent", format!("{} bytes, {}b/s", grouped(r.sent_bytes), si(r.sent_bps))),
        ];
        if r.transactions_total > 0 {
            let rate = grouped(r.achieved_tps.round() as u64);
            rows.push(("transactions", format!("{}, {rate}/s", grouped(r.transactions_total))));
        }
        rows.push(("connections", grouped(r.connections_total)));
        for (key, map) in [
            ("refused", &r.refused_total),
            ("broken", &r.connection_errors_total),
            ("not accepted", &r.accept_errors_total),
        ] {
            rows.extend((!map.is_empty()).then(|| (key, kinds(map))));
        }
        let mapped = |ratio: f64| ("mapped", format!("{:.1} % of the bytes", 100.0 * ratio));
        rows.extend(r.mapped_ratio.map(mapped));
        rows.push(("CPU time", cpu_time(r.cpu_user_s, r.cpu_system_s)));
        rows.extend(r.tcp.iter().map(|tcp| ("TCP_INFO", tcp_text(tcp))));
        rows.push(("limit", r.limit.to_string()));
        block("result", &rows) + &connection_rows(&r.connections)
    }

    fn set_rate(result: &mut ServeResult, per_s: f64) {
        let moved = (result.delivered_bytes + result.sent_bytes) as f64;
        if moved > 0.0 && result.duration_s > 0.0 {
            let factor = per_s / (moved / result.duration_s);
            result.delivered_bps *= factor;
            result.sent_bps *= factor;
            result.achieved_tps *= factor;
        }
    }

    fn rows(&self, split: bool) -> Rows<Interval> {
        tcp_rows(split)
    }

    fn exit(&self, result: &ServeResult) -> Exit {
        if result.mismatches.is_empty() { Exit::Done } else { Exit::Negative }
    }
}
