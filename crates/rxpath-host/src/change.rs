//! One setting of the host: what was asked, what was there, what came of it.
//!
//! A success code is not a change: drivers round, ignore and refuse. So every setting is read back and
//! compared. This module writes; it must not decide what to write.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::HostError;

/// What can be set.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Target {
    /// A sysctl by its dotted name.
    Sysctl {
        /// `net.ipv4.udp_rmem_min`.
        key: String,
    },
    /// A sysfs attribute.
    Sysfs {
        /// `/sys/class/net/eth0/threaded`.
        path: PathBuf,
    },
    /// An offload feature of a device.
    Feature {
        /// The device.
        dev: String,
        /// The kernel's name: `rx-gro`.
        name: String,
    },
}

impl Target {
    /// The file behind it, for those that are files.
    pub fn path(&self) -> Option<PathBuf> {
        match self {
            Self::Sysctl { key } => Some(sysctl_path(key)),
            Self::Sysfs { path } => Some(path.clone()),
            Self::Feature { .. } => None,
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sysctl { key } => f.write_str(key),
            Self::Sysfs { path } => write!(f, "{}", path.display()),
            Self::Feature { dev, name } => write!(f, "{dev} {name}"),
        }
    }
}

/// What came of a setting.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "kebab-case")]
pub enum Outcome {
    /// It reads back as asked.
    Applied,
    /// It reads back as another number than before, not the one asked for.
    Rounded,
    /// The write succeeded and changed nothing.
    Ignored,
    /// The kernel said no.
    Refused {
        /// Its words.
        why: String,
    },
}

/// One setting that was made, or tried.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// What.
    pub target: Target,
    /// The value before; `None` for what can't be read.
    pub before: Option<String>,
    /// The value that was asked for.
    pub asked: String,
    /// The value that it reads back as.
    pub after: Option<String>,
    /// How asked and read back compare.
    #[serde(flatten)]
    pub outcome: Outcome,
}

impl Change {
    /// Compares what was asked with what is read back.
    pub(crate) fn judge(
        target: Target,
        before: Option<String>,
        asked: &str,
        after: Option<String>,
    ) -> Self {
        let outcome = match &after {
            Some(after) if same(asked, after) => Outcome::Applied,
            Some(after) if before.as_deref().is_some_and(|before| same(before, after)) => {
                Outcome::Ignored
            }
            Some(_) => Outcome::Rounded,
            None => Outcome::Refused { why: "it can't be read back".into() },
        };
        Self { target, before, asked: asked.trim().into(), after, outcome }
    }

    pub(crate) fn refused(
        target: Target,
        before: Option<String>,
        asked: &str,
        why: String,
    ) -> Self {
        let after = before.clone();
        let outcome = Outcome::Refused { why };
        Self { target, before, asked: asked.trim().into(), after, outcome }
    }

    /// This change when it was applied as asked.
    ///
    /// **Errors** `Kernel` with `EINVAL`, in words what came instead.
    pub fn applied(self) -> Result<Self, HostError> {
        let after = self.after.as_deref().unwrap_or("unreadable");
        let why = match &self.outcome {
            Outcome::Applied => return Ok(self),
            Outcome::Rounded => format!("the kernel made it {after}"),
            Outcome::Ignored => format!("the kernel accepted it and left {after}"),
            Outcome::Refused { why } => why.clone(),
        };
        Err(HostError::Kernel {
            op: format!("set {} to {}", self.target, self.asked),
            errno: libc::EINVAL,
            extack: Some(why),
        })
    }
}

/// The file of a sysctl: `net.ipv4.ip_forward`, or with slashes where a device's name holds dots.
fn sysctl_path(key: &str) -> PathBuf {
    let key = if key.contains('/') { key.into() } else { key.replace('.', "/") };
    Path::new("/proc/sys").join(key)
}

