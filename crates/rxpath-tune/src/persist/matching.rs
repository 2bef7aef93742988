//! By what a `.link` file knows its device: a name given by userspace is none that it could match.
//!
//! **Source** systemd.link(5), section `[Match]`: `OriginalName=` does not match a name that was assigned by userspace.

use std::collections::BTreeMap;

use rxpath_host::Root;

use crate::facts::path_id;

/// What stays the same over boots.
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MatchBy {
    /// The slot that the device is plugged into (`Path=`).
    #[default]
    Path,
    /// Its own hardware address (`PermanentMACAddress=`).
    Mac,
    /// The name that the kernel gave it (`OriginalName=`).
    Name,
}

/// The lines of `[Match]` for each device; a device without any is matched by its name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Matching(BTreeMap<String, String>);

impl Matching {
    /// Looks the devices up.
    pub fn of<'a>(root: &Root, by: MatchBy, devices: impl IntoIterator<Item = &'a str>) -> Self {
        let line = |dev: &str| match by {
            MatchBy::Path if !is_synthetic(root, dev) => {
                path(root, dev).map(|path| format!("Path={path}"))
            }
            MatchBy::Path | MatchBy::Mac => by_address(root, dev),
            MatchBy::Name => None,
        };
        Self(devices.into_iter().filter_map(|dev| Some((dev.to_owned(), line(dev)?))).collect())
    }

    /// The lines for a device, and what to do about them where they may not hold.
    pub(super) fn line(&self, dev: &str) -> (String, &'static str) {
        match self.0.get(dev) {
            Some(line) => (line.clone(), ""),
            None => (
                format!("OriginalName={dev}"),
                "# Does not match a name that udev gave: use Path= or PermanentMACAddress= (--match) then.\n",
            ),
        }
    }
}

/// udev's `ID_PATH`; where udev does not run, that of a PCI device.
fn path(root: &Root, dev: &str) -> Option<String> {
    let index = root.value(&format!("/sys/class/net/{dev}/ifindex")).ok()?;
    let known = root.value(&format!("/run/udev/data/n{index}")).ok();
    let told =
        known.as_deref().and_then(|text| text.lines().find_map(|l| l.strip_prefix("E:ID_PATH=")));
    told.map(str::to_owned).or_else(|| path_id(dev, root))
}

/// The name of what a link of the device leads to.
fn linked(root: &Root, dev: &str, link: &str) -> Option<String> {
    let to = root.link(&format!("/sys/class/net/{dev}/{link}")).ok()?;
    Some(to.file_name()?.to_str()?.to_owned())
}

/// Whether it is a synthetic NIC of Hyper-V. All of a machine have the same `ID_PATH`, that of VMBus: `acpi-VMBUS:00`.
///
/// **Source** systemd: src/udev/udev-builtin-path_id.c, `builtin_path_id`, which has no branch for the subsystem `vmbus`.
fn is_synthetic(root: &Root, dev: &str) -> bool {
    linked(root, dev, "device/driver").is_some_and(|driver| driver == NETVSC)
}

/// Driver of synthetic NICs.
const NETVSC: &str = "hv_netvsc";

/// The lines for the address. A synthetic NIC and the virtual function below it have the same address and other drivers.
///
/// **Source** Linux: drivers/net/hyperv/netvsc_drv.c, `get_netvsc_byslot`, `netvsc_vf_join`.
fn by_address(root: &Root, dev: &str) -> Option<String> {
    let line = format!("PermanentMACAddress={}", address(root, dev)?);
    // Of the virtual function the synthetic NIC is the master.
    let is_below = linked(root, dev, "master").is_some_and(|master| is_synthetic(root, &master));
    let is_shared = is_below || is_synthetic(root, dev);
    let driver = linked(root, dev, "device/driver").filter(|_| is_shared);
    Some(driver.map_or(line.clone(), |driver| format!("{line}\nDriver={driver}")))
}

