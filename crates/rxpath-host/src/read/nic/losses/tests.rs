//! Which counters of a card are read, by driver.

use super::*;

fn names(all: &[&str]) -> Vec<String> {
    all.iter().map(|name| (*name).to_owned()).collect()
}

#[test]
fn frames_that_the_fifo_missed_were_on_the_wire_but_not_in_the_card_s_good_packets() {
    let offered = names(&[
        "ethtool.rx_packets",
        "ethtool.tx_packets",
        "ethtool.rx_missed_errors",
        "ethtool.rx_no_buffer_count",
        "ethtool.rx_queue_0_drops",
        "ethtool.rx_queue_1_drops",
        "ethtool.rx_queue_x_drops",
    ]);
    let card = counters("igb", &offered);
    assert_eq!(
        card.ring,
        ["ethtool.rx_missed_errors", "ethtool.rx_queue_0_drops", "ethtool.rx_queue_1_drops"]
    );
    assert_eq!(card.received, ["ethtool.rx_packets", "ethtool.rx_missed_errors"]);
    assert_eq!(card.sent, ["ethtool.tx_packets"]);
    assert!(card.perhaps_received.is_empty() && card.wire_unknown.is_none());
}

#[test]
fn an_older_name_stands_in_for_a_newer_one() {
    let port = ["unicast", "multicast", "broadcast"];
    let mut offered: Vec<String> = ["rx", "tx"]
        .iter()
        .flat_map(|way| port.map(|kind| format!("ethtool.port.{way}_{kind}")))
        .collect();
    offered.push("ethtool.port.rx_dropped".into());
    let card = counters("i40e", &offered);
    assert_eq!(card.ring, ["ethtool.port.rx_dropped"]);
    assert_eq!(card.perhaps_received, card.ring);
    offered.push("ethtool.port.rx_discards".into());
    assert_eq!(counters("i40e", &offered).ring, ["ethtool.port.rx_discards"]);
}

#[test]
fn what_a_card_does_not_count_is_not_made_up() {
    let link = names(&["link.rx.packets", "link.tx.packets"]);
    for (driver, word) in [
        ("virtio_net", "hypervisor"),
        ("veth", "software"),
        ("igb", "does not count frames"),
        ("", "the driver does not count frames"),
    ] {
        let card = counters(driver, &link);
        let why = card.wire_unknown.unwrap();
        assert!(why.contains(word) && card.received.is_empty(), "{driver}: {why}");
        assert_eq!(card.settle_ms, 0, "{driver}");
    }
    assert_eq!(counters("tun", &link).received, ["link.rx.packets"]);
}

#[test]
fn cards_below_one_device_are_added_and_one_that_is_not_known_makes_all_unknown() {
    let card = |device: &str, known: bool| {
        let name = |counter: &str| vec![format!("ethtool.{device}.{counter}")];
        let wire_unknown = (!known).then(|| "it does not count".to_owned());
        let (ring, sent) = (name("rx_missed_errors"), name("tx_packets"));
        (device.to_owned(), CardCounters { ring, sent, wire_unknown, ..CardCounters::default() })
    };
    let both = CardCounters::joined([card("ens1", true), card("ens2", true)]);
    assert_eq!(both.ring, ["ethtool.ens1.rx_missed_errors", "ethtool.ens2.rx_missed_errors"]);
    assert_eq!((both.sent.len(), both.wire_unknown), (2, None));
    let one = CardCounters::joined([card("ens1", true), card("ens2", false)]);
    assert_eq!(one.wire_unknown.unwrap(), "ens2: it does not count");
    assert_eq!(one.ring.len(), 2, "what rings lost is known all the same");
}

