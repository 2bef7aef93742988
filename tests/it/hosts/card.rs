//! Network devices of a made-up host: cards with their queues, interrupts and answers, and devices without hardware.

use std::collections::BTreeMap;

use rxpath_core::{CpuList, Fact};
use rxpath_host::read::ioctl::{DriverInfo, FlowKind, FlowRules, HashFields};
use rxpath_host::read::netlink::ethtool::{
    Amount, Channels, Coalesce, Duplex, Eee, LinkModes, Pause, Rings, Rss,
};
use rxpath_host::read::netlink::netdev::{Napi, Queue, QueueKind};
use rxpath_host::read::nic::{LinkFacts, Nic};

use super::files::Tree;
use super::sound::{FEATURES, OFF, ON};
use super::tree::{Host, Readings};
use super::virtuals::{attributes, belongs};

/// How a driver counts its queues.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Each queue receives and sends.
    Combined,
    /// Queues that receive, and others that send.
    Split,
    /// The driver does not say.
    Untold,
}

/// A network card.
pub struct Card {
    pub name: String,
    pub driver: &'static str,
    pub bus: String,
    /// -1 where the platform does not tell it.
    pub node: i32,
    pub kind: Kind,
    pub queues: u32,
    pub queues_max: u32,
    /// CPUs of the queues' interrupts, in turn.
    pub cpus: Vec<u32>,
    /// CPUs that the driver suggests, in turn.
    pub hints: Vec<u32>,
    /// Whether the driver links interrupts to NAPI instances (6.8 and later).
    pub links_napis: bool,
    /// Each queue's RPS mask.
    pub rps: String,
    pub is_up: bool,
    pub mbps: i64,
    /// The device that it belongs to.
    pub master: Option<&'static str>,
    pub statistics: BTreeMap<&'static str, Readings>,
    pub driver_stats: Vec<(&'static str, Readings)>,
    /// Pause frames sent.
    pub pauses: Readings,
    /// What the driver answers; what depends on the queues is filled in where it is not said.
    pub answers: Nic,
    files: BTreeMap<String, String>,
}

/// Drivers whose device sits on PCI Express in a server.
const ON_PCIE: [&str; 7] = ["mlx5_core", "mlx4_en", "ixgbe", "i40e", "ice", "igb", "bnxt_en"];

impl Card {
    pub fn new(name: &str, driver: &'static str, mbps: i64) -> Self {
        let statistics = ["rx_packets", "tx_packets", "rx_bytes"];
        let losses = ["rx_dropped", "rx_errors", "rx_missed_errors", "rx_fifo_errors"];
        let counts = statistics.map(|name| (name, (4_000_000, 4_100_000)));
        let counts = counts.into_iter().chain(losses.map(|name| (name, (0, 0))));
        let card = Self {
            name: name.into(),
            driver,
            bus: "0000:3b:00.0".into(),
            node: -1,
            kind: Kind::Combined,
            queues: 8,
            queues_max: 8,
            cpus: (0..8).collect(),
            hints: Vec::new(),
            links_napis: false,
            rps: "0".into(),
            is_up: true,
            mbps,
            master: None,
            statistics: counts.collect(),
            driver_stats: Vec::new(),
            pauses: (0, 0),
            answers: Nic::default(),
            files: BTreeMap::new(),
        };
        let card = card.answers();
        if ON_PCIE.contains(&driver) { card.pcie("16.0", "16", "16") } else { card }
    }

    /// What does not depend on the queues.
    fn answers(mut self) -> Self {
        let speed = u32::try_from(self.mbps).ok();
        self.answers = Nic {
            driver: Fact::ok(DriverInfo {
                driver: self.driver.into(),
                version: "made up".into(),
                bus: self.bus.clone(),
                ..DriverInfo::default()
            }),
            features: Fact::ok(FEATURES.iter().map(|(name, it)| ((*name).into(), *it)).collect()),
            rings: Fact::ok(Rings {
                rx: Amount { now: Some(2048), max: Some(8192) },
                tx: Amount { now: Some(2048), max: Some(8192) },
                ..Rings::default()
            }),
            coalesce: Fact::ok(Coalesce {
                rx_usecs: Some(8),
                tx_usecs: Some(8),
                adaptive_rx: Some(false),
                adaptive_tx: Some(false),
                ..Coalesce::default()
            }),
            link_modes: Fact::ok(LinkModes {
                autoneg: Some(true),
                speed_mbps: speed,
                duplex: Some(Duplex::Full),
                supported: speed.map(|mbps| format!("{mbps}baseT/Full")).into_iter().collect(),
                ..LinkModes::default()
            }),
            eee: Fact::ok(Eee { enabled: Some(false), active: Some(false), ..Eee::default() }),
            rss_contexts: Fact::ok(Vec::new()),
            ..Nic::default()
        };
        self
    }

    /// Changes what is not worth a method of its own.
    pub fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    pub fn file(mut self, attribute: &str, text: &str) -> Self {
        self.files.insert(attribute.into(), text.into());
        self
    }

    pub fn on_node(mut self, node: i32) -> Self {
        self.node = node;
        self
    }

