//! Packets steered to a queue or CPU by rule instead of by hash: flow rules, accelerated RFS, XPS.

use crate::facts::host_wide;
use crate::prelude::*;
use rxpath_core::CpuList;

const SCALING: &str = "kernel: Documentation/networking/scaling.rst";

/// Rules of this file.
pub const RULES: &[Rule] = &[
    Rule {
        id: "ntuple-rules",
        what: "Do flow rules bypass RSS?",
        applies: "NICs whose flow rules can be read",
        weight: Weight::always(Info).when(Benchmark, Warn),
        check: Check::Device(flow_rules),
        why: "A rule sends matching packets to one queue, whatever the RSS table says. Rules left behind by a \
              dead program do so silently.",
        mechanism: "ETHTOOL_SRXCLSRLINS gives the rule to the NIC, which matches it before it hashes.",
        not_when: "an application or an isolation setup needs them",
        side_effects: "flows of a removed rule go where the hash sends them",
        set_now: "ethtool -n DEV (lists them); ethtool -N DEV delete N",
        persist: "none: rules do not survive a reboot; change the program that creates them",
        undo: "insert the same rule again at the same place",
        verify: "ethtool -n DEV; per-queue counters of the driver",
        since: "2.6.34; lists 3.0",
        sources: &[SCALING, "kernel: net/ethtool/ioctl.c ethtool_get_rxnfc"],
        ..Rule::judge(Area::Queues)
    },
    Rule {
        id: "ntuple-enabled",
        what: "Could the NIC steer flows itself while RFS does it in software?",
        applies: "NICs whose flow steering can be switched, on hosts that use RFS",
        weight: Weight::by_goal().when(Latency, Info).when(Throughput, Info),
        check: Check::Nic(ntuple),
        why: "RFS in software moves each packet to its reader's CPU by an inter-processor interrupt. With \
              accelerated RFS the NIC puts the flow into that CPU's queue at once.",
        mechanism: "set_rps_cpu (net/core/dev.c) calls ndo_rx_flow_steer where NETIF_F_NTUPLE is on and the \
                    driver has it.",
        not_when: "many short flows: each costs the NIC a rule",
        side_effects: "the NIC's rule table fills; on some drivers the switch resets the link",
        set_now: "ethtool -K DEV ntuple on",
        persist: "systemd .link: NTupleFilter=yes",
        undo: "write back the whole set of features that was read before",
        verify: "ethtool -k DEV: ntuple-filters: on",
        since: "2.6.34; accelerated RFS 2.6.39",
        sources: &[SCALING, "kernel: net/core/dev.c set_rps_cpu"],
        ..Rule::judge(Area::Queues)
    },
    Rule {
        id: "arfs",
        what: "Is accelerated RFS complete: filter bit, flow tables and kernel support?",
        applies: "NICs with flow steering on, on hosts that use RFS",
        check: Check::Nic(arfs),
        why: "Accelerated RFS needs the ntuple bit, both RFS tables and CONFIG_RFS_ACCEL. If a part is missing, \
              nothing reports it.",
        mechanism: "net/core/dev.c set_rps_cpu under CONFIG_RFS_ACCEL, lib/cpu_rmap.c.",
        not_when: "the filter bit is on for flow rules of your own and RFS is not wanted",
        side_effects: "as ntuple-enabled and rfs-flow-entries",
        set_now: "see rfs-flow-entries for the tables; the kernel's build cannot be changed at runtime",
        persist: "as rfs-flow-entries",
        verify: "per-queue counters: the flow arrives on its reader's CPU",
        since: "2.6.39",
        sources: &[SCALING],
        ..Rule::judge(Area::Queues)
    },
    Rule {
        id: "flow-limit",
        what: "Does the flow limit protect small flows when the backlog overflows?",
        applies: "hosts that use the backlog (RPS, devices without a NAPI) and have lost packets there",
        weight: Weight::by_goal().when(Fairness, Info),
        check: Check::Host(flow_limit),
        why: "One large flow fills a CPU's backlog, and then all flows lose. The flow limit drops packets of the \
              largest flow first.",
        mechanism: "skb_flow_limit (net/core/dev.c): once the backlog is half full, a flow with more than \
                    half of the recent packets is dropped.",
        not_when: "all traffic is a few large flows: then it only drops sooner",
        side_effects: "drops of the largest flow before the backlog is full",
        set_now: "sysctl -w net.core.flow_limit_cpu_bitmap=MASK",
        persist: "/etc/sysctl.d/",
        verify: "column 11 of /proc/net/softnet_stat counts its drops",
        since: "3.11",
        sources: &["kernel: Documentation/networking/scaling.rst, RPS Flow Limit"],
        ..Rule::judge(Area::Queues)
    },
    Rule {
        id: "xps",
        what: "Does each CPU send replies through a queue of its own (XPS)?",
        applies: "NICs that are up and have two or more transmit queues in use",
        weight: Weight::by_goal().when(Latency, Info).when(Benchmark, Info),
        check: Check::Nic(xps),
        why: "Acknowledgements and replies then stay on the CPU of their flow: no lock is shared, and the \
              completion runs on the CPU that sent the packet.",
        mechanism: "get_xps_queue (net/core/dev.c) looks the CPU up; without a map the flow's hash chooses.",
        not_when: "one transmit queue, or a driver that chooses by itself (ndo_select_queue)",
        side_effects: "a flow whose thread moves may change its queue once it is idle",
        set_now: "echo MASK > /sys/class/net/DEV/queues/tx-N/xps_cpus",
        persist: "a udev rule",
        undo: "write back each mask that was read before",
        verify: "per-queue transmit counters of the driver",
        since: "2.6.38; xps_rxqs 4.18",
        sources: &["kernel: Documentation/networking/scaling.rst, XPS"],
        ..Rule::judge(Area::Queues)
    },
    Rule {
        id: "priv-flags",
        what: "Which private flags of the driver are on?",
        applies: "NICs whose driver has private flags",
        check: Check::Device(flags),
        why: "Flags such as legacy-rx or rx_striding_rq select another receive path in the driver.",
        mechanism: "ETHTOOL_MSG_PRIVFLAGS_GET; their meaning is the driver's.",
        not_when: "leave them, unless the driver's documentation recommends a change for your case",
        side_effects: "some reset the link (igb legacy-rx)",
        set_now: "ethtool --set-priv-flags DEV NAME on|off",
        persist: "a udev rule",
        undo: VALUE_BACK,
        verify: "ethtool --show-priv-flags DEV",
        since: "2.6.24; over netlink 5.7",
        sources: &["kernel: Documentation/networking/ethtool-netlink.rst, PRIVFLAGS_GET"],
        ..Rule::record(Area::Queues)
    },
];

