//! From the trials of a calibration and the meter's readings to parameters.

mod watch;

use std::collections::BTreeMap;

use rxpath_host::Root;
use rxpath_host::read::environment;
use rxpath_model::calibration::fit::{self, Stolen, TooNoisy};
use rxpath_model::calibration::passes::{PassCosts, Sums, passes};
use rxpath_model::calibration::{CalibratedHost, Calibration, Conditions, Estimate, SCHEMA};
use rxpath_record::manifest::Trial;

pub use self::watch::CalibrationObserver;
use crate::meter::MeterReading;
use crate::testbed::ring;
use crate::trial::result::UdpServer;

/// Below this rate, polling an empty socket once per ms costs too much compared with the datagrams.
const FEWEST_PPS: f64 = 20e3;
/// Number of programs that run between the start and the end of a pass, as timed by tracepoints.
const PROGRAMS_PER_PASS: f64 = 2.0;

/// The measurements.
pub struct Measured<'a, 'p> {
    /// The trials of the run.
    pub trials: &'a [Trial],
    /// What was measured in their windows.
    pub watch: &'a CalibrationObserver<'p>,
    /// Payload of a datagram.
    pub size_bytes: u64,
    /// CPU of the softirq.
    pub cpu: u32,
}

/// The calibration.
///
/// # Errors
/// Why the measurements are not good enough for one.
pub fn calibration(measured: &Measured<'_, '_>, made: &str) -> Result<Calibration, TooNoisy> {
    let (parameters, caveats) = parameters(measured)?;
    Ok(Calibration {
        schema: SCHEMA.into(),
        made: made.into(),
        host: this_host(),
        conditions: Conditions {
            device: "veth".into(),
            size_bytes: measured.size_bytes,
            cpu: measured.cpu,
            clock: Root::host()
                .text("/sys/devices/system/clocksource/clocksource0/current_clocksource")
                .map(|text| text.trim().to_owned())
                .unwrap_or_default(),
        },
        parameters,
        caveats,
    })
}

/// The properties of this host that decide its costs.
pub fn this_host() -> CalibratedHost {
    let facts = environment::collect(&Root::host());
    let text = |name: &str| {
        let value = facts.get(name).and_then(|fact| fact.value());
        value.and_then(|value| value.as_str()).map(str::to_owned)
    };
    let count =
        facts.get("cpu.count").and_then(|fact| fact.value()).and_then(serde_json::Value::as_u64);
    CalibratedHost {
        kernel: text("kernel.release").unwrap_or_default(),
        cpu_model: text("cpu.model").unwrap_or_default(),
        cpus_count: count.unwrap_or(0) as u32,
        hypervisor: text("virtualization.hypervisor"),
    }
}

/// All parameters, and which of them are less certain.
fn parameters(
    measured: &Measured<'_, '_>,
) -> Result<(BTreeMap<String, Estimate>, Vec<String>), TooNoisy> {
    let mut parameters = BTreeMap::new();
    let mut put = |key: &str, estimate: Estimate| parameters.insert(key.to_owned(), estimate);
    let (call, packet) = measured.reader()?;
    let busy = call.value + packet.value;
    let sleep = measured.sleeping(busy)?;
    let rough_sleep = fit::is_rough(&sleep).then(|| {
        let known = match sleep.interval {
            Some([low, high]) => format!("only as {low:.0} to {high:.0} ns"),
            None => format!("by one measurement, {:.0} ns", sleep.value),
        };
        format!(
            "the cost of a reader's sleep is known {known}: predictions of readers that are woken for each datagram \
             are as uncertain"
        )
    });
    put("reader.sleep_ns", sleep);
    put("reader.call_ns", call);
    put("reader.packet_ns", packet);
    put("reader.share", measured.share()?);
    let (costs, mut caveats) = measured.softirq()?;
    caveats.extend(rough_sleep);
    for (key, estimate) in costs {
        if key == "rps.ipi_ns" {
            put("rps.ipi_spread", measured.spread(estimate.value)?);
        }
        put(key, estimate);
    }
    let [poll, packet] = measured.napi()?;
    put("softirq.poll_ns", poll);
    put("softirq.packet_ns", packet);
    put("nic.ring", veth_ring());
    if let Some(wakeup) = measured.wakeup() {
        put("reader.wakeup_ns", wakeup);
    }
    let truesize = measured.truesize().ok_or_else(|| {
        TooNoisy("no trial reported the kernel memory of a datagram (SO_MEMINFO)".into())
    })?;
    put("socket.truesize", truesize);
    if let Some(stall) = measured.stall() {
        put("reader_stall_ns", stall);
    }
    let clocks: Vec<f64> =
        measured.watch.readings.values().map(|reading| reading.clock_ns).collect();
    put(
        "clock_ns",
        fit::mean(&clocks, "ns", "one reading of CLOCK_MONOTONIC, in the meter's loop")?,
    );
    Ok((parameters, caveats))
}

