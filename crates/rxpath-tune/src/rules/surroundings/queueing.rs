//! Queueing disciplines that lose or delay what a device sends, and devices that packets are redirected through.

use rxpath_core::number::grouped;
use rxpath_host::counter::Width;
use rxpath_host::netlink::qdisc::QdiscLimit;
use rxpath_host::nic::QdiscFacts;

use crate::prelude::*;

/// Fewer in the window are not significant.
const ENOUGH: u64 = 20;
/// A queue that drops so large a share is too short, or its device too slow. Queues that drop early on purpose stay below.
const MUCH_RATIO: f64 = 0.05;
/// Header of an Ethernet frame.
const HEADER_BYTES: u32 = 14;

/// Kinds that hold packets back to a rate.
const SHAPERS: [&str; 5] = ["tbf", "htb", "hfsc", "cake", "cbq"];

/// Rules of this file.
pub const RULES: &[Rule] = &[
    Rule {
        id: "qdisc-limit",
        what: "Can each queueing discipline hold more than one packet?",
        applies: "devices that are up; read over rtnetlink",
        weight: Weight::always(Warn),
        size: Loss,
        effect: "of two packets sent close together, one is lost",
        check: Check::Active(limit),
        why: "A queue of one packet, or of fewer bytes than a packet, drops all but the first packet of a burst: \
              replies, acknowledgements and forwarded packets.",
        mechanism: "pfifo_enqueue and bfifo_enqueue (net/sched/sch_fifo.c) drop beyond the limit, tbf_enqueue \
                    beyond its bytes. The rings of pfifo_fast are as long as the device's tx_queue_len \
                    (pfifo_fast_change_tx_queue_len, net/sched/sch_generic.c). A pfifo takes its limit from \
                    tx_queue_len when it is created; on old kernels tx_queue_len was 0 for veth, bridges and \
                    VLANs.",
        not_when: "an experiment that shows its effect",
        side_effects: "replacing a qdisc loses its packets and its configuration: dump it first",
        set_now: "tc qdisc replace dev DEV root pfifo limit 1000, or the existing kind with a larger limit; ip \
                  link set dev DEV txqueuelen 1000",
        persist: "change what creates the qdisc: a unit, a script, the container's or machine's definition",
        undo: "tc qdisc replace dev DEV root KIND, with the dumped options",
        verify: "tc -s qdisc show dev DEV: dropped does not rise",
        since: "2.2",
        sources: &["kernel: net/sched/sch_fifo.c fifo_init", "tc-pfifo(8)"],
        ..Rule::judge(Area::Surroundings)
    },
    Rule {
        id: "qdisc-drops",
        what: "Does the queueing discipline drop many packets?",
        applies: "devices that are up and whose qdisc was read twice",
        weight: Weight::always(Warn),
        size: Loss,
        effect: "packets dropped here never leave the host",
        check: Check::Active(drops),
        why: "The host sends more than the device or the shaper allows, or the queue is too short for the bursts.",
        mechanism: "qdisc_drop (include/net/sch_generic.h) counts each packet that a qdisc rejects; the counters \
                    come with RTM_GETQDISC.",
        not_when: "a shaper on purpose, under more load than its rate",
        side_effects: "a longer queue is a longer wait",
        set_now: "tc -s qdisc show dev DEV names the queue; then a higher rate or limit, fq_codel in its place, or a sender that \
                  sends less",
        persist: "change what creates the qdisc: a unit, a script, the container's or machine's definition",
        undo: "tc qdisc replace dev DEV root KIND, with the dumped options",
        verify: "tc -s qdisc show dev DEV, twice: dropped",
        since: "2.2",
        sources: &["kernel: net/sched/sch_generic.c", "kernel: net/core/gen_stats.c"],
        ..Rule::judge(Area::Surroundings)
    },
    Rule {
        id: "qdisc-shaper",
        what: "Does a shaper delay packets?",
        applies: "devices that are up and whose qdisc was read twice",
        weight: Weight::by_goal().when(Throughput, Warn).when(Latency, Warn).when(Benchmark, Warn),
        size: Multiple,
        effect: "nothing leaves faster than the rate, and each packet waits for it",
        check: Check::Active(shaper),
        why: "A measurement then shows the shaper's rate. The shaper may be left over from a test, or belong to a \
              container's limits.",
        mechanism: "tbf_dequeue (net/sched/sch_tbf.c), htb_dequeue and cake_dequeue count overlimits when a \
                    packet has to wait for tokens. rxpath reads a token bucket's own rate, not the rates of \
                    classes.",
        not_when: "the link behind the host is slower, and the shaper keeps its queue short",
        side_effects: "without it the queue builds up at a place that nothing controls",
        set_now: "find the program that created it: tc qdisc show dev DEV; for a measurement: tc qdisc del dev \
                  DEV root",
        persist: "what makes the qdisc",
        undo: "tc qdisc replace dev DEV root KIND, with the dumped options",
        verify: "tc -s qdisc show dev DEV, twice: overlimits",
        since: "2.2; cake 4.19",
        sources: &["kernel: net/sched/sch_tbf.c tbf_dequeue", "tc-tbf(8)"],
        ..Rule::judge(Area::Surroundings)
    },
    Rule {
        id: "ifb-redirect",
        what: "Do received packets take a detour through an ifb device?",
        applies: "ifb devices that are up and were read twice",
        weight: Weight::by_goal().when(Throughput, Warn).when(Latency, Warn).when(Benchmark, Warn),
        size: Tens,
        effect: "each packet passes a second queue and a second softirq",
        check: Check::Active(ifb),
        why: "Shaped incoming traffic goes through a qdisc of the ifb device, and returns to the stack from one \
              tasklet per ifb queue.",
        mechanism: "tcf_mirred_act (net/sched/act_mirred.c) sends the packet to ifb_xmit, ifb_ri_tasklet \
                    (drivers/net/ifb.c) hands it to netif_receive_skb again.",
        not_when: "the input must be shaped here, because no device before this host does it",
        side_effects: "without it the input is not shaped",
        set_now: "tc filter show dev DEV ingress, and the program that created it; a policer drops without the \
                  detour",
        persist: "what makes the filter",
        undo: "add the dumped filter again with tc filter add",
        verify: "ip -s link show dev DEV, twice",
        since: "2.6.20",
        sources: &["kernel: drivers/net/ifb.c ifb_ri_tasklet", "kernel: net/sched/act_mirred.c"],
        ..Rule::judge(Area::Surroundings)
    },
];

