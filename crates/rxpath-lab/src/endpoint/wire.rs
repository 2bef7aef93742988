//! What coordinator and endpoint say to each other: JSON Lines over a pipe, one object per line.
//!
//! Unknown members are ignored, so that a later version may add some; an unknown request is an error.

use std::net::IpAddr;

use rxpath_host::lab::capture::scrub::HostNames;
use rxpath_host::read::environment::EnvironmentFacts;
use serde::{Deserialize, Serialize};

use super::background::BackgroundAsk;
use super::observing::ObserveAsk;
use super::probe::ProbeAsk;
use super::programs::ProgramAsk;
use super::settings::{LeftSettings, SettingsAsk};
use super::window::{AheadAsk, WindowAsk};
use crate::scenario::HostShape;

/// What an endpoint prints first; what comes before it is the login shell's.
pub const MARKER: &str = "@@rxpath-endpoint 1";
/// How often each end shows that it is alive. **Unit** ms.
pub const TICK_MS: u64 = 1_000;
/// How long an endpoint acts without hearing from its coordinator, and how long the coordinator waits for a sign of it.
/// While load runs, it begins with the latest end of that. **Unit** ms.
pub const LEASE_MS: u64 = 20_000;

/// A line to the endpoint.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Request {
    /// Number that its answer bears.
    pub id: u64,
    /// What is wanted.
    #[serde(flatten)]
    pub ask: HostAsk,
}

/// What the coordinator may want.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case")]
pub enum HostAsk {
    /// Nothing: the coordinator is alive. Not answered.
    Tick,
    /// Who the host is: a [`Hello`].
    Hello {
        /// Whether the endpoint is to take the host's lab lock.
        lock: bool,
        /// The secret of the run, by which other hosts on the same machine see the endpoint.
        secret: String,
        /// Hops that packets of this program's workloads may take; without it as many as any packet.
        #[serde(default)]
        hops: Option<u8>,
    },
    /// Whether this host is on the machine of another endpoint of the run: true or false.
    IsOnMachineOf {
        /// The other endpoint's process id.
        pid: i32,
        /// The secret of the run.
        secret: String,
    },
    /// Its clock, twice: [`ClockPair`](super::clock::ClockPair).
    Clock,
    /// The route to an address: a [`RouteFacts`](super::route::RouteFacts), or null where there is none.
    Route {
        /// The address.
        to: IpAddr,
    },
    /// To or about a workload of this program.
    Program {
        /// The number under which its output comes.
        program: u32,
        /// What is wanted of it.
        what: ProgramAsk,
    },
    /// The counters of the host: a [`Snapshot`](rxpath_record::counters::Snapshot).
    Counters {
        /// The device whose counters are wanted.
        device: String,
    },
    /// Waits until two readings of the counters in a row are equal: a [`Rested`](super::counting::Rested).
    Rest {
        /// The device whose counters are wanted.
        device: String,
        /// The longest wait.
        limit_ms: u64,
    },
    /// Reads the pace of its clock from now on, for the next window.
    Pace,
    /// A load is about to run, which may starve this connection; it ends without an order.
    Load {
        /// Its latest end, of the host's clock; none: it is over.
        until_ns: Option<u64>,
    },
    /// Measures a window that lies ahead, by these instants at the latest: a [`MeasuredWindow`](super::window::MeasuredWindow), once it is over.
    Window(WindowAsk),
    /// About that window.
    Ahead {
        /// What is wanted of it.
        what: AheadAsk,
    },
    /// Drops of each UDP socket that is bound to a port: a list, or null where there is no such socket.
    SocketDrops {
        /// The port.
        port: u16,
    },
    /// Whether a program is where a shell would find it: true or false.
    HasProgram {
        /// Its name or path.
        name: String,
    },
    /// To what runs alongside the workload.
    Background {
        /// What is wanted of it.
        what: BackgroundAsk,
    },
    /// To or about probes of a path.
    Probe {
        /// What is wanted of them.
        what: ProbeAsk,
    },
    /// To what watches a trial by BPF.
    Observe {
        /// What is wanted of it.
        what: ObserveAsk,
    },
    /// To the host's settings.
    Settings {
        /// What is wanted of them.
        what: SettingsAsk,
    },
    /// What earlier experiments left here: a list of [`Leftover`](super::leftovers::Leftover).
    Leftovers,
    /// Programs that outlived a killed endpoint: a [`StrayPrograms`](super::strays::StrayPrograms).
    Strays {
        /// Whether to end them.
        end: bool,
    },
    /// Removes the copy of another build: whether it did, true or false.
    RemoveCopy {
        /// Its hash.
        hash: String,
    },
    /// A network device now: a [`DeviceFacts`], or null where there is none of this name.
    Device {
        /// Its name.
        name: String,
    },
    /// Which counters of a device say what was lost in it and what was on the wire: a
    /// [`rxpath_host::read::nic::losses::CardCounters`].
    Card {
        /// Its name.
        device: String,
        /// Its driver, or the kind of a virtual device.
        driver: String,
    },
    /// How fast a device and those below it run: a list of [`LinkSpeed`](super::links::LinkSpeed), the device first.
    LinkSpeeds {
        /// Its name.
        device: String,
    },
    /// Keeps idle CPUs from sleeping, or lets them sleep again.
    Awake {
        /// Which of the two.
        on: bool,
    },
}

