//! From the text of a parameter file and from `--set` to values in their ranges, each checked by its key.

use std::collections::BTreeMap;

use rxpath_core::{Bytes, Count, Nanos, Rate};
use serde::Deserialize;
use serde_json::{Map, Value as Json, json};
use thiserror::Error;

use super::keys::{self, KEYS, Key, Sort};

/// Parameters that cannot be simulated.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ParameterError {
    /// The file is not TOML.
    #[error("{why}")]
    File {
        /// The parser's words, with the place.
        why: String,
    },
    /// No parameter has this name.
    #[error("`{key}` is not a parameter{near}; docs/reference/simulator.md lists all parameters")]
    Unknown {
        /// What was given.
        key: String,
        /// `: did you mean …?`, when something is near.
        near: String,
    },
    /// A value of the wrong sort, out of its range, or against another.
    #[error("`{key}` {why}")]
    Value {
        /// The parameter.
        key: String,
        /// What is wrong and what would be right.
        why: String,
    },
    /// A parameter without which nothing can be said.
    #[error("`{key}` is missing: {what} ({unit})")]
    Missing {
        /// The parameter.
        key: &'static str,
        /// What it means.
        what: &'static str,
        /// Its unit.
        unit: String,
    },
}

/// One checked value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Number(u64),
    Nice(i64),
    Ratio(f64),
    Text(String),
    Flag(bool),
    Cpus(Vec<u32>),
    /// Rate in packets/s and mean time in ns.
    States(Vec<(f64, u64)>),
}

/// What a file and `--set` gave, by key.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Values {
    given: BTreeMap<&'static str, Value>,
}

impl Values {
    /// Reads a TOML file's text.
    pub fn from_toml(text: &str) -> Result<Self, ParameterError> {
        let table: toml::Table = toml::from_str(text).map_err(|error: toml::de::Error| {
            ParameterError::File { why: crate::bounds::parameters::one_line(&error.to_string()) }
        })?;
        let mut values = Self::default();
        for (name, value) in &table {
            match value {
                toml::Value::Table(section) => {
                    for (inner, value) in section {
                        values.put(&format!("{name}.{inner}"), value)?;
                    }
                }
                value => values.put(name, value)?,
            }
        }
        Ok(values)
    }

    /// Applies one `key=value`; the value is TOML, or the text itself.
    pub fn set(&mut self, text: &str) -> Result<(), ParameterError> {
        let Some((name, value)) = text.split_once('=') else {
            return Err(ParameterError::Value {
                key: text.chars().take(80).collect(),
                why: "has no value; write key=value, for example nic.ring=1024".into(),
            });
        };
        let (name, value) = (name.trim(), value.trim());
        let as_toml = toml::from_str::<toml::Table>(&format!("v = {value}"))
            .ok()
            .and_then(|mut table| if table.len() == 1 { table.remove("v") } else { None });
        let value = as_toml.unwrap_or_else(|| toml::Value::String(value.to_owned()));
        self.put(name, &value)
    }

    /// Sets a number that a program knows, by its key.
    pub fn put_number(&mut self, key: &str, value: u64) -> Result<(), ParameterError> {
        let value = i64::try_from(value).unwrap_or(i64::MAX);
        self.put(key, &toml::Value::Integer(value))
    }

    /// Sets a CPU list.
    pub fn put_cpus(&mut self, key: &str, cpus: &[u32]) -> Result<(), ParameterError> {
        let cpus = cpus.iter().map(|cpu| toml::Value::Integer(i64::from(*cpu))).collect();
        self.put(key, &toml::Value::Array(cpus))
    }

    /// Sets a word, a text or a quantity with its unit.
    pub fn put_text(&mut self, key: &str, text: &str) -> Result<(), ParameterError> {
        self.put(key, &toml::Value::String(text.to_owned()))
    }

    /// Whether `key` was given or has a default.
    pub fn has(&self, key: &str) -> bool {
        self.given.contains_key(key) || keys::find(key).is_some_and(|key| key.default.is_some())
    }

    fn put(&mut self, name: &str, value: &toml::Value) -> Result<(), ParameterError> {
        let key = keys::find(name).ok_or_else(|| unknown(name))?;
        self.given.insert(key.name, check(key, value)?);
        Ok(())
    }

    pub(super) fn get(&self, name: &str) -> Option<Value> {
        if let Some(value) = self.given.get(name) {
            return Some(value.clone());
        }
        let key = keys::find(name)?;
        let table: toml::Table = toml::from_str(&format!("v = {}", key.default?)).ok()?;
        check(key, table.get("v")?).ok()
    }

    /// Every value, defaults among them, by name with its unit.
    pub fn to_json(&self) -> Json {
        let mut all = Map::new();
        for key in KEYS {
            let Some(value) = self.get(key.name) else { continue };
            let suffix = match key.sort {
                Sort::Time if !key.name.ends_with("_ns") => "_ns",
                Sort::Rate => "_pps",
                Sort::Count("packets") => "_packets",
                Sort::Bytes => "_bytes",
                Sort::Ratio => "_ratio",
                _ => "",
            };
            let value = match value {
                Value::Number(number) => number.into(),
                Value::Nice(nice) => nice.into(),
                Value::Ratio(ratio) => json!(ratio),
                Value::Text(text) => text.into(),
                Value::Flag(flag) => flag.into(),
                Value::Cpus(cpus) => cpus.into(),
                Value::States(states) => {
                    let each = |(rate, mean)| json!({ "rate_pps": rate, "mean_ns": mean });
                    states.into_iter().map(each).collect::<Vec<_>>().into()
                }
            };
            all.insert(format!("{}{suffix}", key.name), value);
        }
        Json::Object(all)
    }
}

