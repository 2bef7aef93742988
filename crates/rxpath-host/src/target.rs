//! What can be set, and the one way to write its name down.
//!
//! The question this module answers: *which setting is meant?* A [`Target`] is what is read, journaled and restored as
//! a whole; a [`Knob`] is a target, or one of the values in it. The names are those of the kernel and of ethtool,
//! joined like a path: `eth0/rings/rx`, `eth0/queues/rx-0/rps_cpus`, `irq/24`, `net.core.rmem_max`.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::LazyLock;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::netlink::wire::NAME_MAX;
use crate::pairs::{Pairs, as_written};

mod ethtool;
mod group;
#[cfg(test)]
mod tests;

pub use group::{Group, GroupProperties};

/// What is read, written and restored as one.
#[derive(
    Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(into = "String", try_from = "String")]
#[schemars(with = "String")]
pub enum Target {
    /// A sysctl by its dotted name, or with slashes where a device's name holds dots.
    Sysctl {
        /// `net.ipv4.udp_rmem_min`.
        key: String,
    },
    /// A sysfs attribute that belongs to no network device.
    Sysfs {
        /// `/sys/devices/system/cpu/smt/control`.
        path: PathBuf,
    },
    /// A sysfs attribute of a network device.
    Attr {
        /// The device.
        dev: String,
        /// Below `/sys/class/net/DEV`: `threaded`, `queues/rx-0/rps_cpus`.
        attr: String,
    },
    /// A group of settings of a device; its value is a list of pairs, see [`crate::pairs::Pairs`].
    Group {
        /// The device.
        dev: String,
        /// Which.
        group: Group,
    },
    /// Interrupt moderation of one queue (`ETHTOOL_PERQUEUE`); pairs.
    QueueCoalesce {
        /// The device.
        dev: String,
        /// The queue.
        queue: u32,
    },
    /// The NAPI instance of one receive queue (netdev netlink, 6.13); pairs.
    Napi {
        /// The device.
        dev: String,
        /// The receive queue.
        queue: u32,
    },
    /// The CPUs that may take an interrupt, as a list.
    Irq {
        /// Its number.
        irq: u32,
    },
}

impl Target {
    /// The file behind it, for those that are one file.
    pub fn path(&self) -> Option<PathBuf> {
        match self {
            Self::Sysctl { key } => Some(sysctl_path(key)),
            Self::Sysfs { path } => Some(path.clone()),
            Self::Attr { dev, attr } => Some(Path::new("/sys/class/net").join(dev).join(attr)),
            Self::Irq { irq } => Some(format!("/proc/irq/{irq}/smp_affinity_list").into()),
            Self::Group { .. } | Self::QueueCoalesce { .. } | Self::Napi { .. } => None,
        }
    }

    /// The device that it belongs to.
    pub fn device(&self) -> Option<&str> {
        match self {
            Self::Attr { dev, .. }
            | Self::Group { dev, .. }
            | Self::QueueCoalesce { dev, .. }
            | Self::Napi { dev, .. } => Some(dev),
            Self::Sysctl { key } => device_of_sysctl(key),
            Self::Sysfs { .. } | Self::Irq { .. } => None,
        }
    }

    /// The same setting of a device that has another name now.
    #[must_use]
    pub(crate) fn on_device(mut self, name: &str) -> Self {
        match &mut self {
            Self::Attr { dev, .. }
            | Self::Group { dev, .. }
            | Self::QueueCoalesce { dev, .. }
            | Self::Napi { dev, .. } => name.clone_into(dev),
            Self::Sysctl { key } if device_of_sysctl(key).is_some() => {
                let parts = parts_of_sysctl(key);
                let (head, tail) = (&parts[..DEVICE_PART], &parts[DEVICE_PART + 1..]);
                let moved = [head, &[name], tail].concat();
                // A dot in a device's name is none between parts.
                *key = moved.join(if name.contains('.') { "/" } else { "." });
            }
            Self::Sysctl { .. } | Self::Sysfs { .. } | Self::Irq { .. } => {}
        }
        self
    }

    /// A value of it as far as `names` names it: of a group those pairs, of anything else all.
    pub fn as_far_as(&self, value: &str, names: &str) -> String {
        if !self.has_parts() {
            return value.into();
        }
        match (value.parse::<Pairs>(), names.parse::<Pairs>()) {
            (Ok(value), Ok(names)) => value.named_in(&names).to_string(),
            _ => value.into(),
        }
    }

