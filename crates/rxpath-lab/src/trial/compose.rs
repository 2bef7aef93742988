//! From what a trial left behind to the record of it: ledger, evidence, verdict, grade, metrics.

use std::collections::BTreeMap;

use rxpath_core::Warning;
use rxpath_load::udp::result::{LoadResult, ServeResult, SocketResult};
use rxpath_record::counters::Moved;
use rxpath_record::evidence::{Evidence, ThreadUse};
use rxpath_record::ledger::{Ledger, LedgerInput, PathFacts, ReceiverSaid, SenderSaid};
use rxpath_record::manifest::{LoopKind, Trial};
use serde_json::Value;

use super::conduct::{Raw, SideRaw};
use super::evidence::{Seen, SideSeen, gather};
use super::noise::{self, Disturbance};
use super::observe::Between;
use super::{kernel_lines, waiting, window};
use crate::bed::Bed;
use crate::error::LabError;
use crate::scenario::spec::{Variant, Workload};

/// Which trial of the run it is.
#[derive(Clone, Copy, Debug)]
pub struct Number {
    /// Index in the order of running.
    pub trial: u32,
    /// Block.
    pub block: u32,
}

/// The results of our own programs; `None` for foreign ones and for a missing server.
struct Said {
    load: Option<LoadResult>,
    serve: Option<ServeResult>,
}

/// Puts the record of a trial together.
pub fn compose(
    number: Number,
    variant: &Variant,
    bed: &dyn Bed,
    mut raw: Raw,
) -> Result<Trial, LabError> {
    let said =
        Said { load: ours(&variant.load, &raw.load)?, serve: ours(&variant.serve, &raw.serve)? };
    let moved = raw.counters[1].since(&raw.counters[0]);
    let mut input = ledger_input(variant, bed.path(), &said, &moved);
    input.sender.queued_packets = waiting::datagrams(raw.queued_bytes, variant);
    let ledger = Ledger::from_counters(&input, &moved);
    let [from, to] = raw.between.window_ns;
    let load_span = window::span(&raw.load.lines, from, to).unwrap_or_default();
    let serve_span = window::span(&raw.serve.lines, from, to).unwrap_or_default();
    let evidence = gather(&Seen {
        between: &raw.between,
        load: SideSeen {
            span: &load_span,
            threads: said.load.as_ref().map_or(&[], |load| &load.threads),
            pid: raw.load.pid,
        },
        serve: SideSeen {
            span: &serve_span,
            threads: said.serve.as_ref().map_or(&[], |serve| &serve.threads),
            pid: raw.serve.pid,
        },
        served: said.serve.as_ref().map(|serve| (serve, raw.serve.lines.as_slice())),
        asked_pps: said.load.as_ref().and_then(|load| load.asked_pps),
        segments_per_send: said.load.as_ref().map(|load| load.segments_per_send),
        softirq: bed.softirq(),
        ledger: &ledger,
    });
    let (grade, noise) = noise::grade(&disturbance(variant, &raw.between));
    let mut warnings = warnings(std::mem::take(&mut raw.warnings), &said, variant);
    warnings.extend(unread_at_close(variant, &ledger));
    let blocked = said.load.as_ref().is_some_and(|load| load.blocked_s > 0.0);
    Ok(Trial {
        trial: number.trial,
        block: number.block,
        variant: variant.name.clone(),
        void: noise::void(grade, &noise),
        loop_kind: if blocked { LoopKind::Closed } else { LoopKind::Open },
        grade,
        noise,
        window_ns: [from as i64, to as i64],
        metrics: metrics(&evidence, &raw),
        verdict: Some(rxpath_diagnose::diagnose(&evidence)),
        evidence,
        ledger,
        moved,
        flow_cpus: std::mem::take(&mut raw.flow_cpus),
        warnings,
        workloads: BTreeMap::from([
            ("load".to_owned(), with_settings(&raw.load)),
            ("serve".to_owned(), with_settings(&raw.serve)),
        ]),
    })
}

fn ours<T: serde::de::DeserializeOwned>(
    workload: &Workload,
    side: &SideRaw,
) -> Result<Option<T>, LabError> {
    if !matches!(workload, Workload::Udp { absent: false, .. }) {
        return Ok(None);
    }
    let read = serde_json::from_value(side.result.clone());
    read.map(Some)
        .map_err(|e| LabError::Internal { what: format!("a workload's result can't be read: {e}") })
}

