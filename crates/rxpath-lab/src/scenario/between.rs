//! What of a scenario holds between real hosts, where the lab's link and its namespaces are not.

use std::collections::BTreeSet;
use std::collections::btree_map::Entry;

use rxpath_core::Warning;

use super::error::FileError;
use super::merge::{Overlay, lay, value_of};
use super::place::Places;
use super::reader::Reader;
use super::sections::Lab;
use super::spec::{Resolved, Variant};
use super::tune::{Sets, Tune};
use crate::testbed::tuned::RPS_OF_EACH_QUEUE;

/// Keys of the lab that mean the same on any host.
const OF_ANY_HOST: [&str; 4] = ["lab.ipv6", "lab.awake", "lab.turbo", "lab.smt"];

/// Where an experiment runs between hosts, and what it may do there.
pub(super) struct BetweenHosts {
    /// Whether it may change settings of the hosts.
    pub may_change: bool,
    /// Keys of the lab's link in which available variants differ.
    pub differing: BTreeSet<String>,
}

impl BetweenHosts {
    /// Between hosts, for variants that lay this over the base. Those that are not available have no part in `differing`.
    pub fn of<'a>(
        places: &Places<'_>,
        base: &Overlay,
        variants: impl Iterator<Item = &'a Overlay>,
    ) -> Result<Self, FileError> {
        let may_change = places.may_change;
        let mut all = Self { may_change, differing: BTreeSet::new() };
        for over in variants {
            let merged = lay(base, over);
            // What takes away a key that the base does not have changes nothing.
            let differs = |key: &&String| value_of(&merged, key) != value_of(base, key);
            let differing = over.keys().filter(|key| is_of_link(key)).filter(differs);
            let own = Self { may_change, differing: differing.cloned().collect() };
            if !own.differing.is_empty() && own.is_available(places, base, &merged)? {
                all.differing.extend(own.differing);
            }
        }
        Ok(all)
    }

    /// Whether a variant is available if its own keys are those that differ.
    fn is_available(
        &self,
        places: &Places<'_>,
        base: &Overlay,
        merged: &Overlay,
    ) -> Result<bool, FileError> {
        let mut reader = Reader::placed(merged.clone(), places)?;
        check(&mut reader);
        take_link(&mut reader, self, base, merged);
        reader.lab()?;
        Ok(reader.not_available.is_none())
    }

    /// Whether this key becomes a setting of the hosts' devices in each variant.
    fn sets(&self, key: &str) -> bool {
        self.may_change && self.differing.contains(key) && on_a_device(key).is_some()
    }
}

fn is_of_link(key: &str) -> bool {
    key.starts_with("lab.") && !OF_ANY_HOST.contains(&key)
}

/// Takes the keys that describe the lab's link out of a variant. Those in which variants differ become settings of the
/// hosts' devices where that is allowed and there is such a setting; else a variant that differs in one is not available.
/// One that all variants share stands for the network card of a real host, which is as it is.
pub(super) fn take_link(
    reader: &mut Reader<'_>,
    hosts: &BetweenHosts,
    base: &Overlay,
    written: &Overlay,
) {
    let keys: Vec<String> = reader.settings.keys().filter(|key| is_of_link(key)).cloned().collect();
    let mut differing = Vec::new();
    for key in keys {
        reader.settings.remove(&key);
        if hosts.sets(&key) {
            continue;
        }
        // As written: the base's roles are not placed on CPUs yet.
        if value_of(base, &key) == value_of(written, &key) {
            let text = format!("`{key}` is not used between hosts: their devices are as they are");
            reader.warnings.push(Warning::new("link-as-it-is", text));
        } else {
            differing.push(key);
        }
    }
    // A key that nothing can set comes first: with it in the way, what --change-hosts does for another one is of no use.
    let refused = differing.iter().find(|key| on_a_device(key).is_none()).or(differing.first());
    if let Some(key) = refused {
        let instead = on_a_device(key)
            .map_or_else(String::new, |name| format!(": --change-hosts sets {name}"));
        reader.not_available.get_or_insert_with(|| {
            format!(
                "`{key}` is a setting of the lab's link; between hosts it is the device's own{instead}"
            )
        });
    }
}

/// The keys of the lab's link that a device has too: the setting that means the same, and its value for a link.
#[rustfmt::skip]
const ON_A_DEVICE: [(&str, &str, fn(&Lab) -> String); 8] = [
    ("lab.gro", "{dev}/features/rx-gro", |link| switch(link.gro)),
    ("lab.udp_gro_forwarding", "{dev}/features/rx-udp-gro-forwarding", |link| switch(link.udp_gro_forwarding)),
    ("lab.tso", "{dev}/features/tx-tcp-segmentation", |link| switch(link.tso)),
    ("lab.threaded", "{dev}/threaded", |link| u8::from(link.threaded).to_string()),
    ("lab.rps_cpus", RPS_OF_EACH_QUEUE, |link| link.rps_cpus.to_mask()),
    ("lab.gro_flush_timeout", "{dev}/gro_flush_timeout", |link| link.gro_flush_timeout.unwrap_or_default().0.to_string()),
    ("lab.napi_defer_hard_irqs", "{dev}/napi_defer_hard_irqs", |link| link.napi_defer_hard_irqs.unwrap_or_default().to_string()),
    ("lab.queues", "{dev}/channels/combined", |link| link.queues.to_string()),
];

