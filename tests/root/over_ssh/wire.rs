//! Experiments over a wire with trouble: what it lost has a place, and how long it held is in the delay.

use std::time::Duration;

use rxpath_host::write::netlink::qdisc::QdiscSpec;
use rxpath_record::ledger::{Balance, Ledger, Place};
use rxpath_record::manifest::Manifest;
use rxpath_record::run::RunReader;
use rxpath_record::verdict::Stage;

use super::relay::{Relay, Trouble};
use super::site::Site;
use super::{QUICK, site};
use crate::skip::skip;

/// One trial over a wire with trouble.
fn over_wire(site: &Site, trouble: Trouble) -> (Relay, Manifest) {
    let (relay, inventory) = site.wire_with(trouble);
    (relay, trial(site, &inventory))
}

fn trial(site: &Site, inventory: &str) -> Manifest {
    trial_of(site, inventory, "rate = \"5k\"")
}

/// One trial of a load with these keys.
fn trial_of(site: &Site, inventory: &str, load: &str) -> Manifest {
    let out = site.path("runs");
    let text = format!("question = \"?\"\n[serve]\nrcvbuf = \"8MiB\"\n[load]\n{load}\n");
    let file = site.write("s.toml", &text);
    let words =
        ["run", &file, "--hosts", inventory, "--out", &out, "--keep-noisy", "--trials", "1"];
    // Longer than a busy machine keeps a sender, or the relay, from its CPU.
    let sets = QUICK[1..].iter().chain(&["trials.measure=1500ms"]).flat_map(|set| ["--set", set]);
    let run = site.rxpath(&words.into_iter().chain(sets).collect::<Vec<_>>());
    assert!(matches!(run.code, Some(0 | 4)), "{run:?}");
    let directory = std::fs::read_dir(&out).unwrap().next().unwrap().unwrap().path();
    RunReader::open(&directory).unwrap().manifest
}

#[test]
fn what_the_network_lost_is_a_place_of_its_own_and_equals_what_was_planted() {
    let Some(site) = site() else { return };
    let (relay, manifest) = over_wire(&site, Trouble { drop_each: Some(20), ..Trouble::default() });
    let trials = &manifest.trials;
    let lost: u64 = trials.iter().map(|trial| trial.ledger.lost_at(Place::Network)).sum();
    assert_eq!(lost, relay.dropped(), "{trials:#?}");
    assert!(lost > 10, "{trials:#?}");
    for trial in trials {
        assert_eq!(trial.ledger.unaccounted_packets, Some(0), "{:#?}", trial.ledger);
    }
    let verdict = trials[0].verdict.as_ref().unwrap();
    assert_eq!(verdict.stage, Stage::Network, "{verdict:?}");
}

#[test]
fn what_the_sender_s_queueing_discipline_dropped_is_found_there() {
    let Some(site) = site() else { return };
    // A third of the load: a datagram of 32 bytes is a frame of 74.
    let spec = QdiscSpec::Tbf { rate_bps: 1_000_000, burst_bytes: 2_000, limit_bytes: 3_000 };
    if let Err(why) = site.queue("gen1", "data", spec) {
        return skip("qdisc_tbf", &why);
    }
    let trials = trial(&site, &site.inventory).trials;
    for trial in &trials {
        let ledger = &trial.ledger;
        let lost = ledger.offered_packets - ledger.delivered_packets;
        assert!(lost > 100, "{ledger:#?}");
        assert_eq!(ledger.lost_at(Place::Qdisc), lost, "{ledger:#?}");
        assert_eq!(ledger.unaccounted_packets, Some(0), "{ledger:#?}");
    }
    let verdict = trials[0].verdict.as_ref().unwrap();
    assert_eq!(verdict.stage, Stage::Sender, "{verdict:?}");
}

/// Classic BPF that tc takes as text: of the workload's datagrams, which are frames of 74 bytes, one in four is dropped.
const ONE_IN_FOUR: &str =
    "7,128 0 0 0,21 0 4 74,32 0 0 4294963256,84 0 0 3,21 0 1 0,6 0 0 2,6 0 0 4294967295";

