//! A receiver with real traffic: a TCP stream in segments of one MTU, so that GRO, which is off, would merge many.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use rxpath_host::Target;
use rxpath_host::lab::netns::Namespace;
use rxpath_host::write::setter::{HostSetter, Setter};
use tempfile::TempDir;

use crate::bed::{Bed, RX_IP, until};

const GRO: &str = "veth/features";
const QUICK: [&str; 6] = ["--slice", "400ms", "--settle", "100ms", "--seed", "3"];

/// A receiver whose traffic comes from the other namespace.
pub struct Service {
    pub rx: Namespace,
    dir: TempDir,
    programs: Vec<Child>,
    _bed: Bed,
    pub tx: Namespace,
}

impl Drop for Service {
    fn drop(&mut self) {
        for program in &mut self.programs {
            let _ = program.kill();
            let _ = program.wait();
        }
    }
}

fn inside(ns: &Namespace, program: &str, words: &[&str]) -> Command {
    let mut command = Command::new("ip");
    command.args(["netns", "exec", ns.name(), program]).args(words);
    command
}

impl Service {
    /// `None` without root or BPF.
    pub fn new() -> Option<Self> {
        let bed = Bed::with_bpf()?;
        let (tx, rx) = bed.pair(1);
        // With any TSO the veth would hand packets on without NAPI, and so without GRO.
        let kinds = ["tcp", "tcp-ecn", "tcp-mangleid", "tcp6", "generic"];
        let off = kinds.map(|kind| format!("tx-{kind}-segmentation=off")).join(" ");
        tx.run(move |_| HostSetter::default().write(&GRO.parse().unwrap(), &off)).unwrap().unwrap();
        let dir = tempfile::tempdir().unwrap();
        Some(Self { rx, dir, programs: Vec::new(), _bed: bed, tx })
    }

    /// Starts a program of this build in one of the namespaces; it ends with the service.
    pub fn start(&mut self, ns: &str, words: &[&str]) {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", ns, env!("CARGO_BIN_EXE_rxpath")]).args(words);
        let quiet = command.stdout(Stdio::null()).stderr(Stdio::null());
        self.programs.push(quiet.spawn().unwrap());
    }

    /// The stream runs.
    pub fn stream(mut self) -> Self {
        let (tx, rx) = (self.tx.name().to_owned(), self.rx.name().to_owned());
        let to = format!("{RX_IP}:4820");
        self.start(&rx, &["serve", "tcp", &to, "-d", "600s", "--wait"]);
        until("the server listens", || {
            let listens = inside(&self.rx, "ss", &["-Htln"]).output().unwrap().stdout;
            String::from_utf8_lossy(&listens).contains(&to)
        });
        let load = ["load", "tcp", "stream", &to, "--bitrate", "200M", "-d", "600s"];
        self.start(&tx, &[&load[..], &["--congestion", "cubic"]].concat());
        let before = self.received();
        until("the stream runs", || self.received() > before + 100);
        self
    }

    fn received(&self) -> u64 {
        let path = "/sys/class/net/veth/statistics/rx_packets";
        let read = inside(&self.rx, "cat", &[path]).output().unwrap();
        String::from_utf8_lossy(&read.stdout).trim().parse().unwrap()
    }

    pub fn read(&self, set: &str) -> String {
        let target: Target = set.parse().unwrap();
        let value = self.rx.run(move |_| HostSetter::default().read(&target)).unwrap();
        value.unwrap().unwrap()
    }

    pub fn has_gro(&self) -> bool {
        self.read(GRO).split_whitespace().any(|word| word == "rx-gro=on")
    }

    /// All that a search may change, as it is now.
    pub fn settings(&self) -> [String; 3] {
        [GRO, "veth/napi_defer_hard_irqs", "veth/gro_flush_timeout"].map(|set| self.read(set))
    }

    /// A command of `rxpath tune` inside.
    pub fn rxpath(&self, words: &[&str]) -> Command {
        let mut command = inside(&self.rx, env!("CARGO_BIN_EXE_rxpath"), words);
        command.arg("--state-dir").arg(self.state());
        command
    }

    pub fn search(&self, words: &[&str]) -> Command {
        self.search_by(&QUICK, words)
    }

    /// The same with other times than [`QUICK`].
    pub fn search_by(&self, times: &[&str], words: &[&str]) -> Command {
        let mut command = self.rxpath(&["tune", "auto", "--live", "veth", "--json"]);
        command.args(times).args(words).arg("--out").arg(self.dir.path().join("out"));
        command
    }

    pub fn state(&self) -> PathBuf {
        self.dir.path().join("state")
    }

    /// No change is in force and nobody waits to undo one.
    pub fn assert_done(&self) {
        let said = self.rxpath(&["tune", "status"]).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&said.stdout), "nothing is changed\n");
        until("the watchdog ends", || {
            let state = self.state().display().to_string();
            let all = std::fs::read_dir("/proc").unwrap().flatten();
            !all.into_iter().any(|process| {
                let words = std::fs::read(process.path().join("cmdline")).unwrap_or_default();
                let words = String::from_utf8_lossy(&words).into_owned();
                words.contains("watchdog") && words.contains(&state)
            })
        });
    }
}