/// Qdiscs that hold what the device sends.
fn egress(device: &Device) -> Result<impl Iterator<Item = &QdiscFacts>, Gap> {
    let all = (&device.nic.qdiscs).known()?;
    Ok(all.iter().filter(|qdisc| !["ingress", "clsact"].contains(&qdisc.kind.as_str())))
}

fn root(device: &Device) -> Result<Option<&QdiscFacts>, Gap> {
    Ok(egress(device)?.find(|qdisc| qdisc.is_root))
}

/// Why a qdisc of this device is too short; `None` if it is not.
fn no_room(qdisc: &QdiscFacts, device: &Device, mtu: u32) -> Option<String> {
    // Its ring has the length of the device's queue, and no limit of its own that would be shown.
    if qdisc.kind == "pfifo_fast" && device.sysfs.tx_queue_len_packets.value() == Some(&0) {
        return Some("pfifo_fast on a device with txqueuelen 0".into());
    }
    match qdisc.limit? {
        QdiscLimit::Packets(packets @ (0 | 1)) => {
            Some(format!("{} with a limit of {packets} packets", qdisc.kind))
        }
        QdiscLimit::Bytes(bytes) if bytes < mtu.saturating_add(HEADER_BYTES) => Some(format!(
            "{} with a limit of {bytes} bytes, and packets of up to {mtu}",
            qdisc.kind
        )),
        _ => None,
    }
}