#[test]
fn what_a_filter_of_tc_dropped_at_the_sender_s_egress_is_found_there() {
    let Some(site) = site() else { return };
    let filter = ["tc", "filter", "add", "dev", "data", "egress", "bpf", "da", "bytecode"];
    for words in [
        &["tc", "qdisc", "add", "dev", "data", "clsact"][..],
        &[&filter[..], &[ONE_IN_FOUR]].concat(),
    ] {
        if let Err(why) = site.try_inside("gen1", words) {
            return skip("tc_filter", &why);
        }
    }
    for trial in trial(&site, &site.inventory).trials {
        let ledger = &trial.ledger;
        let lost = ledger.offered_packets - ledger.delivered_packets;
        assert!(lost > 100, "{ledger:#?}");
        assert_eq!(ledger.lost_at(Place::EgressHook), lost, "{ledger:#?}");
        assert_eq!(ledger.unaccounted_packets, Some(0), "{ledger:#?}");
    }
}

/// The same as a program of tcx: a quarter of them at random gets `TCX_DROP`, the others `TCX_NEXT`.
const A_QUARTER: [u64; 9] = [
    // r0 = skb->len; a frame of another size passes.
    0x1061,
    0x55 | 5 << 16 | 74 << 32,
    // r0 = bpf_get_prandom_u32() & 3
    0x85 | 7 << 32,
    0x57 | 3 << 32,
    0x55 | 2 << 16,
    // TCX_DROP
    0xb4 | 2 << 32,
    0x95,
    // TCX_NEXT
    0xb4 | 0xffff_ffff << 32,
    0x95,
];

/// Rules of nftables that drop a quarter of the workload's datagrams at random in a chain of this head.
fn a_quarter(family: &str, hook: &str) -> String {
    format!(
        "table {family} t {{ chain c {{ type filter hook {hook} priority 0; policy accept; udp length 40 numgen random \
         mod 4 == 0 counter drop; }}; }}"
    )
}

/// The ledger of a trial that lost datagrams at this place alone, all of them known.
fn lost_at(site: &Site, place: Place) -> Ledger {
    let ledger = trial(site, &site.inventory).trials.remove(0).ledger;
    let lost = ledger.offered_packets - ledger.delivered_packets;
    assert!(lost > 100, "{ledger:#?}");
    assert_eq!(ledger.lost_at(place), lost, "{ledger:#?}");
    assert_eq!(ledger.unaccounted_packets, Some(0), "{ledger:#?}");
    ledger
}

#[test]
fn what_a_program_of_tcx_dropped_at_the_sender_s_egress_is_found_there() {
    let Some(site) = site() else { return };
    let _link = match site.tcx_egress("gen1", "data", &A_QUARTER) {
        Ok(link) => link,
        Err(why) => return skip("bpf_programs", &format!("no program of tcx here: {why}")),
    };
    let ledger = lost_at(&site, Place::EgressHook);
    let drop = ledger.drops.iter().find(|drop| drop.place == Place::EgressHook).unwrap();
    assert!(drop.exact && drop.cross_checks.is_empty(), "{drop:?}");
}

#[test]
fn what_netfilter_dropped_at_the_sender_s_egress_is_found_there() {
    let Some(site) = site() else { return };
    let rules = a_quarter("netdev", "egress device data");
    if let Err(why) = site.try_inside("gen1", &["nft", &rules]) {
        return skip("nft_egress", &why);
    }
    lost_at(&site, Place::EgressHook);
}

#[test]
fn what_a_rule_in_output_refused_is_what_the_sender_counted_as_errors() {
    let Some(site) = site() else { return };
    site.filter("gen1", &a_quarter("inet", "output"));
    let ledger = lost_at(&site, Place::SendCall);
    let drop = ledger.drops.iter().find(|drop| drop.place == Place::SendCall).unwrap();
    assert_eq!((drop.counter.as_str(), drop.exact), ("send call: EPERM", true), "{drop:?}");
    let check = drop.cross_checks.iter().find(|it| it.counter == "tx/Ip.OutDiscards").unwrap();
    assert!(check.agrees, "{drop:?}");
}

/// The hosts' counters have the segments of ssh, too.
#[test]
fn segments_of_a_host_that_ssh_uses_too_are_accounted_for_within_bounds() {
    let Some(site) = site() else { return };
    let (_relay, inventory) = site.wire_with(Trouble::default());
    let load = "protocol = \"tcp-stream\"\nbitrate = \"50M\"";
    let manifest = trial_of(&site, &inventory, load);
    let ledger = &manifest.trials[0].ledger;
    let is_closed = matches!(ledger.balance(), Balance::Closed | Balance::Within(_));
    assert!(is_closed && ledger.offered_packets > 500, "{ledger:#?}");
    // The sockets of both programs were read.
    for end in &ledger.inexact {
        assert!(end.least_packets > 500, "{ledger:#?}");
    }
    let tcp = |side: &str| &manifest.trials[0].workloads[side]["result"]["tcp"];
    assert!(tcp("load")["sent_packets"].as_u64() > Some(500), "{}", tcp("load"));
    assert!(tcp("serve")["received_packets"].as_u64() > Some(500), "{}", tcp("serve"));
}

