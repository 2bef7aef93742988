//! The environment of the host (guest, container), and its effect on measurements.

use rxpath_host::counter::Width;

use crate::facts::HostFacts;
use crate::prelude::*;

const VIRTIO: &str = "virtio 1.3 specification, 5.1.3 feature bits; linux/virtio_net.h";

/// `VIRTIO_NET_F_MQ`, `VIRTIO_RING_F_EVENT_IDX`, `VIRTIO_NET_F_NOTF_COAL`, `VIRTIO_NET_F_RSS`.
const BITS: [(usize, &str); 4] =
    [(22, "multiqueue"), (29, "event index"), (53, "coalescing"), (60, "RSS")];

/// Cloud NIC counters for packets above an allowance.
const ALLOWANCES: [&str; 5] = [
    "bw_in_allowance_exceeded",
    "pps_allowance_exceeded",
    "conntrack_allowance_exceeded",
    "linklocal_allowance_exceeded",
    "bw_out_allowance_exceeded",
];

/// Above this share of stolen CPU time a run is disturbed.
const STEAL_RATIO: f64 = 0.005;

/// Rules of this file.
pub const RULES: &[Rule] = &[
    Rule {
        id: "hypervisor",
        what: "Is this a guest, and does its host steal CPU time?",
        applies: "every host",
        check: Check::Host(hypervisor),
        why: "A guest's results also depend on its host: its load, its vCPU scheduling, its switch.",
        mechanism: "steal in /proc/stat is time in which a runnable vCPU did not run. A guest is recognised by \
                    the x86 flag hypervisor, /sys/hypervisor/type and DMI names; if the hypervisor hides all \
                    three, the guest looks like bare metal.",
        set_now: "nothing on the guest: use a dedicated host or vCPUs pinned by the hypervisor",
        verify: "steal in /proc/stat does not rise during a run",
        since: "2.6.11",
        sources: &["proc_stat(5), steal", "kernel: Documentation/virt/kvm/x86/msr.rst, steal time"],
        ..Rule::honesty(Area::Surroundings)
    },
    Rule {
        id: "virtio-features",
        what: "Which features does the hypervisor offer the virtio NIC?",
        applies: "virtio_net devices",
        check: Check::Device(virtio),
        why: "Without multiqueue one CPU serves all; without coalescing the driver rejects rx-usecs.",
        mechanism: "virtnet_probe (drivers/net/virtio_net.c) uses the features that both sides offer.",
        set_now: "options of the hypervisor: queues=, mq=on, rx_queue_size=1024",
        persist: "the same",
        verify: "cat /sys/class/net/DEV/device/features",
        since: "mq 3.8; RSS 5.18; notification coalescing 6.0",
        sources: &[VIRTIO],
        ..Rule::record(Area::Surroundings)
    },
    Rule {
        id: "cloud-nic",
        what: "Does the cloud drop or delay packets because an allowance is used up?",
        applies: "NICs that count it (ena)",
        weight: Weight::always(Warn).when(Throughput, Fail).when(Benchmark, Fail),
        size: Loss,
        effect: "packets above the allowance are queued or dropped outside the host",
        check: Check::Nic(cloud),
        why: "Loss above the instance's allowance looks like loss on the host, but no setting of the host removes \
              it.",
        mechanism: "The counters are the NIC's own; the driver reads them (ena_metrics_stats_strings).",
        not_when: "the counts are old: check whether they rise",
        set_now: "a larger instance, fewer packets (larger ones), fewer tracked flows",
        verify: "the counters do not rise under load",
        since: "5.10",
        sources: &[
            "kernel: drivers/net/ethernet/amazon/ena/ena_ethtool.c",
            "AWS EC2: network performance metrics of ENA",
        ],
        undo: NOTHING_CHANGED,
        persist: NO_SETTING,
        ..Rule::judge(Area::Surroundings)
    },
    Rule {
        id: "loopback-or-veth",
        what: "Is there a NIC at all, or only devices without interrupts and DMA?",
        applies: "every host",
        check: Check::Host(no_nic),
        why: "On loopback and veth the sender's CPU does the receiver's work, without interrupts or DMA: results \
              say nothing about a NIC.",
        mechanism: "loopback_xmit and veth_xmit pass the packet to the backlog or to NAPI of the same host.",
        verify: "ls -d /sys/class/net/*/device",
        since: "2.6",
        sources: &["kernel: drivers/net/loopback.c", "kernel: drivers/net/veth.c"],
        ..Rule::honesty(Area::Surroundings)
    },
    Rule {
        id: "netns-scope",
        what: "Is this the network namespace of the host?",
        applies: "processes that can see init's namespace",
        check: Check::Host(namespace),
        why: "In a container half of the sysctls are the container's, the NIC is in another namespace, and host \
              settings are not visible.",
        mechanism: "net sysctls belong to a namespace or to the first one only (net/core/sysctl_net_core.c).",
        set_now: "run it in the host's namespace",
        verify: "readlink /proc/self/ns/net /proc/1/ns/net; net:[4026531833] is the first one since 6.18",
        since: "3.0",
        sources: &[
            "network_namespaces(7)",
            "kernel: net/core/sysctl_net_core.c",
            "kernel: include/uapi/linux/nsfs.h NET_NS_INIT_INO (6.18)",
        ],
        ..Rule::honesty(Area::Surroundings)
    },
];

