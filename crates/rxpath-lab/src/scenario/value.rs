//! One value, checked against the form of its key and brought into the base unit.

use std::str::FromStr;

use rxpath_core::{BitRate, Bytes, ItemCount, Nanos, ParseUnitError, Rate, SchedClass};
use rxpath_remote::inventory::is_alias;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::cpus::CpuExpr;
use super::error::{At, FileError, nearest};
use super::key::{Key, Kind, OF_HTTP};
use super::on_hosts::OnHosts;
use super::reworded::reworded;
use super::source::{Table, leaves};
use super::spec::{Parser, Qdisc};

/// Rulesets and commands longer than this are refused: they belong in a file of their own.
const MAX_TEXT: usize = 1 << 20;

/// A checked value with what was written and where.
#[derive(Clone, Debug)]
pub(super) struct Setting {
    /// As the section's struct reads it. `null` is `"default"`: as if the key had not been written.
    pub value: Value,
    /// As it was written, for results.
    pub shown: Value,
    pub at: At,
}

impl Kind {
    /// What a value of this kind looks like.
    pub fn wanted(self) -> String {
        match self {
            Self::Bool => "true or false".into(),
            Self::Int(min, max) => format!("a whole number from {min} to {max}"),
            Self::Signed(min, max) => format!("a whole number from {min} to {max}"),
            Self::Count(min, _) => format!("a count of at least {min} such as \"10k\""),
            Self::Rate(min, _) => format!("a rate of at least {min} such as \"50kpps\""),
            Self::BitRate(min, _) => {
                format!("bits per second, at least {min}, such as \"2.5Gbit\"")
            }
            Self::Bytes(min, max) => {
                format!("a size from {min} to {max} bytes such as 1400 or \"64KiB\"")
            }
            Self::Nanos(min, max) => {
                let such_as = duration_within(min, max);
                format!("a duration from {} to {} such as \"{such_as}\"", Nanos(min), Nanos(max))
            }
            Self::Ratio(min, max) => format!("a share from {min} to {max} such as 0.05"),
            Self::Choice(words) => format!("one of \"{}\"", words.join("\", \"")),
            Self::Engine(of_udp) => {
                format!("one of \"{}\"", [&OF_HTTP[..], &of_udp()[..]].concat().join("\", \""))
            }
            Self::SchedClass => {
                "a scheduler class: \"other\", \"batch\", \"idle\", \"fifo:10\" or \"rr:10\"".into()
            }
            Self::Cpus => "a CPU list such as \"0,2-3\" or a role such as \"@receiver\"".into(),
            Self::OneCpu => "one CPU such as 1 or \"@softirq\"".into(),
            Self::Text => "a text in quotes".into(),
            Self::Lines => "a list of texts".into(),
            Self::Command => "a command: one text, or a list of words".into(),
            Self::OnHosts => "\"receivers\", \"senders\", \"all\" or a list of hosts".into(),
            Self::Names => "a table such as { \"net.ipv4.ip_forward\" = 1 }".into(),
            Self::Qdisc => {
                "a table such as { kind = \"tbf\", rate = \"5Mbit\", burst = 5000, limit = \
                            20000 }, { kind = \"pfifo\", limit = 100 } or { kind = \"fq\" }"
                    .into()
            }
            Self::Parser => {
                "\"iperf3\", \"wrk\", \"none\", { json = { metric = \"/pointer\" } } or \
                             { regex = \"(?P<metric>[0-9]+)\" }"
                    .into()
            }
        }
    }

