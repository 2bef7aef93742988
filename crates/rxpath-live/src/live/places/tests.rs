//! Tests of this module.

use super::*;
use rxpath_record::evidence::CpuPackets;

fn moved(values: &[(&str, i64)]) -> Moved {
    let named = values.iter().map(|(name, by)| (format!("{}/{name}", PathSide::Machine), *by));
    Moved { values: named.collect(), ..Moved::default() }
}

fn by_netfilter(packets: u64) -> DropReason {
    DropReason {
        side: PathSide::Machine.to_string(),
        reason: NETFILTER_DROP.into(),
        place: "nf_hook_slow+0x1".into(),
        device: String::new(),
        port: 0,
        packets,
    }
}

fn netfilter(values: &[(&str, i64)], tracked: u64, reasoned: Option<u64>) -> Option<Drop> {
    let tracked = ConntrackUse { drops_packets: tracked, ..ConntrackUse::default() };
    let (carried, tracked) = (Carried::default(), Some(&tracked));
    let rows = reasoned.map(|packets| [by_netfilter(packets)]);
    let reasons = rows.as_ref().map(<[DropReason; 1]>::as_slice);
    let beside = Beside { carried: &carried, by_cpu: &[], tracked, reasons };
    let all = of_any_protocol(&moved(values), &beside);
    let found = all.into_iter().find(|loss| loss.drop.place == Place::Netfilter);
    found.map(|loss| {
        assert!(loss.of_packets >= loss.drop.packets);
        loss.drop
    })
}

#[test]
fn what_other_ports_lose_is_not_the_asked_ports() {
    let told = |drops: &[Drop]| -> Vec<_> {
        drops.iter().map(|drop| (drop.place, drop.packets, drop.exact)).collect()
    };
    let values = [("Udp.InErrors", 900), ("Udp.RcvbufErrors", 800), ("Udp.NoPorts", 50)];
    let udp = of_udp(&moved(&values), 900, None);
    // Its sockets lost all of it, a part of it, nothing.
    let own = |at_sockets| told(&of_asked(&udp, at_sockets, true, Some(53), None));
    assert_eq!(own(900), [(Place::SocketBuffer, 800, true), (Place::UdpOther, 100, true)]);
    assert_eq!(own(300), [(Place::SocketBuffer, 300, false)]);
    assert_eq!(own(0), []);
    // Nobody has the port.
    let row = |port| DropReason { reason: "NO_SOCKET".into(), port, ..by_netfilter(30) };
    let rows = [row(53), row(514)];
    let closed = |reasons| told(&of_asked(&udp, 0, false, Some(53), reasons));
    assert_eq!(closed(Some(&rows)), [(Place::NoListener, 30, true)]);
    assert_eq!(closed(Some(&rows[1..])), []);
    assert_eq!(closed(None), [(Place::NoListener, 50, false)]);
    assert_eq!(told(&of_asked(&udp, 0, false, None, Some(&rows))), [], "no port was asked for");
}

#[test]
fn what_came_to_ip_and_went_nowhere_is_netfilters() {
    let values = [("Ip.InReceives", 20_000), ("Ip.InDelivers", 5_000), ("Udp.NoPorts", 7)];
    let drop = netfilter(&values, 0, None).unwrap();
    assert_eq!((drop.packets, drop.derived), (15_000, true));
    assert!(drop.cross_checks.is_empty());
    // Read at two moments.
    assert_eq!(netfilter(&[("Ip.InReceives", 9), ("Ip.InDelivers", 0)], 0, None), None);
    let apart = [("Ip.InReceives", 50_000), ("Ip.InDelivers", 49_951)];
    assert_eq!(netfilter(&apart, 0, None), None);
    let check = |reasoned| netfilter(&values, 0, Some(reasoned)).unwrap().cross_checks[0].agrees;
    assert!(check(15_000) && check(16_000) && check(3_000));
    // What has no reason of a filter's is none.
    assert_eq!(netfilter(&values, 0, Some(3_000)).unwrap().packets, 3_000);
    assert_eq!(netfilter(&values, 0, Some(0)), None);
}

