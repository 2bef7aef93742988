//! Settings that are right alone and wrong together.

mod bonds;
mod engines;

use rxpath_core::{CpuList, Nanos, Warning};
use rxpath_host::Target;

use super::error::{FileError, nearest, suggestion};
use super::keys::{find, names_in};
use super::merge::{Overlay, value_of};
use super::reader::Reader;
use super::spec::{Background, Lab, OnHosts, Protocol, Topology, Trials, Tune};
use crate::run::capacity::Objectives;
use crate::testbed::tuned;

/// Ethernet's own payload is the MTU; these are the headers inside it (RFC 791, RFC 8200, RFC 768).
const IPV4_UDP: u64 = 20 + 8;
const IPV6_UDP: u64 = 40 + 8;

/// Most payload bytes of one UDP send.
const MAX_UDP_PAYLOAD: u64 = 65_507;

/// Everything that needs more than one key. Errors point at the line of the key that can be changed.
pub(super) fn variant(
    reader: &mut Reader<'_>,
    topology: Topology,
    lab: &Lab,
) -> Result<(), FileError> {
    protocol(reader)?;
    if topology.is_loopback() {
        changes_nothing(reader)?;
    }
    sysctls(reader, lab)?;
    if topology != Topology::Hosts {
        napi(reader, lab)?;
    }
    engines::path(reader, topology, lab)?;
    engines::known(reader)?;
    bonds::kept(reader)?;
    for side in ["serve", "load"] {
        threads(reader, side)?;
    }
    sender(reader)?;
    if topology.makes_lab() { size(reader, lab) } else { Ok(()) }
}

/// An error at the key's own line.
fn error(reader: &Reader<'_>, key: &str, wrong: String, right: impl Into<String>) -> FileError {
    let at = reader.get(key).map_or(super::error::At::Line(1), |setting| setting.at.clone());
    FileError::new(&at, wrong, right)
}

/// Both sides speak one protocol, and each option is one of it.
fn protocol(reader: &Reader<'_>) -> Result<(), FileError> {
    if let (Some(serve), Some(load)) = (reader.text("serve.protocol"), reader.text("load.protocol"))
        && serve != load
    {
        let wrong = format!("`load.protocol` is {load} and `serve.protocol` is {serve}");
        return Err(error(reader, "load.protocol", wrong, "set one of them"));
    }
    let spoken = reader.protocol();
    for name in reader.settings.keys() {
        let Some(key) = find(name).filter(|key| !key.fits(spoken)) else { continue };
        let words: Vec<&str> = key.protocols.iter().map(|protocol| protocol.word()).collect();
        let wrong =
            format!("`{name}` is an option of {}, not of {}", words.join(" and "), spoken.word());
        return Err(error(reader, name, wrong, instead_for(name, spoken, &words)));
    }
    Ok(())
}

fn instead_for(name: &str, spoken: Protocol, words: &[&str]) -> String {
    let (section, own) = name.split_once('.').unwrap_or(("", name));
    let known = names_in(section)
        .into_iter()
        .filter(|known| find(&format!("{section}.{known}")).is_some_and(|key| key.fits(spoken)));
    match nearest(own, known) {
        Some(near) => format!("did you mean `{section}.{near}`?"),
        None => {
            format!("leave it out, or set serve.protocol = \"{}\"", words.first().unwrap_or(&"udp"))
        }
    }
}

/// Without a namespace of its own a scenario must not change the host.
fn changes_nothing(reader: &Reader<'_>) -> Result<(), FileError> {
    // CPUs are kept awake by a request that ends with its process: it changes nothing.
    let harmless = ["lab.ipv6", "lab.awake"];
    let changes = |key: &&String| {
        (key.starts_with("lab.") || key.starts_with("tune.")) && !harmless.contains(&key.as_str())
    };
    let Some(key) = reader.settings.keys().find(changes) else { return Ok(()) };
    let wrong =
        format!("`{key}` would change this host: the local topology has no namespace of its own");
    Err(error(reader, key, wrong, "use topology.kind = \"netns\""))
}