#[test]
fn counters_of_the_network_that_a_command_prints_are_in_a_note_of_the_ledger() {
    let Some(site) = site() else { return };
    let (relay, inventory) = site.wire_with(Trouble { drop_each: Some(20), ..Trouble::default() });
    // A switch that counts seven more at each reading.
    let count = site.write("count", "0");
    let counters = site.write(
        "counters.sh",
        &format!(
            "n=$(($(cat {count}) + 7)); echo $n >{count}; echo \"{{\\\"sw1.drops\\\": $n}}\"\n"
        ),
    );
    let text = std::fs::read_to_string(&inventory).unwrap();
    let network = format!("[network]\ncounters = [\"sh\", \"{counters}\"]\n");
    let manifest = trial(&site, &site.write("counted.toml", &(text + &network)));
    let ledger = &manifest.trials[0].ledger;
    assert_eq!(ledger.lost_at(Place::Network), relay.dropped(), "{ledger:#?}");
    let note = "the network's own counters changed: network/sw1.drops by 7";
    assert!(ledger.notes.iter().any(|it| it == note), "{ledger:#?}");
    assert_eq!(ledger.unaccounted_packets, Some(0), "{ledger:#?}");
}

#[test]
fn a_sender_whose_link_is_too_slow_is_named_as_the_limit() {
    let Some(site) = site() else { return };
    // A frame of 1,042 bytes: 960 a second, and whoever sends more waits.
    let spec = QdiscSpec::Tbf { rate_bps: 8_000_000, burst_bytes: 5_000, limit_bytes: 1_000_000 };
    if let Err(why) = site.queue("gen1", "data", spec) {
        return skip("qdisc_tbf", &why);
    }
    let load = "rate = \"5k\"\nsize = 1000\nsndbuf = \"16KiB\"";
    let manifest = trial_of(&site, &site.inventory, load);
    let trial = &manifest.trials[0];
    let limit = trial.warnings.iter().find(|warning| warning.code == "sender-limit");
    let limit = limit.unwrap_or_else(|| panic!("{:?}: {:?}", trial.warnings, trial.metrics));
    assert!(limit.text.starts_with("gen1 is the limit: target 5k/s, offered "), "{limit:?}");
}

/// The VLAN itself counts nothing of a wire.
#[test]
fn what_the_network_lost_of_a_vlan_is_known_by_the_devices_below_it() {
    let Some(site) = site() else { return };
    let trouble = Trouble { drop_each: Some(20), ..Trouble::default() };
    let (relay, _) = site.wire_with(trouble);
    let inventory = match site.vlan_of_wire() {
        Ok(inventory) => inventory,
        Err(why) => return skip("vlan", &why),
    };
    let manifest = trial(&site, &inventory);
    let trials = &manifest.trials;
    let lost: u64 = trials.iter().map(|trial| trial.ledger.lost_at(Place::Network)).sum();
    assert_eq!(lost, relay.dropped(), "{trials:#?}");
    assert!(lost > 10, "{trials:#?}");
    for trial in trials {
        assert_eq!(trial.ledger.unaccounted_packets, Some(0), "{:#?}", trial.ledger);
    }
}

/// The sender's clock is a day ahead.
#[test]
fn a_one_way_delay_is_that_of_the_wire_within_its_bound() {
    let Some(site) = site() else { return };
    let hold = Duration::from_millis(5);
    let (_relay, manifest) = over_wire(&site, Trouble { hold, ..Trouble::default() });
    let metrics = &manifest.trials[0].metrics;
    let of =
        |name: &str| metrics.get(name).copied().unwrap_or_else(|| panic!("{name}: {metrics:?}"));
    let (delay, bound) = (of("one_way_delay_p50_us"), of("one_way_delay_bound_us"));
    let on_wire = hold.as_secs_f64() * 1e6;
    assert!(bound < 2_500.0, "{metrics:?}");
    // Besides being held a datagram waits for the CPU, for how long nobody knows: the least of them waits little.
    let least = delay - of("delay_above_least_p50_us");
    assert!(
        least >= on_wire - bound && least < on_wire + 50_000.0,
        "{least} +-{bound}, held {on_wire}"
    );
}
