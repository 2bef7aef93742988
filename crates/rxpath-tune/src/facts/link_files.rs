//! What systemd.link(5) files keep for network devices: which file is a device's, and what it sets.
//!
//! **Source** systemd.link(5): files of all directories by name, one of `/etc` hides one of the same name below `/usr`;
//! the first whose `[Match]` section fits is used, and no other. A section without a condition fits nothing.

use std::collections::BTreeMap;
use std::path::Path;

use rxpath_host::lab::capture::sources::LINK_DIRS;
use rxpath_host::read::optional::Optional;
use rxpath_host::{Root, glob};

use super::{Device, Gap, HostFacts};

/// `ARPHRD_ETHER`, linux/if_arp.h.
const ETHER: u32 = 1;

/// The condition of a file that cannot be read: no device is known to meet it, and none not to.
const UNREADABLE: &str = "(a file that cannot be read)";

/// One file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkFile {
    /// Its path.
    pub file: String,
    /// Conditions by key, in order.
    pub conditions: Vec<(String, String)>,
    /// Settings by key; the last of a key counts.
    pub settings: BTreeMap<String, String>,
}

/// Whether a file is a device's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fits {
    /// It is, unless one before it is.
    Yes,
    /// It is not.
    No,
    /// A condition cannot be judged from what is read here: why.
    Unknown(String),
}

impl HostFacts {
    /// The files in the order in which they are tried.
    pub fn link_files(&self) -> Vec<LinkFile> {
        read(&self.root)
    }

    /// Whether all of them could be read.
    ///
    /// # Errors
    /// The first that could not.
    pub fn link_files_whole(&self) -> Result<(), Gap> {
        let is_unread = |file: &LinkFile| file.conditions.iter().any(|(key, _)| key == UNREADABLE);
        let unread = self.link_files().into_iter().find(is_unread);
        unread.map_or(Ok(()), |file| Err(Gap::Absent(format!("{} cannot be read", file.file))))
    }

    /// Whether a file is a device's, by what is known of the device and what its files show.
    pub fn fits(&self, file: &LinkFile, device: &Device) -> Fits {
        if file.conditions.is_empty() {
            return Fits::No;
        }
        let mut unknown = None;
        for (key, value) in &file.conditions {
            match condition(key, value, device, &self.root) {
                Some(true) => {}
                Some(false) => return Fits::No,
                None if key == UNREADABLE => return Fits::Unknown("it cannot be read".into()),
                None => unknown = unknown.or(Some(format!("{key}= is not judged here"))),
            }
        }
        unknown.map_or(Fits::Yes, Fits::Unknown)
    }
}

fn read(root: &Root) -> Vec<LinkFile> {
    let mut files: BTreeMap<String, String> = BTreeMap::new();
    let mut unread = None;
    for dir in LINK_DIRS {
        let mut reads = Optional::below(root);
        let names = reads.list(dir);
        unread = unread.or(reads.whole().gap().map(|_| unreadable(dir)));
        for name in names {
            if Path::new(&name).extension().is_some_and(|extension| extension == "link") {
                let path = format!("{dir}/{name}");
                files.entry(name).or_insert(path);
            }
        }
    }
    let parsed = files.into_values().map(|path| {
        let mut reads = Optional::below(root);
        let text = reads.text(&path);
        reads.whole().value().map_or_else(|| unreadable(&path), |()| parse_link_file(&path, &text))
    });
    // What a directory hides may come before all others.
    unread.into_iter().chain(parsed).collect()
}

/// It may be any device's file.
fn unreadable(path: &str) -> LinkFile {
    LinkFile {
        conditions: vec![(UNREADABLE.into(), path.to_owned())],
        file: path.to_owned(),
        ..LinkFile::default()
    }
}

/// The sections `[Match]` and `[Link]` of a file. What is neither a section nor a setting is left out, as systemd does
/// with a warning.
pub fn parse_link_file(file: &str, text: &str) -> LinkFile {
    let mut found = LinkFile { file: file.to_owned(), ..LinkFile::default() };
    let mut section = "";
    // A backslash at the end of a line joins it with the next.
    let joined = text.replace("\\\n", " ");
    for line in joined.lines().map(str::trim) {
        if line.starts_with(['#', ';']) {
            continue;
        }
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            section = name;
            continue;
        }
        let Some((key, value)) = line.split_once('=') else { continue };
        let (key, value) = (key.trim().to_owned(), value.trim().to_owned());
        match section {
            "Match" if !value.is_empty() => found.conditions.push((key, value)),
            "Link" => drop(found.settings.insert(key, value)),
            _ => {}
        }
    }
    found
}

