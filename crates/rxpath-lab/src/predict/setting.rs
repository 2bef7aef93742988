//! Settings of a host in the simulator's words.

use std::collections::BTreeMap;
use std::str::FromStr;

use rxpath_host::pairs::Pairs;
use rxpath_host::read::sysfs::device::parse_mask;
use rxpath_host::{Group, Target};
use rxpath_model::calibration::Calibration;
use rxpath_record::manifest::Trial;

use super::{figures, values};
use crate::scenario::spec::Variant;
use crate::testbed::tuned::knob;

/// The ratio of a metric that the model predicts for a measured trial with these keys of its scenario set; `None` where
/// the simulator lacks one of them or the metric.
pub fn ratio_with(
    variant: &Variant,
    trial: &Trial,
    calibration: &Calibration,
    keys: &[String],
    metric: &str,
) -> Option<f64> {
    let mut values = values(variant, &[trial], calibration, &BTreeMap::new()).ok()?;
    let before = *figures(&values).ok()?.get(metric)?;
    for key in keys {
        let (name, value) = key.split_once('=')?;
        let own = match name {
            "serve.rcvbuf" => vec![format!("socket.rcvbuf={value}")],
            "serve.batch" => vec![format!("reader.batch={value}")],
            _ => {
                let knob = knob(name.strip_prefix("tune.receiver.")?).ok()?;
                let part = knob.part.map_or_else(String::new, |part| format!("{part}="));
                sets(&knob.target, &format!("{part}{value}")).ok()?
            }
        };
        own.iter().try_for_each(|set| values.set(set)).ok()?;
    }
    let after = *figures(&values).ok()?.get(metric)?;
    (before > 0.0 && after > 0.0).then(|| after / before)
}

/// A setting's value as the simulator's parameters, `KEY=VALUE`.
///
/// # Errors
/// In words why the simulator has none for it.
pub fn sets(target: &Target, value: &str) -> Result<Vec<String>, String> {
    let none = || format!("the simulator has no parameter for {target}");
    match target {
        Target::Sysctl { key } => {
            let name = match key.as_str() {
                "net.core.netdev_budget" => "softirq.budget",
                "net.core.netdev_budget_usecs" => "softirq.budget_usecs",
                "net.core.netdev_max_backlog" => "rps.backlog",
                "net.core.rmem_default" => "socket.rcvbuf",
                _ => return Err(none()),
            };
            Ok(vec![format!("{name}={}", value.trim())])
        }
        Target::Attr { attr, .. } if attr == "threaded" => {
            Ok(vec![format!("softirq.threaded={}", value.trim() == "1")])
        }
        Target::Attr { attr, .. } if attr.ends_with("/rps_cpus") => {
            let cpus = parse_mask(value.trim()).map_err(|error| error.to_string())?;
            let cpus: Vec<String> = cpus.0.iter().map(u32::to_string).collect();
            Ok(vec![format!("rps.cpus=[{}]", cpus.join(", "))])
        }
        Target::Group { group, .. } => {
            let pairs = Pairs::from_str(value).map_err(|error| error.to_string())?;
            let known: Vec<String> = pairs
                .iter()
                .filter_map(|(name, value)| Some(format!("{}={value}", of_group(*group, name)?)))
                .collect();
            if known.is_empty() { Err(none()) } else { Ok(known) }
        }
        _ => Err(none()),
    }
}

fn of_group(group: Group, name: &str) -> Option<&'static str> {
    match (group, name) {
        (Group::Rings, "rx") => Some("nic.ring"),
        (Group::Coalesce, "rx-usecs") => Some("nic.rx_usecs"),
        (Group::Coalesce, "rx-frames") => Some("nic.rx_frames"),
        (Group::Channels, "combined" | "rx") => Some("nic.queues"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_told_in_the_simulators_words() {
        let of = |set: &str, new: &str| sets(&set.parse::<Target>().unwrap(), new);
        assert_eq!(of("eth0/rings", "rx=4096 tx=512").unwrap(), ["nic.ring=4096"]);
        assert_eq!(of("eth0/coalesce", "rx-usecs=50").unwrap(), ["nic.rx_usecs=50"]);
        assert_eq!(of("net.core.netdev_budget", "600").unwrap(), ["softirq.budget=600"]);
        assert_eq!(of("eth0/queues/rx-0/rps_cpus", "0a").unwrap(), ["rps.cpus=[1, 3]"]);
        assert_eq!(of("eth0/threaded", "1").unwrap(), ["softirq.threaded=true"]);
        let none = of("net.core.somaxconn", "4096").unwrap_err();
        assert!(none.contains("no parameter for net.core.somaxconn"), "{none}");
        assert!(of("eth0/features", "gro=on").is_err());
    }
}
