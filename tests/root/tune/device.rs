//! A device that is renamed or goes away between applying and undoing.

use std::time::Duration;

use rxpath_host::Target;
use rxpath_host::netlink::Netlink;
use rxpath_host::write::setter::{HostSetter, Setter};

use super::place::Place;
use crate::bed::until;

#[test]
fn a_renamed_device_is_restored_under_its_new_name() {
    let Some(place) = Place::new() else { return };
    let plan = place.plan(&["veth/link/mtu=1400", "veth/queues/rx-0/rps_cpus=1"]);
    place.rxpath(&["tune", "apply", &plan]).ok();
    place.ip(&["link", "set", "veth", "down"]);
    place.ip(&["link", "set", "veth", "name", "lan0"]);
    let verified = place.rxpath(&["tune", "verify"]).ok();
    assert!(verified.contains("lan0/link: holds"), "{verified}");
    let undone = place.rxpath(&["tune", "undo"]).ok();
    assert!(undone.contains("lan0/queues/rx-0/rps_cpus:"), "{undone}");
    place.ip(&["link", "set", "lan0", "name", "veth"]);
    place.ip(&["link", "set", "veth", "up"]);
    assert_eq!(place.snapshot(), place.before);
}

#[test]
fn a_sysctl_of_a_device_is_restored_under_its_new_name_and_not_on_a_stranger() {
    let Some(place) = Place::new() else { return };
    let read = |dev: &'static str| {
        let path = format!("/proc/sys/net/ipv4/conf/{dev}/rp_filter");
        place.ns.run(move |_| std::fs::read_to_string(path).unwrap().trim().to_owned()).unwrap()
    };
    let before = read("veth");
    let plan = place.plan(&["net.ipv4.conf.veth.rp_filter=1"]);
    place.rxpath(&["tune", "apply", &plan]).ok();
    place.ip(&["link", "set", "veth", "down"]);
    place.ip(&["link", "set", "veth", "name", "lan0"]);
    place.ip(&["link", "add", "veth", "type", "veth", "peer", "name", "other"]);
    place.sysctl("net.ipv4.conf.veth.rp_filter", "1");
    place.rxpath(&["tune", "undo"]).ok();
    assert_eq!((read("lan0"), read("veth")), (before, "1".to_owned()));
}

#[test]
fn a_plan_for_a_device_that_is_gone_names_its_step() {
    let Some(place) = Place::new() else { return };
    let plan = place.plan(&["veth/link/mtu=1400"]);
    place.ip(&["link", "del", "veth"]);
    let refused = place.rxpath(&["tune", "apply", &plan]).ends(3);
    assert_eq!(
        refused.err.trim(),
        "rxpath: step 1: veth/link can't be read: No such device (os error 19)"
    );
}

#[test]
fn of_a_device_that_is_gone_it_says_so_and_restores_the_rest() {
    let Some(place) = Place::new() else { return };
    let plan = place.plan(&["veth/link/mtu=1400", "net.ipv4.udp_rmem_min=8192"]);
    place.rxpath(&["tune", "apply", &plan]).ok();
    place.ip(&["link", "del", "veth"]);
    // Another device of the same name is a stranger.
    place.ip(&["link", "add", "veth", "mtu", "1300", "type", "veth", "peer", "name", "other"]);
    place
        .rxpath(&["tune", "undo"])
        .ends(5)
        .prints("veth/link: not restored")
        .prints("is gone, and veth/link with it")
        .warns("--forget");
    assert_eq!(place.snapshot()["net.ipv4.udp_rmem_min"], place.before["net.ipv4.udp_rmem_min"]);
    assert!(place.has("veth/link/mtu", "1300"), "the stranger is not touched");
    assert_eq!(place.rxpath(&["tune", "undo", "--forget"]).code, Some(5));
    assert!(place.rxpath(&["tune", "status"]).ok().contains("nothing is changed"));
}

#[test]
fn a_link_that_a_change_took_down_is_waited_for_and_no_longer_than_is_said() {
    let Some(place) = Place::new() else { return };
    let target: Target = "veth/link".parse().unwrap();
    let up = place.ns.run({
        let target = target.clone();
        move |_| HostSetter::default().has_carrier(&target)
    });
    assert!(up.unwrap());
    // The other end down takes the carrier; a thread outside looks at this one meanwhile.
    place.set_peer(false);
    let waiting = place.ns.run({
        let target = target.clone();
        move |_| {
            let mut setter = HostSetter::default();
            setter.link_patience = Duration::from_millis(50);
            setter.await_carrier(&target)
        }
    });
    let away = waiting.unwrap().expect("it is away");
    assert!(!away.is_back && away.to_string().starts_with("its link is not back after"), "{away}");
    let mut route = place.ns.run(|_| Netlink::route()).unwrap().unwrap();
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| {
            let wait = move |_: &mut rxpath_host::lab::netns::Inside| {
                HostSetter::default().await_carrier(&target)
            };
            place.ns.run(wait).unwrap()
        });
        place.set_peer(true);
        let away = waits.join().unwrap();
        assert!(away.is_none_or(|away| away.is_back), "{away:?}");
    });
    until("the carrier", || route.link("veth").unwrap().carrier == Some(true));
}
