//! Queueing disciplines: statistics, limit and rate of each.

use libc::{RTM_GETQDISC, TCA_KIND, TCA_OPTIONS, TCA_STATS2};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::HostError;
use crate::netlink::socket::Netlink;
use crate::netlink::wire::{Attrs, word32, word64};

const TCMSG: usize = 20;
// linux/gen_stats.h
const TCA_STATS_BASIC: u16 = 1;
const TCA_STATS_QUEUE: u16 = 3;
const TCA_STATS_PKT64: u16 = 8;
const TC_H_ROOT: u32 = 0xFFFF_FFFF;
// linux/pkt_sched.h
pub(crate) const TCA_TBF_PARMS: u16 = 1;
pub(crate) const TCA_TBF_RATE64: u16 = 4;
pub(crate) const TCA_FQ_PLIMIT: u16 = 1;
/// `TCA_FQ_CODEL_LIMIT`, `TCA_CODEL_LIMIT`, `TCA_PIE_LIMIT`.
const TCA_AQM_LIMIT: u16 = 2;
const TCA_FQ_PIE_LIMIT: u16 = 1;
/// Words of `struct tc_tbf_qopt`: the rate in bytes a second, and the limit in bytes.
const TBF_RATE_WORD: usize = 2;
const TBF_LIMIT_WORD: usize = 6;

/// One queueing discipline and its counters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceQdisc {
    /// Index of the device.
    pub index: u32,
    /// `tbf`, `fq`, `mq`, `noqueue`, ...
    pub kind: String,
    /// Major number in the upper 16 bits; 0 for what the kernel installed by itself.
    pub handle: u32,
    /// `0xFFFFFFFF` for the root.
    pub parent: u32,
    /// Counters by name; those that this kernel did not give are left out.
    pub stats: Vec<(&'static str, u64)>,
    /// **Unit** packets waiting now.
    pub queued_packets: u32,
    /// **Unit** bytes waiting now.
    pub backlog_bytes: u32,
    /// How much may wait; `None` where this kind has no such limit, or one that is not read here.
    pub limit: Option<QdiscLimit>,
    /// What a token bucket lets pass. **Unit** bits a second.
    pub rate_bps: Option<u64>,
}

/// How much may wait in a queueing discipline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum QdiscLimit {
    /// Packets.
    Packets(u32),
    /// Bytes.
    Bytes(u32),
}

/// The limit and the rate among the options of this kind.
///
/// **Source** the `dump` function of each kind: net/sched/sch_fifo.c, sch_tbf.c, sch_fq.c, sch_fq_codel.c, sch_codel.c,
/// sch_pie.c, sch_fq_pie.c, sch_sfq.c, sch_netem.c.
fn settings(kind: &str, attrs: &Attrs<'_>) -> Result<(Option<QdiscLimit>, Option<u64>), HostError> {
    let Some(options) = attrs.get(TCA_OPTIONS) else { return Ok((None, None)) };
    let nested = |kind: u16| Ok::<_, HostError>(attrs.nest(TCA_OPTIONS)?.u32(kind));
    let packets = |limit: Option<u32>| limit.map(QdiscLimit::Packets);
    Ok(match kind {
        "pfifo" | "pfifo_head_drop" => (packets(word32(options, 0)), None),
        "bfifo" => (word32(options, 0).map(QdiscLimit::Bytes), None),
        "fq" => (packets(nested(TCA_FQ_PLIMIT)?), None),
        "fq_codel" | "codel" | "pie" => (packets(nested(TCA_AQM_LIMIT)?), None),
        "fq_pie" => (packets(nested(TCA_FQ_PIE_LIMIT)?), None),
        // struct tc_sfq_qopt: quantum, perturbation, limit. struct tc_netem_qopt: latency, limit.
        "sfq" => (packets(word32(options, 2)), None),
        "netem" => (packets(word32(options, 1)), None),
        "tbf" => {
            let nest = attrs.nest(TCA_OPTIONS)?;
            let parms = nest.get(TCA_TBF_PARMS).unwrap_or_default();
            let rate = nest
                .u64(TCA_TBF_RATE64)
                .or_else(|| word32(parms, TBF_RATE_WORD).map(u64::from))
                .map(|bytes| bytes.saturating_mul(8));
            (word32(parms, TBF_LIMIT_WORD).map(QdiscLimit::Bytes), rate)
        }
        _ => (None, None),
    })
}