fn flow_rules(_: &Ask<'_>, device: &Device) -> Checked {
    match (&device.nic.flow_rules).known()?.rules_count {
        0 => Answer::fine("no flow rules"),
        count => Answer::found(
            format!("{count} flow rules"),
            "none, or only your own rules",
            "they send packets to queues whatever the RSS table says",
        )
        .advice(format!("list them: ethtool -n {}", device.name)),
    }
}

/// Whether RFS steers packets of this device: both tables are set.
fn uses_rfs(ask: &Ask<'_>, device: &Device) -> Result<bool, Gap> {
    let entries = ask.facts.sysctl_number("net.core.rps_sock_flow_entries").known()?;
    Ok(entries > 0 && device.has_flow_tables())
}

fn ntuple(ask: &Ask<'_>, device: &Device) -> Checked {
    if !uses_rfs(ask, device)? {
        return Answer::silent("RFS is off here");
    }
    let features = (&device.nic.features).known()?;
    let Some(filter) = features.get("rx-ntuple-filter") else {
        return Answer::silent("no flow steering in this NIC");
    };
    if filter.active {
        return Answer::fine("on");
    }
    if !filter.changeable {
        return Answer::silent("the NIC has no flow steering that could be switched on");
    }
    let knob = Knob::part(&device.name, Group::Features, "rx-ntuple-filter");
    Answer::found(
        "RFS steers in software, ntuple is off",
        "on",
        "the NIC could put the flow into its reader's queue",
    )
    .change(Set::switch(knob, true))
}

