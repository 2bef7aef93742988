//! The scenario that a command line names: resolved for this host or between hosts, and its variants.

use rxpath_host::Root;
use rxpath_lab::hosts::Hosts;
use rxpath_lab::hosts::privilege::RootNeeds;
use rxpath_lab::scenario::spec::{Resolved, Variant};
use rxpath_lab::scenario::{HostShape, load, resolve, resolve_between};

use crate::exit::Failure;

/// The variant of this name; without a name the first that can run here.
pub fn chosen(scenario: &Resolved, name: Option<&str>) -> Result<Variant, Failure> {
    let all = &scenario.variants;
    let found = if let Some(name) = name {
        all.iter().find(|variant| variant.name == name).ok_or_else(|| {
            let names: Vec<&str> = all.iter().map(|variant| variant.name.as_str()).collect();
            let has = names.join(", ");
            Failure::usage(format!("{} has no variant `{name}`; it has {has}", scenario.name))
        })?
    } else {
        let available = all.iter().find(|variant| variant.not_available.is_none());
        let none = || Failure::usage(format!("{} has no variant", scenario.name));
        available.or(all.first()).ok_or_else(none)?
    };
    match &found.not_available {
        Some(why) => Err(Failure::cannot(format!("variant {} cannot run here: {why}", found.name))),
        None => Ok(found.clone()),
    }
}

/// The scenario of that name or file, with `sets`, for this host.
pub fn resolved(scenario: &str, sets: &[String]) -> Result<Resolved, Failure> {
    let file = load(scenario).map_err(Failure::usage_of)?;
    let shape = HostShape::here(&Root::host())?;
    resolve(&file, sets, &shape).map_err(Failure::usage_of)
}

/// Refuses a scenario that names hosts, for what is measured in the lab.
pub fn in_lab(scenario: &str, what: &str) -> Result<(), Failure> {
    let file = load(scenario).map_err(Failure::usage_of)?;
    if file.hosts.is_none() {
        return Ok(());
    }
    let why = format!("{} has [hosts], and {what} is for the lab on this machine", file.name);
    Err(Failure::usage(why).hint("take [hosts] and [network] out of it, or use rxpath run"))
}

/// The scenario of that name or file, with `sets`, between hosts that may be changed or not; without hosts for this host.
pub fn resolved_between(
    scenario: &str,
    sets: &[String],
    (hosts, may_change): (Option<&Hosts>, bool),
) -> Result<Resolved, Failure> {
    let Some(hosts) = hosts else { return resolved(scenario, sets) };
    let file = load(scenario).map_err(Failure::usage_of)?;
    let aliases: Vec<&str> = hosts.all().map(|host| host.client.alias()).collect();
    resolve_between(&file, sets, hosts.shapes(), may_change, Some(&aliases))
        .map_err(Failure::usage_of)
}

/// What of a scenario needs root on hosts, before any of them is known. A scenario that is wrong needs nothing: it is refused
/// once the hosts are there.
pub fn root_needs(scenario: &str, sets: &[String], may_change: bool) -> RootNeeds {
    // Which CPUs there are does not matter for it.
    let shape = HostShape::flat(64);
    let resolved = load(scenario)
        .and_then(|file| resolve_between(&file, sets, [&shape, &shape], may_change, None));
    resolved.map_or_else(|_| RootNeeds::default(), |made| RootNeeds::of(&made, may_change))
}
