//! What a live host is told to change: its own services, never the workloads of a trial.

use std::collections::BTreeSet;

use rxpath_diagnose::diagnose;
use rxpath_record::evidence::{CpuDistribution, SoftirqPlace, WindowEvidence};
use rxpath_record::ledger::Place;
use rxpath_record::verdict::Stage;

use crate::made::{lost, scenes, text};
use crate::tcp::{softirq_bound, unread, web};
use crate::watched::{any, dropping, host, packets, reader};

/// The scenes of trials as a watched host would have them, and those that only a watched host has.
fn live_scenes() -> Vec<(String, WindowEvidence)> {
    let watched = scenes().into_iter().map(|(name, mut e)| {
        e.watched = true;
        e.sender_threads.clear();
        e.sender_blocked_s = 0.0;
        e.target_pps = Some(e.offered_pps);
        (name.to_owned(), e)
    });
    let mut all: Vec<(String, WindowEvidence)> = watched.collect();
    let mut add = |name: &str, e: WindowEvidence| all.push((name.to_owned(), e));
    let with = |counter: &str, count| {
        let mut e = web();
        e.tcp.as_mut().expect("TCP").counters = [(counter.to_owned(), count)].into();
        e
    };
    add("web", web());
    add("accept", with("TcpExt.ListenDrops", 50));
    add("cookies", with("TcpExt.TCPReqQFullDoCookies", 50));
    add("receive", with("TcpExt.TCPRcvQDrop", 50));
    add("backlog of a socket", with("TcpExt.TCPBacklogDrop", 50));
    add("windows", with("TcpExt.TCPToZeroWindowAdv", 50));
    add("to here", with("TcpExt.TCPOFOQueue", 5_000));
    add("twice", with("TcpExt.TCPDSACKOldSent", 5_000));
    add("from here", with("Tcp.RetransSegs", 5_000));
    add("unread", unread(0.99, 1, 10));
    add("softirq of TCP", softirq_bound(0.99, 9_990));
    add("who reads", dropping(vec![reader(812, 1, 1, 0.1), reader(812, 2, 2, 1.0)], 1));
    let mut ring = host(100_000, vec![]);
    ring.any_protocol = vec![any(lost(Place::Ring, "eth0 rx_missed_errors", 5_000), 105_000)];
    add("ring of a device", ring.clone());
    ring.any_protocol =
        vec![any(lost(Place::Routing, "skb:kfree_skb IP_LOCALNET", 5_000), 105_000)];
    add("routing", ring.clone());
    ring.any_protocol = vec![any(lost(Place::Ring, "eth0 rx_missed_errors", 5_000), 105_000)];
    ring.cpus[0].idle_ratio = 0.0;
    ring.cpus[0].softirq_ratio = 0.1;
    ring.spread = Some(CpuDistribution {
        packets: vec![packets(0, 100_000, 0)],
        ..CpuDistribution::default()
    });
    ring.softirq = SoftirqPlace::Napi { cpus: vec![0] };
    add("ring of a busy CPU", ring);
    all
}

#[test]
fn no_live_answer_speaks_of_the_workloads_of_a_trial() {
    for (name, evidence) in live_scenes() {
        let told = text(&diagnose(&evidence));
        for word in
            ["serve udp", "load udp", "--rcvbuf", "--threads", "--work", "--rate", "`--cpu`"]
        {
            assert!(!told.contains(word), "{name}: {word}: {told}");
        }
    }
}

/// The scenes reach every stage that a live host can have: a new one has to be put among them.
#[test]
fn every_stage_of_a_live_host_has_a_scene() {
    let reached: BTreeSet<Stage> = live_scenes().iter().map(|(_, e)| diagnose(e).stage).collect();
    let never = [Stage::Sender, Stage::SenderOrSoftirq, Stage::Network];
    for stage in Stage::ALL.into_iter().filter(|stage| !never.contains(stage)) {
        assert!(reached.contains(&stage), "{stage:?}");
    }
}

/// A trial's answers go on speaking of its workloads.
#[test]
fn a_trial_is_told_the_options_of_its_workloads() {
    let told: String = scenes().iter().map(|(_, e)| text(&diagnose(e))).collect();
    for word in ["`serve udp --rcvbuf", "`load udp --rate`", "`serve udp --threads"] {
        assert!(told.contains(word), "{word}");
    }
}
