//! `rxpath load udp`: the options, and the result for people.

use rxpath_load::udp::load::options::{Engine, LoadOptions};
use rxpath_load::udp::load::{Load, dry_loop_ns};
use rxpath_load::udp::result::{Interval, LoadResult};
use rxpath_load::workload::WorkloadHandle;

use crate::cmd::conduct::{ConductArgs, EndConditions, Shown, block, conduct};
use crate::cmd::prelude::*;
use crate::cmd::values::{cpu_time, quantiles};
use crate::cmd::workload_text::{placed, xdp_text};
use crate::output::rates::{Rows, grouped};
use crate::output::udp::udp_rows;

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Corrupt {
    /// A wrong UDP checksum, verified by the receiving kernel
    Checksum,
}

/// `rxpath load udp …`
#[derive(Debug, clap::Args)]
pub struct LoadUdp {
    #[command(flatten)]
    options: LoadOptions,
    /// Send damaged datagrams through a raw socket
    #[arg(long, value_enum, value_name = "WHAT", conflicts_with = "engine")]
    corrupt: Option<Corrupt>,
    /// Print the loop's own cost per datagram, without system calls, and exit
    #[arg(long, hide = true)]
    dry_loop: bool,
    #[command(flatten)]
    conduct: ConductArgs,
}

impl LoadUdp {
    /// Sends to the end.
    pub fn run(self) -> Outcome {
        let options = self.options();
        if self.dry_loop {
            let ns = dry_loop_ns(&options, 20);
            output::line(&format!("{ns:.2} ns per datagram"))?;
            return Ok(Exit::Done);
        }
        let has_bound = options.flood || options.rate_pps.is_some() || options.count.is_some();
        if !(self.conduct.control || has_bound) {
            let what = "without --rate the sender would send as fast as it can: use --rate N, or --flood to allow that";
            return Err(
                Failure::usage(what).hint("for example --rate 10k; --count N also sets a bound")
            );
        }
        // A sender ends by itself, exactly at its time.
        conduct(Load::open(options), &self.conduct, EndConditions::default())
    }

    fn options(&self) -> LoadOptions {
        let mut options = self.options.clone();
        if let Some(Corrupt::Checksum) = self.corrupt {
            options.engine = Engine::RawBadChecksum;
        }
        options.duration_ns = self.conduct.load_ns(options.count.is_some());
        options
    }
}

impl Shown for Load {
    fn settings_text(&self) -> String {
        let s = self.settings();
        let to: Vec<String> = s.to.iter().map(ToString::to_string).collect();
        let connected = if s.connected || s.engine.bypasses_udp() { "" } else { ", not connected" };
        let rate = s.target_pps.map(|pps| format!("{} datagrams/s", grouped(pps)));
        let mut rows = vec![
            ("threads", placed(&s.threads)),
            ("flows", format!("{}{connected}", grouped(s.flows_count as u64))),
            ("payload", format!("{} bytes; header: {}", s.size_bytes, s.header)),
            ("call", format!("{}, batch {}", s.call, s.batch)),
            ("rate", rate.unwrap_or_else(|| "as fast as possible".into())),
            ("pacing", s.pacing.clone()),
        ];
        rows.extend(s.xdp.as_ref().map(|xdp| ("AF_XDP", xdp_text(xdp))));
        rows.extend(s.sndbuf_bytes.map(|bytes| ("send buffer", format!("{bytes} bytes"))));
        rows.extend(s.gso_segments.map(|n| ("UDP_SEGMENT", format!("{n} datagrams a send"))));
        rows.extend(s.corrupt_checksum.then(|| ("damaged", "UDP checksum".into())));
        block(&format!("load udp {}", to.join(" ")), &rows)
    }

    fn result_text(&self, r: &LoadResult) -> String {
        let mut rows = vec![
            ("target", format!("{} datagrams", grouped(r.target_packets))),
            ("offered", format!("{} datagrams", grouped(r.offered_packets))),
            ("sent", format!("{} datagrams in {:.3} s", grouped(r.sent_packets), r.duration_s)),
            ("rate", format!("{} datagrams/s", grouped(r.sent_pps.round() as u64))),
        ];
        if let Some(frames) = &r.frames {
            let said = |packets: Option<u64>| packets.map_or("not known".into(), grouped);
            let (taken, refused) = (said(frames.taken_packets), said(frames.refused_packets));
            rows.push(("device", format!("took {taken} frames, refused {refused}")));
        }
        let late = r.lateness_us.as_ref();
        rows.extend(late.map(|it| ("lateness", quantiles(it.p50, it.p99, it.max))));
        rows.push(("blocked", format!("{:.3} s", r.blocked_s)));
        if let Some(xdp) = &r.xdp {
            let packets = [xdp.handed_over_packets, xdp.completed_packets, xdp.invalid_packets];
            let ([over, completed, invalid], woken) =
                (packets.map(grouped), grouped(xdp.wakeups_count));
            let text = format!(
                "{over} handed over, {completed} completed, {invalid} not valid, {woken} wake-ups"
            );
            rows.push(("AF_XDP", text));
        }
        rows.push(("CPU time", cpu_time(r.cpu_user_s, r.cpu_system_s)));
        rows.push(("limit", r.limit.to_string()));
        block("result", &rows)
    }

    fn set_rate(result: &mut LoadResult, pps: f64) {
        result.sent_pps = pps;
    }

    fn rows(&self, split: bool) -> Rows<Interval> {
        udp_rows("sent/s", self.settings().to[0], split)
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        load: LoadUdp,
    }

    fn duration_ns(words: &[&str]) -> Option<u64> {
        let line = [&["udp", "127.0.0.1:9"], words].concat();
        Line::try_parse_from(line).unwrap().load.options().duration_ns
    }

    #[test]
    fn a_sender_that_nothing_else_ends_sends_for_ten_seconds() {
        const TEN_S: Option<u64> = Some(10_000_000_000);
        assert_eq!(duration_ns(&["--flood"]), TEN_S);
        assert_eq!(duration_ns(&["--rate", "1k"]), TEN_S);
        assert_eq!(duration_ns(&["--flood", "-d", "3s"]), Some(3_000_000_000));
        assert_eq!(duration_ns(&["--count", "5"]), None);
        assert_eq!(duration_ns(&["--control"]), None);
    }
}
