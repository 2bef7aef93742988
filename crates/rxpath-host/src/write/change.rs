//! One setting of the host: what was asked, what was there, what came of it.
//!
//! A success code is not a change: drivers round, ignore and refuse. So every setting is read back and
//! compared. This module compares and writes files; it must not decide what to write.

use std::fs;
use std::io;
use std::path::Path;

use rxpath_core::CpuList;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::HostError;
use crate::pairs::Pairs;
use crate::read::netlink::ethtool::link_pairs::chosen;
pub use crate::target::{Group, Knob, Target};

/// What came of a setting.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "outcome", rename_all = "kebab-case")]
pub enum ChangeOutcome {
    /// It reads back as asked.
    Applied,
    /// It is accepted and takes effect later.
    Pending {
        /// When.
        until: String,
    },
    /// It reads back as another value than before, not the one asked for.
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SettingChange {
    /// The setting.
    #[serde(rename = "set")]
    pub target: Target,
    /// The value before; `None` for what can't be read. Of a group, the pairs that were asked for.
    pub before: Option<String>,
    /// The value that was asked for.
    pub asked: String,
    /// The value that it reads back as.
    pub after: Option<String>,
    /// Pairs of the group that changed without being asked for, as they are now.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub also: String,
    /// What became of the device's link, when the change took it down: how long it was away, or that it is not back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
    /// How asked and read back compare.
    #[serde(flatten)]
    pub outcome: ChangeOutcome,
}

impl SettingChange {
    /// Compares what was asked with what is read back.
    pub fn judge(
        target: Target,
        before: Option<String>,
        asked: &str,
        after: Option<String>,
    ) -> Self {
        if target.has_parts()
            && let (Some(was), Some(is)) = (&before, &after)
            && let (Ok(was), Ok(is), Ok(wanted)) = (was.parse(), is.parse(), asked.parse())
        {
            return judge_pairs(target, &was, &wanted, &is);
        }
        let same = |one: &str, other: &str| same_of(&target, one, other);
        let outcome = judge_value(&same, before.as_deref(), asked, after.as_deref());
        let also = String::new();
        Self { target, before, asked: asked.trim().into(), after, also, link: None, outcome }
    }

    /// A change that the kernel refused; a group may have changed in part nevertheless.
    pub fn refused(
        target: Target,
        before: Option<String>,
        asked: &str,
        (after, why): (Option<String>, String),
    ) -> Self {
        Self {
            outcome: ChangeOutcome::Refused { why },
            ..Self::judge(target, before, asked, after)
        }
    }

    /// This change when it was applied as asked.
    ///
    /// **Errors** `Kernel` with `EINVAL`, in words what came instead.
    pub fn applied(self) -> Result<Self, HostError> {
        let after = self.after.as_deref().unwrap_or("unreadable");
        let why = match &self.outcome {
            ChangeOutcome::Applied | ChangeOutcome::Pending { .. } => return Ok(self),
            ChangeOutcome::Rounded => format!("the kernel made it {after}"),
            ChangeOutcome::Ignored => format!("the kernel accepted it and left {after}"),
            ChangeOutcome::Refused { why } => why.clone(),
        };
        Err(HostError::Kernel {
            op: format!("set {} to {}", self.target, self.asked),
            errno: libc::EINVAL,
            extack: Some(why),
        })
    }
}

fn judge_value(
    same: &dyn Fn(&str, &str) -> bool,
    before: Option<&str>,
    asked: &str,
    after: Option<&str>,
) -> ChangeOutcome {
    match after {
        Some(after) if same(asked, after) => ChangeOutcome::Applied,
        Some(after) if before.is_some_and(|before| same(before, after)) => ChangeOutcome::Ignored,
        Some(_) => ChangeOutcome::Rounded,
        None => ChangeOutcome::Refused { why: "it can't be read back".into() },
    }
}

/// The worst pair decides; a pair that is not there reads back as nothing.
fn judge_pairs(target: Target, before: &Pairs, asked: &Pairs, after: &Pairs) -> SettingChange {
    let worst = asked.iter().map(|(name, wanted)| match after.get(name) {
        None => ChangeOutcome::Refused { why: format!("{name} is not there") },
        is => judge_value(&same, before.get(name), wanted, is),
    });
    let outcome = worst.max().unwrap_or(ChangeOutcome::Applied);
    let moved = after.unlike(before);
    let also = moved.unlike(&moved.named_in(asked));
    SettingChange {
        target,
        before: Some(before.named_in(asked).to_string()),
        asked: asked.to_string(),
        after: Some(after.named_in(asked).to_string()),
        also: also.to_string(),
        link: None,
        outcome,
    }
}

/// Whether two texts are the same value: blanks and leading zeros apart.
pub fn same(asked: &str, read: &str) -> bool {
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let number = |text: &str| text.trim().parse::<i128>().ok();
    words(asked) == words(read) || number(asked).is_some_and(|asked| number(read) == Some(asked))
}

/// Whether two masks are the same: commas and leading zeros apart.
fn same_mask(asked: &str, read: &str) -> bool {
    let mask = |text: &str| {
        let digits: String = text.trim().trim_start_matches("0x").replace(',', "");
        let hex = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_hexdigit());
        hex.then(|| digits.trim_start_matches('0').to_ascii_lowercase())
    };
    mask(asked).is_some_and(|asked| mask(read) == Some(asked))
}

