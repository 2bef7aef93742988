//! What of a scenario holds between real hosts, where the lab's link and its namespaces are not.

use rxpath_core::Warning;

use super::merge::Overlay;
use super::reader::Reader;

/// Keys of the lab that mean the same on any host.
const OF_ANY_HOST: [&str; 4] = ["lab.ipv6", "lab.awake", "lab.turbo", "lab.smt"];

/// Takes the keys that describe the lab's link out of a variant. One in which the variant differs from the base makes it
/// not available; one that all variants share stands for the network card of a real host, which is as it is.
pub(super) fn take_link(reader: &mut Reader<'_>, base: &Overlay, written: &Overlay) {
    let of_link = |key: &&&'static str| key.starts_with("lab.") && !OF_ANY_HOST.contains(*key);
    let keys: Vec<&'static str> = reader.settings.keys().filter(of_link).copied().collect();
    for key in keys {
        reader.settings.remove(key);
        // As written: the base's roles are not placed on CPUs yet.
        let value = |overlay: &Overlay| overlay.get(key).map(|setting| setting.value.clone());
        if value(base) == value(written) {
            let text = format!("`{key}` is not used between hosts: their devices are as they are");
            reader.warnings.push(Warning::new("link-as-it-is", text));
        } else {
            reader.not_available.get_or_insert_with(|| {
                let instead = match on_a_device(key) {
                    Some(name) => format!(": use tune.receiver.\"{name}\""),
                    None => String::new(),
                };
                format!(
                    "`{key}` is a setting of the lab's link; between hosts it is the device's own{instead}"
                )
            });
        }
    }
}

/// The setting of a device that means the same as a key of the lab's link.
fn on_a_device(key: &str) -> Option<&'static str> {
    Some(match key {
        "lab.gro" => "{dev}/features/rx-gro",
        "lab.udp_gro_forwarding" => "{dev}/features/rx-udp-gro-forwarding",
        "lab.threaded" => "{dev}/threaded",
        "lab.rps_cpus" => "{dev}/queues/rx-0/rps_cpus",
        "lab.gro_flush_timeout" => "{dev}/gro_flush_timeout",
        "lab.napi_defer_hard_irqs" => "{dev}/napi_defer_hard_irqs",
        "lab.queues" => "{dev}/channels/combined",
        _ => return None,
    })
}

/// Marks a variant that wants what only runs on one machine.
pub(super) fn check(reader: &mut Reader<'_>) {
    let frames = |key: &str| reader.text(key).is_some_and(|engine| engine.starts_with("xdp"));
    let unusable = reader.settings.keys().find(|key| key.ends_with(".engine") && frames(key));
    if let Some(key) = unusable {
        let why = format!("`{key}` works on one machine only, in a lab of two namespaces");
        reader.not_available.get_or_insert(why);
    }
}
