//! Receive-side scaling: which queue a flow goes to.

use std::collections::BTreeMap;

use super::channels::receiving;
use rxpath_host::netlink::ioctl::FlowKind;

use crate::prelude::*;

const RSS: &str = "kernel: Documentation/networking/ethtool-netlink.rst, RSS_GET";
const SCALING: &str = "kernel: Documentation/networking/scaling.rst, section RSS";

/// The most loaded queue may have this many times the buckets of the least before the table is uneven: rounding
/// gives neighbours a difference of one bucket.
const UNEVEN: usize = 2;

/// Rules of this file.
pub const RULES: &[Rule] = &[
    Rule {
        id: "rss-indirection",
        what: "Does the indirection table spread flows evenly over the queues?",
        applies: "NICs that are up, have two or more receive queues and show their table",
        weight: Weight::always(Info)
            .when(Throughput, Warn)
            .when(Benchmark, Warn)
            .sized(Latency, Percents),
        size: Tens,
        effect: "a queue with twice the entries is saturated at half the load",
        check: Check::Nic(table),
        why: "The table maps hash values to queues. A queue without entries gets no flow; one with many gets \
              more than its share.",
        mechanism: "The low bits of the hash choose an entry, the entry names the queue; \
                    ethtool_rxfh_indir_default (include/linux/ethtool.h) spreads evenly.",
        not_when: "queues are kept free on purpose, for flow rules or for CPUs of an application",
        side_effects: "existing flows move to other queues: packets in flight may arrive out of order",
        set_now: "ethtool -X DEV equal N",
        persist: "a udev rule; the driver's default comes back with new channels",
        undo: "restore every previous entry: `default` may give another table",
        verify: "ethtool -x DEV, and per-queue packet counters under many flows",
        since: "2.6.36; over netlink 6.2, set over netlink 6.17",
        sources: &[SCALING, RSS],
        ..Rule::judge(Area::Queues)
    },
    Rule {
        id: "rss-hash-key",
        what: "Will the same flows go to the same queues in the next run?",
        applies: "NICs that are up, have two or more receive queues and show their key",
        weight: Weight::by_goal().when(Benchmark, Info),
        size: Tens,
        effect: "with few flows the result depends on their queues, and a new key spreads them differently",
        check: Check::Nic(key),
        why: "Most drivers use a random key that the kernel creates at boot. After the next boot a few flows go \
              to other queues, and the result changes.",
        mechanism: "netdev_rss_key_fill (net/ethtool/ioctl.c) fills the key from random bytes once a boot.",
        not_when: "with thousands of flows any key spreads evenly; on an open network a fixed key lets attackers \
                   flood one queue",
        side_effects: "existing flows move to other queues; the repeating key 6d:5a hashes both directions alike, \
                       and gives fewer distinct hashes",
        set_now: "ethtool -X DEV hkey 6d:5a:6d:5a:... (the same in every run); some drivers reject it",
        persist: "a udev rule",
        undo: "restore the previous key",
        verify: "ethtool -x DEV",
        since: "3.16",
        sources: &[RSS, "kernel: net/ethtool/ioctl.c netdev_rss_key_fill"],
        ..Rule::honesty(Area::Queues)
    },
    Rule {
        id: "rss-hash-func",
        what: "Which hash function chooses the queue?",
        applies: "NICs that show it",
        check: Check::Device(function),
        why: "Toeplitz with a random key spreads well; xor keeps address patterns.",
        mechanism: "ETHTOOL_A_RSS_HFUNC.",
        not_when: "leave it, unless measured queue shares are uneven with an even table",
        side_effects: "existing flows move to other queues",
        set_now: "ethtool -X DEV hfunc toeplitz",
        persist: "a udev rule",
        undo: VALUE_BACK,
        verify: "ethtool -x DEV",
        since: "3.19",
        sources: &[RSS],
        ..Rule::record(Area::Queues)
    },
    Rule {
        id: "rss-input-xfrm",
        what: "Is the hash symmetric, so that both directions of a flow use one queue?",
        applies: "NICs that show it",
        check: Check::Device(transformation),
        why: "Tools that watch both directions of a flow need them on one queue. Symmetry removes bits from the \
              hash.",
        mechanism: "ETHTOOL_A_RSS_INPUT_XFRM: source and destination are combined by XOR (or by OR and XOR) before hashing.",
        not_when: "no program needs both directions on one CPU",
        side_effects: "fewer different hash values: flows collide more often",
        set_now: "rxpath tune plan --set DEV/rss/input-xfrm=symmetric-xor, or ethtool -X DEV xfrm symmetric-xor",
        persist: "a udev rule",
        undo: VALUE_BACK,
        verify: "ethtool -x DEV",
        since: "6.8; symmetric-or-xor 6.15",
        sources: &[RSS],
        ..Rule::record(Area::Queues)
    },
    Rule {
        id: "rss-fields-udp4",
        what: "Does RSS use the ports of UDP, or addresses alone?",
        applies: "NICs that are up, have two or more receive queues and show the fields of UDP over IPv4",
        weight: Weight::by_goal().when(Throughput, Warn).when(Fairness, Info),
        size: Multiple,
        effect: "0.35 million packets/s with all flows between two hosts on one queue, 0.61 to 0.66 million with \
                 flows spread over several",
        figure_from: "Cloudflare, How to receive a million packets per second, 2015",
        check: Check::Nic(udp4),
        why: "With addresses alone every UDP flow between two hosts goes to one queue, and one CPU.",
        mechanism: "ETHTOOL_SRXFH sets which fields enter the hash; drivers leave ports out for UDP because \
                    fragments carry none and would go to another queue.",
        not_when: "traffic with fragments (large NFS or tunnel datagrams): they may arrive out of order",
        side_effects: "fragments of one datagram and whole datagrams of the same flow may take two queues",
        set_now: "ethtool -N DEV rx-flow-hash udp4 sdfn",
        persist: "a udev rule",
        undo: "ethtool -N DEV rx-flow-hash udp4 FIELDS, with the previous fields",
        verify: "ethtool -n DEV rx-flow-hash udp4 shows the ports; ethtool's exit status is 0 even on a refusal",
        since: "2.6.27; over netlink 6.17",
        sources: &[SCALING, "https://blog.cloudflare.com/how-to-receive-a-million-packets/"],
        ..Rule::judge(Area::Queues)
    },
    Rule {
        id: "rss-contexts",
        what: "Are there additional RSS contexts?",
        applies: "NICs whose driver has RSS contexts",
        check: Check::Device(contexts),
        why: "A context gives some flows dedicated queues. A context that outlives its program keeps the queues.",
        mechanism: "ETHTOOL_MSG_RSS_GET dumps them since 6.12; flow rules send packets to them.",
        not_when: "an application uses it",
        side_effects: "flows of a removed context fall back to the main table",
        set_now: "ethtool -X DEV context N delete",
        persist: "none: contexts do not survive a reboot",
        undo: "create it again with the same table, key and rules",
        verify: "ethtool -x DEV context N",
        since: "4.17",
        sources: &[RSS],
        ..Rule::record(Area::Queues)
    },
];

