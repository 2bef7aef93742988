//! Whether other functions share a network card's port: what its MAC counts is then not the device's alone.
//!
//! Devices are looked up by their bus address: `/sys/class/net` shows the devices of the namespace that it was mounted in.

use crate::Root;

/// Vendor of Mellanox, and its devices that are virtual functions. In a virtual machine nothing else shows it.
///
/// **Source** drivers/net/ethernet/mellanox/mlx5/core/main.c `mlx5_core_pci_table`, `MLX5_PCI_DEV_IS_VF`.
const MELLANOX: &str = "0x15b3";
const MELLANOX_VFS: [&str; 8] =
    ["0x1012", "0x1014", "0x1016", "0x1018", "0x101a", "0x101c", "0x101e", "0xa2d3"];
/// What a subfunction of mlx5 is called, a device below its PCI function (mlx5/core/sf/dev/dev.c).
const SUBFUNCTION: &str = "mlx5_core.sf.";

/// Why the port of the device at this bus address carries frames of others too, if it does.
///
/// **Source** Documentation/ABI/testing/sysfs-bus-pci: `physfn`, `sriov_numvfs`.
pub fn why(root: &Root, bus: &str) -> Option<String> {
    if bus.starts_with(SUBFUNCTION) {
        return Some("it is a subfunction, and other functions share its port".into());
    }
    if bus.is_empty() || bus.contains('/') {
        return None;
    }
    let path = |file: &str| format!("/sys/bus/pci/devices/{bus}/{file}");
    let is = |file: &str, values: &[&str]| {
        root.value(&path(file)).is_ok_and(|value| values.contains(&value.as_str()))
    };
    if root.exists(&path("physfn")) || (is("vendor", &[MELLANOX]) && is("device", &MELLANOX_VFS)) {
        return Some("it is a virtual function, and other functions share its port".into());
    }
    match root.number::<u32>(&path("sriov_numvfs")) {
        Ok(1) => return Some("1 virtual function shares its port".into()),
        Ok(count @ 2..) => return Some(format!("{count} virtual functions share its port")),
        _ => {}
    }
    let below = root.list(&format!("/sys/bus/pci/devices/{bus}")).unwrap_or_default();
    let has_subfunctions = below.iter().any(|name| name.starts_with(SUBFUNCTION));
    has_subfunctions.then(|| "its subfunctions share its port".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUS: &str = "0000:81:00.0";

    /// Of a device with these files and directories.
    fn of(files: &[(&str, &str)], dirs: &[&str]) -> Option<String> {
        let tree = tempfile::tempdir().unwrap();
        let device = tree.path().join("sys/bus/pci/devices").join(BUS);
        std::fs::create_dir_all(&device).unwrap();
        for (name, text) in files {
            std::fs::write(device.join(name), format!("{text}\n")).unwrap();
        }
        for name in dirs {
            std::fs::create_dir(device.join(name)).unwrap();
        }
        why(&Root::tree(tree.path()).unwrap(), BUS)
    }

    #[test]
    fn a_port_without_other_functions_is_the_device_s_own() {
        let own = [("vendor", "0x15b3"), ("device", "0x101d"), ("sriov_numvfs", "0")];
        assert_eq!(of(&own, &["net"]), None);
        assert_eq!(of(&[], &[]), None);
        let root = Root::host();
        for bus in ["", "usb-0000:00:14.0-1", "../../../../proc"] {
            assert_eq!(why(&root, bus), None, "{bus}");
        }
    }

    #[test]
    fn functions_that_share_a_port_are_named() {
        let said = |files: &[(&str, &str)], dirs: &[&str]| of(files, dirs).unwrap();
        assert_eq!(said(&[("sriov_numvfs", "8")], &[]), "8 virtual functions share its port");
        assert_eq!(said(&[("sriov_numvfs", "1")], &[]), "1 virtual function shares its port");
        assert!(said(&[], &["physfn"]).starts_with("it is a virtual function"));
        // In a virtual machine only its number says so.
        let guest = [("vendor", "0x15b3"), ("device", "0x101e")];
        assert!(said(&guest, &[]).starts_with("it is a virtual function"));
        assert_eq!(said(&[], &["mlx5_core.sf.4"]), "its subfunctions share its port");
        let of_port = why(&Root::host(), "mlx5_core.sf.4").unwrap();
        assert!(of_port.starts_with("it is a subfunction"), "{of_port}");
    }
}
