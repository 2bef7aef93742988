//! Asking the running kernel.

use std::collections::BTreeMap;

use rxpath_core::{Fact, IntoMap};

use super::{HostAnswers, LinkFacts, Nic, OtherEnd, QdiscFacts};
use crate::error::fact;
use crate::netlink::Netlink;
use crate::read::conntrack;
use crate::read::ioctl::{self, FlowKind};
use crate::read::netlink::ethtool::EthtoolQuestion;
use crate::read::netlink::nft_tables;
use crate::read::netlink::{DeviceQdisc, NetworkLink, ethtool};
use crate::read::tcx;
use crate::{HostError, Root};

/// Sockets to the kernel, in the network namespace of the thread that opened them.
#[derive(Debug)]
pub struct Reader {
    route: Netlink,
    generic: Netlink,
}

/// Queueing disciplines by the index of their device.
#[derive(Clone, Debug)]
pub struct Qdiscs(Fact<BTreeMap<u32, Vec<QdiscFacts>>>);

impl Qdiscs {
    /// Those of a device.
    pub fn of(&self, nic: &Nic) -> Fact<Vec<QdiscFacts>> {
        let Some(link) = nic.link.value() else {
            return Fact::absent("the device was not found");
        };
        self.0.as_ref().map(|all| all.get(&link.ifindex).cloned().unwrap_or_default())
    }
}

impl Reader {
    /// Opens the sockets.
    ///
    /// **Errors** when the kernel gives no netlink socket at all.
    pub fn open() -> Result<Self, HostError> {
        Ok(Self { route: Netlink::route()?, generic: Netlink::generic()? })
    }

    /// Everything of one device but its queueing disciplines ([`Reader::qdiscs`]). A device that is not there (any more) is
    /// all gaps that say so.
    ///
    /// **Cost** some 40 system calls; drivers that ask the hardware for statistics take milliseconds.
    pub fn device(&mut self, dev: &str) -> Nic {
        let link = fact(self.route.link(dev));
        let ifindex = link.value().map(|link| link.index);
        let other = link.value().and_then(|link| self.other_end(link));
        let link = link.map(|link| LinkFacts { other_end: other, ..facts_of(&link) });
        let mut nic = Nic { link, ..Nic::default() };
        self.ethtool(dev, &mut nic);
        ioctls(dev, &mut nic);
        self.netdev(ifindex, &mut nic);
        nic
    }

    /// The other end of a veth or the device below, where this process may see it.
    fn other_end(&mut self, link: &NetworkLink) -> Option<OtherEnd> {
        if link
            .peer_index
            .is_none_or(|index| index == 0 || index == link.index && !link.peer_elsewhere)
        {
            return None;
        }
        let other = self.route.other_end(link).ok()?;
        Some(OtherEnd {
            ifindex: other.index,
            is_elsewhere: link.peer_elsewhere,
            mtu_bytes: other.mtu,
        })
    }

    /// The queueing disciplines of all devices: the kernel lists them for all alone, so that this is asked once and not
    /// for each device.
    pub fn qdiscs(&mut self) -> Qdiscs {
        let mut found: BTreeMap<u32, Vec<QdiscFacts>> = BTreeMap::new();
        let all = fact(self.route.qdiscs());
        Qdiscs(all.map(|all| {
            for qdisc in all {
                found.entry(qdisc.index).or_default().push(qdisc_facts(&qdisc));
            }
            found
        }))
    }

    fn ethtool(&mut self, dev: &str, nic: &mut Nic) {
        nic.features = self.either(dev, &ethtool::FEATURES, ioctl::features);
        nic.channels = self.either(dev, &ethtool::CHANNELS, ioctl::channels);
        nic.rings = self.either(dev, &ethtool::RINGS, ioctl::rings);
        nic.coalesce = self.either(dev, &ethtool::COALESCE, ioctl::coalesce);
        nic.pause = self.either(dev, &ethtool::PAUSE, ioctl::pause);
        nic.eee = self.either(dev, &ethtool::EEE, ioctl::eee);
        nic.fec = self.either(dev, &ethtool::FEC, ioctl::fec);
        nic.private_flags = self.either(dev, &ethtool::PRIVATE_FLAGS, ioctl::private_flags);
        nic.link_modes = self.either(dev, &ethtool::LINK_MODES, ioctl::link_modes);
        nic.link_state = self.either(dev, &ethtool::LINK_STATE, ioctl::link_state);
        nic.port = self.either(dev, &ethtool::LINK_PORT, ioctl::link_port);
        let ask = &mut self.generic;
        nic.timestamping = fact(ask.ethtool(&ethtool::TIMESTAMPING, dev));
        nic.standard_stats = fact(ask.standard_stats(dev));
        // Kernels before 6.3 have the ioctl alone, and the netlink answer of some has no key.
        nic.rss = fact(rss(ask, dev));
        nic.rss_contexts = fact(ask.rss_contexts(dev));
    }

