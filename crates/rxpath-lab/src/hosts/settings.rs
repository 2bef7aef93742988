//! Settings of the hosts that a variant wants: what would be changed, and the change for a trial.

use std::cell::Cell;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rxpath_core::{IntoMap, Side};
use rxpath_host::{Change as Made, Group, Target};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::again::{Again, WATCHDOG};
use super::{ConnectedHost, Hosts};
use crate::endpoint::client::{Client, PROMPT};
use crate::endpoint::settings::{PlannedSettings, SettingsAsk};
use crate::endpoint::wire::{Ask, DeviceFacts};
use crate::error::{LabError, with_hint};
use crate::scenario::spec::{Resolved, Sets, Trials, Tune, Variant};
use crate::testbed::Change;
use crate::testbed::tuned::DEVICE_WORD;
use crate::trial::config::whole;

/// How long settings may take that make a device's queues again.
const APPLIED: Duration = Duration::from_secs(60);
/// How long a link may take to have a carrier again.
const LINK_UP: Duration = Duration::from_secs(20);
/// Time between two readings of a link.
const GLANCE: Duration = Duration::from_millis(50);
/// What a trial takes at most beyond its load: its programs start and end, its counters come to rest.
const AROUND: Duration = Duration::from_secs(60);

impl Hosts {
    /// The settings that a variant wants of each host.
    fn wanted(&self, variant: &Variant) -> Vec<(&ConnectedHost, Side, Sets)> {
        let sides = [Side::Tx, Side::Rx].into_iter();
        let all = sides.flat_map(|side| self.of(side).iter().map(move |host| (host, side)));
        all.map(|(host, side)| (host, side, wanted_of(host, side, &variant.tune))).collect()
    }

    /// Whether a run changes settings of its hosts.
    pub fn are_changed(&self, resolved: &Resolved) -> bool {
        let here = resolved.variants.iter().filter(|it| it.not_available.is_none());
        here.flat_map(|variant| self.wanted(variant)).any(|(_, _, sets)| !sets.is_empty())
    }

    /// What the rules of `rxpath check` would change on the first receiver's host.
    ///
    /// # Errors
    /// Of the host.
    pub fn advice(&self, goal: Option<String>) -> Result<PlannedSettings, LabError> {
        let device = self.receiver().device.name.clone();
        // Its counters are watched for a moment.
        ask(&self.receiver().client, SettingsAsk::Advise { device, goal }, APPLIED)
    }

    /// What would be changed on the first receiver's host for these names and values, `{dev}` for its device.
    ///
    /// # Errors
    /// Of the host.
    pub fn plan(&self, sets: &Sets) -> Result<PlannedSettings, LabError> {
        let sets = on_device(&self.receiver().device, sets);
        ask(&self.receiver().client, SettingsAsk::Plan { sets }, PROMPT)
    }

    /// Changes a setting on the first host of a side, reads it back and undoes it: what came of it, or why it cannot be
    /// made.
    ///
    /// # Errors
    /// Of a host that no longer answers, or cannot undo it.
    pub fn attempt(
        &self,
        side: Side,
        name: &str,
        value: &str,
    ) -> Result<Result<Vec<Made>, String>, LabError> {
        let host = &self.of(side)[0];
        let set = Sets::from([(name.to_owned(), value.to_owned())]);
        let sets = on_device(&host.device, &set);
        let within_s = AROUND.as_secs();
        let made = ask(&host.client, SettingsAsk::Apply { sets, within_s }, APPLIED);
        let made = match made {
            Err(LabError::OnHost { text, hint, .. }) => Err(with_hint(text, &hint)),
            other => Ok(other?),
        };
        ask::<Value>(&host.client, SettingsAsk::Undo, APPLIED)?;
        wait_for_link(host)?;
        Ok(made)
    }

    /// Marks the variants whose settings a host does not take; nothing is changed.
    ///
    /// # Errors
    /// Of a host that no longer answers.
    pub fn check_settings(&self, resolved: &mut Resolved) -> Result<(), LabError> {
        for variant in resolved.variants.iter_mut().filter(|it| it.not_available.is_none()) {
            for (host, _, sets) in self.wanted(variant) {
                if sets.is_empty() {
                    continue;
                }
                let planned: Result<PlannedSettings, _> =
                    ask(&host.client, SettingsAsk::Plan { sets }, PROMPT);
                let refused = match planned {
                    Ok(planned) => planned.refused,
                    Err(LabError::OnHost { text, hint, .. }) => with_hint(text, &hint),
                    Err(error) => return Err(error),
                };
                if !refused.is_empty() {
                    variant.not_available = Some(cannot_be_set(host.client.alias(), &refused));
                }
            }
        }
        Ok(())
    }
}

