//! `rxpath serve tcp`: the options, and the result for people.

use std::net::SocketAddr;

use rxpath_core::units::si;
use rxpath_core::{Bytes, CpuList, Nanos};
use rxpath_load::tcp::result::{Interval, ServeResult};
use rxpath_load::tcp::serve::Serve;
use rxpath_load::tcp::serve::options::{ReceiveWay, ServeOptions};
use rxpath_load::tcp::socket::SocketOptions;
use rxpath_load::udp::serve::options::{BusyPoll, Sockets, Stall};
use rxpath_load::workload::Workload;

use crate::cmd::address::address;
use crate::cmd::conduct::{ConductArgs, EndArgs, Rows, Shown, block, conduct, refuse};
use crate::cmd::values::{microseconds, nanoseconds, placed, threads};
use crate::exit::{Exit, Failure, Outcome};
use crate::output::tcp::{TcpRates, connection_rows, kinds, socket_text, tcp_text};
use rxpath_core::units::grouped;

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum SocketsArg {
    /// One listener; connections go to the threads in equal numbers
    Shared,
    /// A listener per thread in one SO_REUSEPORT group; the kernel's hash chooses the listener
    Reuseport,
}

/// How the server takes bytes from the kernel.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub enum ReceiveArg {
    /// recv: copied into user memory
    Read,
    /// recv with MSG_TRUNC: discarded in the kernel
    Trunc,
    /// TCP_ZEROCOPY_RECEIVE: whole pages are mapped, the rest is read
    Zerocopy,
}

impl From<ReceiveArg> for ReceiveWay {
    fn from(way: ReceiveArg) -> Self {
        match way {
            ReceiveArg::Read => Self::Read,
            ReceiveArg::Trunc => Self::Trunc,
            ReceiveArg::Zerocopy => Self::Zerocopy,
        }
    }
}

/// `rxpath serve tcp …`
#[derive(Debug, clap::Args)]
pub struct ServeTcp {
    /// Address to listen on: IP:PORT, [v6]:PORT, [v6%IF]:PORT or HOST:PORT; port 0 lets the kernel choose
    #[arg(value_parser = address)]
    addr: SocketAddr,
    /// Threads (default 1)
    #[arg(short, long, value_name = "N")]
    threads: Option<usize>,
    /// CPU of each thread, one thread per entry: 1 or 0,2-3
    #[arg(long, value_name = "LIST")]
    cpu: Option<CpuList>,
    /// Nice value of the threads
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = clap::value_parser!(i32).range(-20..=19))]
    nice: Option<i32>,
    /// How threads share the listener
    #[arg(long, value_enum, default_value = "shared")]
    sockets: SocketsArg,
    /// How the server takes bytes from the kernel
    #[arg(long, value_enum, default_value = "read")]
    receive: ReceiveArg,
    /// Buffer of a receive call
    #[arg(long, value_name = "BYTES", default_value = "128KiB")]
    buffer: Bytes,
    /// Wake a stream's reader only when this much waits, or at the end (SO_RCVLOWAT): fewer wake-ups, a longer queue
    #[arg(long, value_name = "BYTES")]
    low_water: Option<Bytes>,
    /// Receive buffer as the kernel accounts it (default: the kernel tunes it); forced with CAP_NET_ADMIN
    #[arg(long, value_name = "BYTES")]
    rcvbuf: Option<Bytes>,
    /// Send buffer as the kernel accounts it (default: the kernel tunes it); forced with CAP_NET_ADMIN
    #[arg(long, value_name = "BYTES")]
    sndbuf: Option<Bytes>,
    /// Congestion control of what this side sends (TCP_CONGESTION)
    #[arg(long, value_name = "NAME")]
    congestion: Option<String>,
    /// Busy-poll the device for this many microseconds (or with a unit: 50us) before sleeping (SO_BUSY_POLL)
    #[arg(long, value_name = "US", value_parser = microseconds)]
    busy_poll: Option<u32>,
    /// Keep interrupts off during busy polling (SO_PREFER_BUSY_POLL)
    #[arg(long, requires = "busy_poll")]
    prefer_busy_poll: bool,
    /// Packets per busy poll (SO_BUSY_POLL_BUDGET)
    #[arg(long, value_name = "N", requires = "busy_poll")]
    busy_poll_budget: Option<u32>,
    /// Simulated CPU work per read or transaction in nanoseconds (or with a unit: 2us)
    #[arg(long, value_name = "NS", value_parser = nanoseconds)]
    work: Option<u64>,
    /// Stall: sleep this long …
    #[arg(long, value_name = "TIME", requires = "every")]
    sleep: Option<Nanos>,
    /// … once in this time
    #[arg(long, value_name = "TIME", requires = "sleep")]
    every: Option<Nanos>,
    #[command(flatten)]
    end: EndArgs,
    #[command(flatten)]
    conduct: ConductArgs,
}

