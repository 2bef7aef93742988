//! The candidates of a search: from the rules' findings inside the lab, the catalogue and the diagnosis of the start,
//! as far as this kernel takes their values.

use std::collections::BTreeMap;

use rxpath_core::Side;
use rxpath_host::Outcome;
use rxpath_host::pairs::Pairs;
use rxpath_lab::LabError;
use rxpath_lab::scenario::spec::Variant;
use rxpath_record::manifest::Trial;
use rxpath_record::verdict::Stage;
use rxpath_tune::Goal;
use rxpath_tune::auto::{Candidate, Prior, Risk, array};
use rxpath_tune::plan::LeftOut;

use super::catalogue::{Entry, entries};
use super::ground::{ALREADY, Ground};

/// How a candidate comes about.
pub struct Source<'a> {
    /// The variant as it is.
    pub variant: &'a Variant,
    /// A trial of it.
    pub trial: &'a Trial,
    /// CPUs of this process.
    pub cpus: &'a [u32],
    /// Patterns of names and settings; without any, all are tried.
    pub only: &'a [String],
    /// What the lab is for.
    pub goal: Option<Goal>,
    /// Where it is tried.
    pub ground: &'a dyn Ground,
    /// Makes the variant with these keys set.
    pub with: &'a dyn Fn(&[String]) -> Result<Variant, String>,
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

/// A change with its reasons.
struct Idea {
    entry: Entry,
    because: Vec<String>,
    is_finding: bool,
}

impl Source<'_> {
    /// Chooses at most as many as the arrays take.
    ///
    /// # Errors
    /// Where the lab can't be made or read.
    pub fn choose(&self) -> Result<Chosen, LabError> {
        let mut chosen = Chosen::default();
        let mut ideas = self.found(&mut chosen)?;
        for entry in entries(self.variant, self.trial, self.cpus) {
            match ideas.iter_mut().find(|idea| idea.entry.sets == entry.sets) {
                Some(known) => known.entry.stages = entry.stages,
                None => ideas.push(Idea { entry, because: Vec::new(), is_finding: false }),
            }
        }
        ideas.retain(|idea| self.only.is_empty() || idea.entry.matches(self.only));
        for idea in ideas {
            let name = idea.entry.name.clone();
            match self.available(&idea.entry)? {
                Ok(sets) => chosen.candidates.push(self.candidate(idea, sets)),
                Err(why) => chosen.left_out.push(LeftOut { what: name, why }),
            }
        }
        chosen.candidates.sort_by(|a, b| b.prior.weight().total_cmp(&a.prior.weight()));
        chosen.agree();
        Ok(chosen)
    }

    /// What the rules find at the receiver; the changes of one rule are one candidate.
    fn found(&self, chosen: &mut Chosen) -> Result<Vec<Idea>, LabError> {
        let (advice, left_out) = self.ground.advice(self.goal)?;
        chosen.left_out.extend(left_out);
        let mut by_rule: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (rule, set) in advice {
            by_rule.entry(rule).or_default().push(set);
        }
        let idea = |(rule, sets): (String, Vec<String>)| Idea {
            entry: Entry {
                name: rule.clone(),
                sets,
                stages: &[],
                risk: Risk::None,
                is_default: false,
            },
            because: vec![format!("finding {rule}")],
            is_finding: true,
        };
        Ok(by_rule.into_iter().map(idea).collect())
    }

    /// The settings with the values that this kernel gives them, or why it can't be tried.
    fn available(&self, entry: &Entry) -> Result<Result<Vec<String>, String>, LabError> {
        let settings: Vec<_> = entry.sets.iter().filter_map(|set| tuned_name(set)).collect();
        let mut tried = self.ground.attempt(&settings)?.into_iter();
        let mut sets = Vec::new();
        let mut changes = false;
        for set in &entry.sets {
            let Some((_, name, value)) = tuned_name(set) else {
                (changes, sets) = (true, [sets, vec![set.clone()]].concat());
                continue;
            };
            let change = match tried.next() {
                Some(Ok(change)) => change,
                // One of several that is so already needs no change.
                Some(Err(why)) if why == ALREADY => {
                    sets.push(set.clone());
                    continue;
                }
                Some(Err(why)) => return Ok(Err(why)),
                None => continue,
            };
            let after = change.after.clone().unwrap_or_default();
            match change.outcome {
                Outcome::Applied | Outcome::Pending { .. } => sets.push(set.clone()),
                Outcome::Rounded => {
                    let key = set.split_once('=').map_or(set.as_str(), |(key, _)| key);
                    sets.push(format!("{key}={}", value_of(&after)));
                }
                Outcome::Ignored => {
                    return Ok(Err(format!(
                        "the kernel accepts {name}={value} and leaves {after}"
                    )));
                }
                Outcome::Refused { why } => {
                    return Ok(Err(format!("{name}={value} is refused: {why}")));
                }
            }
            changes |= change.before != change.after;
        }
        if !changes {
            return Ok(Err(ALREADY.into()));
        }
        Ok(match (self.with)(&sets) {
            Ok(variant) => match &variant.not_available {
                Some(why) => Err(why.clone()),
                None if variant == *self.variant => Err(ALREADY.into()),
                None => Ok(sets),
            },
            Err(why) => Err(why),
        })
    }

    fn candidate(&self, idea: Idea, sets: Vec<String>) -> Candidate {
        let verdict = self.trial.verdict.as_ref();
        let stage = verdict.map_or(Stage::Unknown, |verdict| verdict.stage);
        let acts = idea.entry.stages.contains(&stage);
        let mut because = idea.because;
        if acts {
            because.push(format!("the limit is {}", stage.words()));
        }
        if idea.entry.is_default {
            because.push("the kernel's default".into());
        }
        let mut prior = match (acts, idea.is_finding || idea.entry.is_default) {
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
        Candidate { name: idea.entry.name, sets, because, prior, risk: idea.entry.risk }
    }
}