/// Stolen and all time of the CPUs, in ticks: the fields of the first line of proc_stat(5).
fn steal(text: &str) -> Option<(u64, u64)> {
    let mut words = text.lines().next()?.split_ascii_whitespace();
    if words.next()? != "cpu" {
        return None;
    }
    let fields: Vec<u64> = words.take(8).map(|word| word.parse().ok()).collect::<Option<_>>()?;
    Some((*fields.get(7)?, fields.iter().fold(0, |sum, field| field.saturating_add(sum))))
}

fn hypervisor(ask: &Ask<'_>) -> Checked {
    let guest = guest_signs(ask);
    let missing = || Gap::Absent("/proc/stat: no first line with stolen time".into());
    let of = |pick: fn((u64, u64)) -> u64| {
        let find = move |text: &str| steal(text).map(pick);
        ask.facts.count_in("/proc/stat", find).known()?.ok_or_else(missing)
    };
    let (stolen, all) = (of(|(stolen, _)| stolen)?, of(|(_, all)| all)?);
    let share = |part: u64, all: u64| if all == 0 { 0.0 } else { part as f64 / all as f64 };
    let ratio = share(stolen.total, all.total);
    let recent = stolen.recent.zip(all.recent).map(|(part, all)| share(part, all));
    if ratio > STEAL_RATIO || recent.is_some_and(|recent| recent > STEAL_RATIO) {
        let now = recent.map_or_else(
            || "read once".to_owned(),
            |recent| format!("{:.1} % while rxpath watched", recent * 100.0),
        );
        return Answer::caution(format!(
            "a guest whose host took {:.1} % of its CPU time since boot, {now}: numbers depend on its neighbours",
            ratio * 100.0
        ));
    }
    let signs = guest?;
    if signs.is_empty() {
        return Answer::recorded("no sign of a hypervisor");
    }
    Answer::recorded(format!("a guest ({}), hardly any time stolen", signs.join(", ")))
}

/// Makers and products of virtual machines in DMI (systemd: src/basic/virt.c `detect_vm_dmi_vendor` has the same list).
const DMI: [&str; 12] = [
    "QEMU",
    "KVM",
    "VMware",
    "VirtualBox",
    "innotek",
    "Xen",
    "Bochs",
    "Parallels",
    "OpenStack",
    "Amazon EC2",
    "Google Compute Engine",
    "Virtual Machine",
];

/// The signs that this is a guest; a gap if no source can be read.
fn guest_signs(ask: &Ask<'_>) -> Result<Vec<String>, Gap> {
    let mut signs = Vec::new();
    let mut is_told = false;
    let info = ask.facts.text("/proc/cpuinfo");
    // Only x86 has the flag: other processors' lists say nothing either way.
    if let Some(line) =
        info.value().and_then(|info| info.lines().find(|it| it.starts_with("flags")))
    {
        is_told = true;
        if line.split_whitespace().any(|flag| flag == "hypervisor") {
            signs.push("the CPU says so".to_owned());
        }
    }
    if let Some(kind) = ask.facts.text("/sys/hypervisor/type").into_value() {
        signs.push(kind);
    }
    let names: Vec<String> = ["sys_vendor", "product_name"]
        .into_iter()
        .filter_map(|name| ask.facts.text(&format!("/sys/class/dmi/id/{name}")).into_value())
        .collect();
    is_told |= !names.is_empty();
    let machine = names.join(" ");
    // Bare metal of a cloud carries the cloud's name, and says that it is metal.
    if DMI.iter().any(|maker| machine.contains(maker)) && !machine.contains(".metal") {
        signs.push(machine);
    }
    if signs.is_empty() && !is_told {
        info.known()?;
        let why = "neither a flag of the CPU, /sys/hypervisor nor DMI says whether this is a guest";
        return Err(Gap::Absent(why.into()));
    }
    Ok(signs)
}

