//! What happens elsewhere: another namespace, another service, the sender's side.

use crate::cause::{Cause, Made, cause};
use crate::grade::Said;
use crate::host::Host;

const ELSEWHERE: &[Said] = &[Said("unknown", "")];
/// That ticks are wrong may be said beside it.
const WELL: &[Said] = &[Said("nothing", ""), Said("tick-artefact", "")];

pub fn causes() -> Vec<Cause> {
    vec![
        cause(
            "other_namespace",
            "a slow reader in another namespace than the watched one",
            ELSEWHERE,
            other_namespace,
        ),
        cause(
            "by_pid",
            "the same, found by the reader's process id",
            &[Said("application", "")],
            by_pid,
        ),
        cause(
            "two_services",
            "one service is well, the other one is full",
            &[Said("application", "9701")],
            services,
        ),
        cause(
            "two_services_port",
            "the same; asked about the one that is well",
            WELL,
            two_services_port,
        ),
        cause(
            "own_shaper",
            "seen from the sender: its own tbf drops half",
            &[Said("unknown", ""), Said("sender", "")],
            own_shaper,
        ),
        cause("far_shaper", "seen from the receiver: half never comes", WELL, far_shaper),
        cause(
            "unresolved_neighbour",
            "seen from the sender: the next hop answers no ARP",
            &[Said("unknown", "")],
            neighbour,
        ),
        cause(
            "one_namespace_of_two",
            "a container's namespace loses; the watched one is well",
            WELL,
            neighbour_namespace,
        ),
    ]
}

fn slow(host: &mut Host) -> Result<usize, String> {
    let reader = host.read("work=150")?;
    host.send("rate=10000")?;
    Ok(reader)
}

fn other_namespace(host: &mut Host) -> Result<Made, String> {
    slow(host)?;
    crate::host::run("ip netns add empty")?;
    Ok(Made::without("it is the next cause").seen_from("empty"))
}

fn by_pid(host: &mut Host) -> Result<Made, String> {
    let reader = slow(host)?;
    let pid = host.reader(reader).pid().to_string();
    crate::host::run("ip netns add empty")?;
    Ok(Made::with("less work for each", |host| host.read_instead("work=15"))
        .seen_from("empty")
        .asked(&["--pid", &pid]))
}

fn services(host: &mut Host) -> Result<Made, String> {
    host.read("work=5 cpu=0")?;
    host.read("at=10.88.0.2:9701 work=150")?;
    host.send("rate=3000")?;
    host.send("to=10.88.0.2:9701 rate=9000")?;
    Ok(Made::with("less work for each", |host| {
        host.end_reader(1);
        host.read("at=10.88.0.2:9701 work=15").map(drop)
    }))
}

fn two_services_port(host: &mut Host) -> Result<Made, String> {
    let made = services(host)?;
    Ok(Made { remedy: Err("the other service has it"), ..made }.asked(&["--port", "9700"]))
}

fn shaped(host: &mut Host) -> Result<(), String> {
    host.read("work=5")?;
    host.sh("tx", "tc qdisc add dev w1 root tbf rate 6mbit burst 10k limit 20k")?;
    host.send("rate=10000").map(drop)
}

fn own_shaper(host: &mut Host) -> Result<Made, String> {
    shaped(host)?;
    Ok(Made::with("no shaper", |host| host.sh("tx", "tc qdisc del dev w1 root")).seen_from("tx"))
}

fn far_shaper(host: &mut Host) -> Result<Made, String> {
    shaped(host)?;
    Ok(Made::with("no shaper", |host| host.sh("tx", "tc qdisc del dev w1 root")))
}

fn neighbour(host: &mut Host) -> Result<Made, String> {
    host.read("at=10.88.0.77:9700").unwrap_or_default();
    host.send("to=10.88.0.77:9700 rate=4000")?;
    Ok(Made::without("nobody has the address").seen_from("tx"))
}

/// A third namespace behind a wire of its own, whose reader is slow.
fn neighbour_namespace(host: &mut Host) -> Result<Made, String> {
    crate::host::run(
        "ip netns add c1; ip link add c netns tx type veth peer name c netns c1
         ip -n tx addr add 10.91.0.1/24 dev c; ip -n c1 addr add 10.91.0.2/24 dev c
         ip -n tx link set c up; ip -n c1 link set c up",
    )?;
    host.other("c1", "read", "at=10.91.0.2:9700 work=150")?;
    host.other("tx", "send", "to=10.91.0.2:9700 rate=10000")?;
    host.read("work=5 cpu=0")?;
    host.send("rate=2000")?;
    Ok(Made::without("nothing is lost where it looks"))
}
