//! Hooks at the sender's egress: filters of tc, which have a counter, and programs of tcx and netfilter, which have none.

use rxpath_record::ledger::{Balance, Drop, Ledger, LedgerInput, PacketBounds, Place};

use super::shared::{QDISC, drop_at};
use super::{TRUTH, by_place, input, moved};

const FILTERS: &str = "tx/tc.eth0.clsact.drops";
const UDP: &str = "tx/Udp.SndbufErrors";
const IP: &str = "tx/Ip.OutDiscards";

/// Ten more were dropped under the call.
const HOOKED: [(&str, i64); 2] = [(UDP, 10), (IP, 10)];

/// A sender whose hooks are not known.
fn of_host() -> LedgerInput {
    let mut said = input();
    said.path.tx_filters = Some(FILTERS.into());
    said.path.tx_qdisc = Some(QDISC.into());
    said
}

/// One whose calls took ten more.
fn hooked_input() -> LedgerInput {
    let mut said = of_host();
    said.sender.offered_packets = 1_010;
    said.sender.sent_packets = 1_010;
    said
}

fn bounds(ledger: &Ledger, place: Place) -> Option<PacketBounds> {
    drop_at(ledger, place).map(Drop::range)
}

fn between(least_packets: u64, most: u64) -> PacketBounds {
    PacketBounds { least_packets, most_packets: Some(most) }
}

#[test]
fn what_a_hook_without_a_counter_dropped_at_the_sender_s_egress_is_a_place_of_its_own() {
    let ledger = Ledger::from_counters(&hooked_input(), &moved(&HOOKED));
    let hook = [(Place::EgressHook, 10)];
    assert_eq!(by_place(&ledger), [&hook[..], &TRUTH].concat(), "{ledger:#?}");
    assert_eq!((ledger.unaccounted_packets, ledger.notes.len()), (Some(0), 0), "{ledger:#?}");
    let drop = drop_at(&ledger, Place::EgressHook).unwrap();
    assert_eq!((drop.exact, drop.cross_checks.len()), (true, 0), "{drop:?}");
    let formula = "the lesser of tx/Udp.SndbufErrors and tx/Ip.OutDiscards - qdisc drops";
    assert_eq!(drop.counter, formula);
}

#[test]
fn a_filter_of_tc_confirms_it_by_its_own_counter() {
    // Five of its drops were at ingress.
    let more = [&HOOKED[..], &[(FILTERS, 15)]].concat();
    let ledger = Ledger::from_counters(&hooked_input(), &moved(&more));
    let drop = drop_at(&ledger, Place::EgressHook).unwrap();
    assert_eq!((drop.packets, drop.cross_checks[0].packets), (10, 15), "{drop:?}");
    // It dropped four, a hook without a counter six.
    let more = [&HOOKED[..], &[(FILTERS, 4)]].concat();
    let ledger = Ledger::from_counters(&hooked_input(), &moved(&more));
    let drop = drop_at(&ledger, Place::EgressHook).unwrap();
    assert_eq!((drop.packets, drop.cross_checks.len()), (10, 0), "{drop:?}");
    assert_eq!(ledger.unaccounted_packets, Some(0), "{ledger:#?}");
}

#[test]
fn calls_that_waited_and_calls_that_a_rule_in_output_refused_lost_nothing_at_the_egress() {
    let ledger = Ledger::from_counters(&of_host(), &moved(&[(UDP, 10)]));
    assert_eq!(by_place(&ledger), TRUTH, "{ledger:#?}");
    // Four were refused, and the sender counted them.
    let mut said = hooked_input();
    said.sender.offered_packets += 4;
    said.sender.send_errors.insert("EPERM".into(), 4);
    let ledger = Ledger::from_counters(&said, &moved(&[(UDP, 30), (IP, 14)]));
    assert_eq!(ledger.lost_at(Place::SendCall), 4, "{ledger:#?}");
    assert_eq!(bounds(&ledger, Place::EgressHook), Some(between(10, 14)), "{ledger:#?}");
    assert!(matches!(ledger.balance(), Balance::Within(_)), "{ledger:#?}");
    // No call waited: UDP decides.
    let ledger = Ledger::from_counters(&said, &moved(&[(UDP, 10), (IP, 14)]));
    assert!(drop_at(&ledger, Place::EgressHook).unwrap().exact, "{ledger:#?}");
}

