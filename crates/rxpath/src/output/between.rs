//! A run between several hosts as text: who sent how much to whom, what each receiver lost, what disturbed each host.

use std::collections::BTreeMap;

use rxpath_record::hosts::{PairPackets, PairRate};
use rxpath_record::ledger::Place;
use rxpath_record::manifest::{Grade, Manifest};

/// Pairs that are listed; of more, what each receiver got of all senders.
const LISTED: usize = 16;

/// The lines of a variant; none where one sender sent to one receiver and nothing disturbed them.
pub fn text(manifest: &Manifest, variant: &str) -> String {
    let pairs = by_receiver(manifest.pairs(variant));
    let rates = rates_by_receiver(manifest.pair_rates(variant));
    // The table has medians, these are sums.
    let together = together(manifest, variant);
    let pairs = pairs.iter().map(|pair| format!("{} {together}", pair.text()));
    let pairs = pairs.chain(rates.iter().map(PairRate::text));
    let unit = manifest.ledger_unit(variant).word();
    let losses = manifest.receiver_losses(variant).into_iter();
    let losses = losses.map(|((alias, place), loss)| {
        format!("{alias}: {} {unit} lost at {} {together}", loss.text(), place_words(place))
    });
    let shown = |line: String| format!("{variant}: {line}\n");
    pairs.chain(losses).chain(grades(manifest, variant)).map(shown).collect()
}

/// Of which trials of a variant a number is the sum: `in 5 trials together`, and how many more the medians are made of.
pub fn together(manifest: &Manifest, variant: &str) -> String {
    let trials = match manifest.counted(variant).len() {
        1 => "in 1 trial".to_owned(),
        count => format!("in {count} trials together"),
    };
    match manifest.aa_in_medians(variant) {
        0 => trials,
        1 => format!("{trials} (the medians have 1 trial of A/A too)"),
        more => format!("{trials} (the medians have {more} trials of A/A too)"),
    }
}

/// A place in words.
pub fn place_words(place: Place) -> String {
    // Names in results are kebab case; the text has spaces instead.
    super::word(&place).replace('-', " ")
}

/// The pairs, or their sums where they are many.
fn by_receiver(pairs: Vec<PairPackets>) -> Vec<PairPackets> {
    if pairs.len() <= LISTED {
        return pairs;
    }
    let mut sums: Vec<PairPackets> = Vec::new();
    for pair in pairs {
        match sums.iter_mut().find(|sum| sum.receiver == pair.receiver) {
            Some(sum) => {
                sum.offered_packets += pair.offered_packets;
                let both = sum.delivered_packets.zip(pair.delivered_packets);
                sum.delivered_packets = both.map(|(a, b)| a + b);
            }
            None => sums.push(PairPackets { sender: "all senders".into(), ..pair }),
        }
    }
    sums
}

/// The same of rates.
fn rates_by_receiver(pairs: Vec<PairRate>) -> Vec<PairRate> {
    if pairs.len() <= LISTED {
        return pairs;
    }
    let mut sums: Vec<PairRate> = Vec::new();
    for pair in pairs {
        match sums.iter_mut().find(|sum| sum.receiver == pair.receiver) {
            Some(sum) => {
                sum.value += pair.value;
                sum.errors_count += pair.errors_count;
                sum.timed_count += pair.timed_count;
                sum.done_total = sum.done_total.zip(pair.done_total).map(|(a, b)| a + b);
            }
            // Quantiles do not add up.
            None => sums.push(PairRate { sender: "all senders".into(), p99_us: None, ..pair }),
        }
    }
    sums
}

