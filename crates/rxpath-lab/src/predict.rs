//! From a variant of an experiment and a calibration to the simulator's parameters and its predictions.
//!
//! The question: *what does the model say of this variant, and is it right?* `rxpath-model` knows no scenarios; what it needs
//! of one is put together here.

pub mod calibrate;
pub mod directory;
pub mod effects;
pub mod from_run;
pub mod setting;
pub mod simulation;
pub mod validate;

use std::collections::BTreeMap;

use rxpath_core::{IntoMap, SchedClass};
use rxpath_load::udp::serve::options::ServeEngine;
use rxpath_model::calibration::Calibration;
use rxpath_model::sim::outcome::StageFigures;
use rxpath_model::sim::{ParameterError, Parameters, Values};
use rxpath_record::evidence::WindowEvidence;
use rxpath_record::ledger::Place;
use rxpath_record::manifest::{Manifest, Trial};
use rxpath_record::prediction::{Predicted, Prediction};
use rxpath_stats::quantile;

use self::simulation::{SimulationError, simulate};
use crate::scenario::spec::{OnHosts, Resolved, Variant};
use crate::trial::result::UdpServer;

/// The metric of a variant's loss: in the window, where queues are fullest.
pub const LOSS: &str = "window_loss_ratio";

/// Suffix of a stage's metrics: its part of the window's loss.
pub const STAGE_LOSS: &str = "_loss_ratio";

/// Simulated time; queues fill during the warm-up.
const TIMES: [(&str, &str); 3] = [("duration", "3s"), ("warmup", "1s"), ("drain", "0ns")];
/// Most packets simulated for one variant.
const MOST_PPS: f64 = 20e6;
/// A ring that never fills: if the receive path runs inside the sender's call, there is no ring.
const NO_RING: u64 = 1 << 20;

/// Results under the names that trials use.
pub type Metrics = BTreeMap<String, f64>;

/// Predictions of every measured variant.
pub fn all(resolved: &Resolved, manifest: &Manifest, calibration: &Calibration) -> Vec<Prediction> {
    let one = |variant: &Variant| {
        let trials: Vec<&Trial> = valid(manifest, &variant.name).collect();
        if trials.is_empty() || variant.protocol().over_tcp() {
            return None;
        }
        let made = values(variant, &trials, calibration, &BTreeMap::new());
        Some(predicted(variant, &trials, made))
    };
    resolved.variants.iter().filter_map(one).collect()
}

/// The prediction of one variant from its parameters, or why there is none.
pub fn predicted(variant: &Variant, trials: &[&Trial], made: Result<Values, String>) -> Prediction {
    let simulated = made.and_then(|values| figures(&values).map_err(|error| error.to_string()));
    let not_predicted = simulated.as_ref().err().cloned();
    let beside = |(name, predicted): (String, f64)| {
        let measured = measured(&name, trials)?;
        Some((name, Predicted { predicted, measured }))
    };
    // A polling reader is simulated as one that is woken: its losses are right, its delays are not.
    let known = |name: &String| !naps(variant) || !name.starts_with("one_way_delay_");
    let said = simulated.unwrap_or_default().into_iter().filter(|(name, _)| known(name));
    let metrics = said.filter_map(beside).into_map();
    Prediction { variant: variant.name.clone(), metrics, not_predicted }
}

/// Simulates and names the metrics as trials do.
///
/// # Errors
/// If a parameter is missing or wrong, or a trace can't be read.
pub fn figures(values: &Values) -> Result<Metrics, SimulationError> {
    let parameters = Parameters::new(values)?;
    let figures = simulate(&parameters)?.figures;
    let mut said = BTreeMap::from([
        ("delivered_pps".to_owned(), figures.delivered_pps),
        (LOSS.to_owned(), (1.0 - figures.delivered_pps / figures.offered_pps.max(1.0)).max(0.0)),
    ]);
    let offered = figures.offered_pps * figures.window_ns as f64 / 1e9;
    let real = |stage: &&StageFigures| stage.stage != "ring" || parameters.ring < NO_RING;
    for stage in figures.stages.iter().filter(real) {
        let loss = stage.window_dropped_packets as f64 / offered.max(1.0);
        said.insert(format!("{}{STAGE_LOSS}", stage.stage), loss);
    }
    if let Some(times) = figures.times.last() {
        for (name, ns) in [("p50", times.p50_ns), ("p90", times.p90_ns), ("p99", times.p99_ns)] {
            said.insert(format!("one_way_delay_{name}_us"), ns as f64 / 1e3);
        }
    }
    Ok(said)
}