#[test]
fn a_mac_that_several_functions_share_says_nothing_of_one_of_them() {
    let offered = names(&[
        "ethtool.rx_out_of_buffer",
        "ethtool.rx_discards_phy",
        "ethtool.rx_packets_phy",
        "ethtool.tx_packets_phy",
    ]);
    let own = counters("mlx5_core", &offered);
    assert_eq!(own.clone().on_shared_port(None), own);
    let shared = own.on_shared_port(Some("8 virtual functions share its port".into()));
    let why = "8 virtual functions share its port, and the card counts their frames together";
    assert_eq!(shared.wire_unknown.as_deref(), Some(why));
    assert!(shared.received.is_empty() && shared.sent.is_empty(), "{shared:?}");
    assert_eq!(shared.ring, ["ethtool.rx_out_of_buffer"], "its own queues'");
}

#[test]
fn rings_of_virtual_machines_are_read_where_their_wire_is_not() {
    let offered = names(&[
        "link.rx.dropped",
        "ethtool.Rx Queue#",
        "ethtool.  pkts rx OOB",
        "ethtool.  pkts rx err",
        "ethtool.  drv dropped rx total",
        "ethtool.Rx Queue##2",
        "ethtool.  pkts rx OOB#2",
    ]);
    let card = counters("vmxnet3", &offered);
    assert_eq!(card.ring, ["ethtool.  pkts rx OOB", "ethtool.  pkts rx OOB#2"]);
    assert!(card.wire_unknown.unwrap().contains("hypervisor") && card.received.is_empty());
    let card = counters("ena", &offered);
    assert_eq!((card.ring, card.settle_ms), (names(&["link.rx.dropped"]), 1_100));
    assert!(counters("virtio_net", &offered).ring.is_empty());
    let of_queues = names(&["queue.0.rx-hw-drop-overruns", "queue.1.rx-hw-drop-overruns"]);
    assert_eq!(counters("virtio_net", &of_queues).ring, of_queues);
    let offered = names(&["ethtool.rx_queue_drop_cnt[0]", "ethtool.rx_no_buffers_posted[0]"]);
    let card = counters("gve", &offered);
    assert_eq!((card.ring.as_slice(), card.settle_ms), (&offered[..1], 20_100));
    // A completion that waits loses no frame, and what XDP drops is none of the ring.
    let offered =
        names(&["ethtool.rx_no_memory", "ethtool.rx_comp_busy", "ethtool.rx_queue_0_xdp_drop"]);
    assert_eq!(counters("hv_netvsc", &offered).ring, &offered[..1]);
    let card = counters("vif", &names(&["ethtool.rx_gso_checksum_fixup", "link.rx.errors"]));
    assert!(card.wire_unknown.unwrap().contains("hypervisor") && card.ring.is_empty());
}

#[test]
fn a_card_that_says_how_often_it_writes_its_counters_is_waited_for_as_long() {
    let offered =
        names(&["ethtool.[0]: rx_discards", "ethtool.rx_good_frames", "ethtool.tx_good_frames"]);
    let settle = |usecs| counters("bnxt_en", &offered).written_every(usecs).settle_ms;
    assert_eq!([Some(250_000), Some(1_500), Some(2_000_000)].map(settle), [275, 27, 2_025]);
    // It does not say, or its timer is off.
    assert_eq!([None, Some(0)].map(settle), [1_100, 1_100]);
    let unknown = counters("bnxt_en", &[]).written_every(Some(250_000));
    assert_eq!(unknown.settle_ms, 0, "nothing is read");
}

#[test]
fn a_card_that_nobody_listed_is_read_by_the_standard() {
    let offered = names(&[
        "standard.mac.FramesReceivedOK",
        "standard.mac.FramesTransmittedOK",
        "link.rx.dropped",
        "link.rx.fifo_errors",
        "link.rx.missed_errors",
        "link.rx.over_errors",
    ]);
    let card = counters("stmmac", &offered);
    assert_eq!(card.sent, ["standard.mac.FramesTransmittedOK"]);
    assert_eq!((card.wire_unknown, card.settle_ms), (None, 2_100));
    // What its ring lost may be among the frames that it did not receive: else the ledger would have it twice.
    let of_ring = ["fifo", "missed", "over"].map(|what| format!("link.rx.{what}_errors"));
    assert_eq!((card.ring.len(), card.perhaps_received), (0, of_ring.to_vec()));
}
