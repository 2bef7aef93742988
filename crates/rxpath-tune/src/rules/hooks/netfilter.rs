//! Firewall and connection tracking. These rules only report: they never propose to remove a firewall.

use rxpath_host::counter::Width;
use rxpath_host::netlink::netfilter::Conntrack;

use crate::prelude::*;

const CONNTRACK: &str = "kernel: Documentation/networking/nf_conntrack-sysctl.rst";
const DROP: &str = "Cloudflare, How to drop 10 million packets per second, 2018";

/// Rules of this file.
pub const RULES: &[Rule] = &[
    Rule {
        id: "conntrack-active",
        what: "Does connection tracking process every flow?",
        applies: "hosts with connection tracking loaded",
        weight: Weight::by_goal().when(Throughput, Info).when(Latency, Info).when(Benchmark, Warn),
        check: Check::Host(active),
        why: "Each packet is looked up in the conntrack table, and each new flow adds an entry.",
        mechanism: "nf_conntrack_in (net/netfilter/nf_conntrack_core.c) at PREROUTING and OUTPUT; a rule of \
                    priority raw runs before it.",
        not_when: "stateful rules or NAT need it, as in most firewalls",
        side_effects: "stateful rules no longer match the exempt flows: this affects security",
        set_now: "rules for both directions of the flow, never made by rxpath: nft add table inet rxpath_notrack; \
                  nft add chain inet rxpath_notrack in '{ type filter hook prerouting priority raw; }'; nft add \
                  chain inet rxpath_notrack out '{ type filter hook output priority raw; }'; nft add rule inet \
                  rxpath_notrack in udp dport PORT notrack; nft add rule inet rxpath_notrack out udp sport PORT \
                  notrack. With iptables: iptables -t raw -I PREROUTING -p udp --dport PORT -j CT --notrack; \
                  iptables -t raw -I OUTPUT -p udp --sport PORT -j CT --notrack",
        persist: "the firewall's own configuration",
        undo: "nft delete table inet rxpath_notrack; or the same iptables commands with -D instead of -I",
        verify: "/proc/sys/net/netfilter/nf_conntrack_count does not rise with the test traffic",
        since: "2.4",
        sources: &[CONNTRACK, "https://blog.cloudflare.com/how-to-drop-10-million-packets/"],
        ..Rule::judge(Area::Hooks)
    },
    Rule {
        id: "conntrack-sizing",
        what: "Has the conntrack table free entries?",
        applies: "hosts with connection tracking loaded",
        weight: Weight::always(Warn),
        size: Loss,
        effect: "a full table drops the first packet of each new flow",
        check: Check::Host(sizing),
        why: "A full table drops new flows. Too few hash buckets make each lookup slow.",
        mechanism: "__nf_conntrack_alloc (net/netfilter/nf_conntrack_core.c): early_drop, then `table full, \
                    dropping packet`.",
        not_when: "a flood fills it: exempt the port from tracking instead",
        side_effects: "some hundred bytes for each entry",
        set_now: "sysctl -w net.netfilter.nf_conntrack_max=N; echo N > /sys/module/nf_conntrack/parameters/hashsize",
        persist: "/etc/sysctl.d/, and options nf_conntrack hashsize=N in /etc/modprobe.d/",
        undo: "nf_conntrack_max: set the previous number by hand; the plan's journal has the previous hash size",
        verify: "compare nf_conntrack_count with nf_conntrack_max; the drop and early_drop columns of \
                 /proc/net/stat/nf_conntrack",
        since: "2.6",
        sources: &[CONNTRACK, "kernel: net/netfilter/nf_conntrack_core.c early_drop"],
        ..Rule::judge(Area::Hooks)
    },
    Rule {
        id: "iptables-legacy-chains",
        what: "Do legacy iptables rules run in addition to nftables rules?",
        applies: "hosts whose legacy iptables tables can be listed",
        check: Check::Host(legacy),
        why: "Each packet passes both rule sets, rule by rule, and each tool shows only its own half. rxpath \
              reads which tables exist, not how many rules they have.",
        mechanism: "ipt_do_table (net/ipv4/netfilter/ip_tables.c) and nft_do_chain are on the same hooks. \
                    rxpath reads the names of the legacy tables and of the nftables tables (NFT_MSG_GETTABLE, \
                    CAP_NET_ADMIN; only if nf_tables is already loaded, because the request would load it), else \
                    the functions on the hooks.",
        not_when: "the host uses one of the two, and the other has no rules",
        side_effects: "this affects security: rxpath only reports",
        set_now: "iptables-legacy-save | iptables-nft-restore, check the result; then empty the legacy tables",
        persist: "the firewall's own configuration",
        undo: "iptables-legacy-restore FILE, with the saved rules",
        verify: "cat /proc/net/ip_tables_names is empty, or nft list ruleset is",
        since: "2.4; nftables 3.13",
        sources: &["kernel: net/ipv4/netfilter/ip_tables.c ipt_do_table"],
        ..Rule::judge(Area::Hooks)
    },
    Rule {
        id: "ebtables-bridge-nf",
        what: "Do bridged frames also pass the IP firewall (br_netfilter)?",
        applies: "hosts with br_netfilter loaded and a bridge in this namespace",
        weight: Weight::by_goal().when(Throughput, Warn).when(Latency, Info).when(Benchmark, Warn),
        check: Check::Host(bridge),
        why: "Frames between two bridge ports then pass iptables and connection tracking as if they were routed.",
        mechanism: "br_nf_pre_routing (net/bridge/br_netfilter_hooks.c).",
        not_when: "Docker or Kubernetes: their policies depend on it",
        side_effects: "rules that filter bridged traffic stop matching: this affects security",
        set_now: "sysctl -w net.bridge.bridge-nf-call-iptables=0 (only where no container runtime needs it)",
        persist: "/etc/sysctl.d/",
        undo: "restore the previous values by hand: none is written by rxpath",
        verify: "sysctl net.bridge",
        since: "2.6; a separate module since 3.18",
        sources: &["kernel: net/bridge/br_netfilter_hooks.c br_nf_pre_routing"],
        ..Rule::judge(Area::Hooks)
    },
    Rule {
        id: "nf-hooks",
        what: "Which functions are registered on netfilter's receive hooks?",
        applies: "kernels with nfnetlink hooks, read with CAP_NET_ADMIN",
        check: Check::Host(hooks),
        why: "Each function is called for each packet, before any socket sees it.",
        mechanism: "nf_hook_slow (net/netfilter/core.c) calls the functions of PREROUTING and INPUT in order of \
                    priority.",
        not_when: "never remove them for speed alone: they are the firewall",
        side_effects: "this affects security: rxpath only reports",
        persist: "the firewall's own configuration",
        verify: "nft list hooks",
        since: "5.14 with CONFIG_NETFILTER_NETLINK_HOOK",
        sources: &["kernel: net/netfilter/nfnetlink_hook.c", DROP],
        ..Rule::record(Area::Hooks)
    },
];

