//! A process that outlives the terminal and the program that started it.

use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command};

use nix::unistd::geteuid;

use crate::read::cgroup::{GroupKind, GroupName};
use crate::read::installed;
use crate::{HostError, Root};

/// The program that makes a unit of a process.
const SYSTEMD_RUN: &str = "systemd-run";

/// Starts a process in a session of its own: no terminal's end and no Ctrl-C reaches it.
///
/// Its standard streams are the caller's to choose. **Caveat** a service manager that ends all processes of a login
/// (`KillUserProcesses=yes` in logind.conf) ends this one too, unless its command is one of [`beyond_login`].
pub fn spawn(mut command: Command) -> Result<Child, HostError> {
    let leave = || nix::unistd::setsid().map(drop).map_err(io::Error::from);
    // SAFETY: between fork and exec the closure makes one system call, which is async-signal-safe,
    // and allocates nothing.
    unsafe { command.pre_exec(leave) };
    let program = command.get_program().to_string_lossy().into_owned();
    command.spawn().map_err(|e| HostError::os(format!("start {program}"), &e))
}

/// A command that runs `program` as the unit `unit` of the system, which does not end with this login. The process stays a
/// child of this one, with its namespaces and its files: a service would have those of systemd.
///
/// `None` without need (this process is of no login), and where it cannot be done: without root, systemd or `systemd-run`.
pub fn beyond_login(root: &Root, program: &Path, unit: &str) -> Option<Command> {
    // sd_booted(3).
    let is_possible =
        geteuid().is_root() && root.exists("/run/systemd/system") && installed::found(SYSTEMD_RUN);
    (is_possible && is_of_login(root)).then(|| scope(program, unit))
}

/// Whether this process is in the slice of a user, with its sessions and the services of its manager.
fn is_of_login(root: &Root) -> bool {
    let groups = root.text("/proc/self/cgroup").unwrap_or_default();
    let mut paths = groups.lines().filter_map(|line| line.splitn(3, ':').nth(2));
    paths.any(|path| GroupName::of(path).is_some_and(|group| group.kind == GroupKind::User))
}

/// **Source** systemd-run(1), `--scope`.
fn scope(program: &Path, unit: &str) -> Command {
    let mut command = Command::new(SYSTEMD_RUN);
    command.args(["--scope", "--collect", "--quiet", &format!("--unit={unit}"), "--"]);
    command.arg(program);
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_detached_process_is_its_own_session() {
        let mut command = Command::new("sleep");
        command.arg("60");
        let mut child = spawn(command).unwrap();
        let pid = nix::unistd::Pid::from_raw(child.id() as i32);
        assert_eq!(nix::unistd::getsid(Some(pid)), Ok(pid));
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn a_process_of_a_login_is_known_by_its_control_group() {
        let is_of_login = |groups: &str| {
            let dir = tempfile::tempdir().unwrap();
            std::fs::create_dir_all(dir.path().join("proc/self")).unwrap();
            std::fs::write(dir.path().join("proc/self/cgroup"), groups).unwrap();
            is_of_login(&Root::tree(dir.path()).unwrap())
        };
        assert!(is_of_login("0::/user.slice/user-1000.slice/session-3.scope\n"));
        assert!(is_of_login(
            "0::/user.slice/user-1000.slice/user@1000.service/app.slice/t.scope\n"
        ));
        let both = "4:cpu:/\n1:name=systemd:/user.slice/user-0.slice/session-c1.scope\n0::/\n";
        assert!(is_of_login(both));
        assert!(!is_of_login("0::/system.slice/sshd.service\n"));
        assert!(!is_of_login("0::/\n"), "a container");
        assert!(!is_of_login(""));
    }

    #[test]
    fn a_host_without_systemd_has_nothing_beyond_a_login() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("proc/self")).unwrap();
        let group = "0::/user.slice/user-0.slice/session-1.scope\n";
        std::fs::write(dir.path().join("proc/self/cgroup"), group).unwrap();
        let root = Root::tree(dir.path()).unwrap();
        assert!(is_of_login(&root));
        assert!(beyond_login(&root, Path::new("/usr/bin/rxpath"), "w").is_none());
    }
}
