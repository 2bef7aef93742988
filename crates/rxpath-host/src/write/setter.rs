//! Reads and writes each kind of setting, as text that a person can check.
//!
//! The question it answers: *what is this setting now, and what does the kernel say when it is to be another?* Every
//! value has one form for reading and writing, so that what was read restores it. It must not decide what to write.

use std::time::{Duration, Instant};

use rxpath_core::CpuList;

use crate::netlink::Netlink;
use crate::pairs::Pairs;
use crate::read::identity::Identity;
use crate::read::ioctl;
use crate::read::ioctl::stamps::stamps;
use crate::read::netlink::ethtool::group::wanted_word;
use crate::read::netlink::ethtool::link_pairs::{chosen, fec_obstacle, link_obstacle};
use crate::write::change::{SettingChange, read_value, write_value};
use crate::write::ioctl::per_queue::set_queue_moderation;
use crate::write::ioctl::stamps::set_stamps;
use crate::{Group, HostError, Root, Target};

pub mod bounds;
pub mod rss;

pub use bounds::Bounds;

use rss::{flow_hash, restore_rss, rss_pairs, set_flow_hash, set_rss};

/// The real NICs that were tried took 0.4 to 1 s; autonegotiation may take some seconds.
pub(crate) const LINK_PATIENCE: Duration = Duration::from_secs(10);
/// Between two looks at a link that is away.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// A link that was away after a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkAway {
    /// How long it was waited for.
    pub waited: Duration,
    /// Whether it came back.
    pub is_back: bool,
}

impl std::fmt::Display for LinkAway {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let s = self.waited.as_secs_f64();
        if self.is_back {
            write!(f, "its link was down for {s:.1} s")
        } else {
            write!(f, "its link is not back after {s:.1} s")
        }
    }
}

/// Reads and writes settings; the host, or a stand-in for it in tests.
pub trait Setter {
    /// What the target belongs to now, so that another thing of the same name is not taken for it.
    fn identify(&mut self, target: &Target) -> Result<Option<Identity>, HostError>;

    /// The target under the name that it has now; `None` when what it belonged to is gone.
    fn locate(&mut self, target: &Target, was: &Identity) -> Result<Option<Target>, HostError>;

    /// The value now; `None` for what can't be read.
    fn read(&mut self, target: &Target) -> Result<Option<String>, HostError>;

    /// Asks for a value. What came of it is seen by reading.
    fn write(&mut self, target: &Target, value: &str) -> Result<(), HostError>;

    /// Writes back a value that [`Setter::read`] gave, leaving alone what has it already.
    fn restore(&mut self, target: &Target, value: &str) -> Result<(), HostError> {
        self.write(target, value)
    }

    /// The value as it will read back, for requests with words in them (`indir=equal:4`).
    fn spell_out(&mut self, _target: &Target, value: &str) -> Result<String, HostError> {
        Ok(value.trim().to_owned())
    }

    /// When a value that was accepted takes effect, where that is later.
    fn pending(&mut self, _target: &Target, _value: &str) -> Option<String> {
        None
    }

    /// What the host and the device say of the values that it takes.
    fn bounds(&mut self, _target: &Target) -> Bounds {
        Bounds::default()
    }

    /// Whether the target's device has a carrier, which a write may take away.
    fn has_carrier(&mut self, _target: &Target) -> bool {
        false
    }

    /// Waits until the carrier is there again; `None` when it was not away.
    fn await_carrier(&mut self, _target: &Target) -> Option<LinkAway> {
        None
    }
}

/// The running host, as the thread that made this sees it: its network namespace, its `/sys`.
#[derive(Debug)]
pub struct HostSetter {
    route: Option<Netlink>,
    generic: Option<Netlink>,
    /// How long a link that a change took down is waited for.
    pub link_patience: Duration,
}

impl Default for HostSetter {
    fn default() -> Self {
        Self { route: None, generic: None, link_patience: LINK_PATIENCE }
    }
}

