//! A namespace with a veth of several queues, a state directory, and the built program run inside.

use std::collections::BTreeMap;
use std::process::Command;

use rxpath_host::lab::netns::Namespace;
use rxpath_host::lab::owner::Owner;
use rxpath_host::pairs::Pairs;
use rxpath_host::write::setter::{HostSetter, Setter};
use rxpath_host::{Knob, Target};
use rxpath_tune::store::{Store, TuneLock};
use tempfile::TempDir;

use crate::bed::{may_run, random_id};
use crate::program::Said;

/// One of each kind that a veth and a namespace have.
pub const WISHES: [&str; 8] = [
    "veth/channels/rx=2",
    "veth/features/rx-gro=on",
    "veth/link/mtu=1400",
    "veth/napi_defer_hard_irqs=3",
    "veth/gro_flush_timeout=30000",
    "veth/queues/rx-0/rps_cpus=1",
    "net.ipv4.udp_rmem_min=8192",
    "net.ipv4.tcp_rmem=4096 65536 1048576",
];

/// Every target whose value must be the same again.
const WATCHED: [&str; 16] = [
    "veth/channels",
    "veth/features",
    "veth/link",
    "veth/napi_defer_hard_irqs",
    "veth/gro_flush_timeout",
    "veth/threaded",
    "veth/queues/rx-0/rps_cpus",
    "veth/queues/rx-1/rps_cpus",
    "veth/queues/rx-2/rps_cpus",
    "veth/queues/rx-3/rps_cpus",
    "veth/queues/rx-3/rps_flow_cnt",
    "veth/queues/tx-1/xps_cpus",
    "veth/napi-0",
    "net.ipv4.udp_rmem_min",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_congestion_control",
];

pub struct Place {
    pub ns: Namespace,
    peer: Namespace,
    _owner: Owner,
    pub dir: TempDir,
    /// What is watched, as it was made.
    pub before: BTreeMap<String, String>,
}

impl Place {
    /// `None`, and the test is named as skipped, without root.
    pub fn new() -> Option<Self> {
        if !may_run() {
            return None;
        }
        let owner = Owner::register(&random_id()).unwrap();
        let ns = Namespace::create(&owner, "rx").unwrap();
        let peer = Namespace::create(&owner, "tx").unwrap();
        ns.disable_ipv6().unwrap();
        ns.veth_to("veth", &peer, "veth", 4).unwrap();
        ns.add_address("veth", [10, 77, 0, 2].into(), 24).unwrap();
        for ns in [&ns, &peer] {
            ns.set_up("veth", true).unwrap();
        }
        // A mask on the last queue, which goes away when there are fewer queues.
        ns.set_dev_attr("veth", "queues/rx-3/rps_cpus", "1").unwrap();
        let dir = tempfile::tempdir().unwrap();
        let made = Self { ns, peer, _owner: owner, dir, before: BTreeMap::new() };
        Some(Self { before: made.snapshot(), ..made })
    }

    pub fn store(&self) -> Store {
        Store::open(&self.dir.path().join("state")).unwrap()
    }

    /// The right to change this namespace, held by the test.
    pub fn lock(&self) -> TuneLock {
        let store = self.store();
        self.ns.run(move |_| store.lock(std::time::Duration::ZERO)).unwrap().unwrap()
    }

    /// Makes a plan file of these wishes.
    #[track_caller]
    pub fn plan(&self, wishes: &[&str]) -> String {
        let path = self.dir.path().join("plan.toml").display().to_string();
        let sets = wishes.iter().flat_map(|wish| ["--set", wish]);
        let words: Vec<&str> = ["tune", "plan", "-o", &path].into_iter().chain(sets).collect();
        self.rxpath(&words).ok();
        path
    }

    /// Runs the program in the namespace.
    pub fn rxpath(&self, words: &[&str]) -> Said {
        self.spawned(words, |_| ())
    }

    /// As [`Place::rxpath`], with one variable more.
    pub fn with(&self, (name, value): (&'static str, &str), words: &[&str]) -> Said {
        let value = value.to_owned();
        self.spawned(words, move |command| {
            command.env(name, value);
        })
    }

    /// As [`Place::rxpath`], without a capability.
    pub fn without(&self, capability: &str, words: &[&str]) -> Said {
        let words = self.words(words);
        let less = format!("-{capability}");
        let output = self.ns.run(move |_| {
            let mut command = Command::new("setpriv");
            command.args(["--inh-caps", &less, "--bounding-set", &less]);
            command.arg(env!("CARGO_BIN_EXE_rxpath")).args(words).output().unwrap()
        });
        output.unwrap().into()
    }

    pub fn words(&self, words: &[&str]) -> Vec<String> {
        let mut words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        if words[1] != "plan" {
            words.extend([
                "--state-dir".into(),
                self.dir.path().join("state").display().to_string(),
            ]);
        }
        words
    }

    /// As [`Place::rxpath`], with no state directory but the one that is named.
    pub fn rxpath_as_told(&self, words: &[&str]) -> Said {
        self.run(words.iter().map(|word| (*word).to_owned()).collect(), |_| ())
    }

    pub fn spawned(
        &self,
        words: &[&str],
        prepare: impl FnOnce(&mut Command) + Send + 'static,
    ) -> Said {
        self.run(self.words(words), prepare)
    }

    fn run(&self, words: Vec<String>, prepare: impl FnOnce(&mut Command) + Send + 'static) -> Said {
        let output = self.ns.run(move |_| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_rxpath"));
            command.args(words).env_remove("SSH_CONNECTION");
            prepare(&mut command);
            command.output().unwrap()
        });
        output.unwrap().into()
    }

    /// Undoes all, after which everything is as it was made.
    #[track_caller]
    pub fn undo(&self) {
        self.rxpath(&["tune", "undo"]).ok();
        assert_eq!(self.snapshot(), self.before);
    }

    /// The other end of the veth: down, this one has no carrier.
    pub fn set_peer(&self, up: bool) {
        self.peer.set_up("veth", up).unwrap();
    }

    pub fn sysctl(&self, key: &str, value: &str) {
        self.ns.set_sysctl(key, value).unwrap().applied().unwrap();
    }

    /// Runs `ip` in the namespace.
    #[track_caller]
    pub fn ip(&self, words: &[&str]) {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let status = self.ns.run(|_| Command::new("ip").args(words).status().unwrap());
        assert!(status.unwrap().success());
    }

    /// Every watched setting that is there, as it reads now.
    pub fn snapshot(&self) -> BTreeMap<String, String> {
        let read = |_: &mut rxpath_host::lab::netns::Inside| {
            let mut setter = HostSetter::default();
            let value = |name: &&str| {
                let target: Target = name.parse().unwrap();
                Some(((*name).to_owned(), setter.read(&target).ok()??))
            };
            WATCHED.iter().filter_map(value).collect()
        };
        self.ns.run(read).unwrap()
    }

    /// Whether a knob reads as this value.
    pub fn has(&self, knob: &str, value: &str) -> bool {
        let knob: Knob = knob.parse().unwrap();
        let now = self.ns.run({
            let target = knob.target.clone();
            move |_| HostSetter::default().read(&target).unwrap().unwrap()
        });
        let now = now.unwrap();
        let now = match &knob.part {
            Some(part) => now.parse::<Pairs>().unwrap().get(part).unwrap().to_owned(),
            None => now,
        };
        rxpath_host::write::change::same(value, &now)
    }
}
