//! The ledger against trials measured one place of loss at a time.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // clippy excepts #[test] functions only

#[path = "ledger/by_kernel.rs"]
mod by_kernel;
#[path = "support/cases.rs"]
mod support;

use std::collections::BTreeMap;

use rxpath_record::counters::Moved;
use rxpath_record::ledger::{Drop, Ledger, LedgerInput, Link, Place, waiting_packets};
use support::{Case, cases};

fn by_place(ledger: &Ledger) -> BTreeMap<Place, u64> {
    let mut places = BTreeMap::new();
    for drop in &ledger.drops {
        *places.entry(drop.place).or_default() += drop.packets;
    }
    places
}

#[test]
fn every_place_closes_exactly() {
    for case in cases() {
        for rules_known in [true, false] {
            let ledger = Ledger::from_counters(&case.input(rules_known), &case.moved());
            assert_eq!(by_place(&ledger), case.lost, "{}: {ledger:#?}", case.name);
            assert_eq!(
                ledger.unaccounted_packets,
                Some(case.unaccounted),
                "{}: {ledger:#?}",
                case.name
            );
            assert!(ledger.drops.iter().all(|drop| drop.exact), "{}: {ledger:#?}", case.name);
        }
    }
}

#[test]
fn a_ledger_that_closes_has_no_notes_and_its_cross_checks_agree() {
    for case in cases().iter().filter(|case| case.unaccounted == 0) {
        let ledger = Ledger::from_counters(&case.input(true), &case.moved());
        assert_eq!(ledger.notes, Vec::<String>::new(), "{}: {ledger:#?}", case.name);
        let checks = ledger.drops.iter().flat_map(|drop| &drop.cross_checks);
        assert!(checks.clone().all(|check| check.agrees), "{}: {ledger:#?}", case.name);
    }
}

#[test]
fn what_is_left_in_a_ring_is_named() {
    let case = cases().into_iter().find(|case| case.name == "ring_gso").unwrap();
    let ledger = Ledger::from_counters(&case.input(true), &case.moved());
    let said =
        ledger.notes.iter().any(|note| note.starts_with("5,120 datagrams lie between the sender"));
    assert!(said, "{ledger:#?}");
}

/// The counters that a loss rests on.
fn owners(drop: &Drop, moved: &Moved) -> Vec<String> {
    let named =
        |name: &&String| drop.counter.split(&[' ', '(', ')'][..]).any(|word| word == name.as_str());
    let mut owners: Vec<String> = moved.values.keys().filter(named).cloned().collect();
    if drop.place == Place::IngressHook {
        owners.extend(moved.values.keys().filter(|name| name.ends_with("ECTPkts")).cloned());
    }
    owners
}

fn unaccounted(input: &LedgerInput, moved: &Moved) -> i64 {
    // What is said to be unknown is noticed as well.
    Ledger::from_counters(input, moved).unaccounted_packets.unwrap_or(i64::MAX)
}

#[test]
fn a_false_owner_is_noticed() {
    let mut tried = 0;
    for case in cases() {
        let ledger = Ledger::from_counters(&case.input(true), &case.moved());
        for drop in &ledger.drops {
            let owners = owners(drop, &case.moved());
            assert!(!owners.is_empty() || drop.place == Place::SendCall, "{}", drop.counter);
            for owner in owners {
                for by in [1, -1, 7, -7] {
                    let mut moved = case.moved();
                    *moved.values.get_mut(&owner).unwrap() += by;
                    let rest =
                        unaccounted(&case.input(true), &moved).saturating_sub(case.unaccounted);
                    assert_ne!(rest, 0, "{}: {owner} by {by}", case.name);
                    tried += 1;
                }
            }
        }
    }
    assert!(tried > 200, "{tried}");
}

#[test]
fn a_false_word_of_sender_or_receiver_is_noticed() {
    for case in cases() {
        let base = case.unaccounted;
        let falsify: [fn(&mut LedgerInput); 3] = [
            |input| input.sender.offered_packets += 1,
            |input| input.receiver.delivered_packets += 1,
            |input| input.receiver.in_flight_packets += 1,
        ];
        for change in falsify {
            let mut input = case.input(true);
            change(&mut input);
            assert_ne!(unaccounted(&input, &case.moved()), base, "{}", case.name);
        }
        let errnos: Vec<String> = case.input(true).sender.send_errors.keys().cloned().collect();
        for errno in errnos.iter().filter(|errno| *errno != "ENOBUFS") {
            let mut input = case.input(true);
            *input.sender.send_errors.get_mut(errno).unwrap() -= 1;
            assert_ne!(unaccounted(&input, &case.moved()), base, "{}", case.name);
        }
    }
}

