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
    let offered = names(&["standard.mac.FramesReceivedOK", "standard.mac.FramesTransmittedOK"]);
    let card = counters("stmmac", &offered);
    assert_eq!(card.sent, ["standard.mac.FramesTransmittedOK"]);
    assert_eq!((card.wire_unknown, card.settle_ms), (None, 2_100));
}

/// What a card of a driver counts, and which of it is meant.
struct Made {
    driver: &'static str,
    ring: &'static [&'static str],
    received: &'static [&'static str],
    sent: &'static [&'static str],
    damaged: &'static str,
    /// Neighbours in the driver's list that are not meant.
    others: &'static [&'static str],
}

/// Made up: no host with these cards was captured with the counters of its port. The names are those of Linux 6.12.
///
/// **Source** drivers/net/ethernet/intel: `igb_gstrings_stats`, `igc_gstrings_stats`, `e1000_gstrings_stats` (e1000e),
/// `ixgbe_gstrings_stats`, `i40e_gstrings_stats`, `ice_gstrings_pf_stats`; mellanox/mlx5/core/en_stats.c `q_stats_desc`,
/// `pport_802_3_stats_desc`, `pport_phy_statistical_stats_desc`; broadcom/bnxt/bnxt_ethtool.c `bnxt_ring_rx_stats_str`,
/// `bnxt_port_stats_arr`.
const MADE: [Made; 8] = [
    Made {
        driver: "igb",
        ring: &["rx_missed_errors", "rx_queue_0_drops", "rx_queue_1_drops"],
        received: &["rx_packets", "rx_missed_errors"],
        sent: &["tx_packets"],
        damaged: "rx_crc_errors",
        others: &[
            "rx_no_buffer_count",
            "rx_fifo_errors",
            "rx_queue_0_packets",
            "tx_queue_0_packets",
        ],
    },
    Made {
        driver: "igc",
        ring: &["rx_missed_errors", "rx_queue_0_drops"],
        received: &["rx_packets", "rx_missed_errors"],
        sent: &["tx_packets"],
        damaged: "rx_crc_errors",
        others: &["rx_no_buffer_count", "rx_queue_0_packets"],
    },
    Made {
        driver: "e1000e",
        ring: &["rx_missed_errors"],
        received: &["rx_packets", "rx_missed_errors"],
        sent: &["tx_packets"],
        damaged: "rx_crc_errors",
        others: &["rx_no_buffer_count", "rx_over_errors"],
    },
    Made {
        driver: "ixgbe",
        ring: &["rx_missed_errors", "rx_no_dma_resources"],
        received: &["rx_pkts_nic", "rx_missed_errors"],
        sent: &["tx_pkts_nic"],
        damaged: "rx_crc_errors",
        others: &["rx_packets", "tx_packets", "rx_no_buffer_count", "alloc_rx_page_failed"],
    },
    Made {
        driver: "i40e",
        ring: &["port.rx_discards"],
        received: &["port.rx_unicast", "port.rx_multicast", "port.rx_broadcast"],
        sent: &["port.tx_unicast", "port.tx_multicast", "port.tx_broadcast"],
        damaged: "port.rx_crc_errors",
        others: &["rx_dropped", "rx_unicast", "tx_unicast", "port.rx_length_errors"],
    },
    Made {
        driver: "ice",
        ring: &["rx_dropped.nic"],
        received: &["rx_unicast.nic", "rx_multicast.nic", "rx_broadcast.nic"],
        sent: &["tx_unicast.nic", "tx_multicast.nic", "tx_broadcast.nic"],
        damaged: "rx_crc_errors.nic",
        others: &["rx_dropped", "rx_unicast", "tx_unicast", "rx_oversize.nic"],
    },
    Made {
        driver: "mlx5_core",
        ring: &["rx_out_of_buffer", "rx_discards_phy"],
        received: &["rx_packets_phy"],
        sent: &["tx_packets_phy"],
        damaged: "rx_crc_errors_phy",
        others: &["rx_steer_missed_packets", "rx_packets", "tx_packets", "tx_discards_phy"],
    },
    Made {
        driver: "bnxt_en",
        ring: &["[0]: rx_discards", "[11]: rx_discards"],
        received: &["rx_good_frames"],
        sent: &["tx_good_frames"],
        damaged: "rx_fcs_err_frames",
        others: &["rx_total_discard_pkts", "[0]: rx_errors", "[0]: rx_ucast_packets"],
    },
];

#[test]
fn each_row_means_what_its_driver_counts_by_that_name_and_nothing_next_to_it() {
    let on_device =
        |all: &[&str]| -> Vec<String> { all.iter().map(|it| format!("ethtool.{it}")).collect() };
    for Made { driver, ring, received, sent, damaged, others } in &MADE {
        let all = [*ring, *received, *sent, &[*damaged], *others].concat();
        let mut offered = on_device(&all);
        // In a snapshot each name is there once, in another order.
        offered.sort();
        offered.dedup();
        let card = counters(driver, &offered);
        let sorted = |mut all: Vec<String>| {
            all.sort();
            all
        };
        assert_eq!(card.wire_unknown, None, "{driver}");
        assert_eq!(sorted(card.ring), sorted(on_device(ring)), "{driver}");
        assert_eq!(sorted(card.received), sorted(on_device(received)), "{driver}");
        assert_eq!(sorted(card.sent), sorted(on_device(sent)), "{driver}");
        assert_eq!(card.damaged, on_device(&[*damaged]), "{driver}");
    }
    // A row without a made-up card is that of a device of software, which has no names of its own.
    let is_made =
        |row: &&Row| row.drivers.iter().any(|it| MADE.iter().any(|made| made.driver == *it));
    let left: Vec<&str> =
        ROWS.iter().filter(|row| !is_made(row)).flat_map(|row| row.drivers).copied().collect();
    assert_eq!(left, ["tun"]);
}
