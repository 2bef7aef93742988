//! How long packets take from one stage to the next: receive path entry, socket, application.

pub mod hashed;
pub mod ports;
mod read_hook;
mod row;

use std::time::{Duration, Instant};

use rxpath_core::SortFew;
use rxpath_core::measured::{ProbeCost, StageName, StageTimes};
use rxpath_host::{HostError, Root};

use crate::account::clock::monotonic_ns;
use crate::bytes::Fields;
use crate::cost::{COSTS, PartMeter};
use crate::filter::Filter;
use crate::object::{
    Loaded, MapSpec, ObjectSpec, ProgramSpec, WANTED, compiled, map, program, unhooked,
};
use crate::probe::Probe;
pub use crate::turns::Pace;
use crate::turns::{Around, PacketHooks, TurnStep};
use hashed::HashedPackets;
use ports::PortPackets;
use read_hook::ReadHook;
use row::{add_row, lost, outlier};

pub(crate) static SPEC: ObjectSpec = ObjectSpec {
    per_cpu_maps: &["cpus"],
    maps: &maps(56),
    programs: PROGRAMS,
    ..compiled!("stages")
};

/// The same for [`Pace::Every`]: more packets of a socket are followed one by one.
pub(crate) static SPEC_EVERY: ObjectSpec = ObjectSpec {
    per_cpu_maps: &["cpus"],
    maps: &maps(2000),
    programs: PROGRAMS,
    ..compiled!("stages_every")
};

/// Those of an object that follows so many packets of a socket at a time, `FOLLOWED` of the program.
const fn maps(followed: u32) -> [MapSpec; 8] {
    [
        ports::MAP,
        map("cpus", 4, 12160),
        map("turn", 4, 8),
        map("samples", 16, 48),
        map("waiting", 4, 48 + 16 * followed),
        map("reads_since", 4, 8),
        WANTED,
        COSTS,
    ]
}

const PROGRAMS: &[ProgramSpec] = &[
    program("net/netif_receive_skb", "latency of stages", true),
    program("napi/napi_poll", "latency of stages: packets could be confused with each other", true),
    // Since 6.3 (40e0b0908142).
    program("sock/sk_data_ready", "latency of stages", true),
    program("sock/sock_recv_length", "latency from socket to application", false),
    // An iterator over sockets' storages, since 5.9 (5ce6e77c7edf).
    unhooked(read_hook::STILL_FOLLOWED, "when reads need no more watching", false),
];

/// The hooks that run for each packet. A packet's entry goes last, so that the others are there when it is noted.
const FOR_EACH_PACKET: [&str; 3] = ["napi_poll", "sk_data_ready", "netif_receive_skb"];

/// What the hooks of a packet take together; measured, 0.3 to 0.6 us on a small virtual machine.
const COST: Duration = Duration::from_nanos(500);

/// A socket's storage: `struct bpf_local_storage` and one element of it, as kmalloc rounds them up (include/linux/
/// bpf_local_storage.h, 6.18).
const fn storage_bytes(pace: Pace) -> u64 {
    192 + if matches!(pace, Pace::Every) { 32 << 10 } else { 1 << 10 }
}

/// The running probe.
#[derive(Debug)]
pub struct Stages {
    loaded: Loaded,
    pace: Pace,
    cpus: Vec<u32>,
    hooks: PacketHooks,
    reads: ReadHook,
    meter: Option<Meter>,
    stopped: Option<HostError>,
}

/// For how long hooks were in place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InPlace {
    /// Those of packets.
    pub packets: Duration,
    /// That of reads.
    pub reads: Duration,
}

impl InPlace {
    /// Of this program.
    pub fn of(&self, program: &str) -> Duration {
        // The walks run while reads are looked at.
        let of_reads = [read_hook::NAME, read_hook::STILL_FOLLOWED];
        if of_reads.contains(&program) { self.reads } else { self.packets }
    }

    /// From then to now.
    #[must_use]
    pub fn since(&self, then: &Self) -> Self {
        Self {
            packets: self.packets.saturating_sub(then.packets),
            reads: self.reads.saturating_sub(then.reads),
        }
    }
}

/// What measures the hooks, and for how long they had been in place when it began and when it stopped.
#[derive(Debug)]
struct Meter {
    part: PartMeter,
    begun: InPlace,
    stopped: Option<InPlace>,
}

impl Probe for Stages {
    fn loaded(&self) -> &Loaded {
        &self.loaded
    }

