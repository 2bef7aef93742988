//! A run directory knows its hosts by their aliases only.

use std::fs;
use std::path::{Path, PathBuf};

use super::site::Site;
use super::site::accounts::{HOST_NAME, USER};

/// No file of a run directory has a name, an address or a key of the hosts, nor the name of a user.
pub fn are_kept(site: &Site, directory: &Path) {
    let known = ["10.78.", "gen1.lab", "sut.lab", "id_ed25519", "ssh_config", "known_hosts"];
    let mut all: Vec<String> =
        [HOST_NAME, USER].iter().chain(&known).map(|it| (*it).to_owned()).collect();
    for device in ["/sys/class/net/mgmt/address", "/sys/class/net/data/address"] {
        all.extend(["gen1", "sut"].map(|alias| site.sysctl(alias, device)));
    }
    let files = files(directory);
    assert!(files.len() > 3, "{files:?}");
    for file in files {
        let bytes = fs::read(&file).unwrap();
        let text = String::from_utf8_lossy(&bytes);
        for secret in &all {
            assert!(!text.contains(secret.as_str()), "{secret} is in {}", file.display());
        }
    }
}

/// The files of a directory and of those in it.
fn files(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).unwrap().flatten().map(|entry| entry.path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}
