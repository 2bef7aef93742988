//! What probes find before a run: hidden routers, closed ports, links with a smaller MTU.

use std::path::Path;

use super::relay::Trouble;
use super::site::Site;
use super::{SOON, site};
use crate::program::Said;

/// Drops what comes to the port of the workloads.
fn closed(protocol: &str) -> String {
    format!(
        "table inet t {{ chain c {{ type filter hook input priority 0; {protocol} dport 4321 drop; }}; }}"
    )
}

fn refused(site: &Site, inventory: &str, what: &str) -> Said {
    site.rxpath(&["hosts", "check", inventory]).ends(3).warns(what)
}

#[test]
fn without_an_address_the_routes_of_both_sides_decide() {
    let Some(site) = site() else { return };
    let by_route = site.read_inventory().replace("addr = [\"10.78.3.2\"]\n", "");
    let file = site.write("by_route.toml", &by_route);
    let answer = site.rxpath(&["hosts", "check", &file, "--json"]).ends(0).json();
    assert_eq!(answer["result"]["sut"]["device"], "data", "not the one of ssh: {answer}");
    let scenario = site.write("s.toml", "question = \"?\"\n");
    let hosts = ["--sender", "gen1.lab", "--receiver", "sut.lab"];
    site.rxpath(&[["run", &scenario, "--dry-run"].as_slice(), &hosts].concat())
        .ends(0)
        .prints("10.78.3.2");
    site.add_network();
    let both = "sut is reached at several addresses: 10.78.3.2 (data) from 10.78.3.1 (data), \
                10.78.9.2 (more) from 10.78.9.1 (more)";
    refused(&site, &file, both).warns("hosts.sut.dev = \"data\"");
    let role = "role = \"receiver\"\n";
    let file = site.write("more.toml", &by_route.replace(role, &format!("{role}dev = \"more\"\n")));
    site.rxpath(&["hosts", "check", &file]).ends(0);
}

#[test]
fn a_router_that_no_route_shows_is_found_by_the_hops_that_probes_take() {
    let Some(site) = site() else { return };
    site.hide_a_router();
    let routed = site.read_inventory().replace("10.78.3.2", "10.78.2.2");
    let file = site.write("routed.toml", &routed);
    refused(&site, &file, "gen1 -> sut takes 2 hops; network.hops is 1").warns("network.hops = 2");
    let file = site.write("allowed.toml", &format!("{routed}[network]\nhops = 2\n"));
    site.rxpath(&["hosts", "check", &file]).ends(0);
}

#[test]
fn a_route_by_a_router_is_refused_unless_more_hops_are_allowed() {
    let Some(site) = site() else { return };
    site.inside("gen1", &["ip", "route", "add", "10.78.2.0/24", "via", "10.78.1.1"]);
    let file = site.write("routed.toml", &site.read_inventory().replace("10.78.3.2", "10.78.2.2"));
    refused(&site, &file, "gen1 -> sut takes a router, and network.hops is 1")
        .warns("network.hops = 2 or more");
}

#[test]
fn a_closed_port_is_said_with_the_place_up_to_which_packets_come() {
    let Some(site) = site() else { return };
    let out = site.path("runs");
    let run = |inventory: &str, scenario: &str| {
        let file = site.write("s.toml", &format!("question = \"?\"\n{scenario}"));
        let run = site.rxpath(&["run", &file, "--hosts", inventory, "--out", &out]).ends(3);
        assert!(!Path::new(&out).exists(), "nothing was started");
        run.err
    };
    // In the network: the wire drops all.
    let (relay, wired) = site.wire_with(Trouble { drop_each: Some(1), ..Trouble::default() });
    let said = run(&wired, "");
    let what = "udp/4321 from gen1 does not arrive at sut: it left wire, nothing came to wire";
    assert!(said.contains(what), "{said}");
    drop(relay);
    // On the receiver's host.
    site.filter("sut", &closed("udp"));
    let said = run(&site.inventory, "");
    let what = "udp/4321 from gen1 does not arrive at sut: it came to data and reached no socket \
                (nftables has 1 rule on input)";
    assert!(said.contains(what), "{said}");
    // Another protocol has another port.
    site.filter("sut", "flush ruleset");
    site.filter("sut", &closed("tcp"));
    let over_tcp = "[serve]\nprotocol = \"tcp-rr\"\n[load]\nconnections = 1\n";
    let said = run(&site.inventory, over_tcp);
    assert!(said.contains("tcp/4321 from gen1 does not arrive at sut"), "{said}");
    assert!(said.contains("(nftables has 1 rule on input of sut)"), "{said}");
}

#[test]
fn of_two_receivers_the_one_that_is_not_reached_is_named() {
    let Some(mut site) = site() else { return };
    let inventory = site.add_receiver();
    site.filter("sut2", &closed("udp"));
    let what = "udp/4321 from gen1 does not arrive at sut2: it came to lan and reached no socket \
                (nftables has 1 rule on input)";
    let check = site.rxpath(&["hosts", "check", &inventory]);
    assert_eq!(check.code, Some(5), "the other one is ready: {check:?}");
    assert!(check.err.contains(what), "{check:?}");
    assert!(check.out.contains("ready: gen1 -> sut ("), "{check:?}");
    assert!(check.out.contains("not ready: sut2\n"), "{check:?}");
    // A sender has one device.
    let text = std::fs::read_to_string(inventory).unwrap().replace("10.78.5.2", "10.78.3.2");
    let apart = site.write("apart.toml", &text);
    refused(&site, &apart, "gen1 would send to sut by data and to sut2 by lan")
        .warns("addresses of its network");
}

/// The receiver answers for all its addresses on each of its devices, as Linux does by default.
#[test]
fn a_route_by_another_device_of_the_receiver_is_found_by_where_probes_arrive() {
    let Some(site) = site() else { return };
    site.add_second_path();
    refused(&site, &site.inventory, "probes from gen1 arrive at sut by other, not by data")
        .warns("10.78.3.2 is on data");
}

#[test]
fn a_link_with_a_smaller_mtu_is_found_by_the_datagrams_that_pass() {
    let Some(site) = site() else { return };
    let (_relay, inventory) = site.wire_with(Trouble { mtu: Some(1_300), ..Trouble::default() });
    let what = "1252 bytes pass gen1 -> sut, 1472 do not: MTU 1500 at both ends, less between";
    refused(&site, &inventory, what);
}

#[test]
fn a_device_without_a_carrier_and_a_host_that_is_busy_are_named() {
    let Some(site) = site() else { return };
    let file = site
        .write("s.toml", "question = \"?\"\n[load]\nrate = \"2k\"\n[trials]\nmeasure = \"60s\"\n");
    let out = site.path("runs");
    let run = site.start(&["run", &file, "--hosts", &site.inventory, "--out", &out]);
    site.wait_for("gen1", " load udp ");
    refused(&site, &site.inventory, ": another experiment runs there (pid ")
        .warns("let that experiment end");
    run.kill();
    site.holds_nothing(SOON);
    site.take_down("sut", "data");
    refused(&site, &site.inventory, "sut: data is down or has no carrier")
        .warns("ip link set data up");
}

#[test]
fn a_port_that_another_program_has_is_said_before_the_run() {
    let Some(site) = site() else { return };
    let server = site.start_on("sut", &["serve", "udp", "10.78.3.2:4321"]);
    site.wait_for("sut", " serve udp ");
    site.wait_for_port("sut", 4321);
    refused(&site, &site.inventory, "sut: cannot open udp/4321 for probes: Address")
        .warns("ss -lnp");
    server.kill();
}
