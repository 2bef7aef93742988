//! The link itself: speed, flow control, error correction, packet size.

use rxpath_host::counter::Width;
use rxpath_host::netlink::ethtool::Duplex;

use super::without_hardware;
use crate::prelude::*;

const LINK_DOWN: &str = "the link goes down for seconds and renegotiates";

/// 100 Gb/s: from here on the CPU's work per packet limits a single flow.
const VERY_FAST_MBPS: i64 = 100_000;

/// GRO's limit without BIG TCP: `GRO_LEGACY_MAX_SIZE`, include/linux/netdevice.h.
const LEGACY_GRO_BYTES: u32 = 65_536;

/// Rules of this file.
pub const RULES: &[Rule] = &[
    Rule {
        id: "gro-max-size",
        what: "May GRO merge more than 64 KiB on a very fast link (BIG TCP)?",
        applies: "NICs of 100 Gb/s and more that are up",
        weight: Weight::by_goal().when(Throughput, Info),
        check: Check::Nic(gro_max),
        why: "At 100 Gb/s 64 KiB last 5 us: larger packets mean fewer passes through the stack.",
        mechanism: "gro_max_size and gro_ipv4_max_size of the device bound dev_gro_receive; IPv6 uses a \
                    jumbo header inside the host, IPv4 a length of 0.",
        not_when: "programs that capture or filter packets cannot take more than 64 KiB",
        side_effects: "packets above 64 KiB inside the host; some tools show or cut them wrongly",
        set_now: "ip link set dev DEV gro_max_size 185000 gso_max_size 185000; IPv4 has gro_ipv4_max_size and gso_ipv4_max_size \
                  of its own (6.3)",
        persist: "a udev rule or a oneshot unit",
        verify: "ip -d link show DEV",
        since: "IPv6 5.19, IPv4 6.3",
        sources: &[
            "kernel: include/linux/netdevice.h GRO_LEGACY_MAX_SIZE",
            "https://docs.cilium.io/en/stable/operations/performance/tuning/",
        ],
        ..Rule::judge(Area::Offloads)
    },
    Rule {
        id: "mtu-jumbo",
        what: "How large are the packets of this link?",
        applies: "NICs that are up",
        size: Multiple,
        effect: "9000 instead of 1500 bytes is a sixth of the packets",
        check: Check::Nic(mtu),
        why: "Cost is per packet. All hosts and switches of the network must agree, and this host cannot check \
              that.",
        mechanism: "The driver sizes its receive buffers by it; some leave their fast path above a page.",
        not_when: "any host or switch of the network has a smaller one: packets are lost silently",
        side_effects: "some drivers reset the link",
        set_now: "ip link set DEV mtu 9000",
        persist: "systemd .link: MTUBytes=9000",
        undo: VALUE_BACK,
        verify: "ping -M do -s 8972 HOST, for every peer",
        since: "every kernel",
        sources: &["kernel: include/uapi/linux/if_link.h IFLA_MTU"],
        ..Rule::record(Area::Offloads)
    },
    Rule {
        id: "link-speed-duplex",
        what: "Did the link come up as fast as the NIC can?",
        applies: "NICs that are up and report their link modes",
        weight: Weight::always(Warn),
        size: Multiple,
        effect: "half of the speed is half of the result",
        check: Check::Nic(speed),
        why: "A bad cable, an old switch port or a forced setting leaves the link slower than the NIC, and no \
              counter shows it.",
        mechanism: "Autonegotiation takes the best mode that both ends advertise.",
        not_when: "the switch has no faster port",
        side_effects: LINK_DOWN,
        set_now: "rxpath tune plan --set DEV/link-modes/autoneg=on, or ethtool -s DEV autoneg on; else check \
                  cable, transceiver and switch port",
        persist: "systemd .link: AutoNegotiation=yes",
        undo: "ethtool -s DEV autoneg on|off speed N duplex full|half, with what was read before",
        verify: "ethtool DEV: Speed, Duplex",
        since: "every kernel; over netlink 5.6",
        sources: &["kernel: Documentation/networking/ethtool-netlink.rst, LINKMODES_GET"],
        ..Rule::judge(Area::Offloads)
    },
    Rule {
        id: "fec-mode",
        what: "Which forward error correction is active?",
        applies: "NICs whose link has FEC (25 Gb/s and more)",
        check: Check::Nic(fec_mode),
        why: "A stronger code repairs more and delays every frame longer: RS collects a block of 5280 bits (5440 \
              from 50 Gb/s per lane on) before it passes data on, BASER a block of 2112 bits.",
        mechanism: "ethtool_ops.get_fecparam; negotiated by clause 73 unless it was forced.",
        not_when: "the link has errors without this code",
        side_effects: "the link goes down, and stays down when the two ends differ",
        set_now: "rxpath tune plan --set DEV/fec/rs=on with the others off (auto, off, baser), or ethtool --set-fec \
                  DEV encoding rs, at both ends",
        persist: "a udev rule or unit that runs it when the link is made",
        undo: "ethtool --set-fec DEV encoding MODE, with the previous mode",
        verify: "ethtool --show-fec DEV; rxpath explain fec-errors",
        since: "4.14; over netlink 5.13",
        sources: &["IEEE 802.3 clauses 74, 91, 108 and 134", "kernel: net/ethtool/fec.c"],
        ..Rule::record(Area::Offloads)
    },
    Rule {
        id: "fec-errors",
        what: "Does forward error correction fail on this link?",
        applies: "NICs that are up and count blocks that FEC could not correct",
        weight: Weight::always(Fail),
        size: Loss,
        effect: "each uncorrectable block is one or more lost packets",
        check: Check::Nic(fec),
        why: "An uncorrectable block means lost packets on the wire: a dirty or damaged cable or transceiver.",
        mechanism: "Reed-Solomon or BASE-R FEC of IEEE 802.3; ETHTOOL_A_FEC_STATS counts its blocks.",
        not_when: "the count does not rise: it may be from when the cable was plugged in",
        side_effects: "another FEC mode takes the link down, for good if the ends differ",
        set_now: "clean or replace cable and transceiver; ethtool --set-fec DEV encoding rs, on both ends",
        persist: "a udev rule",
        undo: "ethtool --set-fec DEV encoding MODE, with the previous encoding",
        verify: "ethtool -I --show-fec DEV, twice",
        since: "5.13; statistics 5.13",
        sources: &["kernel: Documentation/networking/ethtool-netlink.rst, FEC_GET"],
        ..Rule::judge(Area::Offloads)
    },
    Rule {
        id: "hw-timestamping",
        what: "Which clock and which time stamps does the NIC have?",
        applies: "NICs that report their time stamping",
        check: Check::Device(timestamping),
        why: "With hardware stamps the wait in the NIC and for the interrupt can be measured. A filter that \
              stamps every packet costs some NICs throughput.",
        mechanism: "ETHTOOL_MSG_TSINFO_GET; the filter is set by SIOCSHWTSTAMP or TSCONFIG_SET.",
        not_when: "a time daemon (ptp4l) uses it",
        side_effects: "setting the filter resets some links (igb)",
        set_now: "rxpath tune plan --set DEV/time-stamps/rx-filter=none, or hwstamp_ctl -i DEV -r 0",
        persist: "stop the program that sets it",
        undo: "hwstamp_ctl -i DEV -r N, with the previous filter",
        verify: "ethtool -T DEV",
        since: "3.5; over netlink 5.7, the filter 6.14",
        sources: &["kernel: Documentation/networking/timestamping.rst"],
        ..Rule::record(Area::Offloads)
    },
    Rule {
        id: "nic-driver-fw",
        what: "Which driver and firmware drive the NIC?",
        applies: "NICs that tell",
        check: Check::Device(driver),
        why: "Two results are comparable only with the same driver and firmware. An out-of-tree driver's code is \
              unknown to rxpath.",
        mechanism: "ETHTOOL_GDRVINFO; /sys/module/DRIVER/taint holds O for an out-of-tree driver.",
        not_when: "nothing to change: it is recorded",
        persist: "the distribution's packages",
        verify: "ethtool -i DEV",
        since: "2.4; taint 3.3",
        sources: &["kernel: net/ethtool/ioctl.c ethtool_get_drvinfo"],
        ..Rule::record(Area::Offloads)
    },
    Rule {
        id: "nic-promisc-rxall",
        what: "Does the NIC deliver packets that are not for this host?",
        applies: "devices that are up and in no bridge or bond, virtual ones too",
        weight: Weight::always(Info).when(Benchmark, Warn).when(Fairness, Warn),
        check: Check::Active(promiscuous),
        why: "In promiscuous mode every packet on the wire enters the stack before it is dropped.",
        mechanism: "IFF_PROMISC turns the NIC's address filter off, and with it VLAN filtering in many drivers.",
        not_when: "a capture, a bridge or a virtual machine needs it",
        side_effects: "the program that set it no longer sees other hosts' packets",
        set_now: "ip link set DEV promisc off; ethtool -K DEV rx-all off rx-fcs off",
        persist: "stop the program that sets it",
        undo: "ip link set DEV promisc on",
        verify: "ip -d link show DEV: promiscuity 0",
        since: "every kernel",
        sources: &["kernel: net/core/dev.c dev_set_promiscuity"],
        ..Rule::judge(Area::Offloads)
    },
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
    Answer::found(
        format!("gro_max_size is {bytes} bytes"),
        "more, up to 185000 and measured",
        "64 KiB last 5 us here",
    )
    .change(Set::new(knob, 185_000))
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
        let found = Answer::found(observed, better, "the NIC is set to this speed");
        return found.changes(negotiate());
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
    let watched = &ask.facts.watched;
    let told = watched.tell(count, "uncorrectable blocks", "the driver was loaded");
    Answer::found(
        format!("{told}, in mode {mode}"),
        "none",
        "the wire has more errors than FEC can correct",
    )
    .advice("clean or replace cable and transceiver")
    .rests_on(count, watched)
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
    let mut on = Vec::new();
    if flags & PROMISCUOUS != 0 {
        on.push("promiscuous");
    }
    if flags & ALL_MULTICAST != 0 {
        on.push("all multicast");
    }
    if active("rx-all") {
        on.push("rx-all");
    }
    if active("rx-fcs") {
        on.push("rx-fcs");
    }
    if on.is_empty() {
        return Answer::fine("only packets for this host");
    }
    if let Some(reader) = without_hardware::reader_of_all(ask, device)? {
        return Answer::silent(format!("{}: {reader}", on.join(", ")));
    }
    if !device.is_nic() && flags & PROMISCUOUS == 0 {
        return Answer::silent(format!("{}, of a virtual device", on.join(", ")));
    }
    let found = Answer::found(
        on.join(", "),
        "off, unless a capture or virtual machine needs it",
        "packets for other hosts cost CPU time here",
    );
    if flags & PROMISCUOUS != 0 {
        return found.advice(format!(
            "find the program that needs it; if none does: ip link set {} promisc off",
            device.name
        ));
    }
    found
}
