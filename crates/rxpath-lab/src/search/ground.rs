//! Where candidates come from and are tried before the search: the lab, or the hosts of an inventory.

use rxpath_core::PathSide;
use rxpath_host::write::change::SettingChange;
use rxpath_tune::auto::Risk;
use rxpath_tune::check::check;
use rxpath_tune::effects::effects;
use rxpath_tune::plan::from_findings::requests;
use rxpath_tune::plan::{LeftOut, PlanStep};
use rxpath_tune::{Ask, Goal, HostFacts, Scope};

use crate::error::LabError;
use crate::hosts::Hosts;
use crate::testbed::netns::NetnsTestbed;
use crate::testbed::tuned::{self, DEVICE};

/// Rules with what they ask for, as `KEY=VALUE` of a scenario.
pub type Advice = Vec<(String, String)>;

/// What a setting came to: the change, none if it has this value already, or why it can't be made.
pub type Tried = Result<Option<SettingChange>, String>;

/// A place where settings can be tried.
pub trait Ground {
    /// What the rules of `rxpath check` ask of the receiver, and what can't be a candidate.
    ///
    /// # Errors
    /// Where it can't be read.
    fn advice(&self, goal: Option<Goal>) -> Result<(Advice, Vec<LeftOut>), LabError>;

    /// Makes settings, one after the other: side, name and value. Nothing of it stays.
    ///
    /// # Errors
    /// Where it can't be made.
    fn attempt(&self, settings: &[(PathSide, &str, &str)]) -> Result<Vec<Tried>, LabError>;

    /// What a change risks here; `None` if no search may try it.
    fn risk(&self, change: &SettingChange) -> Option<Risk>;
}

/// The lab; each attempt makes one of its own.
pub struct InLab<'a>(pub &'a dyn Fn() -> Result<NetnsTestbed, LabError>);

impl Ground for InLab<'_> {
    fn advice(&self, goal: Option<Goal>) -> Result<(Advice, Vec<LeftOut>), LabError> {
        let lab = (self.0)()?;
        let findings = lab.namespace(PathSide::Rx).run(move |inside| {
            let scope =
                Scope { devices: vec![DEVICE.into()], is_entered: true, ..Scope::default() };
            check(&Ask { facts: &HostFacts::collect(&inside.root(), &scope), goal }).findings
        })?;
        let (mut advice, mut left_out) = (Vec::new(), Vec::new());
        for request in requests(&findings, &[]).0 {
            if tuned::is_of_namespace(&request.knob.target) {
                let set = receiver(&request.knob.to_string(), DEVICE, &request.value);
                advice.push((request.because, set));
            } else {
                let why = format!("{} holds for the whole host", request.knob);
                left_out.push(LeftOut::new(request.because, why));
            }
        }
        Ok((advice, left_out))
    }

    fn attempt(&self, settings: &[(PathSide, &str, &str)]) -> Result<Vec<Tried>, LabError> {
        let lab = (self.0)()?;
        let tried = settings.iter().map(|(side, name, value)| {
            tuned::set(lab.namespace(*side), name, value)
                .map(Some)
                .map_err(|error| format!("{name} is not here: {error}"))
        });
        Ok(tried.collect())
    }

    /// Each trial has a new lab, and nobody else uses it.
    fn risk(&self, _: &SettingChange) -> Option<Risk> {
        Some(Risk::None)
    }
}

impl Ground for Hosts {
    fn advice(&self, goal: Option<Goal>) -> Result<(Advice, Vec<LeftOut>), LabError> {
        let planned = Hosts::advice(self, goal.map(|goal| goal.to_string()))?;
        let one = |step: PlanStep| {
            let rule = step.because.first().cloned().unwrap_or_default();
            (rule, receiver(&step.set.to_string(), &self.receiver().device.name, &step.new))
        };
        Ok((planned.steps.into_iter().map(one).collect(), Vec::new()))
    }

    fn attempt(&self, settings: &[(PathSide, &str, &str)]) -> Result<Vec<Tried>, LabError> {
        let one = |(side, name, value): &(PathSide, &str, &str)| -> Result<Tried, LabError> {
            let made = Hosts::attempt(self, *side, name, value)?;
            // Of several queues the first.
            Ok(made.map(|made| made.into_iter().next()))
        };
        settings.iter().map(one).collect()
    }

    fn risk(&self, change: &SettingChange) -> Option<Risk> {
        let before = change.before.as_deref().unwrap_or_default();
        let after = change.after.as_deref().unwrap_or(&change.asked);
        Risk::of(&effects(&change.target, None, (before, after)))
    }
}

/// A setting of the receiver as a key of the scenario.
fn receiver(name: &str, device: &str, value: &str) -> String {
    format!("tune.receiver.{}={value}", name.replace(&format!("{device}/"), "{dev}/"))
}