impl HostSetter {
    /// Writes a value and reads it back; of a group the pairs that it names.
    ///
    /// **Errors** where it can't be read: there is no such setting here. A value that is refused is an outcome.
    pub fn set(&mut self, target: Target, value: &str) -> Result<SettingChange, HostError> {
        let as_far = |whole: String| target.as_far_as(&whole, value);
        let before = self.read(&target)?.map(as_far);
        let asked = self.spell_out(&target, value)?;
        let written = self.write(&target, value);
        let after = self.read(&target);
        Ok(match written {
            Ok(()) => {
                let after = after?.map(as_far);
                SettingChange::judge(target, before, &asked, after)
            }
            Err(error) => {
                let after = after.ok().flatten().map(as_far);
                SettingChange::refused(target, before, &asked, (after, error.reason()))
            }
        })
    }

    fn route(&mut self) -> Result<&mut Netlink, HostError> {
        Netlink::opened(&mut self.route, Netlink::route)
    }

    fn generic(&mut self) -> Result<&mut Netlink, HostError> {
        Netlink::opened(&mut self.generic, Netlink::generic)
    }

    fn pairs(&mut self, dev: &str, group: Group) -> Result<Pairs, HostError> {
        match group {
            Group::Link => self.route()?.link_settings(dev),
            Group::Rss => rss_pairs(dev),
            Group::FlowHash => flow_hash(dev),
            Group::Stamps => stamps(dev),
            _ if self.takes(group)? => self.generic()?.group(dev, group),
            _ => ioctl::group(dev, group),
        }
    }

    fn set_pairs(&mut self, dev: &str, group: Group, asked: &Pairs) -> Result<(), HostError> {
        match group {
            Group::Link => self.route()?.set_link_settings(dev, asked),
            Group::Rss => set_rss(dev, asked),
            Group::FlowHash => set_flow_hash(dev, asked),
            Group::Stamps => set_stamps(dev, asked),
            _ if self.takes(group)? => self.generic()?.set_group(dev, group, asked),
            _ => {
                let what = format!("set {dev}/{} over netlink", group.name());
                let command = group.ethtool_command(dev, asked);
                let needs = format!("a kernel that takes it; this command sets it: {command}");
                Err(HostError::unsupported(what, needs))
            }
        }
    }

    fn group_limits(&mut self, dev: &str, group: Group) -> Result<Pairs, HostError> {
        if self.takes(group)? {
            self.generic()?.group_limits(dev, group)
        } else {
            ioctl::group_limits(dev, group)
        }
    }

    /// Whether this kernel takes the group over netlink; where it does not, the ioctl reads it and nothing here sets it.
    fn takes(&mut self, group: Group) -> Result<bool, HostError> {
        self.generic()?.takes_group(group)
    }

    fn ask(&mut self, target: &Target, asked: &Pairs) -> Result<(), HostError> {
        match target {
            Target::Group { dev, group } => self.set_pairs(dev, *group, asked),
            Target::QueueCoalesce { dev, queue } => set_queue_moderation(dev, *queue, asked),
            Target::Napi { dev, queue } => {
                let id = self.napi_id(dev, *queue)?;
                self.generic()?.set_napi(id, asked)
            }
            _ => Ok(()),
        }
    }

    fn napi_id(&mut self, dev: &str, queue: u32) -> Result<u32, HostError> {
        let index = self.route()?.index(dev)?;
        self.generic()?.napi_of_queue(index, queue)
    }
}

/// A file of `/sys` that lists its words takes the one in force, and not what it shows.
fn one_word<'v>(target: &Target, value: &'v str) -> &'v str {
    let listed = matches!(target, Target::Sysfs { .. }).then(|| bounds::word_of_list(value));
    listed.flatten().unwrap_or(value)
}