fn limit(_: &Ask<'_>, device: &Device) -> Checked {
    let mtu = *(&device.sysfs.mtu_bytes).known()?;
    let short: Vec<String> =
        egress(device)?.filter_map(|qdisc| no_room(qdisc, device, mtu)).collect();
    if short.is_empty() {
        let kinds: Vec<&str> = egress(device)?.map(|qdisc| qdisc.kind.as_str()).collect();
        return Answer::fine(if kinds.is_empty() { "no qdisc".into() } else { kinds.join(", ") });
    }
    Answer::found(
        short.join("; "),
        "room for a burst: 1000 packets are usual",
        "all but the first packet of a burst are dropped",
    )
    .advice(format!(
        "tc qdisc show dev {}, then the same kind with a larger limit, or none",
        device.name
    ))
}

/// A counter of the root qdisc in the window.
fn counted(
    ask: &Ask<'_>,
    device: &Device,
    width: Width,
    get: fn(&QdiscFacts) -> Option<u64>,
) -> Result<u64, Gap> {
    let Some(first) = root(device)? else { return Ok(0) };
    let later = ask.facts.later_device(device).and_then(|later| later.nic.qdiscs.value());
    let later = later.and_then(|all| all.iter().find(|qdisc| qdisc.is_root));
    // A qdisc that replaced another one counts from 0.
    let later = later.filter(|later| later.kind == first.kind);
    get(first).map_or(Ok(0), |count| Count::of(width, count, later.and_then(get)).in_window())
}

fn drops(ask: &Ask<'_>, device: &Device) -> Checked {
    let Some(qdisc) = root(device)? else { return Answer::silent("no qdisc") };
    let dropped = counted(ask, device, Width::U32, |qdisc| qdisc.drops_total)?;
    let sent = counted(ask, device, Width::U64, |qdisc| qdisc.packets_total)?;
    let ratio = dropped as f64 / dropped.saturating_add(sent).max(1) as f64;
    let told = format!(
        "{} dropped {} packets {} and let {} pass",
        qdisc.kind,
        grouped(dropped),
        ask.facts.watched.span(),
        grouped(sent)
    );
    if dropped < ENOUGH || ratio < MUCH_RATIO {
        return Answer::fine(told);
    }
    Answer::found(told, "less than 5 %", "the host sends more than the device or the shaper allows")
        .advice(format!("tc -s qdisc show dev {} names the queue", device.name))
}

fn shaper(ask: &Ask<'_>, device: &Device) -> Checked {
    let Some(qdisc) = root(device)? else { return Answer::silent("no qdisc") };
    if !SHAPERS.contains(&qdisc.kind.as_str()) {
        return Answer::silent(format!("{} holds nothing back to a rate", qdisc.kind));
    }
    let held = counted(ask, device, Width::U32, |qdisc| qdisc.overlimits_total)?;
    let rate =
        qdisc.rate_bps.map_or_else(String::new, |rate| format!(" ({} Mb/s)", rate as f64 / 1e6));
    let told = format!(
        "{}{rate} held packets back {} times {}",
        qdisc.kind,
        grouped(held),
        ask.facts.watched.span()
    );
    if held < ENOUGH {
        return Answer::fine(told);
    }
    Answer::found(
        told,
        "no shaper, or one that is known",
        "the measurement shows the shaper's rate",
    )
    .advice("find the program that made it; a container's or machine's limits may be intended")
}

fn ifb(ask: &Ask<'_>, device: &Device) -> Checked {
    if (&device.nic.link).known()?.kind.as_deref() != Some("ifb") {
        return Answer::silent("no ifb device");
    }
    let passed = ask.facts.device_count(device, "rx_packets").known()?.in_window()?;
    let told = format!(
        "{} packets were redirected through it {}",
        grouped(passed),
        ask.facts.watched.span()
    );
    if passed < ENOUGH {
        return Answer::fine(told);
    }
    Answer::found(
        told,
        "no detour, where the input need not be shaped",
        "each packet passes a second queue and a second softirq",
    )
    .advice("tc filter show dev DEV ingress, on the device that receives, shows what redirects")
}
