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
                format!(
                    "`{key}` is a setting of the lab's link; between hosts it is the device's own"
                )
            });
        }
    }
}

/// Marks a variant that wants what only runs on one machine.
pub(super) fn check(reader: &mut Reader<'_>) {
    let keys = ["serve.command", "load.command"];
    let frames = |key: &str| reader.text(key).is_some_and(|engine| engine.starts_with("xdp"));
    let unusable = reader.settings.keys().find(|key| {
        let listed = key.starts_with("tune.") || keys.contains(key);
        listed || (key.ends_with(".engine") && frames(key))
    });
    if let Some(key) = unusable {
        let why = format!("`{key}` works on one machine only, in a lab of two namespaces");
        reader.not_available.get_or_insert(why);
    }
}