/// The number of packets in a full veth ring. Some of its entries are empty and not released yet; each number of such
/// entries is equally likely.
fn veth_ring() -> Estimate {
    let most = ring::CAPACITY_PACKETS as f64;
    let least = most - ring::HELD_BACK_MOST_PACKETS as f64;
    let how = "VETH_RING_SIZE less half of a ptr_ring's batch (drivers/net/veth.c)";
    Estimate {
        interval: Some([least, most]),
        ..Estimate::exact(f64::midpoint(least, most).floor(), "descriptors", how)
    }
}

/// The interrupt without its pass: tracepoints measure the pass, and the meter measures both.
fn without(interrupt: &Estimate, pass: &Estimate) -> Estimate {
    Estimate {
        value: (interrupt.value - pass.value).max(0.0),
        interval: interrupt.interval.zip(pass.interval).map(|(interrupt, pass)| {
            [(interrupt[0] - pass[1]).max(0.0), (interrupt[1] - pass[0]).max(0.0)]
        }),
        how: "stolen-time meter, less the pass that tracepoints see".into(),
        ..interrupt.clone()
    }
}

/// The parameters that are less certain than possible.
fn caveats(no_tracing: Option<&str>) -> Vec<String> {
    let blind = no_tracing.map(|why| {
        format!(
            "without tracepoints ({why}) softirq time is not split into passes and interrupts. The cost of a poll is \
             part of the interrupt's cost, and the number of packets per poll under load is less certain"
        )
    });
    let always = [
        "the meter's own loop keeps caches cold for the softirq: the costs are those of a CPU that also does other work",
        "the wake-up latency includes the sender's call and the receive path before the socket",
    ]
    .map(str::to_owned);
    blind.into_iter().chain(always).collect()
}

impl Measured<'_, '_> {
    fn of<'a>(&'a self, variant: &'a str) -> impl Iterator<Item = &'a Trial> {
        self.trials.iter().filter(move |trial| trial.variant == variant && trial.void.is_none())
    }

    /// ns of the reader's thread per datagram, trial by trial.
    fn per_packet(&self, variant: &str, fewest_pps: f64) -> Result<Vec<f64>, TooNoisy> {
        let mut all = Vec::new();
        for trial in self.of(variant) {
            let Some(reader) = trial.evidence.receiver_threads.first() else { continue };
            let delivered = trial.evidence.delivered_pps;
            if delivered < fewest_pps {
                return Err(TooNoisy(format!(
                    "the reader of `{variant}` got {delivered:.0} datagrams/s and {fewest_pps:.0} are needed: the sender is \
                     too slow, or something took its CPU"
                )));
            }
            if delivered > 0.0 {
                all.push(reader.running_ratio * 1e9 / delivered);
            }
        }
        Ok(all)
    }