    /// Whether its value is a list of pairs.
    pub fn has_parts(&self) -> bool {
        self.path().is_none()
    }
}

/// In `net.ipv4.conf.DEV.NAME` and `net.ipv6.neigh.DEV.NAME`.
const DEVICE_PART: usize = 3;

fn parts_of_sysctl(key: &str) -> Vec<&str> {
    key.split(if key.contains('/') { '/' } else { '.' }).collect()
}

/// The device whose sysctl it is; `all` and `default` are none.
fn device_of_sysctl(key: &str) -> Option<&str> {
    match parts_of_sysctl(key).as_slice() {
        ["net", _, "conf" | "neigh", dev, _] if !matches!(*dev, "all" | "default") => Some(dev),
        _ => None,
    }
}

/// The file of a sysctl, below `/proc/sys` whatever the key is: what is no name is left out.
fn sysctl_path(key: &str) -> PathBuf {
    let names = parts_of_sysctl(key).into_iter().filter(|part| is_file_name(part));
    Path::new("/proc/sys").join(names.collect::<PathBuf>())
}

/// Whether a part of a path leads one level down.
fn is_file_name(part: &str) -> bool {
    !matches!(part, "" | "." | "..")
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sysctl { key } if key.contains('.') && !key.contains('/') => f.write_str(key),
            // A dotted name of one part would be none.
            Self::Sysctl { key } => write!(f, "/proc/sys/{key}"),
            Self::Sysfs { path } => write!(f, "{}", path.display()),
            Self::Attr { dev, attr } => write!(f, "{dev}/{attr}"),
            Self::Group { dev, group } => write!(f, "{dev}/{}", group.name()),
            Self::QueueCoalesce { dev, queue } => write!(f, "{dev}/coalesce/queue-{queue}"),
            Self::Napi { dev, queue } => write!(f, "{dev}/napi-{queue}"),
            Self::Irq { irq } => write!(f, "irq/{irq}"),
        }
    }
}

/// A name that is no setting.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{name}` is not a setting: {why}")]
pub struct NoKnob {
    name: String,
    why: &'static str,
}

static FORMS: LazyLock<String> = LazyLock::new(|| {
    let groups = Group::ALL.map(Group::name).join(", ");
    format!(
        "expected net.core.NAME, DEV/GROUP/NAME (groups: {groups}), DEV/ATTRIBUTE, DEV/queues/rx-N/ATTRIBUTE, \
         DEV/napi-N/NAME, irq/N or a path below /proc/sys or /sys"
    )
});

/// A target, or one of the values in it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Knob {
    /// What is written.
    pub target: Target,
    /// Which value in it, for targets that have several: named as in [`Pairs`].
    pub part: Option<String>,
}

impl Knob {
    /// A sysctl, by its dotted name.
    pub fn sysctl(key: impl Into<String>) -> Self {
        Target::Sysctl { key: key.into() }.into()
    }

    /// The setting behind a path below `/proc` or `/sys`.
    pub fn path(path: &str) -> Self {
        let of_device = path.strip_prefix("/sys/class/net/").and_then(|rest| rest.split_once('/'));
        let of_irq = path.strip_prefix("/proc/irq/").and_then(|rest| rest.split_once('/'));
        match (of_device, of_irq.and_then(|(irq, _)| irq.parse().ok()), path) {
            (Some((dev, attr)), ..) => Target::Attr { dev: dev.into(), attr: attr.into() }.into(),
            (None, Some(irq), _) => Target::Irq { irq }.into(),
            (None, None, path) => Target::Sysfs { path: path.into() }.into(),
        }
    }

    /// A part of a group: `eth0/rings/rx`.
    pub fn part(dev: &str, group: Group, part: &str) -> Self {
        Self { target: Target::Group { dev: dev.into(), group }, part: Some(part.into()) }
    }

    /// A value of it as its target takes it: of a part one pair.
    pub fn text(&self, value: &str) -> String {
        let Some(part) = &self.part else { return value.into() };
        // The name is that of a pair already.
        let pair = [(as_written(part), value)];
        pair.into_iter().collect::<Pairs>().to_string()
    }
}