    /// Over netlink; by ioctl where this kernel has no such message. A driver that refuses one is not asked again: it
    /// has one function for both.
    fn either<T>(
        &mut self,
        dev: &str,
        question: &EthtoolQuestion<T>,
        ioctl: fn(&str) -> Result<T, HostError>,
    ) -> Fact<T> {
        match self.generic.ethtool_takes(question.command) {
            Ok(false) => fact(ioctl(dev)),
            _ => fact(self.generic.ethtool(question, dev)),
        }
    }

    fn netdev(&mut self, ifindex: Option<u32>, nic: &mut Nic) {
        let index = Fact::of(ifindex, "the device was not found");
        let ask = &mut self.generic;
        nic.xdp = index.as_ref().and_then(|index| fact(ask.xdp_abilities(*index)));
        nic.queues = index.as_ref().and_then(|index| fact(ask.device_queues(*index)));
        nic.napis = index.as_ref().and_then(|index| fact(ask.napis(*index)));
        nic.queue_stats = index.as_ref().and_then(|index| fact(ask.queue_stats(*index)));
        nic.tcx = index.and_then(|index| fact(tcx::read(index)));
    }

    /// The counters that move with the packets, and nothing else: for reading them again and again.
    pub fn counters(&mut self, dev: &str, nic: &mut Nic) {
        if let Some(link) = nic.link.value() {
            nic.queue_stats = fact(self.generic.queue_stats(link.ifindex));
        }
        nic.driver_stats = fact(ioctl::driver_stats(dev));
    }

    /// All counters of a device, and nothing else: for a second reading.
    pub fn counted(&mut self, dev: &str, first: &Nic) -> Nic {
        let mut nic = Nic { link: first.link.clone(), ..Nic::default() };
        self.counters(dev, &mut nic);
        // A device without them at first has none now.
        if first.pause.value().is_some() {
            nic.pause = fact(self.generic.ethtool(&ethtool::PAUSE, dev));
        }
        if first.fec.value().is_some() {
            nic.fec = fact(self.generic.ethtool(&ethtool::FEC, dev));
        }
        nic
    }

    /// The counters of the whole namespace, and nothing else: for a second reading.
    pub fn host_counted(&mut self) -> HostAnswers {
        HostAnswers {
            conntrack: fact(conntrack::read()),
            page_pools: fact(self.generic.page_pools()),
            neighbour_tables: fact(self.route.neighbour_tables()),
            ..HostAnswers::default()
        }
    }

    /// What netlink reports of the whole namespace; ingress hooks are those of `devices`.
    ///
    /// Nothing is asked whose module the question would load.
    pub fn host(&mut self, devices: &[String]) -> HostAnswers {
        let mut netfilter = match Netlink::netfilter() {
            Err(HostError::Kernel { errno: libc::EPROTONOSUPPORT, .. }) => {
                Fact::absent("this kernel has no netfilter netlink (CONFIG_NETFILTER_NETLINK)")
            }
            opened => fact(opened),
        };
        HostAnswers {
            netfilter_hooks: netfilter.as_mut().and_then(|ask| fact(ask.hooks(devices))),
            nft_tables: netfilter.as_mut().and_then(|ask| fact(nft(|| ask.nft_tables()))),
            nft_chains: netfilter.as_mut().and_then(|ask| fact(nft(|| ask.nft_chains()))),
            page_bytes: page_bytes(),
            audit: fact(Netlink::audit().and_then(|mut audit| audit.audit_state())),
            ..self.host_counted()
        }
    }
}

fn page_bytes() -> Fact<u64> {
    let found = nix::unistd::sysconf(nix::unistd::SysconfVar::PAGE_SIZE).ok().flatten();
    let found = found.and_then(|bytes| u64::try_from(bytes).ok());
    Fact::of(found, "sysconf does not tell the page size")
}

fn nft<T>(read: impl FnOnce() -> Result<Vec<T>, HostError>) -> Result<Vec<T>, HostError> {
    // Without the code there are no tables.
    if nft_tables::is_loaded(&Root::host())? { read() } else { Ok(Vec::new()) }
}

