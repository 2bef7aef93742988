//! All probes of the receive path together: runs, drops, latencies, and the cost of tracing itself.

use std::time::{Duration, Instant};

use rxpath_core::measured::{IrqLine, NapiPolls, ProbeCost, StageTimes};
use rxpath_core::{CpuList, Warning};
use rxpath_host::HostError;
use rxpath_host::read::process::ProcessId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cost::{PartMeter, own_cpu};
use crate::devices::{self, DevicePolls, NapiInstance};
use crate::drops::{Drops, SkbDrop};
use crate::filter::Filter;
use crate::object::ProgramState;
use crate::polls::{CpuPolls, Plugged, Polls};
use crate::probe::{self, Probe};
use crate::queues::{SocketQueue, SocketQueues, Waited};
use crate::squeezed::Squeezed;
use crate::stages::{Pace, Stages};

/// Time between two questions for the sockets of a process.
const ASK_AGAIN: Duration = Duration::from_millis(200);

/// What is traced in addition to softirqs and polls.
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TracePart {
    /// Why and where packets are dropped: one hook per drop.
    Drops,
    /// Stage latencies: two hooks per packet, one per poll and one per read; duty-cycled at high packet rates.
    Stages,
    /// Data that waits in sockets: all sockets are scanned from time to time.
    Sockets,
}

/// A requested part: it runs, or it could not be started. None for one that was not requested.
type Asked<T> = Option<Result<T, HostError>>;

/// The running probes.
#[derive(Debug)]
pub struct TraceProbes {
    polls: Polls,
    drops: Asked<Drops>,
    stages: Asked<Stages>,
    queues: Asked<SocketQueues>,
    filter: Filter,
    /// The traced process, until it exits: another process may then get its pid.
    process: Option<ProcessId>,
    /// When the process's sockets were last listed.
    asked: Instant,
    begun: Instant,
    squeezed: Squeezed,
    meter: PartMeter,
    cpu_before: Duration,
}

/// Everything since the probes began.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TraceReading {
    /// Time since the probes began.
    pub duration_s: f64,
    /// Each CPU.
    pub cpus: Vec<CpuTrace>,
    /// Each device, the most packets first.
    #[serde(default)]
    pub devices: Vec<DevicePolls>,
    /// Each NAPI on each CPU, the most packets first.
    pub napis: Vec<NapiPolls>,
    /// Each interrupt line on each CPU.
    pub irqs: Vec<IrqLine>,
    /// Drops, the most packets first.
    pub drops: Vec<SkbDrop>,
    /// Latency of stages.
    pub stages: Vec<StageTimes>,
    /// How long packets were traced for it: the whole time, or duty-cycled where each packet would cost too much.
    #[serde(default)]
    pub stages_looked_s: f64,
    /// Sockets with queued data, the fullest first.
    #[serde(default)]
    pub sockets: Vec<SocketQueue>,
    /// Scans of UDP sockets.
    #[serde(default)]
    pub socket_looks_count: u64,
    /// Scans of TCP sockets.
    #[serde(default)]
    pub tcp_socket_looks_count: u64,
    /// Parts that were not traced because they were not requested: their lists are empty for this reason.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub left_out: Vec<TracePart>,
    /// The programs, and what is not known without those that are missing.
    pub probes: Vec<ProgramState>,
    /// What the probes cost.
    pub probe_cost: ProbeCost,
}

/// One CPU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CpuTrace {
    /// What it did.
    #[serde(flatten)]
    pub polls: CpuPolls,
    /// Times that NET_RX ended with work left, its budget or time used up. **Source** `/proc/net/softnet_stat`; none
    /// where it could not be read.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub time_squeeze_count: Option<u64>,
}

impl TraceProbes {
    /// Starts every probe that this kernel takes, `without` these parts, for about `window`. Counting begins when the
    /// last program is in place.
    ///
    /// **Errors** when the probe of softirqs can't run; the others leave a gap and a warning.
    pub fn start(
        filter: &Filter,
        events: bool,
        without: &[TracePart],
        pace: Pace,
        window: Duration,
    ) -> Result<Self, HostError> {
        let process = filter.process.map(|pid| ProcessId::of(pid as i32)).transpose()?;
        let wanted = |part| !without.contains(&part);
        let mut polls = Polls::load(filter, events)?;
        let drops = wanted(TracePart::Drops).then(|| Drops::load(filter));
        let stages = wanted(TracePart::Stages).then(|| Stages::load(filter, pace));
        let queues = wanted(TracePart::Sockets).then(|| SocketQueues::start(filter));
        polls.attach()?;
        let drops = and_then(drops, Drops::attach);
        let stages =
            and_then(stages, |stages| stages.attach().map(|()| stages.measure_cost(window)));
        let mut objects = vec![polls.loaded()];
        objects.extend(running(drops.as_ref()).map(Probe::loaded));
        objects.extend(running(queues.as_ref()).map(Probe::loaded));
        let meter = PartMeter::start(&objects, window);
        polls.begin()?;
        let drops = and_then(drops, |drops| drops.begin());
        let stages = and_then(stages, Stages::begin);
        Ok(Self {
            squeezed: Squeezed::now(),
            filter: filter.clone(),
            process,
            asked: Instant::now(),
            polls,
            drops,
            stages,
            queues,
            begun: Instant::now(),
            meter,
            cpu_before: own_cpu(),
        })
    }

    /// The probe of softirqs, for its events.
    pub fn polls(&self) -> &Polls {
        &self.polls
    }

