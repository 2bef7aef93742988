//! Each place that a lab can force a loss at, end to end: its own counter owns it, to the datagram.
//!
//! Nothing here asserts a rate or a time: only that all that was sent is somewhere, and where.

use rxpath_record::counters::Moved;
use rxpath_record::ledger::{Drop, Ledger, Place};

use crate::bed::may_run;
use crate::experiment::{Ended, run};

/// Runs a scenario and looks at the ledger of each trial; does nothing, and says so, without root.
pub fn each(scenario: &str, sets: &[&str], look: impl Fn(&Ended)) {
    if !may_run() {
        return;
    }
    let trials = run(scenario, sets);
    assert!(!trials.is_empty());
    for trial in &trials {
        eprintln!("{scenario} {sets:?}, {}: {:#?}", trial.variant, trial.ledger);
        closes(&trial.ledger);
        look(trial);
    }
}

/// Every datagram is in one place, and every counter that moves with a loss agrees.
fn closes(ledger: &Ledger) {
    assert!(ledger.offered_packets > 0);
    assert_eq!(ledger.unaccounted_packets, Some(0));
    let found = ledger.delivered_packets + ledger.lost_packets() + ledger.in_flight_packets;
    assert_eq!(ledger.offered_packets, found);
    assert_eq!(ledger.in_flight_packets, 0, "all queues are empty at the end");
    assert_eq!(ledger.notes, Vec::<String>::new());
    for drop in &ledger.drops {
        assert!(drop.exact, "{}", drop.counter);
        for check in &drop.cross_checks {
            assert!(check.agrees, "{} beside {}", check.counter, drop.counter);
        }
    }
}

/// The one place where anything was lost.
fn only(ledger: &Ledger, place: Place) -> &Drop {
    let [drop] = ledger.drops.as_slice() else { panic!("not one place of loss") };
    assert_eq!(drop.place, place);
    drop
}

/// A loss that one counter of the kernel owns.
fn owned<'a>(ledger: &'a Ledger, place: Place, counter: &str) -> &'a Drop {
    let drop = only(ledger, place);
    assert_eq!((drop.counter.as_str(), drop.derived), (counter, false));
    drop
}

pub fn has_check(drop: &Drop, counter: &str) {
    let found = drop.cross_checks.iter().any(|check| check.counter == counter);
    assert!(found, "{counter} is not checked against {}", drop.counter);
}

/// A derived loss that the counter of the rule confirms, and that took one packet of four.
fn confirmed_by_rule(trial: &Ended, place: Place, rule: &str) {
    let drop = only(&trial.ledger, place);
    assert!(drop.derived);
    has_check(drop, rule);
    assert_eq!(drop.packets, of_packets(&trial.moved, rule) * segments(trial));
    let packets = trial.ledger.offered_packets / segments(trial);
    // iptables counts from 0, nft up to 4.
    let quarter = [packets / 4, packets.div_ceil(4)];
    assert!(quarter.contains(&(drop.packets / segments(trial))), "each fourth packet");
}

fn of_packets(moved: &Moved, counter: &str) -> u64 {
    moved.get(counter).max(0).unsigned_abs()
}

/// Datagrams of one packet on the way.
fn segments(trial: &Ended) -> u64 {
    if trial.variant.starts_with("gso") { 20 } else { 1 }
}

#[test]
fn nothing_is_lost_where_nothing_is_in_the_way() {
    for sets in [&[][..], &["lab.ipv6=true"][..]] {
        each("loss-none", sets, |trial| {
            assert_eq!(trial.ledger.drops, []);
            assert_eq!(trial.ledger.delivered_packets, trial.ledger.offered_packets);
        });
    }
}

#[test]
fn a_socket_buffer_that_is_too_small_owns_its_drops() {
    each("loss-socket-buffer", &[], |trial| {
        let drop = owned(&trial.ledger, Place::SocketBuffer, "rx/Udp.RcvbufErrors");
        has_check(drop, "SO_MEMINFO drops");
        has_check(drop, "rx/Udp.InErrors");
    });
    each("loss-socket-buffer", &["lab.ipv6=true"], |trial| {
        owned(&trial.ledger, Place::SocketBuffer, "rx/Udp6.RcvbufErrors");
    });
}

#[test]
fn datagrams_to_a_closed_port_have_no_listener() {
    for (sets, counter) in
        [(&[][..], "rx/Udp.NoPorts"), (&["lab.ipv6=true"][..], "rx/Udp6.NoPorts")]
    {
        each("loss-no-listener", sets, |trial| {
            let drop = owned(&trial.ledger, Place::NoListener, counter);
            assert_eq!(drop.packets, trial.ledger.offered_packets);
        });
    }
}

