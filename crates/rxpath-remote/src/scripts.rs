//! The two lines of shell that run on a host: start the endpoint, store the binary.
//!
//! No user's word is in them; the words after them are checked where they are made. One line, no exclamation mark, no
//! single quote and no backslash: sh, bash, zsh, fish and csh all pass the quoted line on unchanged.

/// Starts the endpoint whose hash is `$1`, from directory `$2` (`-`: the cache), by sudo if `$3` is `sudo`, in network
/// namespace `$4` (`-`: none); or prints what is missing.
pub(crate) const START: &str = concat!(
    "d=$2; [ \"$d\" = - ] && d=${XDG_CACHE_HOME:-$HOME/.cache}/rxpath; f=$d/$1/rxpath; ",
    "if [ -f \"$f\" ]; then s=$(sha256sum <\"$f\"); if [ \"${s%% *}\" = \"$1\" ]; then ",
    "u=$3; n=$4; set -- \"$f\" endpoint; [ \"$n\" = - ] || set -- \"$@\" --netns \"$n\"; ",
    "[ \"$u\" = sudo ] && set -- sudo -n -- \"$@\"; exec \"$@\"; fi; fi; ",
    "echo \"@@rxpath-need $(uname -m)\"",
);

/// Stores standard input as the binary whose hash is `$1`, in directory `$2` (`-`: the cache).
pub(crate) const STORE: &str = concat!(
    "umask 077; d=$2; [ \"$d\" = - ] && d=${XDG_CACHE_HOME:-$HOME/.cache}/rxpath; d=$d/$1; ",
    "mkdir -p \"$d\" && t=$d/.incoming.$$ && if cat >\"$t\" && s=$(sha256sum <\"$t\") && ",
    "[ \"${s%% *}\" = \"$1\" ] && chmod 500 \"$t\" && mv -f \"$t\" \"$d/rxpath\"; ",
    "then echo @@rxpath-stored; else rm -f \"$t\"; fi",
);

/// What START prints if the binary is not there, before the machine's architecture.
pub(crate) const NEED: &str = "@@rxpath-need ";
/// What STORE prints if it succeeded.
pub(crate) const STORED: &str = "@@rxpath-stored";

/// A remote command line: the script and its words.
pub(crate) fn line(script: &str, words: &[&str]) -> String {
    format!("exec /bin/sh -c '{script}' rxpath {}", words.join(" "))
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn no_shell_takes_a_part_of_a_script_for_its_own() {
        for script in [START, STORE] {
            assert!(!script.contains(['!', '\'', '\\', '\n']), "{script}");
        }
    }

    fn run(script: &str, words: &[&str], input: &[u8]) -> String {
        let line = line(script, words);
        let mut child = Command::new("sh")
            .args(["-c", &line])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(input).unwrap();
        String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap()
    }

    #[test]
    fn a_binary_is_stored_under_its_hash_and_started_only_with_it() {
        let dir = tempfile::tempdir().unwrap();
        let at = dir.path().to_str().unwrap();
        let program = b"#!/bin/sh\necho started \"$@\"\n";
        let hash = crate::ship::hash(program);
        assert!(run(START, &[&hash, at, "user", "-"], b"").starts_with(NEED));
        assert_eq!(run(STORE, &[&hash, at], b"damaged"), "");
        assert!(run(START, &[&hash, at, "user", "-"], b"").starts_with(NEED));
        assert_eq!(run(STORE, &[&hash, at], program).trim(), STORED);
        assert_eq!(run(START, &[&hash, at, "user", "-"], b"").trim(), "started endpoint");
        let inside = run(START, &[&hash, at, "user", "lab"], b"");
        assert_eq!(inside.trim(), "started endpoint --netns lab");
        let stored = dir.path().join(&hash).join("rxpath");
        let mut rights = std::fs::metadata(&stored).unwrap().permissions();
        std::os::unix::fs::PermissionsExt::set_mode(&mut rights, 0o700);
        std::fs::set_permissions(&stored, rights).unwrap();
        std::fs::write(&stored, "#!/bin/sh\necho something else\n").unwrap();
        assert!(run(START, &[&hash, at, "user", "-"], b"").starts_with(NEED));
        let left = std::fs::read_dir(dir.path().join(&hash)).unwrap().count();
        assert_eq!(left, 1, "nothing but the binary");
    }
}
