//! The page as a file for the textfile collector of `node_exporter`: replaced as a whole, or not at all.

use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Writes the page; readers see the old one or the new one.
///
/// # Errors
/// When the file's directory cannot be written; the old page stays.
pub fn write(path: &Path, page: &str) -> io::Result<()> {
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // A name that the collector does not take for a page: it reads `*.prom`.
    let mut file = tempfile::Builder::new().prefix(".rxpath-").suffix(".new").tempfile_in(dir)?;
    file.write_all(page.as_bytes())?;
    file.as_file().set_permissions(std::fs::Permissions::from_mode(0o644))?;
    file.persist(path)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_replaced_and_nothing_is_left_beside_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("rxpath.prom");
        write(&path, "a 1\n").unwrap();
        write(&path, "a 2\n").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "a 2\n");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o644);
        let missing = dir.path().join("no/rxpath.prom");
        assert!(write(&missing, "a 3\n").is_err());
    }
}