/// The settings that are wanted of a host of a side.
pub(super) fn wanted_of(host: &ConnectedHost, side: Side, tune: &Tune) -> Sets {
    wanted_on((host.client.alias(), side), &host.device, tune)
}

/// Those of its side, and over them its own.
fn wanted_on((alias, side): (&str, Side), device: &DeviceFacts, tune: &Tune) -> Sets {
    let of_side = if side == Side::Tx { &tune.sender } else { &tune.receiver };
    let mut sets = on_device(device, of_side);
    // With the device in both: one may name it, where the other has `{dev}`.
    sets.extend(tune.hosts.get(alias).map(|own| on_device(device, own)).unwrap_or_default());
    sets
}

/// Names with a host's device and its receive queues in them.
fn on_device(device: &DeviceFacts, sets: &Sets) -> Sets {
    let named = |name: &String| name.replace(DEVICE_WORD, &device.name);
    let each_queue = |name: String| -> Vec<String> {
        let queues = if name.contains('*') { device.rx_queues.max(1) } else { 1 };
        (0..queues).map(|queue| name.replace('*', &queue.to_string())).collect()
    };
    let all = sets.iter().flat_map(|(name, value)| {
        each_queue(named(name)).into_iter().map(move |name| (name, value.clone()))
    });
    all.into_map()
}

pub(super) fn ask<T: DeserializeOwned>(
    client: &Client,
    what: SettingsAsk,
    limit: Duration,
) -> Result<T, LabError> {
    client.ask(Ask::Settings { what }, limit)
}

/// The settings of all hosts for a trial. Dropping it undoes them.
pub struct TrialSettings {
    clients: Vec<Arc<Client>>,
    changes: Vec<Change>,
    /// Aliases of the hosts whose link was set.
    set_links: Vec<String>,
    is_undone: Cell<bool>,
}

impl TrialSettings {
    /// Changes what the variant wants, waits until all devices are up, and probes the path again if anything was set.
    ///
    /// # Errors
    /// [`LabError::NotAvailable`] with what a host refuses, or what is wrong with the path then; nothing is left changed.
    pub fn apply(hosts: &Hosts, variant: &Variant, trials: &Trials) -> Result<Self, LabError> {
        let within = whole(trials).as_duration() + AROUND + hosts.rests_take();
        let mut done = Self {
            clients: Vec::new(),
            changes: Vec::new(),
            set_links: Vec::new(),
            is_undone: Cell::new(false),
        };
        let made = done.make(hosts, variant, within.as_secs());
        if matches!(made, Err(LabError::NotAvailable { .. })) {
            // The run goes on: it must be known that nothing of this variant is left.
            done.undo()?;
        }
        made.map(|()| done)
    }

    fn make(&mut self, hosts: &Hosts, variant: &Variant, within_s: u64) -> Result<(), LabError> {
        for (host, side, sets) in hosts.wanted(variant) {
            if sets.is_empty() {
                continue;
            }
            self.clients.push(Arc::clone(&host.client));
            let made = ask(&host.client, SettingsAsk::Apply { sets, within_s }, APPLIED);
            let made: Vec<Made> = made.map_err(|error| match error {
                LabError::OnHost { host, text, hint } => {
                    LabError::NotAvailable { why: cannot_be_set(&host, &with_hint(text, &hint)) }
                }
                other => other,
            })?;
            let sets_link = made.iter().any(|made| is_link(&made.target));
            self.set_links.extend(sets_link.then(|| host.client.alias().to_owned()));
            self.changes.extend(made.into_iter().map(|made| Change {
                side,
                setting: made.target.to_string(),
                old: made.before.unwrap_or_default(),
                new: made.after.unwrap_or_default(),
            }));
        }
        let devices: Result<Vec<DeviceFacts>, LabError> = hosts.all().map(wait_for_link).collect();
        if self.clients.is_empty() {
            return devices.map(drop);
        }
        devices.and_then(|now| hosts.probe_again(variant, &now)).map_err(|error| match error {
            error @ (LabError::OnHost { .. } | LabError::CannotRun { .. }) => {
                let why = with_hint(format!("with its settings, {error}"), error.hint());
                LabError::NotAvailable { why }
            }
            other => other,
        })
    }