fn virtio(ask: &Ask<'_>, device: &Device) -> Checked {
    if device.driver() != "virtio_net" {
        return Answer::silent("no virtio NIC");
    }
    // One digit for each bit, the first for bit 0 (drivers/virtio/virtio.c features_show).
    let bits = ask.facts.text(&device.path("device/features")).known()?;
    let has = |at: usize| bits.as_bytes().get(at) == Some(&b'1');
    let words: Vec<String> = BITS
        .iter()
        .map(|(at, name)| format!("{} {name}", if has(*at) { "with" } else { "without" }))
        .collect();
    Answer::recorded(words.join(", "))
}

fn cloud(ask: &Ask<'_>, device: &Device) -> Checked {
    let stats = (&device.nic.driver_stats).known()?;
    let later = ask.facts.later_device(device).and_then(|it| it.nic.driver_stats.value());
    let known: Vec<(&str, Count)> = stats
        .iter()
        .filter(|(name, _)| ALLOWANCES.contains(&name.as_str()))
        .map(|(name, first)| (name.as_str(), Count::of(Width::U64, *first, named(later, name))))
        .collect();
    if known.is_empty() {
        return Answer::silent("the driver counts no allowances");
    }
    let used: Vec<String> = known
        .iter()
        .filter(|(_, count)| count.total > 0)
        .map(|(name, count)| format!("{name} {}", count.total))
        .collect();
    if used.is_empty() {
        return Answer::fine("no allowance was exceeded");
    }
    let all = Count::sum(known.into_iter().map(|(_, count)| count));
    let watched = &ask.facts.watched;
    let told = watched.tell(all, "packets above an allowance", "the driver was loaded");
    Answer::found(
        format!("{}: {told}", used.join(", ")),
        "0",
        "packets above the allowance are lost outside the host",
    )
    .advice("a larger instance, or fewer packets; nothing on the host helps")
    .rests_on(all, watched)
}

/// A statistic of a driver by its name.
fn named(stats: Option<&Vec<(String, u64)>>, name: &str) -> Option<u64> {
    stats?.iter().find(|(known, _)| known == name).map(|(_, count)| *count)
}

fn no_nic(ask: &Ask<'_>) -> Checked {
    ask.facts.all_devices()?;
    let nics: Vec<&str> = ask.facts.nics().map(|device| device.name.as_str()).collect();
    if nics.is_empty() {
        return Answer::caution(
            "no device with hardware behind it: results say nothing about a NIC",
        );
    }
    let others: Vec<&str> = ask
        .facts
        .devices
        .iter()
        .filter(|device| !device.is_nic() && !device.is_loopback())
        .map(|device| device.name.as_str())
        .collect();
    if others.is_empty() {
        return Answer::recorded(format!("with hardware: {}", nics.join(", ")));
    }
    Answer::recorded(format!(
        "with hardware: {}; without, so that no rule for NICs asks them: {}",
        nics.join(", "),
        others.join(", ")
    ))
}

/// The first network namespace since 6.18: include/uapi/linux/nsfs.h `NET_NS_INIT_INO`.
const FIRST: &str = "net:[4026531833]";

/// Devices that sysfs shows and rtnetlink does not know: a sysfs shows the namespace that it was mounted in
/// (fs/sysfs/mount.c `sysfs_init_fs_context`), netlink that of the process.
fn foreign(facts: &HostFacts) -> Vec<&str> {
    let unknown = |device: &&Device| device.nic.link.value().is_none();
    if !facts.is_live() || facts.devices.iter().all(|device| unknown(&device)) {
        return Vec::new();
    }
    facts.devices.iter().filter(unknown).map(|device| device.name.as_str()).collect()
}

fn namespace(ask: &Ask<'_>) -> Checked {
    let foreign = foreign(ask.facts);
    if !foreign.is_empty() {
        return Answer::caution(format!(
            "/sys was mounted in another network namespace: {} and what its files say are not visible here",
            foreign.join(", ")
        ));
    }
    let own = ask.facts.link("/proc/self/ns/net").known()?;
    let first = match ask.facts.link("/proc/1/ns/net").known() {
        Ok(first) => first,
        Err(_) if ask.facts.kernel.is_since(6, 18) => FIRST.into(),
        Err(gap) => return Err(gap),
    };
    if own == first {
        return Answer::recorded("the same as init's");
    }
    Answer::caution("not init's network namespace: settings of the host's NIC do not show here")
}