impl Chosen {
    /// Two candidates that give one key different values can't both be on: the likelier one stays. So do as many as
    /// the arrays take.
    fn agree(&mut self) {
        let mut values: BTreeMap<String, (String, String)> = BTreeMap::new();
        let mut kept: Vec<Candidate> = Vec::new();
        for candidate in std::mem::take(&mut self.candidates) {
            let parts = || candidate.sets.iter().filter_map(|set| set.split_once('='));
            let other = parts().find_map(|(key, value)| {
                values.get(key).filter(|(known, _)| known != value).map(|(_, by)| by.clone())
            });
            let why = match other {
                Some(by) => format!("{by} gives the same setting another value and is likelier"),
                None if kept.len() == array::MOST => {
                    format!("{} others are likelier", array::MOST)
                }
                None => {
                    for (key, value) in parts() {
                        values.insert(key.into(), (value.into(), candidate.name.clone()));
                    }
                    kept.push(candidate);
                    continue;
                }
            };
            self.left_out.push(LeftOut { what: candidate.name, why });
        }
        self.candidates = kept;
    }
}

/// Side, name and value of a setting of `tune`; `None` for other keys.
pub fn tuned_name(set: &str) -> Option<(Side, &str, &str)> {
    let (key, value) = set.split_once('=')?;
    let receiver = key.strip_prefix("tune.receiver.").map(|name| (Side::Rx, name));
    let (side, name) =
        receiver.or(key.strip_prefix("tune.sender.").map(|name| (Side::Tx, name)))?;
    Some((side, name, value))
}

/// The value in `name=value` of a group, or all of it.
fn value_of(after: &str) -> String {
    let pairs = after.parse::<Pairs>().ok();
    let only = pairs.as_ref().and_then(|pairs| pairs.iter().next());
    only.map_or_else(|| after.to_owned(), |(_, value)| value.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_two_values_for_one_key_the_likelier_is_tried() {
        let candidate = |name: &str, sets: &[&str]| Candidate {
            name: name.into(),
            sets: sets.iter().map(|set| (*set).to_owned()).collect(),
            because: Vec::new(),
            prior: Prior::NONE,
            risk: Risk::None,
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
        assert_eq!(tuned_name(set), Some((Side::Tx, "{dev}/features/tx-tcp-segmentation", "off")));
        assert_eq!(tuned_name("serve.batch=64"), None);
        assert_eq!((value_of("rx=512"), value_of("50000")), ("512".into(), "50000".into()));
    }
}
