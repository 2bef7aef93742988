//! `rxpath model bounds`: bounds from a fluid model of the receive path, in sentences.

use rxpath_core::{Bytes, ItemCount, Rate};
use rxpath_model::bounds::{FluidBounds, Parameters, bounds};

use super::calibration::{default_path, load};
use crate::cmd::micros::whole_microseconds;
use crate::cmd::prelude::*;
use crate::cmd::values::nanoseconds;

/// `rxpath model bounds`
#[derive(Debug, clap::Args)]
#[command(
    after_help = "A file holds the same names with underscores: arrival_rate = \"400k\". docs/reference/model.md explains each formula \
                  and when it holds."
)]
pub struct BoundsCommand {
    /// Parameters as TOML; flags win over them
    file: Option<PathBuf>,
    /// Take costs, ring and truesize that are not given from the last calibration (rxpath model calibrate)
    #[arg(long)]
    calibrated: bool,
    /// The calibration to use; implies --calibrated
    #[arg(long, value_name = "FILE")]
    calibration: Option<PathBuf>,
    /// Use a calibration of another host or kernel
    #[arg(long)]
    foreign: bool,
    #[command(flatten)]
    load: LoadFlags,
    #[command(flatten)]
    reader: ReaderFlags,
    #[command(flatten)]
    device: DeviceFlags,
    #[command(flatten)]
    format: FormatArgs,
}

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Load")]
struct LoadFlags {
    /// Offered datagrams per second
    #[arg(long, value_name = "PPS")]
    arrival_rate: Option<Rate>,
    /// Payload of a datagram
    #[arg(long, value_name = "BYTES")]
    size: Option<Bytes>,
    /// Packets that arrive in one burst at --arrival-rate
    #[arg(long, value_name = "N")]
    burst: Option<ItemCount>,
    /// Duration of the load
    #[arg(long, value_name = "TIME")]
    duration: Option<Nanos>,
    /// Flows of equal rate
    #[arg(long, value_name = "N")]
    flows: Option<ItemCount>,
    /// TCP receive window
    #[arg(long, value_name = "BYTES")]
    window: Option<Bytes>,
    /// Round-trip time
    #[arg(long, value_name = "TIME")]
    rtt: Option<Nanos>,
}

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Socket and reader")]
struct ReaderFlags {
    /// The reader's CPU time per datagram if the reader never sleeps
    #[arg(long, value_name = "NS", value_parser = nanoseconds)]
    service_ns: Option<u64>,
    /// The reader's share of its CPU, at most 1
    #[arg(long, value_name = "RATIO")]
    share: Option<f64>,
    /// Softirq and reader run on one CPU
    #[arg(long)]
    same_cpu: bool,
    /// The reader's share if ksoftirqd limits softirqs [default: 0.5]
    #[arg(long, value_name = "RATIO")]
    app_share: Option<f64>,
    /// Receive buffer as the kernel accounts it [default: 212992]
    #[arg(long, value_name = "BYTES")]
    rcvbuf: Option<Bytes>,
    /// Kernel memory of a queued datagram [default: estimated from --size]
    #[arg(long, value_name = "BYTES")]
    truesize: Option<Bytes>,
    /// Length of a pause of the reader
    #[arg(long, value_name = "TIME")]
    stall: Option<Nanos>,
    /// How often the reader pauses
    #[arg(long, value_name = "TIME")]
    period: Option<Nanos>,
}

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Ring and softirq")]
struct DeviceFlags {
    /// Descriptors of the receive ring
    #[arg(long, value_name = "N")]
    ring: Option<ItemCount>,
    /// Interrupt coalescing by time: microseconds, or a time with its unit
    #[arg(long, value_name = "US", value_parser = whole_microseconds)]
    rx_usecs: Option<u64>,
    /// Softirq time per poll
    #[arg(long, value_name = "NS", value_parser = nanoseconds)]
    poll_ns: Option<u64>,
    /// Softirq time per packet
    #[arg(long, value_name = "NS", value_parser = nanoseconds)]
    packet_ns: Option<u64>,
    /// CPU time per interrupt, everything included
    #[arg(long, value_name = "NS", value_parser = nanoseconds)]
    irq_ns: Option<u64>,
    /// Packets per poll at the offered rate [default: 1]
    #[arg(long, value_name = "N")]
    batch: Option<f64>,
    /// CPU share that the softirq can use [default: 1]
    #[arg(long, value_name = "RATIO")]
    softirq_share: Option<f64>,
    /// NAPI weight [default: 64]
    #[arg(long, value_name = "N")]
    weight: Option<ItemCount>,
    /// net.core.netdev_budget [default: 300]
    #[arg(long, value_name = "N")]
    budget: Option<ItemCount>,
    /// Busy NAPIs on one CPU
    #[arg(long, value_name = "N")]
    napis: Option<ItemCount>,
    /// Receive queues
    #[arg(long, value_name = "N")]
    queues: Option<ItemCount>,
    /// Longest time without service, in addition to the coalescing timer
    #[arg(long, value_name = "TIME")]
    starvation: Option<Nanos>,
    /// net.core.netdev_max_backlog [default: 1000]
    #[arg(long, value_name = "N")]
    backlog: Option<ItemCount>,
    /// Softirq time per packet on the CPU that RPS steers to
    #[arg(long, value_name = "NS", value_parser = nanoseconds)]
    backlog_packet_ns: Option<u64>,
}

