//! Whose time is it? Each CPU's time by task, and in it the parts that hard interrupts and softirqs took.
//!
//! Tick accounting charges a whole tick to the task that the tick interrupts; with network load it errs by a factor of
//! two in either direction. Here every span is measured between tracepoints (`bpf/account.bpf.c`). Interrupt entry and
//! exit lie outside all tracepoints: [`calibrate`] estimates them per interrupt, and they are shown separately.
//!
//! This module reads; [`crate::steal`] turns the readings into the answer.

pub mod calibrate;
pub mod clock;
pub mod flow;
mod functions;
mod reading;
pub mod row;
mod spec;
pub mod spin;

use std::cell::RefCell;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::{Duration, Instant};

use rxpath_core::{CpuList, Warning};
use rxpath_host::read::procfs::stat;
use rxpath_host::{HostError, Root};

use crate::object::{Loaded, Sizes};
use crate::polls;
use crate::probe::Probe;
use crate::room::Room;
use crate::turns::{Around, Pace, PacketHooks};
use flow::Flows;
use functions::Functions;
pub use reading::Reading;
use row::{ChargedTask, CpuWindow, TaskKey};
pub(crate) use spec::SPEC;
use spec::{END, READ, TASK_ROW_BYTES};

/// Pairs of task and CPU.
const ROOM: u32 = 32_768;

/// The same where every window is read soon: those of one window alone.
const LIVE_TASKS: Room = Room { each_cpu: 8192, most: 24_576 };
const LIVE_CULPRITS: Room = Room { each_cpu: 4096, most: 8192 };

/// The maps that it writes.
const FLOW_MAPS: [&str; 2] = ["flows", "folded_flows"];

/// The program that runs for each packet.
const FLOWS: [&str; 1] = ["netif_receive_skb"];

/// Its approximate cost per packet: 0.15 us, measured on a small virtual machine.
const FLOWS_COST: Duration = Duration::from_nanos(200);

/// The running probe. Dropping it takes its programs out of the kernel.
#[derive(Debug)]
pub struct Account {
    loaded: Loaded,
    root: Root,
    cpus: Vec<u32>,
    /// CPUs that were online when counting began.
    online_at_start: CpuList,
    /// What was read and taken out of the kernel so far.
    taken: RefCell<Taken>,
    /// When sampling of flows was requested.
    flows: Option<LookedAt>,
    /// Whether a window lasts.
    is_counting: bool,
    /// What kept CPUs from ending their windows at the end of the last turn.
    left: Vec<Warning>,
    /// Rows of culprits at which those of tasks that are gone are removed.
    culprits_crowd: usize,
    /// Whether a reading has the tasks since the one before alone.
    is_live: bool,
    /// Those of the network that other softirqs run.
    functions: Functions,
}

/// The hook of flows, and how full their map is.
#[derive(Debug)]
struct LookedAt {
    hooks: PacketHooks,
    /// When the number of rows was asked for, and those that had been made by the time that all were taken out.
    asked: Instant,
    taken: u64,
}

/// Rows of all readings, and each CPU's last window. Of a live view those that no reading has yet.
#[derive(Debug, Default)]
struct Taken {
    tasks: BTreeMap<TaskKey, ChargedTask>,
    windows: HashMap<u32, CpuWindow>,
    /// Whether a reading ended windows, and failed before it had taken all of their rows.
    is_torn: bool,
    /// Rows of tasks at which those that are gone are looked for.
    crowd: usize,
    flows: Flows,
}

/// Rows of culprits at which the same is done: there is room for twice as many in the kernel.
const CULPRITS: usize = 8192;

const ONLINE: &str = "/sys/devices/system/cpu/online";

/// Rows of flows at which they are taken out of the kernel: half of those for which it has room.
const FLOW_ROWS: u64 = 4096;

/// From one question for the number of these rows to the next.
const FLOWS_AGAIN: Duration = Duration::from_millis(100);

/// So many rows are kept whether their tasks still live or not.
const CROWD: usize = 8192;

impl Probe for Account {
    fn loaded(&self) -> &Loaded {
        &self.loaded
    }

    fn lost(&self) -> Result<u64, HostError> {
        let of = |cpu: &u32| Ok(row::window(*cpu, &self.loaded.value("cpus", *cpu)?).1.lost());
        self.cpus.iter().map(of).sum()
    }
}

