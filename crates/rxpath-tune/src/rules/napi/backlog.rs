//! The per-CPU backlog for packets without their own NAPI, and its settings.

use crate::prelude::*;

const ADMIN: &str = "kernel: Documentation/admin-guide/sysctl/net.rst";
const BACKLOG: &str = "kernel: net/core/dev.c enqueue_to_backlog, process_backlog";

/// A backlog for a burst of some ms; the kernel's default is 1000. A longer backlog only hides a CPU that cannot keep
/// up.
const WANTED: i64 = 4000;

/// Rules of this file.
pub const RULES: &[Rule] = &[
    Rule {
        id: "backlog-max",
        what: "Is the per-CPU backlog large enough for RPS, veth and tunnels?",
        applies: "hosts on which RPS is on, a device without NAPI of its own is up, or a backlog (loopback's too) dropped",
        weight: Weight::always(Warn).when(Throughput, Fail).when(Latency, Info),
        size: Loss,
        effect: "each packet that finds the backlog full is lost, and one loss raises five counters",
        check: Check::Host(backlog),
        why: "Packets of loopback, veth, tunnels and RPS wait in the backlog of the CPU that will handle them. \
              When the backlog is full, they are dropped before any protocol sees them.",
        mechanism: "enqueue_to_backlog (net/core/dev.c) drops above netdev_max_backlog and counts it in column 2 \
                    of softnet_stat and in the device's rx_dropped. A NIC's own NAPI never uses the backlog.",
        not_when: "without RPS and such devices only loopback uses the backlog; a saturated CPU fills any queue. \
                   The counters are machine-wide and start at boot. They keep drops from experiments in a \
                   namespace, including rxpath's own. Only drops while rxpath watches call for a change",
        side_effects: "memory, and the time that packets wait in the longer queue",
        set_now: "sysctl -w net.core.netdev_max_backlog=4000",
        persist: "/etc/sysctl.d/",
        verify: "column 2 of /proc/net/softnet_stat does not rise",
        since: "2.2",
        sources: &[ADMIN, BACKLOG, "oracle/bpftune issue 178"],
        ..Rule::judge(Area::Napi)
    },
    Rule {
        id: "dev-weight",
        what: "Is the batch size of the backlog the kernel's default?",
        applies: "every host",
        check: Check::Host(weight),
        why: "dev_weight is the batch size of the backlog (RPS, veth) and of each qdisc run on transmit. Drivers \
              fix the weight of their own NAPI in code, so dev_weight does not change NIC reception.",
        mechanism: "process_backlog takes dev_rx_weight = dev_weight * dev_weight_rx_bias packets, __qdisc_run \
                    (net/sched/sch_generic.c) dev_tx_weight = dev_weight * dev_weight_tx_bias; drivers register NAPI \
                    with NAPI_POLL_WEIGHT (64).",
        not_when: "RPS or veth carries the load, and a measurement showed that a larger batch helps",
        side_effects: "larger: other NAPI instances of the CPU wait longer, and a sender keeps the qdisc for longer",
        set_now: "sysctl -w net.core.dev_weight=64",
        persist: "remove the line from /etc/sysctl.d/",
        verify: "sysctl net.core.dev_weight",
        since: "2.4; dev_weight_rx_bias 4.10",
        sources: &[
            ADMIN,
            BACKLOG,
            "kernel: net/sched/sch_generic.c __qdisc_run",
            "kernel: include/linux/netdevice.h NAPI_POLL_WEIGHT",
        ],
        ..Rule::judge(Area::Napi)
    },
    Rule {
        id: "skb-defer",
        what: "How many packets may wait to be freed on the CPU that allocated them?",
        applies: "Linux 5.19 and later",
        check: Check::Host(defer),
        why: "Freeing on the allocating CPU avoids cache misses when another CPU reads the socket.",
        mechanism: "skb_attempt_defer_free (net/core/skbuff.c) returns up to skb_defer_max buffers.",
        not_when: "one CPU receives and reads: then nothing is returned",
        side_effects: "0 turns it off",
        set_now: "sysctl -w net.core.skb_defer_max=64",
        persist: "/etc/sysctl.d/",
        undo: VALUE_BACK,
        verify: "sysctl net.core.skb_defer_max",
        since: "5.19; 64 by default, 128 since 6.19",
        sources: &["kernel: net/core/skbuff.c skb_attempt_defer_free", ADMIN],
        ..Rule::record(Area::Napi)
    },
    Rule {
        id: "tstamp-prequeue",
        what: "Are packets timestamped before or after RPS?",
        applies: "every host",
        check: Check::Host(prequeue),
        why: "A latency probe sees the wait in the backlog only if packets are timestamped before the backlog.",
        mechanism: "netif_receive_skb_internal and netif_rx_internal (net/core/dev.c) timestamp before the \
                    backlog when netdev_tstamp_prequeue is 1, else __netif_receive_skb_core does.",
        not_when: "latency is measured from the timestamp: with 0 the wait in the backlog is left out",
        side_effects: "0 moves the cost of the timestamp to the CPU that RPS chose",
        set_now: "sysctl -w net.core.netdev_tstamp_prequeue=0",
        persist: "/etc/sysctl.d/",
        undo: VALUE_BACK,
        verify: "sysctl net.core.netdev_tstamp_prequeue",
        since: "2.6.35",
        sources: &[ADMIN, "kernel: net/core/dev.c net_timestamp_check"],
        ..Rule::record(Area::Napi)
    },
];

