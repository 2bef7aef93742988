//! What IP and its routes refuse, on a host and on a router.

use crate::cause::{Cause, Made, cause};
use crate::grade::Said;
use crate::host::Host;

const REFUSED: &[Said] = &[Said("refused", "")];
const NAMED: &[Said] = &[Said("filter", "multicast that nobody joined")];

pub fn causes() -> Vec<Cause> {
    vec![
        cause("martian_source", "sources in 127/8", REFUSED, |host| {
            refused(host, "src=127.0.0.9", "", None)
        })
        .or(NAMED),
        cause(
            "group_not_joined",
            "multicast that nobody joined, next to a service that is well",
            REFUSED,
            not_joined,
        )
        .or(NAMED),
        cause("ip_checksum", "half of the packets have a damaged IP header", REFUSED, |host| {
            refused(host, "ipcsum=bad", "", None)
        }),
        cause("ip_length", "IP's header claims more than the frame has", REFUSED, |host| {
            refused(host, "iplen=900", "", None)
        }),
        cause(
            "ip_version",
            "a header that claims to be shorter than it can be",
            REFUSED,
            ip_version,
        ),
        cause(
            "not_its_address",
            "packets for an address that the host does not have, and it does not forward",
            REFUSED,
            |host| refused(host, "dst=10.77.9.9", "sysctl -qw net.ipv4.ip_forward=0", None),
        ),
        cause("no_route", "a router without a route to the destination", REFUSED, |host| {
            router(host, "dst=10.77.9.9", "true", "ip route add 10.77.9.0/24 via 10.89.0.9")
        }),
        cause("blackhole", "a router with a blackhole route", REFUSED, blackhole).or(NAMED),
        cause(
            "prohibited",
            "a router whose policy rules prohibit the destination",
            REFUSED,
            prohibited,
        )
        .or(NAMED),
        cause("ttl_expired", "a router to which packets come with TTL 1", REFUSED, ttl),
        cause(
            "router_mtu",
            "a router with a smaller MTU behind it, and packets that must not be fragmented",
            &[Said("refused", "")],
            |host| {
                router(
                    host,
                    "size=1300 frag=16384",
                    "ip link set d0 mtu 1000",
                    "ip link set d0 mtu 1500",
                )
            },
        ),
        cause("broadcast_source", "sources that are the broadcast address", REFUSED, |host| {
            refused(host, "src=255.255.255.255", "", None)
        })
        .or(NAMED),
    ]
}

/// A reader that is well, frames that are refused beside good ones, and a script that mends it.
fn refused(
    host: &mut Host,
    frames: &str,
    begin: &str,
    mend: Option<&'static str>,
) -> Result<Made, String> {
    host.read("work=5")?;
    if !begin.is_empty() {
        host.sh("rx", begin)?;
    }
    host.frames(&format!("rate=4000 {frames}"))?;
    host.frames("rate=1000")?;
    Ok(match mend {
        Some(script) => {
            Made::with("what is missing is set", move |host| host.sh("rx", script)).by(|host| {
                host.pace(|host| {
                    [
                        "Ip.InHdrErrors",
                        "Ip.InAddrErrors",
                        "Ip.OutNoRoutes",
                        "Ip.FragFails",
                        "IpExt.InNoRoutes",
                    ]
                    .iter()
                    .map(|name| host.counter("rx", name))
                    .sum::<u64>()
                })
            })
        }
        None => Made::with("the bad sender ends", |host| {
            host.end_sender(0);
            Ok(())
        }),
    })
}

fn not_joined(host: &mut Host) -> Result<Made, String> {
    host.read("at=0.0.0.0:9700")?;
    host.send("to=239.8.8.8:9700 by=10.88.0.1 ttl=1 rate=4000")?;
    host.send("rate=1000")?;
    Ok(Made::with("the program joins", |host| host.read_instead("at=0.0.0.0:9700 join=239.8.8.8")))
}

fn ip_version(host: &mut Host) -> Result<Made, String> {
    // 0x44: a header of 16 bytes.
    refused(host, "version=68", "", None)
}

/// A device behind the router on which everything may go out.
const BEHIND: &str = "ip link add d0 type veth peer name d1; ip link set d0 up; ip link set d1 up; \
     ip addr add 10.89.0.1/24 dev d0; ip neigh replace 10.89.0.9 lladdr 02:00:00:00:09:09 dev d0; \
     sysctl -qw net.ipv4.ip_forward=1";

fn router(host: &mut Host, frames: &str, more: &str, mend: &'static str) -> Result<Made, String> {
    refused(host, &format!("dst=10.89.0.9 {frames}"), &format!("{BEHIND}; {more}"), Some(mend))
}

fn blackhole(host: &mut Host) -> Result<Made, String> {
    let made =
        router(host, "", "ip route add blackhole 10.89.0.9", "ip route del blackhole 10.89.0.9")?;
    Ok(made.by(not_forwarded))
}

fn prohibited(host: &mut Host) -> Result<Made, String> {
    let made =
        router(host, "", "ip rule add to 10.89.0.9 prohibit pref 10", "ip rule del pref 10")?;
    Ok(made.by(not_forwarded))
}

/// Packets a second that are neither delivered nor forwarded.
fn not_forwarded(host: &Host) -> f64 {
    let came = |host: &Host| host.counter("rx", "Ip.InReceives");
    let gone =
        |host: &Host| host.counter("rx", "Ip.ForwDatagrams") + host.counter("rx", "Ip.InDelivers");
    let (came_first, gone_first) = (came(host), gone(host));
    std::thread::sleep(std::time::Duration::from_millis(1500));
    let (came_then, gone_then) = (came(host), gone(host));
    (came_then - came_first).saturating_sub(gone_then - gone_first) as f64 / 1.5
}

fn ttl(host: &mut Host) -> Result<Made, String> {
    host.read("work=5")?;
    host.sh("rx", BEHIND)?;
    host.frames("rate=4000 dst=10.89.0.9 ttl=1")?;
    host.frames("rate=1000 dst=10.89.0.9")?;
    Ok(Made::with("the bad sender ends", |host| {
        host.end_sender(0);
        Ok(())
    })
    .by(|host| host.pace(|host| host.counter("rx", "Ip.InHdrErrors"))))
}
