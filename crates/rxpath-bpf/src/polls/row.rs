//! The rows of the probe's maps: types, and how they are read (`bpf/polls.h`).

use rxpath_core::Log2;
use rxpath_core::measured::{IrqLine, NapiPolls};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bytes::Fields;

/// Softirqs by number. **Source** include/linux/interrupt.h, `enum`.
pub const SOFTIRQS: [&str; 10] =
    ["HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU"];

/// The numbers of `NET_TX` and `NET_RX`.
const NET_TX: usize = 2;
const NET_RX: usize = 3;

/// Buckets of packets per poll and of times.
const WORK: usize = 16;
const TIME: usize = 32;

/// Room for softirqs; the kernel has ten.
const VECTORS: usize = 16;

/// NAPIs that have a place in the row of their CPU.
const SLOTS: usize = 4;

/// One CPU.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CpuPolls {
    /// CPU number.
    pub cpu: u32,
    /// Interrupts of devices.
    pub device_interrupts_count: u64,
    /// Other interrupts: timer, calls from other CPUs (RPS), reschedules. x86 only.
    pub other_interrupts_count: u64,
    /// Time in hard interrupts, between their tracepoints.
    pub hardirq_ns: u64,
    /// Softirqs that ran, by kind.
    pub softirqs: Vec<SoftirqRuns>,
    /// Of NET_RX: runs in ksoftirqd.
    pub ksoftirqd_runs_count: u64,
    /// Of NET_RX: time in ksoftirqd.
    pub ksoftirqd_ns: u64,
    /// NAPI polls.
    pub polls_count: u64,
    /// Packets of those polls.
    pub packets: u64,
    /// Polls that used up their budget: there was more.
    pub exhausted_count: u64,
    /// The longest NET_RX run.
    pub longest_net_rx_ns: u64,
    /// Length of NET_RX runs, in ns.
    pub net_rx_run_ns: Log2,
    /// From one device interrupt to the next, in ns.
    pub interrupt_interval_ns: Log2,
    /// Packets of a poll.
    pub packets_per_poll: Log2,
    /// Sums over NET_RX runs, for a linear fit of their time over their packets; not part of a result.
    #[serde(skip)]
    pub passes: Passes,
    /// Exits without their entry: in progress when counting began.
    pub unmatched_count: u64,
    /// Events and rows that did not fit.
    pub lost_count: u64,
    /// Of these: events of the timeline.
    #[serde(default)]
    pub lost_events_count: u64,
}

/// Sums over runs of NET_RX that handled packets and took at most a millisecond: `t` its ns, `w` its packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Passes {
    /// Runs.
    pub n: u64,
    /// Sum of `w`.
    pub w: u64,
    /// Sum of `w*w`.
    pub ww: u64,
    /// Sum of `t`.
    pub t: u64,
    /// Sum of `w*t`.
    pub wt: u64,
    /// Sum of `(t/16)*(t/16)`, whole parts.
    pub tt_256: u64,
}

/// Runs of one softirq.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SoftirqRuns {
    /// `NET_RX`, ...
    pub softirq: String,
    /// Runs.
    pub runs_count: u64,
    /// Time in them, without hard interrupts.
    pub ns: u64,
}

impl CpuPolls {
    /// Runs of NET_RX.
    pub fn net_rx(&self) -> (u64, u64) {
        self.softirqs.get(NET_RX).map_or((0, 0), |rx| (rx.runs_count, rx.ns))
    }

    /// Time in NET_TX, in ns.
    pub fn net_tx_ns(&self) -> u64 {
        self.softirqs.get(NET_TX).map_or(0, |tx| tx.ns)
    }
}

/// `struct cpu_row`: what the CPU did, and the NAPIs that have a place in it.
pub(super) fn cpu_row(cpu: u32, value: &[u8]) -> (CpuPolls, Vec<NapiPolls>) {
    let mut f = Fields::of(value);
    // hard_start, hard_kind, soft_start, soft_hard; poll_start; pass_packets_before; last_slot.
    f.skip(4 * 8);
    let [hardirq_ns, _, packets, _] = f.array::<4>();
    let [polls, exhausted, _] = f.array::<3>();
    let [n, w, ww, t, wt, tt_256] = f.array::<6>();
    let [longest, ksoftirqd_runs, ksoftirqd_ns, _] = f.array::<4>();
    let [device, other, lost_events, lost_rows, unmatched] = f.array::<5>();
    f.skip(6 * 8);
    let softirqs: Vec<[u64; 2]> = (0..VECTORS).map(|_| f.array::<2>()).collect();
    let softirqs = SOFTIRQS.iter().zip(softirqs).map(|(name, [runs_count, ns])| SoftirqRuns {
        softirq: (*name).into(),
        runs_count,
        ns,
    });
    let row = CpuPolls {
        cpu,
        device_interrupts_count: device,
        other_interrupts_count: other,
        hardirq_ns,
        softirqs: softirqs.collect(),
        ksoftirqd_runs_count: ksoftirqd_runs,
        ksoftirqd_ns,
        polls_count: polls,
        packets,
        exhausted_count: exhausted,
        longest_net_rx_ns: longest,
        net_rx_run_ns: Log2::of(&f.array::<TIME>()),
        interrupt_interval_ns: Log2::of(&f.array::<TIME>()),
        packets_per_poll: Log2::of(&f.array::<WORK>()),
        passes: Passes { n, w, ww, t, wt, tt_256 },
        unmatched_count: unmatched,
        lost_count: lost_events + lost_rows,
        lost_events_count: lost_events,
    };
    let slots = (0..SLOTS).filter_map(|_| slot(cpu, &mut f));
    (row, slots.collect())
}