impl Account {
    /// Loads, attaches, and begins the window of each online CPU.
    ///
    /// **Errors** `Denied` without CAP_BPF and CAP_PERFMON, `Unsupported` on a kernel that lacks a required
    /// tracepoint or in a build without BPF.
    pub fn start() -> Result<Self, HostError> {
        Self::of(&Root::host().cpus(ONLINE)?, ROOM)
    }

    /// The same for a view that stays: with less room, and without flows. A reading has the tasks that ran since the one
    /// before it, see [`Reading::take_since`]: where processes are short, those of all time are many more.
    ///
    /// In the turns of [`polls::PollRows`] its programs count polls too: one program at a tracepoint costs less than two.
    ///
    /// **Errors** as [`Account::start`].
    pub fn live() -> Result<Self, HostError> {
        let (tasks, culprits) = (LIVE_TASKS.here()?, LIVE_CULPRITS.here()?);
        let [first, second] = FLOW_MAPS;
        let mut sizes = vec![("tasks", tasks), ("culprits", culprits), (first, 1), (second, 1)];
        sizes.extend(polls::sizes()?);
        let account = Self::sized(&Root::host().cpus(ONLINE)?, &sizes, true)?;
        Ok(Self { culprits_crowd: culprits as usize / 2, is_live: true, ..account })
    }

    /// The same for these CPUs only, with room for this many rows, pairs of task and CPU.
    ///
    /// **Errors** as [`Account::start`].
    pub fn of(cpus: &CpuList, rows: u32) -> Result<Self, HostError> {
        let mut sizes = vec![("tasks", rows)];
        sizes.extend(polls::WITHOUT);
        Self::sized(cpus, &sizes, false)
    }

    fn sized(cpus: &CpuList, sizes: Sizes<'_>, has_polls: bool) -> Result<Self, HostError> {
        let root = Root::host();
        crate::can::can_time_softirqs(&root).require("account CPU time")?;
        let functions = functions::of_network(&root);
        let mut constants: Vec<u8> =
            functions.addresses().iter().flat_map(|address| address.to_ne_bytes()).collect();
        // And a row of nothing behind them.
        constants.resize(constants.len() + TASK_ROW_BYTES, 0);
        constants.extend(u64::from(has_polls).to_ne_bytes());
        let mut loaded = Loaded::load(&SPEC, &constants, sizes)?;
        loaded.attach_some(&always())?;
        let mut account = Self {
            loaded,
            cpus: cpus.0.clone(),
            online_at_start: root.cpus(ONLINE)?,
            root,
            taken: RefCell::default(),
            flows: None,
            is_counting: true,
            left: Vec::new(),
            culprits_crowd: CULPRITS,
            is_live: false,
            functions,
        };
        account.begin_turn();
        Ok(account)
    }

    /// Puts the programs into place again, for another turn. They count from [`Account::begin_turn`] on.
    ///
    /// **Errors** when the kernel refuses a required one: then none is in place.
    pub fn attach(&mut self) -> Result<(), HostError> {
        self.loaded.attach_some(&always()).inspect_err(|_| self.loaded.detach_some(&always()))
    }

    /// The window of each CPU begins here. What the time before it had begun counts from here on.
    pub fn begin_turn(&mut self) {
        self.is_counting = true;
        for cpu in &self.cpus {
            // A CPU that goes offline now is reported at the next reading.
            let _ = self.loaded.run_on(READ, *cpu);
        }
    }

    /// The window of each CPU ends here, and none begins until [`Account::begin_turn`]: readings are up to now.
    pub fn end_turn(&mut self) -> Result<(), HostError> {
        self.is_counting = false;
        (_, self.left) = self.end_windows(END)?;
        Ok(())
    }

    /// Takes the programs from their hooks, after a turn: the last first, see [`crate::turns`].
    pub fn detach(&mut self) {
        let mut names = always();
        names.reverse();
        self.loaded.detach_some(&names);
    }

    /// Switches between tasks that were counted so far.
    pub fn switches(&self) -> Result<u64, HostError> {
        let of = |cpu: &u32| Ok(row::switches(&self.loaded.value("cpus", *cpu)?));
        self.cpus.iter().map(of).sum()
    }

