//! Limits of memory.

use crate::cause::{Cause, Made, cause};
use crate::grade::Said;
use crate::host::Host;

const MEMORY: &[Said] = &[Said("socket-queue", "memory")];
const TCP_MEMORY: &[Said] = &[Said("tcp-receive", ""), Said("tcp-reader", "")];

pub fn causes() -> Vec<Cause> {
    vec![
        cause(
            "group_memory_udp",
            "the reader's control group has 64 KB for sockets; it stalls 80 of 100 ms with a large buffer",
            MEMORY,
            udp,
        ),
        cause(
            "group_memory_tcp",
            "the TCP service's control group has 64 KB for sockets; it is slow",
            TCP_MEMORY,
            tcp,
        ),
    ]
}

const LIMIT: &str = "memory.kmem.tcp.limit_in_bytes";

/// Sockets belong to the group of the process that opens them.
fn limited(host: &mut Host, role: &str) -> Result<String, String> {
    let group = host.group("memory", &[(LIMIT, "65536")])?;
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    let script = format!("echo $$ > {group}/cgroup.procs; exec {} as {role}", own.display());
    host.program("rx", &["sh", "-c", &script], true)?;
    Ok(group)
}

fn unlimited(group: &str) -> Result<(), String> {
    std::fs::write(format!("{group}/{LIMIT}"), "-1").map_err(|error| error.to_string())
}

fn udp(host: &mut Host) -> Result<Made, String> {
    let group = limited(host, "read rcvbuf=8388608 stall=80 every=100")?;
    host.send("rate=10000 size=500")?;
    Ok(Made::with("no limit", move |_| unlimited(&group)))
}

fn tcp(host: &mut Host) -> Result<Made, String> {
    let group = limited(host, "tcp-serve work=300 nap=2000")?;
    host.other("tx", "tcp-load", "conns=20 chunk=1000 rate=200000")?;
    Ok(Made::with("no limit", move |_| unlimited(&group))
        .by(|host| host.pace(|host| host.counter("rx", "TcpExt.TCPRcvQDrop"))))
}
