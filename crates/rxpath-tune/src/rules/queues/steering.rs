//! Packets steered to a queue or CPU by rule instead of by hash: flow rules, accelerated RFS, XPS.

use crate::facts::host_wide;
use crate::prelude::*;
use rxpath_core::CpuList;

/// The checks of the rules of this file.
pub const CHECKS: Checks = &[
    ("ntuple-rules", Check::Device(flow_rules)),
    ("ntuple-enabled", Check::Nic(ntuple)),
    ("arfs", Check::Nic(arfs)),
    ("flow-limit", Check::Host(flow_limit)),
    ("xps", Check::Nic(xps)),
    ("priv-flags", Check::Device(flags)),
];

fn flow_rules(_: &Ask<'_>, device: &Device) -> Checked {
    match (&device.nic.flow_rules).known()?.rules_count {
        0 => Answer::fine("no flow rules"),
        count => Answer::observed(format!("{count} flow rules"))
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
    Answer::observed("RFS steers in software, ntuple is off").change(Set::switch(knob, true))
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
    Answer::observed("ntuple and RFS are on, the kernel is built without CONFIG_RFS_ACCEL")
        .advice("not changeable at runtime")
}

fn flow_limit(ask: &Ask<'_>) -> Checked {
    let (dropped, _) = ask.facts.backlog_drops().known()?;
    if dropped.total == 0 {
        return Answer::silent("no packet was lost at a backlog");
    }
    let told = ask.facts.watched.tell(dropped, "packets lost at backlogs", "boot");
    if dropped.evidence() == Evidence::Old {
        return Answer::silent(told);
    }
    let mask = ask.facts.text("/proc/sys/net/core/flow_limit_cpu_bitmap").known()?;
    if mask.chars().any(|c| c.is_ascii_digit() && c != '0' || c.is_ascii_alphabetic()) {
        return Answer::fine(format!("on for CPUs {mask}"));
    }
    let all = CpuList(host_wide((&ask.facts.topology).known()?)?).to_mask();
    Answer::observed(format!("{told}; the flow limit is off"))
        .change(Set::new(Knob::sysctl("net.core.flow_limit_cpu_bitmap"), all))
        .rests_on(dropped, &ask.facts.watched)
}

fn xps(_: &Ask<'_>, device: &Device) -> Checked {
    let queues = device.sysfs.steering.tx_queues.iter();
    let maps: Vec<bool> =
        queues.filter_map(|queue| queue.xps_cpus.value().map(|cpus| !cpus.is_empty())).collect();
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
    Answer::observed(format!("none of {used} transmit queues has a map of CPUs"))
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
