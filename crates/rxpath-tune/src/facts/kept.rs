//! Settings that files keep for the next boot: sysctl.conf and the sysctl.d directories.
//!
//! **Source** sysctl.d(5): a file of a directory named earlier hides one of the same name; files apply in the
//! order of their names, and the last line for a key wins.

use std::collections::BTreeMap;

use rxpath_core::IntoMap;
use rxpath_host::lab::capture::sources::{SYSCTL_CONF, SYSCTL_DIRS};
use rxpath_host::read::optional::Optional;
use rxpath_host::read::procfs::sysctl;
use rxpath_host::{Root, glob};

use super::{Gap, RequiredFact};

/// A line of a file of settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// The file.
    pub file: String,
    /// The setting, with dots.
    pub key: String,
    /// The value, as it is written; empty for a line that only excludes.
    pub value: String,
    /// `-key` without a value: patterns leave this key alone, and nothing sets it.
    pub excludes: bool,
}

/// The lines that are in force after boot, by the setting's path: one line for each that the host has or a line names.
///
/// A key that a line names sets it whatever patterns say, and one that a line excludes is left alone (sysctl.d(5);
/// systemd: src/sysctl/sysctl.c `apply_glob_option_with_prefix`). Patterns are those of glob(3).
pub(super) fn in_force(
    kept: &[Kept],
    list: impl Fn(&str) -> Vec<String>,
) -> BTreeMap<String, &Kept> {
    let is_pattern = |line: &&Kept| glob::is_pattern(&line.key);
    let path = |line: &Kept| sysctl::path(&line.key);
    let named: BTreeMap<String, &Kept> =
        kept.iter().filter(|line| !is_pattern(line)).map(|line| (path(line), line)).into_map();
    let mut all = BTreeMap::new();
    for line in kept.iter().filter(is_pattern) {
        for path in glob::expand(&path(line), &list) {
            if !named.contains_key(&path) {
                all.insert(path, line);
            }
        }
    }
    all.extend(named.into_iter().filter(|(_, line)| !line.excludes));
    all
}

/// The lines in the order in which they apply, and why the first file that cannot be read cannot.
///
/// systemd-sysctl reads the directories alone; `/etc/sysctl.conf` counts where a link of a directory leads to it, and on
/// hosts that another init starts, whose procps reads it last.
pub(super) fn read(root: &Root) -> (Vec<Kept>, Option<Gap>) {
    let mut reads = Optional::below(root);
    let is_systemd = root.value("/proc/1/comm").is_ok_and(|comm| comm == "systemd");
    let mut paths = reads.files(&SYSCTL_DIRS, "conf");
    paths.extend((!is_systemd).then(|| SYSCTL_CONF.to_owned()));
    let kept = paths.iter().flat_map(|path| parse_kept(path, &reads.text(path))).collect();
    (kept, reads.whole().known().err())
}

/// The lines of one file of settings. What is no setting is left out, as sysctl does with a warning.
pub fn parse_kept(file: &str, text: &str) -> Vec<Kept> {
    let line = |line: &str| {
        let line = line.trim();
        if line.starts_with(['#', ';']) {
            return None;
        }
        let (key, value, excludes) = match line.split_once('=') {
            Some((key, value)) => (key, value, false),
            None => (line.strip_prefix('-')?, "", true),
        };
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
            excludes,
        })
    };
    text.lines().filter_map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_pattern_leaves_alone_what_is_named_or_excluded() {
        let text = "net.ipv4.conf.*.rp_filter = 2\n-net.ipv4.conf.all.rp_filter\n\
                    net.ipv4.conf.hub0.rp_filter = 1\n-net.core.no_such = 3\n";
        let kept = parse_kept("x.conf", text);
        let list = |dir: &str| match dir {
            "/proc/sys/net/ipv4/conf" => ["all", "eth0", "hub0"].map(str::to_owned).to_vec(),
            _ => Vec::new(),
        };
        let shown: Vec<(String, &str)> = in_force(&kept, list)
            .into_iter()
            .map(|(path, line)| (path.replace("/proc/sys/", ""), line.value.as_str()))
            .collect();
        let wanted = [
            ("net/core/no_such", "3"),
            ("net/ipv4/conf/eth0/rp_filter", "2"),
            ("net/ipv4/conf/hub0/rp_filter", "1"),
        ];
        assert_eq!(shown, wanted.map(|(path, value)| (path.to_owned(), value)));
    }

    #[test]
    fn classes_name_the_devices_that_they_hold() {
        let text = "net.ipv4.conf.eth[0-1].rp_filter = 2\nnet.ipv6.conf.[!l]*[[:digit:]].forwarding = 1\n\
                    net.ipv4.neigh.eth[2.gc_stale_time = 5\n";
        let kept = parse_kept("x.conf", text);
        let list = |dir: &str| match dir {
            "/proc/sys/net/ipv4/conf" | "/proc/sys/net/ipv6/conf" => {
                ["all", "eth0", "eth1", "eth2", "lo", "lan1"].map(str::to_owned).to_vec()
            }
            "/proc/sys/net/ipv4/neigh" => vec!["eth2".to_owned()],
            _ => Vec::new(),
        };
        let paths: Vec<String> = in_force(&kept, list)
            .into_keys()
            .map(|path| path.trim_start_matches("/proc/sys/net/").to_owned())
            .collect();
        let wanted = [
            "ipv4/conf/eth0/rp_filter",
            "ipv4/conf/eth1/rp_filter",
            "ipv6/conf/eth0/forwarding",
            "ipv6/conf/eth1/forwarding",
            "ipv6/conf/eth2/forwarding",
        ];
        assert_eq!(paths, wanted);
    }

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
        let (kept, gap) = read(&Root::tree(dir.path()).unwrap());
        assert_eq!(gap, None);
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
        // systemd reads the file where a link leads to it, and then once.
        put("proc/1/comm", "systemd\n");
        let count = || read(&Root::tree(dir.path()).unwrap()).0.len();
        assert_eq!(count(), 2);
        std::os::unix::fs::symlink(
            "../sysctl.conf",
            dir.path().join("etc/sysctl.d/99-sysctl.conf"),
        )
        .unwrap();
        assert_eq!(count(), 3);
    }

    #[test]
    fn a_file_that_cannot_be_read_is_not_an_empty_one() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("proc")).unwrap();
        // A directory by the name of a file: no privilege opens it as one.
        fs::create_dir_all(dir.path().join("etc/sysctl.d/50-a.conf")).unwrap();
        let (kept, gap) = read(&Root::tree(dir.path()).unwrap());
        assert!(kept.is_empty() && gap.is_some(), "{gap:?}");
    }
}
