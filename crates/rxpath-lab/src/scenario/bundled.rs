//! The scenarios that come with the program, and how a name becomes a scenario.

use std::path::Path;

use super::error::{ScenarioError, nearest};
use super::file::ScenarioFile;
use super::written::parse;

/// Name and text of each of these scenarios.
macro_rules! scenarios {
    ($($name:literal)*) => {
        &[$(($name, include_str!(concat!("../../scenarios/", $name, ".toml")))),*]
    };
}

/// Every bundled scenario, in the order of `rxpath list`. A new one is a file and a name.
const BUNDLED: &[(&str, &str)] = scenarios!(
    "million-pps" "udp-pinning" "udp-two-senders" "udp-many-addresses" "udp-shared-socket"
    "udp-reuseport" "udp-placement" "udp-firewall" "udp-bypass" "udp-batching" "udp-livelock"
    "udp-queue" "ring" "tcp-queues" "tcp-nice" "tcp-iperf3" "http-blocking" "http-busy-poll"
    "http-connections" "http-threads" "http-placement" "http-netfilter" "http-offloads"
    "http-coalescing" "http-cpu" "http-nginx" "http-wrk" "steal-idle" "steal-streams"
    "steal-openssl" "steal-isolation" "steal-compare" "steal-iperf3" "model-socket-overload"
    "model-stalling-reader" "model-ring" "model-livelock" "model-knee" "model-calibration"
    "capacity-udp" "capacity-tcp-rr" "capacity-http" "demo"
);

/// Every bundled scenario, the hidden ones too.
pub fn bundled() -> Result<Vec<ScenarioFile>, ScenarioError> {
    BUNDLED.iter().map(|(name, text)| parse_bundled(name, text)).collect()
}

/// The scenario of that bundled name, or in that file.
pub fn load(name: &str) -> Result<ScenarioFile, ScenarioError> {
    if let Some((name, text)) = BUNDLED.iter().find(|(known, _)| *known == name) {
        return parse_bundled(name, text);
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
    let names = BUNDLED.iter().map(|(name, _)| *name);
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
