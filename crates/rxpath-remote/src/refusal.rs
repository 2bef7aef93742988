//! Why a host cannot be used, from what ssh and the shell there said, and what to do about it.

use std::sync::LazyLock;

use serde::Deserialize;
use thiserror::Error;

/// A host that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{text}")]
pub struct HostRefusal {
    /// What is wrong, with the host's alias.
    pub text: String,
    /// What to do; empty where nothing is known.
    pub hint: String,
}

/// What is known of the host apart from what was said.
#[derive(Clone, Copy, Debug, Default)]
pub struct RefusingHost<'a> {
    /// Its name in this experiment.
    pub alias: &'a str,
    /// The destination as ssh takes it.
    pub ssh: &'a str,
    /// Where the copy of rxpath goes, if that is known.
    pub dir: Option<&'a str>,
    /// What needs root there, as `observe.steal needs root`; empty where nothing is known of it.
    pub needs_root: &'a str,
    /// How long its endpoint was waited for, if it did not start in time. **Unit** s.
    pub waited_s: Option<u64>,
}

/// What is said for words of ssh or of a shell.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Known {
    /// All of these are in the words.
    words: Vec<String>,
    text: String,
    hint: String,
    /// Another attempt may succeed in a moment.
    #[serde(default)]
    passes: bool,
}

/// All of them: `refusals.toml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Refusals {
    known: Vec<Known>,
}

static REFUSALS: LazyLock<Refusals> = LazyLock::new(read);

#[expect(clippy::panic, reason = "the file is part of the program; the tests read it")]
fn read() -> Refusals {
    let read = toml::from_str(include_str!("refusals.toml"));
    read.unwrap_or_else(|why| panic!("refusals.toml: {why}"))
}

fn find(said: &str) -> Option<&'static Known> {
    REFUSALS.known.iter().find(|known| known.words.iter().all(|word| said.contains(word)))
}

/// Whether these words are of a refusal after which another attempt may succeed in a moment: sshd drops connections beyond
/// `MaxStartups` until others have logged in.
pub fn passes(said: &str) -> bool {
    find(said).is_some_and(|known| known.passes)
}

/// What the words of ssh or of the shell there mean.
pub fn refusal(host: &RefusingHost<'_>, said: &str) -> HostRefusal {
    let (alias, ssh) = (host.alias, host.ssh);
    known_refusal(host, said).unwrap_or_else(|| {
        let said = if said.trim().is_empty() { "nothing" } else { said.trim() };
        let within = host.waited_s.map(|s| format!(" within {s} s")).unwrap_or_default();
        HostRefusal {
            text: format!(
                "{alias}: the endpoint did not start{within}; ssh and the shell there said: {said}"
            ),
            hint: format!("try: ssh {ssh} true"),
        }
    })
}