/// Whether one condition holds; `None` if this is unknown here.
fn condition(key: &str, value: &str, device: &Device, root: &Root) -> Option<bool> {
    let listed = |text: &str| is_listed(value, text);
    match key {
        // The kernel's own name. A device that was renamed does not show it any more.
        "OriginalName" if listed(&device.name) => Some(true),
        "OriginalName" => is_kernel_name(&device.name).then_some(false),
        "Driver" => {
            let told = device.nic.driver.value().map(|told| told.driver.as_str());
            let driver = told.or(device.sysfs.steering.driver.value().map(String::as_str))?;
            Some(listed(driver))
        }
        "Type" => {
            let is_plain =
                device.hardware_type.value() == Some(&ETHER) && device.kind.value().is_none();
            if is_plain { Some(listed("ether")) } else { None }
        }
        "MACAddress" => Some(names_address(value, address(device, root)?)),
        // The address that it came with: 0 is NET_ADDR_PERM (include/linux/netdevice.h).
        "PermanentMACAddress" => {
            let assigned = root.number::<u32>(&device.path("addr_assign_type")).ok()?;
            let own = address(device, root).filter(|_| assigned == 0)?;
            Some(names_address(value, own))
        }
        "Path" => Some(listed(&path_id(&device.name, root)?)),
        _ => None,
    }
}

/// The hardware address that the device has now.
fn address(device: &Device, root: &Root) -> Option<u64> {
    hardware_address(&root.value(&device.path("address")).ok()?)
}

/// Whether a list of hardware addresses separated by blanks has this one.
fn names_address(list: &str, own: u64) -> bool {
    list.split_whitespace().any(|text| hardware_address(text) == Some(own))
}

/// Six bytes in hexadecimal: with colons, hyphens or, by twos, dots (systemd.link(5), MACAddress=).
fn hardware_address(text: &str) -> Option<u64> {
    let digits: String = text.trim().chars().filter(|c| !matches!(c, ':' | '-' | '.')).collect();
    let is_whole = digits.len() == 12 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_whole { u64::from_str_radix(&digits, 16).ok() } else { None }
}

/// `ID_PATH` of a device on a PCI function, as udev's builtin `path_id` makes it from the place of the device in sysfs. Virtio
/// buses and PCI bridges add nothing. A controller that makes a PCI domain of its own (VMD) is named before the device.
/// `None` for others (USB, platform devices, PCI below VMBus), whose names are made in other ways.
///
/// **Source** systemd: src/udev/udev-builtin-path_id.c.
pub(crate) fn path_id(dev: &str, root: &Root) -> Option<String> {
    // ../../devices/pci0000:00/0000:00:03.0/virtio2/net/eth0
    let place = root.link(&format!("/sys/class/net/{dev}")).ok()?;
    let adds_nothing = |part: &str| {
        matches!(part, ".." | "devices" | "net") || part == dev || part.starts_with("virtio")
    };
    let parts = place.iter().filter_map(|part| part.to_str());
    let parts: Vec<&str> = parts.filter(|part| !adds_nothing(part)).collect();
    let is_root_bus = |part: &&str| part.starts_with("pci");
    if !parts.iter().all(|part| is_root_bus(part) || is_pci_function(part)) {
        return None;
    }
    let functions = parts.split(is_root_bus).filter_map(|below| below.last());
    let names: Vec<String> = functions.map(|function| format!("pci-{function}")).collect();
    (!names.is_empty()).then(|| names.join("-"))
}

/// `0000:3b:00.1`: domain, bus, device, function. A domain that a controller makes has more digits: `10000:e1:00.0`.
fn is_pci_function(text: &str) -> bool {
    let mut parts = text.split([':', '.']);
    let shape = [4..=8, 2..=2, 2..=2, 1..=1].iter().all(|length| {
        let is_hex = |part: &str| part.bytes().all(|byte| byte.is_ascii_hexdigit());
        parts.next().is_some_and(|part| length.contains(&part.len()) && is_hex(part))
    });
    shape && parts.next().is_none()
}

/// Whether a list of patterns separated by blanks names `text`; a list that begins with `!` names all others.
fn is_listed(list: &str, text: &str) -> bool {
    let (list, wanted) = list.strip_prefix('!').map_or((list, true), |rest| (rest, false));
    list.split_whitespace().any(|pattern| glob::is_match(pattern, text)) == wanted
}