/// `struct napi_slot`; none for a free place.
fn slot(cpu: u32, f: &mut Fields<'_>) -> Option<NapiPolls> {
    let [napi, _net] = f.array::<2>();
    let key = [f.u32(), f.u32(), f.u32(), cpu];
    f.skip(4);
    let row = napi_row(key, f);
    f.skip(6 * 8);
    (napi != 0).then_some(row)
}

/// `struct napi_key` and `struct napi_row`.
pub(super) fn napi(key: &[u8], value: &[u8]) -> NapiPolls {
    let mut k = Fields::of(key);
    napi_row([k.u32(), k.u32(), k.u32(), k.u32()], &mut Fields::of(value))
}

/// `struct napi_row`, of the NAPI and CPU of a key.
fn napi_row([napi_id, ifindex, netns, cpu]: [u32; 4], f: &mut Fields<'_>) -> NapiPolls {
    let [polls_count, packets, exhausted_count, poll_ns] = f.array::<4>();
    let packets_per_poll = Log2::of(&f.array::<WORK>());
    let dev = f.text(16);
    NapiPolls {
        dev: if ifindex == 0 { "backlog".into() } else { dev },
        ifindex,
        netns,
        napi_id,
        queue: None,
        cpu,
        polls_count,
        packets,
        exhausted_count,
        poll_ns,
        packets_per_poll,
    }
}

/// `struct irq_key` and `struct irq_row`.
pub(super) fn irq(key: &[u8], value: &[u8]) -> IrqLine {
    let mut k = Fields::of(key);
    let (irq, cpu) = (k.u32(), k.u32());
    let mut f = Fields::of(value);
    let [interrupts_count, _last] = f.array::<2>();
    let interval_ns = Log2::of(&f.array::<TIME>());
    IrqLine { irq, cpu, name: f.text(32), interrupts_count, interval_ns }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_read_by_place() {
        let numbers: Vec<u8> = (1..=300u64).flat_map(u64::to_ne_bytes).collect();
        let (row, napis) = cpu_row(2, &numbers);
        assert_eq!(
            (row.hardirq_ns, row.device_interrupts_count, row.other_interrupts_count),
            (5, 22, 23)
        );
        // Rows of 64 bytes begin at 1, 9, 17, 25; softirqs at 33, NET_TX is the third, NET_RX the fourth.
        assert_eq!((row.net_tx_ns(), row.net_rx()), (38, (39, 40)));
        assert_eq!((row.ksoftirqd_runs_count, row.polls_count, row.exhausted_count), (19, 9, 10));
        assert_eq!((row.packets, row.longest_net_rx_ns, row.unmatched_count), (7, 18, 26));
        assert_eq!((row.lost_count, row.lost_events_count), (24 + 25, 24));
        assert_eq!(row.net_rx_run_ns.count(), (65..97).sum::<u64>());
        assert_eq!(row.packets_per_poll.count(), (129..145).sum::<u64>());
        let sums = Passes { n: 12, w: 13, ww: 14, t: 15, wt: 16, tt_256: 17 };
        assert_eq!(row.passes, sums);
        // Each place takes four lines of eight words: address, namespace, numbers in two words, counts, work, name,
        // rest.
        let [first, .., last] = &napis[..] else { panic!("{napis:?}") };
        assert_eq!((napis.len(), first.napi_id, first.netns, first.cpu), (4, 147, 148, 2));
        assert_eq!((first.polls_count, first.packets, first.poll_ns), (149, 150, 152));
        assert_eq!(first.packets_per_poll.count(), (153..169).sum::<u64>());
        assert_eq!((last.napi_id, last.polls_count), (147 + 3 * 32, 149 + 3 * 32));
        let free: Vec<u8> = [0u64; 300].iter().flat_map(|n| n.to_ne_bytes()).collect();
        assert!(cpu_row(2, &free).1.is_empty());
    }
}