fn ledger_input(variant: &Variant, path: PathFacts, said: &Said, moved: &Moved) -> LedgerInput {
    let kernel = |side: &str, counter: &str| {
        kernel_lines::both_families(
            |name| moved.values.get(name).map(|n| (*n).max(0) as u64),
            side,
            counter,
        )
    };
    let sender = if let Some(load) = &said.load {
        sender_said(variant, load)
    } else {
        foreign_sender(kernel("tx", "OutDatagrams") + kernel("tx", "SndbufErrors"), &path, moved)
    };
    let payload_bytes = match &variant.load {
        Workload::Udp { size_bytes, .. } => Some(*size_bytes),
        Workload::External { .. } => None,
    };
    let receiver = match (&said.serve, &variant.serve) {
        (Some(serve), _) => ReceiverSaid {
            delivered_packets: serve.delivered_packets,
            in_flight_packets: serve.sockets.iter().map(in_flight).sum(),
            socket_drops: Some(serve.sockets.iter().map(|socket| socket.drops_packets).collect()),
            gro: matches!(variant.serve, Workload::Udp { gro: true, .. }),
            may_refuse: false,
            payload_bytes,
            sequence_lost_packets: serve.sequence.checked.then_some(serve.sequence.lost_packets),
        },
        (None, Workload::External { .. }) => ReceiverSaid {
            delivered_packets: kernel("rx", "InDatagrams"),
            may_refuse: true,
            ..ReceiverSaid::default()
        },
        (None, Workload::Udp { .. }) => ReceiverSaid { payload_bytes, ..ReceiverSaid::default() },
    };
    LedgerInput { sender, receiver, path }
}

/// What a foreign program sent: its UDP datagrams, or the device's frames when it goes around UDP.
fn foreign_sender(udp: u64, path: &PathFacts, moved: &Moved) -> SenderSaid {
    let device = |counter: &str| {
        let name = path.tx_device.as_ref().map(|device| format!("tx/link.{device}.{counter}"));
        name.and_then(|name| moved.values.get(&name)).map_or(0, |n| (*n).max(0) as u64)
    };
    let raw = udp == 0;
    let sent = if raw { device("tx.packets") + device("tx.dropped") } else { udp };
    SenderSaid { offered_packets: sent, sent_packets: sent, raw, ..SenderSaid::default() }
}

/// What our own sender says.
pub(super) fn sender_said(variant: &Variant, load: &LoadResult) -> SenderSaid {
    SenderSaid {
        offered_packets: load.offered_packets,
        sent_packets: load.sent_packets,
        send_errors: load.send_errors.clone(),
        segments_per_send: load.segments_per_send.max(1),
        full_batches: true,
        raw: is_raw(&variant.load),
        queued_packets: 0,
    }
}

/// Datagrams that draining left in a socket: their memory over one datagram's.
fn in_flight(socket: &SocketResult) -> u64 {
    match socket.truesize_bytes {
        Some(truesize @ 1..) => socket.rmem_bytes / truesize,
        _ => u64::from(socket.rmem_bytes > 0),
    }
}

/// The raw engine goes around the sender's UDP and IP counters.
fn is_raw(load: &Workload) -> bool {
    matches!(load, Workload::Udp { options, .. } if options.iter().any(|word| word.starts_with("--corrupt")))
}

fn disturbance(variant: &Variant, between: &Between) -> Disturbance {
    let (Workload::Udp { cpus: load, .. } | Workload::External { cpus: load, .. }) = &variant.load;
    let (Workload::Udp { cpus: serve, .. } | Workload::External { cpus: serve, .. }) =
        &variant.serve;
    // Threads that nobody pinned can be disturbed anywhere.
    let pinned = |cpu: u32| {
        load.is_empty() || serve.is_empty() || load.0.contains(&cpu) || serve.0.contains(&cpu)
    };
    let worst = between.foreign.iter().flatten().filter(|(cpu, _)| pinned(**cpu));
    let worst = worst.max_by(|a, b| a.1.0.total_cmp(&b.1.0));
    let steal = between.cpus.iter().filter(|cpu| pinned(cpu.cpu)).map(|cpu| cpu.steal_ratio);
    Disturbance {
        foreign_ratio: between
            .foreign
            .as_ref()
            .map(|_| worst.map_or(0.0, |(_, (ratio, _))| *ratio)),
        foreign_cpu: worst.map_or(0, |(cpu, _)| *cpu),
        foreign_name: worst.map_or_else(String::new, |(_, (_, name))| name.clone()),
        steal_ratio: steal.fold(0.0, f64::max),
    }
}

