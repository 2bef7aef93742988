//! The scenarios that come with the program, and how a name becomes a scenario.

use std::path::Path;
use std::sync::LazyLock;

use rxpath_texts::PackedTexts;
use serde::Deserialize;

use super::error::{ScenarioError, nearest};
use super::file::ScenarioFile;
use super::written::parse;

/// Every bundled scenario, in the order of `rxpath list`. A new one is a file and a name.
#[rustfmt::skip]
const BUNDLED: &[&str] = &[
    "million-pps", "udp-pinning", "udp-two-senders", "udp-many-addresses", "udp-shared-socket",
    "udp-reuseport", "udp-placement", "udp-firewall", "udp-bypass", "udp-batching", "udp-livelock",
    "udp-queue", "ring", "tcp-queues", "tcp-nice", "tcp-iperf3", "http-blocking", "http-busy-poll",
    "http-connections", "http-threads", "http-placement", "http-netfilter", "http-offloads",
    "http-coalescing", "http-cpu", "http-nginx", "http-wrk", "steal-idle", "steal-streams",
    "steal-openssl", "steal-isolation", "steal-compare", "steal-iperf3", "model-socket-overload",
    "model-stalling-reader", "model-ring", "model-livelock", "model-knee", "model-calibration",
    "capacity-udp", "capacity-tcp-rr", "capacity-http", "demo",
];

static TEXTS: LazyLock<PackedTexts> = rxpath_texts::texts_of_build!();

/// What the list shows of a scenario.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Title {
    /// That of the scenario.
    #[serde(skip)]
    pub name: String,
    /// What it answers.
    pub question: String,
    /// Whether the list leaves it out.
    #[serde(default)]
    pub hidden: bool,
}

/// The titles of all bundled scenarios, hidden ones too.
///
/// **Cost** Of each file, the keys before its first table are read.
///
/// # Errors
/// As [`bundled`].
pub fn titles() -> Result<Vec<Title>, ScenarioError> {
    BUNDLED.iter().map(|name| title(name, TEXTS.text(name))).collect()
}

fn title(name: &str, text: &str) -> Result<Title, ScenarioError> {
    let head = text.find("\n[").map_or(text, |end| &text[..end]);
    if let Ok(title) = toml::from_str::<Title>(head) {
        return Ok(Title { name: name.into(), ..title });
    }
    // What is wrong with it, with its place.
    let file = parse_bundled(name, text)?;
    Ok(Title { name: file.name, question: file.question, hidden: file.hidden })
}

/// Every bundled scenario, the hidden ones too.
pub fn bundled() -> Result<Vec<ScenarioFile>, ScenarioError> {
    BUNDLED.iter().map(|name| parse_bundled(name, TEXTS.text(name))).collect()
}

/// The scenario of that bundled name, or in that file.
pub fn load(name: &str) -> Result<ScenarioFile, ScenarioError> {
    if BUNDLED.contains(&name) {
        return parse_bundled(name, TEXTS.text(name));
    }
    let path = Path::new(name);
    let looks_like_path = name.contains('/')
        || path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("toml"));
    if !looks_like_path && !path.is_file() {
        return Err(ScenarioError::Unknown { name: name.into(), right: near_names(name) });
    }
    let text = std::fs::read_to_string(path)
        .map_err(|source| ScenarioError::Read { path: path.into(), source })?;
    let stem = path.file_stem().map_or_else(|| "scenario".into(), |stem| stem.to_string_lossy());
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' };
    let stem: String = stem.chars().take(60).map(plain).collect();
    parse(&text, name, &stem)
}

fn parse_bundled(name: &str, text: &str) -> Result<ScenarioFile, ScenarioError> {
    parse(text, &format!("{name}.toml (bundled)"), name)
}

fn near_names(name: &str) -> String {
    let names = BUNDLED.iter().copied();
    let within: Vec<&str> = names.clone().filter(|known| known.contains(name)).collect();
    match (nearest(name, names.clone()), within.as_slice()) {
        (Some(near), _) => format!("did you mean `{near}`? `rxpath list` shows all"),
        (None, []) => {
            let all: Vec<&str> = names.collect();
            format!("bundled are {}; a file is named with its path", all.join(", "))
        }
        (None, within) => format!("did you mean one of {}?", within.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_are_those_of_the_whole_scenarios() {
        let whole = bundled().unwrap().into_iter();
        let whole =
            whole.map(|it| Title { name: it.name, question: it.question, hidden: it.hidden });
        assert_eq!(titles().unwrap(), whole.collect::<Vec<_>>());
    }

    #[test]
    fn the_tables_of_a_scenario_are_not_read_for_its_title() {
        let found = title("made", "question = \"Why?\"\nhidden = true\n[load]\nrate = nonsense\n");
        let right = Title { name: "made".into(), question: "Why?".into(), hidden: true };
        assert_eq!(found.unwrap(), right);
        assert!(
            title("made", "[load]\nrate = \"1k\"\n").unwrap_err().to_string().contains("question")
        );
    }
}
