//! What UDP itself has against a datagram: nobody listens, a wrong checksum, a wrong length.

use crate::cause::{Cause, Made, cause};
use crate::grade::Said;
use crate::host::Host;

const NOBODY: &[Said] = &[Said("no-listener", "")];
const SUM: &[Said] = &[Said("checksum", "")];
const REFUSED: &[Said] = &[Said("refused", "")];

pub fn causes() -> Vec<Cause> {
    vec![
        cause("no_listener", "nobody has the port", NOBODY, |host| unheard(host, "")),
        cause("other_address", "the socket of the port is bound to 127.0.0.1", NOBODY, |host| {
            unheard(host, "at=127.0.0.1:9700")
        }),
        cause("other_family", "the socket takes IPv6 only, the traffic is IPv4", NOBODY, |host| {
            unheard(host, "at=[::]:9700 v6only")
        }),
        cause("other_device", "the socket is bound to another device", NOBODY, |host| {
            unheard(host, "at=0.0.0.0:9700 device=lo")
        }),
        cause("connected_elsewhere", "the socket is connected to another peer", NOBODY, |host| {
            unheard(host, "from=10.88.0.77:5000")
        }),
        cause(
            "other_port",
            "a service listens on the port after the one that is asked",
            NOBODY,
            |host| unheard(host, "at=10.88.0.2:9701"),
        ),
        cause(
            "checksum_short",
            "half of the datagrams have a wrong checksum, 100 bytes",
            SUM,
            |host| damaged(host, "work=5", "csum=bad"),
        ),
        cause("checksum_long", "the same with 600 bytes, found when they are read", SUM, |host| {
            damaged(host, "work=5", "csum=bad size=600")
        }),
        cause("checksum_ipv6", "the same over IPv6", SUM, |host| {
            damaged(host, "at=[fd00:88::2]:9700", "csum=bad v6")
        }),
        cause(
            "checksum_none_ipv6",
            "IPv6 datagrams without a checksum, which RFC 8200 forbids",
            &[Said("checksum", ""), Said("refused", "")],
            |host| damaged(host, "at=[fd00:88::2]:9700", "csum=none v6"),
        ),
        cause("udp_length", "UDP's header claims more bytes than there are", REFUSED, |host| {
            damaged(host, "work=5", "udplen=900")
        }),
    ]
}

fn unheard(host: &mut Host, reader: &str) -> Result<Made, String> {
    if !reader.is_empty() {
        host.read(reader)?;
    }
    host.send("rate=5000")?;
    Ok(Made::with("a socket that fits", |host| host.read_instead("work=5")))
}

/// As many good ones beside them.
fn damaged(host: &mut Host, reader: &str, frames: &'static str) -> Result<Made, String> {
    host.read(reader)?;
    host.frames(&format!("rate=3000 sport=5001 {frames}"))?;
    host.frames(&format!(
        "rate=3000 {}",
        frames.replace("csum=bad", "").replace("csum=none", "").replace("udplen=900", "")
    ))?;
    Ok(Made::with("the bad sender ends", |host| {
        host.end_sender(0);
        Ok(())
    }))
}
