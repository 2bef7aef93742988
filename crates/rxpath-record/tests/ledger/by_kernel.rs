//! The ledger where the kernel's counters alone tell what was sent and received, as of foreign programs.

use std::collections::BTreeMap;

use rxpath_record::counters::Moved;
use rxpath_record::ledger::{
    Balance, Figure, Ledger, LedgerInput, Link, Place, Reasoned, SegmentInput,
};

use super::by_place;
use super::support::cases;

fn moved(values: &[(&str, i64)]) -> Moved {
    let values = values.iter().map(|(name, by)| ((*name).to_owned(), *by)).collect();
    Moved { values, gaps: BTreeMap::new() }
}

/// A quiet trial's input with both ends told by the kernel, as of foreign programs.
fn foreign(offered: u64, delivered: u64) -> LedgerInput {
    let case = cases().into_iter().find(|case| case.name == "none").unwrap();
    let mut input = case.input(true);
    input.sender.offered_packets = offered;
    input.sender.sent_packets = offered;
    input.sender.by_kernel = true;
    input.receiver.delivered_packets = delivered;
    input.receiver.by_kernel = true;
    input.receiver.socket_drops = None;
    input
}

/// 2,606 datagrams of three fragments, of which a rule at the device took each fourth fragment (Linux 6.18).
const PIECES: [(&str, i64); 12] = [
    ("rx/Ip.InDelivers", 290),
    ("rx/Ip.InReceives", 5863),
    ("rx/Ip.ReasmFails", 3248),
    ("rx/Ip.ReasmOKs", 290),
    ("rx/Ip.ReasmReqds", 5863),
    ("rx/IpExt.InNoECTPkts", 5863),
    ("rx/Udp.InDatagrams", 290),
    ("rx/link.veth.rx.packets", 7818),
    ("rx/nft.netdev.t.in.1.packets", 1955),
    ("tx/Ip.FragCreates", 7818),
    ("tx/Udp.OutDatagrams", 2606),
    ("tx/link.veth.tx.packets", 7818),
];

#[test]
fn fragments_of_two_places_are_bounds_with_an_exact_sum() {
    let mut input = foreign(2606, 290);
    input.path.ingress_rules = Some(vec!["rx/nft.netdev.t.in.1.packets".into()]);
    let mut all = moved(&PIECES);
    all.values.insert("tx/Ip.FragOKs".into(), 2606);
    let ledger = Ledger::from_counters(&input, &all);
    assert_eq!(ledger.balance(), Balance::Closed, "{ledger:#?}");
    let lost = BTreeMap::from([(Place::IngressHook, 1955), (Place::Fragments, 361)]);
    assert_eq!(by_place(&ledger), lost);
    assert!(ledger.drops.iter().all(|drop| !drop.exact), "{ledger:#?}");
    assert!(ledger.notes.iter().any(|note| note.contains("1,955 fragments, of at most 1,955")));

    // Nothing is credited to rules that took less: what vanished is accounted for by no counter.
    *all.values.get_mut("rx/nft.netdev.t.in.1.packets").unwrap() = 100;
    let ledger = Ledger::from_counters(&input, &all);
    assert_ne!(ledger.balance(), Balance::Closed, "{ledger:#?}");

    // A sender that cuts by itself: nobody knows how many datagrams its frames were.
    let mut all = moved(&PIECES);
    all.values.retain(|name, _| !name.contains("Frag") && !name.starts_with("tx/Udp"));
    let mut raw = input.clone();
    raw.sender.raw = true;
    raw.sender.offered_packets = 7818;
    let ledger = Ledger::from_counters(&raw, &all);
    assert_eq!(ledger.balance(), Balance::Unknown, "{ledger:#?}");
    let offered = &ledger.inexact[0];
    assert_eq!((offered.figure, offered.least_packets), (Figure::Offered, 1955 + 290));
    assert_eq!(offered.most_packets, Some(7818));
}

/// 1,000 aggregates of a foreign sender, 20,000 datagrams.
fn aggregates(more: &[(&str, i64)]) -> Moved {
    let mut all = moved(&[
        ("tx/Udp.OutDatagrams", 1000),
        ("tx/link.veth.tx.packets", 1000),
        ("rx/link.veth.rx.packets", 1000),
        ("rx/Ip.InReceives", 1000),
        ("rx/Ip.InDelivers", 1000),
        ("rx/IpExt.InNoECTPkts", 20_000),
    ]);
    all.values.extend(more.iter().map(|(name, by)| ((*name).to_owned(), *by)));
    all
}

