//! Every parser of outside input, as a function over bytes: the list that the fuzzer and the plain replay share.
//!
//! A new parser is one line here and one corpus directory `fuzz/corpus/<name>/`; the replay test fails while one of the two is
//! missing.

use rxpath_bpf::names::names_of;
use rxpath_bpf::steal::openssl;
use rxpath_core::{Bytes, CpuList, ItemCount, Nanos, SchedClass};
use rxpath_host::lab::capture::scrub::{HostNames, Scrubber};
use rxpath_host::lab::nft;
use rxpath_host::netlink::wire;
use rxpath_host::pairs::Pairs;
use rxpath_host::read::netlink::addr::InterfaceAddress;
use rxpath_host::read::netlink::{
    DeviceQdisc, NetworkLink, Queues, TcpSocket, UdpSocket, audit, ethtool, link_settings, napi,
    neigh, netdev, netfilter, nft_tables, route,
};
use rxpath_host::read::procfs::{
    cpuinfo, interrupts, listeners, nf_conntrack, schedstat, snmp, snmp6, softnet, stat, sysctl,
    task, udp,
};
use rxpath_host::read::queue_map::{counters, vector};
use rxpath_host::read::steering::Flow;
use rxpath_host::read::sysfs::device;
use rxpath_host::read::{ioctl, kernel_config, nic, session, startup};
use rxpath_host::write::journal;
use rxpath_host::{Group, Knob, target};
use rxpath_lab::endpoint::said::Said;
use rxpath_lab::endpoint::wire as lines;
use rxpath_lab::hosts::network_counters;
use rxpath_lab::run::capacity::Objectives;
use rxpath_lab::scenario;
use rxpath_lab::scenario::spec::Protocol;
use rxpath_load::control::ControlCommand;
use rxpath_load::http::load::url::Url;
use rxpath_load::http::response::{Known, ResponseReader};
use rxpath_load::http::serve::dialogue;
use rxpath_load::tcp::frame::ServerMessage;
use rxpath_load::tcp::preamble::Preamble;
use rxpath_load::udp::header::Header;
use rxpath_load::udp::sender_clock::SenderClock;
use rxpath_record::run::{parse_environment, parse_events, parse_manifest};
use rxpath_remote::{Destination, Directory, Given, Inventory};

/// One target: it must return, whatever the bytes are.
pub type Target = fn(&[u8]);