/// A line for each disturbance: hosts of one machine share it.
fn grades(manifest: &Manifest, variant: &str) -> Vec<String> {
    let mut found: BTreeMap<(Grade, String), Vec<String>> = BTreeMap::new();
    for (alias, (grade, why)) in manifest.host_grades(variant) {
        if grade > Grade::A {
            found.entry((grade, why)).or_default().push(alias);
        }
    }
    let line = |((grade, why), hosts): ((Grade, String), Vec<String>)| {
        format!("{}: grade {grade:?}: {why}", hosts.join(", "))
    };
    found.into_iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use rxpath_core::PathSide;
    use rxpath_record::hosts::HostTrial;
    use rxpath_record::manifest::Trial;

    use super::*;

    fn pair(sender: usize, receiver: usize) -> PairPackets {
        PairPackets {
            sender: format!("gen{sender}"),
            receiver: format!("sut{receiver}"),
            offered_packets: 100,
            delivered_packets: Some(90),
        }
    }

    fn manifest(pairs: Vec<PairPackets>) -> Manifest {
        let host = |side| HostTrial {
            grade: Grade::C,
            noise: vec!["a busy CPU".into()],
            ..HostTrial::of(side)
        };
        let trial = Trial {
            variant: "base".into(),
            pairs,
            hosts: [
                ("gen1".to_owned(), host(PathSide::Tx)),
                ("sut1".to_owned(), host(PathSide::Rx)),
            ]
            .into(),
            ..Trial::default()
        };
        Manifest { trials: vec![trial], ..Manifest::default() }
    }

    #[test]
    fn pairs_and_what_disturbed_their_hosts_are_told() {
        let told = text(&manifest(vec![pair(1, 1), pair(1, 2)]), "base");
        let wanted = "base: gen1 -> sut1: 100 datagrams offered, 10.00 % lost in 1 trial\n\
                      base: gen1 -> sut2: 100 datagrams offered, 10.00 % lost in 1 trial\n\
                      base: gen1, sut1: grade C: a busy CPU\n";
        assert_eq!(told, wanted);
    }

    #[test]
    fn of_many_pairs_each_receiver_is_told() {
        let many = (1..10).flat_map(|sender| [pair(sender, 1), pair(sender, 2)]).collect();
        let told = text(&manifest(many), "base");
        let first = "base: all senders -> sut1: 900 datagrams offered, 10.00 % lost in 1 trial\n";
        assert!(told.starts_with(first), "{told}");
        assert_eq!(told.lines().count(), 3, "{told}");
    }

    fn of_http(pair_rates: Vec<PairRate>) -> String {
        let trial = Trial { variant: "base".into(), pair_rates, ..Trial::default() };
        text(&Manifest { trials: vec![trial], ..Manifest::default() }, "base")
    }

    fn rate(sender: usize, receiver: usize) -> PairRate {
        PairRate {
            sender: format!("gen{sender}"),
            receiver: format!("sut{receiver}"),
            metric: "achieved_rps".into(),
            value: 100.0,
            p99_us: Some(310.0),
            ..PairRate::default()
        }
    }

    #[test]
    fn pairs_over_http_are_told_with_their_latency_and_many_as_sums() {
        assert_eq!(of_http(vec![rate(1, 2)]), "base: gen1 -> sut2: 100 requests/s, p99 310us\n");
        let many = (1..10).flat_map(|sender| [rate(sender, 1), rate(sender, 2)]).collect();
        let told = of_http(many);
        assert!(told.starts_with("base: all senders -> sut1: 900 requests/s\n"), "{told}");
        assert_eq!(told.lines().count(), 2, "{told}");
    }

    #[test]
    fn sums_of_many_pairs_are_whole() {
        let of = |sender| PairRate { done_total: Some(10), timed_count: 3, ..rate(sender, 1) };
        let sums = rates_by_receiver((1..=17).map(of).collect());
        assert_eq!((sums[0].done_total, sums[0].timed_count), (Some(170), 51));
        let mut all: Vec<PairRate> = (1..=17).map(of).collect();
        all[9].done_total = None;
        let sums = rates_by_receiver(all);
        assert_eq!(sums[0].done_total, None, "one receiver did not report its bytes");
    }
}
