//! `rxpath load tcp stream`: the options, and the result for people.

use rxpath_core::Bytes;
use rxpath_core::number::{grouped, si};
use rxpath_load::tcp::load::options::StreamOptions;
use rxpath_load::tcp::load::stream::StreamClient;
use rxpath_load::tcp::result::{Direction, Interval, StreamResult};
use rxpath_load::workload::WorkloadHandle;

use crate::cmd::conduct::{ConductArgs, EndArgs, Shown, block, conduct};
use crate::cmd::load::tcp::{checked, common_rows, exit};
use crate::cmd::values::{cpu_time, value_name};
use crate::exit::{Exit, Outcome};
use crate::output::rates::Rows;
use crate::output::tcp::{connection_rows, kinds, tcp_rows, tcp_text};

/// `rxpath load tcp stream …`
#[derive(Debug, clap::Args)]
pub struct LoadStream {
    #[command(flatten)]
    options: StreamOptions,
    #[command(flatten)]
    conduct: ConductArgs,
}

impl LoadStream {
    /// Runs it.
    pub fn run(mut self) -> Outcome {
        let args = &self.conduct;
        self.options.common.duration_ns = args.duration.map(|duration| duration.0);
        // A blocked send does not see its time: the conductor does.
        conduct(StreamClient::open(self.options), args, args.ends(EndArgs::default()))
    }
}

fn direction(d: &Direction) -> String {
    let delivered = match (d.delivered_bytes, d.delivered_bps) {
        (Some(bytes), Some(bps)) => format!("{} delivered, {}b/s", grouped(bytes), si(bps)),
        _ => "delivered: not known".into(),
    };
    format!("{} bytes sent, {delivered}", grouped(d.sent_bytes))
}

impl Shown for StreamClient {
    fn settings_text(&self) -> String {
        let s = WorkloadHandle::settings(self);
        let mut rows = common_rows(&s.common);
        rows.push(("direction", value_name(&s.direction)));
        let (send, each) = (value_name(&s.send), Bytes(s.buffer_bytes as u64));
        rows.push(("send", format!("{send}, {each} a call, {}", s.call)));
        let rate = s.target_bps.map(|bps| format!("{}b/s", si(bps as f64)));
        rows.push(("rate", rate.unwrap_or_else(|| "as fast as it goes".into())));
        block(&format!("load tcp stream {}", s.common.to), &rows)
    }

    fn result_text(&self, r: &StreamResult) -> String {
        let mut rows = vec![("duration", format!("{:.3} s", r.duration_s))];
        rows.extend(r.to_server.iter().map(|d| ("to server", direction(d))));
        rows.extend(r.to_client.iter().map(|d| ("to client", direction(d))));
        if !r.connection_errors_total.is_empty() {
            rows.push(("lost", kinds(&r.connection_errors_total)));
        }
        if let Some(z) = r.zerocopy {
            let text = format!(
                "{} calls completed, {:.0} % copied by the kernel after all, {} ENOBUFS",
                grouped(z.completed_calls_count),
                100.0 * z.copied_ratio,
                z.enobufs_count
            );
            rows.push(("zero-copy", text));
        }
        let mapped = |ratio: f64| ("mapped", format!("{:.1} % of the bytes", 100.0 * ratio));
        rows.extend(r.mapped_ratio.map(mapped));
        rows.extend(r.verified.then(|| checked(&r.mismatches, r.server.as_ref())));
        rows.push(("CPU time", cpu_time(r.cpu_user_s, r.cpu_system_s)));
        rows.extend(r.tcp.iter().map(|tcp| ("TCP_INFO here", tcp_text(tcp))));
        let there = r.server.as_ref().and_then(|server| server.tcp.as_ref());
        rows.extend(there.map(|tcp| ("TCP_INFO there", tcp_text(tcp))));
        rows.push(("limit", r.limit.to_string()));
        block("result", &rows) + &connection_rows(&r.connections)
    }

    fn set_rate(result: &mut StreamResult, per_s: f64) {
        let own = result.to_server.map_or(0, |d| d.sent_bytes)
            + result.to_client.and_then(|d| d.delivered_bytes).unwrap_or(0);
        if own == 0 || result.duration_s <= 0.0 {
            return;
        }
        let factor = per_s / (own as f64 / result.duration_s);
        let scale = |bps: &mut Option<f64>| *bps = bps.map(|bps| bps * factor);
        result.sent_bps *= factor;
        scale(&mut result.delivered_bps);
        for direction in [&mut result.to_server, &mut result.to_client].into_iter().flatten() {
            scale(&mut direction.delivered_bps);
        }
    }

    fn rows(&self, split: bool) -> Rows<Interval> {
        tcp_rows(split)
    }

    fn exit(&self, result: &StreamResult) -> Exit {
        exit(&result.mismatches, result.server.as_ref(), result.peer_lost)
    }
}
