//! Senders and receivers that are network namespaces of this machine, on one bridge.

use std::fs;
use std::net::IpAddr;
use std::path::Path;
use std::process::Command;

use rxpath_host::lab::netns::Namespace;
use rxpath_record::manifest::Manifest;
use rxpath_record::run::RunReader;
use tempfile::TempDir;

use crate::bed::Bed;
use crate::program::{Said, said};

const HOSTS: [(&str, &str); 4] =
    [("gen1", "sender"), ("gen2", "sender"), ("sut", "receiver"), ("sut2", "receiver")];

/// The hosts, and a directory for files.
pub struct Lan {
    _hosts: Vec<Namespace>,
    _switch: Namespace,
    _bed: Bed,
    pub dir: TempDir,
    inventory: String,
}

fn tool(program: &str, words: &[&str]) {
    let ended = Command::new(program).args(words).status().unwrap();
    assert!(ended.success(), "{program} {words:?}");
}

fn address(number: u8) -> IpAddr {
    [10, 79, 0, number].into()
}

fn mac(number: u8) -> [u8; 6] {
    [2, 0, 0, 0, 0, number]
}

impl Lan {
    pub fn new() -> Option<Self> {
        let bed = Bed::new()?;
        let switch = Namespace::create(&bed.owner, "switch").unwrap();
        switch.disable_ipv6().unwrap();
        // With snooping the bridge sends reports of its own to each host (`br_multicast_join_snoopers`).
        let bridge = ["link", "add", "br0", "type", "bridge", "mcast_snooping", "0"];
        switch.run(move |_| tool("ip", &bridge)).unwrap();
        switch.set_up("br0", true).unwrap();
        let (mut hosts, mut text) = (Vec::new(), String::new());
        for (number, (alias, role)) in (1..).zip(HOSTS) {
            let host = Namespace::create(&bed.owner, alias).unwrap();
            host.disable_ipv6().unwrap();
            let port = format!("port{number}");
            switch.veth_to(&port, &host, "data", 1).unwrap();
            host.set_mac("data", mac(number)).unwrap();
            host.add_address("data", address(number), 24).unwrap();
            host.set_up("data", true).unwrap();
            // Who is where is known: no ARP, and no frame goes to a host that it is not for.
            for other in (1..=HOSTS.len() as u8).filter(|other| *other != number) {
                host.add_neighbour("data", address(other), mac(other)).unwrap();
            }
            let at = format!("02:00:00:00:00:{number:02x}");
            let join = move || {
                tool("ip", &["link", "set", &port, "master", "br0", "up"]);
                tool("bridge", &["fdb", "add", &at, "dev", &port, "master", "static"]);
            };
            switch.run(move |_| join()).unwrap();
            text += &format!(
                "[hosts.{alias}]\nssh = \"local\"\nrole = \"{role}\"\nnetns = \"{}\"\n",
                host.name()
            );
            hosts.push(host);
        }
        let dir = tempfile::tempdir().unwrap();
        let inventory = dir.path().join("lab.toml").to_str().unwrap().to_owned();
        fs::write(&inventory, text).unwrap();
        Some(Self { _hosts: hosts, _switch: switch, _bed: bed, dir, inventory })
    }

    pub fn write(&self, text: &str) -> String {
        let file = self.dir.path().join("s.toml");
        fs::write(&file, text).unwrap();
        file.to_str().unwrap().to_owned()
    }

    pub fn rxpath(&self, words: &[&str]) -> Said {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rxpath"));
        said(command.args(words).args(["--hosts", &self.inventory]))
    }

    /// Chooses who sends to whom.
    pub fn choose(&self, pairs: &str) {
        let hosts = fs::read_to_string(&self.inventory).unwrap();
        fs::write(&self.inventory, format!("{hosts}[network]\npairs = {pairs}\n")).unwrap();
    }

    /// A run of one scenario: its record, what it printed, and its page.
    pub fn run(&self, scenario: &str) -> (Manifest, String, String) {
        let (run, printed, page) = self.recorded(scenario);
        (run.manifest, printed, page)
    }

    /// Such a run with all of its record.
    pub fn recorded(&self, scenario: &str) -> (RunReader, String, String) {
        let (file, out) = (self.write(scenario), self.dir.path().join("runs"));
        let ended = self.rxpath(&["run", &file, "--keep-noisy", "--out", out.to_str().unwrap()]);
        // 4: the machine was busy, which is no matter here.
        assert!(matches!(ended.code, Some(0 | 4)), "{ended:?}");
        let directory = fs::read_dir(&out).unwrap().next().unwrap().unwrap().path();
        let page = fs::read_to_string(directory.join("report.html")).unwrap();
        let run = RunReader::open(Path::new(&directory)).unwrap();
        fs::remove_dir_all(&out).unwrap();
        (run, ended.out, page)
    }
}
