//! Settings of the hosts that a variant wants: what would be changed, and the change for a trial.

use std::time::{Duration, Instant};

use rxpath_core::{IntoMap, PathSide};
use rxpath_host::write::change::SettingChange;
use rxpath_host::{Group, Target};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{ConnectedHost, Hosts};
use crate::endpoint::client::{Client, PROMPT};
use crate::endpoint::settings::{PlannedSettings, SettingsAsk};
use crate::endpoint::wire::{DeviceFacts, HostAsk};
use crate::error::{LabError, with_hint};
use crate::scenario::spec::{Resolved, Sets, Tune};
use crate::testbed::tuned::DEVICE_WORD;

mod in_force;

pub use self::in_force::{InForce, TrialSettings};

/// How long settings may take that make a device's queues again.
const APPLIED: Duration = Duration::from_secs(60);
/// How long a link may take to have a carrier again.
const LINK_UP: Duration = Duration::from_secs(20);
/// Time between two readings of a link.
const GLANCE: Duration = Duration::from_millis(50);
/// What a trial takes at most beyond its load: its programs start and end, its counters come to rest.
const AROUND: Duration = Duration::from_secs(60);

impl Hosts {
    /// The settings that are wanted of each host.
    fn wanted(&self, tune: &Tune) -> Vec<(&ConnectedHost, PathSide, Sets)> {
        let all = self.seats().map(|(seat, host)| (host, seat.side));
        all.map(|(host, side)| (host, side, wanted_of(host, side, tune))).collect()
    }

    /// Whether a run changes settings of its hosts.
    pub fn are_changed(&self, resolved: &Resolved) -> bool {
        let mut wanted = resolved.available().flat_map(|variant| self.wanted(&variant.tune));
        wanted.any(|(_, _, sets)| !sets.is_empty())
    }

    /// What the rules of `rxpath check` would change on the first receiver's host. What a trial left in force is undone before.
    ///
    /// # Errors
    /// Of the host.
    pub fn advice(&self, goal: Option<String>) -> Result<PlannedSettings, LabError> {
        self.undo_settings()?;
        let device = self.receiver().device.name.clone();
        // Its counters are watched for a moment.
        ask(&self.receiver().client, SettingsAsk::Advise { device, goal }, APPLIED)
    }

    /// What would be changed on the first receiver's host for these names and values, `{dev}` for its device. What a trial left in
    /// force is undone before.
    ///
    /// # Errors
    /// Of the host.
    pub fn plan(&self, sets: &Sets) -> Result<PlannedSettings, LabError> {
        self.undo_settings()?;
        let sets = on_device(&self.receiver().device, sets);
        ask(&self.receiver().client, SettingsAsk::Plan { sets }, PROMPT)
    }

    /// Changes a setting on the first host of a side, reads it back and undoes it: what came of it, or why it cannot be
    /// made. What a trial left in force is undone before.
    ///
    /// # Errors
    /// Of a host that no longer answers, or cannot undo it.
    pub fn attempt(
        &self,
        side: PathSide,
        name: &str,
        value: &str,
    ) -> Result<Result<Vec<SettingChange>, String>, LabError> {
        self.undo_settings()?;
        let host = &self.of(side)[0];
        let sets = on_device(&host.device, &Sets::from([(name.to_owned(), value.to_owned())]));
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

    /// Leaves out the variants whose settings a host does not take; nothing is changed. What hosts would have had for the sake of
    /// such a variant alone, they do not have for the others.
    ///
    /// # Errors
    /// Of a host that no longer answers.
    pub fn check_settings(&self, resolved: &mut Resolved) -> Result<(), LabError> {
        resolved.leave_out_refused(|tune| self.refused(tune))
    }

    /// Why a host does not take these settings, if one does not.
    fn refused(&self, tune: &Tune) -> Result<Option<String>, LabError> {
        for (host, _, sets) in self.wanted(tune).into_iter().filter(|(.., sets)| !sets.is_empty()) {
            let refused = planned(host, sets)?.refused;
            if !refused.is_empty() {
                return Ok(Some(cannot_be_set(host.client.alias(), &refused)));
            }
        }
        Ok(None)
    }
}

/// What a host would change, or why it cannot.
pub(super) fn planned(host: &ConnectedHost, sets: Sets) -> Result<PlannedSettings, LabError> {
    match ask(&host.client, SettingsAsk::Plan { sets }, PROMPT) {
        Err(LabError::OnHost { text, hint, .. }) => {
            Ok(PlannedSettings { refused: with_hint(text, &hint), ..PlannedSettings::default() })
        }
        other => other,
    }
}

/// The settings that are wanted of a host of a side.
pub(super) fn wanted_of(host: &ConnectedHost, side: PathSide, tune: &Tune) -> Sets {
    wanted_on((host.client.alias(), side), &host.device, tune)
}

/// Those of its side, and over them its own.
fn wanted_on((alias, side): (&str, PathSide), device: &DeviceFacts, tune: &Tune) -> Sets {
    let of_side = if side == PathSide::Tx { &tune.sender } else { &tune.receiver };
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

fn ask<T: DeserializeOwned>(
    client: &Client,
    what: SettingsAsk,
    limit: Duration,
) -> Result<T, LabError> {
    client.ask(HostAsk::Settings { what }, limit)
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
        let ask = HostAsk::Device { name: host.device.name.clone() };
        let now: Option<DeviceFacts> = host.client.ask(ask, PROMPT)?;
        if let Some(device) = now.filter(|device| device.is_up) {
            return Ok(device);
        }
        if Instant::now() >= deadline {
            let (name, waited_s) = (&host.device.name, LINK_UP.as_secs());
            let text = format!("{name} had no carrier for {waited_s} s before a trial");
            return Err(LabError::on_host(host.client.alias(), text));
        }
        // why: a link comes up when its other end does; the host is asked again.
        std::thread::sleep(GLANCE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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
        let wanted = |alias: &str, side: PathSide| {
            let sets = wanted_on((alias, side), &device, &made.variants[0].tune);
            let all: Vec<String> =
                sets.iter().map(|(name, value)| format!("{name}={value}")).collect();
            all.join(" ")
        };
        assert_eq!(wanted("gen1", PathSide::Tx), "eth1/mtu=1500 net.core.somaxconn=99");
        assert_eq!(wanted("gen2", PathSide::Tx), "eth1/mtu=9000 net.core.somaxconn=99");
        let queues = "eth1/queues/rx-0/rps_cpus=1 eth1/queues/rx-1/rps_cpus=2";
        assert_eq!(wanted("sut", PathSide::Rx), queues);
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
        assert_eq!(wanted(("receiver", PathSide::Rx))["net.core.somaxconn"], "99");
        assert!(wanted(("sender", PathSide::Tx)).is_empty());
    }
}