/// Place by place: the owner, and the counters that move with it and must not be added.
#[test]
fn no_drop_is_counted_twice() {
    let table: [(&str, &str, &[&str]); 8] = [
        ("socket_buffer", "rx/Udp.RcvbufErrors", &["rx/Udp.InErrors", "SO_MEMINFO drops"]),
        ("nft_input", "rx/Ip.InReceives - rx/Ip.InDelivers", &["rx/nft.inet.t.in.2.packets"]),
        ("rp_filter", "rx/TcpExt.IPReversePathFilter", &[]),
        ("bad_checksum", "rx/Udp.InCsumErrors", &["rx/Udp.InErrors"]),
        (
            "rps_backlog",
            "rx/link.veth.rx.dropped",
            &["tx/link.veth.tx.dropped", "tx/Udp.SndbufErrors", "machine/softnet.*.dropped"],
        ),
        ("veth_ring", "tx/link.veth.tx.dropped", &["tx/Udp.SndbufErrors"]),
        ("sender_qdisc", "tx/qdisc.veth.tbf-1:.drops", &["tx/Udp.SndbufErrors"]),
        ("no_listener", "rx/Udp.NoPorts", &[]),
    ];
    for (name, owner, checks) in table {
        let case = cases().into_iter().find(|case| case.name == name).unwrap();
        let ledger = Ledger::from_counters(&case.input(true), &case.moved());
        let [drop] = &ledger.drops[..] else { panic!("{name}: {ledger:#?}") };
        assert_eq!(drop.counter, owner);
        for check in checks {
            let found = drop.cross_checks.iter().find(|found| found.counter == *check);
            assert_eq!(found.map(|c| (c.packets, c.agrees)), Some((drop.packets, true)), "{name}");
        }
        // A cross-check that moves alone changes no term.
        for check in checks.iter().filter(|check| case.moved().values.contains_key(**check)) {
            let mut moved = case.moved();
            *moved.values.get_mut(*check).unwrap() -= 3;
            let other = Ledger::from_counters(&case.input(true), &moved);
            if drop.derived {
                // A derived term that its witness contradicts may not close the sum.
                assert_ne!(other.unaccounted_packets, Some(0), "{name}: {check}");
            } else {
                assert_eq!(other.lost_packets(), ledger.lost_packets(), "{name}: {check}");
            }
            assert!(!other.notes.is_empty(), "{name}: {check} lies and nobody says so");
        }
    }
}

#[test]
fn a_missing_owner_is_said() {
    let case = cases().into_iter().find(|case| case.name == "socket_buffer").unwrap();
    let mut moved = case.moved();
    moved.values.retain(|name, _| !name.starts_with("rx/Udp."));
    moved.gaps.insert("rx/snmp".into(), "permission denied".into());
    let ledger = Ledger::from_counters(&case.input(true), &moved);
    assert_ne!(ledger.unaccounted_packets, Some(0));
    let note = "rx/Udp.RcvbufErrors cannot be read (permission denied): its losses cannot be \
                accounted for";
    assert!(ledger.notes.iter().any(|said| said == note), "{:#?}", ledger.notes);
}

#[test]
fn foreign_packets_are_counted_and_not_lost() {
    let case = cases().into_iter().find(|case| case.name == "no_listener").unwrap();
    let ledger = Ledger::from_counters(&case.input(true), &case.moved());
    assert_eq!(ledger.foreign_packets, 7);
    let quiet = cases().into_iter().find(|case| case.name == "none").unwrap();
    assert_eq!(Ledger::from_counters(&quiet.input(true), &quiet.moved()).foreign_packets, 0);
}

fn with_foreign(case: &Case) -> Moved {
    let mut moved = case.moved();
    let mut add = |name: &str, by: i64| *moved.values.entry(name.into()).or_default() += by;
    // Three pings and five neighbour solicitations of IPv6 arrive during an IPv4 trial.
    for name in ["rx/Ip.InReceives", "rx/Ip.InDelivers", "rx/IpExt.InNoECTPkts", "rx/Icmp.InMsgs"] {
        add(name, 3);
    }
    for name in ["rx/Ip6.InReceives", "rx/Ip6.InDelivers", "rx/Ip6.InNoECTPkts", "rx/Icmp6.InMsgs"]
    {
        add(name, 5);
    }
    for name in ["rx/link.veth.rx.packets", "tx/link.veth.tx.packets"] {
        add(name, 8);
    }
    add("tx/Icmp.OutMsgs", 3);
    add("tx/Icmp6.OutMsgs", 5);
    moved
}

#[test]
fn foreign_packets_do_not_disturb_the_terms() {
    let v4 = |case: &Case| !case.input(true).path.v6;
    for case in cases().iter().filter(|case| v4(case)) {
        let ledger = Ledger::from_counters(&case.input(true), &with_foreign(case));
        assert_eq!(by_place(&ledger), case.lost, "{}: {ledger:#?}", case.name);
        assert_eq!(ledger.unaccounted_packets, Some(case.unaccounted), "{}", case.name);
    }
}