    /// What was changed.
    pub fn changes(&self) -> &[Change] {
        &self.changes
    }

    /// Whether speed, duplex or modes of a host's link are among it.
    pub fn sets_link_of(&self, alias: &str) -> bool {
        self.set_links.iter().any(|set| set == alias)
    }

    /// Restores what was there before.
    ///
    /// # Errors
    /// [`LabError::OnHost`] where that cannot be shown.
    pub fn undo(&self) -> Result<(), LabError> {
        self.is_undone.set(true);
        self.clients
            .iter()
            .try_for_each(|client| ask::<Value>(client, SettingsAsk::Undo, APPLIED).map(drop))
    }

    /// Restores it where the host still answers.
    pub fn give_up(&self) -> GivenUp {
        self.is_undone.set(true);
        let mut all = GivenUp::default();
        for client in &self.clients {
            let is_undone = ask::<Value>(client, SettingsAsk::Undo, APPLIED).is_ok();
            let of_state = if is_undone { &mut all.undone } else { &mut all.left };
            of_state.push(client.alias().to_owned());
            if !is_undone {
                all.within = all.within.max(client.acts_unheard() + WATCHDOG);
            }
        }
        all
    }
}

/// Hosts with settings for a trial that a lost host ended.
#[derive(Clone, Debug, Default)]
pub struct GivenUp {
    /// They are undone.
    undone: Vec<String>,
    /// The host did not answer.
    left: Vec<String>,
    /// When those are undone at the latest.
    within: Duration,
}

impl GivenUp {
    /// On which hosts settings are undone, and on which that cannot be seen, after the host `lost` was connected to again.
    pub fn text(mut self, lost: &str, again: Again) -> String {
        let mut restarted = String::new();
        if again != Again::Unseen && self.left.iter().any(|alias| alias == lost) {
            self.left.retain(|alias| alias != lost);
            if again == Again::Restarted {
                restarted = format!(", settings of {lost} ended with its restart");
            } else {
                self.undone.push(lost.to_owned());
            }
        }
        let mut text = String::new();
        if !self.undone.is_empty() {
            text += &format!(", everything is undone on {}", self.undone.join(", "));
        }
        text += &restarted;
        if !self.left.is_empty() {
            let (left, within_s) = (self.left.join(", "), self.within.as_millis().div_ceil(1_000));
            text += &format!(", settings of {left} are undone there within {within_s} s");
        }
        text
    }
}

impl Drop for TrialSettings {
    fn drop(&mut self) {
        if !self.is_undone.get() {
            for client in &self.clients {
                // A host that is lost undoes them by itself.
                let _ = ask::<Value>(client, SettingsAsk::Undo, APPLIED);
            }
        }
    }
}

fn is_link(target: &Target) -> bool {
    matches!(target, Target::Group { group: Group::LinkModes, .. })
}

fn cannot_be_set(alias: &str, why: &str) -> String {
    format!("cannot be set on {alias}: {why}")
}