#[test]
fn damaged_datagrams_are_counted_wherever_the_kernel_notices() {
    each("loss-checksum", &[], |trial| {
        let drop = owned(&trial.ledger, Place::Checksum, "rx/Udp.InCsumErrors");
        has_check(drop, "rx/Udp.InErrors");
        assert_eq!(drop.packets, trial.ledger.offered_packets);
    });
}

#[test]
fn a_rule_of_the_input_hook_confirms_the_derived_drops() {
    for sets in [&[][..], &["lab.ipv6=true"][..]] {
        each("loss-nft-input", sets, |trial| {
            confirmed_by_rule(trial, Place::Netfilter, "rx/nft.inet.t.in.1.packets");
        });
    }
}

#[test]
fn a_rule_of_the_raw_table_confirms_the_derived_drops() {
    each("loss-iptables-raw", &[], |trial| {
        confirmed_by_rule(trial, Place::Netfilter, "rx/nft.ip.raw.PREROUTING.1.packets");
    });
}

#[test]
fn a_rule_of_the_ingress_hook_confirms_the_derived_drops() {
    each("loss-nft-ingress", &[], |trial| {
        confirmed_by_rule(trial, Place::IngressHook, "rx/nft.netdev.t.in.1.packets");
    });
}

#[test]
fn a_queueing_discipline_owns_what_it_drops() {
    each("loss-qdisc", &[], |trial| {
        let drop = owned(&trial.ledger, Place::Qdisc, "tx/qdisc.veth.tbf.1:drops");
        has_check(drop, "tx/Udp.SndbufErrors");
    });
}

#[test]
fn a_full_ring_of_a_napi_device_owns_what_it_refused() {
    each("loss-ring", &[], |trial| {
        let drop = owned(&trial.ledger, Place::Ring, "tx/link.veth.tx.dropped");
        has_check(drop, "tx/Udp.SndbufErrors");
    });
}

#[test]
fn frames_of_an_xdp_program_all_arrive() {
    for sets in [&[][..], &["lab.ipv6=true"][..]] {
        each("frames", sets, |trial| {
            assert_eq!(trial.ledger.drops, []);
            assert_eq!(trial.ledger.delivered_packets, trial.ledger.offered_packets);
            assert_eq!(of_packets(&trial.moved, "rx/Udp.InCsumErrors"), 0);
            let frames = trial.workloads["load"]["result"]["frames"].clone();
            assert_eq!(frames["taken_packets"], trial.ledger.offered_packets);
            assert_eq!(frames["refused_packets"], 0);
        });
    }
}

#[test]
fn what_a_receivers_xdp_program_takes_is_delivered_or_lost_at_its_sockets() {
    each("bypass", &[], |trial| {
        assert_eq!(of_packets(&trial.moved, "rx/Udp.InDatagrams"), 0, "nothing passes UDP");
        let result = &trial.workloads["serve"]["result"];
        match trial.variant.as_str() {
            "stall" => {
                let drop = owned(
                    &trial.ledger,
                    Place::XdpSocket,
                    "XDP_STATISTICS rx_dropped + rx_ring_full",
                );
                has_check(drop, "rx/link.veth.rx.dropped");
            }
            "drop" => {
                assert_eq!(trial.ledger.delivered_packets, trial.ledger.offered_packets);
                assert_eq!(result["delivered_packets"], 0);
                assert_eq!(result["dropped_in_xdp_packets"], trial.ledger.offered_packets);
            }
            _ => {
                // A reader that waits for its CPU loses what its frames have no room for.
                let lost = trial.ledger.lost_at(Place::XdpSocket);
                assert_eq!(lost, trial.ledger.lost_packets());
                assert_eq!(result["delivered_packets"], trial.ledger.offered_packets - lost);
                assert!(trial.metrics["one_way_delay_p50_us"] > 0.0);
            }
        }
    });
}

/// Fragments are left to the stack, where the socket that holds the port gets the datagrams, and nobody reads them.
#[test]
fn datagrams_that_an_xdp_program_leaves_to_the_stack_are_in_its_socket_or_lost_there() {
    if !may_run() {
        return;
    }
    let sets = ["load.engine=socket", "load.size=2000", "load.rate=1k"];
    for trial in run("bypass", &sets).iter().filter(|trial| trial.variant == "read") {
        let ledger = &trial.ledger;
        eprintln!("{ledger:#?}");
        assert_eq!((ledger.unaccounted_packets, ledger.delivered_packets), (Some(0), 0));
        assert!(ledger.in_flight_packets > 0);
        assert!(trial.warnings.iter().any(|warning| warning.code == "left-to-the-stack"));
    }
}

#[test]
fn a_full_ring_owns_the_frames_of_an_xdp_program_that_it_refused() {
    each("frames-ring", &[], |trial| {
        let drop = owned(&trial.ledger, Place::Ring, "tx/link.veth.tx.dropped");
        assert_eq!(trial.workloads["load"]["result"]["frames"]["refused_packets"], drop.packets);
    });
}
