//! What the receive side of each CPU did: interrupts, softirq runs, NAPI polls with their packets.
//!
//! Aggregated in the kernel (`bpf/polling.h`); on request each event too, through a ring buffer whose losses are
//! counted. [`Polls`] has programs of its own (`bpf/polls.bpf.c`). [`PollRows`] reads what those of the account count.

mod row;
mod rows;
pub mod timeline;

use rxpath_core::measured::{IrqLine, NapiPolls};
use rxpath_host::{HostError, Root};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cost::COSTS;
use crate::filter::Filter;
use crate::object::{Loaded, ObjectSpec, compiled, map, program};
use crate::probe::Probe;

pub use row::{CpuPolls, Passes, SOFTIRQS, SoftirqRuns};
pub use rows::PollRows;
pub(crate) use rows::{BEGIN, END, LINES, NAPIS, POLLED, WITHOUT, sizes};

const IRQS: &str = "device interrupts, and the time between them";
const OTHERS: &str = "interrupts of no device (timer, RPS) and their time";

pub(crate) static SPEC: ObjectSpec = ObjectSpec {
    per_cpu_maps: &[POLLED.name],
    maps: &[POLLED, NAPIS, LINES, map("events", 0, 0), COSTS],
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
    ],
    ..compiled!("polls")
};

/// Bytes of the ring of events: some 40,000 of 72 bytes.
const RING: u32 = 4 << 20;

/// The running probe.
#[derive(Debug)]
pub struct Polls {
    loaded: Loaded,
    rows: PollRows,
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
        self.rows.lost(&self.loaded)
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
        let [napis, lines] = sizes()?;
        let ring = ("events", if events { RING } else { 4096 });
        let loaded = Loaded::load(&SPEC, &constants, &[ring, napis, lines])?;
        Ok(Self { loaded, rows: PollRows::of(filter.cpus.clone())? })
    }

    /// Puts the programs into place. They count from [`Polls::begin`] on.
    pub fn attach(&mut self) -> Result<(), HostError> {
        self.loaded.attach()
    }

    /// Begins to count. Softirqs and interrupts in progress at this moment are not counted.
    pub fn begin(&self) -> Result<(), HostError> {
        self.loaded.begin()
    }

    /// Reads everything since the start.
    pub fn read(&self) -> Result<PollsReading, HostError> {
        self.rows.read(&self.loaded)
    }

    /// Which CPUs went offline or came online, as known now.
    pub fn plugged(&self) -> Plugged {
        self.rows.plugged()
    }

    /// Passes the queued events to `each`.
    pub fn drain(&self, each: &mut dyn FnMut(timeline::Event)) -> Result<(), HostError> {
        self.loaded.drain("events", &mut |bytes| each(timeline::event(bytes)))
    }
}