fn metrics(evidence: &Evidence, raw: &Raw) -> BTreeMap<String, f64> {
    let mut all = BTreeMap::from([
        ("delivered_pps".to_owned(), evidence.delivered_pps),
        ("offered_pps".to_owned(), evidence.offered_pps),
    ]);
    let ledger = &evidence.ledger;
    if ledger.offered_packets > 0 {
        let lost = 1.0 - ledger.delivered_packets as f64 / ledger.offered_packets as f64;
        all.insert("loss_ratio".into(), lost);
    }
    let mut per_packet = |name: &str, threads: &[ThreadUse], pps: f64| {
        let running: f64 = threads.iter().map(|thread| thread.running_ratio).sum();
        if pps > 0.0 && running > 0.0 {
            all.insert(name.into(), running * 1e9 / pps);
        }
    };
    per_packet("receiver_cpu_ns_per_packet", &evidence.receiver_threads, evidence.delivered_pps);
    per_packet("sender_cpu_ns_per_packet", &evidence.sender_threads, evidence.offered_pps);
    if let Some(asked) = evidence.asked_pps.filter(|asked| *asked > 0.0) {
        all.insert("achieved_ratio".into(), evidence.offered_pps / asked);
    }
    let threads = evidence.sender_threads.len().max(1) as f64;
    if evidence.window_s > 0.0 {
        all.insert("blocked_ratio".into(), evidence.sender_blocked_s / evidence.window_s / threads);
    }
    for (side, result) in [("load", &raw.load.result), ("serve", &raw.serve.result)] {
        let own = result.get("metrics").and_then(Value::as_object).into_iter().flatten();
        all.extend(
            own.filter_map(|(name, value)| Some((format!("{side}.{name}"), value.as_f64()?))),
        );
    }
    all
}

/// What a foreign receiver leaves unread when it closes its socket is in no counter of the kernel.
fn unread_at_close(variant: &Variant, ledger: &Ledger) -> Option<Warning> {
    let foreign = matches!(variant.serve, Workload::External { .. });
    (foreign && ledger.unaccounted_packets > 0).then(|| {
        let text = format!(
            "{} datagrams of {} are not accounted for",
            ledger.unaccounted_packets, variant.name
        );
        Warning::new("unread-at-close", text)
            .because(
                "the receiver is a foreign program that closed its socket with datagrams still in it, and \
                 udp_destroy_sock counts those nowhere",
            )
            .cure("receive with `rxpath serve udp`, which drains first")
    })
}

fn warnings(mut all: Vec<Warning>, said: &Said, variant: &Variant) -> Vec<Warning> {
    if let Some(serve) = &said.serve
        && serve.sequence.duplicate_packets > 0
    {
        all.push(Warning::new(
            "duplicates",
            format!("{} datagrams came twice", serve.sequence.duplicate_packets),
        ));
    }
    let sides = [
        ("load", said.load.as_ref().map(|r| &r.threads)),
        ("serve", said.serve.as_ref().map(|r| &r.threads)),
    ];
    for (side, threads) in sides {
        for thread in threads.into_iter().flatten() {
            let Some(asked) = thread.asked_cpu else { continue };
            if thread.seen_cpus.iter().any(|cpu| *cpu != asked) {
                let text = format!(
                    "a {side} thread of {} was asked onto CPU {asked} and seen on {:?}",
                    variant.name, thread.seen_cpus
                );
                all.push(Warning::new("affinity-not-kept", text));
            }
        }
    }
    all
}

fn with_settings(side: &SideRaw) -> Value {
    serde_json::json!({ "settings": side.settings, "result": side.result })
}
