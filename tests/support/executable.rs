//! Programs that a test makes.
//!
//! A child that another test starts at that moment has the open files of this process until it becomes its program. If one of
//! them is a program that is being written, nobody can start it meanwhile (execve(2), ETXTBSY). So another process writes it.

use std::ffi::OsStr;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// Writes a program that everybody may start.
pub fn write(path: &Path, program: impl AsRef<[u8]>) {
    let mut shell = Command::new("sh");
    shell.args(["-c", "cat >\"$0\" && chmod 755 \"$0\""]).arg(path).stdin(Stdio::piped());
    let mut shell = shell.spawn().unwrap();
    shell.stdin.take().unwrap().write_all(program.as_ref()).unwrap();
    assert!(shell.wait().unwrap().success(), "{}", path.display());
}

/// Copies a program.
pub fn copy(from: impl AsRef<OsStr>, to: &Path) {
    let done = Command::new("cp").arg(from).arg(to).status();
    assert!(done.unwrap().success(), "{}", to.display());
}