fn arfs(ask: &Ask<'_>, device: &Device) -> Checked {
    let features = (&device.nic.features).known()?;
    if !features.get("rx-ntuple-filter").is_some_and(|filter| filter.active)
        || !uses_rfs(ask, device)?
    {
        return Answer::silent("flow steering or RFS is off");
    }
    if ask.facts.option("RFS_ACCEL").known()? == "y" {
        return Answer::fine("filter bit, flow tables and kernel support are present");
    }
    Answer::found(
        "ntuple and RFS are on, the kernel is built without CONFIG_RFS_ACCEL",
        "a kernel with it, or deliberate software RFS",
        "flows are steered in software only",
    )
    .advice("not changeable at runtime")
}

fn flow_limit(ask: &Ask<'_>) -> Checked {
    let (dropped, _) = ask.facts.backlog_drops().known()?;
    if dropped.total == 0 {
        return Answer::silent("no packet was lost at a backlog");
    }
    let watched = &ask.facts.watched;
    let told = watched.tell(dropped, "packets lost at backlogs", "boot");
    if dropped.evidence() == Evidence::Old {
        return Answer::silent(told);
    }
    let mask = ask.facts.text("/proc/sys/net/core/flow_limit_cpu_bitmap").known()?;
    if mask.chars().any(|c| c.is_ascii_digit() && c != '0' || c.is_ascii_alphabetic()) {
        return Answer::fine(format!("on for CPUs {mask}"));
    }
    let all = CpuList(host_wide((&ask.facts.topology).known()?)?).to_mask();
    Answer::found(
        format!("{told}; the flow limit is off"),
        "on for the CPUs that RPS or virtual devices use",
        "the largest flow takes the whole backlog from all others",
    )
    .change(Set::new(Knob::sysctl("net.core.flow_limit_cpu_bitmap"), all))
    .rests_on(dropped, watched)
}

fn xps(_: &Ask<'_>, device: &Device) -> Checked {
    let maps: Vec<bool> = device
        .sysfs
        .tx_queues
        .iter()
        .filter_map(|queue| queue.xps_cpus.value().map(|cpus| !cpus.is_empty()))
        .collect();
    let used = device.nic.channels.value().map_or(maps.len(), |all| {
        (all.combined.now.unwrap_or(0) + all.tx.now.unwrap_or(0)) as usize
    });
    if maps.len() < 2 || used < 2 {
        return Answer::silent("one transmit queue");
    }
    let mapped = maps.iter().filter(|mapped| **mapped).count();
    if mapped > 0 {
        return Answer::fine(format!("{mapped} of {} transmit queues have a map", maps.len()));
    }
    Answer::found(
        format!("none of {used} transmit queues has a map of CPUs"),
        "one queue for each CPU, where the driver does not choose by itself",
        "replies of one CPU share queues, and their locks, with other CPUs",
    )
    .advice(
        "see set now of `rxpath explain xps`; drivers that choose the queue themselves ignore the maps",
    )
}

fn flags(_: &Ask<'_>, device: &Device) -> Checked {
    let flags = (&device.nic.private_flags).known()?;
    let on: Vec<&str> =
        flags.iter().filter(|(_, on)| **on).map(|(name, _)| name.as_str()).collect();
    let on = if on.is_empty() { "none".to_owned() } else { on.join(", ") };
    Answer::recorded(format!("on: {on} (of {})", flags.len()))
}
