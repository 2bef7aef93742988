//! What a device does: its MTU, its ring, a bridge's ports.

use crate::cause::{Cause, Made, cause};
use crate::grade::Said;
use crate::host::Host;

use super::filters::BRIDGE;

const DOOR: &[Said] = &[Said("refused", "")];
/// Counters name the device's drops and not why.
const DROPPED: &[Said] = &[Said("nothing", "rx_dropped")];
const RING: &[Said] = &[Said("ring", "")];
const UNSEEN: &[Said] = &[Said("nothing", "ring of w0")];
const BRIDGED: &[Said] = &[Said("nothing", "bridge"), Said("nothing", "ingress")];

pub fn causes() -> Vec<Cause> {
    vec![
        cause(
            "mtu_of_the_receiver",
            "the receiver's MTU is 1280, half of the frames are longer",
            DOOR,
            mtu,
        )
        .or(DROPPED),
        cause(
            "napi_thread_starved",
            "a NAPI thread at SCHED_IDLE with a hog on its CPU: the ring overflows",
            RING,
            napi_thread,
        )
        .or(UNSEEN),
        cause(
            "bridge_port_listening",
            "the port of the bridge is listening, as STP leaves it for half a minute",
            &[Said("filter", ""), Said("refused", "")],
            bridge_blocking,
        )
        .or(BRIDGED),
        cause(
            "bridge_port_isolated_mac",
            "the bridge sends the frames to another port, whose MAC they have",
            &[Said("filter", ""), Said("refused", ""), Said("unknown", "")],
            bridge_other_mac,
        )
        .or(BRIDGED),
    ]
}

fn mtu(host: &mut Host) -> Result<Made, String> {
    host.read("work=5")?;
    host.sh("rx", "ip link set w0 mtu 1280")?;
    host.send("rate=2500 size=1400")?;
    host.send("rate=2500")?;
    Ok(Made::with("the MTU of the sender", |host| host.sh("rx", "ip link set w0 mtu 1500")))
}

fn napi_thread(host: &mut Host) -> Result<Made, String> {
    host.read("work=5 cpu=0 rcvbuf=8388608")?;
    host.sh("rx", "ethtool -K w0 gro on; echo 1 > /sys/class/net/w0/threaded")?;
    host.other("rx", "hog", "threads=2")?;
    let slow = "for p in $(ps -eo pid,comm | awk '$2 ~ /^napi\\/w0-/ {print $1}'); do chrt -i -p 0 $p; taskset -pc 1 $p >/dev/null; done";
    host.sh("rx", slow)?;
    host.send("rate=30000")?;
    Ok(Made::with("the hogs end", |host| {
        host.end_other(0);
        Ok(())
    }))
}

fn bridge_blocking(host: &mut Host) -> Result<Made, String> {
    let stp = "type bridge stp_state 1 forward_delay 3000;";
    host.sh("rx", &BRIDGE.replace("type bridge;", stp))?;
    host.read("work=5")?;
    host.send("rate=4000")?;
    Ok(Made::with("the port forwards", |host| {
        host.sh("rx", "ip link set br0 type bridge stp_state 0")
    }))
}

fn bridge_other_mac(host: &mut Host) -> Result<Made, String> {
    host.sh("rx", &format!("{BRIDGE}; ip link add p0 type veth peer name p1; ip link set p0 master br0 up; ip link set p1 up; bridge fdb add 02:00:00:00:08:55 dev p0 master static"))?;
    host.read("work=5")?;
    host.sh("tx", "ip neigh replace 10.88.0.2 lladdr 02:00:00:00:08:55 dev w1")?;
    host.send("rate=4000")?;
    Ok(Made::with("the right MAC", |host| {
        host.sh("tx", "ip neigh replace 10.88.0.2 lladdr 02:00:00:00:08:02 dev w1")
    }))
}