/// The targets by name.
pub const TARGETS: &[(&str, Target)] = &[
    ("captured_device", |bytes| drop(nic::parse_device(bytes))),
    ("captured_host", |bytes| drop(nic::parse_host(bytes))),
    ("check_report", |bytes| {
        drop(rxpath_tune::fleet::parse(bytes, &mut rxpath_tune::fleet::Ids::default()));
    }),
    ("cpuinfo", |bytes| text(bytes, |t| drop(cpuinfo::parse(t)))),
    ("cpulist", |bytes| text(bytes, |t| drop(t.parse::<CpuList>()))),
    ("cpumask", |bytes| text(bytes, |t| drop(device::parse_mask(t)))),
    ("driver_names", |bytes| text(bytes, driver_names)),
    ("environment", |bytes| text(bytes, |t| drop(parse_environment(t)))),
    ("ethtool_answers", ethtool_answers),
    ("ethtool_groups", ethtool_groups),
    ("ethtool_features", |bytes| drop(ethtool::parse_features(bytes))),
    ("events", |bytes| drop(parse_events(bytes))),
    ("flow", |bytes| text(bytes, |t| drop(t.parse::<Flow>()))),
    ("http_response", http_response),
    ("http_url", |bytes| text(bytes, |t| drop(t.parse::<Url>()))),
    ("group_name", |bytes| text(bytes, |t| drop(rxpath_host::read::cgroup::GroupName::of(t)))),
    ("export_request", |bytes| {
        let _ = rxpath_export::answer(bytes);
    }),
    ("http_request", |bytes| assert!(dialogue::fuzz(bytes), "pieces make no difference")),
    ("hosts_destination", |bytes| {
        text(bytes, |t| {
            drop(Destination::try_from(t.to_owned()));
            drop(Directory::try_from(t.to_owned()));
            drop(t.parse::<Given>());
        });
    }),
    ("hosts_inventory", |bytes| text(bytes, |t| drop(Inventory::parse(t, "lab.toml")))),
    ("hosts_lines", |bytes| {
        drop(serde_json::from_slice::<lines::Request>(bytes));
        drop(serde_json::from_slice::<Said>(bytes));
    }),
    ("interrupts", |bytes| text(bytes, |t| drop(interrupts::parse(t)))),
    ("ioctl_answers", ioctl_answers),
    ("kallsyms", |bytes| drop(names_of(&[1, 1 << 20, u64::MAX].into(), bytes))),
    ("journal", |bytes| drop(journal::parse_any(bytes))),
    ("kernel_config", |bytes| text(bytes, |t| drop(kernel_config::parse(t)))),
    ("kernel_config_gz", |bytes| drop(kernel_config::parse_gz(bytes))),
    ("kept_sysctls", |bytes| text(bytes, |t| drop(rxpath_tune::facts::parse_kept("x.conf", t)))),
    ("kernel_names", |bytes| text(bytes, kernel_names)),
    ("link_file", |bytes| text(bytes, |t| drop(rxpath_tune::facts::parse_link_file("x.link", t)))),
    ("listeners", |bytes| {
        text(bytes, |t| {
            let _ = listeners::has_port(t, 80);
            let _ = listeners::inodes(t).count();
        });
    }),
    ("load_header", |bytes| {
        let _ = Header::read(bytes);
    }),
    ("load_order", |bytes| text(bytes, |t| drop(t.parse::<ControlCommand>()))),
    ("manifest", |bytes| text(bytes, |t| drop(parse_manifest(t)))),
    ("model_calibration", |bytes| {
        text(bytes, |t| drop(rxpath_model::calibration::Calibration::from_json(t)));
    }),
    ("model_cases", |bytes| text(bytes, |t| drop(rxpath_model::evaluate(t)))),
    ("model_parameters", |bytes| text(bytes, model_parameters)),
    ("netdev_answers", netdev_answers),
    ("netfilter_answers", netfilter_answers),
    ("netlink_frames", netlink_frames),
    ("netlink_link", |bytes| drop(NetworkLink::parse(bytes))),
    ("netlink_qdisc", |bytes| drop(DeviceQdisc::parse(bytes))),
    ("netlink_tcp", |bytes| drop(TcpSocket::parse(bytes))),
    ("netlink_udp", |bytes| drop(UdpSocket::parse(bytes))),
    ("netlink_objects", netlink_objects),
    ("network_counters", |bytes| text(bytes, |t| drop(network_counters::parse(t)))),
    ("nf_conntrack", |bytes| text(bytes, |t| drop(nf_conntrack::parse(t)))),
    ("nft_droppers", |bytes| drop(nft::parse_droppers(bytes))),
    ("nft_list", |bytes| drop(nft::parse_counters(bytes))),
    ("openssl_speed", |bytes| text(bytes, |t| drop(openssl::claims(t)))),
    ("plan", |bytes| text(bytes, plan)),
    ("reuseport", |bytes| drop(rxpath_bpf::reuseport::parse(bytes))),
    ("startup", |bytes| {
        text(bytes, |t| {
            drop(startup::parse_startup(t, &["eth0".to_owned()]));
        });
    }),
    ("scenario", |bytes| text(bytes, scenario_file)),
    ("scenario_set", |bytes| text(bytes, scenario_set)),
    ("sched_class", |bytes| text(bytes, |t| drop(t.parse::<SchedClass>()))),
    ("schedstat", |bytes| text(bytes, |t| drop(schedstat::parse(t)))),
    ("scrub", |bytes| text(bytes, |t| drop(scrubber().text(t)))),
    ("sim_parameters", |bytes| text(bytes, |t| drop(rxpath_model::sim::Parameters::from_toml(t)))),
    ("sim_trace", sim_trace),
    ("snmp", |bytes| text(bytes, |t| drop(snmp::parse(t)))),
    ("snmp6", |bytes| text(bytes, |t| drop(snmp6::parse(t)))),
    ("sender_clock", |bytes| {
        text(bytes, |t| {
            if let Ok(clock) = t.parse::<SenderClock>() {
                let _ = (clock.there(1 << 60), clock.margin_ns());
            }
        });
    }),
    ("session", |bytes| {
        text(bytes, |t| {
            let _ = session::parse(t);
        });
    }),
    ("softnet", |bytes| text(bytes, |t| drop(softnet::parse(t)))),
    ("stat", |bytes| text(bytes, |t| drop(stat::parse(t)))),
    ("suppressions", |bytes| text(bytes, |t| drop(rxpath_tune::suppress::parse(t)))),
    ("sysctl", |bytes| text(bytes, |t| drop(sysctl::parse(t)))),
    ("task", |bytes| drop(task::parse(bytes))),
    ("tcp_answer", |bytes| drop(ServerMessage::read(bytes))),
    ("tcp_preamble", |bytes| {
        let _ = Preamble::read(bytes);
    }),
    ("udp", |bytes| text(bytes, |t| drop(udp::parse(t)))),
    ("units", |bytes| text(bytes, units)),
    ("watch_recording", |bytes| drop(rxpath_record::watch::parse(bytes))),
];

