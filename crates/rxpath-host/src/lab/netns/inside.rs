//! What can be read and set from inside a namespace.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::os::fd::AsRawFd;
use std::process::Command;

use super::{Namespace, NsChild};
use crate::lab::owner::Owner;
use crate::lab::upper::UpperKind;
use crate::lab::veth::VethSpec;
use crate::netlink::Netlink;
use crate::read::ioctl;
use crate::read::netlink::UdpSocket;
use crate::read::netlink::ethtool::{FEATURES, feature_names};
use crate::write::change::SettingChange;
use crate::write::netlink::qdisc::QdiscSpec;
use crate::write::setter::HostSetter;
use crate::{Group, HostError, Root, Target};

/// The namespace as its thread sees it; handed to the closures of [`super::NsThread::run`].
#[derive(Debug)]
pub struct Inside {
    name: String,
    owner: Owner,
    route: Option<Netlink>,
    generic: Option<Netlink>,
}

impl Inside {
    pub(super) fn new(name: &str, owner: Owner) -> Self {
        Self { name: name.into(), owner, route: None, generic: None }
    }

    /// The namespace's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Where its files are read: `/proc/thread-self/net` and its own `/sys`.
    pub fn root(&self) -> Root {
        Root::thread_netns("/sys")
    }

    /// Links, addresses, routes, neighbours, qdiscs.
    pub fn route(&mut self) -> Result<&mut Netlink, HostError> {
        Netlink::opened(&mut self.route, Netlink::route)
    }

    /// ethtool features, channels, rings.
    pub fn generic(&mut self) -> Result<&mut Netlink, HostError> {
        Netlink::opened(&mut self.generic, Netlink::generic)
    }

    /// Counters of links, qdiscs and drivers, by the ledger's names:
    /// `link.veth.rx.dropped`, `qdisc.veth.tbf.1:drops`, `ethtool.veth.rx_queue_0_xdp_packets`.
    ///
    /// Loopback is counted too; `noqueue`, which counts nothing, and veth's `peer_ifindex`, which is no
    /// counter, are left out. Qdiscs of one kind and handle on one device (the
    /// children of `mq` have handle 0) are added up. **Caveat** qdisc drops and overlimits wrap at 2^32.
    pub fn counters(&mut self) -> Result<BTreeMap<String, u64>, HostError> {
        let mut found = BTreeMap::new();
        let links = self.route()?.links()?;
        for link in &links {
            for (stat, value) in &link.stats {
                found.insert(format!("link.{}.{stat}", link.name), *value);
            }
            match ioctl::driver_stats(&link.name) {
                Ok(stats) => found.extend(
                    stats
                        .into_iter()
                        .filter(|(stat, _)| stat != "peer_ifindex")
                        .map(|(stat, v)| (format!("ethtool.{}.{stat}", link.name), v)),
                ),
                // No ethtool operations (loopback has no statistics), or gone since the list.
                Err(
                    HostError::Unsupported { .. } | HostError::Kernel { errno: libc::ENODEV, .. },
                ) => {}
                Err(error) => return Err(error),
            }
        }
        let qdiscs = self.route()?.qdiscs()?;
        for qdisc in qdiscs.iter().filter(|qdisc| qdisc.kind != "noqueue") {
            let Some(link) = links.iter().find(|link| link.index == qdisc.index) else { continue };
            // The handle as `tc` writes it: `1:`, `8001:`.
            let name = format!("qdisc.{}.{}.{:x}:", link.name, qdisc.kind, qdisc.handle >> 16);
            for (stat, value) in &qdisc.stats {
                *found.entry(format!("{name}{stat}")).or_default() += value;
            }
        }
        Ok(found)
    }

    /// Bytes that wait in a device's root queueing disciplines now.
    pub fn queued_bytes(&mut self, dev: &str) -> Result<u64, HostError> {
        let links = self.route()?.links()?;
        let Some(link) = links.iter().find(|link| link.name == dev) else { return Ok(0) };
        let qdiscs = self.route()?.qdiscs()?;
        let roots = qdiscs.iter().filter(|q| q.index == link.index && q.parent == u32::MAX);
        Ok(roots.map(|qdisc| u64::from(qdisc.backlog_bytes)).sum())
    }

