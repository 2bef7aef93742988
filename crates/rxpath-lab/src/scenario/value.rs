//! One value, checked against the type of its key.

use std::collections::BTreeMap;

use rxpath_core::{BitRate, Bytes, Count, Nanos, Rate};

use super::cpus::CpuExpr;
use super::error::{At, Flaw, nearest, suggestion};
use super::keys::{Key, Kind, MAX_TEXT};
use super::raw::{Entry, Node, Raw};
use super::spec::{Parser, Qdisc};

/// A checked value with what was written and where.
#[derive(Clone, Debug)]
pub(super) struct Setting {
    pub value: Value,
    /// As it was written, for results.
    pub shown: serde_json::Value,
    pub at: At,
}

/// What a value is. Counts, sizes and durations are numbers in the base unit.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    /// `"default"`: as if the key had not been written.
    Default,
    Bool(bool),
    Number(u64),
    Ratio(f64),
    Text(String),
    Lines(Vec<String>),
    Cpus(CpuExpr),
    Names(BTreeMap<String, String>),
    Qdisc(Qdisc),
    Parser(Parser),
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
                format!("a duration from {} to {} such as \"10us\"", Nanos(min), Nanos(max))
            }
            Self::Ratio(min, max) => format!("a share from {min} to {max} such as 0.05"),
            Self::Choice(words) => format!("one of \"{}\"", words.join("\", \"")),
            Self::Cpus => "a CPU list such as \"0,2-3\" or a role such as \"@receiver\"".into(),
            Self::OneCpu => "one CPU such as 1 or \"@softirq\"".into(),
            Self::Text => "a text in quotes".into(),
            Self::Lines => "a list of texts".into(),
            Self::Command => "a command: one text, or a list of words".into(),
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
}

/// Checks a value against its key.
pub(super) fn check(key: &Key, node: &Node) -> Result<Setting, Flaw> {
    let setting = |value| Setting { value, shown: node.shown(), at: node.at.clone() };
    if matches!(&node.raw, Raw::Text(text) if text == "default") {
        return Ok(setting(Value::Default));
    }
    of_kind(key.kind, node).map(setting).map_err(|why| match why {
        Why::Kind => Flaw::new(
            &node.at,
            format!("`{}` is {}", key.name, node.kind()),
            format!("it takes {}", key.kind.wanted()),
        ),
        Why::Range(value) => Flaw::new(
            &node.at,
            format!("`{}` is {value}", key.name),
            format!("it takes {}", key.kind.wanted()),
        ),
        Why::Unit(text) => Flaw::new(
            &node.at,
            format!("`{}`: {text}", key.name),
            format!("it takes {}", key.kind.wanted()),
        ),
        Why::Told(wrong, right) => Flaw::new(&node.at, format!("`{}`: {wrong}", key.name), right),
    })
}

/// Why a value does not fit.
enum Why {
    Kind,
    Range(String),
    Unit(String),
    Told(String, String),
}

#[expect(clippy::too_many_lines, reason = "one arm per kind of value, nothing shared between them")]
fn of_kind(kind: Kind, node: &Node) -> Result<Value, Why> {
    Ok(match kind {
        Kind::Bool => match node.raw {
            Raw::Bool(value) => Value::Bool(value),
            _ => return Err(Why::Kind),
        },
        Kind::Int(min, max) => match node.raw {
            Raw::Int(value) => within(value, min, max)?,
            _ => return Err(Why::Kind),
        },
        Kind::Signed(min, max) => match node.raw {
            Raw::Int(value) if (i128::from(min)..=i128::from(max)).contains(&value) => {
                Value::Text(value.to_string())
            }
            Raw::Int(value) => return Err(Why::Range(value.to_string())),
            _ => return Err(Why::Kind),
        },
        Kind::Count(min, max) => quantity::<Count>(node, min, max, |count| count.0)?,
        Kind::Rate(min, max) => quantity::<Rate>(node, min, max, |rate| rate.0)?,
        Kind::BitRate(min, max) => quantity::<BitRate>(node, min, max, |rate| rate.0)?,
        Kind::Bytes(min, max) => quantity::<Bytes>(node, min, max, |bytes| bytes.0)?,
        Kind::Nanos(min, max) => match node.raw {
            // Core units read a bare number as nanoseconds; in a file that is a forgotten unit.
            Raw::Int(0) if min == 0 => Value::Number(0),
            Raw::Int(value) => {
                return Err(Why::Unit(format!("the number {value} has no unit")));
            }
            _ => quantity::<Nanos>(node, min, max, |nanos| nanos.0)?,
        },
        Kind::Ratio(min, max) => {
            let value = match node.raw {
                Raw::Float(value) => value,
                Raw::Int(value) => value as f64,
                _ => return Err(Why::Kind),
            };
            if !(min..=max).contains(&value) {
                return Err(Why::Range(value.to_string()));
            }
            Value::Ratio(value)
        }
        Kind::Choice(words) => {
            let text = text(node)?;
            if !words.contains(&text) {
                let right = match nearest(text, words.iter().copied()) {
                    Some(near) => format!("did you mean \"{near}\"?"),
                    None => format!("it takes {}", kind.wanted()),
                };
                return Err(Why::Told(format!("\"{text}\" is no choice"), right));
            }
            Value::Text(text.into())
        }
        Kind::Cpus => Value::Cpus(cpus(node)?),
        Kind::OneCpu => {
            let list = cpus(node)?;
            if list.wished() != 1 {
                return Err(Why::Range(format!("{} CPUs", list.wished())));
            }
            Value::Cpus(list)
        }
        Kind::Text => Value::Text(text(node)?.into()),
        Kind::Lines => Value::Lines(lines(node)?),
        Kind::Command => Value::Lines(command(node)?),
        Kind::Names => Value::Names(names(node)?),
        Kind::Qdisc => Value::Qdisc(qdisc(node)?),
        Kind::Parser => Value::Parser(parser(node)?),
    })
}