fn unknown(name: &str) -> ParameterError {
    // The same last part in another section, or one that begins alike.
    let last = name.rsplit('.').next().unwrap_or(name);
    let near = KEYS.iter().map(|key| key.name).find(|known| {
        known.rsplit('.').next() == Some(last)
            || (last.get(..4).is_some_and(|start| {
                known.rsplit('.').next().is_some_and(|known| known.starts_with(start))
            }))
    });
    ParameterError::Unknown {
        key: name.chars().take(80).collect(),
        near: near.map_or_else(String::new, |near| format!(": did you mean `{near}`?")),
    }
}

fn check(key: &'static Key, value: &toml::Value) -> Result<Value, ParameterError> {
    let bad = |why: String| ParameterError::Value { key: key.name.into(), why };
    let number = |value: u64| {
        if (key.least..=key.most).contains(&value) {
            Ok(Value::Number(value))
        } else {
            let range = key.range().unwrap_or_default();
            Err(bad(format!("is {value}, and must be {range} ({})", key.unit())))
        }
    };
    match key.sort {
        Sort::Time => number(quantity::<Nanos>(value).map_err(bad)?.0),
        Sort::Rate => number(quantity::<Rate>(value).map_err(bad)?.0),
        Sort::Count(_) => number(quantity::<Count>(value).map_err(bad)?.0),
        Sort::Bytes => number(quantity::<Bytes>(value).map_err(bad)?.0),
        Sort::Ratio => {
            let ratio = value.as_float().or_else(|| value.as_integer().map(|n| n as f64));
            let ratio = ratio.ok_or_else(|| bad("is not a number".into()))?;
            let fits = ratio >= key.least as f64 / 1e3 && ratio <= key.most as f64 / 1e3;
            if fits {
                Ok(Value::Ratio(ratio))
            } else {
                Err(bad(format!(
                    "is {ratio}, and must be {} (ratio)",
                    key.range().unwrap_or_default()
                )))
            }
        }
        Sort::Nice => {
            let nice = value.as_integer().filter(|nice| (-20..=19).contains(nice));
            nice.map(Value::Nice)
                .ok_or_else(|| bad("must be a whole number from -20 to 19 (nice value)".into()))
        }
        Sort::Word(words) => {
            let word = value.as_str().filter(|word| words.contains(word));
            word.map(|word| Value::Text(word.into()))
                .ok_or_else(|| bad(format!("must be one of {}", words.join(", "))))
        }
        Sort::Flag => {
            value.as_bool().map(Value::Flag).ok_or_else(|| bad("must be true or false".into()))
        }
        Sort::Text => value
            .as_str()
            .map(|text| Value::Text(text.into()))
            .ok_or_else(|| bad("must be a quoted string".into())),
        Sort::Cpus => cpus(key, value).map(Value::Cpus),
        Sort::States => states(value).map(Value::States).map_err(bad),
    }
}

/// A plain number in the base unit or a text with a unit.
fn quantity<T: for<'a> Deserialize<'a>>(value: &toml::Value) -> Result<T, String> {
    let read: Result<T, toml::de::Error> = value.clone().try_into();
    read.map_err(|error| {
        let text = crate::bounds::parameters::one_line(error.message());
        format!("cannot be read: {text}")
    })
}

fn cpus(key: &'static Key, value: &toml::Value) -> Result<Vec<u32>, ParameterError> {
    let bad = || ParameterError::Value {
        key: key.name.into(),
        why: format!(
            "must be a list of at most {} CPU numbers from {} to {}, for example [0, 1] or \"0-1\"",
            keys::CPUS,
            key.least,
            key.most
        ),
    };
    let list: Vec<u32> = match value {
        toml::Value::Array(all) => all
            .iter()
            .map(|cpu| cpu.as_integer().and_then(|cpu| u32::try_from(cpu).ok()).ok_or_else(bad))
            .collect::<Result<_, _>>()?,
        toml::Value::Integer(cpu) => vec![u32::try_from(*cpu).map_err(|_| bad())?],
        toml::Value::String(text) if text.trim().is_empty() => Vec::new(),
        toml::Value::String(text) => text.parse::<rxpath_core::CpuList>().map_err(|_| bad())?.0,
        _ => return Err(bad()),
    };
    let fits =
        list.len() as u64 <= keys::CPUS && list.iter().all(|cpu| u64::from(*cpu) <= key.most);
    if fits { Ok(list) } else { Err(bad()) }
}

fn states(value: &toml::Value) -> Result<Vec<(f64, u64)>, String> {
    let wanted = "must be a list of 1 to 64 states like { rate = \"10k\", mean = \"5ms\" }";
    let list = value.as_array().filter(|list| (1..=64).contains(&list.len())).ok_or(wanted)?;
    let mut states = Vec::new();
    for state in list {
        let state = state.as_table().filter(|state| state.len() == 2).ok_or(wanted)?;
        let part = |name: &str| state.get(name).ok_or_else(|| wanted.to_owned());
        let rate = quantity::<Count>(part("rate")?)?.0;
        let mean = quantity::<Nanos>(part("mean")?)?.0;
        if rate > 1_000_000_000 || mean == 0 || mean > 10_000_000_000_000 {
            return Err(
                "has a state out of range: rates are 0 to 1e9 packets/s, means 1ns to 10000s"
                    .into(),
            );
        }
        states.push((rate as f64, mean));
    }
    if states.iter().all(|(rate, _)| *rate == 0.0) {
        return Err("has no state in which packets arrive".into());
    }
    Ok(states)
}
