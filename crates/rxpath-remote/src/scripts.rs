//! The two lines of shell that run on a host: start the endpoint, store the binary.
//!
//! No user's word is in them; the words after them are checked where they are made. One line, no exclamation mark, no
//! single quote and no backslash: sh, bash, zsh, fish and csh all pass the quoted line on unchanged.

/// Starts the endpoint whose hash is `$1`, from directory `$2` (`-`: the cache), as root if `$3` is `sudo`, in network
/// namespace `$4` (`-`: none); else an installed rxpath whose build id is `$5`; or prints what is missing, and which
/// installed one it passed over.
pub(crate) const START: &str = concat!(
    "w=; d=$2; [ \"$d\" = - ] && d=${XDG_CACHE_HOME:-$HOME/.cache}/rxpath; f=$d/$1/rxpath; ",
    "s=; [ -f \"$f\" ] && s=$(sha256sum <\"$f\"); [ \"${s%% *}\" = \"$1\" ] || f=; ",
    "if [ -z \"$f\" ] && i=$(command -v rxpath); then ",
    "b=$(\"$i\" endpoint --identify </dev/null 2>/dev/null); ",
    "[ \"$b\" = \"$5\" ] && f=$i || w=\"${b:--} $i\"; fi; ",
    "if [ -n \"$f\" ]; then u=$3; n=$4; set -- \"$f\" endpoint; ",
    "[ \"$n\" = - ] || set -- \"$@\" --netns \"$n\"; ",
    "[ \"$u\" = sudo ] && { [ \"$(id -u)\" = 0 ] || set -- sudo -n -- \"$@\"; }; exec \"$@\"; fi; ",
    "echo \"@@rxpath-need $(uname -m)\"; [ -z \"$w\" ] || echo \"@@rxpath-passed-over $w\"",
);

/// Stores standard input as the binary whose hash is `$1`, in directory `$2` (`-`: the cache). It first runs an empty file
/// there: on a file system that lets no program run, nothing is sent. What failed leaves nothing but `$2`.
pub(crate) const STORE: &str = concat!(
    "umask 077; LC_ALL=C; export LC_ALL; d=$2; ",
    "[ \"$d\" = - ] && d=${XDG_CACHE_HOME:-$HOME/.cache}/rxpath; d=$d/$1; t=$d/.incoming.$$; ",
    "if mkdir -p \"$d\" && true >\"$t\" && chmod 700 \"$t\" && ",
    "{ \"$t\" </dev/null || { echo @@rxpath-noexec >&2; false; }; } && ",
    "cat >\"$t\" && s=$(sha256sum <\"$t\") && ",
    "[ \"${s%% *}\" = \"$1\" ] && chmod 500 \"$t\" && mv -f \"$t\" \"$d/rxpath\"; ",
    "then echo @@rxpath-stored; else rm -f \"$t\"; rmdir \"$d\" 2>/dev/null; ",
    "echo \"@@rxpath-not-stored ${d%/*}\"; fi",
);

/// What START prints if the binary is not there, before the machine's architecture.
pub(crate) const NEED: &str = "@@rxpath-need ";
/// What START then prints of an installed program, before its build id (`-`: it says none) and its path.
pub(crate) const PASSED_OVER: &str = "@@rxpath-passed-over ";
/// What STORE prints if it succeeded.
pub(crate) const STORED: &str = "@@rxpath-stored";
/// What STORE prints if it failed, before the directory.
pub(crate) const NOT_STORED: &str = "@@rxpath-not-stored ";

