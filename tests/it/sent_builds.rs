//! Which file is sent to a host, by the real scripts. The ssh of these tests runs them here, on a host whose architecture
//! and cache are what a test wants.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use tempfile::TempDir;

use crate::executable;
use crate::program::{Said, rxpath, said};
use crate::stripped;

const ARCH: &str = std::env::consts::ARCH;

/// A program of its own directory, and a host.
struct Site {
    dir: TempDir,
}

impl Site {
    fn new() -> Self {
        let site = Self { dir: tempfile::tempdir().unwrap() };
        fs::create_dir(site.path("bin")).unwrap();
        site.ssh("exec sh -c \"$line\"");
        stripped::copy(&site.path("rxpath"));
        site
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// A program that both ends find first.
    fn script(&self, name: &str, text: &str) {
        executable::write(&self.path("bin").join(name), format!("#!/bin/sh\n{text}\n"));
    }

    /// What ssh does with the line for the host, the last of its words; each of its connections is counted.
    fn ssh(&self, text: &str) {
        let count = self.path("count");
        let count = count.display();
        self.script("ssh", &format!("echo x >>{count}\nfor line; do :; done; {text}"));
    }

    /// How many connections there were since this was asked last.
    fn connections(&self) -> usize {
        let count = self.path("count");
        let lines = fs::read_to_string(&count).map_or(0, |text| text.lines().count());
        let _ = fs::remove_file(count);
        lines
    }

    /// A copy of the program in which `from` is `to`, of another hash in any case.
    fn build(&self, name: &str, from: &str, to: &str) -> PathBuf {
        assert_eq!(from.len(), to.len());
        let mut bytes = fs::read(self.path("rxpath")).unwrap();
        let mut at = 0;
        while let Some(found) = bytes[at..].windows(from.len()).position(|it| it == from.as_bytes())
        {
            at += found;
            bytes[at..at + to.len()].copy_from_slice(to.as_bytes());
            at += to.len();
        }
        assert!(at > 0, "{from} is in the program");
        bytes.push(0);
        executable::write(&self.path(name), bytes);
        self.path(name)
    }

    /// `rxpath doctor` on the host, with more words.
    fn doctor(&self, words: &[&str]) -> Said {
        said(self.rxpath(&["doctor", "--json", "--host", "sut"]).args(words))
    }

    /// The program, to which ssh and the cache are those of this test.
    fn rxpath(&self, words: &[&str]) -> Command {
        let path = std::env::var("PATH").unwrap_or_default();
        let mut command = Command::new(self.path("rxpath"));
        command.args(words).env("PATH", format!("{}:{path}", self.path("bin").display()));
        command.env("XDG_CACHE_HOME", self.path("cache"));
        command
    }

    /// Files on the host.
    fn copies(&self) -> usize {
        fs::read_dir(self.path("cache/rxpath")).map_or(0, Iterator::count)
    }
}

/// The build id of the program.
fn build_id() -> String {
    let text = rxpath(&["--version"]).ok();
    text.lines().find_map(|line| line.strip_prefix("build ")).unwrap().to_owned()
}

/// Another one of the same length.
fn other_id() -> String {
    let id = build_id();
    let (version, hash) = id.split_once('-').unwrap();
    let turned: String = hash.chars().map(|c| if c == '0' { '1' } else { '0' }).take(12).collect();
    format!("{version}-{turned}{}", &hash[12..])
}

#[test]
fn a_build_for_the_host_is_sent_before_the_program_itself() {
    let site = Site::new();
    // Nothing else is there: the program.
    let itself = site.doctor(&[]).warns("rxpath: sut: sending rxpath, ");
    assert_eq!(site.connections(), 1, "one connection stores and starts");
    assert!(itself.out.contains("\"rxpath/doctor/"), "{itself:?}");
    // In the same directory, and sent once.
    let built = site.build(&format!("rxpath-{ARCH}"), &build_id(), &build_id());
    let size_mb = fs::metadata(&built).unwrap().len() as f64 / 1e6;
    let sent = format!("sut: sending rxpath ({}), {size_mb:.1} MB\n", built.display());
    site.doctor(&[]).warns(&sent).prints("\"rxpath/doctor/");
    assert!(!site.doctor(&[]).err.contains("sending"), "it is there");
    assert_eq!((site.copies(), site.connections()), (2, 2));
    // A greeting without an end of its line.
    site.ssh("printf Welcome; exec sh -c \"$line\"");
    site.doctor(&[]).prints("\"rxpath/doctor/");
    // What was given comes first.
    let given = site.build("given", "@@rxpath-build", "@@rxpath-build");
    fs::write(&given, [fs::read(&given).unwrap(), b"more".to_vec()].concat()).unwrap();
    let words = format!("{ARCH}={}", given.display());
    let chosen = site.doctor(&["--binary", &words]);
    let sent = format!("sut: sending rxpath ({})", given.display());
    assert!(chosen.err.contains(&sent), "{chosen:?}");
    // Of other sources: passed over.
    let skewed = site.build(&format!("rxpath-{ARCH}"), &build_id(), &other_id());
    let passed = site.doctor(&[]);
    let why = format!(
        "rxpath: {} is build {}, this is {}; it is not sent",
        skewed.display(),
        other_id(),
        build_id()
    );
    assert!(passed.err.contains(&why), "{passed:?}");
    assert!(passed.out.contains("\"rxpath/doctor/"), "{passed:?}");
}

#[test]
fn a_file_that_cannot_be_sent_is_refused_in_one_line() {
    let site = Site::new();
    let other = site.build("other", &build_id(), &other_id());
    fs::write(site.path("text"), "no program, only a text of some length\n").unwrap();
    let skew = format!("is build {}, this is {}", other_id(), build_id());
    let another = if ARCH == "x86_64" { "aarch64" } else { "x86_64" };
    for (arch, file, why) in [
        (ARCH, "nosuch", "cannot be read: No such file or directory (os error 2)"),
        (ARCH, "bin", "is not a file"),
        (ARCH, "text", "is not a program (ELF)"),
        (ARCH, other.to_str().unwrap(), &skew),
        (another, "rxpath", &format!("is a program for {ARCH}")),
        (ARCH, "/bin/sh", "is not rxpath, or has no build id"),
    ] {
        let words = format!("{arch}={}", site.path(file).display());
        let refused = site.doctor(&["--binary", &words]);
        let text = format!(
            "rxpath: --binary {words}: {why}\nhint: make static, on {arch} and from the sources of this program\n"
        );
        assert_eq!((refused.code, refused.err), (Some(2), text));
    }
    let alone = said(&mut site.rxpath(&["run", "udp-batching", "--binary", &format!("{ARCH}=x")]));
    assert_eq!(
        alone.err,
        "rxpath: --binary is for --hosts, --sender and --receiver, or a scenario with [hosts]\n",
        "{alone:?}"
    );
    assert_eq!(site.copies(), 0, "nothing was sent");
}

#[test]
fn a_host_that_needs_another_build_is_named_with_what_to_do() {
    let site = Site::new();
    // A host with an older C library: the words are those of the real loader.
    let old = site.build("old", "GLIBC_2.34\0", "GLIBC_9.99\0");
    site.doctor(&["--binary", &format!("{ARCH}={}", old.display())])
        .ends(3)
        .warns("sut: its C library is older than the one this binary was built with: ")
        .warns("version `GLIBC_9.99' not found")
        .warns("hint: make static, or --binary ARCH=FILE");
    // A host of another architecture, by the real script and another `uname`.
    let another = if ARCH == "x86_64" { "aarch64" } else { "x86_64" };
    site.script("uname", &format!("echo {another}"));
    let refused = site.doctor(&[]);
    let text = format!(
        "rxpath: sut is {another}, and no static build for it is here\n\
         hint: make static on a machine that is {another}, and --binary {another}=FILE here\n"
    );
    assert_eq!((refused.code, refused.err), (Some(3), text));
    site.script("uname", "echo riscv64");
    let text = site.doctor(&[]).err;
    assert!(text.ends_with("for it is here\nhint: rxpath runs on x86_64 and aarch64\n"), "{text}");
}

#[test]
fn a_host_that_refuses_connections_for_a_moment_is_tried_three_times() {
    let site = Site::new();
    let refusing = |times: u32| {
        let count = site.path("count");
        fs::write(&count, "").unwrap();
        let count = count.display();
        site.script(
            "ssh",
            &format!(
                "echo x >> {count}\nif [ $(wc -l < {count}) -le {times} ]; then\n\
                 echo 'kex_exchange_identification: read: Connection reset by peer' >&2; exit 255; fi\n\
                 for line; do :; done; exec sh -c \"$line\""
            ),
        );
        let output = site.doctor(&[]);
        (output, fs::read_to_string(site.path("count")).unwrap().lines().count())
    };
    // The third one is not refused, and carries the program.
    let (output, tried) = refusing(2);
    assert_eq!(tried, 3, "{output:?}");
    assert!(output.out.contains("\"rxpath/doctor/"), "{output:?}");
    let (output, tried) = refusing(9);
    assert_eq!(tried, 3, "{output:?}");
    let what = "sut: sshd refuses new connections, tried 3 times (kex_exchange_identification: ";
    output.ends(3).warns(what).warns("network.connect_at_once");
}

#[test]
fn a_host_that_its_jump_host_does_not_reach_is_named_at_the_first_attempt() {
    let site = Site::new();
    let count = site.path("count");
    let route = "channel 0: open failed: connect failed: No route to host";
    site.script(
        "ssh",
        &format!(
            "echo x >> {}\necho '{route}' >&2\necho 'stdio forwarding failed' >&2\n\
             echo 'kex_exchange_identification: Connection closed by remote host' >&2; exit 255",
            count.display()
        ),
    );
    let refused = site.doctor(&[]);
    let text = format!(
        "rxpath: sut: the jump host does not reach it ({route})\nhint: try: ssh sut true\n"
    );
    assert_eq!((refused.code, refused.err), (Some(3), text));
    assert_eq!(fs::read_to_string(count).unwrap().lines().count(), 1);
}

#[test]
fn a_machine_without_ssh_is_named() {
    let site = Site::new();
    let mut command = Command::new(site.path("rxpath"));
    command.args(["doctor", "--host", "sut"]).env("PATH", site.path("nothing"));
    let refused = said(&mut command);
    let text = "rxpath: sut: there is no ssh on this machine\n\
                hint: install OpenSSH's client (openssh-client, openssh-clients)\n";
    assert_eq!((refused.code, refused.err), (Some(3), text.to_owned()));
}

#[test]
fn root_that_is_not_given_is_named_with_what_to_do() {
    let site = Site::new();
    // Root needs no sudo.
    site.script("id", "echo 1000");
    for (said, what, hint) in [
        (
            "sudo: a password is required",
            "sut: root is needed there, and sudo -n wants a password",
            "allow rxpath without a password",
        ),
        (
            "sudo: sorry, you must have a tty to run sudo",
            "sut: root is needed there, and sudo wants a terminal (requiretty)",
            "!requiretty",
        ),
    ] {
        site.script("sudo", &format!("echo '{said}' >&2; exit 1"));
        site.doctor(&["--host-sudo"]).ends(3).warns(what).warns(hint);
    }
}

#[test]
fn root_is_asked_for_only_where_the_scenario_needs_it_and_the_key_is_named() {
    let site = Site::new();
    site.script("id", "echo 1000");
    let asked = site.path("asked");
    site.script(
        "sudo",
        &format!("echo x >> {}; echo 'sudo: a password is required' >&2; exit 1", asked.display()),
    );
    let lab = site.path("lab.toml");
    let text = "[hosts.gen1]\nssh = \"gen1\"\nrole = \"sender\"\n\
                [hosts.sut]\nssh = \"sut\"\nrole = \"receiver\"\n";
    fs::write(&lab, text).unwrap();
    let rxpath = |words: &[&str]| {
        let mut command = site.rxpath(words);
        said(command.arg("--hosts").arg(&lab).current_dir(site.dir.path()))
    };
    // Whatever else this machine lacks as two hosts: a plan needs no root.
    rxpath(&["run", "udp-pinning", "--set", "observe.drops=true", "--dry-run"]);
    assert!(!asked.exists(), "a plan asked for root");
    let refused = rxpath(&["run", "udp-pinning", "--set", "observe.drops=true"]);
    let what = "gen1: observe.drops needs root there, and sudo -n wants a password";
    refused.ends(3).warns(what);
    assert!(asked.exists());
}

#[test]
fn an_installed_rxpath_of_the_same_build_is_used_and_nothing_is_sent() {
    let site = Site::new();
    let own = env!("CARGO_BIN_EXE_rxpath");
    let of = |id: &str| {
        site.script(
            "rxpath",
            &format!("[ \"$2\" = --identify ] && exec echo {id}\nexec {own} \"$@\""),
        );
        site.doctor(&[])
    };
    let used = of(&build_id());
    assert!(!used.err.contains("sending"), "{used:?}");
    assert!(used.out.contains("\"rxpath/doctor/"), "{used:?}");
    assert_eq!(site.copies(), 0);
    let skewed = of(&other_id()).warns("sut: sending rxpath");
    let installed = site.path("bin/rxpath");
    let other = format!(
        "rxpath: sut: {} is build {}, this is {}; a copy of this one is used\n",
        installed.display(),
        other_id(),
        build_id()
    );
    assert!(skewed.err.contains(&other), "{skewed:?}");
    assert_eq!(site.copies(), 1);
    assert_eq!(rxpath(&["endpoint", "--identify"]).out, build_id() + "\n");
}
