//! What the receive side of each CPU did: interrupts, softirq runs, NAPI polls with their packets.
//!
//! Aggregated in the kernel (`bpf/polls.bpf.c`); on request each event too, through a ring buffer whose losses are
//! counted.

pub mod timeline;

use rxpath_host::HostError;
use rxpath_host::root::Root;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bytes::Fields;
use crate::filter::Filter;
use crate::object::{Loaded, ObjectSpec, ProgramSpec, ProgramState, map, program};
use crate::probe::Probe;
use rxpath_core::Log2;

const IRQS: &str = "device interrupts, and the time between them";
/// Run on each CPU when a turn begins and ends.
const BEGIN: &str = "begin_turn";
const END: &str = "end_turn";
const BY_TURNS: &str = "counting by turns";
const OTHERS: &str = "interrupts that are no device's (timer, RPS) and their time";

pub(crate) static SPEC: ObjectSpec = ObjectSpec {
    name: "polls",
    #[cfg(feature = "bpf")]
    bytes: include_bytes!(concat!(env!("OUT_DIR"), "/polls.bpf.o")),
    #[cfg(not(feature = "bpf"))]
    bytes: &[],
    per_cpu_map: Some("cpus"),
    maps: &[map("cpus", 4, 2176), map("napis", 16, 176), map("irqs", 8, 304), map("events", 0, 0)],
    programs: &[
        program("softirq_entry", "irq/softirq_entry", "softirq runs and their time", true),
        program("softirq_exit", "irq/softirq_exit", "softirq runs and their time", true),
        program("napi_poll", "napi/napi_poll", "polls and packets per poll", false),
        program("irq_handler_entry", "irq/irq_handler_entry", IRQS, false),
        program("irq_handler_exit", "irq/irq_handler_exit", IRQS, false),
        program("local_timer_entry", "irq_vectors/local_timer_entry", OTHERS, false),
        program("local_timer_exit", "irq_vectors/local_timer_exit", OTHERS, false),
        program(
            "call_function_single_entry",
            "irq_vectors/call_function_single_entry",
            OTHERS,
            false,
        ),
        program(
            "call_function_single_exit",
            "irq_vectors/call_function_single_exit",
            OTHERS,
            false,
        ),
        program("call_function_entry", "irq_vectors/call_function_entry", OTHERS, false),
        program("call_function_exit", "irq_vectors/call_function_exit", OTHERS, false),
        program("reschedule_entry", "irq_vectors/reschedule_entry", OTHERS, false),
        program("reschedule_exit", "irq_vectors/reschedule_exit", OTHERS, false),
        program("irq_work_entry", "irq_vectors/irq_work_entry", OTHERS, false),
        program("irq_work_exit", "irq_vectors/irq_work_exit", OTHERS, false),
        ProgramSpec { name: BEGIN, hook: None, loses: BY_TURNS, required: false },
        ProgramSpec { name: END, hook: None, loses: BY_TURNS, required: false },
    ],
};

/// Softirqs by number. **Source** include/linux/interrupt.h, `enum`.
pub const SOFTIRQS: [&str; 10] =
    ["HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU"];

/// The number of `NET_RX`.
const NET_RX: usize = 3;

/// Buckets of packets per poll and of times.
const WORK: usize = 16;
const TIME: usize = 32;

/// Room for softirqs; the kernel has ten.
const VECTORS: usize = 16;

/// NAPIs that have a place in the row of their CPU.
const SLOTS: usize = 4;

/// Bytes of the ring of events: some 40,000 of 72 bytes.
const RING: u32 = 4 << 20;

/// The running probe.
#[derive(Debug)]
pub struct Polls {
    loaded: Loaded,
    /// Those that are wanted; empty for all.
    wanted: Vec<u32>,
    /// Those that were online at the start.
    online: Vec<u32>,
}

/// How often something happened for which programs run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Events {
    /// Softirqs, of all kinds.
    pub softirqs: u64,
    /// Hard interrupts.
    pub interrupts: u64,
    /// NAPI polls.
    pub polls: u64,
}

/// CPUs that went offline or came online since the probe was loaded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plugged {
    /// Counted up to then.
    pub gone: Vec<u32>,
    /// Counted from then on.
    pub came: Vec<u32>,
}

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
    /// Sums over NET_RX runs, for a line through their time against their packets; not part of a result.
    #[serde(skip)]
    pub passes: Passes,
    /// Exits without their entry: under way when counting began.
    pub unmatched_count: u64,
    /// Events and rows that found no room.
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
    /// Time in them, hard interrupts taken off.
    pub ns: u64,
}

