//! Which rules of a ruleset can drop a packet, and whether a counter of theirs counts just that.
//!
//! The question it answers: *what must these counters have moved by, if the filter ate the packets?* Where a
//! drop has no counter of its own (a rule without one, a chain's policy, a verdict map), that is not known.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{chain_name, objects, rules};
use crate::HostError;

/// Targets of iptables-nft extensions that never drop. Any other may.
const HARMLESS: [&str; 9] =
    ["LOG", "NFLOG", "MARK", "CONNMARK", "CT", "TRACE", "DSCP", "TOS", "CLASSIFY"];
/// Statements that may stand between a counter and its verdict without choosing among packets.
const TRANSPARENT: [&str; 3] = ["log", "mangle", "notrack"];

/// Packet counters (`nft.inet.t.in.2.packets`) of the rules that drop, by hook.
///
/// `Some` of none = nothing there drops. `None` = something there may drop and no counter tells how many.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Droppers {
    /// netfilter ingress.
    pub ingress: Option<Vec<String>>,
    /// PREROUTING and INPUT.
    pub input: Option<Vec<String>>,
    /// OUTPUT and POSTROUTING.
    pub output: Option<Vec<String>>,
    /// netfilter egress.
    pub egress: Option<Vec<String>>,
}

impl Droppers {
    /// Of no rules.
    pub fn none() -> Self {
        let none = || Some(Vec::new());
        Self { ingress: none(), input: none(), output: none(), egress: none() }
    }