/// A remote command line: the script and its words.
pub(crate) fn line(script: &str, words: &[&str]) -> String {
    format!("exec /bin/sh -c '{script}' rxpath {}", words.join(" "))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write;
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;
    use std::process::{Command, Output, Stdio};

    use super::*;
    use crate::refusal::{RefusingHost, refusal};
    use crate::ssh::passed_over;

    #[test]
    fn no_shell_takes_a_part_of_a_script_for_its_own() {
        for script in [START, STORE] {
            assert!(!script.contains(['!', '\'', '\\', '\n']), "{script}");
        }
    }

    const BUILD: &str = "0.1.0-0123456789ab";

    fn run(script: &str, words: &[&str], input: &[u8]) -> String {
        run_with(Path::new("/usr/bin"), script, words, input)
    }

    /// With one more directory of programs.
    fn run_with(programs: &Path, script: &str, words: &[&str], input: &[u8]) -> String {
        String::from_utf8(output(programs, script, words, input).stdout).unwrap()
    }

    fn output(programs: &Path, script: &str, words: &[&str], input: &[u8]) -> Output {
        let line = line(script, words);
        let mut child = Command::new("sh")
            .args(["-c", &line])
            .env("PATH", format!("{}:/usr/bin:/bin", programs.display()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(input).unwrap();
        child.wait_with_output().unwrap()
    }

    #[test]
    fn a_binary_is_stored_under_its_hash_and_started_only_with_it() {
        let dir = tempfile::tempdir().unwrap();
        let at = dir.path().to_str().unwrap();
        let program = b"#!/bin/sh\necho started \"$@\"\n";
        let hash = crate::ship::hash(program);
        assert!(run(START, &[&hash, at, "user", "-", BUILD], b"").starts_with(NEED));
        assert_eq!(run(STORE, &[&hash, at], b"damaged").trim(), format!("{NOT_STORED}{at}"));
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0, "nothing of it is left");
        assert!(run(START, &[&hash, at, "user", "-", BUILD], b"").starts_with(NEED));
        assert_eq!(run(STORE, &[&hash, at], program).trim(), STORED);
        assert_eq!(run(START, &[&hash, at, "user", "-", BUILD], b"").trim(), "started endpoint");
        let inside = run(START, &[&hash, at, "user", "lab", BUILD], b"");
        assert_eq!(inside.trim(), "started endpoint --netns lab");
        let stored = dir.path().join(&hash).join("rxpath");
        let mut rights = std::fs::metadata(&stored).unwrap().permissions();
        std::os::unix::fs::PermissionsExt::set_mode(&mut rights, 0o700);
        std::fs::set_permissions(&stored, rights).unwrap();
        std::fs::write(&stored, "#!/bin/sh\necho something else\n").unwrap();
        assert!(run(START, &[&hash, at, "user", "-", BUILD], b"").starts_with(NEED));
        let left = std::fs::read_dir(dir.path().join(&hash)).unwrap().count();
        assert_eq!(left, 1, "nothing but the binary");
    }

    #[test]
    fn root_needs_no_sudo_and_others_get_it_only_where_it_is_wanted() {
        let dir = tempfile::tempdir().unwrap();
        let at = dir.path().join("cache");
        let at = at.to_str().unwrap();
        let program = |name: &str, text: &str| {
            let path = dir.path().join(name);
            fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        };
        let endpoint = b"#!/bin/sh\necho started\n";
        let hash = crate::ship::hash(endpoint);
        run(STORE, &[&hash, at], endpoint);
        program("sudo", "shift 2; echo by sudo; exec \"$@\"");
        let start = |uid: &str, user: &str| {
            program("id", &format!("echo {uid}"));
            run_with(dir.path(), START, &[&hash, at, user, "-", BUILD], b"")
        };
        assert_eq!(start("1000", "sudo"), "by sudo\nstarted\n");
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
        fs::write(&chmod, "#!/bin/sh\nexec /bin/chmod 600 \"$2\"\n").unwrap();
        fs::set_permissions(&chmod, fs::Permissions::from_mode(0o755)).unwrap();
        let hash = crate::ship::hash(b"program");
        let said = output(dir.path(), STORE, &[&hash, at], b"");
        let [printed, errors] = [said.stdout, said.stderr].map(|it| String::from_utf8(it).unwrap());
        assert_eq!(printed.trim(), format!("{NOT_STORED}{at}"));
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
            fs::write(&installed, text).unwrap();
            fs::set_permissions(&installed, fs::Permissions::from_mode(0o755)).unwrap();
            let hash = "0".repeat(64);
            run_with(dir.path(), START, &[&hash, at, "user", "lab", BUILD], b"the input")
        };
        assert_eq!(start(BUILD), "installed endpoint --netns lab\nthe input");
        let passed_over = |build: &str| {
            let printed = start(build);
            assert!(printed.starts_with(NEED), "{printed}");
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
