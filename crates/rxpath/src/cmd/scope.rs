//! Which network namespace is watched, and whose sockets: `--netns`, `--pid`, `--cgroup`.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;

use rxpath_bpf::filter::{Cgroup, Filter};
use rxpath_host::lab::netns;
use rxpath_host::read::only::Only;
use rxpath_host::read::process::ProcessId;
use rxpath_host::{HostError, Root};

use crate::cmd::prelude::*;

/// Which network namespace, and whose sockets.
#[derive(Clone, Debug, Default, clap::Args, Serialize)]
pub struct ScopeArgs {
    /// Only this network namespace: a name of `ip netns`, a path, or a process id
    #[arg(long, value_name = "NAME")]
    pub netns: Option<String>,
    /// Only sockets that this process has open (steal: its tasks); counters that cannot be limited to a process stay
    /// whole
    #[arg(long, value_name = "PID")]
    pub pid: Option<u32>,
    /// Only sockets of this control group (version 2) and of those below it (steal: their tasks)
    #[arg(long, value_name = "PATH")]
    pub cgroup: Option<PathBuf>,
}

/// The namespace of this process after it entered, and the sockets to include.
#[derive(Debug, Default)]
pub struct Entered {
    /// Which sockets to include.
    pub only: Option<Only>,
    /// Whether the process changed its network namespace.
    pub has_moved: bool,
}

impl ScopeArgs {
    /// Whether any of them was given.
    pub fn is_given(&self) -> bool {
        self.netns.is_some() || self.pid.is_some() || self.cgroup.is_some()
    }

    /// Limits a probe's filter to them.
    pub fn narrow(&self, filter: &mut Filter) -> Result<(), Failure> {
        if let Some(name) = &self.netns {
            let path = namespace(name);
            filter.netns = inode(name, &path)?;
            filter.netns_path = Some(path);
        }
        if let Some(pid) = self.pid {
            check_process(pid)?;
            filter.process = Some(pid);
        }
        if let Some(cgroup) = &self.cgroup {
            let found = Cgroup::find(&Root::host(), cgroup);
            filter.cgroup = Some(found.or_usage(|| format!("--cgroup {}", cgroup.display()))?);
        }
        Ok(())
    }

    /// Moves this process into the named namespace, or into that of the process or control group. Must be called before
    /// other threads exist.
    pub fn enter(&self) -> Result<Entered, Failure> {
        let only = self.only()?;
        let path = match (&self.netns, self.pid, &self.cgroup) {
            (Some(name), ..) => {
                let path = namespace(name);
                inode(name, &path)?;
                path
            }
            (None, Some(pid), _) => namespace(&pid.to_string()),
            (None, None, Some(cgroup)) => {
                of_processes(cgroup, &only.iter().flat_map(Only::processes).collect())?
            }
            (None, None, None) => return Ok(Entered::default()),
        };
        let has_moved = !is_own(&path);
        if has_moved {
            netns::move_into(&path).map_err(|error| {
                Failure::new(Exit::Cannot, error)
                    .hint("only root can enter another network namespace: run as root")
            })?;
        }
        Ok(Entered { only, has_moved })
    }

    /// Which sockets to include.
    pub fn only(&self) -> Result<Option<Only>, Failure> {
        match (self.pid, &self.cgroup) {
            (Some(_), Some(_)) => Err(Failure::usage("--pid and --cgroup: use only one of them")),
            (Some(pid), None) => {
                check_process(pid)?;
                Ok(Some(Only::Process(pid as i32)))
            }
            (None, Some(cgroup)) => {
                let found = Cgroup::directory(&Root::host(), cgroup);
                let found = found.or_usage(|| format!("--cgroup {}", cgroup.display()))?;
                Ok(Some(Only::Cgroup(found)))
            }
            (None, None) => Ok(None),
        }
    }

    /// Warns that `whole` still covers everything although sockets were limited; only `narrowed` is of the processes.
    pub fn warning(&self, whole: &str, narrowed: &str) -> Option<Warning> {
        let of = match (self.pid, &self.cgroup) {
            (Some(pid), _) => format!("process {pid}"),
            (None, Some(cgroup)) => format!("control group {}", cgroup.display()),
            (None, None) => return None,
        };
        Some(Warning::new("all-processes", format!("{whole}; only {narrowed} are of {of}")))
    }
}

