//! The built program without its symbols, which are a third of it and more: what tests send to hosts.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

use crate::executable;

const BUILT: &str = env!("CARGO_BIN_EXE_rxpath");

/// Copies it. Where there is no `strip`, the copy has its symbols.
pub fn copy(to: &Path) {
    static STRIPPED: OnceLock<Option<File>> = OnceLock::new();
    match STRIPPED.get_or_init(strip) {
        Some(file) => {
            executable::copy(format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd()), to);
        }
        None => executable::copy(BUILT, to),
    }
}

/// Once for all tests of a program. The file loses its name: nobody would remove it at the end.
fn strip() -> Option<File> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("rxpath");
    let done = Command::new("strip").arg("-o").arg(&path).arg(BUILT).status();
    done.is_ok_and(|status| status.success()).then(|| File::open(path).unwrap())
}
