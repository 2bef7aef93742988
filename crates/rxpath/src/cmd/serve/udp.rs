//! `rxpath serve udp`: the options, and the result for people.

use rxpath_load::udp::result::{Interval, ServeResult, XdpReceiveLedger};
use rxpath_load::udp::serve::options::{ServeOptions, ServeSettings, XdpProgramSettings};
use rxpath_load::udp::serve::{Serve, dry_loop_ns};
use rxpath_load::workload::WorkloadHandle;

use crate::cmd::conduct::{ConductArgs, EndArgs, Shown, block, conduct};
use crate::cmd::prelude::*;
use crate::cmd::values::{cpu_time, quantiles, value_name};
use crate::cmd::workload_text::{placed, stalls, xdp_text};
use crate::output::rates::{Rows, grouped};
use crate::output::udp::{DELIVERED, udp_rows};

/// `rxpath serve udp …`
#[derive(Debug, clap::Args)]
pub struct ServeUdp {
    #[command(flatten)]
    options: ServeOptions,
    #[command(flatten)]
    end: EndArgs,
    /// Print the loop's own cost per datagram, without system calls, and exit
    #[arg(long, hide = true)]
    dry_loop: bool,
    #[command(flatten)]
    conduct: ConductArgs,
}

impl ServeUdp {
    /// Receives to the end.
    pub fn run(self) -> Outcome {
        if self.dry_loop {
            output::line(&format!("{:.2} ns per datagram", dry_loop_ns(self.options.batch, 20)))?;
            return Ok(Exit::Done);
        }
        conduct(Serve::open(self.options), &self.conduct, self.conduct.ends(self.end))
    }
}

impl Shown for Serve {
    fn settings_text(&self) -> String {
        let s = self.settings();
        let capacity = match (s.capacity_packets, s.truesize_probe_bytes) {
            (Some(packets), Some(truesize)) => format!(
                "{} bytes, holds {} datagrams of {} bytes ({} bytes of memory each, by a probe over loopback)",
                grouped(s.rcvbuf_bytes),
                grouped(packets),
                grouped(s.size_bytes as u64),
                grouped(truesize)
            ),
            _ => format!("{} bytes", grouped(s.rcvbuf_bytes)),
        };
        let mut rows = vec![
            ("threads", placed(&s.threads)),
            ("sockets", value_name(&s.sockets)),
            ("call", format!("{}, batch {}", s.call, s.batch)),
            ("receive buffer", capacity),
        ];
        if let Some(program) = &s.xdp_program {
            rows = xdp_rows(s, program);
        }
        rows.extend(s.steer.map(|steer| ("steer", value_name(&steer))));
        rows.extend(s.gro.then(|| ("UDP_GRO", "on; datagrams counted by segment".into())));
        if let Some(poll) = s.busy_poll {
            rows.push(("busy poll", format!("{} us, prefer {}", poll.poll_us, poll.prefer)));
        }
        rows.extend((s.work_ns > 0).then(|| ("work", format!("{} ns a datagram", s.work_ns))));
        rows.extend(s.nap_ns.map(|ns| ("nap", format!("{} after emptying the socket", Nanos(ns)))));
        rows.extend(s.stall.map(|stall| ("stall", stalls(stall))));
        block(&format!("serve udp {}", s.addr), &rows)
    }

    fn result_text(&self, r: &ServeResult) -> String {
        let delivered = grouped(r.delivered_packets);
        let mut rows = vec![
            ("delivered", format!("{delivered} datagrams in {:.3} s", r.duration_s)),
            ("rate", format!("{} datagrams/s", grouped(r.delivered_pps.round() as u64))),
            ("socket drops", grouped(r.socket_drops_packets)),
        ];
        if let Some(xdp) = &r.xdp {
            rows.splice(2.., ledger_rows(r, xdp));
        }
        if r.sequence.checked {
            let s = &r.sequence;
            let [lost, twice, reordered] =
                [s.lost_packets, s.duplicate_packets, s.reordered_packets].map(grouped);
            let text = format!("{lost} lost, {twice} duplicate, {reordered} reordered");
            rows.push(("sequence", format!("{text} in {} streams", s.streams_count)));
        }
        for (key, times) in
            [("send to read", &r.one_way_delay_us), ("stamp to read", &r.socket_wait_us)]
        {
            rows.extend(times.iter().map(|it| (key, quantiles(it.p50, it.p99, it.max))));
        }
        rows.push(("CPU time", cpu_time(r.cpu_user_s, r.cpu_system_s)));
        for socket in &r.sockets {
            if let (Some(size), Some(capacity)) = (socket.truesize_bytes, socket.capacity_packets) {
                let [size, capacity] = [size, capacity].map(grouped);
                let text =
                    format!("{size} bytes a datagram: socket {} holds {capacity}", socket.index);
                rows.push(("socket memory", text));
            }
        }
        rows.push(("limit", r.limit.to_string()));
        block("result", &rows)
    }

    fn set_rate(result: &mut ServeResult, pps: f64) {
        result.delivered_pps = pps;
    }

    fn rows(&self, split: bool) -> Rows<Interval> {
        udp_rows(DELIVERED, self.settings().addr, split)
    }
}

/// The first rows of the settings of a receiver with XDP.
fn xdp_rows(s: &ServeSettings, program: &XdpProgramSettings) -> Vec<(&'static str, String)> {
    let tag = program.vlan_id.map_or(String::new(), |tag| format!(", frames with tag {tag}"));
    let mode = rxpath_bpf::xdp_receive::word(program.mode);
    let mut rows = vec![
        ("threads", placed(&s.threads)),
        ("XDP program", format!("{mode} on {}, id {}{tag}", program.device, program.program_id)),
        ("call", format!("{}, batch {}", s.call, s.batch)),
    ];
    rows.extend(s.xdp.as_ref().map(|xdp| ("AF_XDP", xdp_text(xdp))));
    rows
}

/// What became of the frames, in place of the drops of sockets.
fn ledger_rows(r: &ServeResult, xdp: &XdpReceiveLedger) -> Vec<(&'static str, String)> {
    let mut rows = Vec::new();
    if let Some(dropped) = r.dropped_in_xdp_packets {
        rows.push(("dropped in XDP", format!("{} datagrams", grouped(dropped))));
    }
    let [matched, redirected, dropped] =
        [xdp.matched_packets, xdp.redirected_packets, xdp.dropped_packets].map(grouped);
    let [passed, unread] = [xdp.passed_packets, xdp.unread_packets].map(grouped);
    let text = format!(
        "{matched} matched, {redirected} redirected, {dropped} dropped, {passed} passed; {unread} unread in the socket"
    );
    rows.push(("XDP program", text));
    if r.dropped_in_xdp_packets.is_none() {
        let [socket, full, starved] =
            [xdp.socket_dropped_packets, xdp.ring_full_packets, xdp.fill_ring_empty_count]
                .map(grouped);
        let text = format!(
            "{socket} by the socket, {full} for a full ring; {starved} times no frame to receive into"
        );
        rows.push(("AF_XDP drops", text));
    }
    rows
}
