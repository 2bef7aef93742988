//! Asks every rule and orders what they say.

use rxpath_core::{SortFew, Warning};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::answer::{Answer, Checked, Found};
use crate::facts::{self, Device, Gap, HostFacts};
use crate::finding::{Finding, Suppressed};
use crate::rule::{Ask, Check, Rule};
use crate::rules;
use crate::unjudged::{Unjudged, UnjudgedCounts};
use crate::weight::{Goal, Severity};

/// An answer that is no finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Note {
    /// The rule.
    pub id: String,
    /// The device, for rules about devices.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub device: Option<String>,
    /// What it said.
    pub text: String,
}

/// A network device with hardware behind it: what makes two hosts alike.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NicLine {
    /// Its name.
    pub device: String,
    /// Its driver; null when it is not visible.
    pub driver: Option<String>,
    /// Its firmware, as the driver reports it; null when it is not visible, empty when there is none.
    pub firmware: Option<String>,
}

/// All answers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Report {
    /// What is wrong: the worst for the goal first, then the largest expected effect for it.
    pub findings: Vec<Finding>,
    /// What makes numbers taken here mislead.
    pub cautions: Vec<Note>,
    /// What was recorded, without a judgement.
    pub records: Vec<Note>,
    /// What is as it should be.
    pub fine: Vec<Note>,
    /// Rules that need a fact which this process may not see, and what would show it.
    pub unseen: Vec<Note>,
    /// Rules that do not apply here, by what was read.
    pub silent: Vec<Note>,
    /// Rules whose facts are absent, not reported or not readable: neither fine nor wrong.
    #[serde(default)]
    pub unjudged: Vec<Unjudged>,
    /// Findings that the configuration suppresses, with its reason.
    pub suppressed: Vec<Suppressed>,
    /// Number of rules.
    pub rules_count: u32,
    /// The host's NICs.
    #[serde(default)]
    pub nics: Vec<NicLine>,
}

impl Report {
    /// The worst severity among the findings.
    pub fn worst(&self) -> Option<Severity> {
        self.findings.iter().map(|finding| finding.severity).max()
    }

    /// Whether a rule could judge anything at all: without one, that nothing was found means nothing.
    pub fn has_judged(&self) -> bool {
        !(self.findings.is_empty() && self.fine.is_empty() && self.suppressed.is_empty())
    }

    /// How many rules could not be judged, by why: those that answered on no device.
    pub fn unjudged_rules(&self) -> UnjudgedCounts {
        let notes = [&self.fine, &self.records, &self.cautions, &self.silent];
        let answered = notes
            .into_iter()
            .flatten()
            .map(|note| note.id.as_str())
            .chain(self.findings.iter().map(|finding| finding.id.as_str()))
            .chain(self.suppressed.iter().map(|one| one.finding.id.as_str()))
            .collect();
        let unseen = self.unseen.iter().map(|note| note.id.as_str());
        UnjudgedCounts::of(&self.unjudged, unseen, &answered)
    }

    fn add(&mut self, ask: &Ask<'_>, rule: &Rule, device: Option<&str>, said: Checked) {
        let place = |text| note(rule, device, text);
        match said {
            Ok(Answer::Found(found)) => {
                // `check` has asked the rule only because it has a weight.
                let Some(weight) = rule.weight.of(ask.goal) else { return };
                self.findings.push(finding(rule, device, (ask.goal, weight), *found));
            }
            Ok(Answer::Fine(text)) => self.fine.push(place(text)),
            Ok(Answer::Silent(text)) => self.silent.push(place(text)),
            Err(Gap::Absent(text)) => self.unjudged.push(Unjudged::new(rule.id, device, text)),
            Ok(Answer::Recorded(text)) => self.records.push(place(text)),
            Ok(Answer::Caution(text)) => self.cautions.push(place(text)),
            Err(Gap::Denied(needs)) => self.unseen.push(place(format!("needs {needs}"))),
        }
    }
}

/// Asks every rule.
pub fn check(ask: &Ask<'_>) -> Report {
    let mut report = Report { nics: nics(ask.facts), ..Report::default() };
    for rule in rules::all() {
        report.rules_count += 1;
        if rule.weight.of(ask.goal).is_none() {
            report.silent.push(note(rule, None, not_for(rule, ask.goal)));
            continue;
        }
        match rule.check {
            Check::Host(judge) => report.add(ask, rule, None, judge(ask)),
            check => {
                if ask.facts.devices.is_empty()
                    && let Err(why) = ask.facts.all_devices()
                {
                    report.add(ask, rule, None, Err(why));
                }
                for device in ask.facts.asked() {
                    if let Some(said) = check.of_device(ask, device) {
                        report.add(ask, rule, Some(&device.name), said);
                    }
                }
            }
        }
    }
    // Stable: findings of equal weight stay in the order of the receive path.
    report.findings.sort_few_by_key(|one| std::cmp::Reverse((one.severity, one.effect_size)));
    report
}

fn nics(facts: &HostFacts) -> Vec<NicLine> {
    let line = |device: &Device| {
        let told = device.nic.driver.value();
        NicLine {
            device: device.name.clone(),
            driver: told
                .map(|told| told.driver.clone())
                .or_else(|| device.sysfs.steering.driver.value().cloned()),
            firmware: told.map(|told| told.firmware.clone()),
        }
    };
    facts.nics().map(line).collect()
}

/// What was lost while reading, as warnings.
pub fn warnings(facts: &HostFacts) -> Vec<Warning> {
    facts
        .lost_devices
        .iter()
        .map(|(name, why)| {
            let what = match name.as_str() {
                facts::NO_DEVICES => "the network devices could not be listed".to_owned(),
                facts::NETLINK => "netlink did not answer".to_owned(),
                name => format!("device {name} could not be read"),
            };
            Warning::new("device-lost", what).because(why.clone())
        })
        .collect()
}

fn not_for(rule: &Rule, goal: Option<Goal>) -> String {
    let goals: Vec<&str> = rule.weight.goals().into_iter().map(Goal::as_str).collect();
    match goal {
        Some(goal) => format!("says nothing about {goal}; judged for {}", goals.join(", ")),
        None => format!("judged for a goal only: --goal {}", goals.join("|")),
    }
}

fn note(rule: &Rule, device: Option<&str>, text: String) -> Note {
    Note { id: rule.id.into(), device: device.map(str::to_owned), text }
}

fn finding(
    rule: &Rule,
    device: Option<&str>,
    (goal, weight): (Option<Goal>, Severity),
    found: Found,
) -> Finding {
    let severity = found.severity.unwrap_or(weight);
    let size = found.size.or(rule.weight.size(goal)).unwrap_or(rule.size);
    let or = |own: String, usual: &str| if own.is_empty() { usual.to_owned() } else { own };
    Finding {
        id: rule.id.into(),
        device: device.map(str::to_owned),
        area: rule.area,
        severity: found.at_most.map_or(severity, |most| severity.min(most)),
        observed: found.observed,
        expected: or(found.expected, rule.finding_expected),
        why: or(found.why, rule.finding_why),
        effect_size: size,
        effect: rule.effect(),
        changes: found.changes,
        advice: found.advice,
        counted: found.counted,
        more: format!("rxpath explain {}", rule.id),
    }
}
