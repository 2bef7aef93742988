//! `make static` where it cannot be made: what is missing, and what to do.

use std::path::Path;
use std::process::Command;

use crate::executable;
use crate::program::{Said, said};

/// The script with these variables.
fn made(variables: &[(&str, &str)]) -> Said {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut command = Command::new(root.join("tools/static.sh"));
    said(command.envs(variables.iter().copied()))
}

#[test]
fn what_a_static_build_needs_is_named_before_anything_is_built() {
    let here = std::env::consts::ARCH;
    let other = if here == "x86_64" { "aarch64" } else { "x86_64" };
    let done = made(&[("ARCH", other)]).ends(3).warns("hint: run make static there");
    let what = format!(
        "static: this machine is {here}, and a build for {other} is made on a machine that is {other}\n"
    );
    assert!(done.err.starts_with(&what), "{done:?}");
    // A compiler prints the name alone of a library that it does not find.
    let dir = tempfile::tempdir().unwrap();
    let compiler = dir.path().join("cc");
    executable::write(&compiler, "#!/bin/sh\necho \"${1#-print-file-name=}\"\n");
    let packages = "apt-get install --no-install-recommends libc6-dev libelf-dev zlib1g-dev;";
    made(&[("CC", compiler.to_str().unwrap())]).ends(3).warns(packages);
}

#[test]
fn a_build_that_is_not_static_fails() {
    made(&[("RXPATH_BINARY", env!("CARGO_BIN_EXE_rxpath"))])
        .ends(1)
        .warns("has an interpreter: it is not static");
}
