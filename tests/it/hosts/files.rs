//! Files of a tree.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use rxpath_host::read::nic::{Nic, device_path};

/// Files below a directory.
pub struct Tree<'a> {
    base: &'a Path,
    made: BTreeSet<String>,
}

impl<'a> Tree<'a> {
    pub fn new(base: &'a Path) -> Self {
        Self { base, made: BTreeSet::new() }
    }

    /// The place of a path, whose directory is made.
    fn place(&mut self, path: &str) -> PathBuf {
        let dir = path.rsplit_once('/').map_or("", |(dir, _)| dir);
        if self.made.insert(dir.to_owned()) {
            fs::create_dir_all(self.base.join(dir.trim_start_matches('/'))).unwrap();
        }
        self.base.join(path.trim_start_matches('/'))
    }

    pub fn put(&mut self, path: &str, text: &str) {
        let at = self.place(path);
        fs::write(&at, text).unwrap_or_else(|error| panic!("{path}: {error}"));
    }

    pub fn link(&mut self, path: &str, to: &str) {
        let at = self.place(path);
        symlink(to, &at).unwrap_or_else(|error| panic!("{path}: {error}"));
    }

    pub fn answers(&mut self, base: &str, name: &str, nic: &Nic) {
        let text = serde_json::to_string(nic).unwrap();
        self.put(&format!("{base}{}", device_path(name)), &text);
    }
}
