//! What the kernel changes along with a setting comes back with it.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use super::place::Place;

/// Every setting of every device of the namespace and of `all` and `default`, and the MTU of each device.
fn everything(place: &Place) -> BTreeMap<String, String> {
    let read = |_: &mut rxpath_host::lab::netns::Inside| {
        let mut found = BTreeMap::new();
        let mut keep = |path: &Path| {
            if let Ok(text) = fs::read_to_string(path) {
                found.insert(path.display().to_string(), text);
            }
        };
        for family in ["ipv4", "ipv6"] {
            let devices = fs::read_dir(format!("/proc/sys/net/{family}/conf")).unwrap();
            for device in devices.map(|device| device.unwrap().path()) {
                for file in fs::read_dir(device).unwrap() {
                    keep(&file.unwrap().path());
                }
            }
        }
        for device in fs::read_dir("/sys/class/net").unwrap() {
            keep(&device.unwrap().path().join("mtu"));
        }
        found
    };
    place.ns.run(read).unwrap()
}

#[test]
fn what_a_setting_takes_along_comes_back() {
    let Some(place) = Place::new() else { return };
    let above = ["link", "add", "link", "veth", "name", "above", "type", "macvlan"];
    place.ip(&above);
    place.sysctl("net.ipv4.conf.all.accept_redirects", "0");
    for wish in [
        "net.ipv4.ip_forward=1",
        "net.ipv4.conf.all.forwarding=1",
        "net.ipv4.conf.default.rp_filter=2",
        "net.ipv6.conf.all.forwarding=1",
        "net.ipv6.conf.all.ignore_routes_with_linkdown=1",
        "veth/link/mtu=1400",
    ] {
        let before = everything(&place);
        let plan = place.plan(&[wish]);
        place.rxpath(&["tune", "apply", &plan]).ok();
        assert_ne!(everything(&place), before, "{wish}");
        place.rxpath(&["tune", "undo"]).ok();
        let after = everything(&place);
        let left = after.iter().filter(|(path, value)| before.get(*path) != Some(value));
        assert_eq!(left.collect::<Vec<_>>(), Vec::<(&String, &String)>::new(), "{wish}");
    }
}

#[test]
fn what_could_not_come_back_is_refused() {
    let Some(place) = Place::new() else { return };
    let before = everything(&place);
    for (wish, why) in [
        ("veth/link/mtu=1200", "IPv6"),
        ("net.ipv6.conf.all.disable_ipv6=1", "undo could not bring them back"),
    ] {
        let refused = place.rxpath(&["tune", "plan", "--set", wish]);
        assert!(refused.code != Some(0) && refused.err.contains(why), "{wish}: {refused:?}");
    }
    assert_eq!(everything(&place), before);
}