fn ethtool_answers(bytes: &[u8]) {
    drop(ethtool::parse_channels(bytes));
    drop(ethtool::parse_coalesce(bytes));
    drop(ethtool::parse_eee(bytes));
    drop(ethtool::parse_fec(bytes));
    drop(ethtool::parse_link_info(bytes));
    drop(ethtool::parse_link_modes(bytes));
    drop(ethtool::parse_link_state(bytes));
    drop(ethtool::parse_pause(bytes));
    drop(ethtool::parse_private_flags(bytes));
    drop(ethtool::parse_rings(bytes));
    drop(ethtool::parse_rss(bytes));
    drop(ethtool::parse_rss_contexts([bytes].into_iter()));
    drop(ethtool::parse_standard_stats(bytes));
    drop(ethtool::parse_timestamping(bytes));
}

/// Settings by name and value, as a plan and the journal hold them, and their limits.
fn ethtool_groups(bytes: &[u8]) {
    for group in Group::ALL {
        drop(ethtool::group::parse(group, bytes));
        drop(ethtool::group::parse_limits(group, bytes));
    }
}

/// What rtnetlink, the netdev family and audit report of addresses, queues, NAPI instances and rules.
fn netlink_objects(bytes: &[u8]) {
    drop(InterfaceAddress::parse(bytes));
    drop(Queues::parse(bytes));
    drop(napi::parse(bytes));
    drop(link_settings::parse(bytes));
    drop(audit::parse_audit_status(bytes));
    drop(neigh::parse_neighbour_table(bytes));
    drop(neigh::parse_neighbour(bytes));
    drop(route::parse_route(bytes));
    drop(nft_tables::parse_nft_chain(bytes));
    drop(audit::parse_audit_rule(bytes));
}

/// Names and versions that files of the kernel or the command line give. The file of a setting is in the kernel's trees.
fn kernel_names(text: &str) {
    let _ = rxpath_tune::facts::Version::parse(text);
    if let Some(path) = text.parse::<target::Target>().ok().and_then(|target| target.path()) {
        let is_inside = path.starts_with("/proc") || path.starts_with("/sys");
        assert!(is_inside && path.iter().all(|part| part != ".."), "{}", path.display());
    }
    drop(rxpath_tune::plan::make::ChangeRequest::parse(text));
}

/// Numbers with their units, and the limits of objectives.
fn units(text: &str) {
    drop(Objectives::parse(text, Protocol::Http));
    drop(text.parse::<Nanos>());
    drop(text.parse::<Bytes>());
    drop(text.parse::<ItemCount>());
}

fn netdev_answers(bytes: &[u8]) {
    drop(netdev::parse_queue(bytes));
    drop(netdev::parse_napi(bytes));
    drop(netdev::parse_queue_stats(bytes));
    drop(netdev::parse_page_pool(bytes));
    drop(netdev::parse_page_pool_stats(bytes));
    drop(netdev::parse_xdp_abilities(bytes));
}

fn netfilter_answers(bytes: &[u8]) {
    drop(netfilter::parse_hook(bytes, netfilter::Family::Ip, "input"));
    drop(netfilter::parse_conntrack(&[bytes.to_vec()], &[bytes.to_vec()]));
    drop(nft_tables::parse_nft_table(bytes));
}

