//! The runs that are kept for tests.

use std::fs;
use std::path::{Path, PathBuf};

/// A copy of one that may be written into.
pub fn copy(name: &str, dir: &Path) -> PathBuf {
    let copy = dir.join(name);
    fs::create_dir(&copy).unwrap();
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/runs").join(name);
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        fs::copy(&path, copy.join(path.file_name().unwrap())).unwrap();
    }
    copy
}

/// Writes `to` for the first `from`, which must be there.
pub fn edit(path: &Path, from: &str, to: &str) {
    let text = fs::read_to_string(path).unwrap();
    assert!(text.contains(from), "{}: {from}", path.display());
    fs::write(path, text.replacen(from, to, 1)).unwrap();
}
