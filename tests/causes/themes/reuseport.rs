//! Groups of sockets on one address.

use nix::sys::signal::Signal;

use crate::cause::{Cause, Made, cause};
use crate::grade::Said;
use crate::host::Host;

const UNEVEN: &[Said] = &[Said("reuseport-imbalance", "")];
const SLOW: &[Said] = &[Said("application", "")];
const LEFT: &[Said] = &[
    Said("socket-queue", "no thread read"),
    Said("application", "no thread read"),
    Said("application", "nobody reads"),
];
const STOPPED: &[Said] = &[Said("application-descheduled", "a signal stopped it")];

/// By counters alone: what arrived at which socket is not known, and that is said.
const NOT_COUNTED: &[Said] = &[
    Said("", "that dropped nothing got anything"),
    Said("", "arrivals per socket are not counted"),
];

pub fn causes() -> Vec<Cause> {
    vec![
        cause(
            "group_one_flow",
            "four sockets of a group and one flow: three readers get nothing",
            UNEVEN,
            one_flow,
        )
        .or(NOT_COUNTED),
        cause(
            "group_elephant",
            "one flow has nearly all of the load, forty have a little",
            UNEVEN,
            elephant,
        )
        .or(NOT_COUNTED),
        cause(
            "group_slow_member",
            "the load is even; one of four threads needs 900 us for each",
            SLOW,
            slow_member,
        )
        .or(NOT_COUNTED),
        cause(
            "group_member_left",
            "a program that was replaced still has its socket in the group and reads no more",
            LEFT,
            member_left,
        )
        .or(NOT_COUNTED),
        cause(
            "group_member_stopped",
            "one of two processes of the group is stopped",
            STOPPED,
            member_stopped,
        )
        .or(NOT_COUNTED),
        cause(
            "group_too_few",
            "two even members, both full",
            &[Said("application", ""), Said("application-descheduled", "")],
            too_few,
        ),
    ]
}

fn one_flow(host: &mut Host) -> Result<Made, String> {
    host.read("threads=4 group cpu=any work=130")?;
    host.send("rate=10000")?;
    Ok(Made::with("many flows", |host| {
        host.end_sender(0);
        host.send("rate=10000 flows=64").map(drop)
    }))
}

fn elephant(host: &mut Host) -> Result<Made, String> {
    host.read("threads=4 group cpu=any work=120")?;
    host.send("rate=400 flows=40")?;
    host.send("rate=10000")?;
    Ok(Made::with("the elephant is spread over many flows", |host| {
        host.end_sender(1);
        host.send("rate=10000 flows=64").map(drop)
    }))
}

fn slow_member(host: &mut Host) -> Result<Made, String> {
    host.read("threads=4 group cpu=any work=10 slow=2 slow-work=900")?;
    host.send("rate=10000 flows=64")?;
    Ok(Made::with("it is as fast as the others", |host| {
        host.read_instead("threads=4 group cpu=any work=10")
    }))
}

fn member_left(host: &mut Host) -> Result<Made, String> {
    let left = host.other("rx", "read", "group idle")?;
    host.read("group work=20")?;
    host.send("rate=5000 flows=64")?;
    Ok(Made::with("the old program ends", move |host| {
        host.end_other(left);
        Ok(())
    }))
}

fn member_stopped(host: &mut Host) -> Result<Made, String> {
    let stopped = host.read("group work=20")?;
    host.read("group work=20 cpu=0")?;
    host.send("rate=5000 flows=64")?;
    host.reader(stopped).signal(Signal::SIGSTOP);
    Ok(Made::with("SIGCONT", move |host| {
        host.reader(stopped).signal(Signal::SIGCONT);
        Ok(())
    }))
}

fn too_few(host: &mut Host) -> Result<Made, String> {
    host.read("threads=2 group cpu=any work=400")?;
    host.send("rate=10000 flows=64")?;
    Ok(Made::with("less work for each", |host| {
        host.read_instead("threads=2 group cpu=any work=20")
    }))
}
