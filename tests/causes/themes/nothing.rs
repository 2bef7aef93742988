//! Nothing is wrong, and some of it looks as if something were.

use crate::cause::{Cause, Made, cause};
use crate::grade::Said;
use crate::host::Host;

use super::filters::{BRIDGE, MACVLAN};

/// That ticks are wrong may be said beside it.
const WELL: &[Said] = &[Said("nothing", ""), Said("tick-artefact", "")];

pub fn causes() -> Vec<Cause> {
    vec![
        cause("well_idle", "5k/s, delivered, the reader sleeps most of the time", WELL, |host| {
            well(host, "work=5", "rate=5000")
        }),
        cause("well_ipv6", "the same over IPv6", WELL, |host| {
            well(host, "at=[fd00:88::2]:9700", "to=[fd00:88::2]:9700 rate=5000")
        }),
        cause(
            "well_batchy",
            "the reader wakes each 100 ms and has room for what came",
            WELL,
            |host| well(host, "rcvbuf=8388608 stall=95 every=100", "rate=5000"),
        ),
        cause("well_bursts", "500 at once, ten times a second, with room for them", WELL, |host| {
            well(host, "rcvbuf=8388608", "rate=5000 burst=500")
        }),
        cause("well_group", "a group of four, 64 flows", WELL, group),
        cause("well_gso", "a GSO sender and a GRO reader", WELL, gso),
        cause("well_bridge", "the address is on a bridge", WELL, bridge),
        cause("well_macvlan", "the address is on a macvlan", WELL, macvlan),
        cause("well_vxlan", "the traffic is in a tunnel", WELL, vxlan),
        cause("well_threaded", "NAPI threads", WELL, threaded),
        cause("well_multicast", "multicast that was joined", WELL, |host| {
            well(
                host,
                "at=0.0.0.0:9700 join=239.8.8.8",
                "to=239.8.8.8:9700 by=10.88.0.1 ttl=1 rate=5000",
            )
        }),
        cause("well_fragments", "datagrams of three fragments", WELL, fragments),
        cause("well_other_mac", "half of the frames are for another MAC", WELL, other_mac),
        cause(
            "well_other_ethertype",
            "half of the frames are of a protocol that nobody handles",
            WELL,
            ethertype,
        ),
        cause("well_after_a_loss", "the socket lost much, before the window", WELL, after_a_loss),
        cause(
            "well_hog_elsewhere",
            "a hog has the CPU that the reader needs a little of",
            WELL,
            hog,
        ),
        cause(
            "well_full_capture",
            "a packet socket that nobody reads, next to a service that is well",
            WELL,
            capture,
        ),
        cause(
            "well_busy_not_full",
            "the reader needs 60 % of a CPU and loses nothing",
            WELL,
            |host| well(host, "work=100 rcvbuf=8388608", "rate=5000"),
        ),
    ]
}

fn well(host: &mut Host, reader: &str, sender: &str) -> Result<Made, String> {
    host.read(reader)?;
    host.send(sender)?;
    Ok(Made::without("nothing is lost"))
}

fn group(host: &mut Host) -> Result<Made, String> {
    well(host, "threads=4 group cpu=any work=10 rcvbuf=2097152", "rate=8000 flows=64")
}

fn gso(host: &mut Host) -> Result<Made, String> {
    well(host, "gro segment=200 rcvbuf=8388608", "rate=20000 gso=16 size=200")
}

fn bridge(host: &mut Host) -> Result<Made, String> {
    host.sh("rx", BRIDGE)?;
    well(host, "work=5", "rate=5000")
}

fn macvlan(host: &mut Host) -> Result<Made, String> {
    host.sh("rx", MACVLAN)?;
    host.sh("tx", "ip neigh replace 10.88.0.2 lladdr 02:00:00:00:08:0a dev w1")?;
    well(host, "work=5", "rate=5000")
}

fn vxlan(host: &mut Host) -> Result<Made, String> {
    super::tunnels::vxlan(host, "tx", 42, 1)?;
    super::tunnels::vxlan(host, "rx", 42, 2)?;
    well(host, "at=10.90.0.2:9700", "to=10.90.0.2:9700 rate=5000")
}

fn threaded(host: &mut Host) -> Result<Made, String> {
    host.sh("rx", "ethtool -K w0 gro on; echo 1 > /sys/class/net/w0/threaded")?;
    well(host, "rcvbuf=8388608", "rate=5000")
}

fn fragments(host: &mut Host) -> Result<Made, String> {
    well(host, "rcvbuf=8388608", "rate=2000 size=4000")
}

fn other_mac(host: &mut Host) -> Result<Made, String> {
    host.other("tx", "frames", "rate=3000 mac=02:00:00:00:77:77")?;
    well(host, "work=5", "rate=3000")
}

fn ethertype(host: &mut Host) -> Result<Made, String> {
    host.other("tx", "frames", "rate=3000 ethertype=35020")?;
    well(host, "work=5", "rate=3000")
}

fn after_a_loss(host: &mut Host) -> Result<Made, String> {
    host.read("work=5 rcvbuf=65536")?;
    let flood = host.send("rate=300000 burst=3000")?;
    std::thread::sleep(std::time::Duration::from_secs(1));
    host.end_sender(flood);
    host.send("rate=3000")?;
    Ok(Made::without("nothing is lost"))
}

fn hog(host: &mut Host) -> Result<Made, String> {
    host.other("rx", "hog", "threads=1")?;
    well(host, "work=5 rcvbuf=8388608", "rate=3000")
}

fn capture(host: &mut Host) -> Result<Made, String> {
    host.program("rx", &["python3", "-c", "import socket, time\ns = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))\ntime.sleep(1000)"], false)?;
    well(host, "work=5", "rate=5000")
}