    fn lost(&self) -> Result<u64, HostError> {
        let of = |cpu: &u32| Ok(lost(&self.loaded.value("cpus", *cpu)?));
        self.cpus.iter().map(of).sum()
    }

    /// That of the sockets' storages too. **Cost** a walk over these.
    fn map_bytes(&self) -> u64 {
        let storages = read_hook::storages(&self.loaded).map_or(0, |all| all.len() as u64);
        self.loaded.map_bytes() + storages * storage_bytes(self.pace)
    }
}

impl Stages {
    /// Loads, attaches, and begins to count.
    pub fn start(filter: &Filter, pace: Pace) -> Result<Self, HostError> {
        Self::load(filter, pace)?.started()
    }

    /// Puts the programs into place and begins to count.
    pub fn started(mut self) -> Result<Self, HostError> {
        self.attach()?;
        self.begin()?;
        Ok(self)
    }

    /// Loads without attaching.
    pub fn load(filter: &Filter, pace: Pace) -> Result<Self, HostError> {
        let root = Root::host();
        crate::can_run(&root).require("trace the latency of stages")?;
        let chosen = ports::chosen(&root);
        let words = [filter.ifindex, filter.netns, u32::from(filter.port), chosen];
        let mut constants: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        constants.extend(filter.owner());
        let spec = if pace == Pace::Every { &SPEC_EVERY } else { &SPEC };
        let sizes = [filter.room(), (ports::MAP.name, ports::ROWS.here()?)];
        let loaded = Loaded::load(spec, &constants, &sizes)?;
        filter.admit(&loaded)?;
        let mut cpus = root.cpus("/sys/devices/system/cpu/online")?.0;
        cpus.retain(|cpu| filter.cpus.is_empty() || filter.cpus.contains(cpu));
        let around = Around { begin: begin_turn, received };
        let hooks = PacketHooks::new(&FOR_EACH_PACKET, COST, pace, around);
        let reads = ReadHook::default();
        Ok(Self { loaded, pace, cpus, hooks, reads, meter: None, stopped: None })
    }

    /// Puts the programs into place. They count from [`Stages::begin`] on.
    pub fn attach(&mut self) -> Result<(), HostError> {
        self.reads.attach(&mut self.loaded)?;
        // Far in the future: before `begin` no packet is of a turn.
        put_turn(&self.loaded, u64::MAX)?;
        self.hooks.attach(&mut self.loaded, &self.cpus)
    }

    /// Begins to count: what is received from now on.
    pub fn begin(&mut self) -> Result<(), HostError> {
        self.hooks.begin(&self.loaded, &self.cpus)?;
        // The time of tracing packets is counted from 0 again.
        let in_place = self.in_place();
        if let Some(meter) = &mut self.meter {
            meter.begun = in_place;
        }
        Ok(())
    }

    /// Measures what the hooks cost, in the first part of a window of this length.
    pub fn measure_cost(&mut self, window: Duration) {
        let part = PartMeter::start(&[&self.loaded], window);
        self.meter = Some(Meter { part, begun: self.in_place(), stopped: None });
    }

    /// To be called some fifty times a second: begins and ends turns.
    pub fn note(&mut self) {
        let in_place = self.in_place();
        if let Some(meter) = &mut self.meter
            && meter.stopped.is_none()
            && meter.part.note()
        {
            meter.stopped = Some(in_place);
        }
        self.take(self.hooks.due());
    }

    /// With [`Pace::OnCall`]: a turn begins.
    pub fn begin_turn(&mut self) {
        self.take(TurnStep::Begin);
    }

    /// With [`Pace::OnCall`]: the turn ends. The hook of reads stays until all is read or [`Stages::give_up_reads`].
    pub fn end_turn(&mut self) {
        self.take(TurnStep::End);
    }

    /// Takes the hook of reads away after a turn, although something may be unread.
    pub fn give_up_reads(&mut self) {
        if !self.is_looking() {
            self.reads.detach(&mut self.loaded);
        }
    }

    /// When [`Stages::note`] looks after a turn whether all is read.
    pub fn reads_due(&self) -> Option<Instant> {
        self.reads.due().filter(|_| !self.is_looking())
    }

    /// Packets that were looked at.
    pub fn packets(&self) -> Result<u64, HostError> {
        Ok(received(&self.loaded, &self.cpus)?.iter().sum())
    }

    /// Packets that became ready while packets were looked at, by port, since the start.
    pub fn ports(&self) -> Result<Vec<PortPackets>, HostError> {
        let rows = self.loaded.entries(ports::MAP.name)?;
        Ok(rows.iter().map(|(key, value)| ports::row(key, value)).collect())
    }