/// The address, where it is the hardware's own (`NET_ADDR_PERM`).
fn address(root: &Root, dev: &str) -> Option<String> {
    let of = |file: &str| root.value(&format!("/sys/class/net/{dev}/{file}")).ok();
    (of("addr_assign_type")? == "0").then(|| of("address"))?
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    fn tree() -> (tempfile::TempDir, Root) {
        let dir = tempfile::tempdir().unwrap();
        let net = dir.path().join("sys/class/net");
        fs::create_dir_all(&net).unwrap();
        for (dev, place, index, mac_type) in [
            ("ens1f0", "pci0000:3a/0000:3a:00.0/0000:3b:00.0", 3, "0"),
            ("ens3", "pci0000:00/0000:00:03.0/virtio2", 4, "3"),
            ("usb0", "pci0000:00/0000:00:14.0/usb1/1-1/1-1:1.0", 5, "0"),
            ("eth0", "LNXSYSTM:00/LNXSYBUS:00/ACPI0004:00/VMBUS:00/53557f8e", 6, "0"),
            ("enP1s0", "pci0001:00/0001:00:02.0", 7, "0"),
        ] {
            let at = format!("devices/{place}/net/{dev}");
            symlink(format!("../../{at}"), net.join(dev)).unwrap();
            let at = dir.path().join("sys").join(at);
            fs::create_dir_all(&at).unwrap();
            fs::write(at.join("ifindex"), index.to_string()).unwrap();
            fs::write(at.join("addr_assign_type"), mac_type).unwrap();
            fs::write(at.join("address"), "52:54:00:00:00:01").unwrap();
        }
        for (dev, driver) in [("eth0", "vmbus/drivers/hv_netvsc"), ("enP1s0", "pci/drivers/mana")] {
            let device = net.join(dev).join("device");
            fs::create_dir(&device).unwrap();
            symlink(format!("../../../../bus/{driver}"), device.join("driver")).unwrap();
        }
        symlink("../../eth0", net.join("enP1s0/master")).unwrap();
        let udev = dir.path().join("run/udev/data");
        fs::create_dir_all(&udev).unwrap();
        fs::write(udev.join("n5"), "E:ID_PATH=pci-0000:00:14.0-usb-0:1:1.0\n").unwrap();
        fs::write(udev.join("n6"), "E:ID_PATH=acpi-VMBUS:00\n").unwrap();
        let root = Root::tree(dir.path()).unwrap();
        (dir, root)
    }

    #[test]
    fn a_device_is_matched_by_what_does_not_change() {
        let (_dir, root) = tree();
        let devices = ["ens1f0", "ens3", "usb0", "gone"];
        let by_path = Matching::of(&root, MatchBy::Path, devices);
        assert_eq!(by_path.line("ens1f0").0, "Path=pci-0000:3b:00.0");
        assert_eq!(by_path.line("ens3").0, "Path=pci-0000:00:03.0");
        assert_eq!(by_path.line("usb0").0, "Path=pci-0000:00:14.0-usb-0:1:1.0");
        assert_eq!(by_path.line("gone").0, "OriginalName=gone");
        let by_mac = Matching::of(&root, MatchBy::Mac, devices);
        assert_eq!(by_mac.line("ens1f0").0, "PermanentMACAddress=52:54:00:00:00:01");
        assert_eq!(by_mac.line("ens3").0, "OriginalName=ens3", "its address is not its own");
        assert!(Matching::of(&root, MatchBy::Name, devices).0.is_empty());
    }

    #[test]
    fn a_synthetic_nic_of_hyper_v_is_not_matched_by_the_path_of_its_bus() {
        let (_dir, root) = tree();
        for by in [MatchBy::Path, MatchBy::Mac] {
            let line = Matching::of(&root, by, ["eth0"]).line("eth0").0;
            assert_eq!(line, "PermanentMACAddress=52:54:00:00:00:01\nDriver=hv_netvsc", "{by:?}");
        }
    }

    #[test]
    fn the_function_below_a_synthetic_nic_is_not_matched_by_their_address_alone() {
        let (_dir, root) = tree();
        let line = |by| Matching::of(&root, by, ["enP1s0"]).line("enP1s0").0;
        assert_eq!(line(MatchBy::Path), "Path=pci-0001:00:02.0");
        assert_eq!(line(MatchBy::Mac), "PermanentMACAddress=52:54:00:00:00:01\nDriver=mana");
    }
}
