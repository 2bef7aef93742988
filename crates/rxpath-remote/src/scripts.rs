//! The line of shell that runs on a host: it stores the program where that is missing, and starts the endpoint.
//!
//! No user's word is in it; the words after it are checked where they are made. One line, no exclamation mark, no single
//! quote and no backslash: sh, bash, zsh, fish and csh all pass the quoted line on unchanged.

/// Becomes the endpoint whose hash is `$1`, from directory `$2` (`-`: the cache), as root if `$3` is `sudo`, in network
/// namespace `$4` (`-`: none); else an installed rxpath whose build id is `$5`.
///
/// It first ends the line of a login shell's greeting, which may have no end: what follows is read by lines.
///
/// If neither is there, it prints which installed one it passed over, and [`NEED`]. Then it reads the line of [`offer`], by
/// `read`, which takes no byte behind it; without one it ends. A program with the offered hash that is there is started.
/// Else it runs an empty file in the directory: on a file system that lets no program run, nothing is sent. Then it prints
/// [`SEND`], stores so many bytes of standard input and becomes the endpoint. What failed leaves nothing but the directory,
/// and [`NOT_STORED`] is printed.
///
/// What a killed transfer left is removed by the next one of the same program. The name has the boot and the pid namespace, because
/// hosts and containers may share the directory: elsewhere a process cannot be seen.
pub(crate) const START: &str = concat!(
    "echo; d=$2; [ \"$d\" = - ] && d=${XDG_CACHE_HOME:-$HOME/.cache}/rxpath; ",
    "there() { f=$d/$1/rxpath; s=; [ -f \"$f\" ] && s=$(sha256sum <\"$f\"); [ \"${s%% *}\" = \"$1\" ]; }; ",
    "installed() { f=$(command -v rxpath) || return; ",
    "b=$(\"$f\" endpoint --identify </dev/null 2>/dev/null); ",
    "[ \"$b\" = \"$1\" ] || { echo \"@@rxpath-passed-over ${b:--} $f\"; false; }; }; ",
    "sent() { echo \"@@rxpath-need $(uname -m)\"; read -r z h && [ -n \"$h\" ] || return; ",
    "[ \"$h\" = \"$1\" ] || { there \"$h\" && return; }; ",
    "k=$(cat /proc/sys/kernel/random/boot_id).$(stat -Lc %i /proc/self/ns/pid); ",
    "e=$d/$h; f=$e/rxpath; t=$e/.incoming.$k.$$; ",
    "for o in \"$e\"/.incoming.\"$k\".*; do kill -0 \"${o##*.}\" 2>/dev/null || rm -f \"$o\"; done; ",
    "(umask 077; ",
    "mkdir -p \"$e\" && true >\"$t\" && chmod 700 \"$t\" && ",
    "{ \"$t\" </dev/null || { echo @@rxpath-noexec >&2; false; }; } && echo @@rxpath-send && ",
    "head -c \"$z\" >\"$t\" && s=$(sha256sum <\"$t\") && [ \"${s%% *}\" = \"$h\" ] && ",
    "chmod 500 \"$t\" && mv -f \"$t\" \"$f\") && return; ",
    "rm -f \"$t\"; rmdir \"$e\" 2>/dev/null; echo \"@@rxpath-not-stored $d\"; false; }; ",
    "there \"$1\" || installed \"$5\" || sent \"$1\" || exit 0; ",
    "u=$3; n=$4; set -- \"$f\" endpoint; [ \"$n\" = - ] || set -- \"$@\" --netns \"$n\"; ",
    "[ \"$u\" = sudo ] && { [ \"$(id -u)\" = 0 ] || set -- sudo -n -- \"$@\"; }; exec \"$@\"",
);

