//! The links that carry an experiment's packets on a host: whether one lost its carrier, and how fast each of them runs.

use std::collections::BTreeMap;

use nix::libc;
use rxpath_core::IntoMap;
use rxpath_core::number::si;
use rxpath_host::HostError;
use rxpath_host::netlink::Netlink;
use rxpath_host::read::ioctl;
use rxpath_host::read::netlink::NetworkLink;
use rxpath_host::read::netlink::ethtool::{Duplex, LINK_MODES};
use serde::{Deserialize, Serialize};

use rxpath_live::lowest::{below, is_over_others};

/// How fast a link runs, as its two ends agreed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkSpeed {
    /// The device.
    pub device: String,
    /// **Unit** Mb/s. `None` where the driver does not say, and without a carrier.
    pub mbps: Option<u32>,
    /// `None` where the driver does not say.
    pub duplex: Option<Duplex>,
}

impl LinkSpeed {
    /// Whether both are known and differ.
    pub fn differs(&self, other: &Self) -> bool {
        self.mbps.zip(other.mbps).is_some_and(|(a, b)| a != b)
            || self.duplex.zip(other.duplex).is_some_and(|(a, b)| a != b)
    }

    /// `10Gb/s`, with `half duplex` where it is that.
    pub fn words(&self) -> String {
        let speed = self.mbps.map_or_else(
            || "an unknown speed".to_owned(),
            |mbps| format!("{}b/s", si(f64::from(mbps) * 1e6)),
        );
        match self.duplex {
            Some(Duplex::Half) => format!("{speed} half duplex"),
            _ => speed,
        }
    }
}

/// A device and those below it that carry its packets: members of a bond, the device of a VLAN.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CarryingLinks {
    device: String,
    /// The device first.
    all: Vec<CarryingLink>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct CarryingLink {
    speed: LinkSpeed,
    carrier: Option<bool>,
    carrier_changes: Option<u32>,
}

/// Words before `the window` for what happened in ramp and settle: of a change, and of a loss without a known instant. A connection of
/// TCP and a queue still have in the window what happened there.
const BEFORE: [&str; 2] = ["before", "before"];
/// The same for what happened in the window.
const WINDOW: [&str; 2] = ["in", "during"];

impl CarryingLink {
    /// What happened to its carrier up to `later`, if anything did. A single change that ends with a carrier is no loss. `lost_when`
    /// is when a loss was reported.
    fn carrier_fault(
        &self,
        later: &Self,
        [word, of_loss]: [&str; 2],
        lost_when: Option<&String>,
    ) -> Option<String> {
        let [before, now] = [self, later].map(|link| link.carrier_changes);
        let changes = before.zip(now).map(|(before, now)| now.wrapping_sub(before));
        let when = lost_when.map_or(of_loss, String::as_str);
        (before != now).then(|| match (changes, later.carrier) {
            (Some(1), Some(true)) => format!("got a carrier {word} the window"),
            _ => format!("lost its carrier {when} the window"),
        })
    }
}

impl CarryingLinks {
    /// Reads them now; a speed that cannot be read is unknown. A device that is not there has no links.
    ///
    /// **Cost** three system calls for each device; some drivers ask their firmware.
    ///
    /// # Errors
    /// Of the kernel, which does not list them.
    pub fn now(device: &str) -> Result<Self, HostError> {
        let links = devices(device)?;
        let mut generic = Netlink::generic().ok();
        let all = links.into_iter().map(|link| read(link, generic.as_mut())).collect();
        Ok(Self { device: device.to_owned(), all })
    }

    /// How fast they run, the device first.
    pub fn speeds(self) -> Vec<LinkSpeed> {
        self.all.into_iter().map(|link| link.speed).collect()
    }

    /// How often the carrier of each of them changed, where the kernel counts that.
    pub fn carrier_changes(&self) -> BTreeMap<String, u32> {
        let of = |link: &CarryingLink| Some((link.speed.device.clone(), link.carrier_changes?));
        self.all.iter().filter_map(of).into_map()
    }

