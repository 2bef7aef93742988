//! Traffic inside other traffic.

use crate::cause::{Cause, Made, cause};
use crate::grade::Said;
use crate::host::Host;

const FULL: &[Said] = &[Said("application", "")];
const LOST: &[Said] = &[Said("refused", ""), Said("filter", "")];

pub fn causes() -> Vec<Cause> {
    vec![
        cause("vxlan_slow_reader", "a slow reader behind a vxlan device", FULL, slow_reader),
        cause(
            "vxlan_other_vni",
            "the tunnel's packets have a network id that nobody here has",
            LOST,
            other_vni,
        )
        .or(&[Said("nothing", "what tunnels (vx0) refuse")]),
        cause(
            "vxlan_no_device",
            "encapsulated packets come and the host has no tunnel",
            &[Said("no-listener", "")],
            no_device,
        ),
        cause(
            "ipip_no_device",
            "packets of a protocol (4) that this host has no tunnel for",
            &[Said("refused", ""), Said("nothing", ""), Said("unknown", "")],
            ipip,
        ),
    ]
}

/// A vxlan device in a namespace: address 10.90.0.LAST.
pub fn vxlan(host: &Host, namespace: &str, vni: u32, last: u32) -> Result<(), String> {
    let (wire, far) = if namespace == "tx" { ("w1", "10.88.0.2") } else { ("w0", "10.88.0.1") };
    host.sh(namespace, &format!("ip link add vx0 address 02:00:00:00:0a:0{last} type vxlan id {vni} remote {far} dstport 4789 dev {wire}; ip addr add 10.90.0.{last}/24 dev vx0; ip link set vx0 up; ip neigh replace 10.90.0.{} lladdr 02:00:00:00:0a:0{} dev vx0", 3 - last, 3 - last))
}

fn slow_reader(host: &mut Host) -> Result<Made, String> {
    vxlan(host, "tx", 42, 1)?;
    vxlan(host, "rx", 42, 2)?;
    host.read("at=10.90.0.2:9700 work=150")?;
    host.send("to=10.90.0.2:9700 rate=10000")?;
    Ok(Made::with("less work for each", |host| host.read_instead("at=10.90.0.2:9700 work=15")))
}

fn other_vni(host: &mut Host) -> Result<Made, String> {
    vxlan(host, "tx", 42, 1)?;
    vxlan(host, "rx", 43, 2)?;
    host.read("at=10.90.0.2:9700")?;
    host.send("to=10.90.0.2:9700 rate=4000")?;
    Ok(Made::with("the same id", |host| {
        host.sh("rx", "ip link del vx0")?;
        vxlan(host, "rx", 42, 2)
    }))
}

fn no_device(host: &mut Host) -> Result<Made, String> {
    vxlan(host, "tx", 42, 1)?;
    host.read("at=0.0.0.0:9700")?;
    host.send("to=10.90.0.2:9700 rate=4000")?;
    Ok(Made::with("a device", |host| vxlan(host, "rx", 42, 2)))
}

fn ipip(host: &mut Host) -> Result<Made, String> {
    host.read("work=5")?;
    host.frames("rate=4000 proto=4 udp=no")?;
    host.send("rate=1000")?;
    Ok(Made::without("the kernel has no tunnel of that kind here"))
}
