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
    let fields = fields(flow, nic);
    let (hash, queue) = match (queues.rows.as_slice(), Hasher::of(flow, nic)) {
        ([only], hasher) => {
            let hash = hasher.and_then(|hasher| hasher.hash(flow).map_err(Fact::absent));
            (hash, Fact::ok(only.queue))
        }
        (_, Ok(hasher)) => match hasher.hash(flow) {
            Ok(hash) => (Ok(hash), Fact::ok(hasher.queue(hash))),
            Err(why) => (Err(Fact::absent(why.clone())), Fact::absent(why)),
        },
        (_, Err(gap)) => (Err(gap.clone()), gap.map(|_| 0)),
    };
    let row = queue.value().and_then(|queue| queues.row(*queue));
    Landing {
        irq_cpus: irq_cpus(&queue, row),
        rps_cpu: rps(flow, nic, hash.as_ref().ok().copied(), row),
        reuseport_group: Fact::absent(NOT_LOOKED),
        reuseport_socket: Fact::absent(NOT_LOOKED),
        notes: notes(nic),
        hash: match hash {
            Ok(hash) => Fact::ok(format!("{hash:#010x}")),
            Err(gap) => gap.map(|_| String::new()),
        },
        device: queues.device.clone(),
        hashed_fields: fields,
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
    fn of(flow: Flow, nic: &'a Nic) -> Result<Self, Fact<u32>> {
        let rss = match &nic.rss {
            Fact::Ok { value } => value,
            gap => return Err(gap.clone().map(|_| 0)),
        };
        if let Some(function) = rss.function.as_deref().filter(|name| *name != "toeplitz") {
            let why = format!("the device hashes with {function}, whose details are the driver's");
            return Err(Fact::absent(why));
        }
        if rss.table.is_empty() {
            return Err(Fact::absent("the driver shows no indirection table"));
        }
        let Some(key) = rss.key_bytes() else {
            return Err(match &rss.key {
                Fact::Ok { .. } => Fact::absent("the recorded hash key is not hexadecimal"),
                gap => gap.clone().map(|_| 0),
            });
        };
        match fields(flow, nic) {
            Fact::Ok { value } => Ok(Self {
                key,
                table: &rss.table,
                fields: value,
                transformation: rss.transformation.as_deref(),
            }),
            gap => Err(gap.map(|_| 0)),
        }
    }

    /// The hash of a flow, or why it can't be computed.
    fn hash(&self, flow: Flow) -> Result<u32, String> {
        if self.fields.0 & HashFields::DISCARD != 0 {
            return Err("the device is set to drop such flows (flag r)".into());
        }
        let known = HashFields::ADDRESSES | HashFields::PORTS;
        let parts = [HashFields::ADDRESSES, HashFields::PORTS];
        let whole = parts
            .iter()
            .all(|part| matches!(self.fields.0 & part, 0) || self.fields.0 & part == *part);
        if self.fields.0 & !known != 0 || !whole || !self.fields.has_addresses() {
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
    match (queue, row) {
        (_, Some(row)) => row.irq.as_ref().and_then(|irq| irq.effective_cpus.clone()),
        (Fact::Ok { value }, None) => {
            Fact::absent(format!("the table leads to queue {value}, which is not there"))
        }
        (gap, None) => gap.clone().map(|_| CpuList::default()),
    }
}

/// **Source** net/core/dev.c `get_rps_cpu`: the CPU at `reciprocal_scale(hash, CPUs)` of the mask; `skb_get_hash`
/// takes the NIC's hash when the driver handed it on as one of the ports.
fn rps(flow: Flow, nic: &Nic, hash: Option<u32>, row: Option<&Row>) -> Fact<u32> {
    let Some(row) = row else { return Fact::absent("the queue is not known") };
    let cpus = match &row.rps_cpus {
        Fact::Ok { value } if value.is_empty() => return Fact::absent("RPS is off on this queue"),
        Fact::Ok { value } => value.as_slice(),
        gap => return gap.clone().map(|_| 0),
    };
    if let [only] = cpus {
        return Fact::ok(*only);
    }
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
