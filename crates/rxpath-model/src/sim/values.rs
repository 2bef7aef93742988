//! From the text of a parameter file and from `--set` to values in their ranges, each checked by its key.

use rxpath_core::{Bytes, ItemCount, Nanos, Rate};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json, json};
use thiserror::Error;

use super::given::Values;
use super::keys::{self, ParameterKey, Sort};
use super::parameters::KEYS;

/// Parameters that cannot be: the parser's words with the place, or the parameter, what is wrong and what would be right.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct ParameterError(String);

impl Values {
    /// Reads a TOML file's text.
    pub fn from_toml(text: &str) -> Result<Self, ParameterError> {
        let table: toml::Table = read(text)?;
        let mut values = Self::default();
        for (name, value) in &table {
            match value {
                toml::Value::Table(section) => {
                    for (inner, value) in section {
                        values.insert(&format!("{name}.{inner}"), value)?;
                    }
                }
                value => values.insert(name, value)?,
            }
        }
        Ok(values)
    }

    /// Applies one `key=value`; the value is TOML, or the text itself.
    pub fn set(&mut self, text: &str) -> Result<(), ParameterError> {
        let missing = || bad(text, "has no value; write key=value, for example nic.ring=1024");
        let (name, value) = text.split_once('=').ok_or_else(missing)?;
        self.insert(name.trim(), &as_toml(value.trim()))
    }

    /// Sets a value that a program knows: a number, CPUs, a word, or a quantity with its unit.
    pub fn put(&mut self, key: &str, value: impl Serialize) -> Result<(), ParameterError> {
        let value = toml::Value::try_from(value)
            .map_err(|error| bad(key, format!("cannot be written as TOML: {error}")))?;
        self.insert(key, &value)
    }

    /// The value of `key`, given or its default, in its base unit.
    pub fn value<T: DeserializeOwned>(&self, key: &str) -> Option<T> {
        serde_json::from_value(self.get(key)?).ok()
    }

    /// The same, of a key without which nothing can be said.
    pub(super) fn needed<T: DeserializeOwned>(&self, name: &str) -> Result<T, ParameterError> {
        self.value(name).ok_or_else(|| match find(name) {
            Some(key) => bad(name, format!("is missing: {} ({})", key.what, key.unit())),
            None => unknown(name),
        })
    }

    pub(super) fn is(&self, key: &str, value: impl Into<Json>) -> bool {
        self.get(key) == Some(value.into())
    }

    /// All values as the fields that have the keys' names.
    pub(super) fn typed<T: DeserializeOwned>(&self) -> Result<T, ParameterError> {
        let all = KEYS.iter().filter_map(|key| Some((key.name.to_owned(), self.get(key.name)?)));
        serde_json::from_value(Json::Object(all.collect()))
            .map_err(|error| ParameterError(error.to_string()))
    }

    fn insert(&mut self, name: &str, value: &toml::Value) -> Result<(), ParameterError> {
        let key = find(name).ok_or_else(|| unknown(name))?;
        self.given.insert(key.name, check(key, value)?);
        Ok(())
    }

    fn get(&self, name: &str) -> Option<Json> {
        if let Some(value) = self.given.get(name) {
            return Some(value.clone());
        }
        let key = find(name)?;
        check(key, &as_toml(key.default?)).ok()
    }

    /// Every value, defaults among them, by name with its unit.
    pub fn to_json(&self) -> Json {
        let with_unit = |key: &ParameterKey| {
            Some((format!("{}{}", key.name, key.suffix()), self.get(key.name)?))
        };
        Json::Object(KEYS.iter().filter_map(with_unit).collect::<Map<_, _>>())
    }
}

/// Reads a TOML text.
pub(crate) fn read<T: DeserializeOwned>(text: &str) -> Result<T, ParameterError> {
    let told = |error: toml::de::Error| ParameterError(one_line(&error.to_string()));
    toml::from_str(text).map_err(told)
}

/// The parser's message without its drawing of the line.
fn one_line(text: &str) -> String {
    let told: Vec<&str> =
        text.lines().filter(|line| !line.contains(" |") && !line.trim().starts_with('|')).collect();
    told.join(": ").trim().to_owned()
}

/// A value as `--set` gives it: TOML, or the text itself.
fn as_toml(text: &str) -> toml::Value {
    toml::from_str::<toml::Table>(&format!("v = {text}"))
        .ok()
        .and_then(|mut table| if table.len() == 1 { table.remove("v") } else { None })
        .unwrap_or_else(|| toml::Value::String(text.to_owned()))
}

/// What is wrong with the value of `key`, or that there is none.
pub(crate) fn bad(key: &str, why: impl std::fmt::Display) -> ParameterError {
    ParameterError(format!("`{}` {why}", key.chars().take(80).collect::<String>()))
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
    let near = near.map_or_else(String::new, |near| format!(": did you mean `{near}`?"));
    bad(name, format!("is not a parameter{near}; docs/reference/simulator.md lists all parameters"))
}