/// `eth0` and the like: net/core/dev.c `__dev_alloc_name` of `alloc_etherdev`.
fn is_kernel_name(name: &str) -> bool {
    let is_number = |rest: &str| !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_digit());
    let prefixes = ["eth", "wlan", "usb", "wwan"];
    prefixes.iter().any(|prefix| name.strip_prefix(prefix).is_some_and(is_number))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::fs;

    #[test]
    fn sections_and_joined_lines_are_read() {
        let file = parse_link_file(
            "x.link",
            "RxBufferSize=1\n[Match]\nDriver=ice \\\n igb\nName=\n# Path=x\n[Link]\nMTUBytes = 9000\nMTUBytes=1500\nnoise\n[Other]\nMTUBytes=2\n",
        );
        assert_eq!(file.conditions, [("Driver".into(), "ice   igb".into())]);
        assert_eq!(file.settings, [("MTUBytes".into(), "1500".into())].into());
    }

    #[test]
    fn patterns_are_those_of_the_shell() {
        for (list, text, wanted) in [
            ("eth*", "eth0", true),
            ("en* eth?", "eth0", true),
            ("eth?", "eth10", false),
            ("en[op]*", "eno1", true),
            ("en[!op]*", "eno1", false),
            ("!eth*", "eth0", false),
            ("!eth*", "wan0", true),
            ("*", "", true),
        ] {
            assert_eq!(is_listed(list, text), wanted, "{list} {text}");
        }
        assert!(is_kernel_name("eth12") && !is_kernel_name("enp3s0") && !is_kernel_name("eth"));
    }

    #[test]
    fn addresses_and_places_are_read_in_every_form() {
        let own = hardware_address("00:1b:21:aa:bb:cc");
        for text in ["00-1B-21-AA-BB-CC", "001b.21aa.bbcc", " 00:1b:21:aa:bb:cc\n"] {
            assert_eq!(hardware_address(text), own, "{text}");
        }
        assert!(names_address("52:54:00:00:00:01 00:1b:21:aa:bb:cc", own.unwrap()));
        for text in ["", "00:1b:21:aa:bb", "00:1b:21:aa:bb:cc:dd", "zz:1b:21:aa:bb:cc", "éé"] {
            assert_eq!(hardware_address(text), None, "{text}");
        }
        for (text, is) in [
            ("0000:3b:00.1", true),
            ("10000:e1:00.0", true),
            ("0000:3b:00", false),
            ("0000:3b:00.1.2", false),
            ("1-1:1.0", false),
            ("virtio0", false),
        ] {
            assert_eq!(is_pci_function(text), is, "{text}");
        }
    }

    #[test]
    fn a_device_has_the_path_of_its_pci_function() {
        let dir = tempfile::tempdir().unwrap();
        let net = dir.path().join("sys/class/net");
        fs::create_dir_all(&net).unwrap();
        let root = Root::tree(dir.path()).unwrap();
        let path = |dev: &str, place: &str| {
            let to = format!("../../devices/{place}/net/{dev}");
            std::os::unix::fs::symlink(to, net.join(dev)).unwrap();
            path_id(dev, &root)
        };
        for (dev, place, is) in [
            ("eth0", "pci0000:00/0000:00:03.0/virtio2", Some("pci-0000:00:03.0")),
            ("ens1f0", "pci0000:3a/0000:3a:00.0/0000:3b:00.0", Some("pci-0000:3b:00.0")),
            (
                "ens2",
                "pci0000:00/0000:00:0e.0/pci10000:e0/10000:e0:06.0/10000:e1:00.0",
                Some("pci-0000:00:0e.0-pci-10000:e1:00.0"),
            ),
            ("usb0", "pci0000:00/0000:00:14.0/usb1/1-1/1-1:1.0", None),
            ("enP2s2", "LNXSYSTM:00/VMBUS:00/a8d9c125/pci0002:00/0002:00:02.0", None),
            ("end0", "platform/soc/fd580000.ethernet", None),
            ("dummy0", "virtual", None),
        ] {
            assert_eq!(path(dev, place).as_deref(), is, "{dev}");
        }
        assert_eq!(path_id("gone", &root), None);
    }

    #[test]
    fn a_file_hides_one_of_its_name_and_they_come_by_name() {
        let dir = tempfile::tempdir().unwrap();
        for (path, mtu) in [
            ("usr/lib/systemd/network/50-a.link", 1),
            ("etc/systemd/network/50-a.link", 2),
            ("run/systemd/network/10-b.link", 3),
            ("etc/systemd/network/x.network", 4),
        ] {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, format!("[Link]\nMTUBytes={mtu}\n")).unwrap();
        }
        fs::create_dir_all(dir.path().join("proc")).unwrap();
        let files = read(&Root::tree(dir.path()).unwrap());
        fs::create_dir_all(dir.path().join("etc/systemd/network/20-dir.link")).unwrap();
        let unreadable = &read(&Root::tree(dir.path()).unwrap())[1];
        assert_eq!(unreadable.conditions[0].0, UNREADABLE);
        let mtus: Vec<&str> = files.iter().map(|file| file.settings["MTUBytes"].as_str()).collect();
        assert_eq!(mtus, ["3", "2"]);
        // A mask has no section that fits a device.
        let mask = dir.path().join("etc/systemd/network/05-mask.link");
        std::os::unix::fs::symlink("/dev/null", mask).unwrap();
        assert!(read(&Root::tree(dir.path()).unwrap())[0].conditions.is_empty());
        fs::remove_dir_all(dir.path().join("run/systemd/network")).unwrap();
        fs::write(dir.path().join("run/systemd/network"), "").unwrap();
        let hidden = &read(&Root::tree(dir.path()).unwrap())[0];
        assert_eq!((hidden.file.as_str(), hidden.conditions.len()), ("/run/systemd/network", 1));
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "\\PC{0,200}", pattern in "[*?a!]{0,12}", name in "[a-c]{0,12}") {
            let _ = parse_link_file("x", &text);
            let _ = is_listed(&pattern, &name);
        }
    }
}