    fn at(&mut self, hook: Hook) -> &mut Option<Vec<String>> {
        match hook {
            Hook::Ingress => &mut self.ingress,
            Hook::Input => &mut self.input,
            Hook::Output => &mut self.output,
            Hook::Egress => &mut self.egress,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Hook {
    Ingress,
    Input,
    Output,
    Egress,
}

/// Reads them out of `nft -j list ruleset` (libnftables-json(5)).
pub fn parse_droppers(json: &[u8]) -> Result<Droppers, HostError> {
    let objects = objects(json)?;
    let mut found = Droppers::none();
    let mut hooks: BTreeMap<String, BTreeSet<Hook>> = BTreeMap::new();
    for chain in objects.iter().filter_map(|object| object.get("chain")) {
        let text = |key: &str| chain.get(key).and_then(Value::as_str);
        let hook = match text("hook") {
            Some("ingress") => Hook::Ingress,
            Some("prerouting" | "input") => Hook::Input,
            Some("output" | "postrouting") => Hook::Output,
            Some("egress") => Hook::Egress,
            _ => continue,
        };
        if text("policy") == Some("drop") {
            *found.at(hook) = None;
        }
        hooks.entry(chain_name(chain, "name")).or_default().insert(hook);
    }
    let rules = rules(&objects);
    // A rule is where its chain is jumped to from.
    let mut grew = true;
    while grew {
        grew = false;
        for rule in &rules {
            let here = hooks.get(&rule.chain).cloned().unwrap_or_default();
            let table = rule.chain.rsplit_once('.').map_or("", |(table, _)| table);
            for target in targets(rule.parts) {
                let there = hooks.entry(format!("{table}.{target}")).or_default();
                grew |= !here.is_subset(there);
                there.extend(&here);
            }
        }
    }
    for rule in &rules {
        let verdict = verdict(rule.parts);
        for hook in hooks.get(&rule.chain).into_iter().flatten() {
            let counters = found.at(*hook);
            match verdict {
                Verdict::Passes => {}
                Verdict::Drops => {
                    if let Some(counters) = counters {
                        counters.push(format!("{}.packets", rule.name()));
                    }
                }
                Verdict::Unknown => *counters = None,
            }
        }
    }
    Ok(found)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// Never drops.
    Passes,
    /// Drops exactly what its counter counts.
    Drops,
    /// May drop what no counter counts.
    Unknown,
}

fn verdict(parts: &[Value]) -> Verdict {
    let Some(at) = parts.iter().position(drops) else {
        let may = parts.iter().any(may_drop);
        return if may { Verdict::Unknown } else { Verdict::Passes };
    };
    let before = parts[..at].iter().rev();
    let mut before =
        before.skip_while(|part| TRANSPARENT.iter().any(|key| part.get(key).is_some()));
    let counted = before.next().is_some_and(|part| part["counter"].is_object());
    // A second counter in the rule would be added to the first.
    let counters = parts.iter().filter(|part| part.get("counter").is_some()).count();
    if counted && counters == 1 { Verdict::Drops } else { Verdict::Unknown }
}

fn drops(part: &Value) -> bool {
    let target = target(part);
    part.get("drop").is_some()
        || part.get("reject").is_some()
        || target.is_some_and(|name| name == "DROP" || name == "REJECT")
}

fn may_drop(part: &Value) -> bool {
    part.get("vmap").is_some_and(|map| contains(map, "drop"))
        // A map by name has its verdicts elsewhere.
        || part.get("vmap").is_some_and(|map| map["data"].is_string())
        || ["queue", "synproxy"].iter().any(|key| part.get(key).is_some())
        || target(part).is_some_and(|name| !HARMLESS.contains(&name))
}

/// The name of an iptables target.
fn target(part: &Value) -> Option<&str> {
    let xt = part.get("xt").filter(|xt| xt["type"] == "target")?;
    Some(xt["name"].as_str().unwrap_or("?"))
}

fn contains(value: &Value, key: &str) -> bool {
    match value {
        Value::Object(map) => map.iter().any(|(name, inner)| name == key || contains(inner, key)),
        Value::Array(list) => list.iter().any(|inner| contains(inner, key)),
        _ => false,
    }
}

/// Chains that a rule may go on to.
fn targets(parts: &[Value]) -> BTreeSet<&str> {
    let mut found = BTreeSet::new();
    let mut left: Vec<&Value> = parts.iter().collect();
    while let Some(value) = left.pop() {
        match value {
            Value::Object(map) => {
                for (key, inner) in map {
                    if key == "jump" || key == "goto" {
                        found.extend(inner["target"].as_str());
                    }
                    left.push(inner);
                }
            }
            Value::Array(list) => left.extend(list),
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHAINS: &str = r#"
      {"chain":{"family":"ip","table":"raw","name":"PREROUTING","hook":"prerouting","policy":"accept"}},
      {"chain":{"family":"inet","table":"t","name":"sub"}},
      {"chain":{"family":"inet","table":"t","name":"in","hook":"input","policy":"accept"}},
      {"chain":{"family":"netdev","table":"d","name":"in","hook":"ingress","policy":"accept"}},
      {"chain":{"family":"inet","table":"t","name":"out","hook":"output","policy":"drop"}}"#;

    fn droppers(rules: &[(&str, &str)]) -> Droppers {
        let mut list = format!("{{\"nftables\":[{CHAINS}");
        for (chain, parts) in rules {
            let words: Vec<&str> = chain.split('.').collect();
            list += &format!(
                r#",{{"rule":{{"family":"{}","table":"{}","chain":"{}","expr":[{parts}]}}}}"#,
                words[0], words[1], words[2]
            );
        }
        parse_droppers((list + "]}").as_bytes()).unwrap()
    }

    fn input(rule: &str) -> Option<Vec<String>> {
        droppers(&[("inet.t.in", rule)]).input
    }

    const COUNTER: &str = r#"{"counter":{"packets":0,"bytes":0}}"#;
    const MATCH: &str = r#"{"match":{"op":"==","left":{"meta":{"key":"mark"}},"right":1}}"#;
    const DROP: &str = r#"{"drop":null}"#;

    #[test]
    fn the_counter_of_a_dropping_rule_is_found_at_its_hook() {
        let rule = format!("{MATCH},{COUNTER},{DROP}");
        let found = droppers(&[
            ("inet.t.in", &format!("{COUNTER},{{\"accept\":null}}")),
            ("inet.t.in", &rule),
            ("netdev.d.in", &rule),
            ("ip.raw.PREROUTING", &rule),
            ("inet.t.out", DROP),
        ]);
        let names = |names: &[&str]| Some(names.iter().map(|&name| name.into()).collect());
        assert_eq!(found.ingress, names(&["nft.netdev.d.in.1.packets"]));
        assert_eq!(
            found.input,
            names(&["nft.inet.t.in.2.packets", "nft.ip.raw.PREROUTING.1.packets"])
        );
        assert_eq!(found.egress, names(&[]), "OUTPUT is neither");
    }

    #[test]
    fn a_drop_that_no_counter_counts_makes_the_hook_unknown() {
        assert_eq!(input(&format!("{MATCH},{DROP}")), None, "no counter");
        assert_eq!(input(&format!("{COUNTER},{MATCH},{DROP}")), None, "counts more than it drops");
        assert_eq!(input(&format!("{COUNTER},{COUNTER},{DROP}")), None, "counts twice");
        assert_eq!(input(r#"{"counter":"named"},{"drop":null}"#), None, "rules share it");
        assert_eq!(input(r#"{"vmap":{"key":1,"data":{"set":[[1,{"drop":null}]]}}}"#), None);
        assert_eq!(input(r#"{"queue":null}"#), None);
        assert_eq!(input(r#"{"xt":{"type":"target","name":"NFQUEUE"}}"#), None);
    }

    #[test]
    fn rejecting_drops_and_logging_does_not() {
        let counted = Some(vec!["nft.inet.t.in.1.packets".to_owned()]);
        let xt = |name: &str| format!(r#"{COUNTER},{{"xt":{{"type":"target","name":"{name}"}}}}"#);
        assert_eq!(input(&xt("REJECT")), counted);
        assert_eq!(input(&format!(r#"{COUNTER},{{"reject":{{}}}}"#)), counted);
        assert_eq!(input(&format!(r#"{COUNTER},{{"log":null}},{DROP}"#)), counted);
        assert_eq!(input(&xt("LOG")), Some(Vec::new()));
    }

    #[test]
    fn a_chain_is_where_it_is_jumped_to_from() {
        let rule = format!("{COUNTER},{DROP}");
        let jump = r#"{"vmap":{"key":1,"data":{"set":[[2,{"jump":{"target":"sub"}}]]}}}"#;
        let alone = droppers(&[("inet.t.sub", &rule)]);
        // The output chain of these has a policy of drop.
        let none = Droppers { output: None, ..Droppers::none() };
        assert_eq!(alone, none, "nobody goes there");
        let found = droppers(&[("inet.t.sub", &rule), ("inet.t.in", jump)]);
        assert_eq!(found.input, Some(vec!["nft.inet.t.sub.1.packets".to_owned()]));
    }

    #[test]
    fn what_leaves_is_dropped_by_rules_of_two_hooks() {
        let chain = |name: &str| {
            format!(
                r#"{{"chain":{{"family":"inet","table":"t","name":"{name}","hook":"{name}","policy":"accept"}}}}"#
            )
        };
        let rule = |chain: &str| {
            format!(
                r#"{{"rule":{{"family":"inet","table":"t","chain":"{chain}","expr":[{COUNTER},{DROP}]}}}}"#
            )
        };
        let all = ["output", "postrouting"].map(|hook| chain(hook) + "," + &rule(hook)).join(",");
        let found = parse_droppers(format!(r#"{{"nftables":[{all}]}}"#).as_bytes()).unwrap();
        let names = ["nft.inet.t.output.1.packets", "nft.inet.t.postrouting.1.packets"];
        assert_eq!(found.output, Some(names.map(String::from).to_vec()));
        assert_eq!((found.input, found.egress), (Some(Vec::new()), Some(Vec::new())));
    }

    #[test]
    fn a_policy_of_drop_has_no_counter() {
        let list = r#"{"nftables":[{"chain":{"family":"inet","table":"t","name":"in","hook":"input","policy":"drop"}}]}"#;
        let found = parse_droppers(list.as_bytes()).unwrap();
        assert_eq!((found.input, found.ingress), (None, Some(Vec::new())));
    }
}