    /// Samples the flows of packets in taken softirqs from here on, duty-cycled at high rates; see [`Account::note`].
    pub fn look_at_flows(&mut self) -> Result<(), HostError> {
        let around = Around { begin: |_| Ok(()), received };
        let mut hooks = PacketHooks::new(&FLOWS, FLOWS_COST, Pace::ByTurns, around);
        hooks.attach(&mut self.loaded, &self.cpus)?;
        self.flows = Some(LookedAt { hooks, asked: Instant::now(), taken: 0 });
        Ok(())
    }

    /// To be called about 50 times a second while flows are sampled.
    ///
    /// **Errors** what ended the turns: what was counted before stays.
    pub fn note(&mut self) -> Result<(), HostError> {
        let Some(flows) = &mut self.flows else { return Ok(()) };
        flows.hooks.take(flows.hooks.due(), &mut self.loaded, &self.cpus)?;
        if flows.asked.elapsed() < FLOWS_AGAIN {
            return Ok(());
        }
        flows.asked = Instant::now();
        let made = of_cpus(&self.loaded, &self.cpus)?.iter().map(|(_, made)| made).sum();
        if made >= flows.taken + FLOW_ROWS {
            flows.taken = made;
            self.take_flows()?;
        }
        Ok(())
    }

    /// Takes the rows of all flows out of the kernel, so that there is room for others.
    fn take_flows(&self) -> Result<(), HostError> {
        let kept = &mut self.taken.borrow_mut().flows;
        for map in FLOW_MAPS {
            for (key, _) in self.loaded.entries(map)? {
                if let Some(value) = self.loaded.take(map, &key)? {
                    kept.keep(flow::flow(&key, &value));
                }
            }
        }
        Ok(())
    }

    /// How long packets were sampled.
    pub fn flows_looked(&self) -> Duration {
        self.flows.as_ref().map_or(Duration::ZERO, |flows| flows.hooks.looked())
    }

    /// Whether this program runs only while packets are sampled.
    pub fn is_by_turns(program: &str) -> bool {
        FLOWS[0] == program
    }

    /// Ends the window of each CPU where it stands, running slices and softirqs included, and reads everything.
    ///
    /// **Cost** an interrupt for each CPU, and about 1 µs for each task that ran.
    pub fn read(&self) -> Result<Reading, HostError> {
        // Before windows end: their rows must be taken then.
        let ticks = self.root.parsed(stat::PATH, stat::parse)?;
        let mut reading = Reading { ticks, ..Reading::default() };
        let was_torn = std::mem::replace(&mut self.taken.borrow_mut().is_torn, true);
        // By CPU: the half that its slices are charged to from here on; none in a pause.
        let mut charged = None;
        if self.is_counting {
            let (halves, warnings) = self.end_windows(READ)?;
            (charged, reading.warnings) = (Some(halves), warnings);
        } else {
            reading.warnings.clone_from(&self.left);
        }
        let taken = &mut *self.taken.borrow_mut();
        reading.warnings.extend(self.came_online());
        reading.warnings.extend(self.functions.not_separable());
        reading.cpus = self.cpus.iter().filter_map(|cpu| taken.windows.get(cpu)).copied().collect();
        // What a failed reading left is in the half that is charged now: once, both are taken.
        let charged = charged.as_ref().filter(|_| !was_torn);
        let ran = self.take_tasks(charged, &mut taken.tasks)?;
        taken.is_torn = false;
        let entries = self.loaded.entries("culprits")?;
        reading.culprits = entries.iter().map(|(key, value)| row::culprit(key, value)).collect();
        let mut flows = self.loaded.entries(FLOW_MAPS[0])?;
        flows.extend(self.loaded.entries(FLOW_MAPS[1])?);
        let flows = flows.iter().map(|(key, value)| flow::flow(key, value));
        reading.flows = taken.flows.with(flows);
        reading.tasks = if self.is_live {
            std::mem::take(&mut taken.tasks).into_values().collect()
        } else {
            taken.tasks.values().cloned().collect()
        };
        // What has just been read stays in this reading: it is the next one that does without.
        if taken.tasks.len() > taken.crowd.max(CROWD) || entries.len() > self.culprits_crowd {
            // The reading has the only copy of its rows: it does not fail any more.
            if let Err(error) = self.forget_the_gone(&mut taken.tasks, &ran, &entries) {
                let text = format!("rows of tasks that are gone stay in a map: {error}");
                reading.warnings.push(Warning::new("rows-not-removed", text));
            }
            taken.crowd = 2 * taken.tasks.len();
        }
        Ok(reading)
    }

