//! Two network namespaces with a veth between them: the receiver, in which a fault is planted and which is checked, and
//! the sender of its traffic. Nobody else knows them: they end with their descriptors.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::process::Command;

use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, setns, unshare};
use rxpath_host::lab::veth::VethSpec;
use rxpath_host::netlink::Netlink;
use serde_json::Value;

/// Hardware addresses of the sender and of the receiver.
pub const TX_MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];
pub const RX_MAC: [u8; 6] = [2, 0, 0, 0, 0, 2];

/// A network namespace.
pub struct Place(File);

impl Place {
    fn new() -> Self {
        let make = || {
            unshare(CloneFlags::CLONE_NEWNET).unwrap();
            File::open("/proc/thread-self/ns/net").unwrap()
        };
        Self(std::thread::scope(|scope| scope.spawn(make).join().unwrap()))
    }

    /// Runs `job` in it, on a thread with a `/sys` of its own; programs and threads that it starts are in it too.
    pub fn run<T: Send>(&self, job: impl FnOnce() -> T + Send) -> T {
        std::thread::scope(|scope| {
            let inside = || {
                setns(&self.0, CloneFlags::CLONE_NEWNET).unwrap();
                unshare(CloneFlags::CLONE_NEWNS).unwrap();
                let none: Option<&str> = None;
                mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none).unwrap();
                mount(Some("sysfs"), "/sys", Some("sysfs"), MsFlags::empty(), none).unwrap();
                job()
            };
            scope.spawn(inside).join().unwrap()
        })
    }

    /// Runs commands of the shell in it; what went wrong when one fails.
    pub fn shell(&self, script: &str) -> Result<(), String> {
        if script.is_empty() {
            return Ok(());
        }
        let done = self.run(|| Command::new("sh").args(["-ec", script]).output().unwrap());
        if done.status.success() {
            return Ok(());
        }
        Err(format!("{script}: {}", String::from_utf8_lossy(&done.stderr).trim()))
    }
}

/// Receiver and sender.
pub struct Pair {
    pub rx: Place,
    pub tx: Place,
}

impl Pair {
    /// Both, joined by a veth that is named so in each: 10.77.0.1 sends, 10.77.0.2 receives.
    pub fn new() -> Self {
        let pair = Self { rx: Place::new(), tx: Place::new() };
        let peer_ns = pair.tx.0.as_raw_fd();
        pair.rx.run(|| {
            let mut route = Netlink::route().unwrap();
            let spec = VethSpec { name: "veth", peer: "veth", peer_ns, queues: 1 };
            route.create_veth(&spec).unwrap();
        });
        let ends = [(&pair.tx, 1, TX_MAC, 2, RX_MAC), (&pair.rx, 2, RX_MAC, 1, TX_MAC)];
        for (place, last, mac, other, other_mac) in ends {
            place.run(|| {
                let mut route = Netlink::route().unwrap();
                route.set_mac("veth", mac).unwrap();
                route.add_address("veth", [10, 77, 0, last].into(), 24).unwrap();
                route.set_up("lo", true).unwrap();
                route.set_up("veth", true).unwrap();
                // A first question that is lost while the other end comes up is asked again a second later.
                route.add_neighbour("veth", [10, 77, 0, other].into(), other_mac).unwrap();
            });
        }
        pair
    }
}

/// A namespace with its loopback alone: what is found there is about the machine.
pub fn bare() -> Place {
    Place::new()
}

/// A finding: the rule, its area, and the device where it is about one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    pub rule: String,
    pub area: String,
    pub device: Option<String>,
    pub observed: String,
}

impl Found {
    /// Whether it is about the network of the namespace, and not about the machine, on which others work too.
    pub fn is_of_namespace(&self) -> bool {
        let machine = ["napi", "cpu", "interrupts", "surroundings"];
        self.device.is_some() || !machine.contains(&self.area.as_str())
    }
}

/// What `rxpath check` finds in a namespace, with counters read twice.
pub fn check(place: &Place, goal: Option<&str>) -> Vec<Found> {
    let done = place.run(|| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rxpath"));
        command.args(["check", "--json", "--window", "300ms"]);
        if let Some(goal) = goal {
            command.args(["--goal", goal]);
        }
        command.output().unwrap()
    });
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let value: Value = serde_json::from_slice(&done.stdout).unwrap();
    let text = |finding: &Value, key: &str| finding[key].as_str().map(str::to_owned);
    let findings = value["result"]["findings"].as_array().unwrap();
    let one = |finding: &Value| Found {
        rule: text(finding, "id").unwrap(),
        area: text(finding, "area").unwrap(),
        device: text(finding, "device"),
        observed: text(finding, "observed").unwrap(),
    };
    findings.iter().map(one).collect()
}
