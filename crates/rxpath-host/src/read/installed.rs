//! Whether a program can be started here.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Whether a program is where a shell would find it. A name with a slash is a path.
pub fn found(program: &str) -> bool {
    if program.contains('/') {
        return runs(Path::new(program));
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|dir| runs(&dir.join(program)))
}

fn runs(path: &Path) -> bool {
    path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_found_as_a_shell_finds_it() {
        assert!(found("true") && found("/bin/true"));
        assert!(!found("no-such-server") && !found("/etc/passwd"), "no program");
    }
}