fn qdisc_facts(qdisc: &DeviceQdisc) -> QdiscFacts {
    QdiscFacts {
        kind: qdisc.kind.clone(),
        is_root: qdisc.parent == u32::MAX,
        limit: qdisc.limit,
        rate_bps: qdisc.rate_bps,
        packets_total: qdisc.stat("packets"),
        drops_total: qdisc.stat("drops"),
        overlimits_total: qdisc.stat("overlimits"),
    }
}

fn rss(ask: &mut Netlink, dev: &str) -> Result<ethtool::Rss, HostError> {
    match ask.ethtool(&ethtool::RSS, dev) {
        Ok(rss) if !rss.table.is_empty() => Ok(rss),
        Ok(empty) => Ok(ioctl::rss(dev).unwrap_or(empty)),
        Err(_) => ioctl::rss(dev),
    }
}

fn ioctls(dev: &str, nic: &mut Nic) {
    nic.driver = fact(ioctl::driver_info(dev));
    nic.driver_stats = fact(ioctl::driver_stats(dev));
    nic.flow_rules = fact(ioctl::flow_rules(dev));
    nic.stamp_config = fact(ioctl::stamp_config(dev));
    let queues = nic.channels.value().and_then(ethtool::Channels::receiving);
    nic.queue_coalesce = match queues {
        Some(queues) if queues > 0 => fact(ioctl::queue_coalesce(dev, queues)),
        _ => Fact::absent("the driver does not say how many queues there are"),
    };
    let hashed = FlowKind::ALL.into_iter().map(|kind| (kind, fact(ioctl::flow_hash(dev, kind))));
    nic.flow_hash = hashed.into_map();
}

fn facts_of(link: &NetworkLink) -> LinkFacts {
    LinkFacts {
        ifindex: link.index,
        is_up: link.is_up(),
        flags: link.flags,
        kind: link.kind.clone(),
        mtu_bytes: link.mtu,
        mtu_range_bytes: link.mtu_range,
        tx_queues_count: link.tx_queues,
        rx_queues_count: link.rx_queues,
        qdisc: link.qdisc.clone(),
        carrier: link.carrier,
        master_ifindex: link.master,
        promiscuity_count: link.promiscuity,
        allmulti_count: link.allmulti,
        gso_max_bytes: link.gso_max_size,
        tso_max_bytes: link.tso_max_size,
        other_end: None,
        gro_max_bytes: link.gro_max_size,
        gro_ipv4_max_bytes: link.gro_ipv4_max_size,
        xdp_programs: link.xdp.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_device_tells_what_it_has() {
        let mut reader = Reader::open().unwrap();
        let lo = reader.device("lo");
        let link = lo.link.value().unwrap();
        assert_eq!((link.ifindex, link.mtu_bytes, link.is_up), (1, 65_536, link.is_up));
        assert!(lo.features.value().unwrap().contains_key("rx-checksum"));
        assert!(lo.rings.gap().unwrap().contains("a driver that ha"), "{:?}", lo.rings);
        assert!(lo.queues.value().is_some() || lo.queues.gap().is_some());
    }

    /// What a kernel before 5.6 gives: the same, less what only netlink has.
    #[test]
    fn a_kernel_without_the_messages_is_asked_by_ioctl() {
        let mut reader = Reader::open().unwrap();
        let now = reader.device("lo");
        reader.generic.forget_ethtool();
        let old = reader.device("lo");
        assert_eq!(old.features, now.features);
        assert!(old.features.value().unwrap().len() > 40);
        assert_eq!(old.link_state.value().unwrap().up, Some(true));
        for gap in [old.rings.gap(), old.channels.gap(), old.pause.gap(), old.link_modes.gap()] {
            assert!(gap.unwrap().contains("driver that ha"), "the driver was asked");
        }
        let why = old.timestamping.gap().unwrap();
        assert!(why.contains("Linux 5.6"), "no ioctl is read for it: {why}");
    }

    #[test]
    fn a_device_that_is_gone_is_all_gaps() {
        let nic = Reader::open().unwrap().device("rxp-none");
        assert!(nic.link.gap().unwrap().contains("No such device"), "{:?}", nic.link);
        assert!(nic.features.gap().is_some() && nic.queues.gap().is_some());
        assert!(nic.driver.gap().unwrap().contains("No such device"), "{:?}", nic.driver);
    }
}
