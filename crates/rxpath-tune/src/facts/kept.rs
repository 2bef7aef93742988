//! Settings that files keep for the next boot: sysctl.conf and the sysctl.d directories.
//!
//! **Source** sysctl.d(5): a file of a directory named earlier hides one of the same name; files apply in the
//! order of their names, and the last line for a key wins.

use std::collections::BTreeMap;
use std::path::Path;

use rxpath_host::root::Root;

/// Directories, the one that hides the others first.
const DIRS: [&str; 4] =
    ["/etc/sysctl.d", "/run/sysctl.d", "/usr/local/lib/sysctl.d", "/usr/lib/sysctl.d"];

/// The file that procps reads, and systemd does not unless it is linked into a directory.
const CONF: &str = "/etc/sysctl.conf";

/// A line of a file of settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// The file.
    pub file: String,
    /// The setting, with dots.
    pub key: String,
    /// The value, as it is written.
    pub value: String,
}

/// The lines in the order in which they apply; a file that cannot be read has none.
pub(super) fn read(root: &Root) -> Vec<Kept> {
    let mut files: BTreeMap<String, String> = BTreeMap::new();
    for dir in DIRS {
        for name in root.list(dir).unwrap_or_default() {
            if Path::new(&name).extension().is_some_and(|extension| extension == "conf") {
                let path = format!("{dir}/{name}");
                files.entry(name).or_insert(path);
            }
        }
    }
    let paths = files.into_values().chain([CONF.to_owned()]);
    paths
        .flat_map(|path| root.text(&path).map(|text| parse_kept(&path, &text)).unwrap_or_default())
        .collect()
}

/// The lines of one file of settings. What is no setting is left out, as sysctl does with a warning.
pub fn parse_kept(file: &str, text: &str) -> Vec<Kept> {
    let line = |line: &str| {
        let line = line.trim();
        if line.starts_with(['#', ';']) {
            return None;
        }
        let (key, value) = line.split_once('=')?;
        // A dash says that a failure does not matter.
        let key = key.trim().trim_start_matches('-');
        // With a slash first, slashes separate and dots are dots.
        let key = match (key.find('/'), key.find('.')) {
            (Some(slash), Some(dot)) if slash < dot => key.to_owned(),
            (Some(_), None) => key.replace('/', "."),
            _ => key.to_owned(),
        };
        (!key.is_empty()).then(|| Kept {
            file: file.to_owned(),
            key,
            value: value.split_whitespace().collect::<Vec<_>>().join(" "),
        })
    };
    text.lines().filter_map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_file_hides_one_of_its_name_and_the_last_line_wins() {
        let dir = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        put("proc/x", "");
        put("usr/lib/sysctl.d/50-a.conf", "net.core.rmem_max = 1\n");
        put("etc/sysctl.d/50-a.conf", "# mine\n-net/core/rmem_max=2\n; off\nno setting\n");
        put("etc/sysctl.d/10-b.conf", "net.ipv4.tcp_rmem = 4096  87380\t6291456\n");
        put("etc/sysctl.conf", "net/ipv4/conf/eth0.1/rp_filter = 0\n");
        let kept = read(&Root::tree(dir.path()).unwrap());
        let shown: Vec<(&str, &str)> =
            kept.iter().map(|line| (line.key.as_str(), line.value.as_str())).collect();
        assert_eq!(
            shown,
            [
                ("net.ipv4.tcp_rmem", "4096 87380 6291456"),
                ("net.core.rmem_max", "2"),
                ("net/ipv4/conf/eth0.1/rp_filter", "0"),
            ]
        );
        assert!(kept[1].file.starts_with("/etc/"));
    }
}