fn ioctl_answers(bytes: &[u8]) {
    drop(ioctl::parse_rxfh(bytes));
    drop(ioctl::parse_flow_hash(bytes, ioctl::FlowKind::Udp4));
    drop(ioctl::parse_per_queue(bytes));
    drop(ioctl::parse_fec_words(bytes));
    drop(ioctl::parse_eee_words(bytes));
    drop(ioctl::parse_link_settings(bytes));
    let names: Vec<String> = (0..70).map(|bit| format!("feature-{bit}")).collect();
    drop(ioctl::parse_feature_blocks(&names, bytes));
    drop(ioctl::pair(bytes, bytes));
}

/// Lines of `name=value`: statistics, and names of interrupts.
fn driver_names(text: &str) {
    let lines = text.lines().filter_map(|line| line.rsplit_once('='));
    let stats: Vec<(String, u64)> =
        lines.map(|(name, value)| (name.to_owned(), value.parse().unwrap_or(0))).collect();
    drop(counters::from_names(&stats));
    for (name, _) in &stats {
        let _ = vector::receive_queue(name, stats.len());
    }
}

fn scrubber() -> Scrubber {
    let users = vec!["annabel".into()];
    Scrubber::new(HostNames { hosts: vec!["granite01".into()], users })
}

fn netlink_frames(bytes: &[u8]) {
    for frame in wire::frames(bytes).unwrap_or_default() {
        drop(wire::verdict(&frame));
        drop(wire::Attrs::parse(frame.payload));
    }
}

/// Reads a connection's replies at once and byte by byte: both must tell the same.
fn http_response(bytes: &[u8]) {
    let read = |pieces: &mut dyn Iterator<Item = &[u8]>| {
        let (mut reader, mut known) = (ResponseReader::new(false), Known::new());
        let mut replies = Vec::new();
        for piece in pieces {
            let mut rest = piece;
            while !rest.is_empty() {
                match reader.feed(rest, &mut known) {
                    Ok(None) => break,
                    Ok(Some((used, reply))) => {
                        replies.push(reply);
                        rest = &rest[used..];
                    }
                    Err(_) => return (replies, None),
                }
            }
        }
        (replies, Some(reader.eof()))
    };
    let at_once = read(&mut [bytes].into_iter());
    let slowly = read(&mut bytes.chunks(1));
    // A head that breaks off may be refused early or late, but never taken.
    assert_eq!(at_once.0, slowly.0, "replies");
}

fn text(bytes: &[u8], parse: impl FnOnce(&str)) {
    parse(&String::from_utf8_lossy(bytes));
}

/// Parameters that parse must give bounds, or say in one line why not.
fn model_parameters(text: &str) {
    if let Ok(parameters) = rxpath_model::bounds::Parameters::from_toml(text) {
        drop(rxpath_model::bounds::bounds(&parameters));
    }
}

/// A plan that is taken is written and taken again as the same plan.
fn plan(text: &str) {
    drop(text.parse::<Knob>());
    drop(text.parse::<Pairs>());
    if let Ok(plan) = rxpath_tune::plan::Plan::parse(text, "fuzz.toml") {
        let again = plan.to_toml().map(|text| rxpath_tune::plan::Plan::parse(&text, "again"));
        assert!(matches!(again, Ok(Ok(again)) if again == plan), "a plan is kept as it is");
    }
}

/// A trace's times never go backwards, and its packets have a size.
fn sim_trace(bytes: &[u8]) {
    let Ok(trace) = rxpath_model::sim::TraceReader::new(bytes) else { return };
    let mut last = 0;
    for arrival in trace.flatten() {
        assert!(arrival.at >= last, "{} after {last}", arrival.at);
        last = arrival.at;
    }
}

/// A file that parses must resolve on a small host, or say in one line why not.
fn scenario_file(text: &str) {
    if let Ok(file) = scenario::parse(text, "fuzz.toml", "fuzz") {
        drop(scenario::resolve(&file, &[], &scenario::HostShape::flat(2)));
    }
}

fn scenario_set(text: &str) {
    if let Ok(file) = scenario::load("udp-pinning") {
        drop(scenario::resolve(&file, &[text.to_owned()], &scenario::HostShape::flat(2)));
    }
}
