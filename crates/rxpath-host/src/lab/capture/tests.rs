use super::*;

#[test]
fn a_capture_of_this_host_reads_like_the_host() {
    let dir = tempfile::tempdir().unwrap();
    let target = dir.path().join("host");
    let captured = capture(&target, true).unwrap();
    assert!(captured.files_count > 200, "{captured:?}");
    let root = Root::tree(&target).unwrap();
    let live = Root::host();
    assert_eq!(device::names(&root).unwrap(), device::names(&live).unwrap());
    for path in ["/proc/sys/net/core/rmem_max", "/sys/devices/system/cpu/online"] {
        assert_eq!(root.value(path).unwrap(), live.value(path).unwrap(), "{path}");
    }
    for name in device::names(&live).unwrap() {
        let (there, here) =
            (device::read(&root, &name).unwrap(), device::read(&live, &name).unwrap());
        assert_eq!(there.steering.driver.value(), here.steering.driver.value(), "{name}");
        assert_eq!(there.steering.rx_queues.len(), here.steering.rx_queues.len());
        let recorded = nic::load(&root, &name).unwrap();
        let asked = nic::Reader::open().unwrap().device(&name);
        assert_eq!(recorded.features, asked.features);
        assert!(root.text(&format!("/sys/class/net/{name}/address")).is_err());
    }
    assert!(!root.exists("/proc/sys/net/core/netdev_rss_key"), "keys stay here");
}

#[test]
fn the_counters_are_read_twice() {
    let dir = tempfile::tempdir().unwrap();
    let target = dir.path().join("host");
    capture(&target, true).unwrap();
    let first = Root::tree(&target).unwrap();
    let later = first.later().expect("a second reading");
    let (before, after) =
        [&first, &later].map(|root| crate::read::procfs::uptime(root).unwrap()).into();
    // Each is cut to 10 ms.
    assert!(
        after + std::time::Duration::from_millis(20) >= before + SHORT_WINDOW,
        "{before:?} {after:?}"
    );
    for path in [crate::read::procfs::softnet::PATH, crate::read::procfs::snmp::SNMP] {
        assert!(later.text(path).is_ok(), "{path}");
    }
    let before = device::statistics_of(&first, "lo");
    let after = device::statistics_of(&later, "lo");
    assert!(after["rx_packets"] >= before["rx_packets"]);
    assert!(nic::load(&later, "lo").unwrap().link.value().is_none(), "counters alone");
    assert!(Root::host().later().is_none() && later.later().is_none());
}

#[test]
fn no_address_of_this_host_is_in_a_scrubbed_tree() {
    let dir = tempfile::tempdir().unwrap();
    let target = dir.path().join("host");
    capture(&target, true).unwrap();
    let live = Root::host();
    let macs: Vec<String> = device::names(&live)
        .unwrap()
        .iter()
        .filter_map(|name| live.value(&format!("/sys/class/net/{name}/address")).ok())
        .filter(|mac| mac.len() == 17 && mac != "00:00:00:00:00:00")
        .collect();
    let mut open = vec![target];
    while let Some(at) = open.pop() {
        for entry in fs::read_dir(&at).unwrap() {
            let path = entry.unwrap().path();
            if path.is_symlink() {
                continue;
            }
            if path.is_dir() {
                open.push(path);
            } else {
                let content = fs::read(&path).unwrap();
                let content = String::from_utf8_lossy(&content);
                for mac in &macs {
                    assert!(!content.contains(mac.as_str()), "{}", path.display());
                }
            }
        }
    }
}

#[test]
fn of_start_up_files_only_names_of_settings_are_kept() {
    let here = tempfile::tempdir().unwrap();
    let put = |path: &str, text: &str| {
        let path = here.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    put("proc/x", "");
    put("sys/class/net/eth0/mtu", "1500");
    put(
        "etc/rc.local",
        "#!/bin/sh\n# Ann\nmount -o password=secret //10.1.2.3/a /b\nip link set eth0 mtu 9000\necho 10.1.2.3 > /sys/a\n",
    );
    put(
        "etc/udev/rules.d/70-net.rules",
        "SUBSYSTEM==\"net\", ATTR{address}==\"3c:fd:fe:aa:bb:cc\", ATTRS{serial}==\"S123\", ATTR{mtu}=\"9000\"\n",
    );
    put("usr/lib/udev/rules.d/55-dm.rules", "SUBSYSTEM==\"block\", ENV{DM_NAME}==\"secret\"\n");
    let target = here.path().join("captured");
    make_empty(&target).unwrap();
    let mut job = Job {
        tree: Tree::new(&target),
        captured: Captured { is_scrubbed: true, ..Captured::default() },
        seen: BTreeSet::new(),
        started: Instant::now(),
        nics: Vec::new(),
        root: Root::tree(here.path()).unwrap(),
        scrubber: Scrubber::new(HostNames::default()),
    };
    for source in sources::all().iter().filter(|one| one.sort == SourceKind::Startup) {
        job.source(source).unwrap();
    }
    let script = fs::read_to_string(target.join("etc/rc.local")).unwrap();
    assert_eq!(script, "\n\n\neth0 mtu\n/sys/a\n", "the lines keep their numbers");
    let rule = fs::read_to_string(target.join("etc/udev/rules.d/70-net.rules")).unwrap();
    assert!(rule == "ATTR ATTR mtu\n", "{rule}");
    assert!(!target.join("usr").exists(), "a rule that names nothing");
}

#[test]
fn a_directory_with_something_in_it_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("mine"), "x").unwrap();
    let error = capture(dir.path(), true).unwrap_err();
    assert!(error.to_string().contains("not empty"), "{error}");
}

#[test]
fn a_version_of_four_numbers_is_no_address() {
    use crate::read::ioctl::DriverInfo;

    let dir = tempfile::tempdir().unwrap();
    let target = dir.path().join("host");
    make_empty(&target).unwrap();
    let mut job = Job {
        tree: Tree::new(&target),
        captured: Captured { is_scrubbed: true, ..Captured::default() },
        seen: BTreeSet::new(),
        started: Instant::now(),
        nics: Vec::new(),
        root: Root::host(),
        scrubber: Scrubber::new(HostNames::default()),
    };
    let driver = DriverInfo {
        driver: "be2net".into(),
        version: "12.0.0.3".into(),
        firmware: "11.4.1186.5, 10.1.2.3".into(),
        bus: "10.1.2.3".into(),
        ..DriverInfo::default()
    };
    let nic = Nic { driver: Fact::ok(driver), ..Nic::default() };
    job.device("eth0", nic).unwrap();
    assert_eq!(
        job.content(b"5.10.0.27\n".to_vec(), SourceKind::Version).unwrap(),
        b"5.10.0.27\n",
        "a kernel's release"
    );
    let root = Root::tree(&target).or_else(|_| {
        fs::create_dir_all(target.join("proc")).unwrap();
        Root::tree(&target)
    });
    let driver = nic::load(&root.unwrap(), "eth0").unwrap().driver.into_value().unwrap();
    assert_eq!(driver.version, "12.0.0.3");
    assert_eq!(driver.firmware, "11.4.1186.5, 10.1.2.3");
    assert_eq!(driver.bus, "192.0.2.1", "what is no version is replaced");
}
