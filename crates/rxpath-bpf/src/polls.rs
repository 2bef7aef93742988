//! What the receive side of each CPU did: interrupts, softirq runs, NAPI polls with their packets.
//!
//! Aggregated in the kernel (`bpf/polls.bpf.c`); on request each event too, through a ring buffer whose losses are
//! counted.

mod row;
pub mod timeline;

use rxpath_core::measured::{IrqLine, NapiPolls};
use rxpath_host::{HostError, Root};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cost::COSTS;
use crate::filter::Filter;
use crate::object::{Loaded, ObjectSpec, ProgramSpec, compiled, map, program};
use crate::probe::Probe;
use crate::room::Room;
use row::{cpu_row, irq, napi};

pub use row::{CpuPolls, Passes, SOFTIRQS, SoftirqRuns};

const IRQS: &str = "device interrupts, and the time between them";
/// Run on each CPU when a turn begins and ends.
const BEGIN: &str = "begin_turn";
const END: &str = "end_turn";
const BY_TURNS: &str = "duty-cycled counting";
const OTHERS: &str = "interrupts of no device (timer, RPS) and their time";

pub(crate) static SPEC: ObjectSpec = ObjectSpec {
    per_cpu_map: Some("cpus"),
    maps: &[
        map("cpus", 4, 2176),
        map("napis", 16, 176),
        map("irqs", 8, 304),
        map("events", 0, 0),
        COSTS,
    ],
    programs: &[
        program("irq/softirq_entry", "softirq runs and their time", true),
        program("irq/softirq_exit", "softirq runs and their time", true),
        program("napi/napi_poll", "polls and packets per poll", false),
        program("irq/irq_handler_entry", IRQS, false),
        program("irq/irq_handler_exit", IRQS, false),
        program("irq_vectors/local_timer_entry", OTHERS, false),
        program("irq_vectors/local_timer_exit", OTHERS, false),
        program("irq_vectors/call_function_single_entry", OTHERS, false),
        program("irq_vectors/call_function_single_exit", OTHERS, false),
        program("irq_vectors/call_function_entry", OTHERS, false),
        program("irq_vectors/call_function_exit", OTHERS, false),
        program("irq_vectors/reschedule_entry", OTHERS, false),
        program("irq_vectors/reschedule_exit", OTHERS, false),
        program("irq_vectors/irq_work_entry", OTHERS, false),
        program("irq_vectors/irq_work_exit", OTHERS, false),
        ProgramSpec { name: BEGIN, hook: None, loses: BY_TURNS, required: false },
        ProgramSpec { name: END, hook: None, loses: BY_TURNS, required: false },
    ],
    ..compiled!("polls")
};

/// NAPIs and interrupt lines, each on each CPU.
const ROWS: Room = Room { each_cpu: 1024, most: 8192 };

/// Bytes of the ring of events: some 40,000 of 72 bytes.
const RING: u32 = 4 << 20;

/// The running probe.
#[derive(Debug)]
pub struct Polls {
    loaded: Loaded,
    /// Selected CPUs; empty for all.
    wanted: Vec<u32>,
    /// Those that were online at the start.
    online: Vec<u32>,
}

/// Number of events that run the programs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventCounts {
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
    /// Went offline: counted up to then.
    pub gone: Vec<u32>,
    /// Came online: counted from then on.
    pub came: Vec<u32>,
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

    fn lost(&self) -> Result<u64, HostError> {
        let of = |cpu: &u32| Ok(cpu_row(*cpu, &self.loaded.value("cpus", *cpu)?).0.lost_count);
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
        let rows = ROWS.here()?;
        let sizes = [("events", if events { RING } else { 4096 }), ("napis", rows), ("irqs", rows)];
        let loaded = Loaded::load(&SPEC, &constants, &sizes)?;
        let (wanted, online) = (filter.cpus.clone(), online()?);
        Ok(Self { loaded, wanted, online })
    }

    /// Puts the programs into place. They count from [`Polls::begin`] on.
    pub fn attach(&mut self) -> Result<(), HostError> {
        self.loaded.attach()
    }

    /// Begins to count. Softirqs and interrupts in progress at this moment are not counted.
    pub fn begin(&self) -> Result<(), HostError> {
        self.loaded.begin()
    }

    /// A duty cycle begins: a softirq in progress counts from here on.
    pub fn begin_turn(&self) -> Result<(), HostError> {
        self.on_each_cpu(BEGIN);
        self.loaded.begin()
    }

    /// The duty cycle ends, also for a softirq in progress.
    pub fn end_turn(&self) -> Result<(), HostError> {
        self.loaded.pause()?;
        self.on_each_cpu(END);
        Ok(())
    }

    /// What made the programs run so far, on all CPUs.
    pub fn events(&self) -> Result<EventCounts, HostError> {
        let mut events = EventCounts::default();
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
            // On a CPU that goes offline nothing is in progress.
            let _ = self.loaded.run_on(program, cpu);
        }
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

    /// Which CPUs went offline or came online, as known now.
    pub fn plugged(&self) -> Plugged {
        let now = online().unwrap_or_else(|_| self.online.clone());
        let without = |of: &[u32], others: &[u32]| {
            of.iter().copied().filter(|cpu| !others.contains(cpu)).collect()
        };
        Plugged { gone: without(&self.online, &now), came: without(&now, &self.online) }
    }

    /// Passes the queued events to `each`.
    pub fn drain(&self, each: &mut dyn FnMut(timeline::Event)) -> Result<(), HostError> {
        self.loaded.drain("events", &mut |bytes| each(timeline::event(bytes)))
    }
}

fn online() -> Result<Vec<u32>, HostError> {
    Ok(Root::host().cpus("/sys/devices/system/cpu/online")?.0)
}
