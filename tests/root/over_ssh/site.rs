//! A coordinator and two hosts: three network namespaces, real sshd in two of them, the sender's clock a day ahead.

pub mod accounts;
mod logins;
mod network;
mod running;

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rxpath_host::lab::netns::Namespace;
use rxpath_remote::ship::hash_of;
use tempfile::TempDir;

use self::accounts::ACCOUNTS;
pub use self::running::Running;
use super::{SOON, until};
use crate::bed::Bed;
use crate::handlers::catches;
use crate::program::Said;

/// How far the clock of `gen1` is ahead. **Unit** s.
pub const AHEAD_S: u32 = 86_400;

/// Where logins have their temporary files: other tests have theirs.
const TMP: &str = "tmp";
const SSHD: &str = "/usr/sbin/sshd";
/// What a host has of its own.
const HOST_SH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tools/host.sh");

pub struct Site {
    bed: Bed,
    coordinator: Namespace,
    gen1: Namespace,
    sut: Namespace,
    /// A second receiver, once there is one.
    sut2: Option<Namespace>,
    /// A second sender, once there is one.
    gen2: Option<Namespace>,
    daemons: Vec<Child>,
    dir: TempDir,
    program: PathBuf,
    /// Path of the inventory.
    pub inventory: String,
}

fn tool(program: &str, words: &[&str]) {
    assert!(Command::new(program).args(words).status().unwrap().success(), "{program} {words:?}");
}

impl Site {
    /// The site; or what is missing on this machine.
    pub fn new(bed: Bed) -> Result<Self, String> {
        for program in [SSHD, "/usr/bin/ssh", "/usr/bin/ssh-keygen", "/usr/bin/unshare"] {
            if !Path::new(program).exists() {
                return Err(format!("there is no {program}"));
            }
        }
        let made = |role| Namespace::create(&bed.owner, role).unwrap();
        let (coordinator, gen1, sut) = (made("ctl"), made("gen1"), made("sut"));
        let wires = [
            (&coordinator, "gen1", "10.78.1.1", &gen1, "mgmt", "10.78.1.2"),
            (&coordinator, "sut", "10.78.2.1", &sut, "mgmt", "10.78.2.2"),
            (&gen1, "data", "10.78.3.1", &sut, "data", "10.78.3.2"),
        ];
        for ns in [&coordinator, &gen1, &sut] {
            ns.disable_ipv6().unwrap();
        }
        for (left, left_dev, left_ip, right, right_dev, right_ip) in wires {
            left.veth_to(left_dev, right, right_dev, 1).unwrap();
            for (ns, dev, ip) in [(left, left_dev, left_ip), (right, right_dev, right_ip)] {
                ns.add_address(dev, ip.parse().unwrap(), 24).unwrap();
                ns.set_up(dev, true).unwrap();
            }
        }
        let dir = tempfile::tempdir().unwrap();
        let program = dir.path().join("rxpath");
        crate::stripped::copy(&program);
        let mut site = Self {
            inventory: String::new(),
            bed,
            coordinator,
            gen1,
            sut,
            sut2: None,
            gen2: None,
            daemons: Vec::new(),
            program,
            dir,
        };
        site.configure();
        site.serve();
        Ok(site)
    }

