//! Background load, on purpose: busy loops or copies of a user's command, on chosen CPUs, with a nice value and a
//! scheduler class. And the question whether nice can act at all between it and the reader.
//!
//! Nice weighs threads inside one scheduling group only. Sessions are such groups while autogrouping is on (sched(7)),
//! and so are cgroups of the CPU controller. The workloads run in this program's session, and so do busy loops; a
//! command that leaves it gets, where that is possible, a nice value for its whole group instead.

use std::fs;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use nix::sys::signal::Signal;
use rxpath_core::{PathSide, SchedClass, Warning};
use rxpath_host::Root;
use rxpath_host::lab::netns;
use rxpath_host::lab::owner::{self, Owner};
use rxpath_host::read::process::ProcessId;
use rxpath_host::read::procfs::task;
use rxpath_host::read::thread;
use rxpath_host::write::sched;

use crate::endpoint::strays;
use crate::error::LabError;
use crate::scenario::spec::Background as Spec;
use crate::testbed::seat::Seat;
use crate::trial::unreaped::{Life, life, signal_group};

/// What runs alongside a trial, wherever that is; dropping it ends all of it.
pub trait Alongside {
    /// Processes of the commands, those that they started among them, each with the host on which it runs.
    fn pids(&self) -> Vec<(Seat, i32)>;

    /// What is to be said about it: that some of it is not running, and whether nice acts between it and the reader.
    /// `readers` are the processes of the receiving programs.
    ///
    /// # Errors
    /// Of a host that no longer answers.
    fn warnings(
        &mut self,
        spec: &Spec,
        readers: &[i32],
        reader_nice: i32,
    ) -> Result<Vec<Warning>, LabError>;
}

/// What runs alongside a trial on this host.
#[derive(Default)]
pub struct Background {
    stop: Arc<AtomicBool>,
    loops: Vec<JoinHandle<Result<(), LabError>>>,
    commands: Vec<Child>,
}

impl Background {
    /// Starts what the scenario asks for, on record of `owner` where there is one.
    pub fn start(spec: &Spec, owner: Option<&Owner>) -> Result<Self, LabError> {
        thread::check_cpus(&spec.cpus)?;
        let mut started = Self::default();
        let mut turns = spec.cpus.as_slice().iter().copied().cycle();
        for _ in 0..spec.hogs {
            let cpu = turns.next();
            if spec.command.is_empty() {
                started.spin(cpu, spec);
            } else {
                started.command(cpu, spec, owner)?;
            }
        }
        Ok(started)
    }

    fn spin(&mut self, cpu: Option<u32>, spec: &Spec) {
        let (stop, nice, class) = (Arc::clone(&self.stop), spec.nice, spec.sched);
        self.loops.push(std::thread::spawn(move || {
            let tid = thread::current_tid();
            if let Some(cpu) = cpu {
                sched::pin(cpu)?;
            }
            if class != SchedClass::Other {
                sched::set_class(tid, class)?;
            }
            if nice != 0 {
                sched::set_nice(tid, nice)?;
            }
            while !stop.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
            Ok(())
        }));
    }

    fn command(
        &mut self,
        cpu: Option<u32>,
        spec: &Spec,
        owner: Option<&Owner>,
    ) -> Result<(), LabError> {
        // coreutils and util-linux are on every distribution; each replaces itself by the next.
        let mut words = vec!["nice".to_owned(), "-n".into(), spec.nice.to_string()];
        if spec.sched != SchedClass::Other {
            let (option, priority) = match spec.sched {
                SchedClass::Other => ("--other", 0),
                SchedClass::Batch => ("--batch", 0),
                SchedClass::Idle => ("--idle", 0),
                SchedClass::Fifo(priority) => ("--fifo", priority),
                SchedClass::RoundRobin(priority) => ("--rr", priority),
            };
            words.extend(["chrt".to_owned(), option.into(), priority.to_string()]);
        }
        if let Some(cpu) = cpu {
            words.extend(["taskset".to_owned(), "-c".into(), cpu.to_string()]);
        }
        words.extend(spec.command.iter().cloned());
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).process_group(0);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        strays::mark(&mut command);
        netns::die_with_parent(&mut command);
        let child = command
            .spawn()
            .map_err(|source| LabError::Start { path: words[0].clone().into(), source })?;
        let pid = child.id() as i32;
        self.commands.push(child);
        if let (Some(owner), Ok(process)) = (owner, ProcessId::of(pid)) {
            owner.record(&owner::Thing::Process { process })?;
        }
        Ok(())
    }

    fn family(&self) -> Vec<i32> {
        let root = Root::host();
        let family = |child: &Child| task::family(&root, child.id() as i32);
        self.commands.iter().flat_map(family).collect()
    }

    /// The same, told from whatever has their pids later.
    fn processes(&self) -> Vec<ProcessId> {
        let ids: Vec<ProcessId> =
            self.family().into_iter().filter_map(|pid| ProcessId::of(pid).ok()).collect();
        // A process that is in the group after its start time was read was in it at that read.
        let still = self.family();
        ids.into_iter().filter(|id| still.contains(&id.pid)).collect()
    }

    fn ended(&mut self) -> Option<Warning> {
        let commands =
            self.commands.iter().filter(|child| life(child.id()) != Life::Running).count();
        let loops = self.loops.iter().filter(|thread| thread.is_finished()).count();
        (commands + loops > 0).then(|| {
            let text = format!("{} of the background's programs ended before the trial did", commands + loops);
            Warning::new("background-ended", text)
                .because("a command came to its end, or could not be pinned or given its nice value or class")
                .cure("use a command that goes on until it is ended")
        })
    }
}