/// Waits until the device of a host has a carrier: the device as it is then.
fn wait_for_link(host: &ConnectedHost) -> Result<DeviceFacts, LabError> {
    let deadline = Instant::now() + LINK_UP;
    loop {
        let ask = Ask::Device { name: host.device.name.clone() };
        let now: Option<DeviceFacts> = host.client.ask(ask, PROMPT)?;
        if let Some(device) = now.filter(|device| device.is_up) {
            return Ok(device);
        }
        if Instant::now() >= deadline {
            return Err(LabError::OnHost {
                host: host.client.alias().to_owned(),
                text: format!(
                    "{} had no carrier for {} s before a trial",
                    host.device.name,
                    LINK_UP.as_secs()
                ),
                hint: String::new(),
            });
        }
        // why: a link comes up when its other end does; the host is asked again.
        std::thread::sleep(GLANCE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::AfterLoss;
    use crate::hosts::again::UNSEEN;
    use crate::scenario::{HostShape, parse, resolve_between};

    #[test]
    fn a_host_s_own_settings_win_over_those_of_its_side() {
        let text = r#"
            question = "?"
            tune.sender = { "{dev}/mtu" = 1500, "net.core.somaxconn" = 99 }
            tune.receiver."{dev}/queues/rx-*/rps_cpus" = "1"
            tune.gen2."eth1/mtu" = 9000
            tune.sut."{dev}/queues/rx-1/rps_cpus" = "2"
        "#;
        let (file, shape) = (parse(text, "t", "t").unwrap(), HostShape::flat(2));
        let aliases = ["gen1", "gen2", "sut"];
        let made = resolve_between(&file, &[], [&shape, &shape], true, Some(&aliases)).unwrap();
        let device = DeviceFacts { name: "eth1".into(), rx_queues: 2, ..DeviceFacts::default() };
        let wanted = |alias: &str, side: Side| {
            let sets = wanted_on((alias, side), &device, &made.variants[0].tune);
            let all: Vec<String> =
                sets.iter().map(|(name, value)| format!("{name}={value}")).collect();
            all.join(" ")
        };
        assert_eq!(wanted("gen1", Side::Tx), "eth1/mtu=1500 net.core.somaxconn=99");
        assert_eq!(wanted("gen2", Side::Tx), "eth1/mtu=9000 net.core.somaxconn=99");
        let queues = "eth1/queues/rx-0/rps_cpus=1 eth1/queues/rx-1/rps_cpus=2";
        assert_eq!(wanted("sut", Side::Rx), queues);
    }

    /// Hosts of `--sender` and `--receiver` are called as the sides.
    #[test]
    fn a_host_that_is_called_as_a_side_has_the_settings_of_the_side() {
        let text = "question = \"?\"\ntune.receiver.\"net.core.somaxconn\" = 99\n";
        let (file, shape) = (parse(text, "t", "t").unwrap(), HostShape::flat(2));
        let aliases = ["receiver", "sender"];
        let made = resolve_between(&file, &[], [&shape, &shape], true, Some(&aliases)).unwrap();
        let tune = &made.variants[0].tune;
        assert!(tune.hosts.is_empty());
        let wanted = |at| wanted_on(at, &DeviceFacts::default(), tune);
        assert_eq!(wanted(("receiver", Side::Rx))["net.core.somaxconn"], "99");
        assert!(wanted(("sender", Side::Tx)).is_empty());
    }

    #[test]
    fn a_lost_host_is_said_with_its_phase_its_trial_and_what_is_undone() {
        let error = |undone: &[&str], left: &[&str], again: Again| {
            let (host, why) = ("gen2".to_owned(), "its connection ended".to_owned());
            let error = LabError::Lost { host, why, last_words: String::new() };
            let named = |all: &[&str]| all.iter().map(|alias| (*alias).to_owned()).collect();
            let settings = GivenUp { undone: named(undone), left: named(left), within: UNSEEN };
            let after = |lost: &str| AfterLoss {
                has_restarted: again == Again::Restarted,
                undone: settings.text(lost, again),
            };
            error.in_trial("measure", 9, after).to_string()
        };
        let unseen = |undone: &[&str], left: &[&str]| error(undone, left, Again::Unseen);
        let begin = "gen2 was lost in the measure phase (its connection ended); trial 9 is void";
        assert_eq!(unseen(&[], &[]), begin);
        let done = ", everything is undone on gen1, sut";
        assert_eq!(unseen(&["gen1", "sut"], &[]), format!("{begin}{done}"));
        let left = ", settings of gen2 are undone there within 30 s";
        assert_eq!(unseen(&["gen1", "sut"], &["gen2"]), format!("{begin}{done}{left}"));
        // It answers again, and nothing of a killed run is in force there.
        assert_eq!(
            error(&["gen1"], &[], Again::Clean),
            format!("{begin}, everything is undone on gen1")
        );
        let both = format!("{begin}, everything is undone on gen1, gen2");
        assert_eq!(error(&["gen1"], &["gen2"], Again::Clean), both);
        let begin = "gen2 restarted in the measure phase (its connection ended); trial 9 is void";
        assert_eq!(error(&[], &[], Again::Restarted), begin);
        let ended = ", everything is undone on gen1, settings of gen2 ended with its restart";
        assert_eq!(error(&["gen1"], &["gen2"], Again::Restarted), format!("{begin}{ended}"));
        let other = LabError::Interrupted.in_trial("measure", 9, |_| AfterLoss::default());
        assert_eq!(other.to_string(), "interrupted");
    }
}
