//! Two network namespaces of this machine, joined by a veth pair whose both ends are called `veth`.
//!
//! The links are quiet: IPv6 is off unless it is under test, neighbours are permanent, so that every packet counted
//! is the workload's. Addresses are the benchmarking ranges of RFC 2544 and RFC 5180, which route nowhere.

mod settings;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::process::Command;

use rxpath_core::{PathSide, SchedClass};
use rxpath_host::lab::netns::Namespace;
use rxpath_host::lab::nft::Droppers;
use rxpath_host::lab::owner::Owner;
use rxpath_host::lab::upper::UpperKind;
use rxpath_host::netlink::Netlink;
use rxpath_host::read::netlink::netfilter::Conntrack;
use rxpath_host::read::procfs::snmp;
use rxpath_host::read::snapshot::Reader;
use rxpath_host::write::sched;
use rxpath_host::{HostError, Root};
use rxpath_live::live::hooks;
use rxpath_record::counters::Snapshot;
use rxpath_record::evidence::SoftirqPlace;
use rxpath_record::ledger::{Link, PathFacts};
use rxpath_record::manifest::FlowCpu;

use self::settings::LabSettings;
use super::ring::Ring;
use super::seat::Seat;
use super::tuned::{self, DEVICE};
use super::{Change, Started, Testbed, filters, flows};
use crate::clock::monotonic_ns;
use crate::error::LabError;
use crate::scenario::spec::{Lab, Tune};

/// The device over the receiver's end, where there is one.
const UPPER: &str = "upper";
/// Flows that are probed for their CPU before a trial, at most: some 20 us each.
const MOST_FLOWS: usize = 1024;
const TX_MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];
const RX_MAC: [u8; 6] = [2, 0, 0, 0, 0, 2];
/// A macvlan can't have the address of the device below.
const UPPER_MAC: [u8; 6] = [2, 0, 0, 0, 0, 3];
/// IPv6 of a link that is silent once it is up: no duplicate address detection, no router solicitations, and the
/// repeated multicast listener reports within 10 ms, not over seconds. They enter IP and reach nobody, as if lost.
const QUIET_IPV6: [(&str, &str); 6] = [
    ("accept_dad", "0"),
    ("dad_transmits", "0"),
    ("router_solicitations", "0"),
    ("accept_ra", "0"),
    ("mldv1_unsolicited_report_interval", "10"),
    ("mldv2_unsolicited_report_interval", "10"),
];

/// The testbed. Dropping it deletes both namespaces.
pub struct NetnsTestbed {
    tx: Namespace,
    rx: Namespace,
    lab: Lab,
    addresses: Vec<IpAddr>,
    changes: Vec<Change>,
    /// What counts on each side, and on the machine.
    readers: RefCell<[(PathSide, Reader); 3]>,
    droppers: [Droppers; 2],
    napi_threads: BTreeSet<i32>,
}

impl NetnsTestbed {
    /// Makes the namespaces, the link and every setting of `lab` and `tune`; nothing is left behind when a step fails.
    pub fn make(owner: &Owner, lab: &Lab, tune: &Tune) -> Result<Self, LabError> {
        let tx = Namespace::create(owner, "tx")?;
        let rx = Namespace::create(owner, "rx")?;
        let mut settings = LabSettings { lab, changes: Vec::new() };
        for ns in [&tx, &rx] {
            if lab.ipv6 {
                for (setting, value) in QUIET_IPV6 {
                    // Not checked: the kernel rounds times to its clock ticks, and all of it only saves waiting.
                    ns.set_sysctl(&format!("net.ipv6.conf.default.{setting}"), value)?;
                }
            } else {
                ns.disable_ipv6()?;
            }
        }
        settings.sysctls(&tx, PathSide::Tx)?;
        settings.sysctls(&rx, PathSide::Rx)?;
        tx.veth_to(DEVICE, &rx, DEVICE, lab.queues.max(1))?;
        let addresses = link(&tx, &rx, lab)?;
        settings.features(&tx, &rx)?;
        let napi_threads = settings.steering(&rx)?;
        settings.queueing(&tx)?;
        let mut lab = lab.clone();
        if !tune.is_empty() {
            for (side, ns, wanted) in
                [(PathSide::Tx, &tx, &tune.sender), (PathSide::Rx, &rx, &tune.receiver)]
            {
                for (name, value) in wanted {
                    settings.note(side, tuned::set(ns, name, value)?.applied()?);
                }
            }
            tuned::observe(&mut lab, &tx, &rx)?;
        }
        let droppers = filters::load(&tx, &rx, &lab)?;
        if let Some(room) = lab.conntrack_room {
            filters::fill_connections(&rx, room)?;
        }
        let reader = |ns: &Namespace| ns.run(|inside| Reader::protocols(&inside.root()));
        let readers = RefCell::new([
            (PathSide::Tx, reader(&tx)?),
            (PathSide::Rx, reader(&rx)?),
            (PathSide::Machine, Reader::machine(&Root::host())),
        ]);
        let changes = settings.changes;
        Ok(Self { tx, rx, lab, addresses, changes, readers, droppers, napi_threads })
    }

