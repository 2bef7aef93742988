//! The link itself: speed, flow control, error correction, packet size.

use rxpath_host::read::counter::Width;
use rxpath_host::read::netlink::ethtool::Duplex;

use super::without_hardware;
use crate::prelude::*;

/// 100 Gb/s: from here on the CPU's work per packet limits a single flow.
const VERY_FAST_MBPS: i64 = 100_000;

/// GRO's limit without BIG TCP: `GRO_LEGACY_MAX_SIZE`, include/linux/netdevice.h.
const LEGACY_GRO_BYTES: u32 = 65_536;

/// The checks of the rules of this file.
pub const CHECKS: Checks = &[
    ("gro-max-size", Check::Nic(gro_max)),
    ("mtu-jumbo", Check::Nic(mtu)),
    ("link-speed-duplex", Check::Nic(speed)),
    ("fec-mode", Check::Nic(fec_mode)),
    ("fec-errors", Check::Nic(fec)),
    ("hw-timestamping", Check::Device(timestamping)),
    ("nic-driver-fw", Check::Device(driver)),
    ("nic-promisc-rxall", Check::Active(promiscuous)),
];

fn gro_max(_: &Ask<'_>, device: &Device) -> Checked {
    if *(&device.sysfs.speed_mbps).known()? < VERY_FAST_MBPS {
        return Answer::silent("slower than 100 Gb/s");
    }
    let bytes = (&device.nic.link).known()?.gro_max_bytes.or_gap("gro_max_size")?;
    if bytes > LEGACY_GRO_BYTES {
        return Answer::fine(format!("gro_max_size is {bytes} bytes"));
    }
    let knob = Knob::part(&device.name, Group::Link, "gro-max-size");
    Answer::observed(format!("gro_max_size is {bytes} bytes")).change(Set::new(knob, 185_000))
}

fn mtu(_: &Ask<'_>, device: &Device) -> Checked {
    Answer::recorded(format!("{} bytes", (&device.sysfs.mtu_bytes).known()?))
}

fn speed(_: &Ask<'_>, device: &Device) -> Checked {
    let modes = (&device.nic.link_modes).known()?;
    let now = modes.speed_mbps.or_gap("the link's speed")?;
    let best = modes.supported_mbps().or_gap("its modes")?;
    // Forced, by a device that could negotiate.
    let forced =
        modes.autoneg == Some(false) && modes.supported.iter().any(|mode| mode == "Autoneg");
    let negotiate = || {
        let knob = Knob::part(&device.name, Group::LinkModes, "autoneg");
        forced.then(|| Set::switch(knob, true))
    };
    if modes.duplex == Some(Duplex::Half) {
        return Answer::found(format!("{now} Mb/s half duplex"), "full duplex", "both ends must negotiate, or neither")
            .advice("autonegotiation on at both ends; a forced end makes the other fall back to half duplex")
            .severity(Fail)
            .changes(negotiate());
    }
    if now >= best {
        return Answer::fine(format!("{now} Mb/s"));
    }
    let better = format!("{best} Mb/s, the NIC's maximum");
    if forced {
        let observed = format!("{now} Mb/s, forced: negotiation is off");
        return Answer::found(observed, better, "the NIC is set to this speed")
            .changes(negotiate());
    }
    Answer::found(
        format!("{now} Mb/s"),
        better,
        "cable, transceiver, switch port or a forced setting",
    )
    .advice("look at the other end's modes: ethtool DEV shows what the link partner advertises")
}

fn fec(ask: &Ask<'_>, device: &Device) -> Checked {
    let fec = (&device.nic.fec).known()?;
    let mode = fec.active.clone().unwrap_or_else(|| "unknown".into());
    let first = fec.uncorrectable_blocks.or_gap("uncorrectable blocks")?;
    let later = ask.facts.later_device(device).and_then(|later| later.nic.fec.value());
    let count = Count::of(Width::U64, first, later.and_then(|fec| fec.uncorrectable_blocks));
    if count.total == 0 {
        return Answer::fine(format!("mode {mode}, no uncorrectable block"));
    }
    let told = ask.facts.watched.tell(count, "uncorrectable blocks", "the driver was loaded");
    Answer::observed(format!("{told}, in mode {mode}"))
        .advice("clean or replace cable and transceiver")
        .rests_on(count, &ask.facts.watched)
}

fn fec_mode(_: &Ask<'_>, device: &Device) -> Checked {
    let fec = (&device.nic.fec).known()?;
    let active = fec.active.as_deref().unwrap_or("not reported");
    let asked =
        fec.configured.as_ref().map_or_else(|| "not reported".into(), |modes| modes.join(" or "));
    let auto = if fec.auto == Some(true) { ", the driver chooses" } else { "" };
    Answer::recorded(format!("active: {active}; configured: {asked}{auto}"))
}

fn timestamping(_: &Ask<'_>, device: &Device) -> Checked {
    let stamps = (&device.nic.timestamping).known()?;
    let clock =
        stamps.clock.map_or_else(|| "no hardware clock".into(), |n| format!("clock /dev/ptp{n}"));
    let stamped = device.nic.stamp_config.value().map_or("", |config| match config.rx_filter {
        0 => "; nothing received is stamped now",
        1 => "; every packet received is stamped now",
        _ => "; some packets received are stamped now",
    });
    let filters = stamps.rx_filters.join(", ");
    Answer::recorded(format!("{clock}; receive filters: {filters}{stamped}"))
}

fn driver(ask: &Ask<'_>, device: &Device) -> Checked {
    let driver = (&device.nic.driver).known()?;
    let taint = ask.facts.text(&format!("/sys/module/{}/taint", driver.driver));
    let outside = taint.value().is_some_and(|taint| taint.contains('O'));
    let firmware = if driver.firmware.is_empty() { "none told" } else { &driver.firmware };
    let outside = if outside { ", out-of-tree" } else { "" };
    Answer::recorded(format!("{} {}{outside}; firmware {firmware}", driver.driver, driver.version))
}

/// `IFF_PROMISC` and `IFF_ALLMULTI`, linux/if.h.
const PROMISCUOUS: u32 = 0x100;
const ALL_MULTICAST: u32 = 0x200;

fn promiscuous(ask: &Ask<'_>, device: &Device) -> Checked {
    if let Some(master) = device.master.value() {
        return Answer::silent(format!("belongs to {master}, which needs it"));
    }
    let flags = *(&device.flags).known()?;
    let active = |name: &str| {
        device.nic.features.value().and_then(|all| all.get(name)).is_some_and(|one| one.active)
    };
    let modes = [
        ("promiscuous", flags & PROMISCUOUS != 0),
        ("all multicast", flags & ALL_MULTICAST != 0),
        ("rx-all", active("rx-all")),
        ("rx-fcs", active("rx-fcs")),
    ];
    let on: Vec<&str> = modes.into_iter().filter(|(_, on)| *on).map(|(name, _)| name).collect();
    if on.is_empty() {
        return Answer::fine("only packets for this host");
    }
    if let Some(reader) = without_hardware::reader_of_all(ask, device)? {
        return Answer::silent(format!("{}: {reader}", on.join(", ")));
    }
    if !device.is_nic() && flags & PROMISCUOUS == 0 {
        return Answer::silent(format!("{}, of a virtual device", on.join(", ")));
    }
    let found = Answer::observed(on.join(", "));
    if flags & PROMISCUOUS != 0 {
        return found.advice(format!(
            "find the program that needs it; if none does: ip link set {} promisc off",
            device.name
        ));
    }
    found
}
