//! Tables of nftables by name, and the chains on its hooks: how many rules each has, and nothing of the rules.
//!
//! **Source** include/uapi/linux/netfilter/nf_tables.h, net/netfilter/nf_tables_api.c `nf_tables_fill_table_info` (3.13). Needs
//! `CAP_NET_ADMIN` in the namespace. A question to a part of netfilter that is not there makes the kernel load its module
//! (net/netfilter/nfnetlink.c `nfnetlink_rcv_msg`), so it is put only where nf_tables is there already.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::netlink::genl::refused;
use crate::netlink::socket::Netlink;
use crate::netlink::wire::Attrs;
use crate::read::kernel_config;
use crate::{HostError, Root};

/// `NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_GETTABLE`.
const GET_TABLE: u16 = 10 << 8 | 1;
/// `struct nfgenmsg`.
const NFGENMSG: usize = 4;
const NFTA_TABLE_NAME: u16 = 1;
const NFTA_TABLE_USE: u16 = 3;

/// `NFT_MSG_GETCHAIN`.
const GET_CHAIN: u16 = 10 << 8 | 4;
const NFTA_CHAIN_TABLE: u16 = 1;
const NFTA_CHAIN_NAME: u16 = 3;
const NFTA_CHAIN_HOOK: u16 = 4;
const NFTA_CHAIN_POLICY: u16 = 5;
const NFTA_CHAIN_USE: u16 = 6;
const NFTA_CHAIN_TYPE: u16 = 7;
const NFTA_HOOK_HOOKNUM: u16 = 1;
const NFTA_HOOK_DEV: u16 = 3;
/// `NF_DROP`.
const DROP: u32 = 0;

const OP: &str = "list the tables of nftables";

/// A table.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct NftTable {
    /// `ip`, `ip6`, `inet`, `arp`, `bridge`, `netdev`.
    pub family: String,
    /// Its name.
    pub name: String,
    /// Chains, sets and other objects in it; a table without any does nothing.
    pub objects_count: u32,
}

/// A chain on a hook. No rule can jump to one, so what uses it are its own rules.
///
/// **Source** net/netfilter/nf_tables_api.c `nf_tables_fill_chain_info`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct NftChain {
    /// As of its table.
    pub family: String,
    /// Its table.
    pub table: String,
    /// Its name.
    pub name: String,
    /// `filter`, `nat`, `route`.
    pub kind: String,
    /// `prerouting`, `input`, `forward`, `output`, `postrouting`, `ingress`, `egress`.
    pub hook: String,
    /// The device, of `ingress` and `egress` where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// Whether what no rule decides is dropped.
    pub drops_by_policy: bool,
    /// Rules in it.
    pub rules_count: u32,
}

fn hook_name(family: &str, number: u32) -> String {
    let names: &[&str] = match family {
        "netdev" => &["ingress", "egress"],
        "arp" => &["input", "output", "forward"],
        _ => &["prerouting", "input", "forward", "output", "postrouting", "ingress"],
    };
    let known = usize::try_from(number).ok().and_then(|at| names.get(at));
    known.map_or_else(|| format!("hook {number}"), |name| (*name).to_owned())
}

/// Reads one chain; `None` for one that is on no hook.
pub fn parse_nft_chain(payload: &[u8]) -> Result<Option<NftChain>, HostError> {
    let attrs = Attrs::after(payload, NFGENMSG)?;
    if attrs.get(NFTA_CHAIN_HOOK).is_none() {
        return Ok(None);
    }
    let hook = attrs.nest(NFTA_CHAIN_HOOK)?;
    let family = family_name(payload[0]);
    let name = attrs
        .text(NFTA_CHAIN_NAME)
        .ok_or_else(|| HostError::malformed("netlink", 0, "a chain of nftables without a name"))?;
    Ok(Some(NftChain {
        hook: hook_name(&family, hook.be32(NFTA_HOOK_HOOKNUM).unwrap_or(u32::MAX)),
        device: hook.text(NFTA_HOOK_DEV),
        table: attrs.text(NFTA_CHAIN_TABLE).unwrap_or_default(),
        kind: attrs.text(NFTA_CHAIN_TYPE).unwrap_or_default(),
        drops_by_policy: attrs.be32(NFTA_CHAIN_POLICY) == Some(DROP),
        rules_count: attrs.be32(NFTA_CHAIN_USE).unwrap_or_default(),
        family,
        name,
    }))
}

fn family_name(number: u8) -> String {
    match number {
        1 => "inet".to_owned(),
        2 => "ip".to_owned(),
        3 => "arp".to_owned(),
        5 => "netdev".to_owned(),
        7 => "bridge".to_owned(),
        10 => "ip6".to_owned(),
        other => format!("family {other}"),
    }
}

/// Reads one table.
pub fn parse_nft_table(payload: &[u8]) -> Result<NftTable, HostError> {
    let attrs = Attrs::after(payload, NFGENMSG)?;
    let family = family_name(payload[0]);
    let name = attrs
        .text(NFTA_TABLE_NAME)
        .ok_or_else(|| HostError::malformed("netlink", 0, "a table of nftables without a name"))?;
    Ok(NftTable { family, name, objects_count: attrs.be32(NFTA_TABLE_USE).unwrap_or_default() })
}