/// The same; nothing for words that are not known.
pub fn known_refusal(host: &RefusingHost<'_>, said: &str) -> Option<HostRefusal> {
    let (alias, ssh) = (host.alias, host.ssh);
    let known = find(said)?;
    let found = |line: &&str| known.words.iter().any(|word| line.contains(word));
    let why = said.split(['\n', '|']).map(str::trim).find(found).unwrap_or_default();
    let root = if host.needs_root.is_empty() { "root is needed" } else { host.needs_root };
    let filled = |text: &str| {
        text.replace("{alias}", alias)
            .replace("{ssh}", ssh)
            .replace("{dir}", host.dir.unwrap_or("the directory"))
            .replace("{root}", root)
            .replace("{why}", why)
    };
    let text = format!("{alias}: {}", filled(&known.text));
    Some(HostRefusal { text, hint: filled(&known.hint) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ssh_says_is_answered_with_what_to_do() {
        let told = |said: &str| {
            let (alias, ssh) = ("gen1", "me@gen1.lab");
            let found = refusal(&RefusingHost { alias, ssh, ..RefusingHost::default() }, said);
            (found.text, found.hint)
        };
        let (text, hint) = told("ssh: connect to host gen1.lab port 22: Connection timed out");
        assert!(text.starts_with("gen1: no answer to ssh in 10s (ssh: connect to host"), "{text}");
        assert_eq!(hint, "try: ssh me@gen1.lab true");
        let (text, _) = told("me@gen1.lab: Permission denied (publickey,password).");
        assert_eq!(text, "gen1: ssh wants a password, and rxpath gives none (BatchMode)");
        let (text, _) = told("Host key verification failed.");
        assert_eq!(text, "gen1: ssh does not know this host's key");
        let changed =
            "@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @ | Host key verification failed.";
        assert!(told(changed).0.contains("not the one that ssh knows"));
        let (text, hint) = told("sudo: a password is required");
        assert!(text.contains("sudo -n wants a password"), "{text}");
        assert!(hint.contains("starts rxpath as root is root, whatever its path"), "{hint}");
        assert!(
            told("rxpath: 1: exec: /home/u/.cache/rxpath/ab/rxpath: Permission denied")
                .0
                .contains("noexec")
        );
        let (alias, needs_root) = ("sut", "observe.steal needs root");
        let host = RefusingHost { alias, needs_root, ..RefusingHost::default() };
        let found = refusal(&host, "sudo: a password is required").text;
        assert_eq!(found, "sut: observe.steal needs root there, and sudo -n wants a password");
        let loader =
            "/d/rxpath: /lib/libc.so.6: version `GLIBC_2.34' not found (required by /d/rxpath)";
        let (text, hint) = told(loader);
        assert_eq!(
            text,
            format!(
                "gen1: its C library is older than the one this binary was built with: {loader}"
            )
        );
        assert!(hint.starts_with("make static"), "{hint}");
        for other in [
            "/d/rxpath: error while loading shared libraries: libelf.so.1: cannot open shared object file",
            "rxpath: 1: exec: /d/rxpath: not found",
            "rxpath: line 1: /d/rxpath: cannot execute: required file not found",
        ] {
            let (text, hint) = told(other);
            assert!(text.ends_with(&format!("there: {other}")) || text.ends_with(other), "{text}");
            assert!(hint.starts_with("make static"), "{hint}");
        }
        let (text, _) = told("kex_exchange_identification: read: Connection reset by peer");
        assert!(text.contains("sshd refuses new connections"), "{text}");
        assert!(told("").0.ends_with("said: nothing"));
    }

    #[test]
    fn a_jump_host_that_does_not_reach_a_host_is_not_an_sshd_that_refuses_connections() {
        let host = RefusingHost { alias: "sut", ssh: "sut.lab", ..RefusingHost::default() };
        let refused = "kex_exchange_identification: Connection closed by remote host";
        let closed = "Connection closed by UNKNOWN port 65535";
        let route = "channel 0: open failed: connect failed: No route to host";
        let jump = "ssh: connect to host jump.lab port 22: Connection refused";
        let name = "ssh: Could not resolve hostname jump.lab: Name or service not known";
        for (first, what) in [
            (
                format!("{route} | stdio forwarding failed"),
                format!("the jump host does not reach it ({route})"),
            ),
            (
                "stdio forwarding failed".to_owned(),
                "the jump host does not reach it (stdio forwarding failed)".to_owned(),
            ),
            (jump.to_owned(), format!("no answer to ssh ({jump})")),
            (name.to_owned(), format!("ssh does not know the host ({name})")),
        ] {
            let said = format!("{first} | {refused} | {closed}");
            assert_eq!(refusal(&host, &said).text, format!("sut: {what}"));
            assert!(!passes(&said), "{said}");
        }
        let said = format!("{refused} | Connection closed by 192.0.2.1 port 22");
        let what = format!("sut: sshd refuses new connections, tried 3 times ({refused})");
        assert!(refusal(&host, &said).text == what && passes(&said));
        assert!(!passes("Host key verification failed.") && !passes("Welcome."));
    }

    #[test]
    fn an_agent_with_too_many_keys_and_a_start_that_takes_too_long_are_named() {
        let host = RefusingHost { alias: "sut", ssh: "sut.lab", ..RefusingHost::default() };
        let said = "Received disconnect from 192.0.2.1 port 22:2: Too many authentication failures";
        let found = refusal(&host, said);
        assert_eq!(found.text, format!("sut: ssh offered more keys than that sshd takes ({said})"));
        assert!(found.hint.contains("sut.lab in ~/.ssh/config: IdentityFile"), "{found:?}");
        let late = RefusingHost { waited_s: Some(30), ..host };
        let what = "sut: the endpoint did not start within 30 s; ssh and the shell there said: ";
        assert_eq!(refusal(&late, "Welcome.").text, format!("{what}Welcome."));
        // Nobody said it, and the transfer may have taken longer than a step.
        let cut = "the copy of rxpath did not arrive whole";
        assert_eq!(refusal(&late, cut).text, format!("sut: {cut}"));
    }

    #[test]
    fn a_network_namespace_that_cannot_be_entered_is_named_with_its_key() {
        let host = RefusingHost { alias: "sut", ..RefusingHost::default() };
        let missing =
            "rxpath: --netns lab: /run/netns/lab is not a network namespace: No such file";
        let found = refusal(&host, missing);
        assert_eq!(found.text, format!("sut: its network namespace cannot be used ({missing})"));
        assert!(found.hint.contains("change hosts.sut.netns"), "{found:?}");
        let refused = "rxpath: cannot enter it | hint: only root can enter another network namespace: run as root";
        assert_eq!(refusal(&host, refused).text, "sut: hosts.sut.netns needs root there");
        assert_eq!(known_refusal(&host, "Welcome."), None);
    }

    #[test]
    fn a_host_without_sudo_or_a_tool_is_named_with_what_it_lacks() {
        let (alias, needs_root) = ("sut", "observe.steal needs root");
        let host = RefusingHost { alias, needs_root, ..RefusingHost::default() };
        for (said, text, hint) in [
            (
                "sudo: sorry, you must have a tty to run sudo",
                "sut: observe.steal needs root there, and sudo wants a terminal (requiretty)",
                "!requiretty",
            ),
            (
                "Sorry, user u is not allowed to execute '/c/rxpath endpoint' as root on sut.",
                "sut: observe.steal needs root there, and sudoers does not allow it (Sorry, user u is not allowed to execute '/c/rxpath endpoint' as root on sut.)",
                "install this rxpath there",
            ),
            (
                "rxpath: 1: exec: sudo: not found",
                "sut: observe.steal needs root there, and there is no sudo",
                "log in as root",
            ),
            (
                "sudo: unable to resolve host sut: Name or service not known\n/d/rxpath: version `GLIBC_2.34' not found",
                "sut: its C library is older than the one this binary was built with: /d/rxpath: version `GLIBC_2.34' not found",
                "make static",
            ),
            (
                "rxpath: 1: sha256sum: not found",
                "sut: there is no sha256sum, by which the copy of rxpath is checked",
                "coreutils",
            ),
            (
                "ssh: Could not resolve hostname sut: Name or service not known",
                "sut: ssh does not know the host (ssh: Could not resolve hostname sut: Name or service not known)",
                "try: ssh",
            ),
        ] {
            let found = refusal(&host, said);
            assert!(found.text == text && found.hint.contains(hint), "{found:?}");
        }
    }

    #[test]
    fn only_words_of_ssh_and_its_proxies_say_that_a_host_is_not_reached() {
        let host = RefusingHost { alias: "gen1", ssh: "gen1.lab", ..RefusingHost::default() };
        let told = |said: &str| refusal(&host, said).text;
        for unreached in [
            "ssh: connect to host gen1.lab port 22: No route to host",
            "Connection closed by 192.0.2.1 port 22",
            "nc: connect to gen1.lab port 22 (tcp) failed: Connection refused",
        ] {
            let text = told(&format!("Welcome. | {unreached}"));
            assert_eq!(text, format!("gen1: no answer to ssh ({unreached})"));
        }
        let silent = "Connection timed out during banner exchange";
        assert_eq!(told(silent), format!("gen1: no answer to ssh in 10s ({silent})"));
        // The words of a greeting are not those of ssh.
        let greeting = "NOTICE: All connections are monitored. Connection logs are kept.";
        let what = "the endpoint did not start; ssh and the shell there said:";
        assert_eq!(told(greeting), format!("gen1: {what} {greeting}"));
    }

    #[test]
    fn a_place_that_takes_no_copy_is_named_with_the_key_of_another_one() {
        let host = RefusingHost { alias: "sut", dir: Some("/mnt/lab"), ..RefusingHost::default() };
        let told = |said: &str| refusal(&host, said);
        let full = told("cat: write error: No space left on device");
        assert_eq!(full.text, "sut: no space is left in /mnt/lab, where the copy of rxpath goes");
        assert!(full.hint.ends_with("hosts.sut.dir = \"/opt/scratch\""), "{full:?}");
        let noexec = told("rxpath: 1: /mnt/ab/.incoming.7: Permission denied | @@rxpath-noexec");
        assert!(noexec.text.contains("/mnt/lab is mounted noexec"), "{noexec:?}");
        let mkdir = "mkdir: cannot create directory '/opt/rxpath': Permission denied";
        assert!(told(mkdir).text.ends_with(&format!("cannot be made: {mkdir}")));
        assert!(told("sh: cannot create /d/t: Read-only file system").text.contains("read-only"));
        assert!(told("cat: write error: Disk quota exceeded").text.contains("your quota"));
    }
}
