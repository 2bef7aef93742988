//! A place of its own for runs of the built program: its own `/run`, so that what a run leaves can be told from
//! everything else on the machine, and small file systems to fill.
//!
//! Runs in it offer so few packets that they disturb nobody's measurement: no lab lock of the machine is needed.

use std::fs::Permissions;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;

use crate::bed::{until, until_within};
use crate::program::{Said, said};

const KEEPER: &str = r#"
set -e
mount -t tmpfs -o mode=755 tmpfs /run
mkdir /run/netns "$1/small" "$1/read-only"
mount -t tmpfs -o size=256k tmpfs "$1/small"
mount -t tmpfs -o ro tmpfs "$1/read-only"
ip netns add kept
ip netns add rxp-kept
ip -n kept link add kept0 type veth peer name kept1
echo ready
read -r end
"#;

/// The quick profile: about half a second a trial.
const QUICK: [&str; 6] = [
    "load.rate=2k",
    "trials.ramp=100ms",
    "trials.settle=100ms",
    "trials.measure=200ms",
    "trials.max_blocks=1",
    "trials.blocks=1",
];

pub struct Arena {
    keeper: Child,
    bystander: Child,
    pub dir: TempDir,
}

impl Arena {
    pub fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut keeper = Command::new("unshare")
            .args(["--mount", "sh", "-c", KEEPER, "keeper"])
            .arg(dir.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(keeper.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        let mut arena = Self { bystander: Command::new("true").spawn().unwrap(), keeper, dir };
        arena.bystander.wait().unwrap();
        let mut sleep = arena.inside("ip");
        sleep.args(["netns", "exec", "kept", "sleep", "1000"]);
        arena.bystander = sleep.spawn().unwrap();
        arena
    }

    /// A command inside.
    pub fn inside(&self, program: &str) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["--mount", "--target", &self.keeper.id().to_string(), program]);
        command
    }

    /// The program inside, as somebody without any privilege.
    pub fn nobody(&self, words: &[&str]) -> Said {
        let (dir, program) = (self.dir.path(), self.dir.path().join("rxpath"));
        crate::executable::copy(env!("CARGO_BIN_EXE_rxpath"), &program);
        for path in [dir, program.as_path()] {
            std::fs::set_permissions(path, Permissions::from_mode(0o755)).unwrap();
        }
        let mut command = self.inside("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--bounding-set=-all"]);
        said(command.arg(&program).args(words))
    }

    /// `rxpath run` of two variants into the directory `out` of the arena.
    pub fn run(&self, out: &str, sets: &[&str]) -> Run {
        self.run_with(out, &[], sets)
    }

    /// The same with further words on its command line.
    pub fn run_with(&self, out: &str, words: &[&str], sets: &[&str]) -> Run {
        let mut command = self.inside(env!("CARGO_BIN_EXE_rxpath"));
        let out = self.dir.path().join(out);
        command.args(["run", "udp-pinning", "--keep-noisy"]).args(words).arg("--out").arg(&out);
        for set in QUICK.iter().chain(["trials.aa=false", "trials.paired=false"].iter()).chain(sets)
        {
            command.args(["--set", set]);
        }
        Run::start(command, self.root().join(out.strip_prefix("/").unwrap()))
    }

    /// `rxpath capacity` into the directory `out` of the arena.
    pub fn capacity(&self, out: &str, words: &[&str], sets: &[&str]) -> Run {
        let mut command = self.inside(env!("CARGO_BIN_EXE_rxpath"));
        let out = self.dir.path().join(out);
        command.arg("capacity").args(words).arg("--out").arg(&out);
        command.args(sets.iter().flat_map(|set| ["--set", set]));
        Run::start(command, self.root().join(out.strip_prefix("/").unwrap()))
    }

    /// The file system as the runs see it.
    fn root(&self) -> PathBuf {
        format!("/proc/{}/root", self.keeper.id()).into()
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.root().join(self.dir.path().strip_prefix("/").unwrap()).join(name)
    }

    /// What is there beside the bystanders: names, records, mounts, processes.
    pub fn traces(&self) -> Vec<String> {
        let mut found = Vec::new();
        for dir in ["run/netns", "run/rxpath"] {
            let entries = std::fs::read_dir(self.root().join(dir)).into_iter().flatten();
            let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
            let ours = names.filter(|name| !["kept", "rxp-kept"].contains(&name.as_str()));
            found.extend(ours.map(|name| format!("{dir}/{name}")));
        }
        let mounts = std::fs::read_to_string(format!("/proc/{}/mountinfo", self.keeper.id()));
        let mounts = mounts.unwrap();
        let kept = |line: &&str| line.contains("/rxp-") && !line.contains("/rxp-kept ");
        found.extend(mounts.lines().filter(kept).map(str::to_owned));
        found.extend(self.processes());
        found
    }

    /// Every living process in the arena's mount namespace, but the keeper, and the bystander.
    fn processes(&self) -> Vec<String> {
        let place = |pid: &str| std::fs::read_link(format!("/proc/{pid}/ns/mnt")).ok();
        let own = place(&self.keeper.id().to_string());
        let known = [self.keeper.id().to_string(), self.bystander.id().to_string()];
        let entries = std::fs::read_dir("/proc").unwrap();
        let pids = entries.filter_map(|entry| entry.unwrap().file_name().into_string().ok());
        pids.filter(|pid| pid.bytes().all(|b| b.is_ascii_digit()) && !known.contains(pid))
            .filter(|pid| place(pid).is_some_and(|place| Some(place) == own))
            .map(|pid| {
                let command = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
                format!("process {pid} {}", String::from_utf8_lossy(&command).replace('\0', " "))
            })
            .collect()
    }

    /// Nothing of a run is left, and nothing else was touched. Processes take a moment to be gone.
    pub fn assert_clean(&self, when: &str) {
        until(&format!("no process of a run {when}: {:?}", self.processes()), || {
            self.processes().is_empty()
        });
        assert_eq!(self.traces(), Vec::<String>::new(), "{when}");
        self.assert_bystanders(when);
    }

    pub fn assert_bystanders(&self, when: &str) {
        for name in ["kept", "rxp-kept"] {
            assert!(self.root().join("run/netns").join(name).exists(), "{name} {when}");
        }
        let links = self.inside("ip").args(["-n", "kept", "link"]).output().unwrap();
        let links = String::from_utf8(links.stdout).unwrap();
        assert!(links.contains("kept0@kept1"), "{when}: {links}");
        let alive = Path::new("/proc").join(self.bystander.id().to_string()).join("exe").exists();
        assert!(alive, "the bystander's process {when}");
    }

    pub fn cleanup(&self) -> String {
        said(self.inside(env!("CARGO_BIN_EXE_rxpath")).arg("cleanup")).ok()
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        let _ = self.bystander.kill();
        let _ = self.bystander.wait();
        // The namespaces are mounted in the keeper's mount namespace only: they go with it.
        if let Some(stdin) = &mut self.keeper.stdin {
            let _ = stdin.write_all(b"end\n");
        }
        let _ = self.keeper.wait();
    }
}