/// One NAPI instance on one CPU.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NapiPolls {
    /// Device; `backlog` for the per-CPU backlog (RPS, loopback, devices without NAPI).
    pub dev: String,
    /// Device index in its namespace; 0 for the backlog.
    pub ifindex: u32,
    /// Inode of its network namespace; 0 for the backlog.
    pub netns: u32,
    /// NAPI id; 0 for the backlog.
    pub napi_id: u32,
    /// Receive queue that it serves; none where the kernel does not say it: before 6.8, in another network namespace.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub queue: Option<u32>,
    /// CPU on which it was polled.
    pub cpu: u32,
    /// Polls.
    pub polls_count: u64,
    /// Packets.
    pub packets: u64,
    /// Polls that used up their budget.
    pub exhausted_count: u64,
    /// Time of the polls in softirqs, hard interrupts in them included. Polls of threads and of busy polling have none.
    pub poll_ns: u64,
    /// Packets of a poll.
    pub packets_per_poll: Log2,
}

/// One interrupt line on one CPU.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IrqLine {
    /// Number, as in `/proc/interrupts`.
    pub irq: u32,
    /// CPU on which it was handled.
    pub cpu: u32,
    /// Name of its handler.
    pub name: String,
    /// Interrupts.
    pub interrupts_count: u64,
    /// From one to the next, in ns.
    pub interval_ns: Log2,
}

/// Everything since the probe began.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PollsReading {
    /// Each CPU.
    pub cpus: Vec<CpuPolls>,
    /// Each NAPI on each CPU, the most packets first.
    pub napis: Vec<NapiPolls>,
    /// Each interrupt line on each CPU, the most interrupts first.
    pub irqs: Vec<IrqLine>,
}

impl Probe for Polls {
    fn loaded(&self) -> &Loaded {
        &self.loaded
    }

    fn lost(&self) -> u64 {
        let of = |cpu: &u32| {
            self.loaded.value("cpus", *cpu).map_or(0, |row| cpu_row(*cpu, &row).0.lost_count)
        };
        self.counted().iter().map(of).sum()
    }
}

impl Polls {
    /// Loads, attaches, and begins to count. With `events`, each event can be read by [`Polls::drain`].
    pub fn start(filter: &Filter, events: bool) -> Result<Self, HostError> {
        let mut loaded = Self::load(filter, events)?;
        loaded.attach()?;
        loaded.begin()?;
        Ok(loaded)
    }

    /// Loads without attaching: that is done by [`Polls::attach`], which takes less than a millisecond.
    pub fn load(filter: &Filter, events: bool) -> Result<Self, HostError> {
        let root = Root::host();
        crate::can::can_time_softirqs(&root).require("trace softirqs")?;
        let words = [u32::from(events), filter.ifindex, filter.netns, 0];
        let mut constants: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        constants.extend(filter.wanted_cpus());
        let sizes = [("events", if events { RING } else { 4096 })];
        let loaded = Loaded::load(&SPEC, &constants, &sizes)?;
        let (wanted, online) = (filter.cpus.clone(), online()?);
        Ok(Self { loaded, wanted, online })
    }

    /// Puts the programs into place. They count from [`Polls::begin`] on.
    pub fn attach(&mut self) -> Result<(), HostError> {
        self.loaded.attach()
    }

    /// Begins to count. What is under way at this moment is not counted.
    pub fn begin(&self) -> Result<(), HostError> {
        self.loaded.begin()
    }

    /// A turn begins: what a softirq under way does counts from here on.
    pub fn begin_turn(&self) -> Result<(), HostError> {
        self.on_each_cpu(BEGIN);
        self.loaded.begin()
    }

    /// The turn ends, also for a softirq that is under way.
    pub fn end_turn(&self) -> Result<(), HostError> {
        self.loaded.pause()?;
        self.on_each_cpu(END);
        Ok(())
    }

    /// What made the programs run so far, on all CPUs.
    pub fn events(&self) -> Result<Events, HostError> {
        let mut events = Events::default();
        for cpu in self.counted() {
            let (row, _) = cpu_row(cpu, &self.loaded.value("cpus", cpu)?);
            events.softirqs += row.softirqs.iter().map(|softirq| softirq.runs_count).sum::<u64>();
            events.interrupts += row.device_interrupts_count + row.other_interrupts_count;
            events.polls += row.polls_count;
        }
        Ok(events)
    }

    /// Takes the programs from their hooks, after a turn: the last first, see [`crate::turns`].
    pub fn detach(&mut self) {
        let names: Vec<&str> = SPEC.programs.iter().rev().map(|program| program.name).collect();
        self.loaded.detach_some(&names);
    }

    fn on_each_cpu(&self, program: &str) {
        // Those that came online as well.
        for cpu in online().unwrap_or_else(|_| self.online.clone()) {
            // On a CPU that goes offline nothing is under way.
            let _ = self.loaded.run_on(program, cpu);
        }
    }