/// Whether two values of a target are the same to the kernel: of a group pair by pair in any order, of masks and CPU
/// lists whatever their form.
pub fn same_of(target: &Target, one: &str, other: &str) -> bool {
    let list = |text: &str| text.trim().parse::<CpuList>().ok();
    let is_mask = |name: &str| {
        name.ends_with("_cpus") || name.ends_with("_rxqs") || name.ends_with("_bitmap")
    };
    if target.has_parts()
        && let (Ok(one), Ok(other)) = (one.parse::<Pairs>(), other.parse::<Pairs>())
    {
        return one.unlike(&other).is_empty() && other.unlike(&one).is_empty();
    }
    same(one, other)
        || match target {
            Target::Irq { .. } => list(one).is_some_and(|one| list(other) == Some(one)),
            Target::Attr { attr: name, .. } | Target::Sysctl { key: name } if is_mask(name) => {
                same_mask(one, other)
            }
            _ => false,
        }
}

/// Whether a setting reads as somebody left it: as [`same_of`], but for what nobody chose (a link's negotiated speed), and
/// only as far as the older value names it (a newer rxpath may read more).
pub fn stands(target: &Target, was: &str, now: &str) -> bool {
    let is_link = matches!(target, Target::Group { group: Group::LinkModes, .. });
    let parsed = |text: &str| {
        let pairs = text.parse::<Pairs>().ok().filter(|_| target.has_parts())?;
        Some(if is_link { chosen(&pairs) } else { pairs })
    };
    let (Some(was_pairs), Some(now_pairs)) = (parsed(was), parsed(now)) else {
        return same_of(target, was, now);
    };
    // A mode that the device no longer lists (drivers list fewer while the link is down) is one that it does not offer.
    let is_gone =
        |(name, value): (&str, &str)| is_link && value == "off" && now_pairs.get(name).is_none();
    was_pairs.unlike(&now_pairs).iter().all(is_gone)
}

/// Reads the value of a file of one or few lines.
pub(crate) fn read_value(path: &Path) -> Result<String, HostError> {
    let text = fs::read(path).map_err(|e| HostError::from_io("read", path, e))?;
    Ok(String::from_utf8_lossy(&text).trim().to_owned())
}