    /// Keys, the configurations of ssh and sshd, and the inventory.
    fn configure(&mut self) {
        for key in ["id_ed25519", "host_key", "other_key"] {
            tool("ssh-keygen", &["-q", "-t", "ed25519", "-N", "", "-f", &self.path(key)]);
        }
        let public = fs::read_to_string(self.path("host_key.pub")).unwrap();
        let of = |address: &str| format!("{address} {public}");
        self.write(
            "known_hosts",
            &["10.78.1.2", "10.78.2.2", "10.78.6.2", "10.78.9.2"].map(of).concat(),
        );
        self.write("none", "");
        let other = fs::read_to_string(self.path("other_key.pub")).unwrap();
        self.write("changed_hosts", &format!("10.78.1.2 {other}"));
        let host = |name: &str, address: &str, key: &str, known: &str| {
            let (key, known) = (self.path(key), self.path(known));
            format!(
                "Host {name}\nHostName {address}\nIdentityFile {key}\nUserKnownHostsFile {known}\n"
            )
        };
        let mut config = host("gen1.lab", "10.78.1.2", "id_ed25519", "known_hosts");
        config += &host("sut.lab", "10.78.2.2", "id_ed25519", "known_hosts");
        config += &host("sut2.lab", "10.78.6.2", "id_ed25519", "known_hosts");
        config += &host("gen2.lab", "10.78.9.2", "id_ed25519", "known_hosts");
        config += &host("unknown.lab", "10.78.1.2", "id_ed25519", "none");
        config += &host("changed.lab", "10.78.1.2", "id_ed25519", "changed_hosts");
        config += &host("nokey.lab", "10.78.1.2", "other_key", "known_hosts");
        config += &host("silent.lab", "10.78.1.3", "id_ed25519", "known_hosts");
        // Behind a jump host that has no route to it, and behind one that does not answer.
        for (name, jump) in [("behind.lab", "sut.lab"), ("cut.lab", "gen1.lab:2222")] {
            config += &host(name, "10.78.1.2", "id_ed25519", "known_hosts");
            config += &format!("ProxyJump {jump}\n");
        }
        config += "Host *\nUser root\nIdentitiesOnly yes\nIdentityAgent none\nStrictHostKeyChecking yes\n\
                   GlobalKnownHostsFile /dev/null\nConnectTimeout 20\n";
        let config = self.write("ssh_config", &config);
        // As a user's ~/.ssh/config: found by ssh itself, unknown to rxpath.
        fs::create_dir(self.path("bin")).unwrap();
        let wrapper = format!("#!/bin/sh\nexec /usr/bin/ssh -F {config} \"$@\"\n");
        crate::executable::write(Path::new(&self.path("bin/ssh")), wrapper);
        let sshd = format!(
            "HostKey {}\nAuthorizedKeysFile {}\nStrictModes no\nUsePAM no\nPidFile none\nPasswordAuthentication no\n\
             PermitRootLogin yes\nLogLevel ERROR\nSetEnv XDG_CACHE_HOME={} TMPDIR={}\n",
            self.path("host_key"),
            self.path("id_ed25519.pub"),
            self.path("login-cache"),
            self.path(TMP)
        );
        fs::create_dir(self.path(TMP)).unwrap();
        fs::set_permissions(self.path(TMP), fs::Permissions::from_mode(0o1777)).unwrap();
        self.write("sshd_config", &sshd);
        let cache = self.path("cache");
        self.inventory = self.write(
            "lab.toml",
            &format!(
                "[hosts.gen1]\nssh = \"gen1.lab\"\nrole = \"sender\"\ndir = \"{cache}-gen1\"\n\
                 [hosts.sut]\nssh = \"sut.lab\"\nrole = \"receiver\"\naddr = [\"10.78.3.2\"]\ndir = \"{cache}-sut\"\n"
            ),
        );
    }

    /// Stores the program on a host, as the first run there does.
    pub fn store_on(&self, alias: &str) {
        // The program is the same at all sites.
        static HASH: OnceLock<String> = OnceLock::new();
        let hash = HASH.get_or_init(|| hash_of(&self.program).unwrap());
        let dir = format!("{}-{alias}/{hash}", self.path("cache"));
        fs::create_dir_all(&dir).unwrap();
        fs::hard_link(&self.program, format!("{dir}/rxpath")).unwrap();
    }

    /// The line by which a host has another `sha256sum`. It hashes the program at each start of an endpoint, and that of coreutils
    /// may do without the CPU's instructions for it: four times as long.
    fn faster_sum(&self) -> String {
        let (sum, own) = (self.path("sha256sum"), "/usr/bin/sha256sum");
        crate::executable::write(
            Path::new(&sum),
            "#!/bin/sh\nexec /usr/bin/openssl dgst -sha256 -r\n",
        );
        // A link may lead to one program for all commands.
        format!("[ ! -x /usr/bin/openssl ] || [ -L {own} ] || mount --bind {sum} {own}\n")
    }

    fn serve(&mut self) {
        let ahead = AHEAD_S.to_string();
        self.write_accounts();
        let clock = ["--time", "--fork", "--kill-child", "--monotonic", &ahead];
        let gen1 = self.daemon(&self.gen1, &clock, &[]);
        self.daemons = vec![gen1, self.daemon(&self.sut, &[], &[])];
        self.wait_for_sshd("10.78.1.2:22");
        self.wait_for_sshd("10.78.2.2:22");
    }

