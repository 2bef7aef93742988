//! Places of loss that no counter here has: polled rings of veths, and hooks in front of IP.
//!
//! What there is changes seldom, and looking for it costs requests for each device: who watches all the time asks again
//! now and then, and at once when a device came, went, or was set up or down.

use std::collections::{BTreeMap, BTreeSet};

use rxpath_core::IntoMap;
use rxpath_host::Root;
use rxpath_host::netlink::Netlink;
use rxpath_host::read::netlink::NetworkLink;

use super::hooks;

/// So many windows until it is asked again.
const WINDOWS: u32 = 30;

/// What was found when it was last asked.
#[derive(Debug, Default)]
pub(crate) struct Unseen {
    /// Windows until it is asked again; 0: now.
    left: u32,
    /// Of each device, by index: whether it was up.
    devices: BTreeMap<u32, bool>,
    hooks: Vec<String>,
    /// veths that are polled, by index.
    polled: Vec<u32>,
}

impl Unseen {
    /// What may have been lost unseen between `before` and `now`; `nameless` when the kernel's drop reasons are watched: devices
    /// with drops in functions that have no name here.
    pub(crate) fn between(
        &mut self,
        before: &[NetworkLink],
        now: &[NetworkLink],
        nameless: Option<&BTreeSet<String>>,
    ) -> Vec<String> {
        let devices = now.iter().map(|link| (link.index, link.is_up())).into_map();
        if self.left == 0 || devices != self.devices {
            self.hooks = hooks::unseen(&Root::host(), now, nameless.is_some());
            self.polled = polled(now);
            (self.devices, self.left) = (devices, WINDOWS);
        }
        self.left -= 1;
        let rings = self.rings(before, now, nameless);
        rings.into_iter().chain(self.hooks.iter().cloned()).collect()
    }

    /// Rings of veth pairs that are polled: what a full one drops is counted at the other end, as `tx.dropped`. The kernel's drop
    /// reasons have it here, by the function that drops it: there is no reason.
    fn rings(
        &self,
        before: &[NetworkLink],
        now: &[NetworkLink],
        nameless: Option<&BTreeSet<String>>,
    ) -> Option<String> {
        let old: BTreeMap<u32, Option<u64>> =
            before.iter().map(|link| (link.index, link.stat("rx.packets"))).into_map();
        let took = |link: &&NetworkLink| {
            self.polled.contains(&link.index)
                && nameless.is_none_or(|devices| devices.contains(&link.name))
                && old.get(&link.index).is_some_and(|was| *was != link.stat("rx.packets"))
        };
        let names = hooks::joined(now.iter().filter(took))?;
        let where_counted = "it is counted at the other end, in another namespace";
        Some(format!("what the ring of {names} drops: {where_counted}"))
    }
}

/// veths that are polled. Without NAPI a veth has no ring: its packets go to the backlog. Where that is not known it may
/// have one.
fn polled(links: &[NetworkLink]) -> Vec<u32> {
    let mut generic = Netlink::generic();
    let mut is_polled = |link: &NetworkLink| {
        !generic.as_mut().is_ok_and(|it| it.napis(link.index).is_ok_and(|napis| napis.is_empty()))
    };
    let veths = links.iter().filter(|link| link.kind.as_deref() == Some("veth"));
    veths.filter(|link| is_polled(link)).map(|link| link.index).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn veth(index: u32, received: u64) -> NetworkLink {
        NetworkLink {
            index,
            name: format!("veth{index}"),
            kind: Some("veth".into()),
            stats: vec![("rx.packets", received)],
            ..NetworkLink::default()
        }
    }

    #[test]
    fn a_polled_ring_is_named_in_each_window_in_which_it_took_something() {
        let mut unseen = Unseen {
            polled: vec![8],
            devices: [(8, false), (9, false)].into(),
            left: 3,
            ..Unseen::default()
        };
        let at = |received| vec![veth(8, received), veth(9, received)];
        let said = unseen.between(&at(1), &at(2), None);
        assert!(
            matches!(said.as_slice(), [one] if one.starts_with("what the ring of veth8 drops")),
            "{said:?}"
        );
        assert!(unseen.between(&at(2), &at(2), None).is_empty());
        let of = |device: &str| BTreeSet::from([device.to_owned()]);
        let told = unseen.between(&at(2), &at(3), Some(&of("veth9")));
        assert!(told.is_empty(), "reasons tell of it: {told:?}");
        assert_eq!(unseen.left, 0);
        unseen.left = 1;
        assert_eq!(unseen.between(&at(1), &at(2), Some(&of("veth8"))), said);
    }

    #[test]
    fn it_is_asked_again_after_a_while_and_when_a_device_comes() {
        let mut unseen = Unseen { hooks: vec!["made up".into()], left: 1, ..Unseen::default() };
        let none = BTreeSet::new();
        assert_eq!(unseen.between(&[], &[], Some(&none)), ["made up"]);
        let made_up = "made up".to_owned();
        assert!(!unseen.between(&[], &[], Some(&none)).contains(&made_up));
        assert_eq!(unseen.left, WINDOWS - 1);
        unseen.hooks = vec![made_up.clone()];
        let there =
            [NetworkLink { index: 4_000_000, name: "none".into(), ..NetworkLink::default() }];
        assert!(!unseen.between(&[], &there, Some(&none)).contains(&made_up));
    }
}
