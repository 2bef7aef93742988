//! Packet filter rules of a namespace, in the filter's own language, and the counters of the rules.
//!
//! Applied through `nft` and `iptables`, whose text is what users know; read through `nft -j`, which
//! also shows the rules of iptables-nft. Must be called in the namespace's thread.

use std::collections::BTreeMap;
use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::Value;

mod droppers;

pub use droppers::{Droppers, parse_droppers};

use crate::HostError;
use crate::lab::netns::Namespace;

fn start_error(program: &str, package: &str, error: &std::io::Error) -> HostError {
    if error.kind() == std::io::ErrorKind::NotFound {
        let needs = format!("the program {program} (package {package} on Debian and Ubuntu)");
        return HostError::unsupported(format!("run {program}"), needs);
    }
    HostError::os(format!("run {program}"), error)
}

/// Runs a program on an input, and gives what it printed.
fn run(
    (program, package): (&str, &str),
    arguments: &[&str],
    input: &str,
    what: &str,
) -> Result<Vec<u8>, HostError> {
    let failed = |error: std::io::Error| start_error(program, package, &error);
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    if let Some(mut stdin) = child.stdin.take() {
        // A program that ends early says why itself.
        let _ = stdin.write_all(input.as_bytes());
    }
    let output = child.wait_with_output().map_err(failed)?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    // Its first line says what and where; then it quotes the ruleset, which may be long.
    let words = String::from_utf8_lossy(&output.stderr);
    let first = words.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let why = format!("{}: {}", output.status, first.trim());
    Err(HostError::malformed(what, 0, why))
}

/// Applies a ruleset in nft's language (`nft -f -`) to the calling thread's namespace: all of it or, on an error, nothing.
///
/// **Errors** `Unsupported` without nft; `Malformed` with nft's words.
pub fn apply(ruleset: &str) -> Result<(), HostError> {
    run(("nft", "nftables"), &["-f", "-"], ruleset, "nft ruleset").map(drop)
}

/// Runs one iptables command in the calling thread's namespace: the arguments after `iptables`.
fn iptables(arguments: &[String]) -> Result<(), HostError> {
    let all: Vec<&str> =
        ["--wait"].into_iter().chain(arguments.iter().map(String::as_str)).collect();
    let what = format!("iptables {}", arguments.join(" "));
    run(("iptables", "iptables"), &all, "", &what).map(drop)
}

fn list_ruleset() -> Result<Vec<u8>, HostError> {
    run(("nft", "nftables"), &["-j", "list", "ruleset"], "", LIST_SOURCE)
}

impl Namespace {
    /// As [`apply`].
    pub fn apply_nft(&self, ruleset: &str) -> Result<(), HostError> {
        let ruleset = ruleset.to_owned();
        self.run(move |_| apply(&ruleset))?
    }

    /// Runs one iptables command: the arguments after `iptables`.
    ///
    /// **Errors** as [`apply`].
    pub fn apply_iptables(&self, arguments: &[&str]) -> Result<(), HostError> {
        let arguments: Vec<String> = arguments.iter().map(|&a| a.to_owned()).collect();
        self.run(move |_| iptables(&arguments))?
    }

    /// Packets and bytes of each rule with a counter: `nft.inet.t.in.2.packets`, where 2 is the rule's
    /// place in its chain, from 1. Rules of iptables-nft: `nft.ip.raw.PREROUTING.1.packets`.
    ///
    /// **Cost** starts a process, some milliseconds.
    pub fn nft_counters(&self) -> Result<BTreeMap<String, u64>, HostError> {
        self.run(|_| parse_counters(&list_ruleset()?))?
    }

    /// The counters of the rules that drop, by the hook they hang on.
    ///
    /// **Cost** as [`Namespace::nft_counters`].
    pub fn nft_droppers(&self) -> Result<Droppers, HostError> {
        self.run(|_| parse_droppers(&list_ruleset()?))?
    }
}

