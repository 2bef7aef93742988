//! The socket of `rxpath export`: opened when the exporter has no capability any more.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;
use std::process::{Command, Stdio};

use rxpath_host::lab::netns::Namespace;

use crate::bed::Bed;
use crate::exporter::QUICK;

/// What an exporter of this namespace with a socket in this directory says, up to the place of its page or to its end.
fn said_of_a_socket_in(dir: &Path, rx: &Namespace) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rxpath"));
    command.args(["export", "--netns", rx.name(), "--check-every", "0s"]).args(QUICK);
    command.arg("--listen");
    command.arg(format!("unix:{}", dir.join("page").display()));
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut said = String::new();
    for line in lines.map_while(Result::ok) {
        said += &line;
        said.push('\n');
        if said.contains("metrics on unix:") {
            break;
        }
    }
    let _ = child.kill();
    let _ = child.wait();
    said
}

/// Root creates a file in a directory of somebody else by `CAP_DAC_OVERRIDE` alone. So the kernel itself shows what the exporter
/// still had when it opened its socket; a client that connects and then reads `/proc` would come too late.
#[test]
fn the_socket_is_opened_after_the_capabilities_are_gone() {
    let Some((_bed, _tx, rx)) = Bed::wired_with_bpf() else { return };
    let (own, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    chown(other.path(), Some(65534), Some(65534)).unwrap();
    fs::set_permissions(other.path(), PermissionsExt::from_mode(0o755)).unwrap();
    // With them, which this test has, the file can be created.
    fs::write(other.path().join("file"), "").unwrap();
    let said = said_of_a_socket_in(own.path(), &rx);
    assert!(said.contains("metrics on unix:"), "{said}");
    let said = said_of_a_socket_in(other.path(), &rx);
    assert!(said.contains("listen on unix:") && said.contains("Permission denied"), "{said}");
}
