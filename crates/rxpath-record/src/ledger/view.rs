//! The counters of a trial by the role they play, for IPv4 and IPv6 alike.

use rxpath_core::PathSide;

use super::Place;
use super::input::{LedgerInput, Link, Reasoned};
use crate::counters::{Moved, name};

/// Counters and facts of one trial.
#[derive(Clone, Copy)]
pub(super) struct View<'a> {
    pub input: &'a LedgerInput,
    pub moved: &'a Moved,
}

impl<'a> View<'a> {
    pub fn get(self, name: &str) -> i64 {
        self.moved.get(name)
    }

    /// Whether a counter was read. A difference with one that was not would invent a loss.
    pub fn knows(self, name: &str) -> bool {
        self.moved.gap(name).is_none()
    }

    pub fn ip_name(self, side: PathSide, counter: &str) -> String {
        name::snmp(side, self.input.path.groups().0, counter)
    }

    pub fn ip(self, side: PathSide, counter: &str) -> i64 {
        self.get(&self.ip_name(side, counter))
    }

    pub fn udp_name(self, side: PathSide, counter: &str) -> String {
        name::snmp(side, self.input.path.groups().2, counter)
    }

    pub fn udp(self, side: PathSide, counter: &str) -> i64 {
        self.get(&self.udp_name(side, counter))
    }

    /// Segments that reached IP: the four ECN counters, which add `gso_segs` (`net/ipv4/ip_input.c`,
    /// `ip_rcv_core`; `net/ipv6/ip6_input.c`, `ip6_rcv_core`).
    pub fn segments_at_ip(self) -> i64 {
        let group = self.input.path.groups().1;
        name::ECN.iter().map(|counter| self.get(&name::snmp(PathSide::Rx, group, counter))).sum()
    }

    pub fn segments_name(self) -> String {
        let group = self.input.path.groups().1;
        format!("rx/{group}.({})", name::ECN.join(" + "))
    }

    pub fn tx_link_name(self, counter: &str) -> Option<String> {
        self.input.path.tx_device.as_ref().map(|device| name::link(PathSide::Tx, device, counter))
    }

    pub fn tx_link(self, counter: &str) -> i64 {
        self.tx_link_name(counter).map_or(0, |name| self.get(&name))
    }

    pub fn rx_link_name(self, counter: &str) -> Option<String> {
        self.input.path.rx_device.as_ref().map(|device| name::link(PathSide::Rx, device, counter))
    }

    pub fn rx_link(self, counter: &str) -> i64 {
        self.rx_link_name(counter).map_or(0, |name| self.get(&name))
    }

    /// Packets that the backlog dropped, and the counter that has them.
    ///
    /// `enqueue_to_backlog` counts the receiving device's `rx_dropped` (`net/core/dev.c`). Drivers of network cards count
    /// losses of their own there too; then what softnet dropped is less.
    pub fn backlog(self) -> (String, i64) {
        let (name, packets) = self.backlog_of_device();
        let softnet = self.moved.like("machine/softnet.", ".dropped").map(|(_, by)| by).sum();
        let read = self.knows("machine/softnet.");
        if self.link() == Link::Nic && read && softnet < packets {
            return ("machine/softnet.*.dropped".into(), softnet);
        }
        (name, packets)
    }

    /// Backlog drops among the packets that a device counted: a NAPI device counts before its backlog drops.
    pub fn backlog_behind_device(self) -> i64 {
        let behind = matches!(self.link(), Link::VethNapi | Link::Nic);
        if behind { self.backlog().1 } else { 0 }
    }

    fn backlog_of_device(self) -> (String, i64) {
        let refused = self.input.sender.refused_frames as i64;
        let in_xdp = self.input.receiver.bypass.map_or(0, |it| it.socket_drops_packets as i64);
        let name = self.rx_link_name("rx.dropped").unwrap_or_else(|| "rx/link.rx.dropped".into());
        let refusals = if refused > 0 { " - frames that the ring refused" } else { "" };
        let drops = if in_xdp > 0 { " - drops of AF_XDP sockets" } else { "" };
        (name + refusals + drops, self.rx_link("rx.dropped") - refused - in_xdp)
    }

    /// Packets of the device that the receiver's own XDP program took: IP does not see them.
    pub fn taken_in_xdp(self) -> i64 {
        self.input.receiver.bypass.map_or(0, |bypass| bypass.taken_packets as i64)
    }

    /// The kind of link, with "not known" settled by the driver's own counters.
    ///
    /// **Source** `drivers/net/veth.c`: `veth_xdp_rcv` counts `xdp_packets`; without NAPI it does not run.
    pub fn link(self) -> Link {
        match self.input.path.link {
            Link::Veth => {
                let device = self.input.path.rx_device.as_deref().unwrap_or_default();
                let queues = name::ethtool(PathSide::Rx, device, "rx_queue_");
                let ran = self.moved.like(&queues, "_xdp_packets").any(|(_, by)| by > 0);
                if ran { Link::VethNapi } else { Link::VethPlain }
            }
            known => known,
        }
    }

