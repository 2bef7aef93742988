//! How the pairs of hosts share the rate and the connections of a variant, in words.

use std::collections::BTreeMap;

use rxpath_core::number::{counted, si};

use super::Hosts;
use super::pairs::HostPairs;
use crate::scenario::spec::{LoadOptions, Resolved, Variant};

impl Hosts {
    /// How the pairs of hosts share the rate and the connections of each variant, a line for each; nothing for one sender
    /// and one receiver.
    pub fn shares(&self, resolved: &Resolved) -> Vec<String> {
        let senders: Vec<&str> = self.senders.iter().map(|host| host.client.alias()).collect();
        let of_variant = |variant: &Variant| -> Vec<String> {
            let own = variant.load.own();
            let lines = own.map(|own| lines(&own.options, &self.pairs, &senders));
            let named = |line: String| format!("{}: {line}", variant.name);
            lines.into_iter().flatten().map(named).collect()
        };
        resolved.variants.iter().flat_map(of_variant).collect()
    }
}

fn lines(options: &LoadOptions, pairs: &HostPairs, senders: &[&str]) -> Vec<String> {
    if pairs.count() < 2 {
        return Vec::new();
    }
    [rate(options, pairs), connections(options, pairs, senders)].into_iter().flatten().collect()
}

/// Of all pairs.
fn rate(options: &LoadOptions, pairs: &HostPairs) -> Option<String> {
    let (key, total) = match (options.rate, options.bitrate) {
        (Some(rate), _) => ("load.rate", rate),
        (None, rate) => ("load.bitrate", rate?),
    };
    let [senders, receivers] = pairs.hosts().map(|count| count as u64);
    let of = match receivers {
        _ if !pairs.are_all() => counted(pairs.count() as u64, "pair"),
        1 => counted(senders, "sender"),
        _ => format!("{} x {}", counted(senders, "sender"), counted(receivers, "receiver")),
    };
    let (total, each) = (si(total as f64), si(total as f64 / pairs.count() as f64));
    Some(format!("{key} {total} = {of} x {each}"))
}

/// Of each sender, whose receivers may be more than another's; nothing where each sender has one.
fn connections(options: &LoadOptions, pairs: &HostPairs, senders: &[&str]) -> Option<String> {
    let total = options.connections?;
    let mut of_count: BTreeMap<usize, Vec<&str>> = BTreeMap::new();
    for (sender, alias) in senders.iter().enumerate() {
        of_count.entry(pairs.receivers_of(sender).len()).or_default().push(alias);
    }
    let part = |(count, names): (&usize, &Vec<&str>)| {
        let each = si(total as f64 / *count as f64);
        let of = format!("{} x {each}", counted(*count as u64, "receiver"));
        if of_count.len() > 1 { format!("{of} ({})", names.join(", ")) } else { of }
    };
    let parts: Vec<String> = of_count.iter().map(part).collect();
    let is_shared = of_count.keys().any(|count| *count > 1);
    is_shared.then(|| format!("load.connections {total} of each sender = {}", parts.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{HostShape, parse, resolve};

    fn shown(load: &str, pairs: &HostPairs) -> Vec<String> {
        let file = parse(&format!("question = \"q\"\n{load}"), "t", "t").unwrap();
        let resolved = resolve(&file, &[], &HostShape::flat(4)).unwrap();
        let senders = &["gen1", "gen2"][..pairs.hosts()[0]];
        lines(&resolved.variants[0].load.own().unwrap().options, pairs, senders)
    }

    #[test]
    fn a_rate_is_that_of_all_pairs() {
        let load = "[load]\nrate = \"6k\"";
        let of = |pairs: &HostPairs| shown(load, pairs);
        assert_eq!(of(&HostPairs::all(2, 2)), ["load.rate 6k = 2 senders x 2 receivers x 1.5k"]);
        assert_eq!(of(&HostPairs::all(2, 1)), ["load.rate 6k = 2 senders x 3k"]);
        let chosen = HostPairs::of(2, 2, |sender, receiver| sender <= receiver);
        assert_eq!(of(&chosen), ["load.rate 6k = 3 pairs x 2k"]);
        assert_eq!(of(&HostPairs::all(1, 1)), [""; 0]);
    }

    #[test]
    fn connections_are_those_of_each_sender_to_its_receivers() {
        let load = "[serve]\nprotocol = \"http\"\n[load]\nconnections = 6";
        let of = |pairs: &HostPairs| shown(load, pairs);
        let all = "load.connections 6 of each sender = 2 receivers x 3";
        assert_eq!(of(&HostPairs::all(2, 2)), [all]);
        let chosen = HostPairs::of(2, 2, |sender, receiver| sender <= receiver);
        let uneven =
            "load.connections 6 of each sender = 1 receiver x 6 (gen2), 2 receivers x 3 (gen1)";
        assert_eq!(of(&chosen), [uneven]);
        let alone = HostPairs::of(2, 2, |sender, receiver| sender == receiver);
        assert_eq!(of(&alone), [""; 0], "a sender has one receiver");
    }
}