/// The value in the key's base unit, if it is of the key's sort and in its range.
fn check(key: &'static ParameterKey, value: &toml::Value) -> Result<Json, ParameterError> {
    checked(key, value).map_err(|why| bad(key.name, why))
}

fn checked(key: &ParameterKey, value: &toml::Value) -> Result<Json, String> {
    let (least, most) = key.range;
    let outside = |value: &dyn std::fmt::Display| {
        format!("is {value}, and must be {} ({})", key.range().unwrap_or_default(), key.unit())
    };
    let number = |value: u64| {
        if (least..=most).contains(&value) { Ok(value.into()) } else { Err(outside(&value)) }
    };
    match key.sort {
        Sort::Time => number(quantity::<Nanos>(value)?.0),
        Sort::Rate => number(quantity::<Rate>(value)?.0),
        Sort::Count(_) => number(quantity::<ItemCount>(value)?.0),
        Sort::Bytes => number(quantity::<Bytes>(value)?.0),
        Sort::Ratio => {
            let ratio: f64 = value.clone().try_into().map_err(|_| "is not a number")?;
            let thousandths = least as f64 / 1e3..=most as f64 / 1e3;
            if thousandths.contains(&ratio) { Ok(ratio.into()) } else { Err(outside(&ratio)) }
        }
        Sort::Nice => match value.as_integer().filter(|nice| (-20..=19).contains(nice)) {
            Some(nice) => Ok(nice.into()),
            None => Err("must be a whole number from -20 to 19 (nice value)".into()),
        },
        Sort::Word(words) => match value.as_str().filter(|word| words.contains(word)) {
            Some(word) => Ok(word.into()),
            None => Err(format!("must be one of {}", words.join(", "))),
        },
        Sort::Flag => value.as_bool().map(Json::from).ok_or("must be true or false".into()),
        Sort::Text => value.as_str().map(Json::from).ok_or("must be a quoted string".into()),
        Sort::Cpus => cpus(value, most).map(Json::from).ok_or_else(|| {
            format!(
                "must be a list of at most {} CPU numbers from {least} to {most}, for example [0, 1] or \"0-1\"",
                keys::CPUS
            )
        }),
        Sort::States => states(value),
    }
}

/// A plain number in the base unit or a text with a unit.
fn quantity<T: DeserializeOwned>(value: &toml::Value) -> Result<T, String> {
    let read: Result<T, toml::de::Error> = value.clone().try_into();
    read.map_err(|error| format!("cannot be read: {}", one_line(error.message())))
}

fn cpus(value: &toml::Value, most: u64) -> Option<Vec<u32>> {
    let list: Vec<u32> = match value {
        toml::Value::Integer(cpu) => vec![u32::try_from(*cpu).ok()?],
        toml::Value::String(text) if text.trim().is_empty() => Vec::new(),
        toml::Value::String(text) => text.parse::<rxpath_core::CpuList>().ok()?.0,
        list => list.clone().try_into().ok()?,
    };
    let fits = list.len() as u64 <= keys::CPUS && list.iter().all(|cpu| u64::from(*cpu) <= most);
    fits.then_some(list)
}

fn states(value: &toml::Value) -> Result<Json, String> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct State {
        rate: ItemCount,
        mean: Nanos,
    }
    let wanted = "must be a list of 1 to 64 states like { rate = \"10k\", mean = \"5ms\" }";
    let list = value.as_array().filter(|list| (1..=64).contains(&list.len())).ok_or(wanted)?;
    let mut states = Vec::new();
    for state in list {
        let State { rate, mean } = quantity(state).map_err(|why| format!("{wanted}: {why}"))?;
        if rate.0 > 1_000_000_000 || mean.0 == 0 || mean.0 > 10_000_000_000_000 {
            return Err(
                "has a state out of range: rates are 0 to 1e9 packets/s, means 1ns to 10000s"
                    .into(),
            );
        }
        states.push(json!({ "rate_pps": rate.0 as f64, "mean_ns": mean }));
    }
    if states.iter().all(|state| state["rate_pps"] == 0.0) {
        return Err("has no state in which packets arrive".into());
    }
    Ok(states.into())
}

/// The parameter of that name.
pub fn find(name: &str) -> Option<&'static ParameterKey> {
    KEYS.iter().find(|key| key.name == name)
}

/// The table of the documentation.
pub fn table() -> String {
    let mut text =
        String::from("| key | unit | range | default | meaning |\n|---|---|---|---|---|\n");
    for key in KEYS {
        let range = key.range().unwrap_or_else(|| "-".into());
        let default = key.default.map_or_else(|| "-".into(), |text| format!("`{}`", as_toml(text)));
        text += &format!(
            "| `{}` | {} | {range} | {default} | {} |\n",
            key.name,
            key.unit().replace('|', "\\|"),
            key.what.replace('|', "\\|")
        );
    }
    text
}
