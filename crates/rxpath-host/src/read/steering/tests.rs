use rxpath_core::toeplitz;

use super::*;
use crate::read::ioctl::{FlowKind, FlowRules};
use crate::read::netlink::ethtool::{Feature, Rss};
use crate::read::queue_map::{IrqSource, QueueIrq};

const KEY: &str =
    "6d5a56da255b0ec24167253d43a38fb0d0ca2bcbae7b30b477cb2da38030f20c6a42b73bbeac01fa";
/// The first flow of the published vectors.
const FLOW: &str = "66.9.149.187:2794->161.142.100.80:1766";

fn flow() -> Flow {
    format!("{FLOW}/udp").parse().unwrap()
}

fn nic(fields: &str, queues: u32) -> Nic {
    let rss = Rss {
        function: Some("toeplitz".into()),
        table: (0..128).map(|entry| entry % queues).collect(),
        key: Fact::ok(KEY.into()),
        transformation: None,
    };
    let fields = HashFields::try_from(fields.to_owned()).unwrap();
    Nic {
        rss: Fact::ok(rss),
        flow_hash: [(FlowKind::Udp4, Fact::ok(fields))].into(),
        ..Nic::default()
    }
}

fn queues(count: u32, rps: &[u32]) -> DeviceQueues {
    let row = |queue: u32| Row {
        queue,
        napi_id: Fact::default(),
        irq: Fact::ok(QueueIrq {
            irq: 40 + queue,
            name: format!("eth0-TxRx-{queue}"),
            source: IrqSource::Name,
            allowed_cpus: Fact::default(),
            effective_cpus: Fact::ok(CpuList(vec![queue + 8])),
            nodes: Fact::default(),
            taken_total: 0,
        }),
        rss_share_ratio: Fact::default(),
        rps_cpus: Fact::ok(CpuList(rps.to_vec())),
        rps_flow_count: Fact::ok(0),
        xps_cpus: Fact::default(),
        packets_total: Fact::default(),
        drops_total: Fact::default(),
    };
    DeviceQueues {
        device: "eth0".into(),
        driver: Fact::default(),
        node: Fact::default(),
        counters: Fact::default(),
        rows: (0..count).map(row).collect(),
    }
}

#[test]
fn a_published_flow_lands_where_the_table_says() {
    let with_ports = land(flow(), &nic("sdfn", 4), &queues(4, &[]));
    assert_eq!(with_ports.hash, Fact::ok("0x51ccc178".into()));
    assert_eq!(with_ports.queue, Fact::ok(0x51cc_c178 % 128 % 4));
    assert_eq!(with_ports.irq_cpus, Fact::ok(CpuList(vec![8])));
    let without = land(flow(), &nic("sd", 3), &queues(3, &[]));
    assert_eq!(without.hash, Fact::ok("0x323e8fc2".into()));
    assert_eq!(without.queue, Fact::ok(0x323e_8fc2 % 128 % 3));
}

#[test]
fn what_cannot_be_known_is_said_with_its_reason() {
    let mut nic = nic("sdfn", 4);
    let landing = land(flow(), &nic, &queues(4, &[2, 3]));
    assert!(landing.rps_cpu.gap().unwrap().contains("secret key"), "{:?}", landing.rps_cpu);
    assert!(landing.reuseport_socket.gap().unwrap().contains("not looked at"));
    nic.flow_hash.clear();
    assert_eq!(land(flow(), &nic, &queues(4, &[])).queue.gap().unwrap(), "absent: not recorded");
    if let Fact::Ok { value } = &mut nic.rss {
        value.function = Some("crc32".into());
    }
    assert!(land(flow(), &nic, &queues(4, &[])).queue.gap().unwrap().contains("crc32"));
    let landing = land(flow(), &Nic::default(), &queues(1, &[]));
    assert_eq!(landing.queue, Fact::ok(0), "one queue needs no hash");
}

#[test]
fn the_nics_hash_decides_rps_when_it_is_handed_on() {
    let mut nic = nic("sdfn", 4);
    let hashing = Feature { active: true, ..Feature::default() };
    nic.features = Fact::ok([("rx-hashing".to_owned(), hashing)].into());
    let landing = land(flow(), &nic, &queues(4, &[1, 5, 7]));
    let at = toeplitz::reciprocal_scale(0x51cc_c178, 3) as usize;
    assert_eq!(landing.rps_cpu, Fact::ok([1, 5, 7][at]));
    assert_eq!(land(flow(), &nic, &queues(4, &[6])).rps_cpu, Fact::ok(6));
    let mut followed = queues(4, &[1, 5]);
    followed.rows[0].rps_flow_count = Fact::ok(512);
    assert!(land(flow(), &nic, &followed).rps_cpu.gap().unwrap().contains("RFS"));
}

#[test]
fn odd_field_sets_and_rules_are_told() {
    for fields in ["s", "sdf", "sdv", ""] {
        let landing = land(flow(), &nic(fields, 4), &queues(4, &[]));
        assert!(landing.queue.gap().unwrap().contains("the driver's"), "{fields}");
    }
    assert!(land(flow(), &nic("sdfnr", 4), &queues(4, &[])).queue.gap().unwrap().contains("drop"));
    let mut nic = nic("sdfn", 4);
    nic.flow_rules = Fact::ok(FlowRules { rules_count: 2, ..FlowRules::default() });
    assert!(land(flow(), &nic, &queues(4, &[])).notes[0].contains("2 flow rule"));
}

#[test]
fn suggested_ports_and_addresses_land_where_they_should() {
    for fields in ["sdfn", "sd"] {
        let nic = nic(fields, 4);
        let map = queues(5, &[]);
        let spread = spread(flow(), &nic, &map).into_value().unwrap();
        assert_eq!(spread.unreachable_queues, [4]);
        for (queue, ports) in &spread.source_ports {
            assert_eq!(ports.len(), 4);
            for port in ports {
                let mut other = flow();
                other.source.set_port(*port);
                assert_eq!(land(other, &nic, &map).queue, Fact::ok(*queue));
            }
        }
        for (queue, addresses) in &spread.source_addresses {
            assert_eq!(addresses.len(), 4);
            for address in addresses {
                let mut other = flow();
                other.source.set_ip(*address);
                assert_eq!(land(other, &nic, &map).queue, Fact::ok(*queue));
            }
        }
        assert_eq!(spread.source_ports.is_empty(), fields == "sd");
    }
    assert!(spread(flow(), &Nic::default(), &queues(1, &[])).gap().unwrap().contains("one queue"));
}