/// Writes the value of an attribute in one write, as the kernel wants it; the file is neither made nor cut.
pub(crate) fn write_value(path: &Path, value: &str) -> Result<(), HostError> {
    let mut file = fs::OpenOptions::new()
        .write(true)
        .open(path)
        .map_err(|e| HostError::from_io("write", path, e))?;
    io::Write::write_all(&mut file, value.trim().as_bytes()).map_err(|e| match e.raw_os_error() {
        // The file is there: that something else is missing is the kernel's word about the value.
        Some(libc::ENOENT | libc::ENODEV | libc::EINVAL) => {
            HostError::Io { op: "write", path: path.into(), source: e }
        }
        _ => HostError::from_io("write", path, e),
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
        for (name, asked, read) in [
            ("e0/queues/rx-0/rps_cpus", "2", "00000000,00000002"),
            ("e0/queues/rx-0/rps_cpus", "00000003", "3"),
            ("e0/threaded", "0", "00"),
            ("net.ipv4.tcp_rmem", "4096 131072 6291456", "4096\t131072\t6291456"),
            ("net.core.x", " 1\n", "1"),
            ("net.core.x", "cubic", "cubic"),
            ("irq/1", "0,1,2", "0-2"),
            ("irq/1", "3-3", "3"),
        ] {
            assert!(same_of(&name.parse().unwrap(), asked, read), "{name}: {asked} is {read}");
        }
        for (name, asked, read) in [
            ("net.core.x", "20", "2"),
            ("net.core.x", "on", "off"),
            ("irq/1", "0-2", "0-1"),
            ("irq/1", "0,1", "1"),
            ("irq/1", "10", "1,0"),
        ] {
            assert!(!same_of(&name.parse().unwrap(), asked, read), "{name}: {asked} is not {read}");
        }
    }

    #[test]
    fn what_reads_back_decides() {
        let judge = |before: &str, asked: &str, after: &str| {
            SettingChange::judge(target(), Some(before.into()), asked, Some(after.into())).outcome
        };
        assert_eq!(judge("1", "8000", "8000"), ChangeOutcome::Applied);
        assert_eq!(judge("1", "8000", "8064"), ChangeOutcome::Rounded);
        assert_eq!(judge("1", "8000", "1"), ChangeOutcome::Ignored);
        assert_eq!(judge("1", "1", "1"), ChangeOutcome::Applied);
    }

    #[test]
    fn the_worst_pair_of_a_group_decides_and_what_moved_with_it_is_told() {
        let group = Target::Group { dev: "e0".into(), group: Group::Pause };
        let judge = |before: &str, asked: &str, after: &str| {
            SettingChange::judge(group.clone(), Some(before.into()), asked, Some(after.into()))
        };
        let half = judge("autoneg=on rx=on tx=on", "rx=off tx=off", "autoneg=on rx=on tx=off");
        assert_eq!(half.outcome, ChangeOutcome::Ignored, "tx went off, rx was left");
        assert_eq!(half.before.as_deref(), Some("rx=on tx=on"));
        assert_eq!(half.after.as_deref(), Some("rx=on tx=off"));
        let moved = judge("sg=on tso=on", "sg=off", "sg=off tso=waiting");
        assert_eq!((moved.outcome, moved.also.as_str()), (ChangeOutcome::Applied, "tso=waiting"));
        let gone = judge("rx=1", "frames=3", "rx=1");
        assert!(matches!(gone.outcome, ChangeOutcome::Refused { .. }), "{gone:?}");
    }

    #[test]
    fn the_order_of_pairs_makes_no_difference() {
        let rings: Target = "e0/rings".parse().unwrap();
        let link: Target = "e0/link-modes".parse().unwrap();
        let was = "autoneg=on speed=1000 duplex=full 100baseT/Full=on";
        assert!(stands(&link, was, "autoneg=on speed=unknown duplex=unknown 100baseT/Full=on"));
        assert!(!stands(&link, was, "autoneg=on speed=1000 duplex=full 100baseT/Full=off"));
        assert!(!stands(&link, was, "autoneg=off speed=1000 duplex=full 100baseT/Full=on"));
        assert!(!stands(&link, "autoneg=off speed=100", "autoneg=off speed=1000"));
        assert!(stands(&link, "autoneg=on 10baseT/Full=off", "autoneg=on"));
        assert!(!stands(&link, "autoneg=on 10baseT/Full=on", "autoneg=on"));
        assert!(stands(&rings, "rx=1", "rx=1 tx=2") && !stands(&rings, "rx=1 tx=2", "rx=1"));
        assert!(stands(&target(), "1 2", "1\t2\n") && !stands(&target(), "1 2", "2 1"));
        assert!(same_of(&rings, "rx=1 tx=2", "tx=2 rx=1"));
        assert!(!same_of(&rings, "rx=1", "rx=1 tx=2"));
        assert!(!same_of(&target(), "1 2", "2 1"));
    }

    #[test]
    fn a_change_that_was_rounded_is_an_error_to_who_needs_it_exact() {
        let change = SettingChange::judge(target(), Some("1".into()), "8000", Some("8064".into()));
        let text = change.applied().unwrap_err().to_string();
        assert!(text.contains("net.core.x") && text.contains("8064"), "{text}");
    }
}
