//! Devices without hardware: bridges, bonds, VLANs, tunnels.

use rxpath_core::Fact;
use rxpath_host::read::nic::{LinkFacts, Nic};

use super::files::Tree;
use super::sound::FEATURES;

/// What every device has.
pub fn attributes(tree: &mut Tree, dir: &str, is_old: bool) {
    if !is_old {
        tree.put(&format!("{dir}/napi_defer_hard_irqs"), "0");
        tree.put(&format!("{dir}/threaded"), "0");
    }
    for (file, text) in [
        ("mtu", "1500"),
        ("type", "1"),
        ("gro_flush_timeout", "0"),
        ("tx_queue_len", "1000"),
        ("uevent", "INTERFACE=it"),
    ] {
        tree.put(&format!("{dir}/{file}"), text);
    }
}

pub fn belongs(tree: &mut Tree, port: &str, master: &str) {
    tree.link(&format!("/sys/class/net/{port}/master"), &format!("../{master}"));
    lies_on(tree, master, port);
}

fn lies_on(tree: &mut Tree, upper: &str, lower: &str) {
    tree.link(&format!("/sys/class/net/{lower}/upper_{upper}"), &format!("../{upper}"));
    tree.link(&format!("/sys/class/net/{upper}/lower_{lower}"), &format!("../{lower}"));
}

/// A device without hardware.
pub struct Virtual {
    pub name: String,
    /// As rtnetlink calls it: `bridge`, `bond`, `vlan`, `wireguard`.
    pub kind: &'static str,
    /// The device that it lies on.
    pub over: Option<String>,
    master: Option<&'static str>,
    rps: String,
    files: Vec<(&'static str, String)>,
}

impl Virtual {
    pub fn new(name: &str, kind: &'static str) -> Self {
        let files = match kind {
            "bridge" => vec![("bridge/vlan_filtering", "0".into())],
            _ => Vec::new(),
        };
        let rps = "0".into();
        Self { name: name.into(), kind, over: None, master: None, rps, files }
    }

    pub fn bond(name: &str, mode: &str, policy: &str) -> Self {
        let mut bond = Self::new(name, "bond");
        bond.files.push(("bonding/mode", mode.into()));
        bond.files.push(("bonding/xmit_hash_policy", policy.into()));
        bond
    }

    pub fn vlan(name: &str, over: &str) -> Self {
        Self { over: Some(over.into()), ..Self::new(name, "vlan") }
    }

    pub fn below(mut self, master: &'static str) -> Self {
        self.master = Some(master);
        self
    }

    pub fn rps(mut self, mask: &str) -> Self {
        self.rps = mask.into();
        self
    }

    pub fn write(&self, tree: &mut Tree, ifindex: u32, below: u32) {
        let dir = format!("/sys/class/net/{}", self.name);
        attributes(tree, &dir, false);
        let state = if self.kind == "wireguard" { "unknown" } else { "up" };
        let iflink = if self.over.is_some() { below } else { ifindex };
        for (file, text) in [
            ("flags", "0x1003"),
            ("operstate", state),
            ("ifindex", &ifindex.to_string()),
            ("iflink", &iflink.to_string()),
            ("uevent", &format!("DEVTYPE={}\nINTERFACE={}", self.kind, self.name)),
            ("queues/rx-0/rps_cpus", &self.rps),
            ("queues/rx-0/rps_flow_cnt", "0"),
            ("statistics/rx_packets", "4000000"),
            ("statistics/rx_dropped", "0"),
        ] {
            tree.put(&format!("{dir}/{file}"), text);
        }
        for (file, text) in &self.files {
            tree.put(&format!("{dir}/{file}"), text);
        }
        if let Some(master) = self.master {
            belongs(tree, &self.name, master);
        }
        if let Some(over) = &self.over {
            lies_on(tree, &self.name, over);
        }
        let link = LinkFacts {
            ifindex,
            is_up: true,
            kind: Some(self.kind.into()),
            mtu_bytes: 1500,
            tx_queues_count: 1,
            rx_queues_count: 1,
            qdisc: Some("noqueue".into()),
            carrier: Some(true),
            ..LinkFacts::default()
        };
        let features = FEATURES.iter().map(|(name, it)| ((*name).to_owned(), *it));
        let nic =
            Nic { link: Fact::ok(link), features: Fact::ok(features.collect()), ..Nic::default() };
        tree.answers("", &self.name, &nic);
    }
}