    /// A value in the base unit, as the section's struct reads it.
    fn normal(self, value: &Value) -> Result<Value, Why> {
        Ok(match self {
            Self::Bool if value.is_boolean() => value.clone(),
            Self::Int(min, max) => whole(value, min.into(), max.into())?,
            Self::Signed(min, max) => whole(value, min.into(), max.into())?,
            Self::Count(min, max) => quantity::<ItemCount>(value, min, max, |count| count.0)?,
            Self::Rate(min, max) => quantity::<Rate>(value, min, max, |rate| rate.0)?,
            Self::BitRate(min, max) => quantity::<BitRate>(value, min, max, |rate| rate.0)?,
            Self::Bytes(min, max) => quantity::<Bytes>(value, min, max, |bytes| bytes.0)?,
            // Core units read a bare number as nanoseconds; in a file that is a forgotten unit.
            Self::Nanos(min, _) if value.is_number() && !(min == 0 && *value == 0) => {
                return Err(Why::new(format!(": the number {value} has no unit")));
            }
            Self::Nanos(min, max) => quantity::<Nanos>(value, min, max, |nanos| nanos.0)?,
            Self::Ratio(min, max) => match value.as_f64() {
                Some(share) if (min..=max).contains(&share) => share.into(),
                Some(_) => return Err(Why::range(value)),
                None => return Err(Why::kind(value)),
            },
            Self::Choice(words) => choice(value, words)?,
            Self::Engine(of_udp) => choice(value, &[&OF_HTTP[..], &of_udp()[..]].concat())?,
            Self::SchedClass => {
                let class = text(value)?.parse::<SchedClass>().map_err(|error| misread(&error))?;
                class.to_string().into()
            }
            Self::Cpus => cpus(value)?.0,
            Self::OneCpu => match cpus(value)? {
                (list, 1) => list,
                (_, count) => return Err(Why::range(format!("{count} CPUs"))),
            },
            Self::Text => match text(value)? {
                text if is_blank(text) => return Err(Why::blank()),
                text => text.into(),
            },
            Self::Lines => match lines(value)? {
                all if all.iter().any(|line| is_blank(line)) => return Err(Why::blank()),
                all => all.into(),
            },
            Self::Command => command(value)?.into(),
            Self::Names => names(value)?.into(),
            Self::OnHosts if value.is_array() => aliases(value)?,
            Self::OnHosts => choice(value, OnHosts::WORDS)?,
            Self::Qdisc => typed::<Qdisc>(value).map(|_| value.clone())?,
            Self::Parser => parser(value)?,
            Self::Bool => return Err(Why::kind(value)),
        })
    }
}

/// An example of a duration that a key with these bounds takes.
fn duration_within(min: u64, max: u64) -> Nanos {
    let examples = [Nanos(10_000), Nanos::from_millis(10), Nanos::from_secs(1)];
    examples.into_iter().find(|one| (min..=max).contains(&one.0)).unwrap_or(Nanos(min))
}

/// Checks a value against its key, of which `name` is the name: each host has its own.
pub(super) fn check(key: &Key, name: &str, value: &Value, at: &At) -> Result<Setting, FileError> {
    let normal = if value == "default" { Ok(Value::Null) } else { key.kind.normal(value) };
    let setting = |normal| Setting { value: normal, shown: value.clone(), at: at.clone() };
    normal.map(setting).map_err(|why| {
        let right = why.right.unwrap_or_else(|| format!("it takes {}", key.kind.wanted()));
        FileError::new(at, format!("`{name}`{}", why.wrong), right)
    })
}

/// Why a value does not fit.
struct Why {
    /// What follows the key's name.
    wrong: String,
    /// What would be right, when it is not the form of the key.
    right: Option<String>,
}

impl Why {
    fn new(wrong: String) -> Self {
        Self { wrong, right: None }
    }

    fn range(value: impl std::fmt::Display) -> Self {
        Self::new(format!(" is {value}"))
    }

    fn kind(value: &Value) -> Self {
        Self::range(kind(value))
    }

    /// An empty text says nothing, and no option is made of it.
    fn blank() -> Self {
        let right =
            "write a text, or \"default\" instead of the whole value: as if the key were not there";
        Self::because(("a text is empty".into(), right.into()))
    }

    fn because((wrong, right): (String, String)) -> Self {
        Self { wrong: format!(": {wrong}"), right: Some(right) }
    }
}

/// What a value is, in the words of an error message.
pub(super) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "no finite number",
        Value::Bool(_) => "true/false",
        Value::Number(number) if number.is_f64() => "a number with a fraction",
        Value::Number(_) => "a whole number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "a table",
    }
}

fn whole(value: &Value, min: i128, max: i128) -> Result<Value, Why> {
    let number = value.as_i64().map(i128::from).or(value.as_u64().map(i128::from));
    match number {
        Some(number) if (min..=max).contains(&number) => Ok(value.clone()),
        Some(number) => Err(Why::range(number)),
        None => Err(Why::kind(value)),
    }
}

/// Its own example follows in what would be right.
fn misread(error: &ParseUnitError) -> Why {
    let error = error.to_string();
    Why::new(format!(": {}", error.split("; for example").next().unwrap_or(&error)))
}

fn quantity<T: FromStr<Err = ParseUnitError>>(
    value: &Value,
    min: u64,
    max: u64,
    get: fn(T) -> u64,
) -> Result<Value, Why> {
    let Some(text) = value.as_str() else { return whole(value, min.into(), max.into()) };
    let number = text.parse().map(get).map_err(|error| misread(&error))?;
    if (min..=max).contains(&number) { Ok(number.into()) } else { Err(Why::range(text)) }
}

