//! `rxpath trace`: softirqs, NAPI polls, interrupts, drops and stage latencies, for a while.

use nix::net::if_::if_nametoindex;
use rxpath_bpf::filter::Filter;
use rxpath_bpf::polls::timeline::{Event, chrome_trace};
use rxpath_bpf::probe::lost_warning;
use rxpath_bpf::stages::Pace;
use rxpath_bpf::trace::{TracePart, TraceProbes, TraceReading};
use rxpath_core::number::grouped;
use rxpath_core::{CpuList, ItemCount};
use rxpath_host::HostError;
use rxpath_host::read::process::ProcessId;
use rxpath_host::read::thread;

use crate::cmd::on_host::OnHost;
use crate::cmd::prelude::*;
use crate::cmd::scope::{ScopeArgs, gone};
use crate::cmd::values::{Wait, seconds, write};

/// `rxpath trace`
#[derive(Debug, clap::Args)]
pub struct TraceCommand {
    /// Length of the trace, at least 10ms
    #[arg(short, long, value_name = "TIME", value_parser = seconds, default_value = "5s")]
    duration: Nanos,
    /// Only this device of this network namespace (interrupts and softirqs still cover all devices)
    #[arg(long, value_name = "IF", conflicts_with = "netns")]
    dev: Option<String>,
    /// Only these CPUs: 1 or 0,2-3
    #[arg(long, value_name = "LIST")]
    cpu: Option<CpuList>,
    /// Only this local port, for drops and stages
    #[arg(long, value_name = "PORT")]
    port: Option<u16>,
    #[command(flatten)]
    scope: ScopeArgs,
    /// Leave parts out, to cost less; may be repeated or a list
    #[arg(long, value_name = "WHAT", value_delimiter = ',')]
    without: Vec<TracePart>,
    /// Trace the stages of every packet, at any cost; otherwise tracing is duty-cycled at high packet rates
    #[arg(long)]
    every_packet: bool,
    /// Print each interrupt, softirq and poll in order of time
    #[arg(long)]
    timeline: bool,
    /// Write the events into this file, in the format of Perfetto's and Chrome's trace viewers
    #[arg(long, value_name = "FILE")]
    perfetto: Option<PathBuf>,
    /// Most events to keep; later ones are counted as lost
    #[arg(long, value_name = "N", default_value = "200k")]
    events: ItemCount,
    /// Rows of each table
    #[arg(long, value_name = "N", default_value_t = 10)]
    top: usize,
    #[command(flatten)]
    format: FormatArgs,
    #[command(flatten)]
    pub on: OnHost,
}

/// The options in force.
#[derive(Debug, Serialize)]
struct Settings {
    duration_s: f64,
    dev: Option<String>,
    ifindex: Option<u32>,
    cpus: Option<Vec<u32>>,
    port: Option<u16>,
    #[serde(flatten)]
    scope: ScopeArgs,
    every_packet: bool,
    timeline: bool,
}

/// The `result` object.
#[derive(Debug, Serialize, JsonSchema)]
pub struct TraceResult {
    #[serde(flatten)]
    traced: TraceReading,
    /// Each event in order of time; with `--timeline` only.
    #[serde(skip_serializing_if = "Option::is_none")]
    timeline: Option<Vec<Event>>,
    /// Events lost because there was no space, here or in the kernel's ring buffer.
    #[serde(skip_serializing_if = "Option::is_none")]
    timeline_lost_count: Option<u64>,
}

impl TraceCommand {
    /// Traces and prints.
    pub fn run(self) -> Outcome {
        let window = Duration::from_nanos(self.duration.0);
        if window < Duration::from_millis(10) {
            return Err(Failure::usage("--duration must be at least 10ms"));
        }
        let filter = self.filter()?;
        let process = filter.process.map(|pid| ProcessId::of(pid as i32)).transpose()?;
        // A file that can't be written is reported before the window, not after it.
        if let Some(path) = &self.perfetto {
            write(path, "")?;
        }
        let interrupt = Interrupt::catch()?;
        let wanted = self.timeline || self.perfetto.is_some();
        let pace = if self.every_packet { Pace::Every } else { Pace::ByTurns };
        let mut trace =
            TraceProbes::start(&filter, wanted, &self.without, pace, window).map_err(|error| {
                Failure::new(Exit::Cannot, error)
                    .hint("rxpath doctor says what can be measured here")
            })?;
        let mut events = Events { wanted, kept: Vec::new(), room: self.events.0 as usize, lost: 0 };
        crate::note!("tracing for {}", self.duration);
        let mut wait = Wait::new(&interrupt);
        let mut failed = None;
        wait.until(|passed| {
            trace.note();
            failed = events.drain(&trace).err();
            passed >= window || failed.is_some()
        })?;
        if let Some(error) = failed {
            return Err(error.into());
        }
        let traced = trace.read()?;
        // A signal ends the wait at once: the events since the last poll are still in the kernel.
        events.drain(&trace)?;
        let mut warnings = trace.warnings();
        warnings.extend(gone(&filter, process));
        warnings.extend(folded(&traced));
        drop(trace);
        if wait.signal().is_some() {
            warnings.push(Warning::new("interrupted", "a signal ended the window early"));
        }
        self.print(traced, events, warnings, &filter)?;
        Ok(wait.signal().map_or(Exit::Done, Exit::Signal))
    }

