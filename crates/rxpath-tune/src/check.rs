//! Asks every rule and orders what they say.

use rxpath_core::Warning;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::facts::{Device, HostFacts};
use crate::finding::{Finding, Found};
use crate::rule::{Answer, Check, Checked, Gap, Goal, Rule, Severity};
use crate::rules;
use crate::suppress::Suppressed;

/// What a rule is asked about.
#[derive(Clone, Copy, Debug)]
pub struct Ask<'a> {
    /// The host.
    pub facts: &'a HostFacts,
    /// What the host should be good for; `None` asks for what is wrong whatever it is for.
    pub goal: Option<Goal>,
}

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
    /// Its driver; null when it is not to be seen.
    pub driver: Option<String>,
    /// Its firmware, as the driver tells it; null when it is not to be seen, empty when there is none.
    pub firmware: Option<String>,
}

/// All answers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Report {
    /// What is wrong, the largest expected effect first.
    pub findings: Vec<Finding>,
    /// What makes numbers taken here mislead.
    pub cautions: Vec<Note>,
    /// What was recorded, without a judgement.
    pub records: Vec<Note>,
    /// What is as it should be.
    pub fine: Vec<Note>,
    /// Rules that need a fact which this process may not see, and what would show it.
    pub unseen: Vec<Note>,
    /// Rules that do not apply here, and why.
    pub silent: Vec<Note>,
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
}

/// Asks every rule.
pub fn check(ask: &Ask<'_>) -> Report {
    let mut report = Report { nics: nics(ask.facts), ..Report::default() };
    for rule in rules::all() {
        report.rules_count += 1;
        if rule.weight.of(ask.goal).is_none() {
            let text = not_for(rule, ask.goal);
            report.silent.push(note(rule, None, text));
            continue;
        }
        match rule.check {
            Check::Host(judge) => report.add(ask, rule, None, judge(ask)),
            Check::Device(judge) => {
                for device in ask.facts.asked() {
                    report.add(ask, rule, Some(&device.name), judge(ask, device));
                }
            }
        }
    }
    // Stable: rules of equal weight stay in the order of the way of a packet.
    report.findings.sort_by_key(|one| std::cmp::Reverse((one.effect_size, one.severity)));
    report
}

fn nics(facts: &HostFacts) -> Vec<NicLine> {
    let line = |device: &Device| {
        let told = device.nic.driver.value();
        NicLine {
            device: device.name.clone(),
            driver: told
                .map(|told| told.driver.clone())
                .or_else(|| device.sysfs.driver.value().cloned()),
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
            Warning::new("device-lost", format!("device {name} could not be read"))
                .because(why.clone())
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

impl Report {
    fn add(&mut self, ask: &Ask<'_>, rule: &Rule, device: Option<&str>, said: Checked) {
        let place = |text| note(rule, device, text);
        match said {
            Ok(Answer::Found(found)) => {
                // `check` has asked the rule only because it has a weight.
                let Some(weight) = rule.weight.of(ask.goal) else { return };
                self.findings.push(finding(rule, device, weight, *found));
            }
            Ok(Answer::Fine(text)) => self.fine.push(place(text)),
            Ok(Answer::Silent(text)) | Err(Gap::Absent(text)) => self.silent.push(place(text)),
            Ok(Answer::Recorded(text)) => self.records.push(place(text)),
            Ok(Answer::Caution(text)) => self.cautions.push(place(text)),
            Err(Gap::Denied(needs)) => self.unseen.push(place(format!("needs {needs}"))),
        }
    }
}

fn finding(rule: &Rule, device: Option<&str>, weight: Severity, found: Found) -> Finding {
    Finding {
        id: rule.id.into(),
        device: device.map(str::to_owned),
        area: rule.area,
        severity: found.severity.unwrap_or(weight),
        observed: found.observed,
        expected: found.expected,
        why: found.why,
        effect_size: found.size.unwrap_or(rule.effect.size()),
        effect: rule.effect.text(),
        changes: found.changes,
        advice: found.advice,
        more: format!("rxpath explain {}", rule.id),
    }
}
