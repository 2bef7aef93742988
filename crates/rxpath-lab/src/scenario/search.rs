//! `[search]`: the settings among which a scenario's run searches, and what they shall make better.

use std::collections::BTreeMap;

use rxpath_core::units::ParseUnitError;
use rxpath_core::{Nanos, SortFew};
use serde::Deserialize;
use serde_json::Value;

use super::error::{At, FileError, one_of};
use super::expand::plain;
use super::file::ScenarioFile;
use super::set;
use super::source::{Positions, Table, leaves};
use super::spec::{Search, SearchAxis};

/// Time for all trials unless the file gives one.
const BUDGET: Nanos = Nanos::from_secs(1200);

/// The table as serde reads it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WrittenSearch {
    variant: Option<String>,
    objective: Option<String>,
    #[serde(default)]
    guards: Vec<String>,
    budget: Option<String>,
    #[serde(default)]
    axes: Table,
    #[serde(default)]
    together: BTreeMap<String, Vec<String>>,
}

impl WrittenSearch {
    /// The search, each of its values checked as a `--set` of that file.
    pub fn checked(self, file: &ScenarioFile, at: &Positions<'_>) -> Result<Search, FileError> {
        if let Some(name) = &self.variant {
            one_of(&at.at("search.variant"), "variant", name, &file.names())?;
        }
        if !file.compare.is_empty() {
            let right = "leave [[compare]] out: a search compares its start with what it keeps";
            return Err(FileError::new(&at.at("compare[0]"), "a search is no comparison", right));
        }
        let budget = self.budget.map(|text| {
            text.parse().map_err(|error: ParseUnitError| {
                let wrong = format!("`search.budget`: {}", error.with_example("10min"));
                FileError::new(&at.at("search.budget"), wrong, "write such as \"10min\"")
            })
        });
        let mut axes = Vec::new();
        for (name, values) in leaves(&self.axes) {
            let place = format!("search.axes.{name}");
            axes.push((axis(&name, values, &at.at(&place))?, place));
        }
        for (name, sets) in self.together {
            let place = format!("search.together.{name}");
            axes.push((SearchAxis { name, values: vec![sets] }, place));
        }
        // In the order of the file.
        axes.sort_few_by_key(|(_, place)| at.offset(place));
        for (axis, place) in &axes {
            axis.check(file, &at.at(place))?;
        }
        if axes.is_empty() {
            let right = "add such as search.axes.\"serve.rcvbuf\" = [\"1MiB\", \"4MiB\"]";
            return Err(FileError::new(&at.at("search"), "there is nothing to try", right));
        }
        Ok(Search {
            variant: self.variant,
            objective: self.objective,
            guards: self.guards,
            budget: budget.transpose()?.unwrap_or(BUDGET),
            axes: axes.into_iter().map(|(axis, _)| axis).collect(),
        })
    }
}

fn axis(name: &str, values: &Value, at: &At) -> Result<SearchAxis, FileError> {
    let wrong = |wrong: String| {
        let right = "it takes a list of the values to try, such as [\"1MiB\", \"4MiB\"]";
        Err(FileError::new(at, wrong, right))
    };
    let Some(values) = values.as_array() else {
        return wrong(format!("`{name}` is no list"));
    };
    if values.is_empty() {
        return wrong(format!("`{name}` has no values"));
    }
    let values: Vec<Vec<String>> =
        values.iter().map(|value| vec![format!("{name}={}", plain(value))]).collect();
    let again = (1..values.len()).find(|at| values[..*at].contains(&values[*at]));
    match again {
        Some(again) => wrong(format!("`{}` is listed twice", values[again][0])),
        None => Ok(SearchAxis { name: name.into(), values }),
    }
}

impl SearchAxis {
    /// Lays each value over a copy of the file.
    fn check(&self, file: &ScenarioFile, at: &At) -> Result<(), FileError> {
        self.values.iter().try_for_each(|sets| {
            let mut file = file.clone();
            sets.iter().try_for_each(|text| {
                let key = text.split('=').next().unwrap_or_default();
                if matches!(key.split('.').next(), Some("trials" | "variant")) {
                    let right = "try keys of lab, tune, background, serve or load: serve.batch";
                    return Err(FileError::new(at, format!("`{key}` cannot be searched"), right));
                }
                set::apply(&mut file, text).map_err(|error| FileError { at: at.clone(), ..error })
            })
        })
    }
}
