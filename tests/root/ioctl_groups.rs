//! Groups of settings by ioctl, as kernels without ethtool netlink have them, against netlink on the same device.

use rxpath_host::netlink::{Netlink, ioctl};
use rxpath_host::pairs::Pairs;
use rxpath_host::{Group, HostError, Namespace, Owner};

use crate::bed::{may_run, random_id};

#[test]
fn what_the_ioctl_reads_and_sets_is_what_netlink_says() {
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
        for group in Group::all() {
            let Ok(over_netlink) = netlink.group("veth", group) else { continue };
            let by_ioctl = ioctl::group("veth", group).unwrap();
            assert_eq!(by_ioctl.named_in(&over_netlink), over_netlink.named_in(&by_ioctl));
            assert!(!by_ioctl.is_empty() || over_netlink.is_empty(), "{group:?}: {over_netlink}");
            let most = netlink.group_limits("veth", group).unwrap();
            assert_eq!(ioctl::group_limits("veth", group).unwrap(), most, "{group:?}");
            compared += 1;
        }
        assert!(compared >= 2, "features and channels are there");

        for (group, asked) in
            [(Group::Channels, "rx=2"), (Group::Features, "rx-gro=on tx-tcp-segmentation=off")]
        {
            let asked: Pairs = asked.parse().unwrap();
            let before = netlink.group("veth", group).unwrap();
            assert_ne!(before.named_in(&asked), asked, "something is to change");
            ioctl::set_group("veth", group, &asked).unwrap();
            let after = netlink.group("veth", group).unwrap();
            assert!(asked.unlike(&after).is_empty(), "{group:?}: {after}");
            ioctl::set_group("veth", group, &before.named_in(&asked)).unwrap();
            assert_eq!(netlink.group("veth", group).unwrap(), before);
        }
        let error = ioctl::set_group("veth", Group::Channels, &"rx=999".parse().unwrap());
        assert!(error.unwrap_err().to_string().contains("Invalid argument"));
        let none = ioctl::set_group("veth", Group::Rings, &"rx=512".parse().unwrap()).unwrap_err();
        assert!(
            matches!(none, HostError::Kernel { .. } | HostError::Unsupported { .. }),
            "{none:?}"
        );
    })
    .unwrap();
}
