//! The environment of the host (guest, container), and its effect on measurements.

use rxpath_core::number::grouped;

use crate::facts::HostFacts;
use crate::prelude::*;

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

/// The checks of the rules of this file.
pub const CHECKS: Checks = &[
    ("hypervisor", Check::Host(hypervisor)),
    ("virtio-features", Check::Device(virtio)),
    ("cloud-nic", Check::Nic(cloud)),
    ("loopback-or-veth", Check::Host(no_nic)),
    ("netns-scope", Check::Host(namespace)),
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
    signs.extend(ask.facts.text("/sys/hypervisor/type").into_value());
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
    let names = (&device.nic.driver_stats).known()?.iter().map(|(name, _)| name.as_str());
    let known: Vec<(&str, Count)> = names
        .filter(|name| ALLOWANCES.contains(name))
        .filter_map(|name| Some((name, ask.facts.driver_count(device, name).ok()??)))
        .collect();
    if known.is_empty() {
        return Answer::silent("the driver counts no allowances");
    }
    let used: Vec<String> = known
        .iter()
        .filter(|(_, count)| count.total > 0)
        .map(|(name, count)| format!("{name} {}", grouped(count.total)))
        .collect();
    if used.is_empty() {
        return Answer::fine("no allowance was exceeded");
    }
    let all = Count::sum(known.into_iter().map(|(_, count)| count));
    let told = ask.facts.watched.tell(all, "packets above an allowance", "the driver was loaded");
    Answer::observed(format!("{}: {told}", used.join(", ")))
        .advice("a larger instance, or fewer packets; nothing on the host helps")
        .rests_on(all, &ask.facts.watched)
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
