//! Tests of this module.

use super::*;
use crate::read::netlink::netdev::QueueStats;
use proptest::prelude::*;

fn named(names: &[(&str, u64)]) -> Vec<(String, u64)> {
    names.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect()
}

/// A driver, its statistics, and whether drops are among them.
type Driver = (&'static str, &'static [(&'static str, u64)], bool);

/// Statistics as each driver names them, two queues (10 and 20 packets, 1 and 2 drops where it has them).
const DRIVERS: [Driver; 12] = [
    (
        "virtio_net",
        &[
            ("rx_packets", 30),
            ("rx0_packets", 10),
            ("rx0_bytes", 9),
            ("rx0_drops", 1),
            ("rx0_xdp_drops", 9),
            ("tx0_packets", 9),
            ("rx1_packets", 20),
            ("rx1_drops", 2),
        ],
        true,
    ),
    (
        "virtio_net 6.1",
        &[
            ("rx_queue_0_packets", 10),
            // While a program runs it sees each of them.
            ("rx_queue_0_xdp_packets", 10),
            ("rx_queue_0_drops", 1),
            ("rx_queue_0_xdp_drops", 7),
            ("tx_queue_0_packets", 5),
            ("rx_queue_1_packets", 20),
            ("rx_queue_1_drops", 2),
        ],
        true,
    ),
    (
        "veth",
        &[
            ("peer_ifindex", 4),
            ("rx_queue_0_xdp_packets", 10),
            ("rx_queue_0_xdp_bytes", 5),
            ("rx_queue_0_drops", 1),
            ("rx_queue_0_xdp_drops", 5),
            ("rx_queue_1_xdp_packets", 20),
            ("rx_queue_1_drops", 2),
        ],
        true,
    ),
    (
        "igb",
        &[
            ("rx_packets", 30),
            ("rx_queue_0_packets", 10),
            ("rx_queue_0_drops", 1),
            ("rx_queue_0_csum_err", 7),
            ("rx_queue_0_alloc_failed", 7),
            ("rx_queue_1_packets", 20),
            ("rx_queue_1_drops", 2),
        ],
        true,
    ),
    (
        "ixgbe",
        &[
            ("rx_missed_errors", 7),
            ("rx_queue_0_packets", 10),
            ("rx_queue_0_bytes", 7),
            ("rx_queue_1_packets", 20),
        ],
        false,
    ),
    (
        "ice",
        &[
            ("rx_unicast", 7),
            ("rx_queue_0_packets", 10),
            ("rx_queue_1_packets", 20),
            ("rx_priority_0_xon.nic", 4),
        ],
        false,
    ),
    (
        "i40e",
        &[("rx-0.packets", 10), ("rx-0.bytes", 7), ("tx-0.packets", 7), ("rx-1.packets", 20)],
        false,
    ),
    (
        "mlx5",
        &[
            ("rx_packets", 30),
            ("rx0_packets", 10),
            ("rx0_wqe_err", 1),
            ("rx0_xdp_drop", 7),
            ("rx0_buff_alloc_err", 7),
            ("tx0_packets", 7),
            ("rx1_packets", 20),
            ("rx1_wqe_err", 2),
            ("rx_prio0_packets", 7),
        ],
        true,
    ),
    (
        "ena",
        &[
            ("queue_0_tx_cnt", 7),
            ("queue_0_rx_cnt", 10),
            ("queue_0_rx_skb_alloc_fail", 1),
            ("queue_0_rx_bad_desc_num", 0),
            ("queue_1_rx_cnt", 20),
            ("queue_1_rx_skb_alloc_fail", 0),
            ("queue_1_rx_bad_desc_num", 2),
        ],
        true,
    ),
    (
        "gve",
        &[
            ("rx_packets", 30),
            ("rx_completed_desc[0]", 10),
            ("rx_dropped_pkt[0]", 1),
            ("rx_queue_drop_cnt[0]", 0),
            ("tx_wake[0]", 5),
            ("rx_completed_desc[1]", 20),
            ("rx_dropped_pkt[1]", 1),
            ("rx_queue_drop_cnt[1]", 1),
        ],
        true,
    ),
    (
        "bnxt",
        &[
            ("[0]: rx_ucast_packets", 8),
            ("[0]: rx_mcast_packets", 1),
            ("[0]: rx_bcast_packets", 1),
            ("[0]: rx_discards", 1),
            ("[0]: tx_ucast_packets", 7),
            ("[1]: rx_ucast_packets", 20),
            ("[1]: rx_discards", 2),
            ("rx_total_discard_pkts", 7),
        ],
        true,
    ),
    (
        "vmxnet3",
        &[
            ("Tx Queue#", 0),
            ("  ucast pkts tx", 7),
            (" drv dropped tx total", 7),
            ("Rx Queue#", 0),
            ("  ucast pkts rx", 8),
            ("  mcast pkts rx", 2),
            ("  pkts rx OOB", 0),
            ("  drv dropped rx total", 1),
            ("Rx Queue##2", 1),
            ("  ucast pkts rx#2", 20),
            ("  pkts rx OOB#2", 2),
            ("tx timeout count", 7),
        ],
        true,
    ),
];

#[test]
fn every_drivers_names_are_understood() {
    for (driver, stats, has_drops) in DRIVERS {
        let found = from_names(&named(stats));
        let drops = |n| has_drops.then_some(n);
        let expected = ByQueue::from([
            (0, QueueCounters { packets_total: Some(10), drops_total: drops(1) }),
            (1, QueueCounters { packets_total: Some(20), drops_total: drops(2) }),
        ]);
        assert_eq!(found, expected, "{driver}");
    }
}

#[test]
fn the_kernels_own_names_come_first() {
    let counters = [("rx-packets", 5), ("rx-hw-drops", 2), ("rx-alloc-fail", 1)];
    let counters = counters.map(|(name, value)| (name.to_owned(), value)).into();
    let nic = Nic {
        queue_stats: Fact::ok(vec![QueueStats { kind: QueueKind::Rx, index: 0, counters }]),
        driver_stats: Fact::ok(named(&[("rx0_packets", 77)])),
        ..Nic::default()
    };
    let (source, found) = of(&nic, 1);
    assert_eq!(source, Fact::ok("kernel's queue statistics".into()));
    assert_eq!(found[&0], QueueCounters { packets_total: Some(5), drops_total: Some(3) });
}

#[test]
fn drops_that_the_kernel_does_not_have_are_the_drivers() {
    let queue = |counters: &[(&str, u64)]| QueueStats {
        kind: QueueKind::Rx,
        index: 0,
        counters: counters.iter().map(|(name, n)| ((*name).to_owned(), *n)).collect(),
    };
    let drops = |counters: &[(&str, u64)], driver: &[(&str, u64)]| {
        let nic = Nic {
            queue_stats: Fact::ok(vec![queue(counters)]),
            driver_stats: Fact::ok(named(driver)),
            ..Nic::default()
        };
        let (source, found) = of(&nic, 1);
        (source.value().unwrap().contains("drops: driver's"), found[&0].drops_total)
    };
    let virtio = [("rx0_packets", 77), ("rx0_drops", 9)];
    assert_eq!(drops(&[("rx-packets", 5)], &virtio), (true, Some(9)));
    let bnxt = [("[0]: rx_discards", 4242)];
    assert_eq!(drops(&[("rx-packets", 5), ("rx-alloc-fail", 0)], &bnxt), (true, Some(4242)));
    assert_eq!(drops(&[("rx-packets", 5), ("rx-hw-drops", 0)], &virtio), (false, Some(0)));
    assert_eq!(drops(&[("rx-packets", 5), ("rx-alloc-fail", 3)], &[]), (false, Some(3)));
    assert_eq!(drops(&[("rx-packets", 5), ("rx-alloc-fail", 0)], &[]), (false, None), "not told");
}

#[test]
fn one_queue_has_the_devices_counters_and_no_counter_is_no_zero() {
    let stats = named(&[("rx_packets", 7), ("rx_missed_errors", 3), ("rx_no_buffer_count", 1)]);
    let nic = Nic { driver_stats: Fact::ok(stats), ..Nic::default() };
    assert_eq!(of(&nic, 1).1[&0].drops_total, Some(3));
    let (why, none) = of(&nic, 2);
    assert!(none.is_empty() && why.gap().unwrap().contains("names a queue"), "{why:?}");
    assert_eq!(of(&Nic::default(), 1).0.gap().unwrap(), "absent: not recorded");
}

proptest! {
    #[test]
    fn no_name_panics(names in proptest::collection::vec(("\\PC{0,20}", any::<u64>()), 0..8)) {
        let _ = from_names(&names);
    }
}
