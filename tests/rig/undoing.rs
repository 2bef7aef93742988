//! Every setting that the rig's drivers have is changed and undone by this very test inside the machine, and everything
//! reads as before.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::there_and_back::{Subject, files_below, of_groups};
use crate::{Machine, NICS, run};

/// Set inside the machine.
const INSIDE: &str = "RXPATH_INSIDE_THE_RIG";

/// Values of words, which have no value next to them.
const WORDS: [(&str, &str); 9] = [
    ("rss/indir", "equal:1"),
    ("flow-hash/udp4", "sdfn"),
    ("time-stamps/rx-filter", "all"),
    ("threaded", "1"),
    ("gro_flush_timeout", "20000"),
    ("napi_defer_hard_irqs", "2"),
    ("tx_queue_len", "777"),
    ("queues/rx-0/rps_cpus", "2"),
    ("queues/rx-0/rps_flow_cnt", "512"),
];

fn subject(device: &str) -> Subject {
    let mut tried = of_groups(device);
    tried.extend(WORDS.map(|(name, value)| (format!("{device}/{name}"), vec![value.into()])));
    let sysfs = Path::new("/sys/class/net").join(device);
    let own = |path: &PathBuf| {
        let path = path.to_string_lossy();
        path.contains(&format!("/{device}/"))
    };
    let mut files: Vec<PathBuf> =
        files_below(Path::new("/proc/sys/net")).into_iter().filter(own).collect();
    files.extend(files_below(&sysfs.join("queues")));
    files.retain(|path| !path.to_string_lossy().contains("/byte_queue"));
    files.extend(
        ["threaded", "gro_flush_timeout", "napi_defer_hard_irqs"].map(|name| sysfs.join(name)),
    );
    Subject { device: device.into(), files, tried, patience: Duration::from_secs(20) }
}

/// Tries all devices of the machine; a line for each says how many settings were made.
fn inside() {
    let mut left = Vec::new();
    // The link's own address is no setting, and its check for duplicates ends by itself.
    let deadline = Instant::now() + Duration::from_secs(60);
    let addresses = || Command::new("ip").args(["-6", "address"]).output().unwrap().stdout;
    while String::from_utf8_lossy(&addresses()).contains("tentative") {
        assert!(Instant::now() < deadline, "tentative addresses after 60 s");
        // why: the pace of looking; the deadline above ends it.
        std::thread::sleep(Duration::from_millis(100));
    }
    for entry in std::fs::read_dir("/sys/class/net").unwrap() {
        let entry = entry.unwrap();
        let Ok(driver) = std::fs::read_link(entry.path().join("device/driver")) else { continue };
        let device = entry.file_name().into_string().unwrap();
        let dir = Path::new("/tmp").join(&device);
        std::fs::create_dir(&dir).unwrap();
        let trials = subject(&device).try_all(&dir);
        let driver = driver.file_name().unwrap().to_string_lossy().into_owned();
        println!("@made {driver} {} {:?}", trials.made.len(), trials.made);
        left.extend(trials.left.iter().map(|line| format!("{driver}: {line}")));
    }
    assert!(left.is_empty(), "{}: {left:#?}", left.len());
}

#[test]
fn every_setting_of_every_driver_comes_back_and_takes_nothing_with_it() {
    if std::env::var_os(INSIDE).is_some() {
        return inside();
    }
    let dir = tempfile::tempdir().unwrap();
    let program = dir.path().join("undoing");
    let own = std::env::current_exe().unwrap();
    let strip = Command::new("objcopy").arg("-S").args([&own, &program]).status();
    assert!(strip.unwrap().success(), "objcopy -S");
    let adds: Vec<String> = ["ip", "tc"]
        .into_iter()
        .map(|name| {
            let dirs = ["/usr/sbin", "/sbin", "/usr/bin", "/bin"];
            let found =
                dirs.map(|dir| Path::new(dir).join(name)).into_iter().find(|path| path.exists());
            format!("{}:/usr/bin/{name}", found.unwrap_or_else(|| panic!("needs {name}")).display())
        })
        .chain([format!("{}:/bin/undoing", program.display())])
        .collect();
    let adds: Vec<&str> = adds.iter().map(String::as_str).collect();
    let machine = Machine { kernel: "6.12", nics: NICS, adds: &adds, ..Machine::default() };
    let name = "undoing::every_setting_of_every_driver_comes_back_and_takes_nothing_with_it";
    // Addresses by router advertisements have lifetimes, which are no settings. The machine's own `ip` knows too little:
    // the one that was brought comes first.
    let script = format!(
        "export PATH=/usr/bin:$PATH; for it in /proc/sys/net/ipv6/conf/*/accept_ra; do echo 0 >$it; done; \
         ip -6 address flush scope global; ip -6 route flush proto ra; \
         {INSIDE}=1 undoing --exact {name} --nocapture 2>&1; echo \"@status $?\""
    );
    let Some(out) = run(machine, &["sh", "-c", &script]) else { return };
    assert!(out.contains("@status 0"), "{out}");
    let made = |driver: &str| {
        let head = format!("@made {driver} ");
        let line = out.lines().find_map(|line| line.strip_prefix(&head)).unwrap_or(&out);
        line.split(' ').next().unwrap().parse::<usize>().unwrap()
    };
    for (driver, least) in
        [("igb", 30), ("e1000e", 20), ("e1000", 15), ("virtio_net", 20), ("vmxnet3", 15)]
    {
        assert!(made(driver) >= least, "{driver}: {} settings; {out}", made(driver));
    }
}