impl BoundsCommand {
    /// Runs it.
    pub fn run(self) -> Outcome {
        let mut parameters = self.parameters().map_err(Failure::usage_of)?;
        let told = self.calibrate(&mut parameters)?;
        let got = bounds(&parameters).map_err(Failure::usage_of)?;
        if got.bounds.is_empty() {
            return Err(Failure::usage("no bound follows from these parameters")
                .hint(format!("each bound still needs: {}", got.missing())));
        }
        let warnings = [told, got.warnings()].concat();
        let answer = Envelope::new("model-bounds", parameters, got, warnings);
        output::answer(self.format.is_json(), &answer, sentences)?;
        Ok(Exit::Done)
    }

    /// Values from a calibration, if one was requested.
    fn calibrate(&self, parameters: &mut Parameters) -> Result<Vec<Warning>, Failure> {
        if !self.calibrated && self.calibration.is_none() {
            if self.foreign {
                return Err(Failure::usage(
                    "--foreign needs --calibrated or --calibration FILE".to_owned(),
                ));
            }
            return Ok(Vec::new());
        }
        let path = self.calibration.clone().unwrap_or_else(default_path);
        let (calibration, mut warnings) = load(&path, self.foreign)?;
        let taken = parameters.calibrated(&calibration);
        if taken.is_empty() {
            let text =
                format!("all parameters were given: nothing is taken from {}", path.display());
            warnings.push(Warning::new("calibration-unused", text));
        } else {
            crate::note!("from {}: {}", path.display(), taken.join(", "));
        }
        Ok(warnings)
    }

    fn parameters(&self) -> anyhow::Result<Parameters> {
        let mut all = match &self.file {
            Some(path) => {
                let name = || path.display().to_string();
                let text = std::fs::read_to_string(path).with_context(name)?;
                Parameters::from_toml(&text).with_context(name)?
            }
            None => Parameters::default(),
        };
        /// A flag replaces the value in the file.
        macro_rules! set {
            ($from:expr; $($name:ident),*) => {
                $(if $from.$name.is_some() { all.$name = $from.$name.clone(); })*
            };
        }
        macro_rules! set_ns {
            ($from:expr; $($name:ident),*) => {
                $(if let Some(ns) = $from.$name { all.$name = Some(Nanos(ns)); })*
            };
        }
        set!(self.load; arrival_rate, size, burst, duration, flows, window, rtt);
        set!(self.reader; share, app_share, rcvbuf, truesize, stall, period);
        set!(self.device; ring, rx_usecs, batch, softirq_share, weight, budget, napis, queues, starvation, backlog);
        set_ns!(self.reader; service_ns);
        set_ns!(self.device; poll_ns, packet_ns, irq_ns, backlog_packet_ns);
        all.same_cpu |= self.reader.same_cpu;
        Ok(all)
    }
}

/// The sentences, each with its formula and its assumptions.
fn sentences(got: &FluidBounds) -> String {
    let mut text = String::new();
    for (name, bound) in &got.bounds {
        text += &format!("{name}: {}\n", bound.sentence);
        text += &format!("    by {}\n    if {}\n", bound.formula, bound.assumes);
    }
    if !got.not_computed.is_empty() {
        text += &format!("\nnot computed, because these are missing: {}\n", got.missing());
    }
    text
}
