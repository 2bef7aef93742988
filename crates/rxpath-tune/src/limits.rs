//! What may be changed at all, and which values a setting can have.
//!
//! The question it answers: *is this a value that the setting can hold, and is it ours to change?* It is asked before
//! anything is written, so that a plan that was edited by hand fails whole and not halfway. The kernel has the last
//! word; these bounds are the kernel's own where it has some, and sane ones where it takes anything.

use rxpath_core::CpuList;
use rxpath_host::pairs::Pairs;
use rxpath_host::write::netlink::{group, napi};
use rxpath_host::write::setter::{Bounds, rss};
use rxpath_host::{Group, Target};

use self::table::{OwnFile, SETTINGS};
use self::takes::{Takes, bits, number};

pub mod sysctl;
mod table;
mod takes;
#[cfg(test)]
mod tests;

/// Longest text of a value: an RSS table of a large NIC has some thousand entries.
const TEXT_MAX: usize = 1 << 16;

/// Sysctls of the receive path; what is not below one of them is not ours.
const SYSCTLS: &[&str] = &["net.core.", "net.ipv4.", "net.ipv6."];

/// Sysctls that guard something: reported, never changed. A device's stand for all of their name.
const GUARDS: &[&str] = &[
    "net.core.bpf_jit_harden",
    "net.ipv4.tcp_syncookies",
    "net.ipv4.icmp_echo_ignore_broadcasts",
    "accept_source_route",
];

/// Below it a device has no IPv6 (include/uapi/linux/in6.h `IPV6_MIN_MTU`, net/ipv6/addrconf.c `addrconf_notify`).
const IPV6_MIN_MTU: u32 = 1280;

/// Whether a setting is ours to change.
///
/// **Errors** in words: firewall rules, mitigations and guards are reported, never changed.
pub(crate) fn may_change(target: &Target) -> Result<(), String> {
    match target {
        Target::Sysctl { key } => {
            let dotted = key.replace('/', ".");
            if dotted.contains("netfilter") || dotted.contains("bridge-nf") {
                return Err("firewall settings are reported and never changed".into());
            }
            let of_device =
                dotted.split_once(".conf.").and_then(|(_, rest)| rest.rsplit('.').next());
            if GUARDS.contains(&dotted.as_str())
                || of_device.is_some_and(|name| GUARDS.contains(&name))
            {
                return Err("it guards the host: reported and never changed".into());
            }
            if of_device == Some("disable_ipv6") {
                return Err(
                    "it takes addresses and routes along, and undo could not bring them back"
                        .into(),
                );
            }
            let ours = SYSCTLS.iter().any(|prefix| dotted.starts_with(prefix))
                || sysctl::is_listed(&dotted);
            if ours { Ok(()) } else { Err("not a sysctl of the receive path".into()) }
        }
        Target::Sysfs { path } => {
            let path = path.to_string_lossy();
            if path.contains("/vulnerabilities") {
                return Err("mitigations are reported and never changed".into());
            }
            if path.starts_with("/sys/class/net/") {
                return Err("a device's attribute is named DEV/ATTRIBUTE".into());
            }
            file(&path).map(|_| ())
        }
        Target::Attr { attr, .. } if attribute(attr).is_some() => Ok(()),
        Target::Attr { .. } => {
            let names: Vec<&str> = SETTINGS.attributes.keys().map(String::as_str).collect();
            Err(format!("expected one of {}", names.join(", ")))
        }
        Target::Group { .. }
        | Target::QueueCoalesce { .. }
        | Target::Napi { .. }
        | Target::Irq { .. } => Ok(()),
    }
}

/// What a file takes, when it is ours.
fn file(path: &str) -> Result<&'static Takes, String> {
    let ours = |file: &&OwnFile| path.starts_with(&file.begin) && path.ends_with(&file.end);
    let found = SETTINGS.file.iter().find(ours).map(|file| &file.takes);
    found.ok_or_else(|| "not a file that the receive path depends on".into())
}

/// What an attribute takes, when it stands where the kernel has it.
fn attribute(attr: &str) -> Option<&'static Takes> {
    let parts: Vec<&str> = attr.split('/').collect();
    let (is_queue, name) = match parts.as_slice() {
        [name] if !name.ends_with("_aspm") => (None, *name),
        ["device", "link", name] if name.ends_with("_aspm") => (None, *name),
        ["queues", queue, name] => (Some(*queue), *name),
        _ => return None,
    };
    let number = |prefix| is_queue.and_then(|q: &str| q.strip_prefix(prefix)?.parse::<u32>().ok());
    let place = match name {
        "rps_cpus" | "rps_flow_cnt" => number("rx-").is_some(),
        "xps_cpus" | "xps_rxqs" => number("tx-").is_some(),
        _ => is_queue.is_none(),
    };
    SETTINGS.attributes.get(name).filter(|_| place)
}