#[test]
fn aggregates_of_strangers_are_counted_by_what_ip_saw() {
    let plain = [("rx/Udp.InDatagrams", 5000), ("rx/Udp.InErrors", 15_000)];
    let all = aggregates(&[&plain[..], &[("rx/Udp.RcvbufErrors", 15_000)]].concat());
    let ledger = Ledger::from_counters(&foreign(1000, 5000), &all);
    assert_eq!((ledger.offered_packets, ledger.balance()), (20_000, Balance::Closed));
    assert_eq!(ledger.lost_at(Place::SocketBuffer), 15_000);

    let whole = aggregates(&[("rx/Udp.InDatagrams", 1000)]);
    let ledger = Ledger::from_counters(&foreign(1000, 1000), &whole);
    assert_eq!((ledger.delivered_packets, ledger.balance()), (20_000, Balance::Closed));

    let part = [("rx/Udp.InDatagrams", 300), ("rx/Udp.InErrors", 700)];
    let part = aggregates(&[&part[..], &[("rx/Udp.RcvbufErrors", 700)]].concat());
    let ledger = Ledger::from_counters(&foreign(1000, 300), &part);
    assert_eq!((ledger.offered_packets, ledger.balance()), (20_000, Balance::Unknown));
    let bounds = (ledger.inexact[0].least_packets, ledger.inexact[0].most_packets);
    assert_eq!(bounds, (300, Some(19_300)), "{ledger:#?}");
}

#[test]
fn what_a_rule_doubled_is_no_aggregate() {
    let mut all = moved(&[
        ("tx/Udp.OutDatagrams", 1000),
        ("tx/link.veth.tx.packets", 1000),
        ("rx/link.veth.rx.packets", 1000),
        ("rx/link.lo.rx.packets", 500),
    ]);
    for name in
        ["rx/Ip.InReceives", "rx/Ip.InDelivers", "rx/IpExt.InNoECTPkts", "rx/Udp.InDatagrams"]
    {
        all.values.insert(name.into(), 1500);
    }
    let ledger = Ledger::from_counters(&foreign(1000, 1500), &all);
    assert_eq!((ledger.offered_packets, ledger.balance()), (1000, Balance::Excess(500)));
}

#[test]
fn what_routing_refused_is_its_own_where_the_reason_is_known() {
    let all = moved(&[
        ("tx/Udp.OutDatagrams", 1000),
        ("tx/link.veth.tx.packets", 1000),
        ("rx/link.veth.rx.packets", 1000),
        ("rx/Ip.InReceives", 1000),
        ("rx/IpExt.InNoECTPkts", 1000),
    ]);
    let mut input = foreign(1000, 0);
    let ledger = Ledger::from_counters(&input, &all);
    assert_eq!(ledger.balance(), Balance::Missing(1000), "{ledger:#?}");
    assert!(ledger.notes.iter().any(|note| note.contains("--observe drops")), "{ledger:#?}");
    let counter = "skb:kfree_skb IP_LOCALNET at ip_route_input_slow on veth".to_owned();
    input.reasoned = Some(vec![Reasoned { place: Place::Routing, counter, packets: 1000 }]);
    let ledger = Ledger::from_counters(&input, &all);
    assert_eq!((ledger.balance(), ledger.lost_at(Place::Routing)), (Balance::Closed, 1000));
    assert_eq!(ledger.notes, Vec::<String>::new());
}

#[test]
fn segments_that_an_output_rule_took_are_its_own() {
    let mut input = SegmentInput { mtu_bytes: 1500, ..SegmentInput::default() };
    input.path = foreign(0, 0).path;
    input.path.link = Link::VethPlain;
    input.path.output_rules = Some(vec!["rx/nft.inet.t.out.1.packets".into()]);
    let all = moved(&[
        ("tx/Tcp.OutSegs", 1000),
        ("rx/IpExt.InNoECTPkts", 1000),
        ("rx/Ip.InReceives", 1000),
        ("rx/Ip.InDelivers", 1000),
        ("rx/Tcp.InSegs", 1000),
        ("rx/Tcp.OutSegs", 500),
        ("rx/nft.inet.t.out.1.packets", 77),
        ("tx/IpExt.InNoECTPkts", 423),
        ("tx/Ip.InReceives", 423),
        ("tx/Ip.InDelivers", 423),
        ("tx/Tcp.InSegs", 423),
    ]);
    let ledger = Ledger::of_segments(&input, &all);
    assert_eq!((ledger.balance(), ledger.lost_at(Place::Output)), (Balance::Closed, 77));
    input.path.output_rules = None;
    assert_eq!(Ledger::of_segments(&input, &all).balance(), Balance::Missing(77));
    // A hook that nothing counts takes the difference of the device and IP.
    let mut hooked = all.clone();
    for name in ["rx/IpExt.InNoECTPkts", "rx/Ip.InReceives", "rx/Ip.InDelivers", "rx/Tcp.InSegs"] {
        hooked.values.insert(name.into(), 960);
    }
    hooked.values.insert("rx/link.veth.rx.packets".into(), 1000);
    input.path.output_rules = Some(vec!["rx/nft.inet.t.out.1.packets".into()]);
    input.path.ingress_rules = None;
    let ledger = Ledger::of_segments(&input, &hooked);
    assert_eq!((ledger.balance(), ledger.lost_at(Place::IngressHook)), (Balance::Closed, 40));
}