#[test]
fn what_has_a_counter_or_goes_on_is_not() {
    for name in ["Ip.InDelivers", "Ip.ForwDatagrams", "Ip.InHdrErrors", "Ip.InAddrErrors"] {
        assert_eq!(netfilter(&[("Ip.InReceives", 900), (name, 900)], 0, None), None, "{name}");
    }
    for name in ["IpExt.InNoRoutes", "TcpExt.IPReversePathFilter", "Ip.InUnknownProtos"] {
        assert_eq!(netfilter(&[("Ip.InReceives", 900), (name, 900)], 0, None), None, "{name}");
    }
    // 40 fragments of 10 packets, one of which never became whole.
    let fragments = [
        ("Ip6.InReceives", 40),
        ("Ip6.ReasmReqds", 40),
        ("Ip6.ReasmOKs", 9),
        ("Ip6.InDelivers", 9),
    ];
    assert_eq!(netfilter(&fragments, 0, None), None);
}

#[test]
fn what_has_no_route_or_is_cut_short_is_a_loss_by_its_counter_alone() {
    for (name, place) in [
        ("IpExt.InNoRoutes", Place::Routing),
        ("Ip6.InNoRoutes", Place::Routing),
        ("IpExt.InTruncatedPkts", Place::Ip),
        ("Ip6.InTruncatedPkts", Place::Ip),
        // A router whose next link is too small for them.
        ("Ip.FragFails", Place::Ip),
        ("Ip6.InTooBigErrors", Place::Ip),
    ] {
        let reason = if place == Place::Routing { "IP_INNOROUTES" } else { "PKT_TOO_SMALL" };
        let row = DropReason { reason: reason.into(), ..by_netfilter(400) };
        for rows in [None, Some([row].as_slice())] {
            let carried = Carried::default();
            let beside = Beside { carried: &carried, by_cpu: &[], tracked: None, reasons: rows };
            let all = of_any_protocol(&moved(&[("Ip.InReceives", 900), (name, 400)]), &beside);
            let told: Vec<_> = all.iter().map(|l| (l.drop.place, l.drop.packets)).collect();
            let others = told.iter().filter(|(at, _)| *at != Place::Netfilter);
            assert_eq!(others.collect::<Vec<_>>(), [&(place, 400)], "{name} {rows:?}");
        }
    }
}

#[test]
fn frames_that_nobody_wants_are_no_loss_though_they_are_counted_at_another_moment() {
    let row = DropReason { reason: "UNHANDLED_PROTO".into(), ..by_netfilter(5_800) };
    let refused = |dropped| {
        let carried = Carried { refused: (vec!["w0".into()], dropped), ..Carried::default() };
        let reasons = Some([row.clone()]);
        let reasons = reasons.as_ref().map(<[DropReason; 1]>::as_slice);
        let beside = Beside { carried: &carried, by_cpu: &[], tracked: None, reasons };
        let all = of_any_protocol(&moved(&[("Ip.InReceives", 6_000)]), &beside);
        all.iter().find(|it| it.drop.place == Place::DeviceRefused).map(|it| it.drop.packets)
    };
    assert_eq!(refused(6_080), None);
    assert_eq!(refused(9_000), None);
    assert_eq!(refused(12_000), Some(6_200));
}

#[test]
fn what_connection_tracking_drops_is_counted_once() {
    let values = [("Ip.InReceives", 20_000), ("Ip.InDelivers", 15_000)];
    let drop = netfilter(&values, 5_000, None).unwrap();
    assert_eq!((drop.packets, drop.derived), (5_000, false));
    assert_eq!(netfilter(&values, 2_000, None).unwrap().packets, 5_000);
}

#[test]
fn what_counts_every_protocol_is_in_no_ledger_of_datagrams() {
    let values = [
        ("Ip.InReceives", 1_000),
        ("Ip.InDelivers", 800),
        ("Ip.InHdrErrors", 150),
        ("TcpExt.IPReversePathFilter", 50),
        ("Udp.RcvbufErrors", 30),
        ("Udp6.RcvbufErrors", 3),
    ];
    let udp = of_udp(&moved(&values), 0, None);
    assert_eq!(udp.iter().map(|drop| drop.packets).collect::<Vec<_>>(), [33]);
    let by_cpu =
        [CpuPackets { cpu: 1, packets: 900, dropped_packets: 100, ..CpuPackets::default() }];
    let carried = Carried::default();
    let beside = Beside { carried: &carried, by_cpu: &by_cpu, tracked: None, reasons: None };
    let all = of_any_protocol(&moved(&values), &beside);
    let told: Vec<_> = all.iter().map(|l| (l.drop.place, l.drop.packets, l.of_packets)).collect();
    assert_eq!(
        told,
        [(Place::Backlog, 100, 1_000), (Place::Ip, 150, 1_000), (Place::ReversePath, 50, 1_000)]
    );
}