    /// ns per call and per datagram, from one and from up to 64 datagrams a call.
    fn reader(&self) -> Result<(Estimate, Estimate), TooNoisy> {
        let one = self.per_packet("busy-1", FEWEST_PPS)?;
        let many = self.per_packet("busy-64", FEWEST_PPS)?;
        let groups =
            [(&one[..], "reader, 1 datagram a call"), (&many[..], "reader, 64 datagrams a call")];
        let [one, many] = fit::alike(groups, "ns")?;
        let solve = |one: f64, many: f64| {
            let packet = (many - one / 64.0) / (1.0 - 1.0 / 64.0);
            [(one - packet).max(0.0), packet.max(0.0)]
        };
        let values = solve(one.value, many.value);
        let how = "a reader that is not woken for a datagram, with 1 and with 64 datagrams a call";
        // The ends that are farthest apart: the two are not independent.
        let ends = one.interval.zip(many.interval);
        let ends = ends.map(|(one, many)| [solve(one[0], many[1]), solve(one[1], many[0])]);
        let estimate = |at: usize| Estimate {
            value: values[at],
            interval: ends.map(|[a, b]| [a[at].min(b[at]).max(0.0), a[at].max(b[at])]),
            how: how.into(),
            ..one.clone()
        };
        Ok((estimate(0), estimate(1)))
    }

    fn sleeping(&self, busy: f64) -> Result<Estimate, TooNoisy> {
        let all: Vec<f64> =
            self.per_packet("sleeping", 0.0)?.iter().map(|ns| (ns - busy).max(0.0)).collect();
        // The reader's share of most loads is small: a rough value is better than no calibration.
        let how = "CPU time of a datagram read after a sleep, less that of one of many";
        fit::rough_mean(&all, "ns", how)
    }

    /// The meter's loads of the variants with this prefix, by what interrupted its loop.
    fn stolen(&self, prefix: &str, interrupts: fn(&MeterReading) -> Option<u64>) -> Vec<Stolen> {
        let valid =
            self.trials.iter().filter(|t| t.variant.starts_with(prefix) && t.void.is_none());
        let load = |trial: &Trial| {
            let reading = self.watch.readings.get(&trial.trial)?;
            Some(Stolen {
                stolen_ratio: reading.stolen_ratio(),
                packets_pps: reading.per_second(reading.packets),
                interrupts_per_s: reading.per_second(interrupts(reading)?),
            })
        };
        valid.filter_map(load).collect()
    }

    /// How much an interrupt's cost varies: half of evenly distributed values lie between the quartiles.
    fn spread(&self, interrupt_ns: f64) -> Result<Estimate, TooNoisy> {
        let singles = self.of("stolen-5k").chain(self.of("stolen-30k"));
        let readings = singles.filter_map(|trial| self.watch.readings.get(&trial.trial));
        let parts = readings.map(|reading| {
            let [low, _, high] = reading.gap_quartiles_ns;
            ((high - low) as f64 / interrupt_ns.max(1.0)).min(1.0)
        });
        let how =
            "quartiles of the meter's gaps at one datagram an interrupt, over the interrupt's cost";
        let mut spread = fit::rough_mean(&parts.collect::<Vec<f64>>(), "ratio", how)?;
        spread.interval = spread.interval.map(|[low, high]| [low, high.min(1.0)]);
        Ok(spread)
    }

    /// ns of a NAPI thread per wake-up with its poll, and per datagram. Each time that the thread has the CPU is one
    /// gap of the meter.
    fn napi(&self) -> Result<[Estimate; 2], TooNoisy> {
        let loads = self.stolen("napi-", |reading| Some(reading.gaps_count));
        let costs = fit::softirq(&loads)?;
        let how = "stolen-time meter on the CPU of a NAPI thread, regression over loads";
        Ok([costs.interrupt, costs.packet].map(|cost| Estimate { how: how.into(), ..cost }))
    }

