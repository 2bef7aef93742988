//! Packet filter rules of a namespace, in the filter's own language, and the counters of the rules.
//!
//! Applied through `nft` and `iptables`, whose text is what users know; read through `nft -j`, which
//! also shows the rules of iptables-nft. Must be called in the namespace's thread.

use std::collections::BTreeMap;
use std::io::Write;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::HostError;
use crate::netns::{Inside, Namespace};

fn start_error(program: &str, package: &str, error: &std::io::Error) -> HostError {
    if error.kind() == std::io::ErrorKind::NotFound {
        return HostError::Unsupported {
            what: format!("run {program}"),
            needs: format!("the program {program} (package {package} on Debian and Ubuntu)"),
        };
    }
    HostError::kernel(format!("run {program}"), error.raw_os_error().unwrap_or(libc::EIO))
}

fn succeed(what: &str, output: Output) -> Result<Vec<u8>, HostError> {
    if output.status.success() {
        return Ok(output.stdout);
    }
    let words = String::from_utf8_lossy(&output.stderr);
    let line: Vec<&str> = words.split_whitespace().collect();
    let why = format!("{}: {}", output.status, line.join(" "));
    Err(HostError::malformed(what, 0, why))
}

impl Inside {
    /// Applies a ruleset in nft's language (`nft -f -`): all of it or, on an error, nothing.
    ///
    /// **Errors** `Unsupported` without nft; `Malformed` with nft's words.
    pub fn apply_nft(&mut self, ruleset: &str) -> Result<(), HostError> {
        let fail = |e: std::io::Error| start_error("nft", "nftables", &e);
        let mut child = Command::new("nft")
            .args(["-f", "-"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(fail)?;
        if let Some(mut stdin) = child.stdin.take() {
            // nft that ends early says why itself.
            let _ = stdin.write_all(ruleset.as_bytes());
        }
        succeed("nft ruleset", child.wait_with_output().map_err(fail)?).map(drop)
    }

    /// Runs one iptables command: the arguments after `iptables`.
    ///
    /// **Errors** as [`Inside::apply_nft`].
    pub fn apply_iptables(&mut self, arguments: &[&str]) -> Result<(), HostError> {
        let output = Command::new("iptables")
            .arg("--wait")
            .args(arguments)
            .stdin(Stdio::null())
            .output()
            .map_err(|e| start_error("iptables", "iptables", &e))?;
        succeed(&format!("iptables {}", arguments.join(" ")), output).map(drop)
    }

    /// Packets and bytes of each rule with a counter: `nft.inet.t.in.2.packets`, where 2 is the rule's
    /// place in its chain, from 1. Rules of iptables-nft: `nft.ip.raw.PREROUTING.1.packets`.
    ///
    /// **Cost** starts a process, some milliseconds.
    pub fn nft_counters(&mut self) -> Result<BTreeMap<String, u64>, HostError> {
        let output = Command::new("nft")
            .args(["-j", "list", "ruleset"])
            .stdin(Stdio::null())
            .output()
            .map_err(|e| start_error("nft", "nftables", &e))?;
        parse_counters(&succeed("nft -j list ruleset", output)?)
    }
}

impl Namespace {
    /// As [`Inside::apply_nft`].
    pub fn apply_nft(&self, ruleset: &str) -> Result<(), HostError> {
        let ruleset = ruleset.to_owned();
        self.run(move |ns| ns.apply_nft(&ruleset))?
    }

    /// As [`Inside::apply_iptables`].
    pub fn apply_iptables(&self, arguments: &[&str]) -> Result<(), HostError> {
        let arguments: Vec<String> = arguments.iter().map(|&a| a.to_owned()).collect();
        self.run(move |ns| {
            ns.apply_iptables(&arguments.iter().map(String::as_str).collect::<Vec<_>>())
        })?
    }

    /// As [`Inside::nft_counters`].
    pub fn nft_counters(&self) -> Result<BTreeMap<String, u64>, HostError> {
        self.run(Inside::nft_counters)?
    }
}

/// Reads the counters out of `nft -j list ruleset` (libnftables-json(5)).
pub fn parse_counters(json: &[u8]) -> Result<BTreeMap<String, u64>, HostError> {
    let source = "nft -j list ruleset";
    let root: Value =
        serde_json::from_slice(json).map_err(|e| HostError::malformed(source, 0, e.to_string()))?;
    let objects = root
        .get("nftables")
        .and_then(Value::as_array)
        .ok_or_else(|| HostError::malformed(source, 0, "no list `nftables`"))?;
    let mut places = BTreeMap::<String, u32>::new();
    let mut found = BTreeMap::new();
    for rule in objects.iter().filter_map(|object| object.get("rule")) {
        let part = |name: &str| rule.get(name).and_then(Value::as_str).unwrap_or("?");
        let chain = format!("nft.{}.{}.{}", part("family"), part("table"), part("chain"));
        let place = places.entry(chain.clone()).or_default();
        *place += 1;
        let parts = rule.get("expr").and_then(Value::as_array).into_iter().flatten();
        // A named counter is a text here and an object of its own; rules share it, so it has no place.
        for counter in parts.filter_map(|part| part.get("counter")?.as_object()) {
            for unit in ["packets", "bytes"] {
                if let Some(value) = counter.get(unit).and_then(Value::as_u64) {
                    *found.entry(format!("{chain}.{place}.{unit}")).or_default() += value;
                }
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
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

    proptest! {
        #[test]
        fn a_cut_list_is_malformed(cut in 0usize..500) {
            let cut = cut.min(LIST.len() - 1);
            prop_assert!(parse_counters(&LIST.as_bytes()[..cut]).is_err());
        }

        #[test]
        fn garbage_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse_counters(&bytes);
        }
    }
}