    /// The namespace of one side.
    pub fn namespace(&self, side: PathSide) -> &Namespace {
        if side == PathSide::Tx { &self.tx } else { &self.rx }
    }

    fn has_napi(&self) -> bool {
        // veth_skb_is_eligible_for_gro (drivers/net/veth.c): GRO at this end, and the other end either cannot
        // send TSO packets or this end forwards GRO batches.
        self.lab.gro && (!self.lab.tso || self.lab.udp_gro_forwarding)
    }
}

fn link(tx: &Namespace, rx: &Namespace, lab: &Lab) -> Result<Vec<IpAddr>, LabError> {
    let (tx_ip, rx_ips, prefix) = addresses(lab);
    for (ns, mac) in [(tx, TX_MAC), (rx, RX_MAC)] {
        ns.set_mac(DEVICE, mac)?;
        ns.set_mtu(DEVICE, lab.mtu_bytes)?;
    }
    let (rx_device, rx_mac) = upper(rx, lab)?;
    tx.add_address(DEVICE, tx_ip, prefix)?;
    for ip in &rx_ips {
        rx.add_address(rx_device, *ip, prefix)?;
    }
    for (ns, device) in [(tx, DEVICE), (rx, DEVICE), (rx, rx_device)] {
        ns.set_up(device, true)?;
    }
    rx.add_neighbour(rx_device, tx_ip, TX_MAC)?;
    for ip in &rx_ips {
        tx.add_neighbour(DEVICE, *ip, rx_mac)?;
    }
    Ok(rx_ips)
}

/// The device that has the receiver's addresses, and its hardware address.
fn upper(rx: &Namespace, lab: &Lab) -> Result<(&'static str, [u8; 6]), LabError> {
    let Some(kind) = lab.upper else { return Ok((DEVICE, RX_MAC)) };
    let mac = if kind == UpperKind::Macvlan { UPPER_MAC } else { RX_MAC };
    rx.upper(kind, (UPPER, DEVICE), mac)?;
    rx.set_mtu(UPPER, lab.mtu_bytes)?;
    Ok((UPPER, mac))
}

/// The sender's address, the receiver's, and the length of the common prefix.
fn addresses(lab: &Lab) -> (IpAddr, Vec<IpAddr>, u8) {
    let nth = 1..=lab.addresses.max(1);
    if lab.ipv6 {
        let rx = |i: u32| Ipv6Addr::new(0x2001, 2, 0, 0, 0, 0, 1, i as u16).into();
        (Ipv6Addr::new(0x2001, 2, 0, 0, 0, 0, 0, 1).into(), nth.map(rx).collect(), 64)
    } else {
        let rx = |i: u32| Ipv4Addr::new(198, 18, 1 + (i / 250) as u8, (i % 250) as u8 + 1).into();
        (Ipv4Addr::new(198, 18, 0, 1).into(), nth.map(rx).collect(), 16)
    }
}

fn put(
    into: &mut Snapshot,
    side: PathSide,
    what: &str,
    read: Result<BTreeMap<String, u64>, HostError>,
) {
    let named = |(name, n): (String, u64)| (format!("{side}/{name}"), n);
    into.put(format!("{side}/{what}"), read.map(|counters| counters.into_iter().map(named)));
}

impl Testbed for NetnsTestbed {
    fn addresses(&self) -> &[IpAddr] {
        &self.addresses
    }

    fn snapshot(&self) -> Snapshot {
        let mut snapshot = Snapshot::default();
        for (side, reader) in self.readers.borrow_mut().iter_mut() {
            let read = reader.read();
            put(&mut snapshot, *side, "", Ok(read.values));
            let gaps = read.gaps.into_iter();
            snapshot.gaps.extend(gaps.map(|(source, why)| (format!("{side}/{source}"), why)));
        }
        put(&mut snapshot, PathSide::Tx, "link", self.tx.counters());
        put(&mut snapshot, PathSide::Rx, "link", self.rx.counters());
        if self.lab.nft_tx.is_some() {
            put(&mut snapshot, PathSide::Tx, "nft", self.tx.nft_counters());
        }
        if filters::on_receiver(&self.lab) {
            put(&mut snapshot, PathSide::Rx, "nft", self.rx.nft_counters());
            // It drops like a rule where the table has no room.
            if let Some(conntrack) = self.conntrack() {
                let dropped = [(filters::CONNTRACK_DROP.to_owned(), conntrack.drop_total)];
                put(&mut snapshot, PathSide::Rx, "conntrack", Ok(dropped.into()));
            }
        }
        snapshot.t_ns = monotonic_ns() as i64;
        snapshot
    }

    fn spawn(&self, seat: Seat, command: Command) -> Result<Started, LabError> {
        Ok(Started::local(self.namespace(seat.side).spawn(command)?))
    }

