//! Netfilter: which functions hang on the path of a packet, and what connection tracking did.
//!
//! **Source** linux/netfilter/nfnetlink_hook.h (5.14), linux/netfilter/nfnetlink_conntrack.h. Both need
//! `CAP_NET_ADMIN` in the namespace (net/netfilter/nfnetlink.c, `nfnetlink_rcv`). Nothing here changes a rule.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::HostError;
use crate::netlink::genl::refused;
use crate::netlink::socket::Netlink;
use crate::netlink::wire::{Attrs, Body};

/// `NFNL_SUBSYS_HOOK << 8 | NFNL_MSG_HOOK_GET`.
const HOOK_GET: u16 = 12 << 8;
/// `NFNL_SUBSYS_CTNETLINK << 8 | IPCTNL_MSG_CT_GET_STATS_CPU`, `..._GET_STATS`.
const CT_STATS_CPU: u16 = 1 << 8 | 4;
const CT_STATS: u16 = 1 << 8 | 5;
/// `struct nfgenmsg`.
const NFGENMSG: usize = 4;

const HOOK_HOOKNUM: u16 = 1;
const HOOK_PRIORITY: u16 = 2;
const HOOK_DEV: u16 = 3;
const HOOK_FUNCTION: u16 = 4;
const HOOK_MODULE: u16 = 5;
const HOOK_CHAIN_INFO: u16 = 6;
const INFO_DESC: u16 = 1;
const CHAIN_TABLE: u16 = 1;
const CHAIN_NAME: u16 = 3;

const CTA_GLOBAL_ENTRIES: u16 = 1;
const CTA_GLOBAL_MAX: u16 = 2;

/// Families and their hooks on the path of a received packet (linux/netfilter.h).
const PLACES: [(Family, u32, &str); 7] = [
    (Family::Netdev, 0, "ingress"),
    (Family::Ip, 0, "prerouting"),
    (Family::Ip, 1, "input"),
    (Family::Ip, 2, "forward"),
    (Family::Ip6, 0, "prerouting"),
    (Family::Ip6, 1, "input"),
    (Family::Ip6, 2, "forward"),
];

/// Protocol family of a hook.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Family {
    /// IPv4.
    Ip,
    /// IPv6.
    Ip6,
    /// A device.
    Netdev,
}

impl Family {
    /// `NFPROTO_*`.
    pub(crate) fn number(self) -> u8 {
        match self {
            Self::Ip => 2,
            Self::Ip6 => 10,
            Self::Netdev => 5,
        }
    }
}

/// One function on a hook.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Hook {
    /// Family.
    pub family: Family,
    /// Hook: `ingress`, `prerouting`, `input`, `forward`.
    pub hook: String,
    /// Order on the hook: the lowest is called first.
    pub priority: i32,
    /// The kernel's function.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// Its module; `None` when it is built in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub module: Option<String>,
    /// `table chain` of nftables.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chain: Option<String>,
    /// Device of an ingress hook.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
}

/// Counters of connection tracking, summed over the CPUs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Conntrack {
    /// Connections in the table.
    pub entries_count: u64,
    /// Most that there may be (by netlink since 5.7).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entries_max: Option<u64>,
    /// Lookups that found one.
    pub found_total: u64,
    /// Packets that belong to none and make none.
    pub invalid_total: u64,
    /// Connections entered.
    pub insert_total: u64,
    /// Connections that could not be entered: packets lost.
    pub insert_failed_total: u64,
    /// Packets dropped because the table was full.
    pub drop_total: u64,
    /// Connections thrown out to make room.
    pub early_drop_total: u64,
    /// ICMP errors that fit nothing.
    pub error_total: u64,
    /// Lookups begun again because the table was resized.
    pub search_restart_total: u64,
    /// Races between two packets of one connection.
    pub clash_resolve_total: u64,
    /// Entries refused because a chain was too long (5.15).
    pub chain_too_long_total: u64,
}

impl Conntrack {
    /// Each counter of a CPU, with its attribute `CTA_STATS_*` and its column in `/proc/net/stat/nf_conntrack`.
    pub(crate) fn counters(&mut self) -> [(u16, &'static str, &mut u64); 10] {
        [
            (2, "found", &mut self.found_total),
            (4, "invalid", &mut self.invalid_total),
            (8, "insert", &mut self.insert_total),
            (9, "insert_failed", &mut self.insert_failed_total),
            (10, "drop", &mut self.drop_total),
            (11, "early_drop", &mut self.early_drop_total),
            (12, "icmp_error", &mut self.error_total),
            (13, "search_restart", &mut self.search_restart_total),
            (14, "clashres", &mut self.clash_resolve_total),
            (15, "chainlength", &mut self.chain_too_long_total),
        ]
    }
}

/// A `struct nfgenmsg`.
pub(crate) fn header(family: u8) -> [u8; NFGENMSG] {
    [family, 0, 0, 0]
}

impl Netlink {
    /// Functions on the hooks of the receive path, in the order in which they are called.
    ///
    /// On a [`Netlink::netfilter`] socket; ingress hooks are those of `devices`.
    /// **Errors** `Denied` without `CAP_NET_ADMIN`, `Unsupported` before 5.14 and without `CONFIG_NETFILTER_NETLINK_HOOK`.
    pub fn hooks(&mut self, devices: &[String]) -> Result<Vec<Hook>, HostError> {
        let mut found = Vec::new();
        for (family, number, name) in PLACES {
            if family == Family::Netdev {
                for device in devices {
                    found.extend(self.hook(family, (number, name), Some(device))?);
                }
            } else {
                found.extend(self.hook(family, (number, name), None)?);
            }
        }
        Ok(found)
    }

