//! From a flow to the queue and CPU that get its packets.
//!
//! The question it answers: *where do the packets of this flow land, and which other flows would land elsewhere?*
//! The NIC's choice can be computed from its key, its hashed fields and its table (RSS, Toeplitz). The kernel's own hashes
//! (software RPS, SO_REUSEPORT) have secret keys that are made again at each boot, and a program may choose: of them it
//! says "not knowable from here", with the reason, and never guesses.

pub mod cpu;
mod flow;
pub mod group;
mod suggest;

pub use flow::{Flow, FlowProtocol};
pub use suggest::{SteeringSuggestion, spread};

use rxpath_core::toeplitz::{hash, reciprocal_scale};
use rxpath_core::{CpuList, Fact};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::read::ioctl::HashFields;
use crate::read::nic::Nic;
use crate::read::queue_map::{DeviceQueues, Row};
use group::Group;

/// Where a flow lands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Landing {
    /// The flow.
    pub flow: Flow,
    /// The device.
    pub device: String,
    /// Fields that the device hashes of such a flow: `sdfn` with ports, `sd` without.
    pub hashed_fields: Fact<HashFields>,
    /// The hash, in hexadecimal.
    pub hash: Fact<String>,
    /// Its receive queue.
    pub queue: Fact<u32>,
    /// CPUs that the queue's interrupt goes to: they run its softirq.
    pub irq_cpus: Fact<CpuList>,
    /// The CPU that RPS passes its packets on to.
    pub rps_cpu: Fact<u32>,
    /// The SO_REUSEPORT group that is bound where the flow goes.
    pub reuseport_group: Fact<Group>,
    /// Index in that group of the socket that gets the flow.
    pub reuseport_socket: Fact<u32>,
    /// What overrides or blurs the answer.
    pub notes: Vec<String>,
}

/// How a device makes the hash of a flow.
#[derive(Clone, Debug)]
struct Hasher<'a> {
    key: Vec<u8>,
    table: &'a [u32],
    fields: HashFields,
    transformation: Option<&'a str>,
}

/// Says where `flow` lands on the device.
pub fn land(flow: Flow, nic: &Nic, queues: &DeviceQueues) -> Landing {
    let hasher = Hasher::of(flow, nic);
    let of_flow = |h: &Hasher<'_>| h.hash(flow).map_or_else(Fact::absent, Fact::ok);
    let hash = hasher.as_ref().and_then(of_flow);
    let queue = match queues.rows.as_slice() {
        [only] => Fact::ok(only.queue),
        _ => hasher.and_then(|hasher| hash.as_ref().map(|hash| hasher.queue(*hash))),
    };
    let row = queue.value().and_then(|queue| queues.row(*queue));
    Landing {
        irq_cpus: irq_cpus(&queue, row),
        rps_cpu: rps(flow, nic, hash.value().copied(), row),
        reuseport_group: Fact::absent(NOT_LOOKED),
        reuseport_socket: Fact::absent(NOT_LOOKED),
        notes: notes(nic),
        hash: hash.map(|hash| format!("{hash:#010x}")),
        device: queues.device.clone(),
        hashed_fields: fields(flow, nic),
        flow,
        queue,
    }
}

/// Sockets are the running host's; a captured tree has none.
const NOT_LOOKED: &str = "the sockets of the host were not looked at";

/// net/core/flow_dissector.c `hashrnd`: siphash, secret made at first use.
const SECRET: &str = "not knowable from here: RPS uses a flow hash with a secret key that is made again at each boot \
    (the NIC's own hash is not handed on: rx-hashing is off or the ports are not hashed)";

fn fields(flow: Flow, nic: &Nic) -> Fact<HashFields> {
    nic.flow_hash.get(&flow.kind()).cloned().unwrap_or_default()
}