    /// Ends the window of each CPU. Gives the half that each charges its slices to then, and what kept one from ending.
    fn end_windows(&self, program: &str) -> Result<(HashMap<u32, u32>, Vec<Warning>), HostError> {
        let taken = &mut *self.taken.borrow_mut();
        let (mut halves, mut warnings) = (HashMap::new(), Vec::new());
        for cpu in &self.cpus {
            if let Err(error) = self.loaded.run_on(program, *cpu) {
                let text = format!("CPU {cpu} was counted for part of the window only: {error}");
                let why = "it went offline while it was counted";
                warnings.push(Warning::new("cpu-not-read", text).because(why));
                continue;
            }
            let (half, window) = row::window(*cpu, &self.loaded.value("cpus", *cpu)?);
            halves.insert(*cpu, half);
            taken.windows.insert(*cpu, window);
        }
        Ok((halves, warnings))
    }

    /// CPUs that are online now and were not at the start: nothing of them is counted.
    fn came_online(&self) -> Option<Warning> {
        let online = self.root.cpus(ONLINE).ok()?;
        let new: Vec<u32> =
            online.0.into_iter().filter(|cpu| !self.online_at_start.0.contains(cpu)).collect();
        (!new.is_empty()).then(|| {
            let text = format!("CPUs {} are not counted", CpuList(new));
            Warning::new("cpu-came", text).because("they came online after counting began")
        })
    }

    /// Takes the rows up to the ends of the windows out of the kernel: of each CPU the half that is no longer charged.
    /// Room for tasks is then needed only for those of one window. Gives which tasks had any.
    fn take_tasks(
        &self,
        charged: Option<&HashMap<u32, u32>>,
        tasks: &mut BTreeMap<TaskKey, ChargedTask>,
    ) -> Result<HashSet<TaskKey>, HostError> {
        let mut ran = HashSet::new();
        self.loaded.each("tasks", &mut |key, value| {
            let (half, row) = row::task(key, value);
            // The rows of a CPU that is offline wait until it can be asked.
            let is_open = |charged: &HashMap<u32, u32>| {
                charged.get(&row.key.cpu).is_none_or(|charged| *charged == half)
            };
            if charged.is_some_and(is_open) {
                return Ok(());
            }
            self.loaded.remove("tasks", key)?;
            ran.insert(row.key);
            match tasks.entry(row.key) {
                Entry::Occupied(mut before) => before.get_mut().join(row),
                Entry::Vacant(place) => drop(place.insert(row)),
            }
            Ok(())
        })?;
        Ok(ran)
    }

    /// Drops the rows of tasks that did not run in this window and are gone: they will never run again.
    fn forget_the_gone(
        &self,
        tasks: &mut BTreeMap<TaskKey, ChargedTask>,
        ran: &HashSet<TaskKey>,
        culprits: &[(Vec<u8>, Vec<u8>)],
    ) -> Result<(), HostError> {
        let mut alive: HashMap<u32, bool> = HashMap::new();
        let mut is_gone = |key: &TaskKey| {
            let path = || self.root.path(&format!("/proc/{}", key.pid)).exists();
            key.pid != 0 && !ran.contains(key) && !*alive.entry(key.pid).or_insert_with(path)
        };
        tasks.retain(|key, _| !is_gone(key));
        for (key, value) in culprits {
            if is_gone(&row::culprit(key, value).key.victim) {
                self.loaded.remove("culprits", key)?;
            }
        }
        Ok(())
    }
}

/// The programs that always count.
fn always() -> Vec<&'static str> {
    let hooked = SPEC.programs.iter().filter(|program| program.hook.is_some());
    hooked.map(|program| program.name).filter(|name| !FLOWS.contains(name)).collect()
}

/// Packets of each CPU at which flows were looked at.
fn received(loaded: &Loaded, cpus: &[u32]) -> Result<Vec<u64>, HostError> {
    Ok(of_cpus(loaded, cpus)?.into_iter().map(|(received, _)| received).collect())
}

/// Packets of each CPU at which flows were looked at, and rows of flows that were made for them.
fn of_cpus(loaded: &Loaded, cpus: &[u32]) -> Result<Vec<(u64, u64)>, HostError> {
    cpus.iter().map(|cpu| Ok(row::looked_at(&loaded.value("cpus", *cpu)?))).collect()
}