impl ServeTcp {
    /// Runs it.
    pub fn run(self) -> Outcome {
        let ends = self.conduct.ends(self.end);
        let args = self.conduct.clone();
        let serve = Serve::open(self.options()?).map_err(refuse)?;
        conduct(serve, &args, ends)
    }

    fn options(self) -> Result<ServeOptions, Failure> {
        let (threads, cpus) = threads(self.threads, self.cpu)?;
        Ok(ServeOptions {
            addr: self.addr,
            threads,
            cpus,
            nice: self.nice,
            sockets: match self.sockets {
                SocketsArg::Shared => Sockets::Shared,
                SocketsArg::Reuseport => Sockets::Reuseport,
            },
            buffer_bytes: self.buffer.0 as usize,
            receive: self.receive.into(),
            low_water_bytes: self.low_water.map(|bytes| bytes.0),
            socket: SocketOptions {
                rcvbuf: self.rcvbuf.map(|bytes| bytes.0),
                sndbuf: self.sndbuf.map(|bytes| bytes.0),
                congestion: self.congestion,
                busy_poll: self.busy_poll.map(|poll_us| BusyPoll {
                    poll_us,
                    prefer: self.prefer_busy_poll,
                    budget_packets: self.busy_poll_budget,
                }),
                ..SocketOptions::default()
            },
            work_ns: self.work.unwrap_or(0),
            stall: self
                .sleep
                .zip(self.every)
                .map(|(sleep, every)| Stall { sleep_ns: sleep.0, every_ns: every.0 }),
        })
    }
}

impl Shown for Serve {
    fn settings_text(&self) -> String {
        let s = Workload::settings(self);
        let mut rows = vec![
            ("threads", placed(s.threads_count, &s.cpus)),
            ("listeners", format!("{:?}", s.sockets).to_lowercase()),
            (
                "receive",
                format!(
                    "{}, {} a call",
                    format!("{:?}", s.receive).to_lowercase(),
                    Bytes(s.buffer_bytes as u64)
                ),
            ),
            ("sockets", socket_text(&s.socket)),
            ("preamble", format!("version {}", s.preamble_version)),
        ];
        if let Some(bytes) = s.low_water_bytes {
            rows.push(("low water", format!("streams are read when {} wait", Bytes(bytes))));
        }
        if s.work_ns > 0 {
            rows.push(("work", format!("{} ns a read or transaction", s.work_ns)));
        }
        if let Some(stall) = s.stall {
            let text = format!("sleeps {} every {}", Nanos(stall.sleep_ns), Nanos(stall.every_ns));
            rows.push(("stall", text));
        }
        block(&format!("serve tcp {}", s.addr), &rows)
    }

    fn result_text(&self, r: &ServeResult) -> String {
        let mut rows = vec![
            (
                "delivered",
                format!(
                    "{} bytes in {:.3} s, {}b/s",
                    grouped(r.delivered_bytes),
                    r.duration_s,
                    si(r.delivered_bps)
                ),
            ),
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
        if let Some(ratio) = r.mapped_ratio {
            rows.push(("mapped", format!("{:.1} % of the bytes", 100.0 * ratio)));
        }
        rows.push((
            "CPU time",
            format!("{:.3} s user, {:.3} s system", r.cpu_user_s, r.cpu_system_s),
        ));
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
        let mut rates = TcpRates::new(split);
        Box::new(move |counters| rates.row(counters))
    }

    fn exit(&self, result: &ServeResult) -> Exit {
        if result.mismatches.is_empty() { Exit::Done } else { Exit::Negative }
    }
}
