//! `make static` where it cannot be made: what is missing, and what to do.

use std::path::Path;
use std::process::Command;

use crate::executable;

/// The script with these variables: its exit status and what it says.
fn made(variables: &[(&str, &str)]) -> (Option<i32>, String) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut command = Command::new(root.join("tools/static.sh"));
    let output = command.envs(variables.iter().copied()).output().unwrap();
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn what_a_static_build_needs_is_named_before_anything_is_built() {
    let here = std::env::consts::ARCH;
    let other = if here == "x86_64" { "aarch64" } else { "x86_64" };
    let (code, said) = made(&[("ARCH", other)]);
    assert_eq!(code, Some(3), "{said}");
    let what = format!(
        "static: this machine is {here}, and a build for {other} is made on a machine that is {other}\n"
    );
    assert!(said.starts_with(&what) && said.contains("hint: run make static there"), "{said}");
    // A compiler prints the name alone of a library that it does not find.
    let dir = tempfile::tempdir().unwrap();
    let compiler = dir.path().join("cc");
    executable::write(&compiler, "#!/bin/sh\necho \"${1#-print-file-name=}\"\n");
    let (code, said) = made(&[("CC", compiler.to_str().unwrap())]);
    assert_eq!(code, Some(3), "{said}");
    let packages = "apt-get install --no-install-recommends libc6-dev libelf-dev zlib1g-dev;";
    assert!(said.contains(packages), "{said}");
}

#[test]
fn a_build_that_is_not_static_fails() {
    let (code, said) = made(&[("RXPATH_BINARY", env!("CARGO_BIN_EXE_rxpath"))]);
    assert!(code == Some(1) && said.contains("has an interpreter: it is not static"), "{said}");
}
