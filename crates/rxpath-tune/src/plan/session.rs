//! Protects the link of the ssh session.

use std::net::IpAddr;

use rxpath_host::read::ioctl::driver_info;
use rxpath_host::read::session;
use rxpath_host::{HostError, Root};
use thiserror::Error;

use super::{Plan, PlanStep};
use crate::effects::{Effect, effects};

/// Why a plan may end the user's ssh session.
#[derive(Debug, Error)]
pub enum SessionAtRisk {
    /// It takes down a link, and the session's link is unknown.
    #[error(
        "the plan takes a link down, and rxpath cannot see whether an ssh session runs over this link: {0}"
    )]
    Unseen(#[source] HostError),
    /// It takes down a link below the session.
    #[error(
        "the plan takes {dev} down for a moment, but your ssh session from {client} runs over it"
    )]
    Cut {
        /// The device.
        dev: String,
        /// The other end of the session.
        client: IpAddr,
    },
}

/// From the plan, or from this host: a plan may have been edited.
fn bounces(step: &PlanStep) -> bool {
    let driver = step.set.device().and_then(|dev| Some(driver_info(dev).ok()?.driver));
    let effects = effects(&step.set, driver.as_deref(), (&step.old, &step.new));
    step.bounces_link() || effects.contains(&Effect::LinkBounce)
}

/// Whether a plan takes down no link below the ssh session that this process was started from.
///
/// # Errors
/// If it does, or if that can't be known.
pub fn spares(plan: &Plan) -> Result<(), SessionAtRisk> {
    let bouncing = plan.steps.iter().filter(|step| bounces(step));
    let bouncing: Vec<&str> = bouncing.filter_map(|step| step.set.device()).collect();
    if bouncing.is_empty() {
        return Ok(());
    }
    let session = session::current(&Root::host()).map_err(SessionAtRisk::Unseen)?;
    let Some(session) = session else { return Ok(()) };
    match bouncing.into_iter().find(|dev| session.devices.contains(*dev)) {
        None => Ok(()),
        Some(dev) => Err(SessionAtRisk::Cut { dev: dev.into(), client: session.client.ip() }),
    }
}