    /// The softirq's costs by key: pass and packet by tracepoints if available, the rest of an interrupt by the meter; and
    /// which costs are less certain.
    fn softirq(&self) -> Result<(Vec<(&'static str, Estimate)>, Vec<String>), TooNoisy> {
        let loads = self.stolen("stolen-", |reading| reading.rps_interrupts_count);
        let (costs, mut all, why) = match self.passes() {
            Ok(Some((PassCosts { pass, packet }, tracing))) => {
                let mut costs = fit::interrupts(&loads, packet)?;
                costs.interrupt = without(&costs.interrupt, &pass);
                (costs, vec![("rps.poll_ns", pass), ("tracing_ns", tracing)], None)
            }
            untraced => {
                let why = match untraced {
                    Err(TooNoisy(why)) => why,
                    _ => self.watch.no_tracing.clone().unwrap_or("no pass was seen".into()),
                };
                (fit::softirq(&loads)?, Vec::new(), Some(why))
            }
        };
        let mut caveats = caveats(why.as_deref());
        if costs.unexplained_ratio > fit::RESIDUAL {
            caveats.push(format!(
                "the softirq's loads lie {:.1} % of a CPU from the fit. The cost of an interrupt or a packet is not always \
                 the same here, and predictions for a CPU near its limit have at least this error",
                costs.unexplained_ratio * 100.0
            ));
        }
        all.extend([("rps.packet_ns", costs.packet), ("rps.ipi_ns", costs.interrupt)]);
        Ok((all, caveats))
    }

    /// Costs of a pass and a packet by tracepoints, and the overhead of watching, per pass; nothing without tracepoints.
    fn passes(&self) -> Result<Option<(PassCosts, Estimate)>, TooNoisy> {
        let valid = self.trials.iter().filter(|trial| trial.void.is_none());
        let seen: Vec<_> =
            valid.filter_map(|trial| self.watch.passes.get(&trial.trial)).copied().collect();
        if seen.is_empty() {
            return Ok(None);
        }
        let sums: Vec<Sums> = seen.iter().map(|traced| traced.sums).collect();
        // Between the two clock readings of a pass lie the end of one program, a whole program and the start of a
        // third.
        let runs: Vec<f64> = seen.iter().filter_map(|traced| traced.program_ns).collect();
        let each = runs.iter().sum::<f64>() / runs.len().max(1) as f64;
        let tracing = PROGRAMS_PER_PASS * each;
        let costs = passes(&sums, tracing)?;
        let how = "run time of the probe's programs in a pass (BPF_ENABLE_STATS)";
        Ok(Some((costs, Estimate::exact(tracing, "ns", how))))
    }

    /// The share of time in which a reader that always wants its CPU gets it.
    fn share(&self) -> Result<Estimate, TooNoisy> {
        let busy = self.of("busy-1").chain(self.of("busy-64"));
        let of = |trial: &Trial| {
            let reader = trial.evidence.receiver_threads.first()?;
            let wanted = reader.running_ratio + reader.waiting_ratio;
            (wanted > 0.0).then(|| reader.running_ratio / wanted)
        };
        let shares: Vec<f64> = busy.filter_map(of).collect();
        let how = "running over running and waiting of the reader of many datagrams (schedstat)";
        let mut share = fit::mean(&shares, "ratio", how)?;
        share.interval = share.interval.map(|[low, high]| [low, high.min(1.0)]);
        Ok(share)
    }

    /// The longest time, beyond its sleep, in which such a reader read nothing although datagrams waited.
    fn stall(&self) -> Option<Estimate> {
        let stalls = self.of("busy-1").chain(self.of("busy-64"));
        let longest = stalls.filter_map(|trial| trial.evidence.reader_stall_s).reduce(f64::max)?;
        let how = "longest stall of the reader of many datagrams that sampling shows";
        Some(Estimate { interval: None, ..Estimate::exact(longest * 1e9, "ns", how) })
    }

    fn wakeup(&self) -> Option<Estimate> {
        let servers = self.of("sleeping").filter_map(UdpServer::recorded);
        let medians = servers.filter_map(|server| Some(server.result.one_way_delay_us?.p50 * 1e3));
        let how = "median one-way delay to a sleeping reader";
        fit::mean(&medians.collect::<Vec<_>>(), "ns", how).ok()
    }

    /// Kernel memory of a plain sender's datagram.
    fn truesize(&self) -> Option<Estimate> {
        self.of("sleeping").find_map(|trial| {
            let server = UdpServer::recorded(trial)?;
            let truesize = server.result.sockets.first()?.truesize_bytes? as f64;
            Some(Estimate::exact(truesize, "bytes", "SO_MEMINFO with one datagram queued"))
        })
    }
}