    /// As [`Namespace::set_features`].
    fn set_features(
        &mut self,
        dev: &str,
        wanted: &[(String, bool)],
    ) -> Result<Vec<SettingChange>, HostError> {
        let generic = self.generic()?;
        let before = generic.ethtool(&FEATURES, dev)?;
        let mut all = Vec::new();
        for (asked, on) in wanted {
            let names = feature_names(asked).into_iter().filter(|name| before.contains_key(*name));
            let count = all.len();
            all.extend(names.map(|name| (name, *on)));
            if all.len() == count {
                let there = similar(&before, asked);
                let needs = format!("a feature of that name; {dev} has {there}");
                return Err(HostError::unsupported(format!("set feature {asked} of {dev}"), needs));
            }
        }
        let refusal = match generic.want_features(dev, &all) {
            Ok(()) => None,
            Err(
                error @ (HostError::Unsupported { .. }
                | HostError::Kernel { errno: libc::EINVAL | libc::EOPNOTSUPP, .. }),
            ) => Some(error.to_string()),
            Err(error) => return Err(error),
        };
        let after = generic.ethtool(&FEATURES, dev)?;
        let change = |(name, on): (&str, bool)| {
            let target = Target::Group { dev: dev.into(), group: Group::Features };
            let pair = |on: bool| format!("{name}={}", if on { "on" } else { "off" });
            let was = before.get(name).map(|feature| pair(feature.active));
            let is = after.get(name).map(|feature| pair(feature.active));
            match &refusal {
                Some(why) => SettingChange::refused(target, was, &pair(on), (is, why.clone())),
                None => SettingChange::judge(target, was, &pair(on), is),
            }
        };
        Ok(all.into_iter().map(change).collect())
    }
}

fn similar(features: &crate::read::netlink::ethtool::Features, asked: &str) -> String {
    let part = asked.rsplit('-').next().unwrap_or(asked);
    let near: Vec<&str> =
        features.keys().map(String::as_str).filter(|f| f.contains(part)).collect();
    let all = || features.keys().map(String::as_str).collect();
    let names: Vec<&str> = if near.is_empty() { all() } else { near };
    names.join(", ")
}

/// From outside: each call runs in the namespace's own thread.
impl Namespace {
    /// As [`Inside::counters`].
    pub fn counters(&self) -> Result<BTreeMap<String, u64>, HostError> {
        self.run(Inside::counters)?
    }

    /// UDP sockets of the namespace, with their memory.
    pub fn udp_sockets(&self, port: Option<u16>) -> Result<Vec<UdpSocket>, HostError> {
        self.run(move |_| Netlink::sock_diag()?.udp_sockets(port))?
    }

    /// As [`HostSetter::set`].
    pub fn set(&self, target: Target, value: &str) -> Result<SettingChange, HostError> {
        let value = value.to_owned();
        self.run(move |_| HostSetter::default().set(target, &value))?
    }

    /// Sets a sysctl of the namespace and reads it back.
    pub fn set_sysctl(&self, key: &str, value: &str) -> Result<SettingChange, HostError> {
        self.set(Target::Sysctl { key: key.into() }, value)
    }

    /// Sets `/sys/class/net/DEV/ATTR` (`threaded`, `gro_flush_timeout`, `queues/rx-0/rps_cpus`).
    pub fn set_dev_attr(
        &self,
        dev: &str,
        attr: &str,
        value: &str,
    ) -> Result<SettingChange, HostError> {
        self.set(Target::Attr { dev: dev.into(), attr: attr.into() }, value)
    }

