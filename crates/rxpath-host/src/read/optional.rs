//! Files and directories that need not be there: only a missing or a masked one is empty.

use std::collections::BTreeMap;
use std::path::Path;

use rxpath_core::Fact;

use crate::{HostError, Root};

/// Reads of files that need not be there.
pub struct Optional<'a> {
    root: &'a Root,
    unread: Option<HostError>,
}

impl<'a> Optional<'a> {
    /// Nothing was read yet.
    pub fn below(root: &'a Root) -> Self {
        Self { root, unread: None }
    }

    /// The names in a directory.
    pub fn list(&mut self, dir: &str) -> Vec<String> {
        let read = self.root.list(dir);
        self.noted(read)
    }

    /// The files of directories with an extension, in the order of their names; a directory hides those of the same name
    /// in the ones after it.
    pub fn files(&mut self, dirs: &[&str], extension: &str) -> Vec<String> {
        let mut files = BTreeMap::new();
        for dir in dirs {
            for name in self.list(dir) {
                if Path::new(&name).extension().is_some_and(|own| own == extension) {
                    let path = format!("{dir}/{name}");
                    files.entry(name).or_insert(path);
                }
            }
        }
        files.into_values().collect()
    }

    /// A file; bytes that are not UTF-8 become U+FFFD.
    ///
    /// A link to `/dev/null` masks a file of less rank by its name: it is empty (udev(7), sysctl.d(5), systemd.link(5)).
    pub fn text(&mut self, path: &str) -> String {
        if self.root.link(path).is_ok_and(|to| to == Path::new("/dev/null")) {
            return String::new();
        }
        let read = self.root.bytes(path);
        String::from_utf8_lossy(&self.noted(read)).into_owned()
    }

    /// Whether all that is there could be read; a gap says why the first that could not be read could not.
    pub fn whole(self) -> Fact<()> {
        self.unread.map_or(Fact::Ok { value: () }, HostError::into_gap)
    }

    fn noted<T: Default>(&mut self, read: Result<T, HostError>) -> T {
        read.unwrap_or_else(|error| {
            if self.unread.is_none() && !matches!(error, HostError::Missing { .. }) {
                self.unread = Some(error);
            }
            T::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_or_masked_is_empty_and_what_cannot_be_read_is_not() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("proc")).unwrap();
        std::fs::create_dir_all(dir.path().join("etc/a-file")).unwrap();
        std::fs::write(dir.path().join("etc/a-directory"), "").unwrap();
        let root = Root::tree(dir.path()).unwrap();
        let unread = |read: &dyn Fn(&mut Optional<'_>)| {
            let mut reads = Optional::below(&root);
            read(&mut reads);
            reads.whole().gap()
        };
        assert_eq!(unread(&|reads| drop((reads.list("/run/x"), reads.text("/etc/x")))), None);
        std::os::unix::fs::symlink("/dev/null", dir.path().join("etc/masked")).unwrap();
        std::fs::write(dir.path().join("etc/bytes"), b"a\xffb").unwrap();
        assert_eq!(unread(&|reads| assert_eq!(reads.text("/etc/masked"), "")), None);
        assert_eq!(unread(&|reads| assert!(reads.text("/etc/bytes").starts_with('a'))), None);
        // One in the place of the other: no privilege reads it.
        let file = unread(&|reads| drop((reads.text("/etc/a-file"), reads.text("/etc/x"))));
        assert!(file.is_some_and(|text| text.contains("a-file")));
        let list = unread(&|reads| drop(reads.list("/etc/a-directory")));
        assert!(list.is_some_and(|text| text.contains("a-directory")));
    }
}
