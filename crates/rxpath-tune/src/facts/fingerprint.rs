//! One number for all settings: two hosts or two moments with the same number are set alike.
//!
//! Facts go in by name, sorted, with their values as JSON; gaps do not, so that more privilege changes nothing but by
//! what it shows. Left out is what moves by itself ([`moving`], statistics, numbers that each boot draws again), and what
//! is no setting.

use rxpath_core::SortFew;
use rxpath_core::moving;
use rxpath_host::Root;
use rxpath_host::read::environment;
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::{Device, HostFacts};

/// Other facts that are no settings, by the beginning of their names.
const NO_SETTINGS: [&str; 8] = [
    "container.",
    "cgroup.",
    "daemons.",
    "device",
    "namespace.",
    "net.packet_taps",
    "process.",
    "cpu.frequency",
];

/// The number and how many facts went into it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fingerprint {
    /// SHA-256, hexadecimal.
    pub digest: String,
    /// Facts that were known.
    pub facts_count: usize,
}

impl Fingerprint {
    /// Enough of it to tell two apart.
    pub fn short(&self) -> &str {
        self.digest.get(..16).unwrap_or(&self.digest)
    }
}

impl HostFacts {
    /// The fingerprint of the settings.
    ///
    /// **Cost** the first time it reads the facts of a run's environment, some 10 ms.
    pub fn fingerprint(&self) -> Fingerprint {
        let mut facts = self.surroundings.get_or_init(|| surroundings(&self.root)).clone();
        let policies =
            self.list("/sys/devices/system/cpu/cpufreq").into_value().unwrap_or_default();
        for policy in policies.iter().filter(|name| name.starts_with("policy")) {
            for limit in ["scaling_governor", "scaling_min_freq", "scaling_max_freq"] {
                let path = format!("/sys/devices/system/cpu/cpufreq/{policy}/{limit}");
                facts.extend(self.text(&path).into_value().map(|text| (path, Value::from(text))));
            }
        }
        facts.extend(self.devices.iter().flat_map(of_device));
        facts.sort_few_by(|a, b| a.0.cmp(&b.0));
        let mut hash = Sha256::new();
        for (name, value) in &facts {
            hash.update(name.as_bytes());
            hash.update([0]);
            hash.update(value.to_string().as_bytes());
            hash.update([0]);
        }
        let bytes = hash.finalize();
        let digest = bytes.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"));
        Fingerprint { digest, facts_count: facts.len() }
    }
}

/// What of a run's environment stays as it is while nobody changes a setting.
fn surroundings(root: &Root) -> Vec<(String, Value)> {
    let is_setting = |name: &str| {
        !moving::is_moving(name) && !NO_SETTINGS.iter().any(|other| name.starts_with(other))
    };
    let all = environment::collect(root).into_iter().filter(|(name, _)| is_setting(name));
    all.filter_map(|(name, fact)| Some((name, fact.into_value()?))).collect()
}

/// A device's settings: driver settings, queue masks, interrupt affinities.
fn of_device(device: &Device) -> Vec<(String, Value)> {
    let (nic, steering) = (&device.nic, &device.sysfs.steering);
    let mut told = vec![
        ("features", json(nic.features.value())),
        ("channels", json(nic.channels.value())),
        ("rings", json(nic.rings.value())),
        ("coalesce", json(nic.coalesce.value())),
        ("queue_coalesce", json(nic.queue_coalesce.value())),
        ("private_flags", json(nic.private_flags.value())),
        ("eee", json(nic.eee.value())),
        ("driver", json(nic.driver.value())),
        ("flow_hash", json(Some(&nic.flow_hash))),
        ("pause", json(nic.pause.value().map(|pause| (pause.rx, pause.tx, pause.autoneg)))),
        ("table", json(nic.rss.value().map(|rss| (&rss.table, &rss.function)))),
        ("mtu", json(device.sysfs.mtu_bytes.value())),
        ("speed", json(device.sysfs.speed_mbps.value())),
        ("queues", json(Some((&steering.rx_queues, &steering.tx_queues)))),
        ("flush", json(device.sysfs.gro_flush_timeout_ns.value())),
        ("defer", json(device.sysfs.napi_defer_hard_irqs.value())),
        ("threaded", json(steering.threaded.value())),
    ];
    let irqs = device.irqs.value().map(|irqs| {
        // Numbers are given at boot; where each may go is the setting.
        irqs.iter().map(|irq| irq.masks.allowed_cpus.value()).collect::<Vec<_>>()
    });
    told.push(("irqs", json(irqs)));
    let name = |what: &str| format!("device.{}.{what}", device.name);
    told.into_iter().filter_map(|(what, value)| Some((name(what), value?))).collect()
}

/// A known value as JSON.
fn json<T: serde::Serialize>(value: Option<T>) -> Option<Value> {
    value.and_then(|value| serde_json::to_value(value).ok()).filter(|value| !value.is_null())
}