    /// Sets features by the kernel's or ethtool's short names, together, and reads them back.
    ///
    /// **Errors** `Unsupported` when the device has no feature of a name.
    pub fn set_features(
        &self,
        dev: &str,
        wanted: &[(&str, bool)],
    ) -> Result<Vec<SettingChange>, HostError> {
        let dev = dev.to_owned();
        let wanted: Vec<(String, bool)> =
            wanted.iter().map(|(name, on)| ((*name).to_owned(), *on)).collect();
        self.run(move |ns| ns.set_features(&dev, &wanted))?
    }

    /// Switches IPv6 off for the devices that exist and those to come. To be called before links
    /// come up, or their neighbour discovery shows up in the counters.
    ///
    /// A kernel without IPv6 has nothing to switch off: `Ok`.
    pub fn disable_ipv6(&self) -> Result<(), HostError> {
        for scope in ["all", "default"] {
            match self.set_sysctl(&format!("net.ipv6.conf.{scope}.disable_ipv6"), "1") {
                Err(HostError::Missing { .. }) => return Ok(()),
                other => other?.applied()?,
            };
        }
        Ok(())
    }

    /// Spawns a process in the namespace: it sees its devices in `/sys`, is on record, has a pipe as
    /// standard input, and is killed when the namespace's thread ends.
    pub fn spawn(&self, command: Command) -> Result<NsChild, HostError> {
        self.run(move |ns| NsChild::spawn(command, &ns.owner))?
    }

    /// Makes a veth pair `dev` here and `peer_dev` in `peer`, with `queues` queues each, both down.
    pub fn veth_to(
        &self,
        dev: &str,
        peer: &Namespace,
        peer_dev: &str,
        queues: u32,
    ) -> Result<(), HostError> {
        let (peer_dev, peer_ns) = (peer_dev.to_owned(), peer.file.as_raw_fd());
        self.link(dev, move |route, dev| {
            let spec = VethSpec { name: dev, peer: &peer_dev, peer_ns, queues };
            route.create_veth(&spec)
        })
    }

    /// As `Netlink::create_upper`.
    pub fn upper(
        &self,
        kind: UpperKind,
        (name, lower): (&str, &str),
        mac: [u8; 6],
    ) -> Result<(), HostError> {
        let lower = lower.to_owned();
        self.link(name, move |route, name| route.create_upper(kind, (name, &lower), mac))
    }

    /// A request about a device.
    fn link(
        &self,
        dev: &str,
        ask: impl FnOnce(&mut Netlink, &str) -> Result<(), HostError> + Send + 'static,
    ) -> Result<(), HostError> {
        let dev = dev.to_owned();
        self.run(move |ns| ask(ns.route()?, &dev))?
    }

    /// Sets a device up or down.
    pub fn set_up(&self, dev: &str, up: bool) -> Result<(), HostError> {
        self.link(dev, move |route, dev| route.set_up(dev, up))
    }

    /// As [`Netlink::set_mtu`].
    pub fn set_mtu(&self, dev: &str, mtu: u32) -> Result<(), HostError> {
        self.link(dev, move |route, dev| route.set_mtu(dev, mtu))
    }

    /// As [`Netlink::set_mac`].
    pub fn set_mac(&self, dev: &str, mac: [u8; 6]) -> Result<(), HostError> {
        self.link(dev, move |route, dev| route.set_mac(dev, mac))
    }

    /// As [`Netlink::add_address`].
    pub fn add_address(&self, dev: &str, ip: IpAddr, prefix: u8) -> Result<(), HostError> {
        self.link(dev, move |route, dev| route.add_address(dev, ip, prefix))
    }

    /// As [`Netlink::add_neighbour`].
    pub fn add_neighbour(&self, dev: &str, ip: IpAddr, mac: [u8; 6]) -> Result<(), HostError> {
        self.link(dev, move |route, dev| route.add_neighbour(dev, ip, mac))
    }

    /// As [`Netlink::set_qdisc`]; `None` puts the kernel's default back.
    pub fn set_qdisc(&self, dev: &str, spec: Option<QdiscSpec>) -> Result<(), HostError> {
        self.link(dev, move |route, dev| match spec {
            Some(spec) => route.set_qdisc(dev, spec),
            None => route.reset_qdisc(dev),
        })
    }
}
