//! Namespaces of a lab: made, lived in, set, counted, and gone afterwards.

use std::path::Path;
use std::process::{Command, Stdio};

use rxpath_host::HostError;
use rxpath_host::lab::netns::{Inside, Namespace};
use rxpath_host::read::ioctl;
use rxpath_host::read::netlink::ethtool::FEATURES;
use rxpath_host::write::change::ChangeOutcome;
use rxpath_host::write::netlink::qdisc::QdiscSpec;

use crate::bed::{Bed, send, until};
use crate::skip::skip;

#[test]
fn a_pair_has_its_queues_and_counts_what_passes() {
    let Some(bed) = Bed::new() else { return };
    let (tx, rx) = bed.pair(2);
    for ns in [&tx, &rx] {
        let link = ns.run(|ns| ns.route().unwrap().link("veth").unwrap()).unwrap();
        assert_eq!((link.rx_queues, link.tx_queues), (2, 2));
        assert!(link.is_up());
        assert_eq!(link.kind.as_deref(), Some("veth"));
        let driver = ns.run(|_| ioctl::driver_info("veth").unwrap()).unwrap();
        assert_eq!(driver.driver, "veth");
    }
    let (tx_before, rx_before) = (tx.counters().unwrap(), rx.counters().unwrap());
    send(&tx, 4000, 100);
    let (tx_after, rx_after) = (tx.counters().unwrap(), rx.counters().unwrap());
    assert_eq!(rx_after["link.veth.rx.packets"] - rx_before["link.veth.rx.packets"], 100);
    assert_eq!(tx_after["link.veth.tx.packets"] - tx_before["link.veth.tx.packets"], 100);
    // 32 bytes of payload, 8 of UDP, 20 of IPv4, 14 of Ethernet.
    assert_eq!(rx_after["link.veth.rx.bytes"] - rx_before["link.veth.rx.bytes"], 7400);
    assert!(rx_after.contains_key("ethtool.veth.rx_queue_1_xdp_packets"));
}

#[test]
fn a_quiet_link_carries_nothing_of_its_own() {
    let Some((_bed, tx, rx)) = Bed::wired() else { return };
    send(&tx, 9, 10);
    let packets = rx.counters().unwrap()["link.veth.rx.packets"];
    assert_eq!(packets, 10, "no ARP, no neighbour discovery, no multicast");
}

#[test]
fn settings_are_read_back() {
    let Some(bed) = Bed::new() else { return };
    let (_tx, rx) = bed.pair(2);
    let change = rx.set_sysctl("net.ipv4.udp_rmem_min", "8192").unwrap();
    assert_eq!(change.outcome, ChangeOutcome::Applied);
    assert_eq!(change.before.as_deref(), Some("4096"), "a new namespace has the kernel's default");
    let host = std::fs::read_to_string("/proc/sys/net/ipv4/udp_rmem_min").unwrap();
    assert_ne!(host.trim(), "8192", "the host's own value is untouched");

    let change = rx.set_dev_attr("veth", "queues/rx-1/rps_cpus", "1").unwrap();
    assert_eq!(change.outcome, ChangeOutcome::Applied);
    let refused = rx.set_dev_attr("veth", "queues/rx-0/rps_cpus", "nonsense").unwrap();
    assert!(matches!(refused.outcome, ChangeOutcome::Refused { .. }), "{refused:?}");
    let missing = rx.set_dev_attr("veth", "queues/rx-7/rps_cpus", "1");
    assert!(matches!(missing, Err(HostError::Missing { .. })), "{missing:?}");
    assert!(matches!(rx.set_sysctl("net.nope", "1"), Err(HostError::Missing { .. })));
}

#[test]
fn features_are_set_and_what_is_fixed_is_said() {
    let Some((_bed, tx, rx)) = Bed::wired() else { return };
    for on in [true, false] {
        let changes =
            rx.set_features("veth", &[("gro", on), ("rx-udp-gro-forwarding", on)]).unwrap();
        assert_eq!(changes.len(), 2);
        assert!(
            changes.iter().all(|change| change.outcome == ChangeOutcome::Applied),
            "{changes:?}"
        );
        let ask = |ns: &mut Inside| ns.generic().unwrap().ethtool(&FEATURES, "veth").unwrap();
        let features = rx.run(ask).unwrap();
        assert_eq!(features["rx-gro"].active, on);
    }
    let tso = tx.set_features("veth", &[("tso", false)]).unwrap();
    assert!(tso.iter().all(|c| c.outcome == ChangeOutcome::Applied
        && c.after.as_deref().is_some_and(|after| after.ends_with("=off"))));
    let fixed = rx.set_features("veth", &[("rxhash", true)]).unwrap();
    assert_eq!(fixed[0].outcome, ChangeOutcome::Ignored, "the kernel says yes and does nothing");
    assert!(matches!(
        rx.set_features("veth", &[("nope", true)]),
        Err(HostError::Unsupported { .. })
    ));
}

#[test]
fn page_pools_are_those_of_the_namespace_or_said_to_be_absent() {
    let Some(bed) = Bed::new() else { return };
    let (_tx, rx) = bed.pair(2);
    // With NAPI a veth has pools; the kernel lists those whose driver told their device (page_pool_list), and veth's
    // does not up to Linux 6.18.
    rx.set_features("veth", &[("gro", true)]).unwrap();
    let index = rx.run(|ns| ns.route().unwrap().index("veth").unwrap()).unwrap();
    match rx.run(|ns| ns.generic().unwrap().page_pools()).unwrap() {
        Ok(pools) => {
            assert!(
                pools.iter().all(|pool| [None, Some(index)].contains(&pool.ifindex)),
                "{pools:?}"
            );
        }
        // Before Linux 6.8.
        Err(error) => assert!(matches!(error, HostError::Unsupported { .. }), "{error}"),
    }
}

