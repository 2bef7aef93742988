//! The namespaces of one cause: `tx` and `rx` with a wire (`w1` in tx, `w0` in rx), what runs in them, and what was counted.

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use nix::sys::signal::Signal;
use tempfile::TempDir;

use crate::actor::Actor;

pub const TX: &str = "10.88.0.1";
pub const RX: &str = "10.88.0.2";
pub const TX_MAC: &str = "02:00:00:00:08:01";
pub const RX_MAC: &str = "02:00:00:00:08:02";

/// An empty `/run` for this process and its children, and a share of the CPUs against other sessions: their load is no cause.
pub fn own_place() -> Result<(), String> {
    let none = None::<&str>;
    unshare(CloneFlags::CLONE_NEWNS).map_err(|error| format!("unshare: {error}"))?;
    mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none)
        .map_err(|error| format!("mount: {error}"))?;
    mount(Some("tmpfs"), "/run", Some("tmpfs"), MsFlags::empty(), none)
        .map_err(|error| format!("mount: {error}"))?;
    let _ = nix::unistd::setsid();
    weigh(-12);
    Ok(())
}

/// Sets what this session weighs beside others; without autogroups there is nothing to set.
fn weigh(nice: i32) {
    let _ = fs::write("/proc/self/autogroup", nice.to_string());
}

/// A place outside the namespaces that is put back at the end.
struct Undo(String, String);

#[derive(Default)]
struct Cast {
    senders: Vec<Actor>,
    readers: Vec<Actor>,
    others: Vec<Actor>,
}

pub struct Host {
    dir: TempDir,
    cast: Cast,
    started: usize,
    undo: Vec<Undo>,
    groups: Vec<String>,
}

// Namespaces and groups are reached through their host, whether or not the call needs its fields.
#[allow(clippy::unused_self)]
impl Host {
    pub fn new() -> Result<Self, String> {
        weigh(-12);
        let dir = tempfile::tempdir().map_err(|error| error.to_string())?;
        let host =
            Self { dir, cast: Cast::default(), started: 0, undo: Vec::new(), groups: Vec::new() };
        run(&format!(
            "for n in tx rx; do ip netns add $n && ip -n $n link set lo up; done
             ip link add w1 netns tx address {TX_MAC} type veth peer name w0 netns rx address {RX_MAC}
             ip -n tx addr add {TX}/24 dev w1 && ip -n tx addr add fd00:88::1/64 dev w1 nodad
             ip -n rx addr add {RX}/24 dev w0 && ip -n rx addr add fd00:88::2/64 dev w0 nodad
             ip -n tx link set w1 up && ip -n rx link set w0 up
             for f in {RX} fd00:88::2; do ip -n tx neigh replace $f lladdr {RX_MAC} dev w1; done
             for f in {TX} fd00:88::1; do ip -n rx neigh replace $f lladdr {TX_MAC} dev w0; done"
        ))?;
        Ok(host)
    }

    /// Lines of a shell in a namespace; each has to succeed.
    pub fn sh(&self, namespace: &str, script: &str) -> Result<(), String> {
        let script = script.replace('\'', "'\\''");
        run(&format!("ip netns exec {namespace} sh -ec '{script}'"))
    }

    /// What a command says in a namespace.
    pub fn said(&self, namespace: &str, script: &str) -> String {
        let mut command = Command::new("ip");
        let output = command.args(["netns", "exec", namespace, "sh", "-c", script]).output();
        output.map_or_else(
            |error| error.to_string(),
            |output| String::from_utf8_lossy(&output.stdout).into_owned(),
        )
    }

    /// A counter of /proc/net/{snmp,netstat} of a namespace, as `TcpExt.ListenDrops`.
    pub fn counter(&self, namespace: &str, name: &str) -> u64 {
        let (group, field) = name.split_once('.').unwrap_or((name, ""));
        let text = self.said(namespace, "cat /proc/net/snmp /proc/net/netstat");
        let mut lines = text.lines().filter(|line| line.starts_with(&format!("{group}:")));
        let (names, values) = (lines.next().unwrap_or(""), lines.next().unwrap_or(""));
        let at = names.split(' ').position(|one| one == field);
        at.and_then(|at| values.split(' ').nth(at)?.parse().ok()).unwrap_or(0)
    }

    fn count_file(&mut self) -> std::path::PathBuf {
        self.started += 1;
        self.dir.path().join(format!("{}", self.started))
    }

    fn role(&mut self, namespace: &str, role: &str, words: &str) -> Result<Actor, String> {
        let own = std::env::current_exe().map_err(|error| error.to_string())?;
        let mut command = Command::new(own);
        command.args(["as", role]).args(words.split_whitespace());
        Actor::start(command, namespace, self.count_file())?.ready()
    }

    /// A reader (`roles/read.rs`) in `rx`: its number among the readers.
    pub fn read(&mut self, words: &str) -> Result<usize, String> {
        let actor = self.role("rx", "read", words)?;
        self.cast.readers.push(actor);
        Ok(self.cast.readers.len() - 1)
    }

    /// A sender (`roles/send.rs`) in `tx`.
    pub fn send(&mut self, words: &str) -> Result<usize, String> {
        let actor = self.role("tx", "send", words)?;
        self.cast.senders.push(actor);
        Ok(self.cast.senders.len() - 1)
    }