    fn flow_cpus(&self, source_port: u16, flows: u16, port: u16) -> Result<Vec<FlowCpu>, LabError> {
        let (source, _, _) = addresses(&self.lab);
        let ports = (0..flows).map(|index| source_port.saturating_add(index));
        let pairs: Vec<_> = ports
            .flat_map(|from| self.addresses.iter().map(move |to| (from, *to)))
            .map(|(from, to)| (SocketAddr::new(source, from), SocketAddr::new(to, port)))
            .take(MOST_FLOWS)
            .collect();
        flows::landing(&self.tx, &self.rx, &pairs)
    }

    fn calm(&self) -> Result<(), LabError> {
        if self.lab.napi_idle {
            // Others on the machine may keep its CPU busy as well.
            for tid in &self.napi_threads {
                sched::set_class(*tid, SchedClass::Other)?;
            }
        }
        Ok(())
    }

    fn queued_bytes(&self) -> Result<u64, LabError> {
        if self.lab.qdisc_tx.is_none() {
            return Ok(0);
        }
        Ok(self.tx.run(|inside| inside.queued_bytes(DEVICE))??)
    }

    fn sock_diag(&self, side: PathSide) -> Result<Netlink, LabError> {
        // A socket belongs to the namespace of the thread that opened it, wherever it is used then.
        Ok(self.namespace(side).run(|_| Netlink::sock_diag())??)
    }

    fn ring(&self) -> Result<Option<Ring>, LabError> {
        // What waits in a qdisc, and IPv6, whose counters are elsewhere, would count as in the ring.
        if !self.has_napi() || self.lab.qdisc_tx.is_some() || self.lab.ipv6 {
            return Ok(None);
        }
        let tx_snmp = self.tx.run(|inside| inside.root().open(snmp::SNMP))??;
        let tx_link = self.tx.run(|_| Netlink::route())??;
        Ok(Ring::at_rest(tx_snmp, tx_link, self.rx.run(|_| Netlink::route())??))
    }

    fn changes(&self) -> &[Change] {
        &self.changes
    }

    fn conntrack(&self) -> Option<Conntrack> {
        if !filters::on_receiver(&self.lab) {
            return None;
        }
        self.rx.run(|_| Netlink::netfilter()?.conntrack()).ok()?.ok()
    }

    fn queues(&self) -> Option<(u32, Vec<u32>)> {
        Some((self.lab.queues.max(1), self.lab.rps_cpus.0.clone()))
    }

    fn softirq(&self) -> SoftirqPlace {
        match (self.has_napi(), self.lab.threaded, self.lab.rps_cpus.is_empty()) {
            (_, _, false) => SoftirqPlace::Rps { cpus: self.lab.rps_cpus.0.clone() },
            (true, true, true) => {
                SoftirqPlace::NapiThread { cpus: self.lab.napi_cpu.into_iter().collect() }
            }
            (true, false, true) => SoftirqPlace::Napi { cpus: Vec::new() },
            (false, _, true) => SoftirqPlace::SenderCall,
        }
    }

    fn path(&self) -> PathFacts {
        let named = |side: PathSide, rules: &Option<Vec<String>>| {
            Some(rules.as_ref()?.iter().map(|rule| format!("{side}/{rule}")).collect())
        };
        let [tx, rx] = &self.droppers;
        PathFacts {
            tx_device: Some(DEVICE.into()),
            rx_device: Some(DEVICE.into()),
            v6: self.lab.ipv6,
            link: if self.has_napi() { Link::VethNapi } else { Link::VethPlain },
            egress_rules: named(PathSide::Tx, &tx.egress),
            input_rules: named(PathSide::Rx, &rx.input).map(|mut rules: Vec<String>| {
                if filters::on_receiver(&self.lab) {
                    rules.push(format!("{}/{}", PathSide::Rx, filters::CONNTRACK_DROP));
                }
                rules
            }),
            ingress_rules: named(PathSide::Rx, &rx.ingress),
            output_rules: named(PathSide::Tx, &tx.output)
                .zip(named(PathSide::Rx, &rx.output))
                .map(|(tx, rx): (Vec<String>, Vec<String>)| [tx, rx].concat()),
            ..PathFacts::default()
        }
    }

    fn ingress_hooks(&self) -> Vec<String> {
        let read = self.rx.run(|inside| {
            Ok::<_, HostError>(hooks::attached(&inside.root(), &inside.route()?.links()?))
        });
        match read {
            Ok(Ok(found)) => found,
            Ok(Err(error)) | Err(error) => vec![format!("what hooks in front of IP drop: {error}")],
        }
    }

    fn network_namespace(&self, side: PathSide) -> Option<u32> {
        let namespace = self.namespace(side);
        let inode = namespace.run(|_| rxpath_host::read::identity::network_namespace()).ok()?;
        u32::try_from(inode.ok()?).ok()
    }

    fn side_of(&self, netns: u32) -> Option<PathSide> {
        let is = |side: &PathSide| self.network_namespace(*side) == Some(netns);
        [PathSide::Tx, PathSide::Rx].into_iter().find(is)
    }

    fn shared_with_others(&self) -> bool {
        false
    }
}