    /// Starts sshd on a host, `unshare` with these words too, in what these words start.
    fn daemon(&self, ns: &Namespace, unshare: &[&str], within: &[&str]) -> Child {
        let (accounts, config) = (self.path(ACCOUNTS), self.path("sshd_config"));
        let sshd = ["sh", "-e", &accounts, SSHD, "-D", "-e", "-f", &config];
        let words =
            [["--mount", "--uts"].as_slice(), unshare, &["sh", HOST_SH], within, &sshd].concat();
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let child = ns.run(move |_| {
            let mut command = Command::new("unshare");
            command.args(&words).stdin(Stdio::null()).stderr(Stdio::null()).spawn()
        });
        child.unwrap().unwrap()
    }

    fn wait_for_sshd(&self, address: &str) {
        let address: std::net::SocketAddr = address.parse().unwrap();
        until(Duration::from_secs(60), "sshd", || {
            let connected = self.coordinator.run(move |_| {
                std::net::TcpStream::connect_timeout(&address, Duration::from_millis(200)).is_ok()
            });
            connected.unwrap()
        });
    }

    pub fn path(&self, name: &str) -> String {
        self.dir.path().join(name).to_str().unwrap().to_owned()
    }

    pub fn write(&self, name: &str, text: &str) -> String {
        fs::write(self.path(name), text).unwrap();
        self.path(name)
    }

    pub fn read_inventory(&self) -> String {
        fs::read_to_string(&self.inventory).unwrap()
    }

    /// Starts the program on the coordinator.
    pub fn start(&self, words: &[&str]) -> Running {
        let mut command = Command::new(&self.program);
        command.args(words).current_dir(self.dir.path());
        let path = std::env::var("PATH").unwrap_or_default();
        command.env("PATH", format!("{}:{path}", self.path("bin")));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Running(self.coordinator.run(move |_| command.spawn()).unwrap().unwrap())
    }

    /// Starts the program on a host.
    pub fn start_on(&self, alias: &str, words: &[&str]) -> Running {
        let mut command = Command::new(&self.program);
        command.args(words).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Running(self.host(alias).run(move |_| command.spawn()).unwrap().unwrap())
    }

    /// Waits until a UDP socket on a host is bound to a port.
    pub fn wait_for_port(&self, alias: &str, port: u16) {
        until(Duration::from_secs(20), "the port", || {
            let table =
                self.host(alias).run(|_| fs::read_to_string("/proc/thread-self/net/udp").unwrap());
            rxpath_host::read::procfs::listeners::has_port(&table.unwrap(), port)
        });
    }

    /// Runs the program on the coordinator.
    pub fn rxpath(&self, words: &[&str]) -> Said {
        self.start(words).wait()
    }

    /// Whether a directory of a third-party program's files is on a host.
    pub fn has_files(&self) -> bool {
        let mut all = fs::read_dir(self.path(TMP)).unwrap().flatten();
        all.any(|it| it.file_name().to_string_lossy().starts_with("rxpath-files-"))
    }

    fn host(&self, alias: &str) -> &Namespace {
        match alias {
            "gen1" => &self.gen1,
            "sut2" => self.sut2.as_ref().unwrap(),
            "gen2" => self.gen2.as_ref().unwrap(),
            _ => &self.sut,
        }
    }