/// Median over trials of a metric of the window.
pub fn measured(metric: &str, trials: &[&Trial]) -> Option<f64> {
    let of = |trial: &&Trial| -> Option<f64> {
        let evidence = &trial.evidence;
        let delay = || UdpServer::recorded(trial)?.result.one_way_delay_us;
        match metric {
            "delivered_pps" => Some(evidence.delivered_pps),
            LOSS => window_loss(evidence),
            "ring_loss_ratio" => stage_loss(trial, Place::Ring),
            "backlog_loss_ratio" => stage_loss(trial, Place::Backlog),
            "socket_loss_ratio" => stage_loss(trial, Place::SocketBuffer),
            "one_way_delay_p50_us" => Some(delay()?.p50),
            "one_way_delay_p90_us" => Some(delay()?.p90),
            "one_way_delay_p99_us" => Some(delay()?.p99),
            _ => None,
        }
    };
    quantile::median(&trials.iter().filter_map(of).collect::<Vec<f64>>())
}

/// Median over trials of the offered rate.
fn offered(trials: &[&Trial]) -> Option<f64> {
    let all: Vec<f64> = trials.iter().map(|trial| trial.evidence.offered_pps).collect();
    quantile::median(&all)
}

fn window_loss(evidence: &WindowEvidence) -> Option<f64> {
    (evidence.offered_pps > 0.0)
        .then(|| (1.0 - evidence.delivered_pps / evidence.offered_pps).max(0.0))
}

/// The window's loss at one place. The window's counters give only the amount; the ledger of the whole trial gives the
/// place. `None` where it has the losses within bounds that are not as good as one number.
fn stage_loss(trial: &Trial, place: Place) -> Option<f64> {
    let ledger = &trial.ledger;
    if !ledger.drops.iter().all(|drop| drop.range().is_narrow(ledger.offered_packets)) {
        return None;
    }
    let (here, lost) = (ledger.lost_at(place), ledger.lost_packets());
    Some(window_loss(&trial.evidence)? * here as f64 / lost.max(1) as f64)
}

/// Valid trials of a variant.
pub fn valid<'a>(manifest: &'a Manifest, variant: &'a str) -> impl Iterator<Item = &'a Trial> {
    manifest.trials.iter().filter(move |trial| trial.variant == variant && trial.void.is_none())
}

/// The simulator's parameters for a variant as it ran: load as offered, costs as calibrated or `fitted`. The error
/// names what the simulator cannot model.
///
/// # Errors
/// In words what that is.
pub fn values(
    variant: &Variant,
    trials: &[&Trial],
    calibration: &Calibration,
    fitted: &BTreeMap<&str, f64>,
) -> Result<Values, String> {
    let trial = trials.first().ok_or("it has no valid trial")?;
    unknown(variant)?;
    let told = |error: ParameterError| error.to_string();
    let mut values = Values::default();
    calibration.apply(&mut values).map_err(told)?;
    for (key, value) in TIMES {
        values.put(key, value).map_err(told)?;
    }
    let offered = offered(trials).unwrap_or(0.0);
    if !(1.0..MOST_PPS).contains(&offered) {
        return Err(format!("{offered:.0} datagrams/s were offered"));
    }
    values.put("arrivals.kind", "cbr").map_err(told)?;
    values.put("arrivals.rate", offered.round() as u64).map_err(told)?;
    let size = variant.load.datagrams().map_or(0, |datagrams| u64::from(datagrams.size_bytes));
    values.put("arrivals.size", size).map_err(told)?;
    for (key, value) in fitted {
        values.put(key, value.round().max(0.0) as u64).map_err(told)?;
    }
    softirq(variant, trial, &mut values).map_err(told)?;
    reader(variant, trial, &mut values)?;
    let share = share(variant, trials);
    values.set(&format!("reader.share={share:.4}")).map_err(told)?;
    Ok(values)
}

