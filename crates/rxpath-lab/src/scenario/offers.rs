//! What of the kernel and its tools a variant may need, and what of it this host lacks.

use rxpath_host::Root;
use rxpath_host::read::kernel_config;
use serde::{Deserialize, Serialize};

use crate::installed::found;

/// Why a lab has no flow rules, wherever it runs: drivers/net/veth.c has no `set_rxnfc`, so `rx-ntuple-filter` is off
/// and fixed.
pub(super) const NO_FLOW_RULES: &str = "the lab's device is a veth, which has no flow rules; on a NIC with \
    n-tuple filters: ethtool -N IF flow-type ether dst MAC action QUEUE";

/// What is missing, each with the reason; nothing where it is there or is not known.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offers {
    /// Bridges.
    pub bridge: Option<String>,
    /// macvlan devices.
    pub macvlan: Option<String>,
    /// ipvlan devices.
    pub ipvlan: Option<String>,
    /// The program that loads nftables rules.
    pub nft: Option<String>,
    /// The program that loads iptables rules.
    pub iptables: Option<String>,
}

impl Offers {
    /// Looks at the kernel's configuration and for the programs. A kernel that shows no configuration is taken to have
    /// everything: what it refuses then ends the trial with its own error.
    pub fn read(root: &Root) -> Self {
        let config = kernel_config::read(root).ok();
        let lacks = |option: &str, what: &str| {
            let config = config.as_ref()?;
            (!config.has(option)).then(|| format!("this kernel has no {what} (CONFIG_{option})"))
        };
        let program = |name: &str, package: &str| {
            (!found(name)).then(|| format!("`{name}` is not installed (Debian: {package})"))
        };
        Self {
            bridge: lacks("BRIDGE", "bridges"),
            macvlan: lacks("MACVLAN", "macvlan"),
            ipvlan: lacks("IPVLAN", "ipvlan"),
            nft: program("nft", "nftables").or_else(|| lacks("NF_TABLES", "nftables")),
            iptables: program("iptables", "iptables"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_that_says_what_it_lacks_is_believed() {
        let tree = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(tree.path().join("boot")).unwrap();
        std::fs::create_dir_all(tree.path().join("proc/sys/kernel")).unwrap();
        std::fs::write(tree.path().join("proc/sys/kernel/osrelease"), "6.1.0\n").unwrap();
        std::fs::write(tree.path().join("boot/config-6.1.0"), "CONFIG_BRIDGE=m\n").unwrap();
        let offers = Offers::read(&Root::tree(tree.path()).unwrap());
        assert_eq!(offers.bridge, None);
        let why = offers.macvlan.unwrap();
        assert!(why.contains("CONFIG_MACVLAN"), "{why}");
        let empty = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(empty.path().join("proc")).unwrap();
        let silent = Offers::read(&Root::tree(empty.path()).unwrap());
        assert_eq!(silent.macvlan, None, "not shown is not lacking");
    }
}