    /// What happened to them up to `later`, in words. Of a carrier that was lost it may be known when, in words that `the window`
    /// follows.
    fn faults(
        &self,
        later: &Self,
        phase: [&str; 2],
        lost_when: &BTreeMap<String, String>,
    ) -> Vec<String> {
        let [word, _] = phase;
        let of = |link: &CarryingLink| {
            let name = self.shown(&link.speed.device);
            let Some(now) = later.named(&link.speed.device) else {
                return vec![format!("{name} went away {word} the window")];
            };
            let carrier = link.carrier_fault(now, phase, lost_when.get(&link.speed.device));
            let carrier = carrier.map(|fault| format!("{name} {fault}"));
            let speed = link.speed.differs(&now.speed).then(|| {
                let (before, after) = (link.speed.words(), now.speed.words());
                format!("{name} went from {before} to {after} {word} the window")
            });
            carrier.into_iter().chain(speed).collect()
        };
        self.all.iter().flat_map(of).collect()
    }

    /// Links that run at another speed than they did, in words.
    pub fn unlike(&self, earlier: &[LinkSpeed]) -> Vec<String> {
        let of = |before: &LinkSpeed| {
            let now = &self.named(&before.device)?.speed;
            let name = self.shown(&before.device);
            let (before_words, now_words) = (before.words(), now.words());
            before.differs(now).then(|| {
                format!("{name} runs at {now_words}, at {before_words} when the run began")
            })
        };
        earlier.iter().filter_map(of).collect()
    }

    fn named(&self, device: &str) -> Option<&CarryingLink> {
        self.all.iter().find(|link| link.speed.device == device)
    }

    /// A device with the one that it carries: `ens1f1 (below bond0)`.
    fn shown(&self, device: &str) -> String {
        if device == self.device {
            device.to_owned()
        } else {
            format!("{device} (below {})", self.device)
        }
    }
}

/// One reading of the links.
pub type LinksReading = Result<CarryingLinks, HostError>;

/// What the links of a window did before it and in it, and since the run began, in words; that they could not be read too. They
/// were read at the order to measure, a moment ahead of the window, and at its end. Of each of the two parts it may be known when a
/// carrier was lost.
pub fn window_faults(
    readings: [LinksReading; 3],
    at_begin: &[LinkSpeed],
    lost_when: &[BTreeMap<String, String>; 2],
) -> Vec<String> {
    match readings {
        [Ok(first), Ok(ahead), Ok(last)] => [
            first.unlike(at_begin),
            first.faults(&ahead, BEFORE, &lost_when[0]),
            ahead.faults(&last, WINDOW, &lost_when[1]),
        ]
        .concat(),
        [Err(error), _, _] | [_, Err(error), _] | [_, _, Err(error)] => {
            vec![format!("its links may have changed, they could not be read: {error}")]
        }
    }
}

