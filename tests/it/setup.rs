//! `tools/setup.sh`: what Go cannot build is named, and nothing that it downloaded is left.

use std::fs;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

use crate::executable;
use crate::program::{Said, said};

/// What the goal needs besides Go: here no package is missing, and none can be installed.
const THERE: [&str; 10] =
    ["apt-get", "cc", "make", "clang", "pkg-config", "nft", "unshare", "ip", "cargo", "rustc"];
const SILENT: &str = "#!/bin/sh\n[ \"${0##*/}\" != rustc ] || echo rustc 9.9.9\n";

/// The tools of the goal `monitoring` in this directory, with a Go of this version that reaches no module.
fn made(dir: &TempDir, version: &str) -> Said {
    let bin = dir.path().join("bin");
    fs::create_dir_all(&bin).unwrap();
    for program in THERE {
        executable::write(&bin.join(program), SILENT);
    }
    // As Go does, it leaves a directory that cannot be written.
    let go = format!(
        "#!/bin/sh\n\
         case $1$2 in\n\
         version) echo go version go{version} linux/amd64 ;;\n\
         version-m) exit 1 ;;\n\
         install*) mkdir -p \"$GOMODCACHE/one\" && touch \"$GOMODCACHE/one/go.mod\" && chmod -R a-w \"$GOMODCACHE\"\n\
         printf 'go: downloading\\ngo: no such host\\n' >&2; exit 1 ;;\n\
         esac\n"
    );
    executable::write(&bin.join("go"), go);
    let tool = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools/setup.sh");
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap_or_default());
    let mut command = Command::new(tool);
    said(command.arg("monitoring").current_dir(dir.path()).env("PATH", path))
}

#[test]
fn an_old_go_is_refused_before_anything_is_downloaded() {
    let dir = tempfile::tempdir().unwrap();
    let done = made(&dir, "1.19.8").ends(3);
    let first = "setup: go is 1.19.8; monitoring needs 1.21 or newer\nhint: ";
    assert!(done.err.starts_with(first), "{done:?}");
    assert!(!dir.path().join("target").exists());
}

#[test]
fn without_a_network_the_reason_is_one_line_and_no_download_is_left() {
    let dir = tempfile::tempdir().unwrap();
    let done = made(&dir, "1.26.8").ends(3);
    let why: Vec<&str> = done.err.lines().filter(|line| line.contains(": cannot ")).collect();
    let [why] = why[..] else { panic!("{done:?}") };
    assert!(why.starts_with("setup: cannot build vmalert-tool v"), "{why}");
    assert!(why.ends_with(": go: no such host"), "{why}");
    assert_eq!(fs::read_dir(dir.path().join("target")).unwrap().count(), 0, "{done:?}");
}