/// What the simulator cannot model in a variant.
fn unknown(variant: &Variant) -> Result<(), String> {
    let lab = &variant.lab;
    let datagrams = variant.load.datagrams();
    let one = |cpus: &rxpath_core::CpuList| cpus.0.len() == 1;
    let reasons = [
        (variant.load.is_external() || variant.serve.is_external(), "a third-party program"),
        (variant.serve.own().is_some_and(|own| own.absent), "nobody listens"),
        (datagrams.is_none_or(|datagrams| datagrams.segments > 1), "GSO batches are not simulated"),
        (
            variant.serve.datagrams().is_some_and(|d| d.gro) || lab.udp_gro_forwarding,
            "GRO is not simulated",
        ),
        (
            lab.nft_rx.is_some() || lab.nft_tx.is_some() || !lab.iptables_rx.is_empty(),
            "netfilter rules have costs of their own",
        ),
        (lab.qdisc_tx.is_some(), "queueing disciplines are not simulated"),
        (
            lab.napi_idle || lab.napi_defer_hard_irqs.is_some(),
            "this scheduling of NAPI is not simulated",
        ),
        (!one(variant.serve.cpus()), "the reader is not one thread on one CPU"),
        (!one(variant.load.cpus()), "the sender is not one thread on one CPU"),
        (
            variant.serve.cpus() == variant.load.cpus() && !naps(variant),
            "sender and reader share a CPU",
        ),
        (lab.gro && !lab.threaded, "NAPI of the link runs where the sender's does"),
    ];
    reasons.iter().find(|(applies, _)| *applies).map_or(Ok(()), |(_, why)| Err((*why).to_owned()))
}

/// Waiting for a CPU from which on another task had the reader's CPU: a shorter wait is the normal wake-up.
const WAITING: f64 = 0.1;

/// The reader's share of its CPU in these trials. The model does not know what took the rest, so the share is an input.
/// Busy loops that the scenario itself started are simulated instead.
fn share(variant: &Variant, trials: &[&Trial]) -> f64 {
    let hogs = &variant.background;
    let own = variant.serve.cpus();
    if hogs.hogs > 0
        && hogs.on != OnHosts::Senders
        && hogs.cpus.0.iter().any(|cpu| own.0.contains(cpu))
    {
        return 1.0;
    }
    let of = |trial: &&Trial| {
        let reader = trial.evidence.receiver_threads.first()?;
        Some(share_of(reader.running_ratio, reader.waiting_ratio))
    };
    quantile::median(&trials.iter().filter_map(of).collect::<Vec<f64>>()).unwrap_or(1.0)
}

fn share_of(running: f64, waiting: f64) -> f64 {
    let share = if waiting < WAITING { 1.0 } else { running / (running + waiting) };
    share.clamp(0.001, 1.0)
}

/// Whether the reader polls at intervals instead of being woken.
fn naps(variant: &Variant) -> bool {
    variant.serve.own().is_some_and(|own| own.options.nap.is_some())
}

/// Where the receive path runs, and with which ring.
fn softirq(variant: &Variant, trial: &Trial, values: &mut Values) -> Result<(), ParameterError> {
    let lab = &variant.lab;
    let sender = variant.load.cpus().0.clone();
    if lab.threaded {
        let cpus = lab.napi_cpu.map_or(sender, |cpu| vec![cpu]);
        values.put("nic.cpus", &cpus)?;
        return values.put("softirq.threaded", true);
    }
    // The sender's call carries the packet to the socket or the backlog: this is the sender's CPU time.
    values.put("nic.cpus", &sender)?;
    values.put("nic.ring", NO_RING)?;
    for cost in ["softirq.packet_ns", "softirq.poll_ns", "nic.irq_ns"] {
        values.put(cost, 0)?;
    }
    values.put("rps.cpus", &lab.rps_cpus.0)?;
    let limit = trial.evidence.backlog_limit_packets;
    limit.map_or(Ok(()), |limit| values.put("rps.backlog", limit))
}

