//! Softirqs, polls and the latency of stages of a trial: attached for the measured window and for nothing else.

use std::time::{Duration, Instant};

use rxpath_bpf::cost::{PartMeter, own_cpu};
use rxpath_bpf::devices::{DevicePolls, devices};
use rxpath_bpf::filter::Filter;
use rxpath_bpf::polls::{CpuPolls, Polls};
use rxpath_bpf::probe::{Probe, lost, lost_warning, missing, programs};
use rxpath_bpf::squeezed::Squeezed;
use rxpath_bpf::stages::{Pace, Stages};
use rxpath_core::measured::NapiPolls;
use rxpath_core::{Nanos, Warning};
use rxpath_host::HostError;
use rxpath_record::traced::{CpuTraced, DeviceTraced, NapiTraced, Traced};

use super::sides::Sides;

/// Outliers that are kept of a stage.
const OUTLIERS: usize = 20;

/// The programs, loaded.
pub struct Tracing {
    polls: Polls,
    stages: Result<Stages, HostError>,
    open: Option<Open>,
}

/// The window while it lasts.
struct Open {
    begun: Instant,
    squeezed: Squeezed,
    meter: PartMeter,
    reader_cpu: Duration,
}

impl Tracing {
    /// Loads the programs: polls of the whole machine, stages of the receiver's namespace.
    pub fn load(receiver_netns: Option<u32>) -> Result<Self, HostError> {
        let polls = Polls::load(&Filter::default(), false)?;
        let filter = Filter { netns: receiver_netns.unwrap_or(0), ..Filter::default() };
        Ok(Self { polls, stages: Stages::load(&filter, Pace::ByTurns), open: None })
    }

    /// Attaches them, and begins to count when the last is in place.
    pub fn open(&mut self, measure: Nanos) -> Result<(), HostError> {
        let before = own_cpu();
        self.polls.attach()?;
        self.of_stages(|stages| {
            stages.attach().map(|()| stages.measure_cost(measure.as_duration()))
        });
        let meter = PartMeter::start(&[self.polls.loaded()], measure.as_duration());
        let squeezed = Squeezed::now();
        // The polls are looked at for longer at both ends: each packet of a stage is then one of a poll.
        self.polls.begin()?;
        let begun = Instant::now();
        self.of_stages(Stages::begin);
        let reader_cpu = own_cpu().saturating_sub(before);
        self.open = Some(Open { begun, squeezed, meter, reader_cpu });
        Ok(())
    }

    /// A step of the stages; after an error they are not looked at, and the warnings say so.
    fn of_stages(&mut self, step: impl FnOnce(&mut Stages) -> Result<(), HostError>) {
        if let Ok(stages) = &mut self.stages
            && let Err(error) = step(stages)
        {
            self.stages = Err(error);
        }
    }

    /// The cost is measured in the first part of the window only, and stages are duty-cycled.
    pub fn note(&mut self) {
        let Some(open) = &mut self.open else { return };
        open.meter.note();
        if let Ok(stages) = &mut self.stages {
            stages.note();
        }
    }

    /// Those that run.
    fn parts(&self) -> Vec<&dyn Probe> {
        let mut parts: Vec<&dyn Probe> = vec![&self.polls];
        parts.extend(self.stages.as_ref().ok().map(|stages| stages as &dyn Probe));
        parts
    }

    /// Reads them and takes them out of the kernel.
    pub fn close(
        mut self,
        sides: Sides<'_>,
        warnings: &mut Vec<Warning>,
    ) -> Result<Traced, HostError> {
        let Some(mut open) = self.open.take() else { return Ok(Traced::default()) };
        let before = own_cpu();
        let window = open.begun.elapsed();
        let stages = self.stages.as_ref().ok().map(Stages::read).transpose()?;
        let (mut stages, _) = stages.unwrap_or_default();
        for stage in &mut stages {
            stage.outliers.truncate(OUTLIERS);
        }
        let polls = self.polls.read()?;
        let squeezed = Squeezed::now();
        let reader_cpu = open.reader_cpu + own_cpu().saturating_sub(before);
        let mut cost = open.meter.stop().over(window, self.polls.map_bytes(), reader_cpu);
        let mut looked = Duration::ZERO;
        if let Ok(stages) = &mut self.stages {
            cost = cost.plus(stages.cost());
            looked = stages.looked();
        }
        cost.lost_count = lost(&self.parts())?;
        let napi = |row: NapiPolls| NapiTraced { side: side(row.netns, sides), row };
        let traced = Traced {
            window_s: window.as_secs_f64(),
            cpus: polls.cpus.into_iter().map(|row| cpu(row, &squeezed, &open.squeezed)).collect(),
            devices: devices(&polls.napis).into_iter().map(|found| device(found, sides)).collect(),
            napis: polls.napis.into_iter().map(napi).collect(),
            irqs: polls.irqs,
            stages,
            stages_looked_s: looked.as_secs_f64(),
            probe: cost,
        };
        warnings.extend(missing(&programs(&self.parts())));
        warnings.extend(lost_warning(traced.probe.lost_count));
        let gap = match &self.stages {
            Ok(stages) => stages.stopped().map(|error| {
                format!("the latency of stages was traced for part of the window only: {error}")
            }),
            Err(error) => Some(format!("the latency of stages is not seen: {error}")),
        };
        warnings.extend(gap.map(|text| Warning::new("probe-missing", text)));
        Ok(traced)
    }
}

fn cpu(of: CpuPolls, now: &Squeezed, before: &Squeezed) -> CpuTraced {
    let (net_rx_runs_count, net_rx_ns) = of.net_rx();
    CpuTraced {
        cpu: of.cpu,
        device_interrupts_count: of.device_interrupts_count,
        other_interrupts_count: of.other_interrupts_count,
        hardirq_s: of.hardirq_ns as f64 / 1e9,
        interrupt_interval_ns: of.interrupt_interval_ns,
        net_rx_runs_count,
        net_rx_s: net_rx_ns as f64 / 1e9,
        ksoftirqd_runs_count: of.ksoftirqd_runs_count,
        ksoftirqd_s: of.ksoftirqd_ns as f64 / 1e9,
        polls_count: of.polls_count,
        packets: of.packets,
        exhausted_count: of.exhausted_count,
        packets_per_poll: of.packets_per_poll,
        net_rx_run_ns: of.net_rx_run_ns,
        longest_net_rx_ns: of.longest_net_rx_ns,
        time_squeeze_count: now.since(before, of.cpu),
    }
}

/// The side to which a namespace belongs; empty for none of the trial's, and for a backlog, which has none.
fn side(netns: u32, sides: Sides<'_>) -> String {
    let side = if netns == 0 { None } else { sides(netns) };
    side.map_or_else(String::new, |side| side.to_string())
}

fn device(of: DevicePolls, sides: Sides<'_>) -> DeviceTraced {
    DeviceTraced {
        dev: of.dev,
        side: side(of.netns, sides),
        napis_count: of.napis_count,
        cpus: of.cpus,
        polls_count: of.polls_count,
        packets: of.packets,
        exhausted_count: of.exhausted_count,
        poll_s: of.poll_ns as f64 / 1e9,
        packets_per_poll: of.packets_per_poll,
    }
}