    fn hook(
        &mut self,
        family: Family,
        (number, name): (u32, &str),
        device: Option<&str>,
    ) -> Result<Vec<Hook>, HostError> {
        let body = Body::new(&header(family.number())).raw(HOOK_HOOKNUM, &number.to_be_bytes());
        let body = if let Some(device) = device { body.text(HOOK_DEV, device) } else { body };
        let op = "list netfilter hooks";
        let replies = match self.dump(op, HOOK_GET, body.bytes()) {
            // No hook of this sort was ever registered (nfnl_hook_entries_head).
            Err(HostError::Kernel {
                errno: libc::ENOENT | libc::EOPNOTSUPP | libc::ENODEV,
                ..
            }) => {
                return Ok(Vec::new());
            }
            Err(HostError::Kernel { errno: libc::EINVAL, .. }) => {
                let needs = "Linux 5.14 with CONFIG_NETFILTER_NETLINK_HOOK";
                return Err(HostError::unsupported(op, needs));
            }
            other => other.map_err(|e| refused(op, e))?,
        };
        replies.iter().map(|reply| parse_hook(reply, family, name)).collect()
    }

    /// Counters of connection tracking. On a [`Netlink::netfilter`] socket.
    ///
    /// **Errors** `Denied` without `CAP_NET_ADMIN`, `Unsupported` without connection tracking in the kernel.
    pub fn conntrack(&mut self) -> Result<Conntrack, HostError> {
        let op = "read connection tracking's counters";
        let unsupported = |e| match e {
            HostError::Kernel { errno: libc::EINVAL | libc::EOPNOTSUPP, .. } => {
                HostError::unsupported(op, "nf_conntrack_netlink in the kernel")
            }
            other => refused(op, other),
        };
        let global = self.get(op, CT_STATS, &header(0)).map_err(unsupported)?;
        let cpus = self.dump(op, CT_STATS_CPU, &header(0)).map_err(unsupported)?;
        parse_conntrack(&global, &cpus)
    }
}

/// Reads one hook (net/netfilter/nfnetlink_hook.c `nfnl_hook_dump_one`).
pub fn parse_hook(payload: &[u8], family: Family, hook: &str) -> Result<Hook, HostError> {
    let attrs = Attrs::after(payload, NFGENMSG)?;
    let desc = attrs.nest(HOOK_CHAIN_INFO)?.nest(INFO_DESC)?;
    let chain = desc.text(CHAIN_TABLE).zip(desc.text(CHAIN_NAME));
    Ok(Hook {
        family,
        hook: hook.to_owned(),
        priority: attrs.be32(HOOK_PRIORITY).unwrap_or_default() as i32,
        function: attrs.text(HOOK_FUNCTION),
        module: attrs.text(HOOK_MODULE),
        chain: chain.map(|(table, name)| format!("{table} {name}")),
        device: attrs.text(HOOK_DEV),
    })
}

/// Reads connection tracking's counters: one answer for the table, one for each CPU
/// (net/netfilter/nf_conntrack_netlink.c `ctnetlink_stat_ct_fill_info`, `ctnetlink_ct_stat_cpu_fill_info`).
pub fn parse_conntrack(global: &[Vec<u8>], cpus: &[Vec<u8>]) -> Result<Conntrack, HostError> {
    let mut sum = Conntrack::default();
    for payload in global {
        let attrs = Attrs::after(payload, NFGENMSG)?;
        sum.entries_count = attrs.be32(CTA_GLOBAL_ENTRIES).map_or(sum.entries_count, u64::from);
        sum.entries_max = attrs.be32(CTA_GLOBAL_MAX).map(u64::from).or(sum.entries_max);
    }
    for payload in cpus {
        let attrs = Attrs::after(payload, NFGENMSG)?;
        for (attribute, _, total) in sum.counters() {
            *total = total.saturating_add(attrs.be32(attribute).map_or(0, u64::from));
        }
    }
    Ok(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hook_names_its_chain_and_keeps_its_sign() {
        let desc = Body::default().text(CHAIN_TABLE, "raw").text(CHAIN_NAME, "PREROUTING");
        let info = Body::default().nest(INFO_DESC, &desc);
        let body = Body::new(&header(2))
            .raw(HOOK_HOOKNUM, &0u32.to_be_bytes())
            .raw(HOOK_PRIORITY, &(-300i32).to_be_bytes())
            .text(HOOK_FUNCTION, "nft_do_chain_ipv4")
            .text(HOOK_MODULE, "nf_tables")
            .nest(HOOK_CHAIN_INFO, &info);
        let hook = parse_hook(body.bytes(), Family::Ip, "prerouting").unwrap();
        assert_eq!((hook.priority, hook.chain.as_deref()), (-300, Some("raw PREROUTING")));
        assert_eq!(hook.function.as_deref(), Some("nft_do_chain_ipv4"));
    }

    #[test]
    fn counters_of_all_cpus_are_summed() {
        let cpu = |drop: u32| {
            // CTA_STATS_DROP and CTA_STATS_FOUND.
            let body = Body::new(&header(0)).raw(10, &drop.to_be_bytes());
            body.raw(2, &1u32.to_be_bytes()).bytes().to_vec()
        };
        let global = Body::new(&header(0)).raw(CTA_GLOBAL_ENTRIES, &9u32.to_be_bytes());
        let found = parse_conntrack(&[global.bytes().to_vec()], &[cpu(2), cpu(3)]).unwrap();
        assert_eq!((found.entries_count, found.drop_total, found.found_total), (9, 5, 2));
        assert_eq!(found.entries_max, None, "before 5.7 it is not told");
    }
}