#[test]
fn partial_batches_give_bounds_and_sequence_numbers_decide() {
    let case = cases().into_iter().find(|case| case.name == "v4_gso_no_listener").unwrap();
    let mut input = case.input(true);
    input.sender.short_batches = true;
    let ledger = Ledger::from_counters(&input, &case.moved());
    let [drop] = &ledger.drops[..] else { panic!("{ledger:#?}") };
    assert_eq!((drop.packets, drop.exact), (250, false));
    assert!(ledger.notes.iter().any(|note| note.contains("at least 250 and at most 5,000")));

    input.receiver.sequence_lost_packets = Some(4321);
    let ledger = Ledger::from_counters(&input, &case.moved());
    assert_eq!((ledger.drops[0].packets, ledger.drops[0].exact), (4321, false));
}

/// IP counts all devices of a namespace: on loopback its difference to the device says nothing.
#[test]
fn other_devices_of_the_namespace_are_no_loss_on_loopback() {
    let case = cases().into_iter().find(|case| case.name == "none").unwrap();
    let mut input = case.input(false);
    input.path.link = Link::Loopback;
    for by in [-40, 40] {
        let mut moved = case.moved();
        *moved.values.get_mut("rx/link.veth.rx.packets").unwrap() += by;
        let ledger = Ledger::from_counters(&input, &moved);
        assert_eq!((ledger.unaccounted_packets, ledger.drops), (Some(0), vec![]));
    }
}

#[test]
fn frames_of_no_ip_are_no_loss_of_a_hook_whose_rules_are_unknown() {
    let case = cases().into_iter().find(|case| case.name == "none").unwrap();
    let mut input = case.input(false);
    let mut moved = case.moved();
    // Two of ARP.
    *moved.values.get_mut("rx/link.veth.rx.packets").unwrap() += 2;
    assert_eq!(Ledger::from_counters(&input, &moved).lost_at(Place::IngressHook), 2);
    input.path.has_other_frames = true;
    let ledger = Ledger::from_counters(&input, &moved);
    assert_eq!((ledger.unaccounted_packets, ledger.lost_packets()), (Some(0), 0), "{ledger:#?}");
    input.receiver.sequence_lost_packets = Some(0);
    let ledger = Ledger::from_counters(&input, &moved);
    assert_eq!((ledger.unaccounted_packets, ledger.drops), (Some(0), vec![]));
    // Where datagrams are missing, the hook took these.
    input.sender.offered_packets += 2;
    input.sender.sent_packets += 2;
    input.receiver.sequence_lost_packets = Some(2);
    let ledger = Ledger::from_counters(&input, &moved);
    assert_eq!(ledger.lost_at(Place::IngressHook), 2, "{ledger:#?}");
    assert_eq!(ledger.unaccounted_packets, Some(0), "{ledger:#?}");
}

/// A measured trial without GSO, with its sending device counter's name.
fn plain_case() -> (Case, String) {
    let plain = |case: &Case| {
        let moved = case.moved();
        case.name == "none" && moved.values.keys().any(|name| name.ends_with(".tx.packets"))
    };
    let case = cases().into_iter().find(plain).expect("a clean case with a device");
    let name = case
        .moved()
        .values
        .keys()
        .find(|n| n.starts_with("tx/link.") && n.ends_with(".tx.packets"))
        .unwrap()
        .clone();
    (case, name)
}

#[test]
fn what_no_counter_has_seen_yet_waits() {
    for case in cases().iter().filter(|case| case.unaccounted == 0) {
        assert_eq!(waiting_packets(&case.input(true), &case.moved()), 0, "{}", case.name);
    }
    let (case, device) = plain_case();
    let input = case.input(true);
    let mut moved = case.moved();
    *moved.values.get_mut(&device).unwrap() -= 7;
    assert_eq!(waiting_packets(&input, &moved), 7, "seven less left the device than were sent");
    *moved.values.get_mut(&device).unwrap() += 12;
    assert_eq!(waiting_packets(&input, &moved), 0, "more than were sent is no waiting");
}

#[test]
fn listener_reports_over_ipv6_are_nobodys_loss() {
    let case = cases()
        .into_iter()
        .find(|case| case.input(true).path.v6 && case.unaccounted == 0)
        .expect("a measured case over IPv6");
    let input = case.input(true);
    let mut moved = case.moved();
    let before = Ledger::from_counters(&input, &moved);
    // Three reports more came over the link to groups that nobody here listens to.
    for name in ["rx/Ip6.InMcastPkts", "rx/Ip6.InReceives", "rx/Ip6.InDelivers"] {
        *moved.values.entry(name.into()).or_default() += 3;
    }
    moved.values.entry("rx/Ip6.InDelivers".into()).and_modify(|n| *n -= 3);
    let after = Ledger::from_counters(&input, &moved);
    assert_eq!(after.unaccounted_packets, before.unaccounted_packets, "{after:#?}");
    assert_eq!(by_place(&after), by_place(&before), "{after:#?}");
}