/// A started run.
pub struct Run {
    pub child: Child,
    out: PathBuf,
}

impl Run {
    pub fn start(mut command: Command, out: PathBuf) -> Self {
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        Self { child, out }
    }

    /// The run directory that is newest, once there is one.
    pub fn directory(&self) -> Option<PathBuf> {
        let entries = std::fs::read_dir(&self.out).ok()?;
        let dirs = entries.map(|entry| entry.unwrap().path()).filter(|path| path.is_dir());
        dirs.max_by_key(|path| path.metadata().unwrap().modified().unwrap())
    }

    /// Waits for an event that holds this text.
    pub fn wait_event(&mut self, text: &str) {
        assert!(self.saw_event(text), "ended before {text}");
    }

    /// Waits for an event that holds this text, or for the end of the run.
    pub fn saw_event(&mut self, text: &str) -> bool {
        let mut seen = false;
        // A search or a run makes some trials before.
        until_within(Duration::from_secs(60), &format!("an event with {text}"), || {
            let ended = self.child.try_wait().unwrap().is_some();
            seen = self.directory().is_some_and(|directory| {
                let events = std::fs::read_to_string(directory.join("events.jsonl"));
                events.is_ok_and(|events| events.contains(text))
            });
            seen || ended
        });
        seen
    }

    /// The next line of what it says.
    pub fn said_line(&mut self) -> String {
        let stderr = self.child.stderr.as_mut().unwrap();
        let (mut line, mut byte) = (Vec::new(), [0]);
        // One at a time: the rest is read by `wait`.
        while byte != *b"\n" {
            stderr.read_exact(&mut byte).unwrap();
            line.push(byte[0]);
        }
        String::from_utf8(line).unwrap()
    }

    pub fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.id() as i32), signal).unwrap();
    }

    /// Its workload of this kind, `serve` or `load`.
    pub fn workload(&self, verb: &str) -> Pid {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.child.id())).unwrap();
        let children = tasks
            .filter_map(|task| std::fs::read_to_string(task.unwrap().path().join("children")).ok());
        let children: Vec<String> = children
            .flat_map(|text| text.split(' ').map(str::to_owned).collect::<Vec<_>>())
            .collect();
        let is = |pid: &&String| {
            std::fs::read_to_string(format!("/proc/{pid}/cmdline"))
                .is_ok_and(|line| line.contains(&format!("\0{verb}\0")))
        };
        Pid::from_raw(children.iter().find(is).expect("a workload").parse().unwrap())
    }

    pub fn wait(self) -> Said {
        self.child.wait_with_output().unwrap().into()
    }
}