    fn filter(&self) -> Result<Filter, Failure> {
        let mut filter = Filter { port: self.port.unwrap_or(0), ..Filter::default() };
        if self.port == Some(0) {
            return Err(Failure::usage("--port 0 is no port: name one from 1 to 65535"));
        }
        if let Some(cpus) = &self.cpu {
            thread::check_cpus(cpus).or_usage(|| format!("--cpu {cpus}"))?;
            filter.cpus.clone_from(&cpus.0);
        }
        if let Some(dev) = &self.dev {
            filter.ifindex = if_nametoindex(dev.as_str()).map_err(|_| {
                Failure::usage(format!("--dev {dev}: no such device in this network namespace"))
                    .hint("`ip link` lists its devices")
            })?;
            let netns =
                std::fs::metadata("/proc/self/ns/net").context("look up the network namespace")?;
            filter.netns = std::os::unix::fs::MetadataExt::ino(&netns) as u32;
        }
        self.scope.narrow(&mut filter)?;
        Ok(filter)
    }

    fn print(
        self,
        traced: TraceReading,
        mut events: Events,
        mut warnings: Vec<Warning>,
        filter: &Filter,
    ) -> Result<(), Failure> {
        let in_kernel: u64 = traced.cpus.iter().map(|cpu| cpu.polls.lost_events_count).sum();
        // The events of the timeline have their own warning.
        let records = traced.probe_cost.lost_count.saturating_sub(in_kernel);
        warnings.extend(lost_warning(records));
        let lost = events.lost + in_kernel;
        if events.wanted {
            // Each CPU writes in order; the ring buffer mixes the CPUs.
            events.kept.sort_by_key(|event| event.t_ns);
            if lost > 0 {
                warnings.push(
                    Warning::new(
                        "events-lost",
                        format!("{} events are missing from the timeline", grouped(lost)),
                    )
                    .cure("a shorter window, fewer CPUs (--cpu), or more events (--events)"),
                );
            }
        }
        if let Some(path) = &self.perfetto {
            write(path, &serde_json::to_string(&chrome_trace(&events.kept))?)?;
            crate::note!(
                "{} events in {}: open it at https://ui.perfetto.dev",
                grouped(events.kept.len() as u64),
                path.display()
            );
        }
        let settings = Settings {
            duration_s: self.duration.0 as f64 / 1e9,
            dev: self.dev,
            ifindex: (filter.ifindex != 0).then_some(filter.ifindex),
            cpus: self.cpu.map(|cpus| cpus.0),
            port: self.port,
            scope: self.scope,
            every_packet: self.every_packet,
            timeline: self.timeline,
        };
        let result = TraceResult {
            traced,
            timeline: self.timeline.then_some(events.kept),
            timeline_lost_count: events.wanted.then_some(lost),
        };
        let answer = Envelope::new("trace", settings, result, warnings);
        output::answer(self.format.is_json(), &answer, |it| {
            let timeline = it.timeline.as_deref().map(output::trace::timeline);
            output::trace::text(&it.traced, self.top) + &timeline.unwrap_or_default()
        })?;
        Ok(())
    }
}

/// Drops that did not fit into the kernel's table by port and socket.
fn folded(traced: &TraceReading) -> Option<Warning> {
    let rows = traced.drops.iter().filter(|drop| drop.folded);
    let packets: u64 = rows.map(|drop| drop.packets).sum();
    (packets > 0).then(|| {
        let packets = grouped(packets);
        let text =
            format!("{packets} drops are shown without port and socket, by reason and place only");
        Warning::new("drops-folded", text)
            .because("more ports and sockets had drops than fit into the kernel's table")
            .cure("--port, --dev, --netns or --pid")
    })
}

/// Events read.
struct Events {
    wanted: bool,
    kept: Vec<Event>,
    room: usize,
    lost: u64,
}

impl Events {
    /// Takes the waiting events out of the kernel.
    fn drain(&mut self, trace: &TraceProbes) -> Result<(), HostError> {
        if self.wanted { trace.polls().drain(&mut |event| self.take(event)) } else { Ok(()) }
    }

    fn take(&mut self, event: Event) {
        if self.kept.len() < self.room {
            self.kept.push(event);
        } else {
            self.lost += 1;
        }
    }
}