/// The device, then those below it; nothing if it is not there.
fn devices(device: &str) -> Result<Vec<NetworkLink>, HostError> {
    let mut route = Netlink::route()?;
    let own = match route.link(device) {
        Ok(own) => own,
        Err(HostError::Kernel { errno: libc::ENODEV, .. }) => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut all = vec![own];
    if is_over_others(all[0].kind.as_deref()) {
        all.extend(below(&route.links()?, device).into_iter().cloned());
    }
    Ok(all)
}

/// Kernels before 5.6 know link modes by ioctl only.
fn read(link: NetworkLink, generic: Option<&mut Netlink>) -> CarryingLink {
    let modes = generic.and_then(|generic| generic.ethtool(&LINK_MODES, &link.name).ok());
    let modes = modes.or_else(|| ioctl::link_modes(&link.name).ok()).unwrap_or_default();
    let speed = LinkSpeed { device: link.name, mbps: modes.speed_mbps, duplex: modes.duplex };
    CarryingLink { speed, carrier: link.carrier, carrier_changes: link.carrier_changes }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn speed(device: &str, mbps: Option<u32>, duplex: Duplex) -> LinkSpeed {
        LinkSpeed { device: device.into(), mbps, duplex: Some(duplex) }
    }

    fn link(device: &str, mbps: u32, carrier_changes: u32) -> CarryingLink {
        let speed = speed(device, Some(mbps), Duplex::Full);
        CarryingLink { speed, carrier: Some(true), carrier_changes: Some(carrier_changes) }
    }

    fn bond(of: impl IntoIterator<Item = CarryingLink>) -> CarryingLinks {
        let bond = link("bond0", 20_000, 2);
        CarryingLinks { device: "bond0".into(), all: std::iter::once(bond).chain(of).collect() }
    }

    fn in_window(
        before: &CarryingLinks,
        later: &CarryingLinks,
        lost_when: &BTreeMap<String, String>,
    ) -> Vec<String> {
        before.faults(later, WINDOW, lost_when)
    }

    #[test]
    fn a_member_of_a_bond_that_lost_its_carrier_is_named_with_the_bond() {
        let before = bond([link("ens1", 10_000, 2), link("ens2", 10_000, 2)]);
        let none = BTreeMap::new();
        assert_eq!(in_window(&before, &before.clone(), &none), Vec::<String>::new());
        // Down and up again; the bond itself kept its carrier by the other member.
        let later = bond([link("ens1", 10_000, 2), link("ens2", 10_000, 4)]);
        let told =
            in_window(&before, &later, &[("ens2".to_owned(), "1.2 s into".to_owned())].into());
        assert_eq!(told, ["ens2 (below bond0) lost its carrier 1.2 s into the window"]);
        // By the counter alone.
        let told =
            in_window(&before, &later, &[("ens1".to_owned(), "1.2 s into".to_owned())].into());
        assert_eq!(told, ["ens2 (below bond0) lost its carrier during the window"]);
        let removed = bond([link("ens1", 10_000, 2)]);
        assert_eq!(
            in_window(&before, &removed, &none),
            ["ens2 (below bond0) went away in the window"]
        );
    }

    #[test]
    fn a_carrier_that_came_in_the_window_was_not_lost() {
        let without = |carrier_changes| CarryingLink {
            carrier: Some(false),
            ..link("ens1", 10_000, carrier_changes)
        };
        let none = BTreeMap::new();
        let told = |before: CarryingLink, later: CarryingLink| {
            in_window(&bond([before]), &bond([later]), &none)
        };
        let got = "ens1 (below bond0) got a carrier in the window";
        assert_eq!(told(without(3), link("ens1", 10_000, 4)), [got]);
        let lost = "ens1 (below bond0) lost its carrier during the window";
        assert_eq!(told(link("ens1", 10_000, 4), without(5)), [lost]);
        // It came, was lost and came again.
        assert_eq!(told(without(3), link("ens1", 10_000, 6)), [lost]);
    }

    #[test]
    fn a_speed_or_a_duplex_that_changed_is_a_fault_and_an_unknown_one_is_none() {
        let of = |speed| CarryingLinks {
            device: "ens1".into(),
            all: vec![CarryingLink { speed, carrier: Some(true), carrier_changes: Some(2) }],
        };
        let fast = of(speed("ens1", Some(10_000), Duplex::Full));
        let slow = of(speed("ens1", Some(1_000), Duplex::Full));
        let half = of(speed("ens1", Some(10_000), Duplex::Half));
        let unknown = of(LinkSpeed { device: "ens1".into(), mbps: None, duplex: None });
        let none = BTreeMap::new();
        assert_eq!(
            in_window(&fast, &slow, &none),
            ["ens1 went from 10Gb/s to 1Gb/s in the window"]
        );
        assert_eq!(
            in_window(&fast, &half, &none),
            ["ens1 went from 10Gb/s to 10Gb/s half duplex in the window"]
        );
        assert!(in_window(&fast, &unknown, &none).is_empty());
        assert!(in_window(&unknown, &slow, &none).is_empty());
        // Between two trials.
        let first = fast.clone().speeds();
        assert_eq!(slow.unlike(&first), ["ens1 runs at 1Gb/s, at 10Gb/s when the run began"]);
        assert!(fast.unlike(&first).is_empty() && slow.unlike(&[]).is_empty());
    }

    #[test]
    fn a_device_of_this_host_is_steady() {
        let before = CarryingLinks::now("lo").unwrap();
        assert_eq!(before.all.len(), 1);
        let later = CarryingLinks::now("lo").unwrap();
        assert_eq!(in_window(&before, &later, &BTreeMap::new()), Vec::<String>::new());
    }

    #[test]
    fn links_that_could_not_be_read_did_not_go_away() {
        let steady = || Ok(bond([link("ens1", 10_000, 2)]));
        let none = [BTreeMap::new(), BTreeMap::new()];
        assert!(window_faults([steady(), steady(), steady()], &[], &none).is_empty());
        let failed = || Err(HostError::kernel("show link bond0", libc::ENOBUFS));
        for readings in [
            [steady(), steady(), failed()],
            [steady(), failed(), steady()],
            [failed(), steady(), steady()],
        ] {
            let [fault]: [String; 1] = window_faults(readings, &[], &none).try_into().unwrap();
            assert!(fault.starts_with("its links may have changed"), "{fault}");
        }
        let gone = CarryingLinks::now("rxp-no-such").unwrap();
        let faults = in_window(&bond([]), &gone, &none[0]);
        assert_eq!(faults, ["bond0 went away in the window"]);
    }

    #[test]
    fn what_links_did_in_ramp_and_settle_is_said_to_be_before_the_window() {
        let ens1 = |mbps, carrier_changes| Ok(bond([link("ens1", mbps, carrier_changes)]));
        let when = |words: &str| BTreeMap::from([("ens1".to_owned(), words.to_owned())]);
        let before = |last: CarryingLinks, lost_when: &[BTreeMap<String, String>; 2]| {
            let ahead = Ok(bond([link("ens1", 10_000, 4)]));
            window_faults([ens1(10_000, 2), ahead, Ok(last)], &[], lost_when)
        };
        let same = || bond([link("ens1", 10_000, 4)]);
        let known = [when("0.4 s before"), BTreeMap::new()];
        let told = before(same(), &known);
        assert_eq!(told, ["ens1 (below bond0) lost its carrier 0.4 s before the window"]);
        let none = [BTreeMap::new(), BTreeMap::new()];
        let unknown = "ens1 (below bond0) lost its carrier before the window";
        assert_eq!(before(same(), &none), [unknown]);
        // And again in the window.
        let both = [when("0.4 s before"), when("1.2 s into")];
        let told = before(bond([link("ens1", 10_000, 6)]), &both);
        let again = "ens1 (below bond0) lost its carrier 1.2 s into the window";
        assert_eq!(told, ["ens1 (below bond0) lost its carrier 0.4 s before the window", again]);
        // Other changes.
        let slower = window_faults([ens1(10_000, 2), ens1(1_000, 2), ens1(1_000, 2)], &[], &none);
        assert_eq!(slower, ["ens1 (below bond0) went from 10Gb/s to 1Gb/s before the window"]);
        let removed = window_faults([ens1(10_000, 2), Ok(bond([])), Ok(bond([]))], &[], &none);
        assert_eq!(removed, ["ens1 (below bond0) went away before the window"]);
        let got = window_faults([ens1(10_000, 3), ens1(10_000, 4), ens1(10_000, 4)], &[], &none);
        assert_eq!(got, ["ens1 (below bond0) got a carrier before the window"]);
    }
}