/// Whether two texts are the same value to the kernel: blanks, leading zeros and mask commas apart.
fn same(asked: &str, read: &str) -> bool {
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let mask = |text: &str| {
        let digits: String = text.trim().trim_start_matches("0x").replace(',', "");
        let hex = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_hexdigit());
        hex.then(|| digits.trim_start_matches('0').to_ascii_lowercase())
    };
    words(asked) == words(read)
        || mask(asked).is_some_and(|asked| mask(read).is_some_and(|read| asked == read))
}

/// Reads the value of a file of one or few lines.
pub(crate) fn read_value(path: &Path) -> Result<String, HostError> {
    let text = fs::read(path).map_err(|e| HostError::from_io("read", path, e))?;
    Ok(String::from_utf8_lossy(&text).trim().to_owned())
}

/// Writes a sysctl or sysfs attribute and reads it back.
///
/// **Errors** when there is no such file or it is no file; a value that is refused is an outcome.
pub(crate) fn set_file(target: Target, value: &str) -> Result<Change, HostError> {
    let Some(path) = target.path() else {
        return Err(HostError::malformed("setting", 0, format!("{target} is not a file")));
    };
    // Write-only attributes exist (route/flush): no value before is not an error.
    let before = match read_value(&path) {
        Err(error @ HostError::Missing { .. }) => return Err(error),
        other => other.ok(),
    };
    // Attributes take one write of the whole value; opening must neither create nor truncate.
    let written = fs::OpenOptions::new()
        .write(true)
        .open(&path)
        .and_then(|mut file| io::Write::write_all(&mut file, value.trim().as_bytes()));
    Ok(match written {
        Ok(()) => Change::judge(target, before, value, read_value(&path).ok()),
        Err(error) => Change::refused(target, before, value, error.to_string()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target() -> Target {
        Target::Sysctl { key: "net.core.x".into() }
    }

    #[test]
    fn the_same_value_is_known_in_the_kernels_form() {
        for (asked, read) in [
            ("2", "00000000,00000002"),
            ("00000003", "3"),
            ("0", "00"),
            ("4096 131072 6291456", "4096\t131072\t6291456"),
            (" 1\n", "1"),
            ("cubic", "cubic"),
        ] {
            assert!(same(asked, read), "{asked} is {read}");
        }
        assert!(!same("20", "2"));
        assert!(!same("on", "off"));
    }

    #[test]
    fn what_reads_back_decides() {
        let judge = |before: &str, asked: &str, after: &str| {
            Change::judge(target(), Some(before.into()), asked, Some(after.into())).outcome
        };
        assert_eq!(judge("1", "8000", "8000"), Outcome::Applied);
        assert_eq!(judge("1", "8000", "8064"), Outcome::Rounded);
        assert_eq!(judge("1", "8000", "1"), Outcome::Ignored);
        assert_eq!(judge("1", "1", "1"), Outcome::Applied);
    }

    #[test]
    fn a_change_that_was_rounded_is_an_error_to_who_needs_it_exact() {
        let change = Change::judge(target(), Some("1".into()), "8000", Some("8064".into()));
        let text = change.applied().unwrap_err().to_string();
        assert!(text.contains("net.core.x") && text.contains("8064"), "{text}");
    }

    #[test]
    fn a_file_is_set_and_read_back() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("attr");
        assert!(matches!(
            set_file(Target::Sysfs { path: path.clone() }, "2"),
            Err(HostError::Missing { .. })
        ));
        fs::write(&path, "1").unwrap();
        let change = set_file(Target::Sysfs { path }, "2").unwrap();
        assert_eq!((change.before.as_deref(), change.outcome), (Some("1"), Outcome::Applied));
    }

    #[test]
    fn dotted_names_are_paths() {
        assert_eq!(sysctl_path("net.ipv4.ip_forward"), Path::new("/proc/sys/net/ipv4/ip_forward"));
        assert_eq!(
            sysctl_path("net/ipv4/conf/eth0.1/rp_filter"),
            Path::new("/proc/sys/net/ipv4/conf/eth0.1/rp_filter")
        );
    }
}
