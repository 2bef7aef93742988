//! The accounts of the hosts: those of this machine, and an ordinary user who may become root by sudo.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::Path;

use super::Site;

/// The script.
pub(super) const ACCOUNTS: &str = "accounts";
/// The user's name.
pub const USER: &str = "rxplain";
/// The name of both hosts, which nothing of a run may keep.
pub const HOST_NAME: &str = "granite01.example";
/// The user's and the group's number.
const ID: u32 = 41_234;
/// A network namespace that the user can enter by sudo only. It is the host's own one.
pub const OWN_NETNS: &str = "own";

/// The user's line in `passwd`.
fn account(home: &str, shell: &str) -> String {
    format!("{USER}:x:{ID}:{ID}::{home}:{shell}")
}

impl Site {
    /// Writes the files of the accounts, and the script that puts them in place on a host before it runs its words.
    pub(super) fn write_accounts(&self) {
        let home = self.path("home");
        fs::create_dir(&home).unwrap();
        chown(&home, Some(ID), Some(ID)).unwrap();
        // The user runs copies that lie in it, and sshd reads the key there as the user.
        fs::set_permissions(self.dir.path(), Permissions::from_mode(0o755)).unwrap();
        let mut lines = String::new();
        for (file, line) in [
            ("passwd", account(&home, "/bin/sh")),
            ("group", format!("{USER}:x:{ID}:")),
            // No password, which is not the same as a locked account.
            ("shadow", format!("{USER}:*:20000:0:99999:7:::")),
        ] {
            let all = fs::read_to_string(format!("/etc/{file}")).unwrap();
            let path = self.write(file, &format!("{}\n{line}\n", all.trim_end()));
            lines += &format!("mount --bind {path} /etc/{file}\n");
        }
        // sudo looks for the host's name, and nobody answers for it.
        let hosts = self.write("hosts", &format!("127.0.0.1 localhost {HOST_NAME}\n"));
        lines += &format!("[ ! -e /etc/hosts ] || mount --bind {hosts} /etc/hosts\n");
        lines += &format!("echo {HOST_NAME} >/proc/sys/kernel/hostname\n");
        let sudoers = self.sudoers(&format!("{USER} ALL=(ALL) NOPASSWD: ALL"));
        lines += &format!("[ ! -e /etc/sudoers ] || mount --bind {sudoers} /etc/sudoers\n");
        lines += &self.faster_sum();
        let netns = format!("/run/netns/{OWN_NETNS}");
        lines += &format!("mkdir /run/netns\ntouch {netns}\n");
        lines += &format!("mount --bind /proc/self/ns/net {netns}\nexec \"$@\"\n");
        self.write(ACCOUNTS, &lines);
    }

    /// Gives the user another login shell on all hosts: this script.
    pub fn login_by(&self, script: &str) {
        let (home, shell) = (self.path("home"), self.path("shell"));
        crate::executable::write(Path::new(&shell), format!("#!/bin/sh\n{script}\n"));
        let all = fs::read_to_string(self.path("passwd")).unwrap();
        let [before, after] = ["/bin/sh", &shell].map(|path| account(&home, path));
        self.write("passwd", &all.replace(&before, &after));
    }

    /// Writes the rules of sudo on all hosts: root's, and this one.
    pub fn sudoers(&self, rule: &str) -> String {
        // As in Debian's own file: commands get a terminal of their own.
        let text = format!("Defaults use_pty\nroot ALL=(ALL:ALL) ALL\n{rule}\n");
        let path = self.write("sudoers", &text);
        fs::set_permissions(&path, Permissions::from_mode(0o440)).unwrap();
        path
    }

    /// The inventory with logins of the ordinary user, and one more line for each host. The user stores the program.
    pub fn of_user(&self, [gen1, sut]: [&str; 2]) -> String {
        let mut hosts = self.read_inventory();
        for (alias, more) in [("gen1", gen1), ("sut", sut)] {
            let cache = format!("{}-{alias}", self.path("cache"));
            fs::remove_dir_all(&cache).unwrap();
            fs::create_dir(&cache).unwrap();
            chown(&cache, Some(ID), Some(ID)).unwrap();
            let login = format!("ssh = \"{USER}@{alias}.lab\"\n{more}");
            hosts = hosts.replace(&format!("ssh = \"{alias}.lab\""), &login);
        }
        self.write("user.toml", &hosts)
    }

    /// Whether the processes on a host whose command line has these words are root's, each.
    pub fn are_of_root(&self, alias: &str, words: &str) -> Vec<bool> {
        let pids = self.pids(alias, words).into_iter();
        pids.filter_map(|pid| fs::metadata(format!("/proc/{pid}")).ok())
            .map(|about| about.uid() == 0)
            .collect()
    }
}
