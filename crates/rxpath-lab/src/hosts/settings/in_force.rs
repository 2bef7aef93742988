//! Settings that are in force on hosts, from trial to trial: equal neighbours in the order keep them.
//!
//! What a trial leaves in force is undone when the next one wants something else, when a trial is void, and when the run ends,
//! however it ends. Meanwhile it holds as in a trial: while its endpoint lives, and until its watchdog's time is up.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rxpath_core::PathSide;
use rxpath_host::write::change::SettingChange;
use serde_json::Value;

use super::{APPLIED, AROUND, ask, cannot_be_set, is_link, wait_for_link};
use crate::endpoint::client::Client;
use crate::endpoint::settings::SettingsAsk;
use crate::endpoint::wire::DeviceFacts;
use crate::error::{AfterLoss, LabError, with_hint};
use crate::hosts::again::{Again, WATCHDOG};
use crate::hosts::{ConnectedHost, Hosts};
use crate::scenario::spec::{Sets, Trials, Variant};
use crate::shared::locked;
use crate::testbed::Change;
use crate::trial::config::whole;

/// What is in force on the hosts of a run.
#[derive(Default)]
pub struct InForce(Mutex<Vec<Held>>);

/// The settings of one host.
struct Held {
    client: Arc<Client>,
    /// What was asked for.
    sets: Sets,
    /// What came of it.
    changes: Vec<Change>,
    /// Whether speed, duplex or modes of the host's link are among it.
    sets_link: bool,
    /// The trial that made it.
    trial: u32,
}

/// The settings of all hosts for a trial.
pub struct TrialSettings {
    /// What was changed.
    pub changes: Vec<Change>,
    /// Aliases of the hosts whose link was set.
    set_links: Vec<String>,
}

impl TrialSettings {
    /// Those in force, for this trial.
    fn of(held: &[Held], trial: u32) -> Self {
        let of_host = |one: &Held| {
            let since_trial = (one.trial != trial).then_some(one.trial);
            let dated = move |change: Change| Change { since_trial, ..change };
            one.changes.clone().into_iter().map(dated)
        };
        let set_links = held.iter().filter(|one| one.sets_link);
        Self {
            changes: held.iter().flat_map(of_host).collect(),
            set_links: set_links.map(|one| one.client.alias().to_owned()).collect(),
        }
    }

    /// Whether speed, duplex or modes of a host's link are among it.
    pub fn sets_link_of(&self, alias: &str) -> bool {
        self.set_links.iter().any(|set| set == alias)
    }
}

impl Hosts {
    /// Sees to it that exactly the settings that the variant wants are in force for this trial, waits until all devices are up,
    /// and probes the path again if anything is set. A host that has these settings keeps them if they still read as they were
    /// made.
    ///
    /// # Errors
    /// [`LabError::NotAvailable`] with what a host refuses, or what is wrong with the path then; nothing is left changed.
    pub fn apply_settings(
        &self,
        variant: &Variant,
        trials: &Trials,
        trial: u32,
    ) -> Result<TrialSettings, LabError> {
        // Once more for the time from this trial to the next one.
        let within = whole(trials).as_duration() + AROUND + self.rests_take() + AROUND;
        let made = self.make_settings(variant, trial, within.as_secs());
        if matches!(made, Err(LabError::NotAvailable { .. })) {
            // The run goes on: it must be known that nothing of this variant is left.
            self.undo_settings()?;
        }
        made
    }

    fn make_settings(
        &self,
        variant: &Variant,
        trial: u32,
        within_s: u64,
    ) -> Result<TrialSettings, LabError> {
        let mut held = locked(&self.in_force.0);
        let wanted = self.wanted(&variant.tune);
        let keeps = keeping(&held, &wanted, within_s)?;
        let changing = wanted.into_iter().zip(keeps).filter(|(_, keeps)| !keeps);
        let changing: Vec<_> = changing.map(|(wanted, _)| wanted).collect();
        undo(&mut held, |alias| changing.iter().any(|(host, ..)| host.client.alias() == alias))?;
        for (host, side, sets) in changing.into_iter().filter(|(.., sets)| !sets.is_empty()) {
            make(&mut held, (host, side), sets, (trial, within_s))?;
        }
        let devices: Result<Vec<DeviceFacts>, LabError> = self.all().map(wait_for_link).collect();
        let settings = TrialSettings::of(&held, trial);
        if held.is_empty() {
            return devices.map(|_| settings);
        }
        devices.and_then(|now| self.probe_again(variant, &now)).map_err(|error| match error {
            error @ (LabError::OnHost { .. } | LabError::CannotRun { .. }) => {
                let why = with_hint(format!("with its settings, {error}"), error.hint());
                LabError::NotAvailable { why }
            }
            other => other,
        })?;
        Ok(settings)
    }