    /// So many queues in use of so many, with interrupts on these CPUs in turn.
    pub fn queues(mut self, now: u32, max: u32, cpus: impl IntoIterator<Item = u32>) -> Self {
        (self.queues, self.queues_max) = (now, max);
        self.cpus = cpus.into_iter().collect();
        self
    }

    pub fn feature(mut self, name: &str, is_on: bool) -> Self {
        if let Fact::Ok { value } = &mut self.answers.features {
            value.insert(name.into(), if is_on { ON } else { OFF });
        }
        self
    }

    pub fn coalesce(mut self, change: impl FnOnce(&mut Coalesce)) -> Self {
        if let Fact::Ok { value } = &mut self.answers.coalesce {
            change(value);
        }
        self
    }

    pub fn ring(mut self, now: u32, max: u32) -> Self {
        if let Fact::Ok { value } = &mut self.answers.rings {
            value.rx = Amount { now: Some(now), max: Some(max) };
        }
        self
    }

    /// The modes of the link: what it could be, in Mb/s.
    pub fn could_be(mut self, mbps: u32) -> Self {
        if let Fact::Ok { value } = &mut self.answers.link_modes {
            value.supported.push(format!("{mbps}baseT/Full"));
        }
        self
    }

    pub fn pcie(self, gigatransfers: &str, width: &str, width_max: &str) -> Self {
        self.file("device/current_link_speed", &format!("{gigatransfers} GT/s PCIe"))
            .file("device/max_link_speed", "16.0 GT/s PCIe")
            .file("device/current_link_width", width)
            .file("device/max_link_width", width_max)
            .file("device/link/l1_aspm", "0")
    }

    pub fn counts(mut self, name: &'static str, readings: Readings) -> Self {
        self.statistics.insert(name, readings);
        self
    }

    pub fn driver_counts(mut self, name: &'static str, readings: Readings) -> Self {
        self.driver_stats.push((name, readings));
        self
    }

    pub fn pause(mut self, rx: bool, tx: bool, sent: Readings) -> Self {
        self.pauses = sent;
        self.answers.pause = Fact::ok(Pause {
            autoneg: Some(false),
            rx: Some(rx),
            tx: Some(tx),
            tx_pause_packets: Some(sent.0),
            rx_pause_packets: Some(0),
        });
        self
    }

    pub fn below(mut self, master: &'static str) -> Self {
        self.master = Some(master);
        self
    }

    pub fn cpu_of(&self, queue: u32) -> u32 {
        self.cpus.get(queue as usize % self.cpus.len().max(1)).copied().unwrap_or(0)
    }

    pub fn hint_of(&self, queue: u32) -> Option<u32> {
        self.hints.get(queue as usize % self.hints.len().max(1)).copied()
    }

    /// The interrupt controller's word for its lines.
    pub fn chip(&self) -> String {
        match self.driver {
            "macb" => "GICv3".into(),
            "r8169" => "PCI-MSI".into(),
            _ => format!("PCI-MSIX-{}", self.bus),
        }
    }

    /// Its interrupts by the names that its driver gives them, and the receive queue of each.
    pub fn vectors(&self) -> Vec<(String, Option<u32>)> {
        let Self { name, bus, queues, .. } = self;
        let each = |form: &dyn Fn(u32) -> String| -> Vec<(String, Option<u32>)> {
            (0..*queues).map(|queue| (form(queue), Some(queue))).collect()
        };
        let other = |name: String| vec![(name, None)];
        match self.driver {
            "mlx5_core" => [
                other(format!("mlx5_async0@pci:{bus}")),
                each(&|queue| format!("mlx5_comp{queue}@pci:{bus}")),
            ]
            .concat(),
            "mlx4_en" => each(&|queue| format!("mlx4-{}@{bus}", queue + 1)),
            "mana" => [
                other(format!("mana_hwc@pci:{bus}")),
                each(&|queue| format!("mana_q{queue}@pci:{bus}")),
            ]
            .concat(),
            "i40e" => each(&|queue| format!("i40e-{name}-TxRx-{queue}")),
            "ice" => each(&|queue| format!("ice-{name}-TxRx-{queue}")),
            "ena" => each(&|queue| format!("{name}-Tx-Rx-{queue}")),
            "gve" => (0..2 * queues)
                .map(|block| (format!("gve-ntfy-blk{block}@pci:{bus}"), block.checked_sub(*queues)))
                .collect(),
            "virtio_net" => (0..2 * queues)
                .map(|at| match (at / 2, at % 2) {
                    (queue, 0) => (format!("virtio0-input.{queue}"), Some(queue)),
                    (queue, _) => (format!("virtio0-output.{queue}"), None),
                })
                .collect(),
            "hv_netvsc" => Vec::new(),
            "r8169" | "macb" => vec![(name.clone(), Some(0))],
            _ => [each(&|queue| format!("{name}-TxRx-{queue}")), other(name.clone())].concat(),
        }
    }

