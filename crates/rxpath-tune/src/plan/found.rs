//! From findings of rules to requests.

use rxpath_host::{Group, Knob, Target};

use super::LeftOut;
use super::make::Wish;
use crate::finding::Finding;
use crate::knob::{self, Value};

/// What the findings ask for, and what of it is no setting that can be changed at runtime.
///
/// `ids` keeps to these rules; empty takes all.
pub fn wishes(findings: &[Finding], ids: &[String]) -> (Vec<Wish>, Vec<LeftOut>) {
    let (mut wishes, mut left) = (Vec::new(), Vec::new());
    for finding in findings.iter().filter(|f| ids.is_empty() || ids.contains(&f.id)) {
        let what = match &finding.device {
            Some(dev) => format!("{} of {dev}", finding.id),
            None => finding.id.clone(),
        };
        if finding.changes.is_empty() {
            let why = finding.advice.clone();
            let why = why.unwrap_or_else(|| "nothing that can be changed at runtime".into());
            left.push(LeftOut { what: what.clone(), why });
        }
        for set in &finding.changes {
            match target(&set.knob) {
                Ok(knob) => {
                    let value = value(&knob, &set.value);
                    wishes.push(Wish { knob, value, because: finding.id.clone() });
                }
                Err(why) => left.push(LeftOut { what: format!("{what}: {set}"), why }),
            }
        }
    }
    (wishes, left)
}

/// The host's name for a rule's knob.
///
/// **Errors** in words, for what is no setting that can be written and read back.
fn target(knob: &knob::Knob) -> Result<Knob, String> {
    use knob::Knob as Named;
    let part = |dev: &String, group, name: &str| Ok(Knob::part(dev, group, name));
    match knob {
        Named::Sysctl { key } => Ok(Target::Sysctl { key: key.clone() }.into()),
        Named::Attribute { path } => of_path(path),
        Named::Ring { dev, which } => part(dev, Group::Rings, which),
        Named::Channels { dev, which } => part(dev, Group::Channels, which),
        Named::Coalesce { dev, which } => part(dev, Group::Coalesce, which),
        Named::Feature { dev, name } => part(dev, Group::Features, name),
        Named::RssTable { dev } => part(dev, Group::Rss, "indir"),
        Named::RssKey { dev } => part(dev, Group::Rss, "key"),
        Named::HashFields { dev, flow } => part(dev, Group::FlowHash, flow),
        Named::Pause { dev, which } => part(dev, Group::Pause, which),
        Named::Eee { dev } => part(dev, Group::Eee, "enabled"),
        Named::LinkMode { dev, which } => part(dev, Group::LinkModes, which),
        Named::PrivateFlag { dev, name } => part(dev, Group::PrivFlags, name),
        Named::Link { which, .. } if which == "promisc" => {
            Err("a program may need it: turn it off with `ip link set DEV promisc off`".into())
        }
        Named::Link { dev, which } => part(dev, Group::Link, which),
    }
}

fn of_path(path: &str) -> Result<Knob, String> {
    let name = match path.strip_prefix("/sys/class/net/") {
        Some(rest) => rest.to_owned(),
        None => match path.strip_prefix("/proc/irq/").and_then(|rest| rest.split_once('/')) {
            Some((irq, "smp_affinity_list")) => format!("irq/{irq}"),
            Some((_, file)) => return Err(format!("{file} is not written: smp_affinity_list is")),
            None => path.to_owned(),
        },
    };
    name.parse().map_err(|error| format!("{error}"))
}

/// A value in the words of its setting.
fn value(knob: &Knob, value: &Value) -> String {
    let part = knob.part.as_deref();
    match (value, &knob.target) {
        (Value::Switch(on), target) if !target.has_parts() => u8::from(*on).to_string(),
        (Value::Numbers(_), Target::Group { group: Group::Rss, .. }) => {
            value.to_string().replace(' ', ",")
        }
        (Value::Text(text), Target::Group { group: Group::Rss, .. }) if part == Some("key") => {
            key(text)
        }
        (Value::Text(text), Target::Group { group: Group::Rss, .. }) => {
            text.trim().replace(' ', ":")
        }
        (other, _) => other.to_string(),
    }
}

/// Hexadecimal digits, two and two.
fn key(digits: &str) -> String {
    if digits.contains(':') {
        return digits.into();
    }
    let pairs: Vec<String> =
        digits.as_bytes().chunks(2).map(|two| String::from_utf8_lossy(two).into_owned()).collect();
    pairs.join(":")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::knob::Knob as Named;

    fn said(named: &Named, to: impl Into<Value>) -> String {
        let knob = target(named).unwrap();
        format!("{knob}={}", value(&knob, &to.into()))
    }

    #[test]
    fn each_knob_of_a_rule_has_its_name_here() {
        let dev = || "e0".to_owned();
        let which = |name: &str| name.to_owned();
        for (named, to, expected) in [
            (Named::sysctl("net.core.rmem_max"), Value::Number(7), "net.core.rmem_max=7"),
            (Named::sysctl("net.ipv4.tcp_sack"), true.into(), "net.ipv4.tcp_sack=1"),
            (
                Named::attribute("/sys/class/net/e0/queues/rx-0/rps_cpus"),
                "3".into(),
                "e0/queues/rx-0/rps_cpus=3",
            ),
            (Named::attribute("/sys/class/net/e0/threaded"), true.into(), "e0/threaded=1"),
            (Named::attribute("/proc/irq/41/smp_affinity_list"), "2".into(), "irq/41=2"),
            (Named::Ring { dev: dev(), which: which("rx") }, 4096.into(), "e0/rings/rx=4096"),
            (
                Named::Feature { dev: dev(), name: which("rx-gro") },
                true.into(),
                "e0/features/rx-gro=on",
            ),
            (Named::RssTable { dev: dev() }, "equal 4".into(), "e0/rss/indir=equal:4"),
            (Named::RssTable { dev: dev() }, Value::Numbers(vec![0, 1]), "e0/rss/indir=0,1"),
            (Named::RssKey { dev: dev() }, "6d5a01".into(), "e0/rss/key=6d:5a:01"),
            (
                Named::HashFields { dev: dev(), flow: which("udp4") },
                "sdfn".into(),
                "e0/flow-hash/udp4=sdfn",
            ),
            (Named::Eee { dev: dev() }, false.into(), "e0/eee/enabled=off"),
            (
                Named::LinkMode { dev: dev(), which: "autoneg".into() },
                true.into(),
                "e0/link-modes/autoneg=on",
            ),
            (Named::Link { dev: dev(), which: which("mtu") }, 9000.into(), "e0/link/mtu=9000"),
        ] {
            assert_eq!(said(&named, to), expected);
        }
        assert!(target(&Named::attribute("/etc/x")).is_err());
        assert!(target(&Named::Link { dev: dev(), which: which("promisc") }).is_err());
    }
}