/// Reads the counters out of `nft -j list ruleset` (libnftables-json(5)).
pub fn parse_counters(json: &[u8]) -> Result<BTreeMap<String, u64>, HostError> {
    let mut found = BTreeMap::new();
    for rule in rules(&objects(json)?) {
        // A named counter is a text here and an object of its own; rules share it, so it has no place.
        for counter in rule.parts.iter().filter_map(|part| part.get("counter")?.as_object()) {
            for unit in ["packets", "bytes"] {
                if let Some(value) = counter.get(unit).and_then(Value::as_u64) {
                    *found.entry(format!("{}.{unit}", rule.name())).or_default() += value;
                }
            }
        }
    }
    Ok(found)
}

const LIST_SOURCE: &str = "nft -j list ruleset";

fn objects(json: &[u8]) -> Result<Vec<Value>, HostError> {
    let mut root: Value = serde_json::from_slice(json)
        .map_err(|e| HostError::malformed(LIST_SOURCE, 0, e.to_string()))?;
    match root.get_mut("nftables").map(Value::take) {
        Some(Value::Array(objects)) => Ok(objects),
        _ => Err(HostError::malformed(LIST_SOURCE, 0, "no list `nftables`")),
    }
}

/// A rule of the list with its place in its chain, from 1.
struct Rule<'a> {
    chain: String,
    place: u32,
    parts: &'a [Value],
}

impl Rule<'_> {
    /// What its counters' names begin with.
    fn name(&self) -> String {
        format!("{}.{}", self.chain, self.place)
    }
}

fn rules(objects: &[Value]) -> Vec<Rule<'_>> {
    let mut places = BTreeMap::<String, u32>::new();
    let of = |rule| {
        let chain = chain_name(rule, "chain");
        let place = places.entry(chain.clone()).or_default();
        *place += 1;
        let parts = Value::as_array(rule.get("expr").unwrap_or(&Value::Null));
        Rule { chain, place: *place, parts: parts.map_or(&[], Vec::as_slice) }
    };
    objects.iter().filter_map(|object| object.get("rule")).map(of).collect()
}

/// `nft.inet.t.in`; a chain has its own name under `name`, a rule its chain's under `chain`.
fn chain_name(object: &Value, key: &str) -> String {
    let part = |name: &str| object.get(name).and_then(Value::as_str).unwrap_or("?");
    format!("nft.{}.{}.{}", part("family"), part("table"), part(key))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::any_bytes::takes_any_bytes;
    use proptest::prelude::*;

    const LIST: &str = r#"{"nftables":[{"metainfo":{"version":"1.0.6"}},
      {"table":{"family":"inet","name":"t","handle":1}},
      {"chain":{"family":"inet","table":"t","name":"in","handle":1}},
      {"rule":{"family":"inet","table":"t","chain":"in","expr":[{"accept":null}]}},
      {"rule":{"family":"inet","table":"t","chain":"in","expr":[
        {"match":{"op":"==","left":{"numgen":{"mode":"inc","mod":4}},"right":0}},
        {"counter":{"packets":5000,"bytes":300000}},{"drop":null}]}},
      {"rule":{"family":"ip","table":"raw","chain":"PREROUTING","expr":[{"counter":"named"},
        {"counter":{"packets":7,"bytes":8}}]}}]}"#;

    #[test]
    fn rules_are_counted_by_their_place_in_the_chain() {
        let counters = parse_counters(LIST.as_bytes()).unwrap();
        assert_eq!(counters["nft.inet.t.in.2.packets"], 5000);
        assert_eq!(counters["nft.ip.raw.PREROUTING.1.packets"], 7);
        assert_eq!(counters.len(), 4, "a rule without a counter has none");
    }

    #[test]
    fn a_missing_program_names_its_package() {
        let error = std::io::Error::from(std::io::ErrorKind::NotFound);
        let text = start_error("nft", "nftables", &error).to_string();
        assert!(text.contains("package nftables"), "{text}");
    }

    takes_any_bytes!(200, bytes => parse_counters(&bytes));

    proptest! {
        #[test]
        fn a_cut_list_is_malformed(cut in 0usize..500) {
            let cut = cut.min(LIST.len() - 1);
            prop_assert!(parse_counters(&LIST.as_bytes()[..cut]).is_err());
        }
    }
}