    /// Restores what was there before, on all hosts.
    ///
    /// # Errors
    /// [`LabError::OnHost`] where that cannot be shown; all hosts are asked.
    pub fn undo_settings(&self) -> Result<(), LabError> {
        undo(&mut locked(&self.in_force.0), |_| true)
    }

    /// Restores what can be restored after the host of this alias was lost, and finds out what became of it. `stop` ends a wait
    /// for it.
    pub fn after_loss(&self, lost: &str, stop: &AtomicBool) -> AfterLoss {
        // The others first: they wait for nothing.
        let settings = self.give_up();
        let again = self.look_again(lost, stop);
        AfterLoss { has_restarted: again == Again::Restarted, undone: settings.text(lost, again) }
    }

    /// Restores it where the host still answers.
    fn give_up(&self) -> GivenUp {
        let mut all = GivenUp::default();
        for Held { client, .. } in std::mem::take(&mut *locked(&self.in_force.0)) {
            let is_undone = ask::<Value>(&client, SettingsAsk::Undo, APPLIED).is_ok();
            let of_state = if is_undone { &mut all.undone } else { &mut all.left };
            of_state.push(client.alias().to_owned());
            if !is_undone {
                all.within = all.within.max(client.acts_unheard() + WATCHDOG);
            }
        }
        all
    }
}

/// What a host has in force, and what the next trial wants of it.
struct Turn<'a> {
    machine: usize,
    has: Option<&'a Sets>,
    wants: &'a Sets,
}

/// Which hosts keep what they have: those of which the very same is wanted, where `still_holds` says so of what they have. Hosts
/// of one machine keep it together: what one undoes may be what another one found.
fn kept<E>(
    all: &[Turn<'_>],
    mut still_holds: impl FnMut(usize) -> Result<bool, E>,
) -> Result<Vec<bool>, E> {
    let is_same = |turn: &Turn<'_>| match turn.has {
        Some(has) => has == turn.wants,
        None => turn.wants.is_empty(),
    };
    let mut changing: Vec<usize> =
        all.iter().filter(|turn| !is_same(turn)).map(|turn| turn.machine).collect();
    for (at, turn) in all.iter().enumerate() {
        if turn.has.is_some() && !changing.contains(&turn.machine) && !still_holds(at)? {
            changing.push(turn.machine);
        }
    }
    Ok(all.iter().map(|turn| !changing.contains(&turn.machine)).collect())
}

/// The same for these hosts, which are asked. What they keep holds for this time from now on.
fn keeping(
    held: &[Held],
    wanted: &[(&ConnectedHost, PathSide, Sets)],
    within_s: u64,
) -> Result<Vec<bool>, LabError> {
    let turns: Vec<Turn<'_>> = wanted
        .iter()
        .map(|(host, _, wants)| {
            let own = held.iter().find(|one| one.client.alias() == host.client.alias());
            Turn { machine: host.machine, has: own.map(|own| &own.sets), wants }
        })
        .collect();
    kept(&turns, |at| {
        let (host, _, sets) = &wanted[at];
        match ask(&host.client, SettingsAsk::Hold { sets: sets.clone(), within_s }, APPLIED) {
            // They are made again, which says what is wrong.
            Err(LabError::OnHost { .. }) => Ok(false),
            other => other,
        }
    })
}

/// Makes settings of a host. They are in the list even if they fail: what became of them may be unknown.
fn make(
    held: &mut Vec<Held>,
    (host, side): (&ConnectedHost, PathSide),
    sets: Sets,
    (trial, within_s): (u32, u64),
) -> Result<(), LabError> {
    let what = SettingsAsk::Apply { sets: sets.clone(), within_s };
    let made: Result<Vec<SettingChange>, LabError> = ask(&host.client, what, APPLIED);
    let known = made.as_deref().unwrap_or_default();
    let change = |made: &SettingChange| Change {
        side,
        setting: made.target.to_string(),
        old: made.before.clone().unwrap_or_default(),
        new: made.after.clone().unwrap_or_default(),
        since_trial: None,
    };
    held.push(Held {
        client: Arc::clone(&host.client),
        sets,
        changes: known.iter().map(change).collect(),
        sets_link: known.iter().any(|made| is_link(&made.target)),
        trial,
    });
    made.map(drop).map_err(|error| match error {
        LabError::OnHost { host, text, hint } => {
            LabError::NotAvailable { why: cannot_be_set(&host, &with_hint(text, &hint)) }
        }
        other => other,
    })
}