    /// In the order in which their daemons were started.
    fn aliases(&self) -> Vec<&'static str> {
        let later = [self.sut2.as_ref().map(|_| "sut2"), self.gen2.as_ref().map(|_| "gen2")];
        ["gen1", "sut"].into_iter().chain(later.into_iter().flatten()).collect()
    }

    /// A setting of the host's network namespace.
    pub fn sysctl(&self, alias: &str, path: &'static str) -> String {
        let text = self.host(alias).run(move |_| fs::read_to_string(path).unwrap());
        text.unwrap().trim().to_owned()
    }

    /// Runs a command in the mount and network namespaces of a host, as its sshd sees them: what it printed.
    pub fn inside(&self, alias: &str, words: &[&str]) -> String {
        self.try_inside(alias, words).unwrap_or_else(|why| panic!("{words:?}: {why}"))
    }

    /// The same, or what it said when it failed.
    pub fn try_inside(&self, alias: &str, words: &[&str]) -> Result<String, String> {
        let at = self.aliases().iter().position(|known| *known == alias).unwrap();
        let pid = self.daemons[at].id().to_string();
        let mut command = Command::new("nsenter");
        command.args(["--target", &pid, "--mount", "--net", "--"]).args(words);
        let done = command.stdin(Stdio::null()).output().unwrap();
        let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
        if done.status.success() { Ok(text(&done.stdout)) } else { Err(text(&done.stderr)) }
    }

    /// Processes on a host whose command line has these words.
    fn pids(&self, alias: &str, words: &str) -> Vec<i32> {
        let own = Path::new("/run/netns").join(self.host(alias).name());
        let own = fs::metadata(own).unwrap().ino();
        let all = fs::read_dir("/proc").unwrap().flatten();
        let pids = all.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
        pids.filter(|pid| {
            let netns = fs::metadata(format!("/proc/{pid}/ns/net")).map(|about| about.ino());
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let line = String::from_utf8_lossy(&line).replace('\0', " ");
            netns.is_ok_and(|ino| ino == own) && line.contains(words)
        })
        .collect()
    }

    pub fn wait_for(&self, alias: &str, words: &str) {
        until(Duration::from_secs(60), words, || !self.pids(alias, words).is_empty());
    }

    /// Waits for a process that would not be ended by an interrupt.
    pub fn wait_for_handler(&self, alias: &str, words: &str) {
        let is_there =
            || self.pids(alias, words).into_iter().any(|pid| catches(pid, Signal::SIGINT));
        until(Duration::from_secs(60), words, is_there);
    }

    pub fn wait_for_none(&self, alias: &str, words: &str) {
        until(SOON, words, || self.pids(alias, words).is_empty());
    }

    pub fn kill_in(&self, alias: &str, words: &str) {
        self.signal_in(alias, words, Signal::SIGKILL);
    }

    pub fn signal_in(&self, alias: &str, words: &str, signal: Signal) {
        for pid in self.pids(alias, words) {
            let _ = kill(Pid::from_raw(pid), signal);
        }
    }

    /// Does to a host what a restart does: another boot id, and no process of rxpath that was there before.
    pub fn restart(&self, alias: &str) {
        let id = self.write("boot_id", "6c1f3a52-0d5e-4b0c-9a6b-2f1d8e7c4b3a\n");
        self.inside(alias, &["mount", "--bind", &id, "/proc/sys/kernel/random/boot_id"]);
        self.kill_all(alias);
    }

    /// Kills all of rxpath on a host, so that nobody there undoes or ends anything.
    pub fn kill_all(&self, alias: &str) {
        // The first two act when the endpoint ends.
        for words in [" tune watchdog ", " endpoint --guard ", "/rxpath "] {
            self.kill_in(alias, words);
        }
    }

    /// Kills a run and all of rxpath on a host, and waits until nothing is left of it on the others.
    pub fn kill_with(&self, run: Running, alias: &str) {
        // It must not connect to the host again.
        run.hold();
        self.kill_all(alias);
        run.kill();
        self.aliases().iter().for_each(|alias| self.wait_for_none(alias, "/rxpath "));
    }

    /// Kills the endpoint on a host, and not its guard.
    pub fn kill_endpoint(&self, alias: &str) {
        let guards = self.pids(alias, " endpoint --guard");
        for pid in self.pids(alias, "/rxpath endpoint") {
            if !guards.contains(&pid) {
                kill(Pid::from_raw(pid), Signal::SIGKILL).unwrap();
            }
        }
    }

    /// Waits until no process of rxpath is on any host, and no file but its copy.
    pub fn holds_nothing(&self, limit: Duration) {
        for alias in self.aliases() {
            until(limit, "no process of rxpath", || self.pids(alias, "/rxpath ").is_empty());
            let cache = format!("{}-{alias}", self.path("cache"));
            let copies: Vec<_> = fs::read_dir(&cache).unwrap().flatten().collect();
            assert_eq!(copies.len(), 1, "{copies:?}");
            let files: Vec<_> = fs::read_dir(copies[0].path()).unwrap().flatten().collect();
            assert_eq!(files.len(), 1, "{files:?}");
        }
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        for alias in self.aliases() {
            self.kill_in(alias, "");
        }
        for daemon in &mut self.daemons {
            let _ = daemon.kill();
            let _ = daemon.wait();
        }
    }
}