impl Alongside for Background {
    fn pids(&self) -> Vec<(Seat, i32)> {
        self.family().into_iter().map(|pid| (PathSide::Rx.into(), pid)).collect()
    }

    fn warnings(
        &mut self,
        spec: &Spec,
        readers: &[i32],
        reader_nice: i32,
    ) -> Result<Vec<Warning>, LabError> {
        let mut all: Vec<Warning> = self.ended().into_iter().collect();
        let Some(reader) = readers.first().copied() else { return Ok(all) };
        if spec.hogs == 0 || reader_nice == spec.nice {
            return Ok(all);
        }
        let pids = self.family();
        let first = pids.last().copied().unwrap_or(std::process::id() as i32);
        all.extend(
            reach(&Groups::of(reader), &Groups::of(first), (reader_nice, spec.nice)).settle(first),
        );
        Ok(all)
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let processes = self.processes();
        for child in &mut self.commands {
            signal_group(child.id(), Signal::SIGKILL);
            // An error means that it is gone, which is what was wanted.
            let _ = child.kill();
        }
        for process in processes {
            // Those that left the process group.
            let _ = process.kill();
        }
        for mut child in self.commands.drain(..) {
            let _ = child.wait();
        }
        for thread in self.loops.drain(..) {
            let _ = thread.join();
        }
    }
}

/// The scheduling groups that a process is in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Groups {
    /// `/proc/PID/autogroup` without its nice value, while autogrouping is on.
    autogroup: Option<String>,
    /// The cgroup of the CPU controller.
    cgroup: Option<String>,
}

impl Groups {
    fn of(pid: i32) -> Self {
        let root = Root::host();
        let enabled =
            root.number::<u32>("/proc/sys/kernel/sched_autogroup_enabled").is_ok_and(|on| on == 1);
        let autogroup = root.text(&format!("/proc/{pid}/autogroup")).ok().filter(|_| enabled);
        let cgroup = root.text(&format!("/proc/{pid}/cgroup")).ok();
        Self {
            autogroup: autogroup.and_then(|t| t.split_whitespace().next().map(str::to_owned)),
            cgroup: cgroup.and_then(|text| cpu_cgroup(&text)),
        }
    }
}

/// The path in the hierarchy of the CPU controller: version 1's, or version 2's where that has it.
fn cpu_cgroup(text: &str) -> Option<String> {
    let mut unified = None;
    for line in text.lines() {
        let mut parts = line.splitn(3, ':');
        let (number, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
        if controllers.split(',').any(|controller| controller == "cpu") {
            return Some(path.to_owned());
        }
        if number == "0" {
            unified = Some(path.to_owned());
        }
    }
    unified
}

/// Whether the difference of two nice values acts.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Reach {
    /// One group: it acts.
    Same,
    /// Two autogroups: it acts when the background's group gets this nice value.
    Autogroups { group_nice: i32 },
    /// Two cgroups: it does not act.
    Cgroups(String),
}