    /// Whether other programs' packets may be in the counters of losses.
    pub fn is_shared(self) -> bool {
        self.input.path.is_shared && self.link() == Link::Nic
    }

    /// Whether what was offered is what UDP counted for all programs of the sender's host: any of it may be of others.
    pub fn counts_all_senders(self) -> bool {
        self.is_shared() && self.input.sender.by_kernel
    }

    /// Whether what was delivered is what UDP counted for all programs of the receiver's host: any of it may be of others.
    pub fn counts_all_receivers(self) -> bool {
        self.is_shared() && self.input.receiver.by_kernel
    }

    /// Losses at a place that only the kernel's reasons tell.
    pub fn reasoned(self, place: Place) -> impl Iterator<Item = &'a Reasoned> {
        let all = self.input.reasoned.iter().flatten();
        all.filter(move |it| it.place == place)
    }

    /// Packets of other protocols that entered IP of the family in use: not the workload's.
    pub fn foreign_at_ip(self, side: PathSide) -> i64 {
        self.foreign_delivered(side)
            + self.ip(side, "InUnknownProtos")
            + self.unheard_multicast(side)
    }

    /// Of these, what IP delivered.
    pub fn foreign_delivered(self, side: PathSide) -> i64 {
        let icmp = if self.input.path.v6 { "Icmp6" } else { "Icmp" };
        self.get(&name::snmp(side, icmp, "InMsgs")) + self.get(&name::snmp(side, "Tcp", "InSegs"))
    }

    /// IPv6 multicasts that entered IP and that nobody on this side listens to: listener reports of the other end,
    /// most of all. The workload is unicast. At least this many: what ICMPv6 took may have been multicast, too.
    ///
    /// **Source** net/ipv6/ip6_input.c `ip6_mc_input`: counts `InMcastPkts`, and drops without a counter.
    pub fn unheard_multicast(self, side: PathSide) -> i64 {
        if !self.input.path.v6 {
            return 0;
        }
        let icmp = self.get(&name::snmp(side, "Icmp6", "InMsgs"));
        (self.ip(side, "InMcastPkts") - icmp).max(0)
    }

    /// Packets of the other family, which the device counts and IP of this family does not.
    pub fn foreign_family(self, side: PathSide) -> i64 {
        let other = if self.input.path.v6 { "Ip" } else { "Ip6" };
        self.get(&name::snmp(side, other, "InReceives"))
    }

    /// Packets that `side` sent of its own accord: ICMP, neighbour discovery, TCP.
    pub fn foreign_out(self, side: PathSide) -> i64 {
        ["Icmp", "Icmp6"].map(|g| self.get(&name::snmp(side, g, "OutMsgs"))).iter().sum::<i64>()
            + self.get(&name::snmp(side, "Tcp", "OutSegs"))
    }

    /// Packets of other protocols than UDP that the sender's host sent, forwarded ones among them.
    pub fn beyond_udp_out(self) -> i64 {
        let of = |group: &str, counter: &str| self.get(&name::snmp(PathSide::Tx, group, counter));
        self.foreign_out(PathSide::Tx)
            + of("Tcp", "RetransSegs")
            + of("Ip", "ForwDatagrams")
            + of("Ip6", "OutForwDatagrams")
    }

    /// The drops of the sender's root queueing discipline, and the counter's name.
    ///
    /// A parent counts its children's drops too (`qdisc_qstats_drop` after a failed `qdisc_enqueue`). Where the
    /// root is not named, it is the one with the largest count; the others are cross-checks.
    pub fn qdisc(self) -> Option<(&'a str, i64)> {
        match &self.input.path.tx_qdisc {
            Some(root) => Some((root, of_32_bits(self.get(root)))),
            None => self.qdiscs().max_by_key(|(_, drops)| *drops),
        }
    }

    pub fn qdiscs(self) -> impl Iterator<Item = (&'a str, i64)> {
        let device = self.input.path.tx_device.as_deref();
        let own = self.moved.like("tx/qdisc.", "drops").filter(move |(name, _)| {
            device.is_some_and(|device| {
                name.strip_prefix("tx/qdisc.")
                    .and_then(|rest| rest.strip_prefix(device))
                    .is_some_and(|rest| rest.starts_with('.'))
            })
        });
        own.map(|(name, drops)| (name, of_32_bits(drops)))
    }
}

/// The change of a counter of 32 bits, which may have wrapped on a host that has been up for long.
pub(super) fn of_32_bits(change: i64) -> i64 {
    if change < -(1 << 31) { change + (1 << 32) } else { change }
}