fn backlog(ask: &Ask<'_>) -> Checked {
    let (dropped, processed) = ask.facts.backlog_drops().known()?;
    // If packets were dropped, the backlog is in use, if only by loopback.
    if dropped.total == 0 && !ask.facts.uses_backlog()? {
        return Answer::silent(
            "nothing was dropped, and only loopback passes the backlog: no RPS, no other device without NAPI",
        );
    }
    let now = ask.facts.sysctl_number("net.core.netdev_max_backlog").known()?;
    if dropped.total == 0 {
        return Answer::fine(format!("{now} packets, none was dropped"));
    }
    let watched = &ask.facts.watched;
    let told = watched.tell(dropped, "packets dropped", "boot");
    if dropped.ratio_of(processed).is_some_and(|ratio| ratio < RARE_RATIO) {
        return Answer::fine(format!("{now} packets; {told}: less than one in a million"));
    }
    let observed = format!("{told}; the backlog is {now} now");
    if now >= WANTED {
        return Answer::found(
            observed,
            "no drops",
            "the receiving CPU cannot keep up",
        )
        .advice(
            "a longer queue will not help: spread the load over more CPUs, or reduce the work per packet",
        )
        .rests_on(dropped, watched);
    }
    Answer::found(
        observed,
        format!("{WANTED}, and no drops"),
        "packets that find the backlog full are lost",
    )
    .change(Set::new(Knob::sysctl("net.core.netdev_max_backlog"), WANTED as u64))
    .rests_on(dropped, watched)
}

fn weight(ask: &Ask<'_>) -> Checked {
    let now = ask.facts.sysctl_number("net.core.dev_weight").known()?;
    if now == 64 {
        return Answer::fine("64");
    }
    if ask.facts.uses_backlog()? {
        return Answer::silent(
            "the backlog is in use: its batch may have been chosen by measurement",
        );
    }
    Answer::found(
        now.to_string(),
        "64",
        "no NIC's NAPI uses it: it is the batch of RPS and veth, and of qdiscs on transmit",
    )
    .change(Set::new(Knob::sysctl("net.core.dev_weight"), 64))
}

fn defer(ask: &Ask<'_>) -> Checked {
    Answer::recorded(ask.facts.sysctl_number("net.core.skb_defer_max").known()?.to_string())
}

fn prequeue(ask: &Ask<'_>) -> Checked {
    let now = ask.facts.sysctl_number("net.core.netdev_tstamp_prequeue").known()?;
    Answer::recorded(if now == 0 { "after RPS (0)" } else { "before RPS (1)" })
}
