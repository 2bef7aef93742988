//! `rxpath check --flow`: the queue, CPU and socket on which a flow lands.

use rxpath_bpf::reuseport;
use rxpath_core::Fact;
use rxpath_host::read::queue_map::HostTables;
use rxpath_host::read::steering::group::{Choice, choose};
use rxpath_host::read::steering::{Flow, Landing, SteeringSuggestion, land, spread};
use rxpath_host::{HostError, netlink::Netlink};
use serde::Deserialize;

use super::queues::{QueueCheckOptions, names, nics, read};
use crate::cmd::prelude::*;
use crate::output::queues as print;

/// The result of `check --flow`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Landings {
    /// One entry for each named device.
    pub landings: Vec<Landing>,
    /// The flows that would lead to each queue, by device, as in `landings`.
    pub spreads: Vec<Fact<SteeringSuggestion>>,
}

/// Reports where the flow lands on each named device.
pub fn run(ask: &QueueCheckOptions<'_>, text: &str) -> Outcome {
    let flow: Flow = text.parse().map_err(|error: rxpath_host::parse::ParseError| {
        Failure::usage(format!("--flow: {}", error.why))
    })?;
    if ask.devices.is_empty() {
        let all = names(ask)?.join(", ");
        return Err(Failure::usage("--flow needs --dev IF: the device on which the flow arrives")
            .hint(format!("devices here: {all}")));
    }
    let nics = nics(ask.root, &names(ask)?)?;
    let (devices, warnings) = read(ask, &nics, &HostTables::read(ask.root));
    let found = devices.iter().filter_map(|queues| Some((nics.get(&queues.device)?, queues)));
    let (mut landings, spreads): (Vec<_>, Vec<_>) =
        found.map(|(nic, queues)| (land(flow, nic, queues), spread(flow, nic, queues))).unzip();
    if ask.root.is_live() {
        landings.iter_mut().for_each(sockets);
    }
    let is_known = landings.iter().all(|landing| landing.queue.value().is_some());
    let settings = json!({ "flow": flow, "devices": ask.devices });
    let answer = Envelope::new("check-flow", settings, Landings { landings, spreads }, warnings);
    output::answer(ask.json, &answer, |Landings { landings, spreads }| {
        let all = landings.iter().zip(spreads);
        all.map(|(landing, spread)| print::landing(landing, spread)).collect()
    })?;
    // An unknown landing is an answer too; a script needs to distinguish it.
    Ok(if is_known { Exit::Done } else { Exit::Inconclusive })
}

/// The sockets bound to the flow's destination, and the socket that gets the flow.
fn sockets(landing: &mut Landing) {
    let flow = landing.flow;
    let choice = match reuseport::sockets(flow.protocol, flow.destination.port()) {
        Ok(bound) => choose(flow, index(&landing.device).unwrap_or_default(), &bound),
        Err(error) => unread(error),
    };
    landing.reuseport_group = choice.group;
    landing.reuseport_socket = choice.socket;
}

/// Selectors are unknown unless the kernel's groups can be read.
fn unread(error: HostError) -> Choice {
    let hidden =
        "no system call shows whether a BPF selector is attached; only kernel structures do";
    match error {
        HostError::Denied { capability, .. } => {
            let needs = format!("{capability} ({hidden})");
            Choice { group: Fact::denied(needs.clone()), socket: Fact::denied(needs) }
        }
        other => {
            let why = format!("{hidden}; {}", other.reason());
            Choice { group: Fact::absent(why.clone()), socket: Fact::absent(why) }
        }
    }
}

fn index(device: &str) -> Result<u32, HostError> {
    Netlink::route()?.index(device)
}
