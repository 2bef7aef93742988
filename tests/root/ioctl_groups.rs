//! Groups of settings by ioctl, as kernels without ethtool netlink have them, against netlink on the same device.

use rxpath_host::Group;
use rxpath_host::lab::netns::Namespace;
use rxpath_host::lab::owner::Owner;
use rxpath_host::netlink::Netlink;
use rxpath_host::read::ioctl;

use crate::bed::{may_run, random_id};

#[test]
fn what_the_ioctl_reads_is_what_netlink_says() {
    if !may_run() {
        return;
    }
    let owner = Owner::register(&random_id()).unwrap();
    let ns = Namespace::create(&owner, "rx").unwrap();
    let peer = Namespace::create(&owner, "tx").unwrap();
    ns.veth_to("veth", &peer, "veth", 4).unwrap();
    ns.run(|_| {
        let mut netlink = Netlink::generic().unwrap();
        let mut compared = 0;
        for group in Group::ALL {
            let Ok(over_netlink) = netlink.group("veth", group) else { continue };
            let by_ioctl = ioctl::group("veth", group).unwrap();
            assert_eq!(by_ioctl.named_in(&over_netlink), over_netlink.named_in(&by_ioctl));
            assert!(!by_ioctl.is_empty() || over_netlink.is_empty(), "{group:?}: {over_netlink}");
            let most = netlink.group_limits("veth", group).unwrap();
            assert_eq!(ioctl::group_limits("veth", group).unwrap(), most, "{group:?}");
            compared += 1;
        }
        assert!(compared >= 2, "features and channels are there");
    })
    .unwrap();
}
