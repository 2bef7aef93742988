//! Wrong settings of the whole host: a receiver in this host's own namespace, its sender in another one.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use rxpath_host::Target;
use rxpath_host::write::setter::{HostSetter, Setter};
use tempfile::TempDir;

use crate::bed::{random_id, until};

const DEVICE: &str = "rxplanted0";
const PEER: &str = "rxplanted1";
const ADDRESS: &str = "10.77.9.2";
const PORT: u16 = 4823;

/// Namespaces of senders begin with it.
const NAMESPACES: &str = "rxplanted-";

/// A receiver on this host. What it made and set is taken back when it is dropped, or by the next one.
struct Receiver {
    namespace: String,
    programs: Vec<Child>,
    dir: TempDir,
}

/// The settings as they were before, one a line: they outlive a campaign that is killed.
fn before() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("settings-before-planting")
}

/// Takes back what was made and set.
fn take_back() {
    let text = fs::read_to_string(before()).unwrap_or_default();
    for line in text.lines().rev() {
        let Some((name, value)) = line.split_once('=') else { continue };
        let _ = HostSetter::default().write(&name.parse().unwrap(), value);
    }
    let _ = fs::remove_file(before());
    // An answer that there is none is an answer.
    let quietly = |words: &str| Command::new("ip").args(words.split(' ')).output().unwrap();
    quietly(&format!("link del {DEVICE}"));
    let listed = quietly("netns list").stdout;
    let listed = String::from_utf8_lossy(&listed).into_owned();
    let names = listed.lines().filter_map(|line| line.split(' ').next());
    for name in names.filter(|name| name.starts_with(NAMESPACES)) {
        quietly(&format!("netns del {name}"));
    }
}

fn ip(words: &str) {
    let done = Command::new("ip").args(words.split(' ')).status().unwrap();
    assert!(done.success(), "ip {words}: {done}");
}

/// Sets it until the next [`take_back`].
fn plant(name: &str, value: &str) {
    let target: Target = name.parse().unwrap();
    let mut setter = HostSetter::default();
    let old = setter.read(&target).unwrap().unwrap();
    let all = fs::read_to_string(before()).unwrap_or_default();
    fs::write(before(), format!("{all}{target}={old}\n")).unwrap();
    setter.write(&target, value).unwrap();
}

impl Receiver {
    fn new() -> Self {
        take_back();
        let namespace = format!("{NAMESPACES}{}", random_id());
        ip(&format!("netns add {namespace}"));
        let it = Self { namespace, programs: Vec::new(), dir: tempfile::tempdir().unwrap() };
        let to = &it.namespace;
        ip(&format!("link add {DEVICE} type veth peer name {PEER} netns {to}"));
        ip(&format!("addr add {ADDRESS}/30 dev {DEVICE}"));
        ip(&format!("link set {DEVICE} up"));
        ip(&format!("-n {to} addr add 10.77.9.1/30 dev {PEER}"));
        ip(&format!("-n {to} link set {PEER} up"));
        it
    }

    /// NAPI on the device: GRO, and no TSO at the other end (`veth_skb_is_eligible_for_gro`). It goes with the device.
    fn napi(&self) {
        let group: Target = format!("{DEVICE}/features").parse().unwrap();
        HostSetter::default().write(&group, "rx-gro=on").unwrap();
        let words = ["netns", "exec", &self.namespace, "ethtool", "-K", PEER, "tso", "off"];
        assert!(Command::new("ip").args(words).status().unwrap().success());
    }

    /// Both programs run.
    fn flow(&mut self, load: &[&str]) {
        let to = format!("{ADDRESS}:{PORT}");
        let rxpath = env!("CARGO_BIN_EXE_rxpath");
        let mut serve = Command::new(rxpath);
        // The usual buffer loses more than a short backlog does.
        serve.args(["serve", "udp", &to, "--cpu", "1", "--rcvbuf", "4MiB"]);
        serve.args(["-d", "1200s", "--wait"]);
        let mut sender = Command::new("ip");
        sender.args(["netns", "exec", &self.namespace, rxpath, "load", "udp", &to]);
        sender.args(["--cpu", "0", "-d", "1200s"]).args(load);
        for mut command in [serve, sender] {
            let quiet = command.stdout(Stdio::null()).stderr(Stdio::null());
            self.programs.push(quiet.spawn().unwrap());
            until("the receiver's socket", || {
                let sockets = Command::new("ss").args(["-Hun"]).arg("-a").output().unwrap().stdout;
                String::from_utf8_lossy(&sockets).contains(&to)
            });
        }
    }

    fn search(&self, words: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rxpath"));
        command.args(["tune", "auto", "--live", DEVICE, "--json", "--yes", "--allow", "host"]);
        command.args(["--slice", "1s", "--settle", "200ms", "--budget", &super::budget()]);
        command.args(words).arg("--state-dir").arg(self.dir.path().join("state"));
        command.arg("--out").arg(self.dir.path()).output().unwrap()
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        for program in &mut self.programs {
            let _ = program.kill();
            let _ = program.wait();
        }
        take_back();
    }
}

/// One packet a softirq: NAPI gives up its turn after each.
pub fn budget() -> Output {
    let mut receiver = Receiver::new();
    receiver.napi();
    plant("net.core.netdev_budget", "1");
    receiver.flow(&["--rate", "150k", "--batch", "64"]);
    receiver.search(&[])
}

/// The user wants RPS and asks only for limits of the kernel.
pub fn backlog() -> Output {
    let mut receiver = Receiver::new();
    plant(&format!("{DEVICE}/queues/rx-0/rps_cpus"), "2");
    plant("net.core.netdev_max_backlog", "10");
    receiver.flow(&["--rate", "150k", "--batch", "64"]);
    receiver.search(&["--settings", "net.core.*", "--objective", "min loss_ratio"])
}