fn text(value: &Value) -> Result<&str, Why> {
    match value.as_str().ok_or_else(|| Why::kind(value))? {
        text if text.len() > MAX_TEXT => Err(Why::range(format!("{} bytes long", text.len()))),
        text if text.contains('\0') => Err(Why::range("a text with a NUL byte")),
        text => Ok(text),
    }
}

fn is_blank(text: &str) -> bool {
    text.trim().is_empty()
}

fn choice(value: &Value, words: &[&str]) -> Result<Value, Why> {
    let text = text(value)?;
    if words.contains(&text) {
        return Ok(value.clone());
    }
    let right =
        nearest(text, words.iter().copied()).map(|near| format!("did you mean \"{near}\"?"));
    Err(Why { wrong: format!(": \"{text}\" is no choice"), right })
}

/// A list of CPUs and roles as one text, and how many CPUs it names.
fn cpus(value: &Value) -> Result<(Value, usize), Why> {
    let one = |value: &Value| match value {
        Value::String(text) => Ok(text.clone()),
        Value::Number(number) if !number.is_f64() => Ok(number.to_string()),
        _ => Err(Why::kind(value)),
    };
    let written = match value {
        Value::Array(parts) => parts.iter().map(one).collect::<Result<Vec<_>, _>>()?.join(","),
        value => one(value)?,
    };
    let list = CpuExpr::parse(&written).map_err(Why::because)?;
    Ok((written.into(), list.wished()))
}

fn lines(value: &Value) -> Result<Vec<String>, Why> {
    let parts = value.as_array().ok_or_else(|| Why::kind(value))?;
    parts.iter().map(|part| text(part).map(str::to_owned)).collect()
}

/// A list of hosts by their aliases; which there are is not known yet.
fn aliases(value: &Value) -> Result<Value, Why> {
    let all = lines(value)?;
    if all.is_empty() {
        return Err(Why::range("an empty list"));
    }
    match all.iter().find(|alias| !is_alias(alias)) {
        Some(wrong) => Err(Why::new(format!(": \"{}\" is no alias", wrong.escape_debug()))),
        None => Ok(all.into()),
    }
}

fn command(value: &Value) -> Result<Vec<String>, Why> {
    let words = match value {
        // As a shell splits it: "sh -c 'echo a b'" is three words.
        Value::String(_) => shlex::split(text(value)?).ok_or_else(|| {
            let right = "close it, or write a list of words";
            Why::because(("a quote is open at its end".into(), right.into()))
        })?,
        _ => lines(value)?,
    };
    // The first word is the program.
    if words.first().is_none_or(String::is_empty) { Err(Why::range("empty")) } else { Ok(words) }
}

/// `net.ipv4.x = 1` without quotes is a table in a table: its names are joined again.
fn names(value: &Value) -> Result<Table, Why> {
    let table = value.as_object().ok_or_else(|| Why::kind(value))?;
    let text = |value: &Value| match value {
        Value::String(_) => Ok(value.clone()),
        Value::Number(number) if !number.is_f64() => Ok(number.to_string().into()),
        Value::Bool(value) => Ok(u8::from(*value).to_string().into()),
        _ => Err(Why::kind(value)),
    };
    leaves(table).into_iter().map(|(name, value)| text(value).map(|text| (name, text))).collect()
}

fn typed<T: DeserializeOwned>(value: &Value) -> Result<T, Why> {
    serde_json::from_value(value.clone()).map_err(|error| {
        let (wrong, right) = reworded(&error.to_string(), "it");
        Why { right, wrong: format!(": {wrong}") }
    })
}

fn parser(value: &Value) -> Result<Value, Why> {
    match typed::<Parser>(value)? {
        Parser::Json(pointers) if pointers.is_empty() => {
            return Err(Why::new(": no metric is named".into()));
        }
        Parser::Json(pointers) => {
            if let Some((name, pointer)) = pointers.iter().find(|(_, it)| !it.starts_with('/')) {
                let wrong = format!("the pointer `{pointer}` of `{name}` does not start with /");
                let right = "write a JSON pointer (RFC 6901) such as /end/sum/packets";
                return Err(Why::because((wrong, right.into())));
            }
        }
        Parser::Regex(pattern) => {
            let regex = regex_lite::Regex::new(&pattern)
                .map_err(|error| Why::because((error.to_string(), "repair the pattern".into())))?;
            if regex.capture_names().flatten().next().is_none() {
                return Err(Why::new(": the pattern names no group".into()));
            }
        }
        Parser::Iperf3 | Parser::Wrk | Parser::None => {}
    }
    Ok(value.clone())
}
