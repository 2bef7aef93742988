//! `rxpath check --flow`: the queue, CPU and socket on which a flow lands.

use rxpath_bpf::reuseport;
use rxpath_core::Fact;
use rxpath_host::read::nic;
use rxpath_host::read::queue_map::{HostTables, read_all};
use rxpath_host::read::steering::{Flow, Landing, SteeringSuggestion, land, spread};
use serde::Deserialize;

use super::queues::{QueueCheckOptions, names};
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
    let nics = nic::named(ask.root, &names(ask)?)?;
    let (devices, warnings) = read_all(ask.root, &nics, &HostTables::read(ask.root));
    let found = devices.iter().filter_map(|queues| Some((nics.get(&queues.device)?, queues)));
    let (mut landings, spreads): (Vec<_>, Vec<_>) =
        found.map(|(nic, queues)| (land(flow, nic, queues), spread(flow, nic, queues))).unzip();
    if ask.root.is_live() {
        landings.iter_mut().for_each(reuseport::complete);
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
