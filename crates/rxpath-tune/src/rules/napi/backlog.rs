//! The queue of each CPU for packets without a NAPI of their own, and what goes with it.

use crate::prelude::*;

const ADMIN: &str = "kernel: Documentation/admin-guide/sysctl/net.rst";
const BACKLOG: &str = "kernel: net/core/dev.c enqueue_to_backlog, process_backlog";

/// Packets that hold a burst of some ms; the kernel's own is 1000. More only hides a CPU that cannot keep up.
const WANTED: i64 = 4000;

/// Rules of this file.
pub const RULES: &[Rule] = &[
    Rule {
        id: "backlog-max",
        area: Area::Napi,
        kind: Kind::Judge,
        what: "Is the backlog of each CPU large enough for what RPS, veth and tunnels put into it?",
        applies: "hosts on which RPS is on, a device without NAPI of its own is up, or a backlog (loopback's too) dropped",
        weight: Weight::always(Warn).when(Throughput, Fail).when(Latency, Info),
        effect: Effect::Follows {
            size: Loss,
            text: "each packet that finds the backlog full is lost, and one loss moves five counters",
        },
        check: Check::Host(backlog),
        text: Text {
            why: "Packets of loopback, veth, tunnels and RPS wait in a queue of the CPU that shall handle them. When it is \
                  full, they are dropped before any protocol saw them.",
            mechanism: "enqueue_to_backlog (net/core/dev.c) drops above netdev_max_backlog and counts it in column 2 \
                        of softnet_stat and in the device's rx_dropped. A NIC's own NAPI never comes here.",
            not_when: "no RPS and no such device: then it is loopback's alone; a CPU that is at its limit fills \
                       any queue. The counters are the whole machine's and start at boot: drops that an experiment in a \
                       namespace made, rxpath's own too, stay in them. Only drops while rxpath watches ask for a change",
            side_effects: "memory, and the time that packets wait in the longer queue",
            set_now: "sysctl -w net.core.netdev_max_backlog=4000",
            persist: "/etc/sysctl.d/",
            undo: VALUE_BACK,
            verify: "column 2 of /proc/net/softnet_stat does not rise",
            since: "2.2",
            sources: &[ADMIN, BACKLOG, "oracle/bpftune issue 178"],
        },
    },
    Rule {
        id: "dev-weight",
        area: Area::Napi,
        kind: Kind::Judge,
        what: "Is the batch of the backlog the kernel's own, or does somebody believe it is the NIC's?",
        applies: "every host",
        weight: Weight::always(Info),
        effect: Effect::Measure,
        check: Check::Host(weight),
        text: Text {
            why: "dev_weight is the batch of the backlog (RPS, veth), and of each run of a qdisc that sends. Drivers fix \
                  the weight of their own NAPI in code: what a NIC receives does not change with it.",
            mechanism: "process_backlog takes dev_rx_weight = dev_weight * dev_weight_rx_bias packets, __qdisc_run \
                        (net/sched/sch_generic.c) dev_tx_weight = dev_weight * dev_weight_tx_bias; drivers register NAPI \
                        with NAPI_POLL_WEIGHT (64).",
            not_when: "RPS or veth carry the load, and a larger batch was measured to help",
            side_effects: "larger: other NAPI instances of the CPU wait longer, and a sender keeps the qdisc for longer",
            set_now: "sysctl -w net.core.dev_weight=64",
            persist: "remove the line from /etc/sysctl.d/",
            undo: VALUE_BACK,
            verify: "sysctl net.core.dev_weight",
            since: "2.4; dev_weight_rx_bias 4.10",
            sources: &[
                ADMIN,
                BACKLOG,
                "kernel: net/sched/sch_generic.c __qdisc_run",
                "kernel: include/linux/netdevice.h NAPI_POLL_WEIGHT",
            ],
        },
    },
    Rule {
        id: "skb-defer",
        area: Area::Napi,
        kind: Kind::Record,
        what: "How many packets may wait to be freed on the CPU that allocated them?",
        applies: "Linux 5.19 and later",
        weight: Weight::always(Info),
        effect: Effect::Measure,
        check: Check::Host(defer),
        text: Text {
            why: "Freeing on the allocating CPU spares cache misses when another CPU reads the socket.",
            mechanism: "skb_attempt_defer_free (net/core/skbuff.c) hands buffers back up to skb_defer_max of them.",
            not_when: "one CPU receives and reads: then nothing is handed back",
            side_effects: "0 turns it off",
            set_now: "sysctl -w net.core.skb_defer_max=64",
            persist: "/etc/sysctl.d/",
            undo: VALUE_BACK,
            verify: "sysctl net.core.skb_defer_max",
            since: "5.19; 64 by default, 128 since 6.19",
            sources: &["kernel: net/core/skbuff.c skb_attempt_defer_free", ADMIN],
        },
    },
    Rule {
        id: "tstamp-prequeue",
        area: Area::Napi,
        kind: Kind::Record,
        what: "Are packets stamped before RPS or after it?",
        applies: "every host",
        weight: Weight::always(Info),
        effect: Effect::Measure,
        check: Check::Host(prequeue),
        text: Text {
            why: "A latency probe sees the wait in the backlog only when packets are stamped before it.",
            mechanism: "netif_receive_skb_internal and netif_rx_internal (net/core/dev.c) stamp before the backlog \
                        when netdev_tstamp_prequeue is 1, else __netif_receive_skb_core does.",
            not_when: "latency is measured from the stamp: without it the wait in the backlog is left out",
            side_effects: "0 moves the cost of the stamp to the CPU that RPS chose",
            set_now: "sysctl -w net.core.netdev_tstamp_prequeue=0",
            persist: "/etc/sysctl.d/",
            undo: VALUE_BACK,
            verify: "sysctl net.core.netdev_tstamp_prequeue",
            since: "2.6.35",
            sources: &[ADMIN, "kernel: net/core/dev.c net_timestamp_check"],
        },
    },
];

