//! The candidates that a scenario names itself, in its `[search]`.

use rxpath_tune::auto::{Candidate, Prior};
use rxpath_tune::plan::LeftOut;

use super::candidates::{Available, Chosen};
use super::catalogue::Entry;
use crate::error::LabError;
use crate::scenario::spec::Search;

/// Every value of every axis that can be tried here.
///
/// # Errors
/// Where that can't be found out.
pub fn candidates(
    search: &Search,
    available: &dyn Fn(&Entry) -> Result<Available, LabError>,
) -> Result<Chosen, LabError> {
    let mut chosen = Chosen::default();
    for axis in &search.axes {
        for sets in &axis.values {
            // Settings that only work together have the name of their axis.
            let name = if let [only] = sets.as_slice() { only } else { &axis.name };
            let entry = Entry::new(name, sets.as_slice(), &[]);
            match available(&entry)? {
                Ok((sets, risk)) => chosen.candidates.push(Candidate {
                    name: entry.name,
                    axis: (axis.values.len() > 1).then(|| axis.name.clone()),
                    sets,
                    because: vec!["[search] of the scenario".into()],
                    // Somebody thinks that it may help, as a rule does.
                    prior: Prior::FINDING,
                    risk,
                    repairs: false,
                }),
                Err(why) => chosen.left_out.push(LeftOut::new(entry.name, why)),
            }
        }
    }
    chosen.agree();
    Ok(chosen)
}

#[cfg(test)]
mod tests {
    use rxpath_tune::auto::Risk;
    use rxpath_tune::plan::NoStep;

    use super::*;
    use crate::scenario::spec::SearchAxis;

    #[test]
    fn values_of_one_setting_share_an_axis_and_what_cannot_be_tried_is_told() {
        let made = |name: &str, values: &[&[&str]]| SearchAxis {
            name: name.into(),
            values: values
                .iter()
                .map(|sets| sets.iter().map(ToString::to_string).collect())
                .collect(),
        };
        let axes = vec![
            made("serve.batch", &[&["serve.batch=1"], &["serve.batch=64"]]),
            made("both", &[&["lab.gro=true", "serve.gro=true"]]),
            made("serve.gro", &[&["serve.gro=false"]]),
            made("lab.queues", &[&["lab.queues=9"]]),
        ];
        let search = Search { axes, ..Search::default() };
        let here = |entry: &Entry| {
            let can = entry.name != "lab.queues=9";
            let tried = can.then(|| (entry.sets.clone(), Risk::None));
            Ok(tried.ok_or(NoStep::Already))
        };
        let chosen = candidates(&search, &here).unwrap();
        let names: Vec<_> =
            chosen.candidates.iter().map(|one| (one.name.as_str(), one.axis.as_deref())).collect();
        let batch = Some("serve.batch");
        assert_eq!(names, [("serve.batch=1", batch), ("serve.batch=64", batch), ("both", None)]);
        let why: Vec<&str> = chosen.left_out.iter().map(|left| left.why.as_str()).collect();
        let likelier = "both gives the same setting another value and is likelier";
        assert_eq!(why, ["already set", likelier]);
        let is_set: Vec<bool> = chosen.left_out.iter().map(|left| left.is_set).collect();
        assert_eq!(is_set, [true, false]);
        assert!(!LeftOut::new("x", "already set").is_set, "words do not decide it");
    }
}