    /// A sender of frames (`roles/frames.rs`) in `tx`.
    pub fn frames(&mut self, words: &str) -> Result<usize, String> {
        let actor = self.role("tx", "frames", words)?;
        self.cast.senders.push(actor);
        Ok(self.cast.senders.len() - 1)
    }

    /// Any role in any namespace, which counts for nothing.
    pub fn other(&mut self, namespace: &str, role: &str, words: &str) -> Result<usize, String> {
        if role == "hog" {
            // The kernel's own threads need the CPU, too: with them starved, a probe is put into place in minutes.
            weigh(-3);
        }
        let actor = self.role(namespace, role, words)?;
        self.cast.others.push(actor);
        Ok(self.cast.others.len() - 1)
    }

    /// A program of the machine in a namespace, which counts as a reader if it counts.
    pub fn program(&mut self, namespace: &str, words: &[&str], counts: bool) -> Result<(), String> {
        let mut command = Command::new(words[0]);
        command.args(&words[1..]);
        let actor = Actor::start(command, namespace, self.count_file())?;
        if counts {
            self.cast.readers.push(actor.ready()?);
        } else {
            self.cast.others.push(actor);
        }
        Ok(())
    }

    pub fn reader(&self, at: usize) -> &Actor {
        &self.cast.readers[at]
    }

    pub fn of_other(&self, at: usize) -> &Actor {
        &self.cast.others[at]
    }

    /// Ends a reader, for another one in its place.
    pub fn end_reader(&mut self, at: usize) {
        drop(self.cast.readers.remove(at));
    }

    pub fn end_sender(&mut self, at: usize) {
        drop(self.cast.senders.remove(at));
    }

    pub fn end_other(&mut self, at: usize) {
        drop(self.cast.others.remove(at));
    }

    /// Ends all readers and starts this one.
    pub fn read_instead(&mut self, words: &str) -> Result<(), String> {
        self.cast.readers.clear();
        self.read(words).map(drop)
    }

    /// Sent and read so far; a program that was ended is in neither.
    fn sent_and_read(&self) -> [u64; 2] {
        [&self.cast.senders, &self.cast.readers]
            .map(|of| of.iter().map(|actor| actor.counts()[0]).sum())
    }

    /// The share that is lost between senders and readers, over a second and a half.
    pub fn lost(&self) -> f64 {
        let [sent, read] = self.sent_and_read();
        std::thread::sleep(Duration::from_millis(1500));
        let [sent_then, read_then] = self.sent_and_read();
        let (sent, read) = (sent_then - sent, read_then - read);
        if sent == 0 { 0.0 } else { 1.0 - read as f64 / sent as f64 }
    }

    /// How fast a counter moves, a second.
    pub fn pace(&self, count: impl Fn(&Self) -> u64) -> f64 {
        let (begun, before) = (Instant::now(), count(self));
        std::thread::sleep(Duration::from_millis(1500));
        count(self).saturating_sub(before) as f64 / begun.elapsed().as_secs_f64()
    }

    /// What the other actors counted at `at`.
    pub fn others_count(&self, at: usize) -> u64 {
        self.cast.others.iter().map(|actor| actor.counts()[at]).sum()
    }

    /// Writes a file of the machine (a sysctl, a control group's), put back at the end.
    pub fn set(&mut self, path: &str, value: &str) -> Result<(), String> {
        let was = fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
        fs::write(path, value).map_err(|error| format!("{path}: {error}"))?;
        self.undo.push(Undo(path.into(), was.trim().into()));
        Ok(())
    }

    /// A control group below `mount`, with settings; its path.
    pub fn group(&mut self, mount: &str, settings: &[(&str, &str)]) -> Result<String, String> {
        let path = format!("/sys/fs/cgroup/{mount}/causes-{}", std::process::id());
        fs::create_dir(&path).map_err(|error| format!("{path}: {error}"))?;
        self.groups.push(path.clone());
        for (file, value) in settings {
            let file = format!("{path}/{file}");
            fs::write(&file, value).map_err(|error| format!("{file}: {error}"))?;
        }
        Ok(path)
    }

    /// Puts a process into a control group.
    pub fn join(&self, group: &str, pid: i32) -> Result<(), String> {
        let file = format!("{group}/cgroup.procs");
        fs::write(&file, pid.to_string()).map_err(|error| format!("{file}: {error}"))
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        for group in &self.groups {
            let _ = fs::write(format!("{group}/freezer.state"), "THAWED");
            let _ = fs::write(format!("{group}/cgroup.freeze"), "0");
        }
        let everybody =
            [&self.cast.senders, &self.cast.readers, &self.cast.others].into_iter().flatten();
        everybody.for_each(|actor| actor.signal(Signal::SIGCONT));
        self.cast = Cast::default();
        for Undo(path, was) in self.undo.iter().rev() {
            let _ = fs::write(path, was);
        }
        for group in &self.groups {
            let deadline = Instant::now() + Duration::from_secs(5);
            while fs::remove_dir(group).is_err() && Instant::now() < deadline {
                std::thread::sleep(Duration::from_millis(10));
            }
        }
        let _ = run("for n in $(ip netns list | cut -d' ' -f1); do ip netns del $n; done");
    }
}

/// Lines of a shell; the first that fails is why.
pub fn run(script: &str) -> Result<(), String> {
    let output = Command::new("sh").args(["-ec", script]).output();
    let output = output.map_err(|error| error.to_string())?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(said.lines().next().unwrap_or("a command failed without a word").to_owned())
}