/// Whether a value is one line: the least that any value is, also one that is only compared.
pub(crate) fn is_line(value: &str) -> Result<(), String> {
    if value.len() > TEXT_MAX || value.contains(['\n', '\0']) {
        return Err(format!("a value is one line of at most {TEXT_MAX} bytes"));
    }
    Ok(())
}

/// Whether a value has the form that the setting takes, and lies within its bounds.
pub(crate) fn well_formed(target: &Target, value: &str) -> Result<(), String> {
    is_line(value)?;
    match target {
        Target::Sysctl { key } => sysctl::check(&key.replace('/', "."), value),
        Target::Sysfs { path } => file(&path.to_string_lossy())?.check(value.trim()),
        Target::Attr { attr, .. } => attribute(attr).map_or(Ok(()), |takes| takes.check(value)),
        Target::Irq { .. } => cpus(value),
        Target::Group { group, .. } => pairs(value).and_then(|pairs| of_group(*group, &pairs)),
        Target::QueueCoalesce { .. } => {
            pairs(value).and_then(|pairs| of_group(Group::Coalesce, &pairs))
        }
        Target::Napi { .. } => pairs(value).and_then(|p| napi::check(&p).map_err(|e| e.reason())),
    }
}

fn pairs(value: &str) -> Result<Pairs, String> {
    let pairs: Pairs = value.parse().map_err(|e| format!("{e}"))?;
    if pairs.is_empty() { Err("no NAME=VALUE".into()) } else { Ok(pairs) }
}

fn of_group(group: Group, pairs: &Pairs) -> Result<(), String> {
    match group {
        Group::Link if has_no_ipv6(pairs) => {
            return Err(format!(
                "below {IPV6_MIN_MTU} a device loses its IPv6 addresses and routes, and undo could not bring them back"
            ));
        }
        Group::Rss | Group::FlowHash => rss::check(group, pairs),
        _ => group::check(group, pairs),
    }
    .map_err(|error| error.reason())
}

fn has_no_ipv6(asked: &Pairs) -> bool {
    asked.get("mtu").and_then(|mtu| mtu.parse().ok()).is_some_and(|mtu: u32| mtu < IPV6_MIN_MTU)
}

fn cpus(value: &str) -> Result<(), String> {
    match value.trim().parse::<CpuList>() {
        Ok(list) if !list.0.is_empty() => Ok(()),
        _ => Err(format!("`{value}`: expected CPUs like 0-3,8")),
    }
}

/// Whether a value is within what this host and this device say of themselves: ring sizes, queue counts, MTU, CPUs,
/// words that are offered; and has the form of the value `now` where nothing else is known of it.
pub fn within(target: &Target, (now, value): (&str, &str), bounds: &Bounds) -> Result<(), String> {
    if let Target::Sysctl { key } = target {
        sysctl::like(&key.replace('/', "."), now, value)?;
    }
    if let Some(why) = bounds.obstacle {
        return Err(format!("`{value}`: {why}"));
    }
    if target.has_parts() {
        return parts_within(value, bounds);
    }
    let value = value.trim();
    if let Some(words) = &bounds.words
        && !words.iter().any(|word| word == value)
    {
        return Err(format!("`{value}` is not offered here: expected {}", words.join(", ")));
    }
    if let Some((min, max)) = bounds.range {
        number(value, min, max)?;
    }
    if let Some(queues) = bounds.queues
        && let Some(beyond) = bits(value).into_iter().flat_map(|all| all.0).find(|q| *q >= queues)
    {
        return Err(format!("`{value}`: there is no receive queue {beyond}, of {queues}"));
    }
    let Some(possible) = &bounds.cpus else { return Ok(()) };
    let named = match target {
        Target::Irq { .. } => value.parse().ok(),
        _ => bits(value),
    };
    let Some(CpuList(named)) = named else { return Ok(()) };
    if let Some(cpu) = named.iter().find(|cpu| !possible.0.contains(cpu)) {
        return Err(format!("`{value}`: this host has no CPU {cpu}, it has {possible}"));
    }
    match &bounds.online {
        Some(online) if !named.iter().any(|cpu| online.0.contains(cpu)) => {
            Err(format!("`{value}`: none of them is online, {online} are"))
        }
        _ => Ok(()),
    }
}

fn parts_within(value: &str, bounds: &Bounds) -> Result<(), String> {
    let Ok(pairs) = value.parse::<Pairs>() else { return Ok(()) };
    for (name, text) in pairs.iter() {
        let Ok(number) = text.parse::<u64>() else { continue };
        let bound = |of: &Pairs| of.get(name).and_then(|bound| bound.parse::<u64>().ok());
        if let Some(max) = bound(&bounds.most).filter(|max| number > *max) {
            return Err(format!("{name}={text}: the device takes at most {max}"));
        }
        if let Some(min) = bound(&bounds.least).filter(|min| number < *min) {
            return Err(format!("{name}={text}: the device takes at least {min}"));
        }
    }
    Ok(())
}
