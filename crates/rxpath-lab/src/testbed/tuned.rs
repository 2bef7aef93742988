//! Settings of a lab's namespaces by the names of `rxpath tune`, written as `rxpath tune` writes them and read back.

use rxpath_host::lab::netns::Namespace;
use rxpath_host::pairs::Pairs;
use rxpath_host::read::sysfs::device::parse_mask;
use rxpath_host::write::change::SettingChange;
use rxpath_host::write::setter::{HostSetter, Setter};
use rxpath_host::{Group, Knob, Target};

use crate::error::LabError;
use crate::scenario::spec::Lab;

/// The device of each namespace of a lab: both ends of the veth pair have this name.
pub const DEVICE: &str = "veth";
/// Stands for the device of the namespace in a name.
pub const DEVICE_WORD: &str = "{dev}";
/// The RPS mask of each receive queue of a host's device: `*` stands for their numbers.
pub const RPS_OF_EACH_QUEUE: &str = "{dev}/queues/rx-*/rps_cpus";
/// Every kind of TSO, as the kernel names them (`NETIF_F_ALL_TSO`).
const TSO: &str = "tx-tcp";

/// The setting of this name, with the lab's device for `{dev}`.
///
/// # Errors
/// In words, for a name that is no setting, or a group without one of its values.
pub fn knob(name: &str) -> Result<Knob, String> {
    let knob: Knob = name.replace(DEVICE_WORD, DEVICE).parse().map_err(|why| format!("{why}"))?;
    if knob.target.has_parts() && knob.part.is_none() {
        return Err(format!("`{name}` is a group: name one of its values, {name}/NAME"));
    }
    Ok(knob)
}

/// Whether it belongs to a network namespace, so that it goes with the lab.
pub fn is_of_namespace(target: &Target) -> bool {
    match target {
        Target::Sysctl { key } => key.starts_with("net.") || key.starts_with("net/"),
        Target::Sysfs { .. } | Target::Irq { .. } => false,
        Target::Attr { .. }
        | Target::Group { .. }
        | Target::QueueCoalesce { .. }
        | Target::Napi { .. } => true,
    }
}

/// Writes one setting in a namespace, and says what came of it.
///
/// # Errors
/// Where it can't be read: there is no such setting here.
pub fn set(ns: &Namespace, name: &str, value: &str) -> Result<SettingChange, LabError> {
    let knob = knob(name).map_err(LabError::internal)?;
    let text = knob.text(value.trim());
    Ok(ns.set(knob.target, &text)?)
}

/// What the rest of the lab must know of the path as these settings made it: where packets are handled decides which
/// counters count them.
pub fn observe(lab: &mut Lab, tx: &Namespace, rx: &Namespace) -> Result<(), LabError> {
    let features = |ns: &Namespace| -> Result<Pairs, LabError> {
        let target = Target::Group { dev: DEVICE.into(), group: Group::Features };
        let read = ns.run(move |_| HostSetter::default().read(&target))??;
        Ok(read.unwrap_or_default().parse().unwrap_or_default())
    };
    let is_on = |pairs: &Pairs, name: &str| pairs.get(name) == Some("on");
    let (sender, receiver) = (features(tx)?, features(rx)?);
    lab.gro = is_on(&receiver, "rx-gro");
    lab.udp_gro_forwarding = is_on(&receiver, "rx-udp-gro-forwarding");
    lab.tso = sender.iter().any(|(name, value)| name.starts_with(TSO) && value == "on");
    let attribute = |attr: &str| -> Result<Option<String>, LabError> {
        let target = Target::Attr { dev: DEVICE.into(), attr: attr.into() };
        Ok(rx.run(move |_| HostSetter::default().read(&target))??)
    };
    lab.threaded = attribute("threaded")?.is_some_and(|word| word.trim() != "0");
    if let Some(mask) = attribute("queues/rx-0/rps_cpus")? {
        lab.rps_cpus = parse_mask(&mask).unwrap_or_default();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_tune_and_belong_to_a_namespace() {
        let target = |name: &str| knob(name).unwrap().target;
        assert_eq!(target("{dev}/features/rx-gro").to_string(), "veth/features");
        for name in ["{dev}/threaded", "{dev}/queues/rx-0/rps_cpus", "net.ipv4.tcp_rmem"] {
            assert!(is_of_namespace(&target(name)), "{name}");
        }
        for name in ["kernel.sched_rt_runtime_us", "irq/4", "/sys/devices/system/cpu/smt/control"] {
            assert!(!is_of_namespace(&target(name)), "{name}");
        }
        assert!(knob("{dev}/features").unwrap_err().contains("group"));
        assert!(knob("nothing").is_err());
    }
}