    fn take(&mut self, step: TurnStep) {
        if self.stopped.is_none()
            && let Err(error) = self.turn(step)
        {
            // What was counted stays.
            self.stopped = Some(error);
        }
    }

    fn turn(&mut self, step: TurnStep) -> Result<(), HostError> {
        // What is received in a turn may be read at once.
        if step == TurnStep::Begin {
            self.reads.attach(&mut self.loaded)?;
        }
        let turned = self.hooks.take(step, &mut self.loaded, &self.cpus);
        if !self.hooks.is_looking() {
            self.reads.detach_when_read(&mut self.loaded);
        }
        turned
    }

    /// Whether packets are looked at now: a turn lasts, or each of them is.
    pub fn is_looking(&self) -> bool {
        self.hooks.is_looking()
    }

    /// For how long packets were looked at, since the start.
    pub fn looked(&self) -> Duration {
        self.hooks.looked()
    }

    /// For how long hooks were in place, since the start.
    pub fn in_place(&self) -> InPlace {
        InPlace { packets: self.hooks.looked(), reads: self.reads.in_place() }
    }

    /// Why the turns ended early, when they did.
    pub fn stopped(&self) -> Option<&HostError> {
        self.stopped.as_ref()
    }

    /// What the hooks cost from the measurement's beginning on, each by the time that it was in place.
    pub fn cost(&mut self) -> ProbeCost {
        let now = self.in_place();
        let Some(meter) = &mut self.meter else { return ProbeCost::default() };
        let cost = meter.part.stop();
        let (whole, stopped) = (now.since(&meter.begun), meter.stopped.unwrap_or(now));
        let measured = stopped.since(&meter.begun);
        let factor = |program: &str| match measured.of(program).as_secs_f64() {
            seconds if seconds > 0.0 => whole.of(program).as_secs_f64() / seconds,
            _ => 1.0,
        };
        ProbeCost { map_bytes: self.map_bytes(), ..cost.scaled(factor) }
    }

    /// Both stages since the start, all CPUs together, and the packets that were looked at, of each CPU by their hash.
    pub fn read(&self) -> Result<(Vec<StageTimes>, Vec<HashedPackets>), HostError> {
        let names = [StageName::ReceiveToSocket, StageName::SocketToRead];
        let mut stages = names.map(|stage| StageTimes { stage, ..StageTimes::default() });
        let (mut sums, mut packets) = ([0u64; 2], Vec::new());
        for cpu in &self.cpus {
            let row = self.loaded.value("cpus", *cpu)?;
            add_row(&mut stages, &mut sums, &row);
            packets.push(hashed::row(*cpu, &row));
        }
        for (stage, sum) in stages.iter_mut().zip(sums) {
            stage.mean_ns = sum as f64 / stage.latencies_count.max(1) as f64;
        }
        for (key, value) in self.loaded.entries("samples")? {
            let (stage, outlier) = outlier(&key, &value);
            if let Some(stage) = stages.get_mut(stage)
                && self.cpus.contains(&outlier.cpu)
            {
                stage.outliers.push(outlier);
            }
        }
        let unread = read_hook::storages(&self.loaded)?;
        stages[1].unread_count = unread.iter().map(|socket| socket.packets).sum();
        let oldest_ns = unread.iter().filter_map(|socket| socket.oldest_ns).min();
        stages[1].longest_unread_ns = oldest_ns.map_or(0, |ns| monotonic_ns().saturating_sub(ns));
        for stage in &mut stages {
            stage.outliers.sort_few_by_key(|outlier| std::cmp::Reverse(outlier.latency_ns));
        }
        Ok((stages.into(), packets))
    }
}

/// What a CPU noted before belongs to another turn.
fn begin_turn(loaded: &Loaded) -> Result<(), HostError> {
    put_turn(loaded, monotonic_ns())
}

fn put_turn(loaded: &Loaded, begun_ns: u64) -> Result<(), HostError> {
    loaded.put("turn", &0u32.to_ne_bytes(), &begun_ns.to_ne_bytes())
}

/// Packets of each CPU since the start.
fn received(loaded: &Loaded, cpus: &[u32]) -> Result<Vec<u64>, HostError> {
    let of = |cpu: &u32| {
        let value = loaded.value("cpus", *cpu)?;
        Ok(Fields::of(&value).u64())
    };
    cpus.iter().map(of).collect()
}