impl HostAsk {
    /// Its words on the wire, without their values: `counters`, `settings apply`.
    pub fn name(&self) -> String {
        let json = serde_json::to_value(self).unwrap_or_default();
        let what = json["what"].as_object().and_then(|what| what.keys().next());
        let what = what.map(String::as_str).or(json["what"].as_str());
        [json["do"].as_str(), what].into_iter().flatten().collect::<Vec<_>>().join(" ")
    }
}

/// Who a host is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Hello {
    /// Version of the program there.
    pub version: String,
    /// Process id of the endpoint.
    pub pid: i32,
    /// Inode of its network namespace, where it can be read.
    pub netns: Option<u32>,
    /// Identity of the boot.
    pub boot_id: String,
    /// Identity of its `CLOCK_MONOTONIC` ([`rxpath_load::engine::clock::identity`]); 0 = unknown.
    pub clock: u16,
    /// User id of the endpoint.
    pub uid: u32,
    /// CPUs, power management, kernel features.
    pub shape: HostShape,
    /// Facts for the run directory.
    pub facts: EnvironmentFacts,
    /// Its network devices.
    pub devices: Vec<DeviceFacts>,
    /// The device by which the endpoint's ssh session comes, then those below it; none where that is not known.
    #[serde(default)]
    pub control_devices: Vec<String>,
    /// What names it and its users: a run directory has none of it.
    #[serde(default)]
    pub names: HostNames,
    /// Why the host's lab lock was not taken, where it was asked for.
    pub not_locked: Option<String>,
    /// What earlier runs left in force there.
    #[serde(default)]
    pub left: LeftSettings,
}

/// A network device as far as an experiment between hosts needs to know it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DeviceFacts {
    /// Index.
    pub index: u32,
    /// Name.
    pub name: String,
    /// Kind of a virtual device (`veth`, `bridge`), or the driver; empty where neither is known.
    pub driver: String,
    /// **Unit** bytes.
    pub mtu_bytes: u32,
    /// Whether it is up and has a carrier.
    pub is_up: bool,
    /// Its addresses.
    pub addresses: Vec<IpAddr>,
    /// Receive queues in use; 1 where the kernel does not say.
    #[serde(default)]
    pub rx_queues: u32,
    /// Its NUMA node; `None` of virtual devices, and on a host with one node.
    #[serde(default)]
    pub numa_node: Option<u32>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::endpoint::links::LinkSpeed;
    use crate::endpoint::said::Said;

    #[test]
    fn requests_and_answers_read_back() {
        let asks = [
            HostAsk::Tick,
            HostAsk::Route { to: "192.0.2.1".parse().unwrap() },
            HostAsk::Program {
                program: 3,
                what: ProgramAsk::Launch {
                    words: vec!["serve".into(), "udp".into()],
                    host: "sut".into(),
                    sender: 0,
                },
            },
            HostAsk::Program { program: 3, what: ProgramAsk::HangUp },
            HostAsk::Background { what: BackgroundAsk::End },
            HostAsk::Load { until_ns: Some(7) },
            HostAsk::Load { until_ns: None },
            HostAsk::Ahead { what: AheadAsk::Earlier { from_ns: 5, to_ns: 9, by_ns: 3 } },
            HostAsk::Ahead { what: AheadAsk::AsArmed },
            HostAsk::Probe {
                what: ProbeAsk::Listen {
                    at: "192.0.2.1:4321".parse().unwrap(),
                    tcp: false,
                    nonce: "5e".into(),
                    hops: 1,
                },
            },
            HostAsk::Observe { what: ObserveAsk::Calibrate { cpu: Some(1) } },
            HostAsk::Window(WindowAsk {
                from_ns: 5,
                to_ns: 9,
                leaders: vec![7],
                others: vec![],
                device: "eth0".into(),
                speeds: vec![LinkSpeed { device: "eth0".into(), mbps: Some(10), duplex: None }],
            }),
        ];
        for (id, ask) in (0..).zip(asks) {
            let request = Request { id, ask };
            let text = serde_json::to_string(&request).unwrap();
            assert_eq!(serde_json::from_str::<Request>(&text).unwrap(), request, "{text}");
        }
        let said = Said::Exit { program: 1, status: 9 };
        let text = serde_json::to_string(&said).unwrap();
        assert_eq!(serde_json::from_str::<Said>(&text).unwrap(), said);
    }

    #[test]
    fn a_request_is_named_by_its_words_on_the_wire() {
        let name = |ask: HostAsk| ask.name();
        assert_eq!(name(HostAsk::Clock), "clock");
        assert_eq!(name(HostAsk::Counters { device: "eth0".into() }), "counters");
        assert_eq!(name(HostAsk::Settings { what: SettingsAsk::Undo }), "settings undo");
        let signal = ProgramAsk::Signal { number: 2 };
        assert_eq!(name(HostAsk::Program { program: 3, what: signal }), "program signal");
    }

    #[test]
    fn an_unknown_member_is_ignored_and_an_unknown_request_is_not() {
        let known = r#"{"id":1,"do":"clock","later":true}"#;
        assert_eq!(
            serde_json::from_str::<Request>(known).unwrap(),
            Request { id: 1, ask: HostAsk::Clock }
        );
        assert!(serde_json::from_str::<Request>(r#"{"id":1,"do":"reboot"}"#).is_err());
        // As an endpoint says it that knows of no hint, and one that knows more than that.
        for more in ["", r#","hint":"","code":5"#] {
            let failure = format!(r#"{{"failure":{{"id":1,"text":"no"{more}}}}}"#);
            let wanted = Said::Failure { id: 1, text: "no".into(), hint: String::new() };
            assert_eq!(serde_json::from_str::<Said>(&failure).unwrap(), wanted);
        }
    }
}
