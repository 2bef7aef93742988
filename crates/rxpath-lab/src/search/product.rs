//! What a search in the lab leaves: a plan for this host, and what of the kept settings can't be in it.

use std::collections::BTreeMap;

use rxpath_core::PathSide;
use rxpath_host::HostError;
use rxpath_host::read::ioctl::driver_info;
use rxpath_host::write::setter::HostSetter;
use rxpath_tune::auto::report::Kept;
use rxpath_tune::plan::make::{ChangeRequest, make};
use rxpath_tune::plan::{HostMark, LeftOut, Plan};

use super::candidates::tuned_name;
use crate::error::{LabError, cannot};
use crate::hosts::Hosts;

/// Who asks for the steps.
const BECAUSE: &str = "tune auto";
const OF_SERVICE: &str = "an option of the service or of the lab: set it there";
const OF_SENDER: &str =
    "a setting of the sending host: plan it there with `rxpath tune plan --set`";

/// The plan of what is kept, with this host's device in place of the lab's.
///
/// # Errors
/// Where the host can't be read.
pub fn plan(kept: &[Kept], dev: Option<&str>) -> Result<Plan, HostError> {
    let empty = Plan::new(jiff::Timestamp::now().to_string(), HostMark::here()?);
    let (mut requests, mut left_out) = (Vec::new(), Vec::new());
    for set in kept.iter().flat_map(|kept| &kept.sets) {
        match request(set, dev) {
            Ok(request) => requests.push(request),
            Err(why) => left_out.push(LeftOut::new(set, why)),
        }
    }
    let driver = |dev: &str| driver_info(dev).ok().map(|info| info.driver);
    let mut plan = make(&mut HostSetter::default(), &driver, &requests, empty);
    plan.left_out.append(&mut left_out);
    Ok(plan)
}

/// The plan of what is kept on the receiver's host, made there.
///
/// # Errors
/// If the host does not answer, or its plan can't be read.
pub fn plan_on(hosts: &Hosts, kept: &[Kept]) -> Result<Plan, LabError> {
    let (mut sets, mut left_out) = (BTreeMap::new(), Vec::new());
    for set in kept.iter().flat_map(|kept| &kept.sets) {
        match tuned_name(set) {
            Some((PathSide::Rx, name, value)) => {
                sets.insert(name.to_owned(), value.to_owned());
            }
            Some(_) => left_out.push(LeftOut::new(set, OF_SENDER)),
            None => left_out.push(LeftOut::new(set, OF_SERVICE)),
        }
    }
    let mut plan = Plan::parse(&hosts.plan(&sets)?.file, "the receiver's plan")
        .map_err(|error| cannot(error.to_string(), ""))?;
    if sets.is_empty() {
        // A plan of nothing else is what rules advise.
        plan.left_out.clear();
        plan.steps.clear();
    }
    plan.left_out.append(&mut left_out);
    Ok(plan)
}

fn request(set: &str, dev: Option<&str>) -> Result<ChangeRequest, String> {
    let Some((side, name, value)) = tuned_name(set) else {
        return Err(OF_SERVICE.into());
    };
    if side == PathSide::Tx {
        return Err(OF_SENDER.into());
    }
    if name.contains("{dev}") && dev.is_none() {
        return Err("which device of this host? name it with --dev".into());
    }
    let name = name.replace("{dev}", dev.unwrap_or_default());
    let request = ChangeRequest::parse(&format!("{name}={value}"))?;
    Ok(ChangeRequest { because: BECAUSE.into(), ..request })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_receivers_settings_are_steps() {
        let set = "tune.receiver.{dev}/features/rx-gro=off";
        let made = request(set, Some("eth7")).unwrap();
        assert_eq!(
            (made.to_string().as_str(), made.because.as_str()),
            ("eth7/features/rx-gro=off", BECAUSE)
        );
        for (set, dev, part) in [
            (set, None, "--dev"),
            ("tune.sender.net.ipv4.tcp_wmem=1 2 3", None, "sending host"),
            ("serve.batch=64", None, "option of the service"),
        ] {
            let why = request(set, dev).unwrap_err();
            assert!(why.contains(part), "{why}");
        }
    }
}
