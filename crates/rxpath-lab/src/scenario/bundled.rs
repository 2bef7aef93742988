//! The scenarios that come with the program, and how a name becomes a scenario.

use std::path::Path;

use super::error::{ScenarioError, nearest};
use super::file::{ScenarioFile, parse};

/// Name and text of every bundled scenario, in the order of `rxpath list`. A new one is a file and a line.
const BUNDLED: &[(&str, &str)] = &[
    ("million-pps", include_str!("../../scenarios/million-pps.toml")),
    ("udp-pinning", include_str!("../../scenarios/udp-pinning.toml")),
    ("udp-two-senders", include_str!("../../scenarios/udp-two-senders.toml")),
    ("udp-many-addresses", include_str!("../../scenarios/udp-many-addresses.toml")),
    ("udp-shared-socket", include_str!("../../scenarios/udp-shared-socket.toml")),
    ("udp-reuseport", include_str!("../../scenarios/udp-reuseport.toml")),
    ("udp-placement", include_str!("../../scenarios/udp-placement.toml")),
    ("udp-firewall", include_str!("../../scenarios/udp-firewall.toml")),
    ("udp-bypass", include_str!("../../scenarios/udp-bypass.toml")),
    ("udp-batching", include_str!("../../scenarios/udp-batching.toml")),
    ("udp-livelock", include_str!("../../scenarios/udp-livelock.toml")),
    ("udp-queue", include_str!("../../scenarios/udp-queue.toml")),
    ("ring", include_str!("../../scenarios/ring.toml")),
    ("tcp-queues", include_str!("../../scenarios/tcp-queues.toml")),
    ("tcp-nice", include_str!("../../scenarios/tcp-nice.toml")),
    ("tcp-iperf3", include_str!("../../scenarios/tcp-iperf3.toml")),
    ("http-blocking", include_str!("../../scenarios/http-blocking.toml")),
    ("http-busy-poll", include_str!("../../scenarios/http-busy-poll.toml")),
    ("http-connections", include_str!("../../scenarios/http-connections.toml")),
    ("http-threads", include_str!("../../scenarios/http-threads.toml")),
    ("http-placement", include_str!("../../scenarios/http-placement.toml")),
    ("http-netfilter", include_str!("../../scenarios/http-netfilter.toml")),
    ("http-offloads", include_str!("../../scenarios/http-offloads.toml")),
    ("http-coalescing", include_str!("../../scenarios/http-coalescing.toml")),
    ("http-cpu", include_str!("../../scenarios/http-cpu.toml")),
    ("http-nginx", include_str!("../../scenarios/http-nginx.toml")),
    ("http-wrk", include_str!("../../scenarios/http-wrk.toml")),
    ("steal-idle", include_str!("../../scenarios/steal-idle.toml")),
    ("steal-streams", include_str!("../../scenarios/steal-streams.toml")),
    ("steal-openssl", include_str!("../../scenarios/steal-openssl.toml")),
    ("steal-isolation", include_str!("../../scenarios/steal-isolation.toml")),
    ("steal-compare", include_str!("../../scenarios/steal-compare.toml")),
    ("steal-iperf3", include_str!("../../scenarios/steal-iperf3.toml")),
    ("model-socket-overload", include_str!("../../scenarios/model-socket-overload.toml")),
    ("model-stalling-reader", include_str!("../../scenarios/model-stalling-reader.toml")),
    ("model-ring", include_str!("../../scenarios/model-ring.toml")),
    ("model-livelock", include_str!("../../scenarios/model-livelock.toml")),
    ("model-knee", include_str!("../../scenarios/model-knee.toml")),
    ("model-calibration", include_str!("../../scenarios/model-calibration.toml")),
    ("capacity-udp", include_str!("../../scenarios/capacity-udp.toml")),
    ("capacity-tcp-rr", include_str!("../../scenarios/capacity-tcp-rr.toml")),
    ("capacity-http", include_str!("../../scenarios/capacity-http.toml")),
    ("demo", include_str!("../../scenarios/demo.toml")),
];

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