impl DeviceQdisc {
    /// Reads one `RTM_NEWQDISC` payload.
    ///
    /// **Source** `net/sched/sch_api.c` `tc_fill_qdisc`, `net/core/gen_stats.c`.
    /// **Caveat** drops, requeues and overlimits are 32 bits wide and wrap.
    pub fn parse(payload: &[u8]) -> Result<Self, HostError> {
        let attrs = Attrs::after(payload, TCMSG)?;
        let all = attrs.nest(TCA_STATS2)?;
        let basic = all.get(TCA_STATS_BASIC).unwrap_or_default();
        let queue = all.get(TCA_STATS_QUEUE).unwrap_or_default();
        let wide = all.get(TCA_STATS_PKT64).and_then(|bytes| word64(bytes, 0));
        let of_queue = |n| word32(queue, n).map(u64::from);
        let kind = attrs.text(TCA_KIND).unwrap_or_default();
        let (limit, rate_bps) = settings(&kind, &attrs)?;
        let stats = [
            ("bytes", word64(basic, 0)),
            ("packets", wide.or_else(|| word32(basic, 2).map(u64::from))),
            ("drops", of_queue(2)),
            ("requeues", of_queue(3)),
            ("overlimits", of_queue(4)),
        ];
        Ok(Self {
            index: word32(payload, 1).unwrap_or_default(),
            kind,
            handle: word32(payload, 2).unwrap_or_default(),
            parent: word32(payload, 3).unwrap_or_default(),
            stats: stats.into_iter().filter_map(|(name, v)| Some((name, v?))).collect(),
            queued_packets: word32(queue, 0).unwrap_or_default(),
            backlog_bytes: word32(queue, 1).unwrap_or_default(),
            limit,
            rate_bps,
        })
    }

    /// One counter by name: `drops`.
    pub fn stat(&self, name: &str) -> Option<u64> {
        self.stats.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
    }
}

/// `struct tcmsg` of a root qdisc.
pub(crate) fn header(index: u32, handle: u32) -> Vec<u8> {
    [0, index, handle, TC_H_ROOT, 0].iter().flat_map(|word| word.to_ne_bytes()).collect()
}

impl Netlink {
    /// All qdiscs of this namespace's devices.
    pub fn qdiscs(&mut self) -> Result<Vec<DeviceQdisc>, HostError> {
        let replies = self.dump("list qdiscs", RTM_GETQDISC, &[0; TCMSG])?;
        replies.iter().map(|reply| DeviceQdisc::parse(reply)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::any_bytes::{takes_a_cut_answer, takes_any_bytes};
    use crate::netlink::wire::Body;

    fn sample() -> Vec<u8> {
        let mut basic = 6400u64.to_ne_bytes().to_vec();
        basic.extend([100u32, 0].into_iter().flat_map(u32::to_ne_bytes));
        let queue: Vec<u8> =
            [3u32, 192, 17, 0, 40].into_iter().flat_map(u32::to_ne_bytes).collect();
        let stats = Body::default().raw(TCA_STATS_BASIC, &basic).raw(TCA_STATS_QUEUE, &queue);
        let body =
            Body::new(&header(4, 0x0001_0000)).text(TCA_KIND, "tbf").nest(TCA_STATS2, &stats);
        body.bytes().to_vec()
    }

    #[test]
    fn counters_are_read() {
        let qdisc = DeviceQdisc::parse(&sample()).unwrap();
        assert_eq!((qdisc.kind.as_str(), qdisc.handle >> 16), ("tbf", 1));
        assert_eq!(qdisc.stat("drops"), Some(17));
        assert_eq!(qdisc.stat("packets"), Some(100));
        assert_eq!((qdisc.queued_packets, qdisc.backlog_bytes), (3, 192));
    }

    fn with_options(kind: &str, options: &[u8]) -> DeviceQdisc {
        let body = Body::new(&header(4, 0)).text(TCA_KIND, kind).raw(TCA_OPTIONS, options);
        DeviceQdisc::parse(body.bytes()).unwrap()
    }

    #[test]
    fn limits_are_in_packets_or_bytes() {
        let words = |words: &[u32]| -> Vec<u8> {
            words.iter().flat_map(|word| word.to_ne_bytes()).collect()
        };
        assert_eq!(with_options("pfifo", &words(&[1])).limit, Some(QdiscLimit::Packets(1)));
        assert_eq!(with_options("bfifo", &words(&[99])).limit, Some(QdiscLimit::Bytes(99)));
        assert_eq!(with_options("netem", &words(&[7, 5])).limit, Some(QdiscLimit::Packets(5)));
        assert_eq!(with_options("sfq", &words(&[7, 0, 6])).limit, Some(QdiscLimit::Packets(6)));
        let fq = Body::default().u32(TCA_FQ_PLIMIT, 10_000);
        assert_eq!(with_options("fq", fq.bytes()).limit, Some(QdiscLimit::Packets(10_000)));
        let aqm = Body::default().u32(1, 5000).u32(TCA_AQM_LIMIT, 0);
        assert_eq!(with_options("fq_codel", aqm.bytes()).limit, Some(QdiscLimit::Packets(0)));
        assert_eq!(with_options("cake", &words(&[1])).limit, None);
    }

    #[test]
    fn a_qdisc_without_statistics_has_none() {
        let body = Body::new(&header(4, 0)).text(TCA_KIND, "noqueue");
        assert_eq!(DeviceQdisc::parse(body.bytes()).unwrap().stat("drops"), None);
    }

    takes_a_cut_answer!(sample(), cut => DeviceQdisc::parse(cut));
    takes_any_bytes!(200, bytes => DeviceQdisc::parse(&bytes));
}
