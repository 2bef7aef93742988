//! `rxpath check --flow`: on which queue and CPU a flow lands.

use rxpath_core::{Envelope, Fact};
use rxpath_host::queue_map::Shared;
use rxpath_host::steering::{Flow, Landing, Spread, land, spread};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::queues::{Ask, names, nics, read};
use crate::exit::{Exit, Failure, Outcome};
use crate::output;
use crate::output::queues as print;

/// The result of `check --flow`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Landings {
    /// One for each device that was asked for.
    pub landings: Vec<Landing>,
    /// What would lead to each queue, by device, as in `landings`.
    pub spreads: Vec<Fact<Spread>>,
}

/// Says where the flow lands on each device asked for.
pub fn run(ask: &Ask<'_>, text: &str) -> Outcome {
    let flow: Flow = text.parse().map_err(|error: rxpath_host::parse::ParseError| {
        Failure::usage(format!("--flow: {}", error.why))
    })?;
    if ask.devices.is_empty() {
        let all = names(ask)?.join(", ");
        return Err(Failure::usage("--flow needs --dev IF: the device on which the flow arrives")
            .hint(format!("devices here: {all}")));
    }
    let nics = nics(ask.root, &names(ask)?)?;
    let (devices, warnings) = read(ask, &nics, &Shared::read(ask.root));
    let found = devices.iter().filter_map(|queues| Some((nics.get(&queues.device)?, queues)));
    let (landings, spreads): (Vec<_>, Vec<_>) =
        found.map(|(nic, queues)| (land(flow, nic, queues), spread(flow, nic, queues))).unzip();
    let is_known = landings.iter().all(|landing| landing.queue.value().is_some());
    if ask.json {
        let settings = json!({ "flow": flow, "devices": ask.devices });
        let result = Landings { landings, spreads };
        output::json(&Envelope::new("check-flow", settings, result, warnings))?;
    } else {
        for (landing, spread) in landings.iter().zip(&spreads) {
            output::text(&print::landing(landing, spread))?;
        }
        warnings.iter().for_each(output::warning);
    }
    // That it can't be known is an answer, and a script wants to tell it from one.
    Ok(if is_known { Exit::Done } else { Exit::Inconclusive })
}
