//! Firewall and connection tracking. These rules only report: they never propose to remove a firewall.

use rxpath_core::number::signed;
use rxpath_host::read::counter::Width;
use rxpath_host::read::netlink::netfilter::Conntrack;

use crate::prelude::*;

/// The checks of the rules of this file.
pub const CHECKS: Checks = &[
    ("conntrack-active", Check::Host(active)),
    ("conntrack-sizing", Check::Host(sizing)),
    ("iptables-legacy-chains", Check::Host(legacy)),
    ("ebtables-bridge-nf", Check::Host(bridge)),
    ("nf-hooks", Check::Host(hooks)),
];

const COUNT: &str = "net.netfilter.nf_conntrack_count";
const MAX: &str = "net.netfilter.nf_conntrack_max";

fn active(ask: &Ask<'_>) -> Checked {
    let count = ask.facts.sysctl_number(COUNT).known()?;
    if count == 0 {
        return Answer::fine("loaded, and tracks nothing");
    }
    // A measurement should report it nevertheless.
    if ask.goal != Some(Benchmark) && routes(ask) {
        return Answer::silent(
            "a host that forwards: NAT, firewall and flow tables need the state",
        );
    }
    Answer::observed(format!("{} flows are tracked", signed(count)))
        .advice("add a notrack rule yourself; firewall rules are never changed by rxpath")
}

/// Losses because the table was full.
fn no_room(ask: &Ask<'_>, count: i64, max: i64) -> Option<Checked> {
    let table = ask.facts.answers.conntrack.value()?;
    let later = ask.facts.later_answers().and_then(|answers| answers.conntrack.value());
    let lost = |table: &Conntrack| (table.drop_total, table.early_drop_total);
    let (first, later) = (lost(table), later.map(lost));
    let dropped = Count::of(Width::U32Sum, first.0, later.map(|it| it.0));
    let both = dropped.plus(Count::of(Width::U32Sum, first.1, later.map(|it| it.1)));
    if both.total == 0 {
        return None;
    }
    let what = "times a packet was dropped or a connection evicted because the table was full";
    let told = ask.facts.watched.tell(both, what, "the namespace was made");
    let found = Answer::found(
        format!("{told}; now {count} of at most {max} entries"),
        "none",
        "the table was full, or nearly, at some time",
    );
    let advice = format!(
        "sysctl -w {MAX}={}, or shorter timeouts; firewall settings are never changed by rxpath",
        max.saturating_mul(2)
    );
    Some(found.advice(advice).severity(Warn).rests_on(both, &ask.facts.watched))
}

fn sizing(ask: &Ask<'_>) -> Checked {
    let count = ask.facts.sysctl_number(COUNT).known()?;
    let max = ask.facts.sysctl_number(MAX).known()?;
    if max > 0 && count * 10 >= max * 9 {
        return Answer::found(
            format!("{count} of at most {max} entries"),
            "less than nine tenths of the limit",
            "new flows are dropped when it is full",
        )
        .advice(format!(
            "sysctl -w {MAX}={}; firewall settings are never changed by rxpath",
            max.saturating_mul(2)
        ))
        .severity(Fail);
    }
    if let Some(found) = no_room(ask, count, max) {
        return found;
    }
    // The kernel's default ratio of entries to buckets is 1 since 5.15, and was 4 before.
    let buckets = ask.facts.number("/sys/module/nf_conntrack/parameters/hashsize").known()?;
    if buckets > 0 && max > 8 * buckets {
        return Answer::found(
            format!("at most {max} entries in {buckets} buckets"),
            "at most 4 entries per bucket",
            "each lookup walks a long chain",
        )
        .change(Set::new(
            Knob::path("/sys/module/nf_conntrack/parameters/hashsize"),
            max as u64 / 4,
        ))
        .size(Unmeasured);
    }
    Answer::fine(format!("{count} of at most {max} entries"))
}

/// Nftables tables that are in use, else its chains on the hooks.
fn nft_tables(ask: &Ask<'_>) -> Result<Vec<String>, Gap> {
    let answers = &ask.facts.answers;
    let gap = match (&answers.nft_tables).known() {
        Ok(tables) => {
            let used = tables.iter().filter(|table| table.objects_count > 0);
            return Ok(used.map(|table| format!("{} {}", table.family, table.name)).collect());
        }
        Err(gap) => gap,
    };
    let Some(hooks) = answers.netfilter_hooks.value() else { return Err(gap) };
    let is_nft = |function: &String| function.starts_with("nft_do_chain");
    let chains = hooks
        .iter()
        .filter_map(|hook| hook.chain.clone().or_else(|| hook.function.clone().filter(is_nft)));
    Ok(chains.collect())
}

fn legacy(ask: &Ask<'_>) -> Checked {
    let tables = ask.facts.text("/proc/net/ip_tables_names").known()?;
    let tables: Vec<&str> = tables.split_whitespace().collect();
    if tables.is_empty() {
        return Answer::fine("no legacy iptables table");
    }
    let new = nft_tables(ask)?;
    if new.is_empty() {
        return Answer::fine(format!("legacy iptables only: {}", tables.join(", ")));
    }
    Answer::observed(format!(
            "legacy iptables tables ({}) in addition to nftables tables ({})",
            tables.join(", "),
            new.join(", ")
        ))
    .advice("compare iptables-legacy-save with nft list ruleset; firewall rules are never changed by rxpath")
}

fn bridge(ask: &Ask<'_>) -> Checked {
    let keys = ["bridge-nf-call-iptables", "bridge-nf-call-ip6tables", "bridge-nf-call-arptables"];
    let mut on = Vec::new();
    for key in keys {
        let key = format!("net.bridge.{key}");
        if ask.facts.sysctl_number(&key).known()? != 0 {
            on.push(key);
        }
    }
    if on.is_empty() {
        return Answer::fine("bridged frames pass no IP firewall");
    }
    let devices = ask.facts.all_devices()?;
    if !devices.iter().any(|device| ask.facts.exists(&device.path("bridge"))) {
        return Answer::silent("on, and this namespace has no bridge");
    }
    let processes = (&ask.facts.processes).known()?;
    let runtimes = ["dockerd", "kubelet", "containerd", "libvirtd"];
    if runtimes.iter().any(|name| processes.runs(name)) {
        return Answer::silent("on, and a container runtime that may depend on it runs here");
    }
    let list = on.iter().map(|key| format!("sysctl -w {key}=0")).collect::<Vec<_>>().join("; ");
    Answer::observed(format!("{} on", on.join(", ")))
        .advice(format!("{list}: this changes the firewall, so rxpath never does it"))
}

fn hooks(ask: &Ask<'_>) -> Checked {
    let hooks = (&ask.facts.answers.netfilter_hooks).known()?;
    let names: Vec<String> = hooks
        .iter()
        .map(|hook| {
            let what = hook.chain.as_ref().or(hook.function.as_ref());
            format!("{} {}", hook.hook, what.map_or("unnamed", String::as_str))
        })
        .collect();
    Answer::recorded(if names.is_empty() { "none".into() } else { names.join(", ") })
}