/// Processes or groups asked for that went away during the measurement.
pub fn gone(filter: &Filter, process: Option<ProcessId>) -> Vec<Warning> {
    let mut gone = Vec::new();
    if let Some(process) = process.filter(|process| !process.is_alive()) {
        let pid = process.pid;
        let text =
            format!("process {pid} ended in the window: only what it had open before is counted");
        gone.push(Warning::new("process-gone", text));
    }
    let inode = |path: &PathBuf| std::fs::metadata(path).ok().map(|about| about.ino() as u32);
    if let Some(path) = &filter.netns_path
        && inode(path) != Some(filter.netns)
    {
        let text = format!("{} was removed or replaced after the window began", path.display());
        gone.push(Warning::new("namespace-gone", text));
    }
    gone
}

fn check_process(pid: u32) -> Result<(), Failure> {
    if Path::new(&format!("/proc/{pid}/fd")).exists() {
        return Ok(());
    }
    Err(Failure::usage(format!("--pid {pid}: there is no such process")))
}

/// The one namespace of these processes.
fn of_processes(cgroup: &Path, pids: &BTreeSet<i32>) -> Result<PathBuf, Failure> {
    let path = |pid: &i32| PathBuf::from(format!("/proc/{pid}/ns/net"));
    let seen = pids.iter().filter_map(|pid| Some((number(&path(pid))?, path(pid))));
    let mut found: Vec<((u64, u64), PathBuf)> = seen.collect();
    found.sort();
    found.dedup_by_key(|(number, _)| *number);
    match found.as_slice() {
        [(_, path)] => Ok(path.clone()),
        [] => Err(Failure::usage(format!(
            "--cgroup {}: no process in it has a visible network namespace",
            cgroup.display()
        ))),
        many => Err(Failure::usage(format!(
            "--cgroup {}: its processes are in {} network namespaces",
            cgroup.display(),
            many.len()
        ))
        .hint("name one of them with --netns")),
    }
}

/// What identifies a namespace.
fn number(path: &Path) -> Option<(u64, u64)> {
    std::fs::metadata(path).ok().map(|about| (about.dev(), about.ino()))
}

fn is_own(path: &Path) -> bool {
    let own = number(Path::new("/proc/thread-self/ns/net"));
    own.is_some() && own == number(path)
}

/// The file of the network namespace with this name, path or process.
fn namespace(name: &str) -> PathBuf {
    match name.parse::<u32>() {
        Ok(pid) => PathBuf::from(format!("/proc/{pid}/ns/net")),
        Err(_) if name.contains('/') => PathBuf::from(name),
        Err(_) => Path::new(netns::NETNS_DIR).join(name),
    }
}

/// Its inode.
fn inode(name: &str, path: &Path) -> Result<u32, Failure> {
    let named = || format!("--netns {name}: {} is not a network namespace", path.display());
    let about = std::fs::metadata(path).or_usage(named)?;
    let entered = path.to_owned();
    // On a thread of its own: this thread stays in its namespace.
    let tried = std::thread::spawn(move || netns::enter(&entered)).join();
    if let Ok(Err(HostError::Kernel { errno: nix::libc::EINVAL, .. })) = tried {
        return Err(Failure::usage(named())
            .hint("use a name below /run/netns, a file such as /proc/PID/ns/net, or a pid"));
    }
    Ok(about.ino() as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_has_a_name_a_path_or_a_process() {
        assert_eq!(namespace("blue"), Path::new("/run/netns/blue"));
        assert_eq!(namespace("/tmp/ns"), Path::new("/tmp/ns"));
        assert_eq!(namespace("7"), Path::new("/proc/7/ns/net"));
    }

    /// Works without root too: there is no namespace to enter.
    #[test]
    fn the_own_process_is_watched_where_it_is() {
        let own = std::process::id();
        let scope = ScopeArgs { pid: Some(own), ..ScopeArgs::default() };
        let entered = scope.enter().unwrap();
        assert_eq!(entered.only, Some(Only::Process(own as i32)));
        assert!(!entered.has_moved);
        let warning = scope.warning("rates are those of all", "the sockets").unwrap();
        let text = format!("rates are those of all; only the sockets are of process {own}");
        assert!(warning.to_string().contains(&text), "{warning}");
    }
}