/// A refusal because the capability that all of these need is missing, with its name. Who has it hears the driver's refusal.
fn denied(target: &Target, error: HostError) -> HostError {
    let needed = caps::Capability::CAP_NET_ADMIN;
    match error {
        HostError::Kernel { errno: libc::EPERM, extack: None, .. } if !crate::caps::has(needed) => {
            HostError::Denied { what: format!("set {target}"), capability: needed.to_string() }
        }
        other => other,
    }
}

fn parsed(target: &Target, text: &str) -> Result<Pairs, HostError> {
    text.parse().map_err(|e| HostError::malformed(target.to_string(), 0, format!("{e}")))
}

impl Setter for HostSetter {
    fn identify(&mut self, target: &Target) -> Result<Option<Identity>, HostError> {
        if let Target::Irq { irq } = target {
            return Ok(Some(Identity::Irq { users: irq_users(*irq) }));
        }
        match target.device() {
            Some(dev) => Ok(Some(Identity::Device { index: self.route()?.index(dev)? })),
            None => Ok(None),
        }
    }

    fn locate(&mut self, target: &Target, was: &Identity) -> Result<Option<Target>, HostError> {
        match (target, was) {
            (Target::Irq { irq }, Identity::Irq { users }) => {
                Ok((irq_users(*irq) == *users).then(|| target.clone()))
            }
            (_, Identity::Device { index }) => {
                let links = self.route()?.links()?;
                let link = links.into_iter().find(|link| link.index == *index);
                Ok(link.map(|link| target.clone().on_device(&link.name)))
            }
            _ => Ok(Some(target.clone())),
        }
    }

    fn read(&mut self, target: &Target) -> Result<Option<String>, HostError> {
        if let Some(path) = target.path() {
            return match read_value(&path) {
                Ok(value) => Ok(Some(one_word(target, &value).to_owned())),
                // Write-only attributes exist.
                Err(HostError::Denied { .. } | HostError::Unsupported { .. }) => Ok(None),
                Err(error) => Err(error),
            };
        }
        let pairs = match target {
            Target::Group { dev, group } => self.pairs(dev, *group)?,
            Target::QueueCoalesce { dev, queue } => ioctl::queue_moderation(dev, *queue)?,
            Target::Napi { dev, queue } => {
                let id = self.napi_id(dev, *queue)?;
                self.generic()?.napi(id)?
            }
            _ => return Ok(None),
        };
        Ok(Some(pairs.to_string()))
    }

    fn write(&mut self, target: &Target, value: &str) -> Result<(), HostError> {
        if let Some(path) = target.path() {
            return write_value(&path, value);
        }
        self.ask(target, &parsed(target, value)?).map_err(|error| denied(target, error))
    }

    fn restore(&mut self, target: &Target, value: &str) -> Result<(), HostError> {
        if !target.has_parts() {
            return self.write(target, one_word(target, value));
        }
        let (was, now) = (parsed(target, value)?, self.read(target)?.unwrap_or_default());
        let differing = was.unlike(&parsed(target, &now)?);
        if differing.is_empty() {
            return Ok(());
        }
        match target {
            Target::Group { dev, group: Group::Rss } => restore_rss(dev, &differing),
            Target::Group { group: Group::Features, .. } => {
                // All of them: a bit that waits for another one is only right once that one is.
                let wanted: Pairs =
                    was.iter().map(|(name, word)| (name, wanted_word(word))).collect();
                self.write(target, &wanted.to_string())
            }
            // What the ends negotiated comes by itself once the same is offered.
            Target::Group { group: Group::LinkModes, .. } => {
                self.write(target, &chosen(&was).to_string())
            }
            _ => self.write(target, &differing.to_string()),
        }
    }

    fn spell_out(&mut self, target: &Target, value: &str) -> Result<String, HostError> {
        match target {
            Target::Group { dev, group: Group::Rss } => {
                rss::spell_out(dev, &parsed(target, value)?).map(|pairs| pairs.to_string())
            }
            _ => Ok(value.trim().to_owned()),
        }
    }

