//! `rxpath serve tcp`: the options, and the result for people.

use std::net::SocketAddr;

use rxpath_core::Bytes;
use rxpath_core::number::{grouped, si};
use rxpath_load::tcp::result::{Interval, ServeResult};
use rxpath_load::tcp::serve::Serve;
use rxpath_load::tcp::serve::options::{ReceiveMethod, ServeOptions};
use rxpath_load::tcp::socket::SocketOptions;
use rxpath_load::udp::serve::options::Sockets;
use rxpath_load::workload::WorkloadHandle;

use crate::cmd::address::address;
use crate::cmd::conduct::{ConductArgs, EndArgs, Shown, block, conduct};
use crate::cmd::values::{cpu_time, value_name};
use crate::cmd::workload_args::{BufferArgs, BusyPollArgs, SlowArgs, ThreadArgs, placed, stalls};
use crate::exit::{Exit, Failure, Outcome};
use crate::output::rates::Rows;
use crate::output::tcp::{connection_rows, kinds, socket_text, tcp_rows, tcp_text};

/// `rxpath serve tcp …`
#[derive(Debug, clap::Args)]
pub struct ServeTcp {
    /// Address to listen on: IP:PORT, [v6]:PORT, [v6%IF]:PORT or HOST:PORT; port 0 lets the kernel choose
    #[arg(value_parser = address)]
    addr: SocketAddr,
    #[command(flatten)]
    threads: ThreadArgs,
    /// How threads share the listener
    #[arg(long, value_enum, default_value = "shared")]
    sockets: Sockets,
    /// How the server takes bytes from the kernel
    #[arg(long, value_enum, default_value = "read")]
    receive: ReceiveMethod,
    /// Buffer of a receive call
    #[arg(long, value_name = "BYTES", default_value = "128KiB")]
    buffer: Bytes,
    /// Wake a stream's reader only when this much waits, or at the end (SO_RCVLOWAT): fewer wake-ups, a longer queue
    #[arg(long, value_name = "BYTES")]
    low_water: Option<Bytes>,
    #[command(flatten)]
    buffers: BufferArgs,
    /// Congestion control of what this side sends (TCP_CONGESTION)
    #[arg(long, value_name = "NAME")]
    congestion: Option<String>,
    #[command(flatten)]
    poll: BusyPollArgs,
    #[command(flatten)]
    slow: SlowArgs,
    #[command(flatten)]
    end: EndArgs,
    #[command(flatten)]
    conduct: ConductArgs,
}

impl ServeTcp {
    /// Runs it.
    pub fn run(self) -> Outcome {
        conduct(Serve::open(self.options()?), &self.conduct, self.conduct.ends(self.end))
    }

    fn options(&self) -> Result<ServeOptions, Failure> {
        Ok(ServeOptions {
            addr: self.addr,
            threads: self.threads.threads()?,
            sockets: self.sockets,
            buffer_bytes: self.buffer.0 as usize,
            receive: self.receive,
            low_water_bytes: self.low_water.map(|bytes| bytes.0),
            socket: SocketOptions {
                rcvbuf: self.buffers.rcvbuf.map(|bytes| bytes.0),
                sndbuf: self.buffers.sndbuf.map(|bytes| bytes.0),
                congestion: self.congestion.clone(),
                busy_poll: self.poll.into(),
                ..SocketOptions::default()
            },
            work_ns: self.slow.work_ns(),
            stall: self.slow.stall(),
        })
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
            if !map.is_empty() {
                rows.push((key, kinds(map)));
            }
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
