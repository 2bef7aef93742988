//! Two senders and two receivers of which the inventory chooses two pairs.

use std::fs;

use rxpath_record::manifest::{Manifest, Trial};
use rxpath_record::run::RunReader;

use super::{SOON, site};

/// One trial at a rate that loses nothing, for longer than a busy machine keeps a sender from its CPU.
pub(super) const SCENARIO: &str = r#"
    question = "?"
    [serve]
    rcvbuf = "8MiB"
    [load]
    rate = "4k"
    [trials]
    blocks = 1
    max_blocks = 1
    aa = false
    paired = false
    ramp = "100ms"
    settle = "100ms"
    measure = "3s"
"#;

/// Sender and receiver of each pair, and the sender's number.
const PAIRS: [(&str, &str, u64); 2] = [("gen1", "sut2", 0), ("gen2", "sut", 1)];

#[test]
fn only_chosen_pairs_talk_to_each_other() {
    let Some(mut site) = site() else { return };
    let inventory = site.add_receiver_and_sender();
    let hosts = fs::read_to_string(&inventory).unwrap();
    let pairs = r#"pairs = [["gen2", "sut"], ["gen1", "sut2"]]"#;
    let chosen = site.write("chosen.toml", &format!("{hosts}[network]\n{pairs}\n"));
    let check = site.rxpath(&["hosts", "check", &chosen]).ends(0);
    for ready in ["ready: gen2 -> sut (10.78.5.2)\n", "ready: gen1 -> sut2 (10.78.5.3)\n"] {
        assert!(check.out.contains(ready), "{check:?}");
    }
    let (file, out) = (site.write("s.toml", SCENARIO), site.path("runs"));
    let words = ["run", &file, "--hosts", &chosen];
    site.rxpath(&[&words[..], &["--dry-run"]].concat()).prints("base: load.rate 4k = 2 pairs x 2k");
    let run = site.rxpath(&[&words[..], &["--out", &out, "--keep-noisy"]].concat());
    // 4: the machine was busy, which is no matter here.
    assert!(matches!(run.code, Some(0 | 4)), "{run:?}");
    let directory = fs::read_dir(&out).unwrap().next().unwrap().unwrap().path();
    let manifest = RunReader::open(&directory).unwrap().manifest;
    every_datagram_is_that_of_a_pair(manifest.trials.last().unwrap());
    clocks_are_those_of_the_pairs(&manifest);
    site.holds_nothing(SOON);
}

fn every_datagram_is_that_of_a_pair(trial: &Trial) {
    assert_eq!(trial.ledger.unaccounted_packets, Some(0), "{:?}", trial.ledger);
    let names: Vec<(&str, &str)> =
        trial.pairs.iter().map(|pair| (pair.sender.as_str(), pair.receiver.as_str())).collect();
    assert_eq!(names, PAIRS.map(|(sender, receiver, _)| (sender, receiver)));
    for (pair, (_, receiver, number)) in trial.pairs.iter().zip(PAIRS) {
        assert!(pair.offered_packets > 500, "{pair:?}");
        assert_eq!(pair.delivered_packets, Some(pair.offered_packets), "{pair:?}");
        let ledger = trial.hosts[receiver].ledger.as_ref().unwrap();
        assert_eq!(ledger.unaccounted_packets, Some(0), "{receiver}: {ledger:?}");
        assert_eq!(ledger.offered_packets, pair.offered_packets, "{receiver}: {ledger:?}");
        // Each datagram has the number of its sender: none of the other one came.
        let sequence = &trial.workloads[&format!("serve@{receiver}")]["result"]["sequence"];
        assert_eq!(sequence["streams_count"], 1, "{receiver}: {sequence}");
        let senders = sequence["senders"].as_array().into_iter().flatten();
        let numbers: Vec<u64> = senders.filter_map(|one| one["sender"].as_u64()).collect();
        // None are listed where all datagrams are of sender 0.
        let wanted = if number == 0 { Vec::new() } else { vec![number] };
        assert_eq!(numbers, wanted, "{receiver}: {sequence}");
    }
}

/// No others were compared.
fn clocks_are_those_of_the_pairs(manifest: &Manifest) {
    let clocks = manifest.pair_clocks();
    let names: Vec<(&str, &str)> =
        clocks.iter().map(|pair| (pair.sender.as_str(), pair.receiver.as_str())).collect();
    assert_eq!(names, PAIRS.map(|(sender, receiver, _)| (sender, receiver)));
    for (sender, receiver, _) in PAIRS {
        let part = &manifest.hosts[sender];
        assert_eq!(part.sends_to, [receiver]);
        assert!(part.path_clocks.keys().all(|alias| alias == receiver), "{part:?}");
    }
    // The other pair has one clock.
    let [(sender, receiver, _), _] = PAIRS;
    assert!(manifest.hosts[sender].path_clocks.contains_key(receiver), "{:?}", manifest.hosts);
}