fn within(value: i128, min: u64, max: u64) -> Result<Value, Why> {
    u64::try_from(value)
        .ok()
        .filter(|value| (min..=max).contains(value))
        .map(Value::Number)
        .ok_or_else(|| Why::Range(value.to_string()))
}

fn quantity<T: std::str::FromStr<Err = rxpath_core::ParseUnitError>>(
    node: &Node,
    min: u64,
    max: u64,
    get: fn(T) -> u64,
) -> Result<Value, Why> {
    match &node.raw {
        Raw::Int(value) => within(*value, min, max),
        Raw::Text(text) => {
            let value = text.parse().map(get).map_err(|error: rxpath_core::ParseUnitError| {
                // Its own example follows in what would be right.
                let told = error.to_string();
                Why::Unit(told.split("; for example").next().unwrap_or(&told).into())
            })?;
            within(value.into(), min, max).map_err(|_| Why::Range(text.clone()))
        }
        _ => Err(Why::Kind),
    }
}

fn text(node: &Node) -> Result<&str, Why> {
    match &node.raw {
        Raw::Text(text) if text.len() > MAX_TEXT => {
            Err(Why::Range(format!("{} bytes long", text.len())))
        }
        Raw::Text(text) if text.contains('\0') => Err(Why::Range("a text with a NUL byte".into())),
        Raw::Text(text) => Ok(text),
        _ => Err(Why::Kind),
    }
}

fn cpus(node: &Node) -> Result<CpuExpr, Why> {
    let written = match &node.raw {
        Raw::Text(text) => text.clone(),
        Raw::Int(number) => number.to_string(),
        Raw::Array(parts) => {
            let parts = parts.iter().map(|part| match &part.raw {
                Raw::Int(number) => Ok(number.to_string()),
                Raw::Text(text) => Ok(text.clone()),
                _ => Err(Why::Kind),
            });
            parts.collect::<Result<Vec<_>, _>>()?.join(",")
        }
        _ => return Err(Why::Kind),
    };
    CpuExpr::parse(&written).map_err(|(wrong, right)| Why::Told(wrong, right))
}

fn lines(node: &Node) -> Result<Vec<String>, Why> {
    match &node.raw {
        Raw::Array(parts) => parts.iter().map(|part| text(part).map(str::to_owned)).collect(),
        _ => Err(Why::Kind),
    }
}

fn command(node: &Node) -> Result<Vec<String>, Why> {
    let words = match &node.raw {
        // As a shell splits it: "sh -c 'echo a b'" is three words.
        Raw::Text(_) => shlex::split(text(node)?).ok_or_else(|| {
            Why::Told(
                "a quote is open at its end".into(),
                "close it, or write a list of words".into(),
            )
        })?,
        _ => lines(node)?,
    };
    if words.is_empty() { Err(Why::Range("empty".into())) } else { Ok(words) }
}

fn names(node: &Node) -> Result<BTreeMap<String, String>, Why> {
    let mut found = BTreeMap::new();
    collect_names(&table(node)?, "", &mut found)?;
    Ok(found)
}

/// `net.ipv4.x = 1` without quotes is a table in a table: its names are joined again.
fn collect_names(
    entries: &[Entry],
    prefix: &str,
    found: &mut BTreeMap<String, String>,
) -> Result<(), Why> {
    for entry in entries {
        let name =
            if prefix.is_empty() { entry.key.clone() } else { format!("{prefix}.{}", entry.key) };
        let value = match &entry.node.raw {
            Raw::Text(text) => text.clone(),
            Raw::Int(number) => number.to_string(),
            Raw::Bool(value) => u8::from(*value).to_string(),
            Raw::Table(inner) => {
                collect_names(inner, &name, found)?;
                continue;
            }
            _ => return Err(Why::Kind),
        };
        found.insert(name, value);
    }
    Ok(())
}