fn backlog(ask: &Ask<'_>) -> Checked {
    let (dropped, processed) = ask.facts.backlog_drops().known()?;
    // Where something was dropped something passed, if only through loopback.
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
        return Found::new(
            observed,
            "no drops",
            "the CPU that gets them cannot keep up",
        )
        .advice(
            "a longer queue will not help: spread over more CPUs, or spare work for each packet",
        )
        .rests_on(dropped, watched)
        .answer();
    }
    Found::new(
        observed,
        format!("{WANTED}, and no drops"),
        "packets that find the backlog full are lost",
    )
    .change(Set::new(Knob::sysctl("net.core.netdev_max_backlog"), WANTED as u64))
    .rests_on(dropped, watched)
    .answer()
}

fn weight(ask: &Ask<'_>) -> Checked {
    let now = ask.facts.sysctl_number("net.core.dev_weight").known()?;
    if now == 64 {
        return Answer::fine("64");
    }
    if ask.facts.uses_backlog()? {
        return Answer::silent("the backlog is in use: its batch may have been measured");
    }
    Found::new(
        now.to_string(),
        "64",
        "no NIC's NAPI looks at it: it is the batch of RPS and veth, and of qdiscs that send",
    )
    .change(Set::new(Knob::sysctl("net.core.dev_weight"), 64))
    .answer()
}

fn defer(ask: &Ask<'_>) -> Checked {
    Answer::recorded(ask.facts.sysctl_number("net.core.skb_defer_max").known()?.to_string())
}

fn prequeue(ask: &Ask<'_>) -> Checked {
    let now = ask.facts.sysctl_number("net.core.netdev_tstamp_prequeue").known()?;
    Answer::recorded(if now == 0 { "after RPS (0)" } else { "before RPS (1)" })
}
