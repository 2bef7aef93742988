//! `rxpath load tcp stream`: the options, and the result for people.

use rxpath_core::number::{grouped, si};
use rxpath_core::{BitRate, Bytes};
use rxpath_load::tcp::load::options::{StreamDirection, StreamOptions};
use rxpath_load::tcp::load::stream::StreamClient;
use rxpath_load::tcp::preamble::SendMethod;
use rxpath_load::tcp::result::{Direction, Interval, StreamResult};
use rxpath_load::tcp::serve::options::ReceiveMethod;
use rxpath_load::workload::WorkloadHandle;

use crate::cmd::conduct::{EndArgs, Shown, block, conduct};
use crate::cmd::load::tcp::{CommonArgs, checked, common_rows, exit};
use crate::cmd::values::{cpu_time, value_name};
use crate::exit::{Exit, Failure, Outcome};
use crate::output::rates::Rows;
use crate::output::tcp::{connection_rows, kinds, tcp_rows, tcp_text};

/// `rxpath load tcp stream …`
#[derive(Debug, clap::Args)]
pub struct LoadStream {
    #[command(flatten)]
    common: CommonArgs,
    /// Which direction the bytes go
    #[arg(long, value_enum, default_value = "send")]
    direction: StreamDirection,
    /// How the sending side hands bytes to its kernel
    #[arg(long, value_enum, default_value = "copy")]
    send: SendMethod,
    /// How this side takes bytes from the kernel (the server has its own --receive)
    #[arg(long, value_enum, default_value = "read")]
    receive: ReceiveMethod,
    /// Payload bits per second over all connections (10Gbit, 500M), by an absolute schedule of whole buffers
    #[arg(long, value_name = "RATE")]
    bitrate: Option<BitRate>,
    /// Pace each connection in the kernel, on both sides (SO_MAX_PACING_RATE, bits per second: 2.5Gbit)
    #[arg(long, value_name = "RATE")]
    pacing_rate: Option<BitRate>,
    /// Send small segments at once (TCP_NODELAY), on both sides
    #[arg(long)]
    nodelay: bool,
    /// Bytes in the send buffer that were not sent yet, at most (TCP_NOTSENT_LOWAT)
    #[arg(long, value_name = "BYTES")]
    notsent_lowat: Option<Bytes>,
}

impl LoadStream {
    /// Runs it.
    pub fn run(self) -> Outcome {
        let args = &self.common.conduct;
        // A blocked send does not see its time: the conductor does.
        conduct(StreamClient::open(self.options()?), args, args.ends(EndArgs::default()))
    }

    fn options(&self) -> Result<StreamOptions, Failure> {
        let mut common = self.common.common()?;
        common.socket.pacing_bps = self.pacing_rate.map(|rate| rate.0);
        common.socket.nodelay = self.nodelay;
        common.socket.notsent_lowat_bytes = self.notsent_lowat.map(|bytes| bytes.0 as u32);
        Ok(StreamOptions {
            common,
            direction: self.direction,
            send: self.send,
            receive: self.receive,
            bitrate_bps: self.bitrate.map(|rate| rate.0),
        })
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