/// Hosts that a variant names are those of the experiment. A lab has none; before the hosts are known any may be there.
pub(super) fn hosts(
    reader: &Reader<'_>,
    known: Option<&[&str]>,
    tune: &Tune,
    background: &Background,
) -> Result<(), FileError> {
    const SIDES: [&str; 2] = ["receiver", "sender"];
    let Some(known) = known else { return Ok(()) };
    let unknown = |alias: &&String| !known.contains(&alias.as_str());
    let wrong = |key: &str, alias: &str| format!("`{key}`: this run has no host `{alias}`");
    if let Some(alias) = tune.hosts.keys().find(unknown) {
        let key = format!("tune.{alias}");
        let right = match nearest(alias, SIDES) {
            None if known.is_empty() => "run it with --hosts, or name receiver or sender".into(),
            _ => suggestion(alias, "names", &[&SIDES[..], known].concat()),
        };
        return Err(error(reader, &key, wrong(&key, alias), right));
    }
    let key = "background.on";
    if known.is_empty() && background.on != OnHosts::Receivers {
        let wrong = format!("`{key}` chooses hosts, and this run has none");
        return Err(error(reader, key, wrong, "leave it out, or run it with --hosts"));
    }
    let OnHosts::These(aliases) = &background.on else { return Ok(()) };
    let Some(alias) = aliases.iter().find(unknown) else { return Ok(()) };
    Err(error(reader, key, wrong(key, alias), suggestion(alias, "hosts", known)))
}

/// Each name is a setting; in the lab one of a namespace and not of the whole host.
pub(super) fn tune(reader: &Reader<'_>, topology: Topology, tune: &Tune) -> Result<(), FileError> {
    for (key, _, names) in tune.parts() {
        for name in names.keys() {
            // Of a host each queue is meant.
            let each = if topology == Topology::Hosts { "0" } else { "*" };
            let knob = tuned::knob(&name.replace('*', each)).map_err(|why| {
                let right = "`rxpath explain --settings` lists names";
                error(reader, &key, format!("`{key}`: {why}"), right)
            })?;
            if topology != Topology::Hosts && !tuned::is_of_namespace(&knob.target) {
                let wrong = format!(
                    "`{key}`: {name} holds for the whole host, and a lab changes only its namespaces"
                );
                return Err(error(reader, &key, wrong, "set it with `rxpath tune` around the run"));
            }
        }
    }
    Ok(())
}

/// Each name is a sysctl of a network namespace.
fn sysctls(reader: &Reader<'_>, lab: &Lab) -> Result<(), FileError> {
    for (key, names) in [("lab.sysctl_rx", &lab.sysctl_rx), ("lab.sysctl_tx", &lab.sysctl_tx)] {
        let is_wrong = |name: &&String| {
            let target = format!("/proc/sys/{name}").parse::<Target>();
            !target.is_ok_and(|target| tuned::is_of_namespace(&target))
        };
        if let Some(name) = names.keys().find(is_wrong) {
            let wrong = format!("`{key}`: `{name}` is no sysctl of a network namespace");
            return Err(error(reader, key, wrong, "write one such as net.ipv4.ip_forward"));
        }
    }
    Ok(())
}

/// veth has NAPI only under conditions (`veth_skb_is_eligible_for_gro`, drivers/net/veth.c, Linux 6.18).
fn napi(reader: &mut Reader<'_>, lab: &Lab) -> Result<(), FileError> {
    let on = lab.gro && (!lab.tso || lab.udp_gro_forwarding);
    let needs =
        "a veth end has NAPI with gro = true and tso = false (or udp_gro_forwarding = true)";
    if lab.threaded && !on {
        return Err(error(reader, "lab.threaded", "`lab.threaded` needs NAPI".into(), needs));
    }
    for key in ["lab.napi_defer_hard_irqs", "lab.gro_flush_timeout"] {
        if reader.get(key).is_some() && !on {
            return Err(error(reader, key, format!("`{key}` needs NAPI"), needs));
        }
    }
    for key in ["lab.napi_cpu", "lab.napi_idle"] {
        if reader.get(key).is_some() && !lab.threaded {
            let wrong = format!("`{key}` is about NAPI threads and there are none");
            return Err(error(reader, key, wrong, "set lab.threaded = true"));
        }
    }
    if reader.get("serve.busy_poll").is_some() && !on {
        reader.warnings.push(
            Warning::new("busy-poll-without-napi", "busy polling will do nothing in a variant")
                .because("the receiver's veth has no NAPI there")
                .cure(needs),
        );
    }
    Ok(())
}