impl From<Target> for Knob {
    fn from(target: Target) -> Self {
        Self { target, part: None }
    }
}

impl fmt::Display for Knob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.target.fmt(f)?;
        self.part.as_ref().map_or(Ok(()), |part| write!(f, "/{part}"))
    }
}

impl FromStr for Knob {
    type Err = NoKnob;

    fn from_str(name: &str) -> Result<Self, NoKnob> {
        let no = |why| NoKnob { name: name.into(), why };
        if name.chars().any(|c| c.is_whitespace() || c.is_control() || c == '=') {
            return Err(no("a name has no blanks and no =; write %20 and %3D for them"));
        }
        if name.split('/').any(|part| part == "..") {
            return Err(no("a path must not lead upwards"));
        }
        if let Some(key) = name.strip_prefix("/proc/sys/") {
            // A dotted name, where that means the same.
            let key = if key.contains('.') { key.into() } else { key.replace('/', ".") };
            return sysctl(key).map_err(no);
        }
        if let Some(path) = name.strip_prefix("/sys/") {
            if !path.split('/').all(is_file_name) {
                return Err(no(NO_FILE_NAME));
            }
            return Ok(Target::Sysfs { path: name.into() }.into());
        }
        if name.starts_with('/') {
            return Err(no(FORMS.as_str()));
        }
        match name.split_once('/') {
            Some(("irq", number)) => {
                let irq = number.parse().map_err(|_| no("an interrupt has a number: irq/24"))?;
                Ok(Target::Irq { irq }.into())
            }
            Some((dev, rest)) => of_device(dev, rest).map_err(no),
            None if name.contains('.') => sysctl(name.into()).map_err(no),
            None => Err(no(FORMS.as_str())),
        }
    }
}

/// Why a name that has such a part is refused: it could lead out of the tree, or name one file in several ways.
const NO_FILE_NAME: &str =
    "a part of it is empty, `.` or `..`; expected net.core.NAME or a path below /proc/sys or /sys";

/// The sysctl of this key.
fn sysctl(key: String) -> Result<Knob, &'static str> {
    let is_whole = parts_of_sysctl(&key).into_iter().all(is_file_name);
    if is_whole { Ok(Knob::sysctl(key)) } else { Err(NO_FILE_NAME) }
}

fn of_device(dev: &str, rest: &str) -> Result<Knob, &'static str> {
    if dev.is_empty() || dev.len() > NAME_MAX || matches!(dev, "." | "..") || dev.contains(':') {
        return Err("a device has a name of 1 to 15 bytes");
    }
    let dev = dev.to_owned();
    let (head, part) =
        rest.split_once('/').map_or((rest, None), |(head, part)| (head, Some(part.to_owned())));
    if part.as_deref() == Some("") {
        return Err("it ends in a slash");
    }
    if let Some(queue) = head.strip_prefix("napi-") {
        let queue = queue.parse().map_err(|_| "a NAPI instance is named by its queue: napi-0")?;
        return Ok(Knob { target: Target::Napi { dev, queue }, part });
    }
    if let Some(group) = Group::ALL.into_iter().find(|group| group.name() == head) {
        let inner = part.as_deref().and_then(|part| part.strip_prefix("queue-"));
        if let (Group::Coalesce, Some(inner)) = (group, inner) {
            let (queue, part) =
                inner.split_once('/').map_or((inner, None), |(n, part)| (n, Some(part.to_owned())));
            let queue = queue.parse().map_err(|_| "a queue has a number: coalesce/queue-0")?;
            return Ok(Knob { target: Target::QueueCoalesce { dev, queue }, part });
        }
        return Ok(Knob { target: Target::Group { dev, group }, part });
    }
    if rest.contains('.') || !rest.split('/').all(is_file_name) {
        return Err(FORMS.as_str());
    }
    Ok(Target::Attr { dev, attr: rest.into() }.into())
}

impl FromStr for Target {
    type Err = NoKnob;

    fn from_str(name: &str) -> Result<Self, NoKnob> {
        match name.parse()? {
            Knob { target, part: None } => Ok(target),
            Knob { .. } => Err(NoKnob {
                name: name.into(),
                why: "a whole group was expected, without its part",
            }),
        }
    }
}

rxpath_core::as_text!(Target, Knob);
