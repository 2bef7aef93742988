//! Protects the link of the ssh session.

use rxpath_host::netlink::ioctl::driver_info;
use rxpath_host::{Root, session};
use rxpath_tune::effects::{Effect, effects};
use rxpath_tune::plan::{Plan, Step};

use crate::exit::{Failure, OrUsage};

/// From the plan, or from this host: a plan may have been edited.
fn bounces(step: &Step) -> bool {
    let driver = step.set.device().and_then(|dev| Some(driver_info(dev).ok()?.driver));
    let effects = effects(&step.set, driver.as_deref(), (&step.old, &step.new));
    step.bounces_link() || effects.contains(&Effect::LinkBounce)
}

/// Rejects a plan that would take down a link below the ssh session, unless forced.
pub fn guard(plan: &Plan, force: bool) -> Result<(), Failure> {
    let bouncing = plan.steps.iter().filter(|step| bounces(step));
    let bouncing: Vec<&str> = bouncing.filter_map(|step| step.set.device()).collect();
    if bouncing.is_empty() || force {
        return Ok(());
    }
    let unseen = "the plan takes a link down, and rxpath cannot see whether an ssh session runs over this link";
    let session = session::current(&Root::host()).or_usage(|| unseen.to_owned());
    let session =
        session.map_err(|failure| failure.hint("use --force to apply the plan anyway"))?;
    let Some(session) = session else { return Ok(()) };
    match bouncing.iter().find(|dev| session.devices.contains(**dev)) {
        None => Ok(()),
        Some(dev) => Err(Failure::usage(format!(
            "the plan takes {dev} down for a moment, but your ssh session from {} runs over it",
            session.client.ip()
        ))
        .hint("use --force to apply the plan anyway, best with --confirm-within 60s")),
    }
}