/// Begins each line that START prints.
pub(crate) const OWN: &str = "@@rxpath-";
/// What START prints of an installed program that it does not use, before its build id (`-`: it says none) and its path.
pub(crate) const PASSED_OVER: &str = "@@rxpath-passed-over ";
/// What START prints if the program is not there, before the machine's architecture.
pub(crate) const NEED: &str = "@@rxpath-need ";
/// What START prints when it takes the program.
pub(crate) const SEND: &str = "@@rxpath-send";
/// What START prints if the program could not be stored, before the directory.
pub(crate) const NOT_STORED: &str = "@@rxpath-not-stored ";

/// The answer to [`NEED`]: how many bytes the program has, and its SHA-256.
pub(crate) fn offer(bytes: u64, hash: &str) -> String {
    format!("{bytes} {hash}\n")
}

/// The remote command line: the script and its words.
///
/// `refusals.toml` has the English words of sudo, the shell and its commands. `LANGUAGE` has the language of messages alone, and
/// wins over `LC_ALL` and `LANG` (gettext(3)). The locale of the endpoint stays the user's. sudo passes `LANGUAGE` on, as `LC_ALL`
/// (sudoers(5), `env_check`). bash reads it when it starts only.
pub(crate) fn line(words: &[&str]) -> String {
    format!("exec env LANGUAGE=C /bin/sh -c '{START}' rxpath {}", words.join(" "))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write;
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    use std::path::Path;
    use std::process::{Command, Output, Stdio};

    use super::*;
    use crate::executable;
    use crate::refusal::{RefusingHost, refusal};
    use crate::ssh::{not_stored, passed_over};

    #[test]
    fn no_shell_takes_a_part_of_the_script_for_its_own() {
        assert!(!START.contains(['!', '\'', '\\', '\n']), "{START}");
    }

    const BUILD: &str = "0.1.0-0123456789ab";
    /// The shells whose words the script has; of those that a machine lacks, the others stand.
    const SHELLS: [&str; 4] = ["/bin/sh", "/bin/dash", "/bin/bash", "/bin/busybox sh"];
    /// The locale of the user.
    const LOCALE: &str = "C.UTF-8";
    /// Says how it was started.
    const PROGRAM: &[u8] = b"#!/bin/sh\necho started $* $(umask) ${LC_ALL:-none}\n";

    /// Those of [`SHELLS`] that this machine has.
    fn shells() -> impl Iterator<Item = &'static str> {
        let is_here = |shell: &&str| Path::new(shell.split(' ').next().unwrap()).exists();
        SHELLS.into_iter().filter(is_here)
    }

    fn run(words: &[&str], input: &[u8]) -> String {
        run_with(Path::new("/usr/bin"), words, input)
    }

    /// With one more directory of programs.
    fn run_with(programs: &Path, words: &[&str], input: &[u8]) -> String {
        printed(&output((programs, SHELLS[0]), words, input))
    }

    /// Behind the end of the greeting's line.
    fn printed(output: &Output) -> String {
        String::from_utf8(output.stdout.clone()).unwrap().strip_prefix('\n').unwrap().to_owned()
    }

    fn output((programs, shell): (&Path, &str), words: &[&str], input: &[u8]) -> Output {
        let line = line(words).replacen(SHELLS[0], shell, 1);
        let mut child = Command::new("sh")
            .args(["-c", &line])
            .env("PATH", format!("{}:/usr/bin:/bin", programs.display()))
            .env("LC_ALL", LOCALE)
            .env("LANGUAGE", "fr")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(input).unwrap();
        child.wait_with_output().unwrap()
    }

    /// What a coordinator writes that has this program for the host.
    fn sent(program: &[u8]) -> Vec<u8> {
        let offer = offer(program.len() as u64, &crate::ship::hash(program));
        [offer.as_bytes(), program].concat()
    }

    #[test]
    fn a_program_that_is_missing_is_stored_under_its_hash_and_started_in_one_go() {
        for shell in shells() {
            stored_and_started(shell);
        }
    }

    fn stored_and_started(shell: &str) {
        let dir = tempfile::tempdir().unwrap();
        let at = dir.path().join("cache");
        let place = at.to_str().unwrap();
        let hash = crate::ship::hash(PROGRAM);
        let start = |netns: &str, input: &[u8]| {
            let words = [hash.as_str(), place, "user", netns, BUILD];
            printed(&output((Path::new("/usr/bin"), shell), &words, input))
        };
        let need = start("-", b"");
        assert!(need.starts_with(NEED) && need.lines().count() == 1, "{shell}: {need}");
        // No program is offered, or the connection ends in the offer.
        for input in [&b"\n"[..], b"\nsomething", b"5", b"5 0123"] {
            assert_eq!(start("-", input), need, "{shell}: {input:?}");
        }
        assert!(!at.exists(), "{shell}: nothing was touched");
        let asks = format!("{need}{SEND}\n");
        let refused = format!("{asks}{NOT_STORED}{place}\n");
        let whole = sent(PROGRAM);
        let damaged = String::from_utf8(whole.clone()).unwrap().replace("started", "damaged");
        for wrong in [&whole[..whole.len() - 1], damaged.as_bytes(), offer(9, &hash).as_bytes()] {
            assert_eq!(start("-", wrong), refused, "{shell}");
            assert_eq!(fs::read_dir(&at).unwrap().count(), 0, "{shell}: something is left");
        }
        let first = start("-", &whole);
        let again = start("-", b"");
        assert!(again.starts_with("started endpoint 0"), "{shell}: {again}");
        // The umask of the storing is not the endpoint's; the locale is the user's.
        assert_eq!(first, format!("{asks}{again}"), "{shell}");
        assert!(again.ends_with(&format!(" {LOCALE}\n")), "{shell}: {again}");
        assert!(start("lab", b"").starts_with("started endpoint --netns lab 0"), "{shell}");
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let copy = at.join(&hash).join("rxpath");
        assert_eq!((mode(&copy), mode(&at.join(&hash))), (0o500, 0o700), "{shell}");
        // Another one in its place is not started, and makes room for the right one.
        fs::set_permissions(&copy, fs::Permissions::from_mode(0o700)).unwrap();
        fs::write(&copy, "#!/bin/sh\necho something else\n").unwrap();
        assert_eq!(start("-", b""), need, "{shell}");
        assert_eq!(start("-", &whole), first, "{shell}");
        let left = fs::read_dir(at.join(&hash)).unwrap().count();
        assert_eq!(left, 1, "{shell}: nothing but the program");
    }

    #[test]
    fn what_a_killed_transfer_left_is_removed_unless_its_process_may_live() {
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
        let here = format!("{}.{}", boot.trim(), fs::metadata("/proc/self/ns/pid").unwrap().ino());
        // The highest process id of Linux is 4194304.
        let (own, none) = (std::process::id(), 4_194_305);
        let left = [
            (format!(".incoming.{here}.{none}"), false),
            (format!(".incoming.{here}.{own}"), true),
            (format!(".incoming.{here}0.{none}"), true),
        ];
        for shell in shells() {
            let dir = tempfile::tempdir().unwrap();
            let hash = crate::ship::hash(PROGRAM);
            let copy = dir.path().join(&hash);
            fs::create_dir(&copy).unwrap();
            for (name, _) in &left {
                fs::write(copy.join(name), "cut").unwrap();
            }
            let words = [hash.as_str(), dir.path().to_str().unwrap(), "user", "-", BUILD];
            let told = printed(&output((Path::new("/usr/bin"), shell), &words, &sent(PROGRAM)));
            assert!(told.contains("\nstarted endpoint"), "{shell}: {told}");
            for (name, stays) in &left {
                assert_eq!(copy.join(name).exists(), *stays, "{shell}: {name}");
            }
        }
    }

    #[test]
    fn a_host_that_has_the_program_of_its_own_architecture_is_sent_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let at = dir.path().to_str().unwrap();
        let (other, hash) = ("0".repeat(64), crate::ship::hash(PROGRAM));
        let start = |input: &[u8]| run(&[&other, at, "user", "-", BUILD], input);
        // The first time it is stored under the hash that is offered.
        assert!(start(&sent(PROGRAM)).contains(&format!("{SEND}\nstarted endpoint")));
        assert!(dir.path().join(&hash).join("rxpath").exists());
        let found = start(offer(PROGRAM.len() as u64, &hash).as_bytes());
        assert!(found.contains("\nstarted endpoint") && !found.contains(SEND), "{found}");
        assert_eq!(fs::read_dir(at).unwrap().count(), 1);
    }

    #[test]
    fn root_needs_no_sudo_and_others_get_it_only_where_it_is_wanted_in_english() {
        let dir = tempfile::tempdir().unwrap();
        let at = dir.path().join("cache");
        let at = at.to_str().unwrap();
        let program = |name: &str, text: &str| {
            executable::write(&dir.path().join(name), format!("#!/bin/sh\n{text}\n"));
        };
        let endpoint = b"#!/bin/sh\necho started\n";
        let hash = crate::ship::hash(endpoint);
        run(&[&hash, at, "user", "-", BUILD], &sent(endpoint));
        program("sudo", "shift 2; echo by sudo $LANGUAGE $LC_ALL; exec \"$@\"");
        let start = |uid: &str, user: &str| {
            program("id", &format!("echo {uid}"));
            run_with(dir.path(), &[&hash, at, user, "-", BUILD], b"")
        };
        assert_eq!(start("1000", "sudo"), format!("by sudo C {LOCALE}\nstarted\n"));
        assert_eq!(start("0", "sudo"), "started\n");
        assert_eq!(start("1000", "user"), "started\n");
    }

    #[test]
    fn where_no_program_may_run_nothing_is_stored() {
        let dir = tempfile::tempdir().unwrap();
        let at = dir.path().join("cache");
        let at = at.to_str().unwrap();
        // Takes the right to run a file away, as a file system that is mounted noexec does.
        let chmod = dir.path().join("chmod");
        executable::write(&chmod, "#!/bin/sh\nexec /bin/chmod 600 \"$2\"\n");
        let hash = crate::ship::hash(b"program");
        let offer = offer(7, &hash);
        let words = [hash.as_str(), at, "user", "-", BUILD];
        let said = output((dir.path(), SHELLS[0]), &words, offer.as_bytes());
        let [printed, errors] = [said.stdout, said.stderr].map(|it| String::from_utf8(it).unwrap());
        assert_eq!(not_stored(&printed), Some(at));
        assert!(!printed.contains(SEND), "{printed}");
        assert_eq!(fs::read_dir(at).unwrap().count(), 0);
        let host = RefusingHost { alias: "sut", dir: Some("/mnt/lab"), ..RefusingHost::default() };
        let text = refusal(&host, &errors).text;
        assert!(text.starts_with("sut: /mnt/lab is mounted noexec"), "{text}: {errors}");
    }

    #[test]
    fn an_installed_program_of_the_same_build_is_started_where_there_is_no_copy() {
        let dir = tempfile::tempdir().unwrap();
        let at = dir.path().to_str().unwrap();
        let installed = dir.path().join("rxpath");
        let start = |build: &str| {
            // It must not read what the endpoint will.
            let text = format!(
                "#!/bin/sh\n[ \"$2\" = --identify ] && {{ cat; echo {build}; exit; }}\necho installed \"$@\"\ncat\n"
            );
            executable::write(&installed, text);
            let hash = "0".repeat(64);
            run_with(dir.path(), &[&hash, at, "user", "lab", BUILD], b"the input")
        };
        assert_eq!(start(BUILD), "installed endpoint --netns lab\nthe input");
        let passed_over = |build: &str| {
            let printed = start(build);
            assert!(printed.lines().last().unwrap().starts_with(NEED), "{printed}");
            passed_over(&printed, BUILD).unwrap()
        };
        let path = installed.display();
        let skewed = format!("{path} is build 0.1.0-ffffffffffff, this is {BUILD}");
        assert_eq!(passed_over("0.1.0-ffffffffffff"), skewed);
        // One that does not know the question.
        let foreign = format!("{path} says no build id, this is {BUILD}");
        assert_eq!(passed_over(""), foreign);
    }
}