const COUNT: &str = "net.netfilter.nf_conntrack_count";
const MAX: &str = "net.netfilter.nf_conntrack_max";

/// Whether this host forwards packets.
fn routes(ask: &Ask<'_>) -> bool {
    ["net.ipv4.ip_forward", "net.ipv6.conf.all.forwarding"]
        .into_iter()
        .any(|key| ask.facts.sysctl_number(key).value().is_some_and(|value| *value != 0))
}

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
    Answer::found(
        format!("{count} flows are tracked"),
        "exempt the fast or measured flows, if no rule needs their state",
        "each packet is looked up before it reaches a socket",
    )
    .advice("add a notrack rule yourself; firewall rules are never changed by rxpath")
}

/// Losses because the table was full.
fn no_room(ask: &Ask<'_>, count: i64, max: i64) -> Option<Checked> {
    let table = ask.facts.answers.conntrack.value()?;
    let later = ask.facts.later_answers().and_then(|answers| answers.conntrack.value());
    let lost = |table: &Conntrack| (table.drop_total, table.early_drop_total);
    let (first, later) = (lost(table), later.map(lost));
    let dropped = Count::of(Width::U64, first.0, later.map(|it| it.0));
    let both = dropped.plus(Count::of(Width::U64, first.1, later.map(|it| it.1)));
    if both.total == 0 {
        return None;
    }
    let watched = &ask.facts.watched;
    let what = "packets dropped and connections evicted because the table was full";
    let told = watched.tell(both, what, "the namespace was made");
    let found = Answer::found(
        format!("{told}; now {count} of at most {max} entries"),
        "none",
        "the table was full, or nearly, at some time",
    );
    let advice = format!(
        "sysctl -w {MAX}={}, or shorter timeouts; firewall settings are never changed by rxpath",
        max.saturating_mul(2)
    );
    Some(found.advice(advice).severity(Warn).rests_on(both, watched))
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
    let chains = hooks.iter().filter_map(|hook| {
        let by_function = || hook.function.clone().filter(is_nft);
        hook.chain.clone().or_else(by_function)
    });
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
    Answer::found(
        format!(
            "legacy iptables tables ({}) in addition to nftables tables ({})",
            tables.join(", "),
            new.join(", ")
        ),
        "one of the two",
        "packets pass both, and each tool shows only its own half",
    )
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
    if (&ask.facts.processes)
        .known()?
        .all
        .iter()
        .any(|(_, name)| ["dockerd", "kubelet", "containerd", "libvirtd"].contains(&name.as_str()))
    {
        return Answer::silent("on, and a container runtime that may depend on it runs here");
    }
    let list = on.iter().map(|key| format!("sysctl -w {key}=0")).collect::<Vec<_>>().join("; ");
    Answer::found(
        format!("{} on", on.join(", ")),
        "0, where no container runtime or policy needs it",
        "each bridged frame passes the IP firewall",
    )
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
