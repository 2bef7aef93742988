//! How many rules of nftables a probe meets on input of this host.

use rxpath_host::netlink::Netlink;
use rxpath_host::read::netlink::nft_tables::{NftChain, is_loaded};
use rxpath_host::{HostError, Root};

/// Rules on input for one version of IP; `None` where they cannot be counted, as without root.
pub(super) fn on_input(v6: bool) -> Option<u32> {
    chains().ok().map(|chains| rules(&chains, v6))
}

fn chains() -> Result<Vec<NftChain>, HostError> {
    if is_loaded(&Root::host())? { Netlink::netfilter()?.nft_chains() } else { Ok(Vec::new()) }
}

/// **Caveat** Rules of chains that are jumped to are not among them: [`NftChain`] is a chain on a hook.
fn rules(chains: &[NftChain], v6: bool) -> u32 {
    let families = ["inet", if v6 { "ip6" } else { "ip" }];
    let meets = |chain: &&NftChain| {
        chain.hook == "input" && chain.kind != "nat" && families.contains(&chain.family.as_str())
    };
    chains.iter().filter(meets).map(|chain| chain.rules_count).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_on_input_are_those_that_a_packet_of_this_version_meets() {
        let chain = |family: &str, hook: &str, kind: &str, rules_count: u32| NftChain {
            family: family.into(),
            hook: hook.into(),
            kind: kind.into(),
            rules_count,
            ..NftChain::default()
        };
        let all = [
            chain("inet", "input", "filter", 1),
            chain("ip", "input", "filter", 2),
            chain("ip6", "input", "filter", 4),
            chain("arp", "input", "filter", 8),
            chain("bridge", "input", "filter", 16),
            chain("inet", "forward", "filter", 32),
            chain("inet", "input", "nat", 64),
        ];
        assert_eq!([false, true].map(|v6| rules(&all, v6)), [3, 5]);
        assert_eq!(rules(&[], false), 0);
    }
}
