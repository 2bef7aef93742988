//! Tables of nftables, by name: whether there are any, and nothing of their rules.
//!
//! **Source** include/uapi/linux/netfilter/nf_tables.h, net/netfilter/nf_tables_api.c `nf_tables_fill_table_info` (3.13). Needs
//! `CAP_NET_ADMIN` in the namespace. A question to a part of netfilter that is not there makes the kernel load its module
//! (net/netfilter/nfnetlink.c `nfnetlink_rcv_msg`), so it is put only where nf_tables is there already.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::genl::refused;
use super::socket::Netlink;
use super::wire::Attrs;
use crate::{HostError, Root, kernel_config};

/// `NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_GETTABLE`, and of the answer `NFT_MSG_NEWTABLE`.
const GET_TABLE: u16 = 10 << 8 | 1;
const NEW_TABLE: u16 = 10 << 8;
/// `struct nfgenmsg`.
const NFGENMSG: usize = 4;
const NFTA_TABLE_NAME: u16 = 1;
const NFTA_TABLE_USE: u16 = 3;

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

/// Reads one table.
pub fn parse_nft_table(payload: &[u8]) -> Result<NftTable, HostError> {
    let attrs = Attrs::after(payload, NFGENMSG)?;
    let family = match payload[0] {
        1 => "inet".to_owned(),
        2 => "ip".to_owned(),
        3 => "arp".to_owned(),
        5 => "netdev".to_owned(),
        7 => "bridge".to_owned(),
        10 => "ip6".to_owned(),
        other => format!("family {other}"),
    };
    let name = attrs
        .text(NFTA_TABLE_NAME)
        .ok_or_else(|| HostError::malformed("netlink", 0, "a table of nftables without a name"))?;
    Ok(NftTable { family, name, objects_count: attrs.be32(NFTA_TABLE_USE).unwrap_or_default() })
}

/// Whether nf_tables is in the running kernel now.
///
/// **Errors** `Unsupported` when that is not to be told without loading it.
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
            needs: "the kernel's config: whether nf_tables is built in is not known, and asking would load it".into(),
        }),
    }
}

impl Netlink {
    /// Tables of nftables in this namespace. On a [`Netlink::netfilter`] socket, where [`is_loaded`] says yes.
    ///
    /// **Errors** `Denied` without `CAP_NET_ADMIN`, `Unsupported` without nf_tables in the kernel.
    pub fn nft_tables(&mut self) -> Result<Vec<NftTable>, HostError> {
        let replies = match self.dump(OP, GET_TABLE, &[0; NFGENMSG]) {
            Err(HostError::Kernel { errno: libc::EINVAL | libc::EOPNOTSUPP, .. }) => {
                let needs = "CONFIG_NF_TABLES in the kernel".into();
                return Err(HostError::Unsupported { what: OP.into(), needs });
            }
            other => other.map_err(|e| refused(OP, e))?,
        };
        let tables = replies.iter().filter(|reply| reply.kind == NEW_TABLE);
        tables.map(|reply| parse_nft_table(&reply.payload)).collect()
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