/// Whether nf_tables is in the running kernel now.
///
/// **Errors** `Unsupported` when this cannot be known without loading it.
pub fn is_loaded(root: &Root) -> Result<bool, HostError> {
    // A kernel without modules has no such list, and loads nothing.
    if root.exists("/sys/module/nf_tables") || !root.exists("/proc/modules") {
        return Ok(true);
    }
    // What is built in and has no parameters is not below /sys/module (kernel/params.c `param_sysfs_builtin`).
    match kernel_config::read(root) {
        Ok(config) => Ok(config.get("NF_TABLES") == Some("y")),
        Err(_) => Err(HostError::Unsupported {
            what: OP.into(),
            needs: "the kernel's config: it is not known whether nf_tables is built in, and the request would load it".into(),
        }),
    }
}

impl Netlink {
    /// Tables of nftables in this namespace. On a [`Netlink::netfilter`] socket, where [`is_loaded`] says yes.
    ///
    /// **Errors** `Denied` without `CAP_NET_ADMIN`, `Unsupported` without nf_tables in the kernel.
    pub fn nft_tables(&mut self) -> Result<Vec<NftTable>, HostError> {
        let replies = self.nft_list(OP, GET_TABLE)?;
        replies.iter().map(|reply| parse_nft_table(reply)).collect()
    }

    /// Chains of nftables on the hooks of this namespace, as [`Netlink::nft_tables`].
    pub fn nft_chains(&mut self) -> Result<Vec<NftChain>, HostError> {
        let replies = self.nft_list("list the chains of nftables", GET_CHAIN)?;
        replies.iter().filter_map(|reply| parse_nft_chain(reply).transpose()).collect()
    }

    fn nft_list(&mut self, op: &str, kind: u16) -> Result<Vec<Vec<u8>>, HostError> {
        match self.dump(op, kind, &[0; NFGENMSG]) {
            Err(HostError::Kernel { errno: libc::EINVAL | libc::EOPNOTSUPP, .. }) => {
                Err(HostError::unsupported(op, "CONFIG_NF_TABLES in the kernel"))
            }
            other => other.map_err(|e| refused(op, e)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::wire::Body;
    use std::fs;

    #[test]
    fn a_table_has_a_family_and_a_name() {
        let body = Body::new(&[1, 0, 0, 9])
            .text(NFTA_TABLE_NAME, "fw")
            .raw(NFTA_TABLE_USE, &3_u32.to_be_bytes());
        let table = parse_nft_table(body.bytes()).unwrap();
        assert_eq!(table, NftTable { family: "inet".into(), name: "fw".into(), objects_count: 3 });
        for end in 0..11 {
            assert!(parse_nft_table(&body.bytes()[..end]).is_err(), "{end}");
        }
    }

    #[test]
    fn a_chain_on_a_hook_has_its_policy_and_its_rules() {
        let be = |value: u32| value.to_be_bytes();
        let plain = Body::new(&[1, 0, 0, 9])
            .text(NFTA_CHAIN_TABLE, "fw")
            .text(NFTA_CHAIN_NAME, "in")
            .raw(NFTA_CHAIN_USE, &be(7));
        assert_eq!(parse_nft_chain(plain.bytes()).unwrap(), None, "no hook");
        let hook = Body::default().raw(NFTA_HOOK_HOOKNUM, &be(1));
        let body = plain
            .nest(NFTA_CHAIN_HOOK, &hook)
            .raw(NFTA_CHAIN_POLICY, &be(DROP))
            .text(NFTA_CHAIN_TYPE, "filter");
        let chain = parse_nft_chain(body.bytes()).unwrap().unwrap();
        assert_eq!((chain.family.as_str(), chain.hook.as_str()), ("inet", "input"));
        assert_eq!((chain.rules_count, chain.drops_by_policy), (7, true));
        assert_eq!(hook_name("netdev", 0), "ingress");
        assert_eq!(hook_name("inet", 9), "hook 9");
    }

    #[test]
    fn a_module_without_parameters_is_found_by_the_config() {
        let dir = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        put("proc/sys/kernel/osrelease", "6.1.0\n");
        let root = Root::tree(dir.path()).unwrap();
        assert!(is_loaded(&root).unwrap(), "no modules: what is there is built in");
        put("proc/modules", "veth 1 0 - Live 0x0\n");
        let error = is_loaded(&root).unwrap_err();
        assert!(error.to_string().contains("would load it"), "{error}");
        put("boot/config-6.1.0", "CONFIG_HZ=250\nCONFIG_NF_TABLES=y\n");
        assert!(is_loaded(&root).unwrap());
        put("boot/config-6.1.0", "CONFIG_HZ=250\nCONFIG_NF_TABLES=m\n");
        assert!(!is_loaded(&root).unwrap());
        fs::create_dir_all(dir.path().join("sys/module/nf_tables")).unwrap();
        assert!(is_loaded(&root).unwrap());
    }
}