fn reach(reader: &Groups, background: &Groups, (reader_nice, nice): (i32, i32)) -> Reach {
    if reader.cgroup != background.cgroup {
        let path = |groups: &Groups| groups.cgroup.clone().unwrap_or_else(|| "none".into());
        return Reach::Cgroups(format!("{} and {}", path(reader), path(background)));
    }
    if reader.autogroup == background.autogroup {
        return Reach::Same;
    }
    // Only the difference of nice values counts: each step is a weight of 1.25 (sched_prio_to_weight).
    Reach::Autogroups { group_nice: (nice - reader_nice).clamp(-20, 19) }
}

impl Reach {
    /// Makes it act where that is possible, and says what was done or what could not be.
    fn settle(self, pid: i32) -> Option<Warning> {
        match self {
            Self::Same => None,
            Self::Autogroups { group_nice } => Some(across_autogroups(pid, group_nice)),
            Self::Cgroups(paths) => {
                let why = format!("they are in different cgroups of the CPU controller: {paths}");
                Some(cannot_act(why).cure("run both in one cgroup, or set cpu.weight of the two"))
            }
        }
    }
}

fn cannot_act(why: String) -> Warning {
    let text = "nice does not act between the reader and the background";
    Warning::new("nice-cannot-act", text).because(why)
}

fn across_autogroups(pid: i32, group_nice: i32) -> Warning {
    match fs::write(format!("/proc/{pid}/autogroup"), group_nice.to_string()) {
        Ok(()) => Warning::new(
            "nice-across-groups",
            format!(
                "the background runs in an autogroup of its own, which was given nice {group_nice}"
            ),
        )
        .because("nice acts inside an autogroup only; between two it is the groups' that count"),
        Err(error) => cannot_act(format!(
            "they are in different autogroups, and /proc/{pid}/autogroup cannot be written: {error}"
        ))
        .cure("run both in one session, or set kernel.sched_autogroup_enabled = 0"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn groups(autogroup: &str, cgroup: &str) -> Groups {
        Groups { autogroup: Some(autogroup.into()), cgroup: Some(cgroup.into()) }
    }

    #[test]
    fn nice_acts_inside_one_group_only() {
        let one = groups("/autogroup-1", "/");
        assert_eq!(reach(&one, &one, (-10, 0)), Reach::Same);
        let other = groups("/autogroup-2", "/");
        assert_eq!(reach(&one, &other, (-10, 0)), Reach::Autogroups { group_nice: 10 });
        assert_eq!(reach(&one, &other, (-15, 10)), Reach::Autogroups { group_nice: 19 });
        let apart = reach(&one, &groups("/autogroup-1", "/user"), (-10, 0)).settle(0).unwrap();
        assert_eq!(apart.code, "nice-cannot-act");
        assert!(apart.to_string().contains("/ and /user"), "{apart}");
    }

    #[test]
    fn a_group_that_cannot_be_set_is_said() {
        let warning = Reach::Autogroups { group_nice: 5 }.settle(i32::MAX).unwrap();
        assert_eq!(warning.code, "nice-cannot-act");
    }

    #[test]
    fn the_cpu_controller_of_either_version_is_found() {
        assert_eq!(cpu_cgroup("4:memory:/m\n1:cpu,cpuacct:/a\n0::/u\n").as_deref(), Some("/a"));
        assert_eq!(cpu_cgroup("4:memory:/m\n0::/u:x\n").as_deref(), Some("/u:x"));
        assert_eq!(cpu_cgroup("garbage"), None);
    }

    #[test]
    fn those_that_left_the_process_group_end_too() {
        let command = ["sh", "-c", "setsid sleep 1000 & wait"].map(String::from).to_vec();
        let spec = Spec { hogs: 1, command, ..Spec::default() };
        let background = Background::start(&spec, None).unwrap();
        while background.family().len() < 2 {
            std::thread::yield_now();
        }
        let processes = background.processes();
        assert!(processes.len() >= 2, "{processes:?}");
        drop(background);
        while processes.iter().any(ProcessId::is_alive) {
            std::thread::yield_now();
        }
    }

    #[test]
    fn loops_end_with_their_guard_and_a_command_that_ends_is_said() {
        let mut spec = Spec { hogs: 2, ..Spec::default() };
        drop(Background::start(&spec, None).unwrap());
        spec.command = vec!["true".into()];
        let mut background = Background::start(&spec, None).unwrap();
        while background.commands.iter().any(|child| life(child.id()) == Life::Running) {
            std::thread::yield_now();
        }
        let said = background.warnings(&spec, &[std::process::id() as i32], 0).unwrap();
        assert_eq!(said[0].code, "background-ended");
        assert!(said[0].to_string().starts_with("2 of"), "{}", said[0]);
    }
}
