//! A host for a test: the healthy one of `testdata/rules/base`, with files and answers of a NIC laid over it.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use rxpath_host::Root;
use rxpath_tune::{HostFacts, Scope};
use serde_json::Value;

/// The directory of the fixtures.
pub fn dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/rules")
}

/// What is laid over the healthy host.
#[derive(Clone, Debug, Default, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Overlay {
    /// Files by path; they take the place of the host's.
    pub files: BTreeMap<String, String>,
    /// Links by path, to what they point to.
    pub links: BTreeMap<String, String>,
    /// Files and directories that are taken away.
    pub remove: Vec<String>,
    /// Merged into the recorded answers of a device (RFC 7396), by device.
    pub nic: BTreeMap<String, Value>,
}

/// A copy of the healthy host, changed for one question after the other.
pub struct Bench {
    dir: tempfile::TempDir,
}

impl Bench {
    /// The healthy host.
    pub fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        copy(&self::dir().join("base"), dir.path());
        Self { dir }
    }

    /// Asks `question` about the host with `overlay`, and makes it healthy again.
    pub fn with<R>(&self, overlay: &Overlay, question: impl FnOnce(&HostFacts) -> R) -> R {
        self.at(overlay, |root| question(&HostFacts::collect(root, &Scope::default())))
    }

    /// As [`Bench::with`], for a question about the tree.
    pub fn at<R>(&self, overlay: &Overlay, question: impl FnOnce(&Root) -> R) -> R {
        let mut touched: Vec<PathBuf> = Vec::new();
        for path in &overlay.remove {
            let path = self.place(path);
            let gone =
                if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
            gone.unwrap_or_else(|e| panic!("{}: {e}", path.display()));
            touched.push(path);
        }
        for (path, text) in &overlay.files {
            let path = self.place(path);
            put(&path, text);
            touched.push(path);
        }
        for (path, target) in &overlay.links {
            let path = self.place(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            let _ = fs::remove_file(&path);
            symlink(target, &path).unwrap();
            touched.push(path);
        }
        for (dev, patch) in &overlay.nic {
            let path = self.place(&format!("netlink/device/{dev}.json"));
            let mut nic: Value = fs::read(&path)
                .map_or_else(|_| Value::Null, |bytes| serde_json::from_slice(&bytes).unwrap());
            merge(&mut nic, patch);
            put(&path, &nic.to_string());
            touched.push(path);
        }
        let answer = question(&Root::tree(self.dir.path()).unwrap());
        for path in touched {
            self.restore(&path);
        }
        answer
    }

    fn place(&self, path: &str) -> PathBuf {
        self.dir.path().join(path.trim_start_matches('/'))
    }

    /// The healthy host's file or directory; what it does not have goes, with the directories made for it.
    fn restore(&self, path: &Path) {
        let base = self::dir().join("base").join(path.strip_prefix(self.dir.path()).unwrap());
        let _ = fs::remove_file(path);
        if base.is_dir() {
            fs::create_dir_all(path).unwrap();
            copy(&base, path);
        } else if base.is_file() {
            fs::copy(&base, path).unwrap();
        } else if let Ok(to) = fs::read_link(&base) {
            symlink(to, path).unwrap();
        } else {
            let above = path.ancestors().skip(1).take_while(|dir| *dir != self.dir.path());
            // Only a directory that has become empty can be removed.
            above.take_while(|dir| fs::remove_dir(dir).is_ok()).for_each(drop);
        }
    }
}

/// The tree with its links, which may lead nowhere.
pub fn copy(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            fs::create_dir_all(&target).unwrap();
            copy(&entry.path(), &target);
        } else if kind.is_symlink() {
            symlink(fs::read_link(entry.path()).unwrap(), &target).unwrap();
        } else {
            fs::copy(entry.path(), &target).unwrap();
        }
    }
}

fn put(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let _ = fs::remove_file(path);
    fs::write(path, text).unwrap();
}

/// RFC 7396; the text `"<absent>"` takes a fact away and `"<null>"` a field, as TOML has no null.
pub fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(fields) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = Value::Object(serde_json::Map::new());
    }
    let object = target.as_object_mut().unwrap();
    for (name, value) in fields {
        if value == "<absent>" {
            object.insert(name.clone(), serde_json::json!({"state": "absent", "why": "not here"}));
        } else if value == "<null>" {
            object.remove(name);
        } else {
            merge(object.entry(name.clone()).or_insert(Value::Null), value);
        }
    }
}
