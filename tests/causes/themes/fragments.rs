//! Datagrams in fragments.

use crate::cause::{Cause, Made, cause};
use crate::grade::Said;
use crate::host::Host;

const FRAGMENTS: &[Said] = &[Said("refused", "reassembly"), Said("refused", "fragment")];
const PENDING: &[Said] = &[Said("nothing", "fragment")];

pub fn causes() -> Vec<Cause> {
    vec![
        cause(
            "fragments_no_room",
            "reassembly has no memory (ipfrag_high_thresh)",
            FRAGMENTS,
            no_room,
        ),
        cause(
            "fragments_orphans",
            "first fragments whose rest never comes fill the memory of the others",
            FRAGMENTS,
            orphans,
        ),
        cause(
            "fragments_rest_missing",
            "a firewall on the way drops the later fragments",
            FRAGMENTS,
            rest_missing,
        )
        .or(PENDING),
        cause(
            "fragments_filtered_here",
            "this host's raw table drops later fragments",
            &[Said("filter", ""), Said("refused", "reassembly")],
            filtered_here,
        )
        .or(PENDING),
    ]
}

fn no_room(host: &mut Host) -> Result<Made, String> {
    host.sh("rx", "sysctl -qw net.ipv4.ipfrag_low_thresh=0 net.ipv4.ipfrag_high_thresh=0")?;
    host.read("work=5")?;
    host.send("rate=2000 size=4000")?;
    Ok(Made::with("ipfrag_high_thresh of 4 MB", |host| {
        host.sh("rx", "sysctl -qw net.ipv4.ipfrag_high_thresh=4194304")
    }))
}

fn orphans(host: &mut Host) -> Result<Made, String> {
    host.sh("rx", "sysctl -qw net.ipv4.ipfrag_low_thresh=60000 net.ipv4.ipfrag_high_thresh=65536 net.ipv4.ipfrag_time=30")?;
    host.read("work=5")?;
    host.send("rate=1500 size=4000")?;
    // More fragments, offset 0.
    let orphans = host.other("tx", "frames", "rate=3000 frag=8192 size=1000 sport=5009")?;
    Ok(Made::with("no orphans, and room again", move |host| {
        host.end_other(orphans);
        host.sh("rx", "sysctl -qw net.ipv4.ipfrag_high_thresh=4194304")
    }))
}

/// Later fragments are lost in front of this host.
fn rest_missing(host: &mut Host) -> Result<Made, String> {
    host.sh("rx", "sysctl -qw net.ipv4.ipfrag_time=1")?;
    host.sh("tx", "iptables -t raw -A OUTPUT -f -j DROP; nft -f - <<E\ntable netdev t { chain c { type filter hook egress device w1 priority 0; ip frag-off & 0x1fff != 0 drop; }; }\nE")?;
    host.read("work=5")?;
    host.send("rate=1000 size=4000")?;
    host.send("rate=500")?;
    Ok(Made::with("datagrams that fit", |host| {
        host.end_sender(0);
        host.send("rate=1000 size=1000").map(drop)
    }))
}

fn filtered_here(host: &mut Host) -> Result<Made, String> {
    // Without connection tracking fragments are whole only behind these hooks.
    host.sh("rx", "sysctl -qw net.ipv4.ipfrag_time=1; nft -f - <<E\ntable ip t { chain c { type filter hook prerouting priority -450; ip frag-off & 0x1fff != 0 drop; }; }\nE")?;
    host.read("work=5")?;
    host.send("rate=1000 size=4000")?;
    host.send("rate=500")?;
    Ok(Made::with("the rule goes", |host| host.sh("rx", "nft flush ruleset")))
}