fn switch(on: bool) -> String {
    if on { "on" } else { "off" }.to_owned()
}

/// The setting of a device that means the same as a key of the lab's link.
fn on_a_device(key: &str) -> Option<&'static str> {
    ON_A_DEVICE.iter().find(|(own, ..)| *own == key).map(|(_, name, _)| *name)
}

/// What the link of a variant is to be, as settings of the hosts' devices. What the scenario sets itself stays. It gives the keys
/// that are settings then.
pub(super) fn set_on_devices(
    hosts: &BetweenHosts,
    link: &Lab,
    tune: &mut Tune,
) -> BTreeSet<String> {
    let mut set = BTreeSet::new();
    for (key, name, value) in ON_A_DEVICE.iter().filter(|(key, ..)| hosts.sets(key)) {
        if let Entry::Vacant(free) = sets_of(tune, key).entry((*name).to_owned()) {
            free.insert(value(link));
            set.insert((*key).to_owned());
        }
    }
    set
}

/// The settings of the side that has a key of the lab's link.
fn sets_of<'a>(tune: &'a mut Tune, key: &str) -> &'a mut Sets {
    if key == "lab.tso" { &mut tune.sender } else { &mut tune.receiver }
}

fn unset<'a>(tune: &mut Tune, keys: impl Iterator<Item = &'a String>) {
    for key in keys {
        if let Some(name) = on_a_device(key) {
            sets_of(tune, key).remove(name);
        }
    }
}

impl Variant {
    /// Its settings of hosts, without those that are there because other variants differ in a key of the lab's link.
    pub(super) fn own_tune(&self) -> Tune {
        let mut tune = self.tune.clone();
        let differs = |key: &&String| self.settings.contains_key(*key);
        unset(&mut tune, self.link_keys.iter().filter(|key| !differs(key)));
        tune
    }
}

impl Resolved {
    /// Leaves out the variants of which `refused` gives a reason for what they set. What hosts would have had for the sake of such a
    /// variant alone, they do not have for the others.
    ///
    /// # Errors
    /// Those of `refused`.
    pub fn leave_out_refused<E>(
        &mut self,
        refused: impl Fn(&Tune) -> Result<Option<String>, E>,
    ) -> Result<(), E> {
        // Their own settings first: one that a variant has for the sake of a refused one is no reason against it.
        self.leave_out_each(|variant| refused(&variant.own_tune()))?;
        let whole = |variant: &Variant| {
            if variant.tune == variant.own_tune() { Ok(None) } else { refused(&variant.tune) }
        };
        // Again after each change: hosts must have taken what the others set without it.
        while self.leave_out_each(whole)? {}
        Ok(())
    }

    /// Leaves out the refused variants, one after the other; whether there were any.
    fn leave_out_each<E>(
        &mut self,
        refused: impl Fn(&Variant) -> Result<Option<String>, E>,
    ) -> Result<bool, E> {
        let mut any = false;
        for at in 0..self.variants.len() {
            let variant = &self.variants[at];
            let is_available = variant.not_available.is_none();
            let Some(why) = is_available.then(|| refused(variant)).transpose()?.flatten() else {
                continue;
            };
            let name = variant.name.clone();
            self.leave_out(&name, &why);
            self.take_back_link();
            any = true;
        }
        Ok(any)
    }

    /// Leaves hosts as they are in keys of the lab's link in which no available variant differs any more.
    pub(super) fn take_back_link(&mut self) {
        let keys = self.available().flat_map(|variant| variant.settings.keys().cloned());
        let differing: BTreeSet<String> = keys.collect();
        for Variant { tune, link_keys, .. } in &mut self.variants {
            unset(tune, link_keys.difference(&differing));
            link_keys.retain(|key| differing.contains(key));
        }
    }
}

/// Marks a variant that wants what only runs on one machine. Before [`take_link`]: no setting of a host remedies that.
pub(super) fn check(reader: &mut Reader<'_>) {
    let frames = |key: &str| reader.text(key).is_some_and(|engine| engine.starts_with("xdp"));
    let unusable = reader.settings.keys().find(|key| key.ends_with(".engine") && frames(key));
    if let Some(key) = unusable {
        let why = format!("`{key}` works on one machine only, in a lab of two namespaces");
        reader.not_available.get_or_insert(why);
    }
}