    /// To be called about 50 times a second: the cost is measured in the first part of the window only, stages are
    /// duty-cycled, and a traced process may open more sockets.
    pub fn note(&mut self) {
        self.meter.note();
        if let Some(Ok(stages)) = &mut self.stages {
            stages.note();
        }
        if self.process.is_some() && self.asked.elapsed() >= ASK_AGAIN {
            self.asked = Instant::now();
            self.process = self.process.filter(ProcessId::is_alive);
            if self.process.is_none() {
                return;
            }
            // The polls select no sockets.
            for part in self.parts().into_iter().skip(1) {
                // A process that ended opens no more sockets; its earlier sockets stay selected.
                let _ = self.filter.admit(part.loaded());
            }
        }
    }

    /// What could not be started, as warnings.
    pub fn warnings(&self) -> Vec<Warning> {
        let mut warnings = Vec::new();
        for (what, error) in [
            ("drops", refused(self.drops.as_ref())),
            ("the latency of stages", refused(self.stages.as_ref())),
            ("the queues of sockets", refused(self.queues.as_ref())),
        ] {
            warnings.extend(
                error.map(|e| Warning::new("probe-missing", format!("not traced: {what}: {e}"))),
            );
        }
        let Plugged { gone, came } = self.polls.plugged();
        let plugged = [
            ("cpu-gone", gone, "they went offline: only the time before that is counted"),
            (
                "cpu-came",
                came,
                "they came online: only polls and interrupts after that are counted",
            ),
        ];
        warnings.extend(plugged.into_iter().filter(|(_, cpus, _)| !cpus.is_empty()).map(
            |(code, cpus, why)| {
                let text = format!("CPUs {} were not online for the whole window", CpuList(cpus));
                Warning::new(code, text).because(why)
            },
        ));
        let stopped = running(self.stages.as_ref()).and_then(Stages::stopped);
        warnings.extend(stopped.map(|error| {
            let text = format!("stage latency was traced for part of the window only: {error}");
            Warning::new("probe-missing", text)
        }));
        warnings.extend(probe::missing(&probe::programs(&self.parts())));
        warnings
    }

    fn left_out(&self) -> Vec<TracePart> {
        let parts = [
            (TracePart::Drops, self.drops.is_none()),
            (TracePart::Stages, self.stages.is_none()),
            (TracePart::Sockets, self.queues.is_none()),
        ];
        parts.into_iter().filter(|(_, is_out)| *is_out).map(|(part, _)| part).collect()
    }

    /// Those that run.
    fn parts(&self) -> Vec<&dyn Probe> {
        let mut parts: Vec<&dyn Probe> = vec![&self.polls];
        parts.extend(running(self.drops.as_ref()).map(|probe| probe as &dyn Probe));
        parts.extend(running(self.stages.as_ref()).map(|probe| probe as &dyn Probe));
        parts.extend(running(self.queues.as_ref()).map(|probe| probe as &dyn Probe));
        parts
    }

    /// Reads everything since the start. It may be called again and again; times and counts are cumulative.
    pub fn read(&mut self) -> Result<TraceReading, HostError> {
        let duration = self.begun.elapsed();
        let looked = running(self.stages.as_ref()).map_or(Duration::ZERO, Stages::looked);
        let mut polls = self.polls.read()?;
        let napi = |row: &NapiPolls| NapiInstance {
            netns: row.netns,
            ifindex: row.ifindex,
            id: row.napi_id,
        };
        devices::name_queues(polls.napis.iter_mut().map(|row| (napi(row), &mut row.queue)));
        let now = Squeezed::now();
        let squeeze = |cpu: u32| now.since(&self.squeezed, cpu);
        let cpus: Vec<CpuTrace> = polls
            .cpus
            .into_iter()
            .map(|cpu| CpuTrace { time_squeeze_count: squeeze(cpu.cpu), polls: cpu })
            .collect();
        let drops = running(self.drops.as_ref()).map(Drops::read).transpose()?.unwrap_or_default();
        let stages =
            running(self.stages.as_ref()).map(Stages::read).transpose()?.unwrap_or_default().0;
        let waited = match self.queues.as_mut().map(|asked| asked.as_mut().map(SocketQueues::read))
        {
            Some(Ok(Ok(waited))) => waited,
            Some(Ok(Err(error))) => {
                // The namespace was removed, or it could not be entered: report what is missing.
                self.queues = Some(Err(error));
                Waited::default()
            }
            Some(Err(_)) | None => Waited::default(),
        };
        let reader = own_cpu().saturating_sub(self.cpu_before) + waited.cpu;
        let mut cost = self.meter.stop().over(duration, self.polls.map_bytes(), reader);
        if let Some(Ok(stages)) = &mut self.stages {
            cost = cost.plus(stages.cost());
        }
        let parts = self.parts();
        cost.map_bytes = probe::map_bytes(&parts);
        cost.lost_count = probe::lost(&parts)?;
        let probes = probe::programs(&parts);
        Ok(TraceReading {
            duration_s: duration.as_secs_f64(),
            cpus,
            devices: devices::devices(&polls.napis),
            napis: polls.napis,
            irqs: polls.irqs,
            drops,
            stages,
            // The stages were attached a little before the window began.
            stages_looked_s: looked.min(duration).as_secs_f64(),
            sockets: waited.sockets,
            socket_looks_count: waited.looks_count,
            tcp_socket_looks_count: waited.tcp_looks_count,
            left_out: self.left_out(),
            probes,
            probe_cost: cost,
        })
    }
}

/// The next step of a running part.
fn and_then<T>(asked: Asked<T>, step: impl FnOnce(&mut T) -> Result<(), HostError>) -> Asked<T> {
    asked.map(|part| part.and_then(|mut part| step(&mut part).map(|()| part)))
}

fn running<T>(asked: Option<&Result<T, HostError>>) -> Option<&T> {
    asked?.as_ref().ok()
}

fn refused<T>(asked: Option<&Result<T, HostError>>) -> Option<&HostError> {
    asked?.as_ref().err()
}
