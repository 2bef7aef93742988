//! Links of the hosts that do not run at one speed.

use rxpath_core::Warning;
use rxpath_record::hosts::ControlPath;

use super::{ConnectedHost, Hosts};
use crate::endpoint::links::LinkSpeed;

/// Kinds of devices whose speed says nothing: no wire is behind it.
const NOMINAL: [&str; 3] = ["veth", "tun", "bridge"];

impl ConnectedHost {
    /// How fast its device runs, if a wire is behind it.
    pub(super) fn wire_speed(&self) -> Option<&LinkSpeed> {
        let has_wire = !NOMINAL.contains(&self.device.driver.as_str());
        self.speeds.first().filter(|_| has_wire)
    }

    /// By which device its control connection comes, if that is in the network namespace of the experiment.
    pub(super) fn control(&self) -> Option<ControlPath> {
        let is_known = !self.is_local && !self.has_own_namespace;
        let measured: Vec<&str> = self.speeds.iter().map(|link| link.device.as_str()).collect();
        control(&self.hello.control_devices, &measured).filter(|_| is_known)
    }
}

impl Hosts {
    /// A warning where the links of the hosts run at different speeds: a path has that of its slower end.
    pub(super) fn unlike_links(&self) -> Option<Warning> {
        let of = |host: &'_ ConnectedHost| {
            Some((host.client.alias().to_owned(), host.wire_speed()?.clone()))
        };
        unlike(&self.all().filter_map(of).collect::<Vec<_>>())
    }
}

/// Two VLANs of a card share its link.
fn control(devices: &[String], measured: &[&str]) -> Option<ControlPath> {
    let is_measured = devices.iter().any(|device| measured.contains(&device.as_str()));
    devices.first().map(|device| ControlPath { device: device.clone(), is_measured })
}

fn unlike(links: &[(String, LinkSpeed)]) -> Option<Warning> {
    let known: Vec<_> = links.iter().filter(|(_, link)| link.mbps.is_some()).collect();
    let differ = known.windows(2).any(|pair| pair[0].1.differs(&pair[1].1));
    let one =
        |(alias, link): &&(String, LinkSpeed)| format!("{alias} {} {}", link.device, link.words());
    let each = known.iter().map(one).collect::<Vec<_>>().join(", ");
    differ.then(|| {
        Warning::new("unlike-links", format!("links run at different speeds: {each}"))
            .because("a path is as fast as its slower end, and the rest is lost or waits there")
            .cure("look at `ethtool DEV` on the slower host, if that was not planned")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(alias: &str, mbps: Option<u32>) -> (String, LinkSpeed) {
        (alias.into(), LinkSpeed { device: "ens1".into(), mbps, duplex: None })
    }

    #[test]
    fn links_of_different_speeds_are_shown_and_equal_or_unknown_ones_are_not() {
        let (gen1, sut) = (link("gen1", Some(25_000)), link("sut", Some(25_000)));
        assert_eq!(unlike(&[gen1.clone(), sut.clone()]), None);
        assert_eq!(unlike(&[gen1.clone(), link("sut", None)]), None);
        let warning = unlike(&[gen1, link("gen2", Some(1_000)), sut]).unwrap();
        assert_eq!(
            warning.text,
            "links run at different speeds: gen1 ens1 25Gb/s, gen2 ens1 1Gb/s, sut ens1 25Gb/s"
        );
    }

    #[test]
    fn control_is_on_the_measured_link_if_both_are_on_one_card() {
        let of = |devices: &[&str]| {
            let devices: Vec<String> = devices.iter().map(|device| (*device).to_owned()).collect();
            control(&devices, &["ens1.5", "ens1"]).map(|it| (it.device, it.is_measured))
        };
        assert_eq!(of(&["eno1"]), Some(("eno1".to_owned(), false)));
        assert_eq!(of(&["ens1"]), Some(("ens1".to_owned(), true)));
        assert_eq!(of(&["ens1.9", "ens1"]), Some(("ens1.9".to_owned(), true)));
        assert_eq!(of(&[]), None);
    }
}