#[test]
fn what_the_queue_and_the_driver_dropped_is_not_the_hook_s() {
    let queue = [&HOOKED[..], &[(QDISC, 4)]].concat();
    let ledger = Ledger::from_counters(&hooked_input(), &moved(&queue));
    assert_eq!((ledger.lost_at(Place::EgressHook), ledger.lost_at(Place::Qdisc)), (6, 4));
    assert_eq!(ledger.unaccounted_packets, Some(0), "{ledger:#?}");
    // Where the queue's drops were not read, all may be in it.
    let mut unread = moved(&HOOKED);
    unread.gaps.insert("tx/qdisc.eth0".into(), "not permitted".into());
    let ledger = Ledger::from_counters(&hooked_input(), &unread);
    assert_eq!(bounds(&ledger, Place::EgressHook), Some(between(0, 10)), "{ledger:#?}");
    // Whether the call saw what the driver dropped is not known.
    let driver = [&HOOKED[..], &[("tx/link.eth0.tx.dropped", 3)]].concat();
    let ledger = Ledger::from_counters(&hooked_input(), &moved(&driver));
    assert_eq!(bounds(&ledger, Place::EgressHook), Some(between(7, 10)), "{ledger:#?}");
    assert_eq!(ledger.lost_at(Place::SendingDevice), 3, "{ledger:#?}");
    assert!(matches!(ledger.balance(), Balance::Within(_)), "{ledger:#?}");
}

#[test]
fn a_hook_of_a_host_that_others_use_may_have_dropped_theirs() {
    let mut said = hooked_input();
    said.path.is_shared = true;
    // Four of another program passed.
    let passed = ["tx/Udp.OutDatagrams", "tx/link.eth0.tx.packets", "tx/ethtool.eth0.tx_packets"];
    let more = passed.map(|name| (name, 4));
    let ledger = Ledger::from_counters(&said, &moved(&[&HOOKED[..], &more].concat()));
    assert_eq!(bounds(&ledger, Place::EgressHook), Some(between(6, 10)), "{ledger:#?}");
}

#[test]
fn drops_of_a_queue_that_may_be_of_other_protocols_are_not_taken_off_the_hook_s_most() {
    let mut said = hooked_input();
    said.path.is_shared = true;
    // The queue dropped four of 20 segments of another program, the hook ten datagrams of ours.
    let passed = ["tx/link.eth0.tx.packets", "tx/ethtool.eth0.tx_packets"];
    let mut more = passed.map(|name| (name, 16)).to_vec();
    more.extend([(QDISC, 4), ("tx/Tcp.OutSegs", 20)]);
    more.extend(HOOKED);
    let ledger = Ledger::from_counters(&said, &moved(&more));
    assert_eq!(bounds(&ledger, Place::EgressHook), Some(between(6, 10)), "{ledger:#?}");
    assert_eq!(bounds(&ledger, Place::Qdisc), Some(between(0, 4)), "{ledger:#?}");
    assert!(!matches!(ledger.balance(), Balance::Excess(_)), "{ledger:#?}");
    assert!(!is_contradicted(&ledger), "{:?}", ledger.notes);
}

/// Whether a note says that a counter contradicts a term.
fn is_contradicted(ledger: &Ledger) -> bool {
    ledger.notes.iter().any(|note| note.contains("does not agree"))
}

#[test]
fn a_full_queue_of_a_host_that_others_use_agrees_with_the_calls_that_failed() {
    let mut said = of_host();
    said.path.is_shared = true;
    said.sender.offered_packets = 1_100;
    said.sender.sent_packets = 1_100;
    // The queue dropped 100 of ours and none of the 20 segments of another program.
    let passed = ["tx/Tcp.OutSegs", "tx/link.eth0.tx.packets", "tx/ethtool.eth0.tx_packets"];
    let mut more = passed.map(|name| (name, 20)).to_vec();
    more.extend([(QDISC, 100), (UDP, 100), (IP, 100)]);
    let ledger = Ledger::from_counters(&said, &moved(&more));
    assert!(!is_contradicted(&ledger), "{:?}", ledger.notes);
    // UDP counted fewer than the queue can have dropped of it.
    more.retain(|(name, _)| *name != UDP);
    more.push((UDP, 79));
    let ledger = Ledger::from_counters(&said, &moved(&more));
    assert!(is_contradicted(&ledger), "{:?}", ledger.notes);
}