fn table(node: &Node) -> Result<Vec<Entry>, Why> {
    match &node.raw {
        Raw::Table(entries) => Ok(entries.clone()),
        _ => Err(Why::Kind),
    }
}

fn qdisc(node: &Node) -> Result<Qdisc, Why> {
    let entries = table(node)?;
    let get = |name: &str| entries.iter().find(|entry| entry.key == name).map(|entry| &entry.node);
    let number = |name: &str| match get(name)
        .map(|node| quantity::<Bytes>(node, 1, u32::MAX.into(), |b| b.0))
    {
        Some(Ok(Value::Number(number))) => Ok(number as u32),
        Some(_) => Err(Why::Told(format!("`{name}` is not a number of at least 1"), String::new())),
        None => Err(Why::Told(format!("`{name}` is missing"), String::new())),
    };
    let Some(Ok(kind)) = get("kind").map(text) else {
        return Err(Why::Told("`kind` is missing".into(), Kind::Qdisc.wanted()));
    };
    let known: &[&str] = match kind {
        "tbf" => &["kind", "rate", "burst", "limit"],
        "pfifo" => &["kind", "limit"],
        "fq" => &["kind"],
        other => {
            let right = suggestion(other, "kinds", &["tbf", "pfifo", "fq"]);
            return Err(Why::Told(
                format!("`{other}` is no queueing discipline known here"),
                right,
            ));
        }
    };
    if let Some(entry) = entries.iter().find(|entry| !known.contains(&entry.key.as_str())) {
        let right = suggestion(&entry.key, "keys", known);
        return Err(Why::Told(format!("{kind} has no key `{}`", entry.key), right));
    }
    let made = match kind {
        "tbf" => number("burst").and_then(|burst_bytes| {
            let limit_bytes = number("limit")?;
            match get("rate").map(|node| quantity::<BitRate>(node, 1, u64::MAX, |rate| rate.0)) {
                Some(Ok(Value::Number(rate_bps))) => {
                    Ok(Qdisc::Tbf { rate_bps, burst_bytes, limit_bytes })
                }
                _ => Err(Why::Told(
                    "`rate` (bits per second) is missing or no bit rate".into(),
                    String::new(),
                )),
            }
        }),
        "pfifo" => number("limit").map(|limit_packets| Qdisc::Pfifo { limit_packets }),
        _ => Ok(Qdisc::Fq),
    };
    made.map_err(|why| match why {
        Why::Told(wrong, _) => Why::Told(wrong, format!("it takes {}", Kind::Qdisc.wanted())),
        other => other,
    })
}

fn parser(node: &Node) -> Result<Parser, Why> {
    if let Raw::Text(word) = &node.raw {
        return match word.as_str() {
            "iperf3" => Ok(Parser::Iperf3),
            "wrk" => Ok(Parser::Wrk),
            "none" => Ok(Parser::None),
            other => Err(Why::Told(
                format!("\"{other}\" is no parser"),
                match nearest(other, ["iperf3", "wrk", "none"]) {
                    Some(near) => format!("did you mean \"{near}\"?"),
                    None => format!("it takes {}", Kind::Parser.wanted()),
                },
            )),
        };
    }
    let told = |wrong: String| Why::Told(wrong, format!("it takes {}", Kind::Parser.wanted()));
    let entries = table(node)?;
    let [entry] = entries.as_slice() else {
        return Err(told("the table has not exactly one key".into()));
    };
    match entry.key.as_str() {
        "json" => {
            let pointers =
                names(&entry.node).map_err(|_| told("`json` is no table of pointers".into()))?;
            if pointers.is_empty() {
                return Err(told("no metric is named".into()));
            }
            match pointers.iter().find(|(_, pointer)| !pointer.starts_with('/')) {
                Some((name, pointer)) => Err(Why::Told(
                    format!("the pointer `{pointer}` of `{name}` does not start with /"),
                    "write a JSON pointer (RFC 6901) such as /end/sum/packets".into(),
                )),
                None => Ok(Parser::Json { pointers }),
            }
        }
        "regex" => {
            let pattern = text(&entry.node).map_err(|_| told("`regex` is no text".into()))?;
            let regex = regex::Regex::new(pattern).map_err(|error| {
                Why::Told(one_line(&error.to_string()), "repair the pattern".into())
            })?;
            if regex.capture_names().flatten().next().is_none() {
                return Err(told("the pattern names no group".into()));
            }
            Ok(Parser::Regex { pattern: pattern.into() })
        }
        other => Err(told(format!("`{other}` is no parser"))),
    }
}

/// The last line of a regex error is the reason; those above draw the place.
fn one_line(error: &str) -> String {
    error.lines().last().unwrap_or(error).trim().trim_start_matches("error: ").into()
}