    pub fn write(&self, host: &Host, tree: &mut Tree, at: usize, ifindex: u32) {
        let dir = format!("/sys/class/net/{}", self.name);
        let (flags, state) = if self.is_up { ("0x1003", "up") } else { ("0x1002", "down") };
        for (file, text) in [
            ("flags", flags),
            ("operstate", state),
            ("ifindex", &ifindex.to_string()),
            ("iflink", &ifindex.to_string()),
            ("speed", &self.mbps.to_string()),
            ("device/numa_node", &self.node.to_string()),
        ] {
            tree.put(&format!("{dir}/{file}"), text);
        }
        attributes(tree, &dir, host.is_old());
        tree.link(&format!("{dir}/device/driver"), &format!("../../drivers/{}", self.driver));
        for vector in 0..self.vectors().len() {
            let irq = Host::first_irq(at) + vector as u32;
            tree.put(&format!("{dir}/device/msi_irqs/{irq}"), "msix");
        }
        for queue in 0..self.queues {
            tree.put(&format!("{dir}/queues/rx-{queue}/rps_cpus"), &self.rps);
            tree.put(&format!("{dir}/queues/rx-{queue}/rps_flow_cnt"), "0");
            let xps = CpuList(vec![self.cpu_of(queue)]).to_mask();
            tree.put(&format!("{dir}/queues/tx-{queue}/xps_cpus"), &xps);
        }
        for (name, (first, later)) in &self.statistics {
            tree.put(&format!("{dir}/statistics/{name}"), &first.to_string());
            tree.put(&format!("/later{dir}/statistics/{name}"), &later.to_string());
        }
        if let Some(master) = self.master {
            belongs(tree, &self.name, master);
        }
        for (file, text) in &self.files {
            tree.put(&format!("{dir}/{file}"), text);
        }
        self.write_answers(host, tree, (at, ifindex));
    }

    fn write_answers(&self, host: &Host, tree: &mut Tree, (at, ifindex): (usize, u32)) {
        let stats = |of: fn(&Readings) -> u64| {
            let all = self.driver_stats.iter().map(|(name, both)| ((*name).to_owned(), of(both)));
            Fact::ok(all.collect::<Vec<_>>())
        };
        let mut first = Nic { driver_stats: stats(|both| both.0), ..self.answers.clone() };
        let link = LinkFacts {
            ifindex,
            is_up: self.is_up,
            mtu_bytes: 1500,
            rx_queues_count: self.queues,
            tx_queues_count: self.queues,
            qdisc: Some("mq".into()),
            carrier: Some(self.is_up),
            gro_max_bytes: Some(65_536),
            gso_max_bytes: Some(65_536),
            ..LinkFacts::default()
        };
        unless_said(&mut first.link, || link);
        if self.kind != Kind::Untold {
            self.tell_queues(host, at, &mut first);
        }
        tree.answers("", &self.name, &first);
        let mut later = Nic { driver_stats: stats(|both| both.1), ..Nic::default() };
        if let Some(pause) = self.answers.pause.value() {
            let sent = Pause { tx_pause_packets: Some(self.pauses.1), ..*pause };
            later.pause = Fact::ok(sent);
        }
        tree.answers("/later", &self.name, &later);
    }

    /// What follows from the number of queues.
    fn tell_queues(&self, host: &Host, at: usize, nic: &mut Nic) {
        let amount = Amount { now: Some(self.queues), max: Some(self.queues_max) };
        let channels = match self.kind {
            Kind::Combined => Channels { combined: amount, ..Channels::default() },
            _ => Channels { rx: amount, tx: amount, ..Channels::default() },
        };
        unless_said(&mut nic.channels, || channels);
        let ports = HashFields(HashFields::ADDRESSES | HashFields::PORTS);
        for kind in FlowKind::ALL {
            unless_said(nic.flow_hash.entry(kind).or_default(), || ports);
        }
        unless_said(&mut nic.rss, || Rss {
            function: Some("toeplitz".into()),
            table: (0..128.max(self.queues)).map(|entry| entry % self.queues).collect(),
            key: Fact::ok("6d5a56da255b0ec24167253d43a38fb0".into()),
            transformation: None,
        });
        let rings_count = Some(u64::from(self.queues));
        unless_said(&mut nic.flow_rules, || FlowRules { rings_count, ..FlowRules::default() });
        let napi_id = |queue: u32| 8193 + 1000 * at as u32 + queue;
        let queues = (0..self.queues).map(|index| Queue {
            kind: QueueKind::Rx,
            index,
            napi_id: Some(napi_id(index)),
            has_xsk: false,
        });
        if host.kernel.starts_with("6.") {
            unless_said(&mut nic.queues, || queues.collect());
            let napis =
                self.vectors().into_iter().enumerate().filter_map(|(vector, (_, queue))| {
                    let irq = self.links_napis.then(|| Host::first_irq(at) + vector as u32);
                    Some(Napi { id: napi_id(queue?), irq, ..Napi::default() })
                });
            unless_said(&mut nic.napis, || napis.collect());
        }
    }
}

fn unless_said<T>(fact: &mut Fact<T>, make: impl FnOnce() -> T) {
    if fact.value().is_none() {
        *fact = Fact::ok(make());
    }
}
