//! The page as a file for the textfile collector of `node_exporter`: replaced as a whole, or not at all.

use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

// A name that the collector does not take for a page: it reads `*.prom`.
const PREFIX: &str = ".rxpath-";
const SUFFIX: &str = ".new";

/// Writes the page; readers see the old one or the new one.
///
/// # Errors
/// When the file's directory cannot be written; the old page stays.
pub fn write(path: &Path, page: &str) -> io::Result<()> {
    let mut file =
        tempfile::Builder::new().prefix(PREFIX).suffix(SUFFIX).tempfile_in(folder(path))?;
    file.write_all(page.as_bytes())?;
    file.as_file().set_permissions(std::fs::Permissions::from_mode(0o644))?;
    file.persist(path)?;
    Ok(())
}

/// Removes what exporters left next to the file when they were killed while they wrote. A page is written in milliseconds, so what is
/// older than a minute is no live exporter's.
pub fn remove_left(path: &Path) {
    for entry in std::fs::read_dir(folder(path)).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let is_page = name.to_str().is_some_and(|n| n.starts_with(PREFIX) && n.ends_with(SUFFIX));
        let age = || entry.metadata().ok()?.modified().ok()?.elapsed().ok();
        if is_page && age().is_some_and(|age| age > Duration::from_secs(60)) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

fn folder(path: &Path) -> &Path {
    path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."))
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

    #[test]
    fn what_a_killed_exporter_left_is_removed_once_it_is_old() {
        let dir = tempfile::tempdir().unwrap();
        let [old, new, other] =
            [".rxpath-a.new", ".rxpath-b.new", "other.prom"].map(|name| dir.path().join(name));
        let hour_ago = std::time::SystemTime::now() - Duration::from_secs(3600);
        for (path, time) in [(&old, Some(hour_ago)), (&new, None), (&other, Some(hour_ago))] {
            let file = std::fs::File::create(path).unwrap();
            if let Some(time) = time {
                file.set_modified(time).unwrap();
            }
        }
        remove_left(&dir.path().join("rxpath.prom"));
        assert_eq!([&old, &new, &other].map(|path| path.exists()), [false, true, true]);
    }
}