    /// What became of each program.
    pub fn programs(&self) -> &[ProgramState] {
        self.loaded.programs()
    }

    /// Reads everything since the start.
    pub fn read(&self) -> Result<PollsReading, HostError> {
        let seen = |cpu: u32| self.is_wanted(cpu);
        let (mut cpus, mut napis) = (Vec::new(), Vec::new());
        for cpu in self.counted() {
            let (row, placed) = cpu_row(cpu, &self.loaded.value("cpus", cpu)?);
            cpus.push(row);
            napis.extend(placed);
        }
        let others = self.loaded.entries("napis")?;
        napis.extend(others.iter().map(|(key, value)| napi(key, value)));
        napis.retain(|napi| seen(napi.cpu));
        napis.sort_by_key(|napi| (std::cmp::Reverse(napi.packets), napi.cpu, napi.napi_id));
        let irqs = self.loaded.entries("irqs")?;
        let mut irqs: Vec<IrqLine> = irqs.iter().map(|(key, value)| irq(key, value)).collect();
        irqs.retain(|irq| seen(irq.cpu));
        irqs.sort_by_key(|irq| (std::cmp::Reverse(irq.interrupts_count), irq.cpu, irq.irq));
        Ok(PollsReading { cpus, napis, irqs })
    }

    fn is_wanted(&self, cpu: u32) -> bool {
        self.wanted.is_empty() || self.wanted.contains(&cpu)
    }

    /// CPUs that were counted for a part of the time at least.
    fn counted(&self) -> Vec<u32> {
        let mut all = [self.online.clone(), self.plugged().came].concat();
        all.sort_unstable();
        all.retain(|cpu| self.is_wanted(*cpu));
        all
    }

    /// Which CPUs went and came, as far as now can be told.
    pub fn plugged(&self) -> Plugged {
        let now = online().unwrap_or_else(|_| self.online.clone());
        let without = |of: &[u32], others: &[u32]| {
            of.iter().copied().filter(|cpu| !others.contains(cpu)).collect()
        };
        Plugged { gone: without(&self.online, &now), came: without(&now, &self.online) }
    }

    /// Gives the events that wait to `each`.
    pub fn drain(&self, each: &mut dyn FnMut(timeline::Event)) -> Result<(), HostError> {
        self.loaded.drain("events", &mut |bytes| each(timeline::event(bytes)))
    }
}

fn online() -> Result<Vec<u32>, HostError> {
    Ok(Root::host().cpus("/sys/devices/system/cpu/online")?.0)
}

impl CpuPolls {
    /// Runs of NET_RX.
    pub fn net_rx(&self) -> (u64, u64) {
        self.softirqs.get(NET_RX).map_or((0, 0), |rx| (rx.runs_count, rx.ns))
    }
}

/// `struct cpu_row`: what the CPU did, and the NAPIs that have a place in it.
fn cpu_row(cpu: u32, value: &[u8]) -> (CpuPolls, Vec<NapiPolls>) {
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
fn napi(key: &[u8], value: &[u8]) -> NapiPolls {
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
fn irq(key: &[u8], value: &[u8]) -> IrqLine {
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
        // Rows of 64 bytes begin at 1, 9, 17, 25; softirqs at 33, NET_RX is the fourth.
        assert_eq!(row.net_rx(), (39, 40));
        assert_eq!((row.ksoftirqd_runs_count, row.polls_count, row.exhausted_count), (19, 9, 10));
        assert_eq!((row.packets, row.longest_net_rx_ns, row.unmatched_count), (7, 18, 26));
        assert_eq!((row.lost_count, row.lost_events_count), (24 + 25, 24));
        assert_eq!(row.net_rx_run_ns.count(), (65..97).sum::<u64>());
        assert_eq!(row.packets_per_poll.count(), (129..145).sum::<u64>());
        let sums = Passes { n: 12, w: 13, ww: 14, t: 15, wt: 16, tt_256: 17 };
        assert_eq!(row.passes, sums);
        // Each place takes four lines of eight words: address, namespace, numbers in two words, counts, work, name, rest.
        let [first, .., last] = &napis[..] else { panic!("{napis:?}") };
        assert_eq!((napis.len(), first.napi_id, first.netns, first.cpu), (4, 147, 148, 2));
        assert_eq!((first.polls_count, first.packets, first.poll_ns), (149, 150, 152));
        assert_eq!(first.packets_per_poll.count(), (153..169).sum::<u64>());
        assert_eq!((last.napi_id, last.polls_count), (147 + 3 * 32, 149 + 3 * 32));
        let free: Vec<u8> = [0u64; 300].iter().flat_map(|n| n.to_ne_bytes()).collect();
        assert!(cpu_row(2, &free).1.is_empty());
    }
}