/// The reader as it was set up.
fn reader(variant: &Variant, trial: &Trial, values: &mut Values) -> Result<(), String> {
    let told = |error: ParameterError| error.to_string();
    let server = UdpServer::recorded(trial).ok_or("the reader's settings were not recorded")?;
    let settings = &server.settings;
    if settings.engine != ServeEngine::Socket {
        return Err("the model has no receiver that bypasses the stack".into());
    }
    if settings.threads.sched.is_some_and(|class| class != SchedClass::Other) {
        return Err("the model has no scheduler class but SCHED_OTHER".into());
    }
    values.put("reader.cpus", &variant.serve.cpus().0).map_err(told)?;
    values.put("reader.batch", settings.batch.max(1) as u64).map_err(told)?;
    let packet: u64 =
        values.value("reader.packet_ns").ok_or("the reader's cost is not calibrated")?;
    values.put("reader.packet_ns", packet + settings.work_ns).map_err(told)?;
    if let Some(stall) = settings.stall {
        values.put("reader.stall", stall.sleep_ns).map_err(told)?;
        values.put("reader.period", stall.every_ns).map_err(told)?;
    }
    if let Some(socket) = server.result.sockets.first() {
        values.put("socket.rcvbuf", socket.rcvbuf_bytes).map_err(told)?;
        if let Some(truesize) = socket.truesize_bytes {
            values.put("socket.truesize", truesize).map_err(told)?;
        }
    }
    if let Some(nice) = settings.threads.nice {
        values.put("reader.nice", i64::from(nice)).map_err(told)?;
    }
    let background = &variant.background;
    if background.hogs > 0 && matches!(background.on, OnHosts::These(_)) {
        return Err("the background load runs on chosen hosts".into());
    }
    // What a sender sends is an input.
    if background.hogs > 0 && background.on != OnHosts::Senders {
        if !background.command.is_empty() || background.cpus.0.is_empty() {
            return Err("the background load is not busy loops on a known CPU".into());
        }
        let each = (background.hogs as usize).div_ceil(background.cpus.0.len());
        let rivals = if variant.lab.threaded && sessions_are_groups() { 1 } else { each };
        values.put("background.threads", rivals as u64).map_err(told)?;
        values.put("background.cpus", &background.cpus.0).map_err(told)?;
        values.put("background.nice", background.nice).map_err(told)?;
    }
    Ok(())
}

/// Whether the busy loops together are one competitor of a kernel thread: they belong to one session, a kernel thread
/// to none, and sessions share a CPU like one thread each (sched(7), autogroup).
fn sessions_are_groups() -> bool {
    let enabled = rxpath_host::Root::host().text("/proc/sys/kernel/sched_autogroup_enabled");
    enabled.is_ok_and(|enabled| enabled.trim() == "1")
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use rxpath_record::ledger::{Drop, Ledger, PacketBounds};

    use super::*;

    #[test]
    fn what_a_trace_holds_is_simulated() {
        let mut trace = tempfile::NamedTempFile::new().unwrap();
        for n in 0..2000 {
            writeln!(trace, "{},32,1", n * 10_000).unwrap();
        }
        let text = rxpath_model::sim::bundled::find("simple-path").unwrap();
        let mut values = Values::from_toml(text).unwrap();
        let file = format!("arrivals.file={}", trace.path().display());
        for set in ["arrivals.kind=trace", file.as_str(), "duration=20ms", "warmup=0s"] {
            values.set(set).unwrap();
        }
        let pps = figures(&values).unwrap()["delivered_pps"];
        assert!((pps - 100_000.0).abs() < 1_000.0, "{pps}");
        drop(trace);
        let gone = figures(&values).unwrap_err();
        let why = std::error::Error::source(&gone).unwrap().to_string();
        assert!(why.contains("No such file"), "{why}");
    }

    #[test]
    fn a_stage_s_part_of_a_loss_is_known_where_the_losses_are_numbers() {
        let lost = |place, packets, bounds: Option<PacketBounds>| Drop {
            place,
            counter: "counter".into(),
            packets,
            derived: false,
            exact: bounds.is_none(),
            bounds,
            cross_checks: Vec::new(),
        };
        let of = |bounds| {
            let drops = vec![lost(Place::Ring, 300, bounds), lost(Place::SocketBuffer, 100, None)];
            let ledger = Ledger { offered_packets: 1_000, drops, ..Ledger::default() };
            let evidence = WindowEvidence {
                offered_pps: 1_000.0,
                delivered_pps: 600.0,
                ..WindowEvidence::default()
            };
            let trial = Trial { ledger, evidence, ..Trial::default() };
            measured("socket_loss_ratio", &[&trial])
        };
        let share = of(None).unwrap();
        assert!((share - 0.1).abs() < 1e-9, "{share}");
        let bounds = |most| PacketBounds { least_packets: 295, most_packets: Some(most) };
        assert!(of(Some(bounds(300))).is_some(), "as good as one number");
        assert_eq!(of(Some(bounds(400))), None);
    }

    #[test]
    fn a_share_is_of_the_time_that_was_wanted() {
        // Waiting a moment after each wake-up is no competition.
        assert!((share_of(0.3, 0.05) - 1.0).abs() < 1e-12);
        assert!((share_of(0.2, 0.6) - 0.25).abs() < 1e-12);
        assert!((share_of(0.0, 0.9) - 0.001).abs() < 1e-12, "the simulator's least");
    }
}
