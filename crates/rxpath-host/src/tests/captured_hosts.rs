//! Readers over captured trees of hosts that this machine is not: old, large and broken ones.

use std::collections::BTreeSet;

use rxpath_core::Fact;

use crate::read::counter::Width;
use crate::read::netlink::netdev::QueueStats;
use crate::read::nic::{self, losses};
use crate::read::procfs::{interrupts, softnet, stat, task};
use crate::read::sysfs::device;
use crate::read::topology::{self, Distance};
use crate::read::{environment, kernel_config, snapshot};
use crate::{HostError, Root};

fn host(name: &str) -> Root {
    Root::tree(format!("{}/../../testdata/hosts/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

#[test]
fn a_captured_vm_reads_whole() {
    let root = host("vm-6.18");
    let counters = snapshot::read(&root);
    assert_eq!(counters.gaps.len(), 0, "{:?}", counters.gaps);
    for name in [
        "Udp.RcvbufErrors",
        "Udp6.InErrors",
        "TcpExt.IPReversePathFilter",
        "IpExt.InNoECTPkts",
        "softnet.cpu1.dropped",
    ] {
        assert!(counters.values.contains_key(name), "{name}");
    }
    let facts = environment::collect(&root);
    assert_eq!(facts["kernel.hz"], Fact::ok(serde_json::json!({"hz": 250, "source": "config"})));
    assert_eq!(facts["sysctl.net.core.netdev_max_backlog"], Fact::ok(1000.into()));
    assert_eq!(
        facts["daemons.running"].value().unwrap()["found"],
        serde_json::json!(["irqbalance"])
    );
    assert!(
        facts["cpu.allowed"].gap().unwrap().contains("captured tree"),
        "this machine's CPUs are not that host's"
    );
    let eth0 = device::read(&root, "eth0").unwrap();
    assert_eq!((eth0.steering.rx_queues.len(), eth0.steering.tx_queues.len()), (1, 1));
    assert_eq!(task::read(&root, 42, None).unwrap().comm, "a) S 9 (b)");
}

#[test]
fn an_old_kernel_has_unnamed_cpus_and_gaps_of_its_own() {
    let root = host("old-4.18");
    let cpus: Vec<u32> = softnet::read(&root).unwrap().iter().map(|line| line.0).collect();
    assert_eq!(cpus, [0, 2, 3], "CPU 1 is offline");
    let counters = snapshot::read(&root);
    assert_eq!(counters.values["softnet.cpu2.dropped"], 0x446);
    assert!(!counters.values.contains_key("softnet.cpu1.dropped"));
    assert!(!counters.values.contains_key("Udp.MemErrors"), "came with 5.11: absent, not 0");
    assert!(!counters.values.contains_key("softnet.cpu0.backlog_len"));
    assert_eq!(counters.gaps.keys().collect::<Vec<_>>(), ["snmp6"]);
    let near_the_end = counters.values["softnet.cpu0.processed"];
    assert_eq!(Width::U32.step(near_the_end, 0x10), Some(0x20));
    let config = kernel_config::read(&root).unwrap();
    assert_eq!(
        (config.hz(), config.source.as_str()),
        (Some(1000), "/boot/config-4.18.0-425.el8.x86_64")
    );
    assert_eq!(root.parsed(stat::PATH, stat::parse).unwrap().cpus.len(), 3);
}

#[test]
fn hundreds_of_cpus_are_read() {
    let root = host("many-cpus");
    let lines = softnet::read(&root).unwrap();
    assert_eq!((lines.len(), lines[447].0, lines[447].1.received_rps), (448, 447, Some(447)));
    let table = root.parsed(interrupts::PATH, interrupts::parse).unwrap();
    assert_eq!(
        (table.cpus.len(), table.rows[0].number(), table.rows[0].counts.len()),
        (448, Some(120), 448)
    );
    let topology = topology::read(&root).unwrap();
    assert_eq!(topology.distance(0, 224), Some(Distance::Sibling));
    assert_eq!(topology.distance(0, 1), Some(Distance::Cache));
    assert_eq!(topology.distance(0, 112), Some(Distance::Remote));
    assert_eq!(topology.possible.value().unwrap().as_slice().len(), 8192);
}

#[test]
fn garbage_is_refused_with_its_place_and_never_read_as_numbers() {
    let root = host("garbage");
    let counters = snapshot::read(&root);
    assert_eq!(counters.values.len(), 0, "{:?}", counters.values);
    assert_eq!(counters.gaps.keys().collect::<Vec<_>>(), ["netstat", "snmp", "snmp6", "softnet"]);
    assert!(
        counters.gaps["netstat"].contains("netstat:2: C is missing"),
        "{}",
        counters.gaps["netstat"]
    );
    assert!(matches!(
        root.parsed(stat::PATH, stat::parse),
        Err(HostError::Malformed { line: 1, .. })
    ));
    assert!(matches!(task::read(&root, 7, None), Err(HostError::Malformed { .. })));
    assert!(matches!(kernel_config::read(&root), Err(HostError::Malformed { .. })));
    assert!(topology::read(&root).is_err());
    let facts = environment::collect(&root);
    assert!(facts["cpu.count"].gap().is_some() && facts["kernel.config.options"].gap().is_some());
}

#[test]
fn rings_of_guests_are_known_by_what_their_drivers_count() {
    let cases: [(&str, &str, &[&str]); 7] = [
        ("cloud-vm", "ens5", &["link.rx.dropped"]),
        ("guest-gve", "ens4", &["ethtool.rx_queue_drop_cnt[0]", "ethtool.rx_queue_drop_cnt[1]"]),
        ("guest-vmxnet3", "ens192", &["ethtool.  pkts rx OOB", "ethtool.  pkts rx OOB#2"]),
        ("guest-virtio", "eth0", &["queue.0.rx-hw-drop-overruns", "queue.1.rx-hw-drop-overruns"]),
        // Its device does not offer statistics.
        ("vm-6.18-live", "eth0", &[]),
        ("../cards", "hv_netvsc", &["ethtool.rx_no_memory"]),
        ("../cards", "vif", &[]),
    ];
    for (name, device, ring) in cases {
        let (_, card) = card(name, device);
        assert_eq!(card.ring, ring, "{name}");
        assert!(card.wire_unknown.unwrap().contains("hypervisor"), "{name}");
    }
}

#[test]
fn rings_of_captured_cards_are_known_by_what_their_drivers_count() {
    let cases: [(&str, &str, &str, &[&str]); 5] = [
        ("old-4.18", "eth0", "ixgbe", &["rx_missed_errors", "rx_no_dma_resources"]),
        ("router", "wan0", "ixgbe", &["rx_missed_errors"]),
        ("router", "wan1", "ixgbe", &["rx_missed_errors"]),
        // These have counters of queues alone.
        ("bare-metal-2node", "eth0", "ice", &[]),
        ("bare-metal-2node", "eth1", "ice", &[]),
    ];
    for (name, device, driver, ring) in cases {
        let (found, card) = card(name, device);
        let ring: Vec<String> = ring.iter().map(|counter| format!("ethtool.{counter}")).collect();
        assert_eq!((found.as_str(), &card.ring), (driver, &ring), "{name}");
        // None of the captures has the counters of the port.
        let why =
            format!("{driver} does not count frames on the wire by a name that is known here");
        assert_eq!((card.wire_unknown, card.settle_ms), (Some(why), 0), "{name}");
    }
}

/// Each row of the table has its drivers in the made-up host `testdata/cards`, whose README says what each card counted.
#[test]
fn what_a_driver_counts_is_at_its_place() {
    // A device of software, whose frames rtnetlink counts.
    for driver in losses::drivers().into_iter().filter(|driver| *driver != "tun") {
        let (found, card) = card("../cards", driver);
        assert_eq!((found.as_str(), &card.wire_unknown), (driver, &None));
        let nic = nic::load(&host("../cards"), driver).unwrap();
        let stats = nic.driver_stats.value().unwrap();
        let sum = |names: &[String]| -> u64 {
            let of = |name: &String| {
                let own = name.strip_prefix("ethtool.").unwrap();
                stats.iter().find(|(it, _)| it == own).unwrap().1
            };
            names.iter().map(of).sum()
        };
        let wire = [sum(&card.received), sum(&card.sent), sum(&card.damaged)];
        assert_eq!((sum(&card.ring), wire), (42, [1_000_000, 400_000, 3]), "{driver}: {card:?}");
        // Else the network would have a loss of its own.
        let may_hold_ring = ["i40e", "ice", "bnxt_en"].contains(&driver);
        let perhaps = if may_hold_ring { card.ring.as_slice() } else { &[] };
        assert_eq!(card.perhaps_received, perhaps, "{driver}");
    }
}

/// What the ledger knows of a driver has a source and a row in its page, and is tried on a host with that driver.
#[test]
fn each_driver_of_the_ledger_has_a_source_a_row_in_the_page_and_a_host() {
    let sources =
        table(include_str!("../read/nic/losses.rs"), "| driver | ring | wire | function |");
    let page = include_str!("../../../../docs/explanation/ledger.md");
    let page = table(page, "| driver | ring | frames on the wire |");
    let hosts = drivers_of_hosts();
    for driver in losses::drivers().into_iter().chain(losses::guest_drivers()) {
        let function = sources.iter().find(|(name, _)| *name == driver).map(|(_, it)| *it);
        assert!(function.is_some_and(|it| it.contains('`')), "{driver}: {function:?}");
        assert!(page.iter().any(|(name, _)| *name == driver), "{driver} is not in the page");
        // A device of software, whose frames rtnetlink counts.
        assert!(hosts.contains(driver) || driver == "tun", "no host has {driver}");
    }
    let cards = include_str!("../../../../testdata/cards/README.md");
    let cards = table(cards, "| driver | source in drivers/net |");
    for file in host("../cards").list("/netlink/device").unwrap() {
        let driver = file.trim_end_matches(".json");
        assert!(cards.iter().any(|(name, _)| *name == driver), "{driver} has no source");
    }
}

/// Of each row of the table with this head the names in the first cell, each with the last cell.
fn table<'a>(text: &'a str, head: &str) -> Vec<(&'a str, &'a str)> {
    let lines = text.lines().map(|line| line.trim_start_matches("//! "));
    let rows = lines.skip_while(|line| *line != head).skip(2);
    let rows = rows.take_while(|line| line.starts_with('|'));
    let named = |row: &'a str| {
        let (names, rest) = row.trim_matches([' ', '|']).split_once(" | ").unwrap();
        let last = rest.rsplit(" | ").next().unwrap_or(rest);
        names.split([',', ' ']).map(move |name| (name, last))
    };
    rows.flat_map(named).collect()
}

/// The drivers of the devices of all trees.
fn drivers_of_hosts() -> BTreeSet<String> {
    let hosts = format!("{}/../../testdata/hosts", env!("CARGO_MANIFEST_DIR"));
    let trees = std::fs::read_dir(hosts).unwrap().map(|tree| tree.unwrap().path());
    // Next to the trees is their README.
    let trees = trees.filter(|tree| tree.is_dir()).map(|tree| Root::tree(tree).unwrap());
    let mut drivers = BTreeSet::new();
    for root in trees.chain([host("../cards")]) {
        for file in root.list("/netlink/device").unwrap_or_default() {
            // Some trees are broken.
            let nic = nic::load(&root, file.trim_end_matches(".json")).unwrap_or_default();
            drivers.extend(nic.driver.value().map(|it| it.driver.clone()));
        }
    }
    drivers
}

/// The driver of a device of a captured host, and which of its counters are read.
fn card(name: &str, device: &str) -> (String, losses::CardCounters) {
    let nic = nic::load(&host(name), device).unwrap();
    let driver = nic.driver.value().unwrap_or_else(|| panic!("{name} has no {device}"));
    let driver = driver.driver.clone();
    let of_driver = nic.driver_stats.value().unwrap().iter();
    let of_queues = nic.queue_stats.value().into_iter().flatten();
    let offered: Vec<String> = of_driver
        .map(|(name, _)| format!("ethtool.{name}"))
        .chain(of_queues.filter_map(QueueStats::overruns).map(|(it, _)| format!("queue.{it}")))
        .chain(["link.rx.dropped".to_owned()])
        .collect();
    let card = losses::counters(&driver, &offered);
    (driver, card)
}
