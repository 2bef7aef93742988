//! The candidates of a search: from the rules' findings, the catalogue and the diagnosis of the start, as far as they can
//! be tried.

use std::collections::{BTreeMap, BTreeSet};

use rxpath_core::{PathSide, SortFew};
use rxpath_record::verdict::Stage;
use rxpath_tune::auto::{Candidate, Prior, Risk, array};
use rxpath_tune::plan::{LeftOut, NoStep};

use super::catalogue::Entry;
use super::ground::Advice;
use crate::error::LabError;

/// The settings of a change as they would be made, with what they risk; or why it can't be tried.
pub type Available = Result<(Vec<String>, Risk), NoStep>;

/// How a candidate comes about.
pub struct CandidateSource<'a> {
    /// What limits at the start.
    pub stage: Stage,
    /// Patterns of names and settings; without any, all are tried.
    pub only: &'a [String],
    /// What the rules ask for.
    pub advice: Advice,
    /// What else may help.
    pub entries: Vec<Entry>,
    /// Whether one of them can be tried here.
    pub available: &'a dyn Fn(&Entry) -> Result<Available, LabError>,
    /// The ratio of the objective that the model predicts, where it can.
    pub predict: &'a dyn Fn(&[String]) -> Option<f64>,
}

/// What is tried, and what is not with the reason.
#[derive(Debug, Default)]
pub struct Chosen {
    /// The likeliest first.
    pub candidates: Vec<Candidate>,
    /// The others.
    pub left_out: Vec<LeftOut>,
}

impl CandidateSource<'_> {
    /// Chooses at most as many as the arrays take.
    ///
    /// # Errors
    /// Where availability can't be found out.
    pub fn choose(self) -> Result<Chosen, LabError> {
        let mut chosen = Chosen::default();
        let mut ideas = found(&self.advice);
        for entry in &self.entries {
            match ideas.iter_mut().find(|idea| idea.sets == entry.sets) {
                Some(known) => known.stages = entry.stages,
                None => ideas.push(entry.clone()),
            }
        }
        ideas.retain(|idea| self.only.is_empty() || idea.matches(self.only));
        for idea in ideas {
            match (self.available)(&idea)? {
                Ok((sets, risk)) => chosen.candidates.push(self.candidate(idea, sets, risk)),
                Err(why) => chosen.left_out.push(LeftOut::new(idea.name, why)),
            }
        }
        chosen.candidates.sort_few_by(|a, b| b.prior.weight().total_cmp(&a.prior.weight()));
        chosen.agree();
        Ok(chosen)
    }

    fn candidate(&self, idea: Entry, sets: Vec<String>, risk: Risk) -> Candidate {
        let acts = idea.stages.contains(&self.stage);
        let is_finding = self.advice.iter().any(|(rule, _)| *rule == idea.name);
        let mut because = Vec::new();
        if is_finding {
            because.push(format!("finding {}", idea.name));
        }
        if acts {
            because.push(format!("the limit is {}", self.stage.words()));
        }
        if idea.is_default {
            because.push("the kernel's default".into());
        }
        let repairs = is_finding || idea.is_default;
        let mut prior = match (acts, repairs) {
            (true, _) => Prior::STAGE,
            (_, true) => Prior::FINDING,
            _ => Prior::NONE,
        };
        if let Some(ratio) = (self.predict)(&sets) {
            because.push(format!("the model predicts {ratio:.2} times the objective"));
            prior = Prior::predicted(ratio);
        }
        if because.is_empty() {
            because.push("the catalogue".into());
        }
        Candidate { name: idea.name, axis: None, sets, because, prior, risk, repairs }
    }
}

/// What the rules ask for; the changes of one rule are one candidate.
fn found(advice: &Advice) -> Vec<Entry> {
    let mut by_rule: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (rule, set) in advice {
        by_rule.entry(rule).or_default().push(set.clone());
    }
    by_rule.into_iter().map(|(rule, sets)| Entry::new(rule, sets, &[])).collect()
}

impl Chosen {
    /// Two candidates that give one key different values can't both be on: the likelier one stays, unless they are values
    /// of one axis, of which one is chosen later. So do as many as the arrays take.
    pub fn agree(&mut self) {
        let mut kept: Vec<Candidate> = Vec::new();
        for candidate in std::mem::take(&mut self.candidates) {
            let is_same_axis =
                |other: &Candidate| candidate.axis.is_some() && candidate.axis == other.axis;
            let rivals = kept.iter().filter(|other| !is_same_axis(other));
            let other = rivals.clone().find(|other| contradict(other, &candidate));
            let axes: BTreeSet<&str> =
                rivals.map(|other| other.axis.as_deref().unwrap_or(&other.name)).collect();
            let why = match other {
                Some(by) => {
                    format!("{} gives the same setting another value and is likelier", by.name)
                }
                None if axes.len() >= array::MOST => {
                    format!("{} others are likelier", array::MOST)
                }
                None => {
                    kept.push(candidate);
                    continue;
                }
            };
            self.left_out.push(LeftOut::new(candidate.name, why));
        }
        self.candidates = kept;
    }
}

/// Whether they give one key different values.
fn contradict(a: &Candidate, b: &Candidate) -> bool {
    let [a, mut b] = [a, b].map(|one| one.sets.iter().filter_map(|set| set.split_once('=')));
    b.any(|(key, value)| a.clone().any(|(own, other)| own == key && other != value))
}

/// Side, name and value of a setting of `tune`; `None` for other keys.
pub fn tuned_name(set: &str) -> Option<(PathSide, &str, &str)> {
    let (key, value) = set.split_once('=')?;
    let of = |prefix: &str, side| Some((side, key.strip_prefix(prefix)?, value));
    of("tune.receiver.", PathSide::Rx).or_else(|| of("tune.sender.", PathSide::Tx))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_two_values_for_one_key_the_likelier_is_tried() {
        let candidate = |name: &str, sets: &[&str]| Candidate {
            name: name.into(),
            axis: None,
            sets: sets.iter().map(|set| (*set).to_owned()).collect(),
            because: Vec::new(),
            prior: Prior::NONE,
            risk: Risk::None,
            repairs: false,
        };
        let mut chosen = Chosen {
            candidates: vec![
                candidate("a", &["x=1", "y=2"]),
                candidate("b", &["y=3"]),
                candidate("c", &["y=2", "z=1"]),
            ],
            left_out: Vec::new(),
        };
        chosen.agree();
        let names: Vec<&str> = chosen.candidates.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, ["a", "c"]);
        assert!(chosen.left_out[0].why.starts_with("a gives the same setting"));
    }

    #[test]
    fn keys_of_tune_name_a_side() {
        let set = "tune.sender.{dev}/features/tx-tcp-segmentation=off";
        assert_eq!(
            tuned_name(set),
            Some((PathSide::Tx, "{dev}/features/tx-tcp-segmentation", "off"))
        );
        assert_eq!(tuned_name("serve.batch=64"), None);
    }
}