fn table(_: &Ask<'_>, device: &Device) -> Checked {
    let (queues, _) = receiving(device)?;
    if queues < 2 {
        return Answer::silent("one receive queue");
    }
    let table = &(&device.nic.rss).known()?.table;
    if table.is_empty() {
        return Answer::silent("the driver does not show its table");
    }
    let mut shares: BTreeMap<u32, usize> = BTreeMap::new();
    for queue in table {
        *shares.entry(*queue).or_default() += 1;
    }
    let most = shares.values().max().copied().unwrap_or(0);
    let least = shares.values().min().copied().unwrap_or(0);
    let unused = (0..queues).filter(|queue| !shares.contains_key(queue)).count();
    let expected = format!(
        "about {} of {} entries for each of {queues} queues",
        table.len() / queues as usize,
        table.len()
    );
    let set = Set::new(Knob::part(&device.name, Group::Rss, "indir"), format!("equal:{queues}"));
    // A table with fewer entries than queues cannot name them all.
    if unused > 0 && table.len() >= queues as usize {
        return Answer::found(
            format!("{unused} of {queues} queues have no entry"),
            expected,
            "they get no flow, unless a flow rule sends them one",
        )
        .change(set);
    }
    if most >= UNEVEN * least && most > least + 1 {
        return Answer::found(
            format!("between {least} and {most} entries for a queue"),
            expected,
            "the queue with the most entries saturates first",
        )
        .change(set);
    }
    Answer::fine(format!("{least} to {most} of {} entries for each queue", table.len()))
}

fn key(_: &Ask<'_>, device: &Device) -> Checked {
    if receiving(device)?.0 < 2 {
        return Answer::silent("one receive queue");
    }
    let key: String = (&(&device.nic.rss).known()?.key)
        .known()?
        .chars()
        .filter(char::is_ascii_hexdigit)
        .collect::<String>()
        .to_ascii_lowercase();
    // The symmetric key, and the one of the published verification suite that drivers ship as their default.
    if key.starts_with("6d5a6d5a6d5a") || key.starts_with("6d5a56da255b") {
        return Answer::fine("a key that is the same on every boot");
    }
    Answer::caution(
        "the RSS key is random at boot or was set: with few flows another key gives another result. Use many flows, \
         or set the same key in every run",
    )
}

fn function(_: &Ask<'_>, device: &Device) -> Checked {
    let rss = (&device.nic.rss).known()?;
    Answer::recorded(rss.function.clone().or_gap("its hash function")?)
}

fn transformation(_: &Ask<'_>, device: &Device) -> Checked {
    let rss = (&device.nic.rss).known()?;
    Answer::recorded(rss.transformation.clone().or_gap("a transformation of the hash's input")?)
}

fn udp4(_: &Ask<'_>, device: &Device) -> Checked {
    if receiving(device)?.0 < 2 {
        return Answer::silent("one receive queue");
    }
    let fields = device.nic.flow_hash.get(&FlowKind::Udp4).or_gap("the hash fields of UDP")?;
    let fields = *fields.known()?;
    if fields.has_ports() {
        return Answer::fine(format!("{fields}: addresses and ports"));
    }
    let knob = Knob::part(&device.name, Group::FlowHash, "udp4");
    Answer::found(
        format!("UDP over IPv4 is hashed by `{fields}`"),
        "sdfn: addresses and ports",
        "all UDP flows between two hosts go to one queue",
    )
    .change(Set::new(knob, "sdfn"))
}

fn contexts(_: &Ask<'_>, device: &Device) -> Checked {
    let contexts = (&device.nic.rss_contexts).known()?;
    Answer::recorded(format!("{} RSS contexts in addition to the main table", contexts.len()))
}
