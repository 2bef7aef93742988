//! What a run does on each of its hosts, before it does it: programs with their CPUs, rights, settings with their side effects.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use rxpath_core::{PathSide, SortFew};
use rxpath_tune::effects::Effect;
use rxpath_tune::plan::PlanStep;
use schemars::JsonSchema;
use serde::Serialize;

use super::privilege::RootNeeds;
use super::settings::{planned, wanted_of};
use super::{ConnectedHost, Hosts};
use crate::endpoint::settings::PlannedSettings;
use crate::error::LabError;
use crate::scenario::spec::{LoadOptions, Own, Resolved, Variant, Workload};
use crate::testbed::seat::Seat;
use crate::trial::start::{command_line, destinations_of, sender_programs, words};

/// A host's part in a run to come.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PlannedHost {
    /// Its alias.
    pub host: String,
    /// What it does: `tx` sends, `rx` receives.
    pub side: PathSide,
    /// Its device.
    pub device: String,
    /// With which rights, and why.
    pub rights: String,
    /// Its programs, without the options by which the run controls them.
    pub programs: Vec<PlannedProgram>,
    /// Its settings that are changed, each for the trials of these variants.
    pub changes: Vec<PlannedChange>,
}

/// A program to come.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PlannedProgram {
    /// The variant.
    pub variant: String,
    /// Its words.
    pub command: String,
}

/// A setting to be changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PlannedChange {
    /// Its name for `rxpath tune`.
    pub name: String,
    /// Its value then.
    pub value: String,
    /// Its value now; `None` if it has this value already, or cannot be changed here.
    pub now: Option<String>,
    /// Why it cannot be changed here, if it cannot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
    /// The variants that want it.
    pub variants: Vec<String>,
    /// Side effects, as `rxpath tune plan` calls them: `link-bounce`.
    pub effects: Vec<Effect>,
}

impl Hosts {
    /// What a run does on each host: the senders, then the receivers. Nothing is changed.
    ///
    /// # Errors
    /// Of a host that no longer answers.
    pub fn planned(
        &self,
        resolved: &Resolved,
        needs: &RootNeeds,
    ) -> Result<Vec<PlannedHost>, LabError> {
        let planned = |(seat, host): (Seat, &ConnectedHost)| -> Result<PlannedHost, LabError> {
            let commands = |variant: &Variant| -> Vec<PlannedProgram> {
                let commands = self.commands(seat, variant).into_iter();
                let name = &variant.name;
                commands.map(|command| PlannedProgram { variant: name.clone(), command }).collect()
            };
            Ok(PlannedHost {
                host: host.client.alias().to_owned(),
                side: seat.side,
                device: host.device.name.clone(),
                rights: rights(host, needs),
                programs: resolved.available().flat_map(commands).collect(),
                changes: changes(host, seat.side, resolved.available())?,
            })
        };
        self.seats().map(planned).collect()
    }

    /// The programs that a variant runs on a host.
    fn commands(&self, Seat { side, index }: Seat, variant: &Variant) -> Vec<String> {
        let own = |words: Vec<String>| format!("rxpath {}", words.join(" "));
        match (side, &variant.load, &variant.serve) {
            (PathSide::Tx, Workload::Own(load), _) => {
                let mut load = load.clone();
                load.options.cpu = self.cpus_on(side, index, variant);
                let programs = sender_programs(&load, index, &self.pairs).into_iter();
                let program = |(receivers, load): (Vec<usize>, Own<LoadOptions>)| {
                    let of = |receiver: usize| self.receivers[receiver].addresses.clone();
                    let addresses: Vec<IpAddr> = receivers.into_iter().flat_map(of).collect();
                    own(words(&load, destinations_of(&load, &addresses)))
                };
                programs.map(program).collect()
            }
            (PathSide::Tx, load, _) => vec![command_line(load)],
            (_, _, Workload::Own(serve)) if serve.absent => Vec::new(),
            (_, _, Workload::Own(serve)) => {
                let at = SocketAddr::new(self.receivers[index].listens_on(), serve.port);
                let mut serve = serve.clone();
                serve.options.cpu = self.cpus_on(side, index, variant);
                vec![own(words(&serve, vec![at.to_string()]))]
            }
            (_, _, serve) => vec![command_line(serve)],
        }
    }
}

