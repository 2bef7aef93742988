//! What a run will do on each of its hosts, as text.

use std::collections::BTreeSet;

use rxpath_core::PathSide;
use rxpath_core::number::counted;
use rxpath_tune::effects::Effect;
use rxpath_tune::plan::make::ALREADY;

use super::RunPlan;
use crate::hosts::planned::{PlannedChange, PlannedHost};

/// Each host with its device, its rights and its programs, then the settings that are changed.
pub fn text(plan: &RunPlan) -> String {
    let mut text = String::new();
    for host in &plan.hosts {
        let does = if host.side == PathSide::Tx { "sends" } else { "receives" };
        text += &format!("{} {does} by {}, {}\n", host.host, host.device, host.rights);
        for program in &host.programs {
            text += &format!("  {}: $ {}\n", program.variant, program.command);
        }
    }
    for (host, change) in all(&plan.hosts) {
        let what = if change.now.is_some() { "changed for its trials only" } else { "not changed" };
        text += &format!("{what}: {}\n", line(host, change));
    }
    text + &waits(plan).unwrap_or_default()
}

/// A line for each setting that is wanted: `sut: eth0/rings/rx = 4096 (for large), now 512; the link is lost for up to some
/// seconds`.
pub fn changes(hosts: &[PlannedHost]) -> Vec<String> {
    all(hosts).map(|(host, change)| line(host, change)).collect()
}

/// The settings of each host, with its name.
fn all(hosts: &[PlannedHost]) -> impl Iterator<Item = (&str, &PlannedChange)> {
    hosts.iter().flat_map(|host| host.changes.iter().map(move |it| (host.host.as_str(), it)))
}

fn line(host: &str, change: &PlannedChange) -> String {
    let PlannedChange { name, value, now, refused, variants, effects } = change;
    let mut text = format!("{host}: {name} = {value} (for {})", variants.join(", "));
    text += &match (now, refused) {
        (Some(now), _) => format!(", now {now}"),
        (None, Some(why)) => format!(", cannot be set: {why}"),
        (None, None) => format!(", {ALREADY}"),
    };
    for effect in effects {
        text += &format!("; {}", effect.words());
    }
    text
}

/// How many trials wait for a link that their settings take down.
fn waits(plan: &RunPlan) -> Option<String> {
    let changes = plan.hosts.iter().flat_map(|host| &host.changes);
    let waiting = changes.filter(|change| change.effects.contains(&Effect::LinkBounce));
    let variants: BTreeSet<&str> =
        waiting.flat_map(|change| &change.variants).map(String::as_str).collect();
    let trials = plan.trials.iter().filter(|trial| variants.contains(trial.variant.as_str()));
    let count = trials.count() as u64;
    (count > 0).then(|| {
        let trials = counted(count, "trial");
        format!("{trials} wait for a link to come up again, before and after: some seconds each\n")
    })
}

#[cfg(test)]
mod tests {
    use rxpath_core::Nanos;

    use super::super::PlannedTrial;
    use super::*;
    use crate::hosts::planned::PlannedProgram;

    fn change(name: &str, effects: &[Effect]) -> PlannedChange {
        PlannedChange {
            name: name.into(),
            value: "4096".into(),
            now: (!effects.is_empty()).then(|| "512".into()),
            refused: None,
            variants: vec!["large".into()],
            effects: effects.to_vec(),
        }
    }

    #[test]
    fn each_host_is_shown_with_its_programs_rights_and_side_effects() {
        let host = |name: &str, side, changes| PlannedHost {
            host: name.into(),
            side,
            device: "eth0".into(),
            rights: "as the user of your login there".into(),
            programs: vec![PlannedProgram { variant: "large".into(), command: "rxpath x".into() }],
            changes,
        };
        let trial =
            |trial, variant: &str| PlannedTrial { trial, block: 1, variant: variant.to_owned() };
        let plan = RunPlan {
            trials: vec![trial(0, "large"), trial(1, "plain"), trial(2, "large")],
            trials_at_most: 3,
            expected: Nanos(1),
            at_most: Nanos(2),
            hosts: vec![
                host("gen1", PathSide::Tx, Vec::new()),
                host(
                    "sut",
                    PathSide::Rx,
                    vec![
                        change("eth0/rings/rx", &[Effect::LinkBounce]),
                        change("net.core.somaxconn", &[]),
                        PlannedChange {
                            refused: Some("no such device".into()),
                            ..change("eth9/rings/rx", &[])
                        },
                    ],
                ),
            ],
        };
        let wanted = "gen1 sends by eth0, as the user of your login there\n\
                      \x20 large: $ rxpath x\n\
                      sut receives by eth0, as the user of your login there\n\
                      \x20 large: $ rxpath x\n\
                      changed for its trials only: sut: eth0/rings/rx = 4096 (for large), now 512; the link is lost for up \
                      to some seconds\n\
                      not changed: sut: net.core.somaxconn = 4096 (for large), already set\n\
                      not changed: sut: eth9/rings/rx = 4096 (for large), cannot be set: no such device\n\
                      2 trials wait for a link to come up again, before and after: some seconds each\n";
        assert_eq!(text(&plan), wanted);
    }
}
