//! Measured trials as data: counters that moved, and what is known to have been lost where.

use std::collections::BTreeMap;

use rxpath_record::counters::Moved;
use rxpath_record::ledger::{LedgerInput, Link, PathFacts, Place, ReceiverSaid, SenderSaid};
use serde::Deserialize;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Cases {
    #[serde(rename = "about")]
    _about: String,
    device: String,
    #[serde(rename = "cases")]
    list: Vec<Case>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(clippy::struct_excessive_bools)] // independent facts of one trial
pub struct Case {
    pub name: String,
    #[serde(rename = "what")]
    _what: String,
    sent: u64,
    delivered: u64,
    #[serde(default)]
    send_errors: BTreeMap<String, u64>,
    socket_drops: Option<u64>,
    payload_bytes: u32,
    #[serde(default = "one")]
    segments: u32,
    #[serde(default = "yes")]
    full_batches: bool,
    #[serde(default)]
    gro: bool,
    #[serde(default)]
    raw: bool,
    #[serde(default)]
    v6: bool,
    #[serde(default)]
    may_refuse: bool,
    #[serde(default)]
    foreign_sender: bool,
    #[serde(default)]
    foreign_receiver: bool,
    #[serde(default)]
    in_flight: u64,
    qdisc: Option<String>,
    #[serde(default)]
    input_rules: Vec<String>,
    #[serde(default)]
    ingress_rules: Vec<String>,
    #[serde(default)]
    egress_rules: Vec<String>,
    moved: BTreeMap<String, i64>,
    /// Datagrams by place.
    pub lost: BTreeMap<Place, u64>,
    #[serde(default)]
    pub unaccounted: i64,
    #[serde(skip)]
    device: String,
}

fn yes() -> bool {
    true
}

fn one() -> u32 {
    1
}

impl Case {
    pub fn moved(&self) -> Moved {
        Moved { values: self.moved.clone(), gaps: BTreeMap::new() }
    }

    /// What is known beside the counters; with the rules of the namespaces when `rules_known`.
    pub fn input(&self, rules_known: bool) -> LedgerInput {
        let rules = |names: &Vec<String>| rules_known.then(|| names.clone());
        LedgerInput {
            sender: SenderSaid {
                offered_packets: self.sent + self.send_errors.values().sum::<u64>(),
                sent_packets: self.sent,
                send_errors: self.send_errors.clone(),
                segments_per_send: self.segments,
                short_batches: !self.full_batches,
                raw: self.raw,
                by_kernel: self.foreign_sender,
                ..SenderSaid::default()
            },
            receiver: ReceiverSaid {
                delivered_packets: self.delivered,
                in_flight_packets: self.in_flight,
                socket_drops: self.socket_drops.map(|drops| vec![drops]),
                gro: self.gro,
                may_refuse: self.may_refuse,
                payload_bytes: Some(self.payload_bytes),
                sequence_lost_packets: None,
                by_kernel: self.foreign_receiver,
                ..ReceiverSaid::default()
            },
            path: PathFacts {
                tx_device: Some(self.device.clone()),
                tx_qdisc: self.qdisc.clone(),
                rx_device: Some(self.device.clone()),
                v6: self.v6,
                link: Link::Veth,
                input_rules: rules(&self.input_rules),
                ingress_rules: rules(&self.ingress_rules),
                egress_rules: Some(self.egress_rules.clone()),
                output_rules: Some(Vec::new()),
                ..PathFacts::default()
            },
            reasoned: None,
        }
    }
}

/// Every measured case.
pub fn cases() -> Vec<Case> {
    let files = [
        include_str!("../../../../testdata/ledger/loss-places.json"),
        include_str!("../../../../testdata/ledger/more-places.json"),
    ];
    let read = |text: &str| {
        let read: Cases = serde_json::from_str(text).unwrap();
        let device = read.device;
        read.list.into_iter().map(move |case| Case { device: device.clone(), ..case })
    };
    files.into_iter().flat_map(read).collect()
}