/// With which rights a host's programs run.
fn rights(host: &ConnectedHost, needs: &RootNeeds) -> String {
    match needs.on(host.client.alias(), &host.entry) {
        _ if host.is_local => "with the rights of this command".into(),
        _ if host.hello.uid == 0 => "as root".into(),
        None => "as the user of your login there".into(),
        Some(why) if why.is_empty() => "as root by sudo".into(),
        Some(why) => format!("as root by sudo: {why}"),
    }
}

/// The settings of a host that these variants want, in the order of their names.
fn changes<'a>(
    host: &ConnectedHost,
    side: PathSide,
    variants: impl Iterator<Item = &'a Variant>,
) -> Result<Vec<PlannedChange>, LabError> {
    let mut all: Vec<PlannedChange> = Vec::new();
    for variant in variants {
        let sets = wanted_of(host, side, &variant.tune);
        if sets.is_empty() {
            continue;
        }
        let together = planned(host, sets.clone())?;
        // Of several, each is asked for alone: a plan says of all together why some are refused.
        let each_alone = !together.refused.is_empty() && sets.len() > 1;
        for (name, value) in sets {
            let value = value.trim().to_owned();
            if let Some(known) = all.iter_mut().find(|it| it.name == name && it.value == value) {
                known.variants.push(variant.name.clone());
                continue;
            }
            let alone = BTreeMap::from([(name.clone(), value.clone())]);
            let alone = each_alone.then(|| planned(host, alone)).transpose()?;
            all.push(change(name, value, &variant.name, alone.as_ref().unwrap_or(&together)));
        }
    }
    all.sort_few_by(|one, other| (&one.name, &one.value).cmp(&(&other.name, &other.value)));
    Ok(all)
}

fn change(name: String, value: String, variant: &str, planned: &PlannedSettings) -> PlannedChange {
    // Members of a group are one step: `eth0/rings` for `eth0/rings/rx`.
    let is_it = |step: &&PlanStep| {
        let rest = name.strip_prefix(&step.set.to_string());
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let step = planned.steps.iter().find(is_it);
    let refused = Some(&planned.refused).filter(|why| step.is_none() && !why.is_empty());
    PlannedChange {
        now: step.map(|step| step.old.clone()),
        refused: refused.cloned(),
        effects: step.map(|step| step.effects.clone()).unwrap_or_default(),
        variants: vec![variant.to_owned()],
        name,
        value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_of_a_group_has_the_effects_of_its_step() {
        let step = |set: &str, effect| PlanStep {
            set: set.parse().unwrap(),
            old: "rx=512".into(),
            new: "rx=4096".into(),
            because: Vec::new(),
            effects: vec![effect],
        };
        let steps = vec![step("eth0/ring", Effect::Power), step("eth0/rings", Effect::LinkBounce)];
        let planned = PlannedSettings { steps, ..PlannedSettings::default() };
        let made = change("eth0/rings/rx".into(), "4096".into(), "large", &planned);
        assert_eq!(made.now.as_deref(), Some("rx=512"));
        assert_eq!(made.effects, [Effect::LinkBounce]);
        let so_already = change("net.core.somaxconn".into(), "99".into(), "large", &planned);
        assert!(so_already.now.is_none() && so_already.effects.is_empty(), "{so_already:?}");
        assert_eq!(so_already.refused, None);
        let refusing = PlannedSettings { refused: "no such device".into(), ..planned };
        let refused = change("eth9/rings/rx".into(), "99".into(), "large", &refusing);
        assert_eq!(refused.refused.as_deref(), Some("no such device"));
        let made = change("eth0/rings/rx".into(), "4096".into(), "large", &refusing);
        assert_eq!(made.refused, None, "another one is refused");
    }
}
