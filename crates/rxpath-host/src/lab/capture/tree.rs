//! Writing the tree: files and the links of sysfs that lead to them.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use super::scrub::Scrubber;
use crate::HostError;

/// More links in a row than any path of sysfs has.
const MAX_LINKS: usize = 16;

/// The tree being written, and what was, in this and in other directories.
#[derive(Debug)]
pub(super) struct Tree<'a> {
    /// Its directory.
    pub base: &'a Path,
    pub files_count: u64,
    pub links_count: u64,
    pub total_bytes: u64,
}

impl<'a> Tree<'a> {
    pub(super) fn new(base: &'a Path) -> Self {
        Self { base, files_count: 0, links_count: 0, total_bytes: 0 }
    }

    /// The place of a path that has no links.
    pub(super) fn plain(&self, path: &str) -> PathBuf {
        self.base.join(path.trim_start_matches('/'))
    }

    /// The place of `path` in the tree.
    ///
    /// Links of sysfs on the way are made in the tree as well: `/sys/class/net/eth0` leads to the device's directory,
    /// and `device/..` from there to its parent. The last part is followed only when `follow` is set.
    pub(super) fn place(
        &mut self,
        scrubber: &mut Scrubber,
        path: &str,
        follow: bool,
    ) -> Result<PathBuf, HostError> {
        if !path.starts_with("/sys/") {
            return Ok(self.plain(&scrubber.name(path)));
        }
        let mut real = PathBuf::from("/");
        let mut open: Vec<String> = path.split('/').rev().map(str::to_owned).collect();
        let mut links = 0;
        while let Some(part) = open.pop() {
            match part.as_str() {
                "" | "." => {}
                ".." => {
                    real.pop();
                }
                _ => {
                    let next = real.join(&part);
                    let is_followed = follow || !open.is_empty();
                    let to = if is_followed { fs::read_link(&next).ok() } else { None };
                    let relative = to.filter(|to| to.is_relative() && links < MAX_LINKS);
                    if let Some(to) = relative {
                        links += 1;
                        let to = to.to_string_lossy().into_owned();
                        let at = self.plain(&scrubber.name(&next.to_string_lossy()));
                        self.link(&at, &scrubber.name(&to))?;
                        open.extend(to.split('/').rev().map(str::to_owned));
                    } else {
                        real = next;
                    }
                }
            }
        }
        Ok(self.plain(&scrubber.name(&real.to_string_lossy())))
    }

    /// Writes a link; one that is there already is the same.
    pub(super) fn link(&mut self, at: &Path, to: &str) -> Result<(), HostError> {
        make_parent(at)?;
        if at.symlink_metadata().is_ok() {
            return Ok(());
        }
        symlink(to, at).map_err(|e| HostError::from_io("write", at, e))?;
        self.links_count += 1;
        Ok(())
    }

    /// Writes a file.
    pub(super) fn write(&mut self, at: &Path, content: &[u8]) -> Result<(), HostError> {
        make_parent(at)?;
        fs::write(at, content).map_err(|e| HostError::from_io("write", at, e))?;
        self.files_count += 1;
        self.total_bytes += content.len() as u64;
        Ok(())
    }
}

fn make_parent(at: &Path) -> Result<(), HostError> {
    let Some(parent) = at.parent() else { return Ok(()) };
    fs::create_dir_all(parent).map_err(|e| HostError::from_io("create", parent, e))
}
