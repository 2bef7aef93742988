//! `rxpath check --flow`: the queue, CPU and socket on which a flow lands.

use std::path::{Path, PathBuf};

use rxpath_bpf::reuseport;
use rxpath_core::{Envelope, Fact};
use rxpath_host::queue_map::{DeviceQueues, Shared};
use rxpath_host::steering::group::{Choice, Coming, choose};
use rxpath_host::steering::probe::{self, Probed, ends};
use rxpath_host::steering::{Flow, Landing, Spread, land, spread};
use rxpath_host::{HostError, netlink::Netlink, netns::NETNS_DIR};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::queues::{Ask, names, nics, read};
use crate::exit::{Exit, Failure, Outcome};
use crate::output;
use crate::output::queues as print;

/// Options of `check --flow`.
#[derive(Debug, Default, clap::Args)]
pub struct Probing {
    /// With --flow: send datagrams of the flow to this host and see where they land
    #[arg(long, requires = "flow", conflicts_with = "sysroot")]
    probe: bool,
    /// Network namespace from which the probes are sent: its name or its file (default: this one, over lo)
    #[arg(long, value_name = "NETNS", requires = "probe")]
    probe_from: Option<String>,
    /// Open this many sockets as a SO_REUSEPORT group for the probe, if no socket is bound there
    #[arg(long, value_name = "N", requires = "probe", value_parser = clap::value_parser!(u32).range(1..=1024))]
    probe_sockets: Option<u32>,
    /// Send probes even to sockets of an application that is bound there
    #[arg(long, requires = "probe")]
    probe_into_app: bool,
}

/// The result of `check --flow`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Landings {
    /// One entry for each named device.
    pub landings: Vec<Landing>,
    /// The flows that would lead to each queue, by device, as in `landings`.
    pub spreads: Vec<Fact<Spread>>,
}

/// Reports where the flow lands on each named device.
pub fn run(ask: &Ask<'_>, text: &str, probing: &Probing) -> Outcome {
    let flow: Flow = text.parse().map_err(|error: rxpath_host::parse::ParseError| {
        Failure::usage(format!("--flow: {}", error.why))
    })?;
    if ask.devices.is_empty() {
        let all = names(ask)?.join(", ");
        return Err(Failure::usage("--flow needs --dev IF: the device on which the flow arrives")
            .hint(format!("devices here: {all}")));
    }
    if let Some(why) = probe::refusal(flow).filter(|_| probing.probe) {
        return Err(Failure::usage(format!("--probe: {why}")));
    }
    let nics = nics(ask.root, &names(ask)?)?;
    let (devices, warnings) = read(ask, &nics, &Shared::read(ask.root));
    let found = devices.iter().filter_map(|queues| Some((nics.get(&queues.device)?, queues)));
    let (mut landings, spreads): (Vec<_>, Vec<_>) =
        found.map(|(nic, queues)| (land(flow, nic, queues), spread(flow, nic, queues))).unzip();
    if ask.root.is_live() {
        for (landing, queues) in landings.iter_mut().zip(&devices) {
            sockets(ask, landing, queues);
            if probing.probe {
                landing.probed = Some(sent(landing, queues, probing)?);
            }
        }
    }
    let is_known = landings.iter().all(is_answered);
    if ask.json {
        let settings = json!({ "flow": flow, "devices": ask.devices, "probe": probing.probe });
        let result = Landings { landings, spreads };
        output::json(&Envelope::new("check-flow", settings, result, warnings))?;
    } else {
        for (landing, spread) in landings.iter().zip(&spreads) {
            output::text(&print::landing(landing, spread))?;
        }
        warnings.iter().for_each(output::warning);
    }
    // An unknown landing is an answer too; a script needs to distinguish it.
    Ok(if is_known { Exit::Done } else { Exit::Inconclusive })
}

/// Whether the answers are known: the queue, and the results of the probes.
fn is_answered(landing: &Landing) -> bool {
    let probed = landing.probed.as_ref();
    let seen = |probed: &Probed| {
        probed.rps_cpu.value().is_some() || probed.reuseport_socket.value().is_some()
    };
    landing.queue.value().is_some() && probed.is_none_or(seen)
}

/// The sockets bound to the flow's destination, and the socket that gets the flow.
fn sockets(ask: &Ask<'_>, landing: &mut Landing, queues: &DeviceQueues) {
    let flow = landing.flow;
    let choice = match reuseport::sockets(flow.protocol, flow.destination.port()) {
        Ok(bound) => {
            let all = ask.root.cpus("/sys/devices/system/cpu/online").unwrap_or_default();
            let cpus = landing.softirq_cpus(queues, &all);
            let ifindex = index(&landing.device).unwrap_or_default();
            choose(&Coming { flow, ifindex, cpus: &cpus }, &bound)
        }
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

fn sent(landing: &Landing, queues: &DeviceQueues, probing: &Probing) -> Result<Probed, Failure> {
    let flow = landing.flow;
    let sender = match &probing.probe_from {
        Some(name) => ends::sender_in(&namespace(name), flow),
        None => ends::sender(flow),
    };
    let sender = sender.map_err(|error| match error {
        HostError::Kernel { errno: nix::libc::EADDRNOTAVAIL, .. } => Failure::usage(format!(
            "--probe: {} is not an address of the sending side",
            flow.source
        ))
        .hint("use --probe-from to name the network namespace that the flow comes from"),
        error @ HostError::Missing { .. } => Failure::usage_of(error.into())
            .hint("--probe-from takes a name below /run/netns, or a file such as /proc/PID/ns/net"),
        error => Failure::new(Exit::Cannot, error),
    })?;
    let probed = probe::probe(&probe::Ask {
        flow,
        device: &landing.device,
        sender,
        rps: landing.asks_rps(queues),
        sockets: probing.probe_sockets.unwrap_or(0),
        into_application: probing.probe_into_app,
        group: landing.reuseport_group.value(),
    });
    Ok(probed?)
}

/// The file of a namespace that is named by its file or by its name.
fn namespace(name: &str) -> PathBuf {
    if name.contains('/') { name.into() } else { Path::new(NETNS_DIR).join(name) }
}