#[test]
fn threaded_napi_needs_gro_and_then_has_a_thread() {
    let Some((_bed, _tx, rx)) = Bed::wired() else { return };
    let early = rx.set_dev_attr("veth", "threaded", "1").unwrap();
    assert!(
        matches!(early.outcome, ChangeOutcome::Refused { .. }),
        "veth has no NAPI yet: {early:?}"
    );
    rx.set_features("veth", &[("gro", true)]).unwrap();
    assert_eq!(rx.set_dev_attr("veth", "threaded", "1").unwrap().outcome, ChangeOutcome::Applied);
    let named = |name: String| name.starts_with("napi/veth-");
    let threads = || {
        let entries = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok);
        entries.filter_map(|e| std::fs::read_to_string(e.path().join("comm")).ok()).any(named)
    };
    until("the kernel's NAPI thread", threads);
}

#[test]
fn qdiscs_replace_each_other_and_count() {
    let Some((_bed, tx, _rx)) = Bed::wired() else { return };
    let specs = [
        QdiscSpec::Tbf { rate_bps: 16_000, burst_bytes: 2000, limit_bytes: 2000 },
        QdiscSpec::Pfifo { limit_packets: 10 },
        QdiscSpec::Bfifo { limit_bytes: 10_000 },
        QdiscSpec::Fq { limit_packets: Some(1000), flow_limit_packets: Some(1000) },
    ];
    for spec in specs {
        match tx.set_qdisc("veth", Some(spec)) {
            Err(HostError::Unsupported { needs, .. }) => {
                assert!(needs.contains(spec.kind()), "{needs}");
                skip(&format!("qdisc_{}", spec.kind()), &needs);
                continue;
            }
            other => other.unwrap(),
        }
        send(&tx, 9, 200);
        until("an empty qdisc", || {
            let qdiscs = tx.run(|ns| ns.route().unwrap().qdiscs().unwrap()).unwrap();
            qdiscs.iter().all(|qdisc| qdisc.queued_packets == 0)
        });
        let counters = tx.counters().unwrap();
        let of = |what: &str| counters[&format!("qdisc.veth.{}.1:{what}", spec.kind())];
        if matches!(spec, QdiscSpec::Tbf { .. }) {
            // 200 frames of 74 bytes at once: the bucket lets 27 pass, the queue holds 27.
            assert!(of("drops") > 100, "{counters:?}");
            assert_eq!(of("packets") + of("drops"), 200);
        } else {
            assert_eq!((of("packets"), of("drops")), (200, 0), "{}", spec.kind());
        }
    }
    tx.set_qdisc("veth", Some(QdiscSpec::Noqueue)).unwrap();
    tx.set_qdisc("veth", None).unwrap();
    tx.set_qdisc("veth", None).unwrap();
    let left: Vec<String> =
        tx.counters().unwrap().into_keys().filter(|name| name.starts_with("qdisc.veth")).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn refusals_come_with_the_kernels_words() {
    let Some((_bed, tx, _rx)) = Bed::wired() else { return };
    let error = tx.set_mtu("veth", 1).unwrap_err();
    let HostError::Kernel { errno, extack, .. } = &error else { panic!("{error:?}") };
    assert_eq!(*errno, nix::errno::Errno::EINVAL as i32);
    assert!(extack.as_deref().is_some_and(|text| text.contains("mtu")), "{error}");
    let absent = tx.set_up("none", true).unwrap_err();
    assert!(absent.to_string().contains("set up none"), "{absent}");
}

#[test]
fn a_child_sees_its_namespace_and_dies_with_it() {
    let Some(bed) = Bed::new() else { return };
    let (tx, rx) = bed.pair(3);
    let mut command = Command::new("sh");
    command.args(["-c", "ls /sys/class/net/veth/queues; cat /proc/net/dev"]).stdout(Stdio::piped());
    let mut child = rx.spawn(command).unwrap();
    let mut text = String::new();
    std::io::Read::read_to_string(&mut child.stdout.take().unwrap(), &mut text).unwrap();
    assert!(text.contains("rx-2") && text.contains("veth:"), "{text}");
    assert!(child.wait().unwrap().success());

    let mut sleeper = Command::new("sleep");
    sleeper.arg("1000");
    let child = tx.spawn(sleeper).unwrap();
    let id = child.id;
    assert!(id.is_alive());
    drop(tx);
    until("the child's end after its namespace's", || !id.is_alive());
    drop(child);
    assert!(matches!(rx.spawn(Command::new("/no/such/program")), Err(HostError::Missing { .. })));
}

#[test]
fn a_name_is_taken_once_and_free_again() {
    let Some(bed) = Bed::new() else { return };
    let first = Namespace::create(&bed.owner, "tx").unwrap();
    let path = Path::new("/run/netns").join(first.name());
    assert!(path.exists());
    let error = Namespace::create(&bed.owner, "tx").unwrap_err().to_string();
    assert!(error.contains("taken") && error.contains(first.name()), "{error}");
    assert!(path.exists(), "the refused one took nothing away");
    drop(first);
    assert!(!path.exists());
    Namespace::create(&bed.owner, "tx").unwrap();
}

#[test]
fn a_panic_inside_goes_on_outside() {
    let Some(bed) = Bed::new() else { return };
    let ns = Namespace::create(&bed.owner, "tx").unwrap();
    let inside = || ns.run(|_| panic!("on purpose"));
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(inside));
    assert!(caught.is_err());
    assert!(ns.counters().is_ok(), "the thread goes on");
}