impl<'a> Hasher<'a> {
    fn of(flow: Flow, nic: &'a Nic) -> Fact<Self> {
        nic.rss.as_ref().and_then(|rss| {
            if let Some(function) = rss.function.as_deref().filter(|name| *name != "toeplitz") {
                let why =
                    format!("the device hashes with {function}, whose details are the driver's");
                return Fact::absent(why);
            }
            if rss.table.is_empty() {
                return Fact::absent("the driver shows no indirection table");
            }
            let Some(key) = rss.key_bytes() else {
                let why = "the recorded hash key is not hexadecimal";
                return rss.key.as_ref().and_then(|_| Fact::absent(why));
            };
            let (table, transformation) = (rss.table.as_slice(), rss.transformation.as_deref());
            fields(flow, nic).map(|fields| Self { key, table, fields, transformation })
        })
    }

    /// The hash of a flow, or why it can't be computed.
    fn hash(&self, flow: Flow) -> Result<u32, String> {
        if self.fields.0 & HashFields::DISCARD != 0 {
            return Err("the device is set to drop such flows (flag r)".into());
        }
        let known = [HashFields::ADDRESSES, HashFields::ADDRESSES | HashFields::PORTS];
        if !known.contains(&self.fields.0) {
            return Err(format!(
                "how the device hashes the fields `{}` is the driver's",
                self.fields
            ));
        }
        let data = flow.hashed_bytes(self.fields.has_ports(), self.transformation)?;
        hash(&self.key, &data).ok_or_else(|| "the hash key is too short for this flow".into())
    }

    fn queue(&self, hash: u32) -> u32 {
        self.table[hash as usize % self.table.len()]
    }
}

fn irq_cpus(queue: &Fact<u32>, row: Option<&Row>) -> Fact<CpuList> {
    if let Some(row) = row {
        return row.irq.as_ref().and_then(|irq| irq.effective_cpus.clone());
    }
    queue.as_ref().and_then(|queue| {
        Fact::absent(format!("the table leads to queue {queue}, which is not there"))
    })
}

/// **Source** net/core/dev.c `get_rps_cpu`: the CPU at `reciprocal_scale(hash, CPUs)` of the mask; `skb_get_hash`
/// takes the NIC's hash when the driver handed it on as one of the ports.
fn rps(flow: Flow, nic: &Nic, hash: Option<u32>, row: Option<&Row>) -> Fact<u32> {
    let Some(row) = row else { return Fact::absent("the queue is not known") };
    let cpus = match row.rps_cpus.as_ref().map(CpuList::as_slice) {
        Fact::Ok { value: [] } => return Fact::absent("RPS is off on this queue"),
        Fact::Ok { value: [only] } => return Fact::ok(*only),
        Fact::Ok { value } => value,
        gap => return gap.map(|_| 0),
    };
    if row.rps_flow_count.value().is_some_and(|count| *count > 0) {
        return Fact::absent("RFS is on: the CPU follows the application that reads the flow");
    }
    let hands_on = nic
        .features
        .value()
        .and_then(|features| features.get("rx-hashing"))
        .is_some_and(|feature| feature.active);
    let with_ports = fields(flow, nic).value().is_some_and(|fields| fields.has_ports());
    match hash.filter(|_| hands_on && with_ports) {
        Some(hash) => Fact::ok(cpus[reciprocal_scale(hash, cpus.len() as u64) as usize]),
        None => Fact::absent(SECRET),
    }
}

fn notes(nic: &Nic) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some(rules) = nic.flow_rules.value().filter(|rules| rules.rules_count > 0) {
        let count = rules.rules_count;
        notes.push(format!("{count} flow rule(s) of the device choose the queue before RSS does"));
    }
    if let Some(contexts) = nic.rss_contexts.value().filter(|contexts| !contexts.is_empty()) {
        let count = contexts.len();
        notes.push(format!("{count} more RSS context(s) have tables of their own"));
    }
    let xdp = nic.link.value().is_some_and(|link| !link.xdp_programs.is_empty());
    if xdp {
        notes.push("an XDP program may send packets elsewhere".into());
    }
    notes
}

#[cfg(test)]
mod tests;