    fn pending(&mut self, target: &Target, value: &str) -> Option<String> {
        let Target::Irq { irq } = target else { return None };
        let effective = Root::host().cpus(&format!("/proc/irq/{irq}/effective_affinity_list"));
        let (effective, asked) = (effective.ok()?, value.trim().parse::<CpuList>().ok()?);
        let outside = effective.0.iter().any(|cpu| !asked.0.contains(cpu));
        outside.then(|| format!("the next interrupt (CPU {effective} still takes it)"))
    }

    fn bounds(&mut self, target: &Target) -> Bounds {
        let Target::Group { dev, group } = target else { return Bounds::of_file(target) };
        let bounds = match group {
            Group::Link => self.route().and_then(|route| Bounds::of_link(route, dev)),
            Group::LinkModes | Group::Fec => self.pairs(dev, *group).map(|now| Bounds {
                obstacle: match group {
                    Group::Fec => fec_obstacle(&now),
                    _ => link_obstacle(&now),
                },
                ..Bounds::default()
            }),
            _ => self.group_limits(dev, *group).map(|most| Bounds::of_group(*group, most)),
        };
        bounds.unwrap_or_default()
    }

    fn has_carrier(&mut self, target: &Target) -> bool {
        let Some(dev) = target.device() else { return false };
        let link = self.route().and_then(|route| route.link(dev));
        link.is_ok_and(|link| link.carrier == Some(true))
    }

    fn await_carrier(&mut self, target: &Target) -> Option<LinkAway> {
        if self.has_carrier(target) {
            return None;
        }
        let since = Instant::now();
        loop {
            let waited = since.elapsed();
            let is_back = self.has_carrier(target);
            if is_back || waited >= self.link_patience {
                return Some(LinkAway { waited, is_back });
            }
            // why: the pace of looking for a carrier; the patience above bounds it.
            std::thread::sleep(LOOK_AGAIN);
        }
    }
}

/// Who uses an interrupt: the names of its handlers, which a number that was given away again does not share.
///
/// **Source** kernel/irq/irqdesc.c `actions_show` (4.10).
fn irq_users(irq: u32) -> String {
    Root::host().value(&format!("/sys/kernel/irq/{irq}/actions")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    use crate::write::change::ChangeOutcome;

    #[test]
    fn a_file_that_lists_its_words_is_read_as_what_it_takes() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("enabled");
        fs::write(&path, "never [madvise]").unwrap();
        let target = Target::Sysfs { path: path.clone() };
        let mut setter = HostSetter::default();
        assert_eq!(setter.read(&target).unwrap().as_deref(), Some("madvise"));
        // What an older journal holds is what the file showed.
        setter.restore(&target, "[always] madvise never").unwrap();
        assert!(
            fs::read_to_string(&path).unwrap().starts_with("always[madvise]"),
            "written in place"
        );
    }

    #[test]
    fn a_file_is_set_and_read_back() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("attr");
        let set = || HostSetter::default().set(Target::Sysfs { path: path.clone() }, "2");
        assert!(matches!(set(), Err(HostError::Missing { .. })));
        fs::write(&path, "1").unwrap();
        let change = set().unwrap();
        assert_eq!((change.before.as_deref(), change.outcome), (Some("1"), ChangeOutcome::Applied));
    }

    /// As on kernels before 5.6: the ioctl reads, and nothing here sets.
    #[test]
    fn without_ethtool_netlink_a_setting_is_read_and_refused_with_its_command() {
        let mut setter = HostSetter::default();
        setter.generic().unwrap().forget_ethtool();
        let target: Target = "lo/features".parse().unwrap();
        let before = setter.read(&target).unwrap().unwrap();
        assert!(before.contains("rx-gro="), "{before}");
        let error = setter.write(&target, "rx-gro=off").unwrap_err().to_string();
        let words = "set lo/features over netlink: not supported here, needs a kernel that takes it; this command sets it: \
                     ethtool -K lo rx-gro off";
        assert_eq!(error, words);
        assert_eq!(setter.read(&target).unwrap().unwrap(), before);
    }
}
