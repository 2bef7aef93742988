//! Which files a capture holds.
//!
//! A file that a rule or a reader wants is one line of `sources.txt`. Not captured, whatever the options: keys, socket tables
//! (`/proc/net/tcp`), routes and neighbours, command lines and environments of programs, serial numbers.

use std::borrow::Cow;

use crate::read::startup::{SCRIPTS, UDEV};
use crate::{Root, glob, listed};

/// How a source is read and written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceKind {
    /// Text, as it is.
    File,
    /// Text, as it is, and a second time into `later/`.
    Counters,
    /// A version: `5.10.0.27` is no address.
    Version,
    /// Bytes without names in them.
    Binary,
    /// Everything below a directory.
    Below,
    /// Where a link points to.
    Link,
    /// A file of settings: comments are left out when names are replaced.
    Settings,
    /// The kernel's command line: only parameters that matter are kept when names are replaced.
    CommandLine,
    /// A start-up file: only the settings that it names are kept when names are replaced
    /// (`startup::names_only`).
    Startup,
}

/// One source.
#[derive(Clone, Debug)]
pub struct Source {
    /// Path; `*` stands for any text within one part of it.
    pub pattern: Cow<'static, str>,
    /// How it is read.
    pub sort: SourceKind,
}

/// Directories of sysctl.d(5), the one that hides the others first. `/lib` is `/usr/lib` wherever systemd runs.
pub const SYSCTL_DIRS: [&str; 4] =
    ["/etc/sysctl.d", "/run/sysctl.d", "/usr/local/lib/sysctl.d", "/usr/lib/sysctl.d"];

/// The file that procps reads, and systemd does not unless it is linked into one of the directories.
pub const SYSCTL_CONF: &str = "/etc/sysctl.conf";

/// Directories of systemd.link(5), the one that hides the others first.
pub const LINK_DIRS: [&str; 4] = [
    "/etc/systemd/network",
    "/run/systemd/network",
    "/usr/local/lib/systemd/network",
    "/usr/lib/systemd/network",
];

/// Names that hold keys, or addresses as their whole content.
const SECRET: [&str; 6] =
    ["tcp_fastopen_key", "stable_secret", "netdev_rss_key", "address", "broadcast", "bridge_id"];

/// Sections of `sources.txt`.
const SECTIONS: [(&str, SourceKind); 7] = [
    ("[version]", SourceKind::Version),
    ("[counters]", SourceKind::Counters),
    ("[file]", SourceKind::File),
    ("[binary]", SourceKind::Binary),
    ("[below]", SourceKind::Below),
    ("[link]", SourceKind::Link),
    ("[settings]", SourceKind::Settings),
];

/// The sources of `sources.txt`.
fn listed() -> Vec<Source> {
    let mut sort = SourceKind::File;
    let mut all = Vec::new();
    for line in listed::lines(include_str!("sources.txt")) {
        match SECTIONS.iter().find(|(section, _)| *section == line) {
            Some((_, of_section)) => sort = *of_section,
            None => all.push(Source { pattern: Cow::Borrowed(line), sort }),
        }
    }
    all
}

/// All sources.
pub fn all() -> Vec<Source> {
    let mut all = vec![Source { pattern: "/proc/cmdline".into(), sort: SourceKind::CommandLine }];
    let in_dirs = |dirs: [&str; 4], extension: &str, sort| {
        dirs.map(|dir| Source { pattern: format!("{dir}/*.{extension}").into(), sort })
    };
    all.extend(in_dirs(SYSCTL_DIRS, "conf", SourceKind::Settings));
    all.extend(in_dirs(LINK_DIRS, "link", SourceKind::Settings));
    // A distribution's own too, because only those that name a setting are kept.
    all.extend(in_dirs(UDEV, "rules", SourceKind::Startup));
    all.extend(listed());
    let scripts =
        SCRIPTS.map(|pattern| Source { pattern: pattern.into(), sort: SourceKind::Startup });
    all.extend(scripts);
    all
}

/// Whether a capture takes this path, lists it on the way to one that it takes, or holds it below a directory that it
/// takes whole: what a rule reads and a capture does not take is judged differently from a tree.
pub fn takes(path: &str) -> bool {
    all().iter().any(|source| {
        let wanted: Vec<&str> = source.pattern.split('/').collect();
        let parts: Vec<&str> = path.split('/').collect();
        let fits = wanted.iter().zip(&parts).all(|(wanted, part)| glob::is_match(wanted, part));
        fits && (parts.len() <= wanted.len() || source.sort == SourceKind::Below)
    })
}

/// Whether a file's name says that it holds a secret.
pub(crate) fn is_secret(name: &str) -> bool {
    SECRET.contains(&name)
}

/// The paths that a pattern stands for; a link at the end need not lead anywhere.
pub fn expand(root: &Root, pattern: &str) -> Vec<String> {
    glob::expand(pattern, |dir| root.list(dir).unwrap_or_default())
}

/// The part of a binary file that is kept: the first 256 bytes of PCI configuration hold what is read, and what
/// follows can hold the device's serial number (its address).
pub fn cut(mut bytes: Vec<u8>) -> Vec<u8> {
    const PCI_CONFIG: usize = 4096;
    if bytes.len() == PCI_CONFIG {
        bytes.truncate(256);
    }
    bytes
}

/// A settings file without its comments: they are where people write about themselves.
pub(crate) fn without_comments(text: &str) -> String {
    let kept = text.lines().filter(|line| !line.trim_start().starts_with(['#', ';']));
    kept.flat_map(|line| [line, "\n"]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_stand_for_what_is_there() {
        let dir = tempfile::tempdir().unwrap();
        for path in ["proc", "sys/class/net/eth0", "sys/class/net/eth1", "sys/class/net/lo"] {
            std::fs::create_dir_all(dir.path().join(path)).unwrap();
        }
        let root = Root::tree(dir.path()).unwrap();
        let found = expand(&root, "/sys/class/net/eth*/mtu");
        assert_eq!(found, ["/sys/class/net/eth0/mtu", "/sys/class/net/eth1/mtu"]);
        assert_eq!(expand(&root, "/proc/stat"), ["/proc/stat"]);
        assert!(expand(&root, "/no/*/thing").is_empty());
    }

    #[test]
    fn each_line_of_the_list_is_a_section_or_a_path() {
        let all = listed();
        assert!(all.iter().all(|source| source.pattern.starts_with('/')), "{all:?}");
        for (section, sort) in SECTIONS {
            assert!(all.iter().any(|source| source.sort == sort), "{section} is empty");
        }
    }

    #[test]
    fn comments_and_serial_numbers_are_cut() {
        let text = "# set by Ann\nnet.core.rmem_max = 1\n  ; more\n";
        assert_eq!(without_comments(text), "net.core.rmem_max = 1\n");
        assert_eq!(cut(vec![0; 4096]).len(), 256);
        assert_eq!(cut(vec![0; 5000]).len(), 5000);
    }

    #[test]
    fn no_pattern_leads_to_an_address_or_a_key() {
        for source in all() {
            let name = source.pattern.rsplit('/').next().unwrap();
            assert!(!["address", "dev_id", "phys_port_id", "ifalias"].contains(&name));
        }
        assert!(is_secret("tcp_fastopen_key") && is_secret("address"));
    }
}
