//! Candidates of this host: what the rules ask for, the catalogue, and settings named by hand, as far as they are allowed.

use rxpath_host::read::counter::SHORT_WINDOW;
use rxpath_host::read::ioctl::driver_info;
use rxpath_host::read::{sysfs, thread};
use rxpath_host::write::change::same_of;
use rxpath_host::write::setter::{HostSetter, Setter};
use rxpath_host::{Root, Target};
use rxpath_tune::auto::{Candidate, Risk};
use rxpath_tune::plan::make::{ChangeRequest, make};
use rxpath_tune::plan::settle::settle;
use rxpath_tune::plan::{HostMark, LeftOut, NoStep, Plan, PlanStep, from_findings, session};
use rxpath_tune::switch::SwitchError;
use rxpath_tune::{Goal, HostFacts, Scope};

use super::allow::Allow;
use super::stop::Stop;
use crate::search::candidates::Available;
use crate::search::catalogue::{Entry, of_host};
use crate::search::ground::Advice;

/// This host, of which a device's path is searched.
pub struct Host<'a> {
    device: &'a str,
    allow: &'a [Allow],
    empty: Plan,
}

/// The settings of all candidates as they were at the start.
#[derive(Debug, Default)]
pub struct InitialSettings {
    /// Of a group, the values that any candidate changes.
    pub values: Vec<(Target, String)>,
}

impl<'a> Host<'a> {
    /// With the effects that the user allows.
    ///
    /// # Errors
    /// If the marks of this host can't be read.
    pub fn new(device: &'a str, allow: &'a [Allow]) -> Result<Self, Stop> {
        let empty = Plan::new(jiff::Timestamp::now().to_string(), HostMark::here()?);
        Ok(Self { device, allow, empty })
    }

    /// What the rules of `rxpath check` ask for, each rule's settings by its id.
    pub fn advice(&self, goal: Option<Goal>) -> (Advice, Vec<LeftOut>) {
        let mut facts =
            HostFacts::collect(&Root::host(), &Scope::devices(&[self.device.to_owned()]));
        facts.watch(SHORT_WINDOW);
        let settled = settle(&facts, goal, &[]);
        let (requests, _) = from_findings::requests(&settled.findings, &[]);
        let one = |request: ChangeRequest| (request.because.clone(), request.to_string());
        (requests.into_iter().map(one).collect(), settled.left_out)
    }

    /// The catalogue, and the settings named by hand.
    pub fn entries(&self, tries: &[String]) -> Vec<Entry> {
        let steering = sysfs::device::steering(&Root::host(), self.device);
        let queues = steering.map_or_else(|_| Vec::new(), |steering| steering.rx_queues);
        let cpus = thread::allowed_cpus().unwrap_or_default();
        let mut all = of_host(self.device, &queues, &cpus.0);
        all.extend(tries.iter().map(|set| Entry::new(set, [set.clone()], &[])));
        all
    }

    /// The settings of an entry with what they risk here, or why they can't be tried.
    pub fn available(&self, entry: &Entry) -> Available {
        let plan = self.plan(&entry.sets)?;
        if let Some(left) = plan.left_out.iter().find(|left| !left.is_set) {
            return Err(left.why.clone().into());
        }
        if plan.steps.is_empty() {
            return Err(NoStep::Already);
        }
        let effects: Vec<_> = plan.steps.iter().flat_map(|step| step.effects.clone()).collect();
        let risk = Risk::of(&effects).ok_or("it weakens a protection")?.max(entry.risk);
        if let Some(needed) = Allow::needed(risk).filter(|needed| !self.allow.contains(needed)) {
            let (name, words) = (needed.name(), needed.words());
            return Err(format!("--allow {name} permits it: {words}").into());
        }
        // No --force here: nobody watches a search of half an hour.
        session::spares(&plan).map_err(|risk| risk.to_string())?;
        Ok((entry.sets.clone(), risk))
    }

    /// All settings of the candidates as they are now.
    ///
    /// # Errors
    /// If one of them is no setting.
    pub fn base(&self, candidates: &[Candidate]) -> Result<InitialSettings, Stop> {
        let sets: Vec<String> = candidates.iter().flat_map(|one| one.sets.clone()).collect();
        let plan = self.plan(&sets).map_err(Stop::NoSetting)?;
        Ok(InitialSettings {
            values: plan.steps.into_iter().map(|step| (step.set, step.old)).collect(),
        })
    }

    /// What these settings write now.
    ///
    /// # Errors
    /// If another program changed one of them since the start.
    pub fn steps(&self, base: &InitialSettings, sets: &[String]) -> Result<Vec<PlanStep>, Stop> {
        base.is_here()?;
        Ok(self.plan(sets).map_err(Stop::NoSetting)?.steps)
    }

    /// The plan of these settings from the values that they have now.
    ///
    /// # Errors
    /// In words which of them is no setting.
    pub fn plan(&self, sets: &[String]) -> Result<Plan, String> {
        let requests: Result<Vec<ChangeRequest>, String> =
            sets.iter().map(|set| ChangeRequest::parse(set)).collect();
        let driver = |dev: &str| driver_info(dev).ok().map(|info| info.driver);
        Ok(make(&mut HostSetter::default(), &driver, &requests?, self.empty.clone()))
    }
}

impl InitialSettings {
    /// Whether every setting is as at the start.
    ///
    /// # Errors
    /// The first that another program changed.
    pub fn is_here(&self) -> Result<(), SwitchError> {
        let mut setter = HostSetter::default();
        for (target, value) in &self.values {
            let now = target.as_far_as(&setter.read(target)?.unwrap_or_default(), value);
            if !same_of(target, value, &now) {
                return Err(SwitchError::Foreign { set: target.to_string(), value: now });
            }
        }
        Ok(())
    }
}