fn threads(reader: &Reader<'_>, side: &str) -> Result<(), FileError> {
    let key = format!("{side}.threads");
    let Some(threads) = reader.number(&key) else { return Ok(()) };
    let cpus = reader.text(&format!("{side}.cpu")).and_then(|list| list.parse::<CpuList>().ok());
    let pinned = cpus.map_or(0, |cpus| cpus.0.len() as u64);
    if pinned != 0 && pinned != threads {
        let wrong = format!("`{key}` is {threads} and `{side}.cpu` names {pinned}");
        return Err(error(reader, &key, wrong, "leave threads out: it is one thread per CPU"));
    }
    Ok(())
}

fn sender(reader: &Reader<'_>) -> Result<(), FileError> {
    let flows = reader.number("load.flows").unwrap_or(1);
    if let Some(first) = reader.number("load.source_port")
        && first + flows - 1 > u64::from(u16::MAX)
    {
        let wrong = format!("{flows} flows from source port {first} on go past port 65535");
        let right = format!("start at {} or below", u64::from(u16::MAX) - flows + 1);
        return Err(error(reader, "load.source_port", wrong, right));
    }
    capacity_slo(reader)
}

fn capacity_slo(reader: &Reader<'_>) -> Result<(), FileError> {
    let key = "load.capacity_slo";
    let Some(text) = reader.text(key) else { return Ok(()) };
    let Err(why) = Objectives::parse(text, reader.protocol()) else { return Ok(()) };
    Err(error(reader, key, format!("`{key}`: {why}"), "write loss=0.1% or p99<2ms"))
}

/// The capacity is searched once, with the first variant that asks for a share of it.
pub fn one_capacity(variants: impl Iterator<Item = Overlay>) -> Result<(), FileError> {
    let key = "load.capacity_slo";
    let mut asking = variants.filter(|merged| merged.get("load.capacity_ratio").is_some());
    let Some(first) = asking.next() else { return Ok(()) };
    for merged in asking {
        if value_of(&first, key) != value_of(&merged, key) {
            let at = merged.get(key).or(first.get(key)).map(|setting| setting.at.clone());
            let wrong =
                format!("variants differ in `{key}`, and one capacity is searched for all of them");
            let right = "write it once under [load], or make two scenarios";
            return Err(FileError::new(&at.unwrap_or(super::error::At::Line(1)), wrong, right));
        }
    }
    Ok(())
}

fn size(reader: &mut Reader<'_>, lab: &Lab) -> Result<(), FileError> {
    let Some(size) = reader.number("load.size") else { return Ok(()) };
    let headers = if lab.ipv6 { IPV6_UDP } else { IPV4_UDP };
    let fits = u64::from(lab.mtu_bytes).saturating_sub(headers);
    if let Some(segments) = reader.number("load.gso") {
        if size > fits {
            let wrong =
                format!("GSO segments of {size} bytes do not fit the MTU of {}", lab.mtu_bytes);
            let right = format!("the kernel refuses them (EINVAL): use load.size up to {fits}");
            return Err(error(reader, "load.size", wrong, right));
        }
        if size * segments > MAX_UDP_PAYLOAD {
            let wrong = format!("{segments} segments of {size} bytes are more than one send takes");
            let right = format!("use load.gso up to {}", MAX_UDP_PAYLOAD / size.max(1));
            return Err(error(reader, "load.gso", wrong, right));
        }
    } else if size > fits {
        let fragments = (size + 8).div_ceil((u64::from(lab.mtu_bytes) - (headers - 8)) / 8 * 8);
        let text = format!("datagrams of {size} bytes do not fit the MTU of {}", lab.mtu_bytes);
        let why = format!("IP cuts each into {fragments} fragments; one lost fragment loses all");
        let cure = format!("use load.size up to {fits}, a larger lab.mtu_bytes, or load.gso");
        reader.warnings.push(Warning::new("datagrams-fragmented", text).because(why).cure(cure));
    }
    Ok(())
}

/// The trials' own numbers.
pub(super) fn trials(reader: &Reader<'_>, trials: &Trials) -> Result<(), FileError> {
    if trials.blocks > trials.max_blocks {
        let wrong = format!("{} blocks at least, {} at most", trials.blocks, trials.max_blocks);
        return Err(error(reader, "trials.max_blocks", wrong, "raise trials.max_blocks"));
    }
    let (shortest, limit) = (Nanos(trials.ramp.0 + trials.measure.0), trials.time_limit);
    if shortest > limit {
        let wrong = format!("one trial takes {shortest}, the whole run {limit}");
        let key = "trials.time_limit";
        let key = if reader.get(key).is_some() { key } else { "trials.measure" };
        return Err(error(reader, key, wrong, "raise trials.time_limit or shorten trials.measure"));
    }
    Ok(())
}