/// Undoes what these hosts have. All are asked; those that fail stay in the list, and the error is that of the first.
fn undo(held: &mut Vec<Held>, is_due: impl Fn(&str) -> bool) -> Result<(), LabError> {
    let mut first = None;
    held.retain(|one| {
        if !is_due(one.client.alias()) {
            return true;
        }
        match ask::<Value>(&one.client, SettingsAsk::Undo, APPLIED) {
            Ok(_) => false,
            Err(error) => {
                first.get_or_insert(error);
                true
            }
        }
    });
    first.map_or(Ok(()), Err)
}

/// Hosts with settings for a trial that a lost host ended.
#[derive(Clone, Debug, Default)]
struct GivenUp {
    /// They are undone.
    undone: Vec<String>,
    /// The host did not answer.
    left: Vec<String>,
    /// When those are undone at the latest.
    within: Duration,
}

impl GivenUp {
    /// On which hosts settings are undone, and on which that cannot be seen, after the host `lost` was connected to again.
    fn text(mut self, lost: &str, again: Again) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hosts::again::UNSEEN;

    fn sets(text: &str) -> Sets {
        let pair = |set: &str| {
            let (name, value) = set.split_once('=').unwrap();
            (name.to_owned(), value.to_owned())
        };
        text.split_whitespace().map(pair).collect()
    }

    /// Of hosts that are machines of their own, or of the one of this number: what they have, where they have anything, and what
    /// is wanted. Those of `drifted` do not hold what they have any more.
    fn decided(all: &[(usize, Option<&str>, &str)], drifted: &[usize]) -> (Vec<bool>, Vec<usize>) {
        let owned: Vec<(usize, Option<Sets>, Sets)> = all
            .iter()
            .map(|(machine, has, wants)| (*machine, has.map(sets), sets(wants)))
            .collect();
        let turns: Vec<Turn<'_>> = owned
            .iter()
            .map(|(machine, has, wants)| Turn { machine: *machine, has: has.as_ref(), wants })
            .collect();
        let mut asked = Vec::new();
        let kept = kept(&turns, |at| {
            asked.push(at);
            Ok::<bool, LabError>(!drifted.contains(&at))
        });
        (kept.unwrap(), asked)
    }

    #[test]
    fn a_host_keeps_what_it_has_if_the_very_same_is_wanted_and_it_holds() {
        let mtu = Some("eth0/mtu=9000 net.core.somaxconn=99");
        let same = "net.core.somaxconn=99 eth0/mtu=9000";
        assert_eq!(decided(&[(0, mtu, same)], &[]), (vec![true], vec![0]));
        assert_eq!(decided(&[(0, mtu, same)], &[0]), (vec![false], vec![0]));
        // Another value, fewer, more, or none: nobody need ask what holds.
        let others = ["eth0/mtu=9000 net.core.somaxconn=98", "eth0/mtu=9000", ""];
        for other in others.into_iter().chain(["a=1 eth0/mtu=9000 net.core.somaxconn=99"]) {
            assert_eq!(decided(&[(0, mtu, other)], &[]), (vec![false], vec![]), "{other}");
        }
        // Nothing is in force, and nothing is wanted.
        assert_eq!(decided(&[(0, None, "")], &[0]), (vec![true], vec![]));
        assert_eq!(decided(&[(0, None, same)], &[]), (vec![false], vec![]));
    }

    #[test]
    fn each_host_keeps_its_own_unless_another_one_of_its_machine_changes() {
        let (has, other) = (Some("a=1"), "a=2");
        let apart = [(0, has, "a=1"), (1, has, other), (2, has, "a=1")];
        assert_eq!(decided(&apart, &[]), (vec![true, false, true], vec![0, 2]));
        assert_eq!(decided(&apart, &[2]), (vec![true, false, false], vec![0, 2]));
        // The receiver's undo may write what the sender on its machine found.
        let together = [(0, has, "a=1"), (1, has, "a=1"), (0, has, other)];
        assert_eq!(decided(&together, &[]), (vec![false, true, false], vec![1]));
        let drifted = [(0, has, "a=1"), (1, has, "a=1"), (0, has, "a=1")];
        assert_eq!(decided(&drifted, &[2]), (vec![false, true, false], vec![0, 1, 2]));
        // A host without settings is no change of its machine.
        let alone = [(0, has, "a=1"), (0, None, "")];
        assert_eq!(decided(&alone, &[]), (vec![true, true], vec![0]));
    }

    #[test]
    fn a_host_that_cannot_be_asked_ends_the_decision() {
        let one = sets("a=1");
        let turns = [Turn { machine: 0, has: Some(&one), wants: &one }];
        assert!(kept(&turns, |_| Err(LabError::Interrupted)).is_err());
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
