//! TCP: windows that close, queues that are full, segments that are sent again.

use nix::sys::signal::Signal;

use crate::cause::{Cause, Made, cause};
use crate::grade::Said;
use crate::host::Host;

const READER: &[Said] = &[Said("tcp-reader", "")];
const ACCEPT: &[Said] = &[Said("accept-queue", "")];
const RECEIVE: &[Said] = &[Said("tcp-receive", ""), Said("tcp-reader", "")];
const AGAIN: &[Said] = &[Said("tcp-retransmit", "")];
const FILTER: &[Said] = &[Said("filter", ""), Said("tcp-retransmit", "")];
/// That ticks are wrong may be said beside it.
const WELL: &[Said] = &[Said("nothing", ""), Said("tick-artefact", "")];

pub fn causes() -> Vec<Cause> {
    vec![
        cause(
            "tcp_never_read",
            "a service accepts and never reads: zero windows",
            READER,
            |host| served(host, "read=never", "conns=8", "chunk=262144"),
        ),
        cause("tcp_slow_reader", "a service that works 2 ms for each 4 KB", READER, |host| {
            served(host, "chunk=4096 work=2000", "conns=8", "chunk=262144")
        }),
        cause("tcp_napping_reader", "a service that waits 5 ms after each 4 KB", READER, |host| {
            served(host, "chunk=4096 nap=5000", "conns=8", "chunk=262144")
        }),
        cause("tcp_stopped", "a signal stopped the service", READER, stopped),
        cause("tcp_quota", "the service has a CPU quota of a tenth", READER, quota),
        cause(
            "tcp_slow_one_of_many",
            "one of thirty services' connections is never read",
            READER,
            one_of_many,
        )
        .or(WELL),
        cause(
            "tcp_accept_queue",
            "a backlog of 4, five accepted a second, 100 asked for",
            ACCEPT,
            |host| requests(host, "backlog=4 accept=200 close", "connects=100 conns=50"),
        ),
        cause("tcp_accept_never", "a listener that nobody accepts from", ACCEPT, |host| {
            requests(host, "backlog=16 accept=never", "connects=100 conns=50")
        }),
        cause(
            "tcp_accept_cookies",
            "the same with a flood of requests answered by cookies",
            ACCEPT,
            accept_cookies,
        ),
        cause(
            "tcp_small_buffers",
            "20 connections with 4 KB of buffer, small segments, slow reader",
            RECEIVE,
            small_buffers,
        ),
        cause("tcp_retransmit_in", "one of 20 segments is lost on the way here", AGAIN, lost_in),
        cause(
            "tcp_retransmit_out",
            "one of 20 of this host's segments is lost on the way out",
            AGAIN,
            lost_out,
        ),
        cause("tcp_filter_in", "this host's own rule drops one of 20 segments", FILTER, filter_in),
        cause(
            "tcp_syn_filter",
            "this host's rule drops half of the connection requests",
            FILTER,
            syn_filter,
        ),
        cause(
            "tcp_refused",
            "nobody listens: resets",
            &[Said("unknown", ""), Said("nothing", ""), Said("no-listener", "")],
            refused,
        ),
        cause("tcp_well", "four streams, read as they come", WELL, |host| {
            nothing(host, "chunk=262144", "conns=4 chunk=20000 rate=10000000")
        }),
        cause("tcp_paced", "streams that send at a rate of their own", WELL, |host| {
            nothing(host, "chunk=262144", "conns=8 chunk=1400 rate=500000")
        }),
        cause("tcp_transactions", "requests of a byte and answers, nothing waits", WELL, |host| {
            nothing(host, "echo chunk=100", "conns=4 chunk=1 echo rate=2000")
        }),
    ]
}

fn closed(host: &Host) -> f64 {
    host.pace(|host| {
        host.counter("rx", "TcpExt.TCPToZeroWindowAdv")
            + host.counter("rx", "TcpExt.TCPZeroWindowDrop")
    })
}

/// What a stream is short of what it could have: bytes that were not read count against 50 MB/s.
fn unread(host: &Host) -> f64 {
    1.0 - (host.pace(|host| host.others_count(0)) / 100e6).min(1.0)
}

fn served(host: &mut Host, serve: &str, load: &str, better: &'static str) -> Result<Made, String> {
    let service = host.other("rx", "tcp-serve", serve)?;
    host.other("tx", "tcp-load", load)?;
    let load = load.to_owned();
    Ok(Made::with("a service that reads", move |host| {
        host.end_other(1);
        host.end_other(service);
        host.other("rx", "tcp-serve", better)?;
        host.other("tx", "tcp-load", &load).map(drop)
    })
    .by(unread))
}

fn stopped(host: &mut Host) -> Result<Made, String> {
    let service = host.other("rx", "tcp-serve", "chunk=65536")?;
    host.other("tx", "tcp-load", "conns=8 chunk=1000 rate=1000000")?;
    std::thread::sleep(std::time::Duration::from_millis(300));
    host.of_other(service).signal(Signal::SIGSTOP);
    Ok(Made::with("SIGCONT", move |host| {
        host.of_other(service).signal(Signal::SIGCONT);
        Ok(())
    })
    .by(|host| 1.0 - (host.pace(|host| host.of_other(service_at()).counts()[0]) / 1e6).min(1.0)))
}

/// The service is the first of the others.
fn service_at() -> usize {
    0
}

fn quota(host: &mut Host) -> Result<Made, String> {
    let group =
        host.group("cpu", &[("cpu.cfs_period_us", "100000"), ("cpu.cfs_quota_us", "10000")])?;
    let service = host.other("rx", "tcp-serve", "chunk=16384 work=100")?;
    host.join(&group, host.of_other(service).pid())?;
    host.other("tx", "tcp-load", "conns=4")?;
    Ok(Made::with("no quota", move |_| {
        std::fs::write(format!("{group}/cpu.cfs_quota_us"), "-1").map_err(|error| error.to_string())
    })
    .by(|host| 1.0 - (host.pace(|host| host.of_other(service_at()).counts()[0]) / 50e6).min(1.0)))
}

fn one_of_many(host: &mut Host) -> Result<Made, String> {
    host.other("rx", "tcp-serve", "chunk=65536")?;
    let unread = host.other("rx", "tcp-serve", "at=10.88.0.2:9801 read=never")?;
    host.other("tx", "tcp-load", "conns=30 chunk=1000 rate=50000")?;
    host.other("tx", "tcp-load", "to=10.88.0.2:9801 conns=1")?;
    Ok(Made::with("it ends", move |host| {
        host.end_other(unread);
        Ok(())
    })
    .by(closed))
}

fn requests(host: &mut Host, serve: &str, load: &str) -> Result<Made, String> {
    let service = host.other("rx", "tcp-serve", serve)?;
    host.other("tx", "tcp-load", load)?;
    Ok(Made::with("a service that accepts", move |host| {
        host.end_other(service);
        host.other("rx", "tcp-serve", "close").map(drop)
    })
    .by(|host| host.pace(|host| host.counter("rx", "TcpExt.ListenDrops"))))
}

fn accept_cookies(host: &mut Host) -> Result<Made, String> {
    host.sh("rx", "sysctl -qw net.ipv4.tcp_syncookies=2")?;
    requests(host, "backlog=8 accept=never", "connects=300 conns=60 patience=300")
}

fn small_buffers(host: &mut Host) -> Result<Made, String> {
    let made =
        served(host, "rcvbuf=4096 chunk=500 nap=1000", "conns=20 chunk=100", "chunk=262144")?;
    // Clients that write a hundred bytes at a time are no faster.
    Ok(made.by(|host| 1.0 - (host.pace(|host| host.others_count(0)) / 5e6).min(1.0)))
}

/// A bridge between the two, whose port from the sender loses one of 20.
const BETWEEN: &str = "ip netns add mid
     ip link add m1 netns tx type veth peer name m2 netns mid
     ip link add m4 netns rx type veth peer name m3 netns mid
     ip -n tx addr add 10.92.0.1/24 dev m1; ip -n rx addr add 10.92.0.2/24 dev m4
     ip -n mid link add br0 type bridge; ip -n mid link set br0 up
     for d in m2 m3; do ip -n mid link set $d master br0 up; done
     ip -n tx link set m1 up; ip -n rx link set m4 up";

fn lost_in(host: &mut Host) -> Result<Made, String> {
    crate::host::run(BETWEEN)?;
    host.other("rx", "tcp-serve", "at=10.92.0.2:9800 chunk=262144")?;
    host.other("tx", "tcp-load", "to=10.92.0.2:9800 conns=8 chunk=60000 rate=20000000")?;
    host.sh("mid", "nft -f - <<E\ntable netdev t { chain c { type filter hook ingress device m2 priority 0; tcp dport 9800 numgen random mod 20 == 0 drop; }; }\nE")?;
    Ok(Made::with("the loss ends", |host| host.sh("mid", "nft flush ruleset"))
        .by(|host| host.pace(|host| host.counter("rx", "TcpExt.TCPOFOQueue"))))
}

/// This host sends.
fn lost_out(host: &mut Host) -> Result<Made, String> {
    host.other("tx", "tcp-serve", "at=10.88.0.1:9800 chunk=262144")?;
    host.other("rx", "tcp-load", "to=10.88.0.1:9800 conns=8 chunk=60000 rate=20000000")?;
    host.sh("tx", "nft -f - <<E\ntable ip t { chain c { type filter hook input priority 0; tcp dport 9800 numgen random mod 20 == 0 drop; }; }\nE")?;
    Ok(Made::with("the loss ends", |host| host.sh("tx", "nft flush ruleset"))
        .by(|host| host.pace(|host| host.counter("rx", "Tcp.RetransSegs"))))
}

fn filter_in(host: &mut Host) -> Result<Made, String> {
    host.other("rx", "tcp-serve", "chunk=262144")?;
    host.other("tx", "tcp-load", "conns=8 chunk=60000 rate=20000000")?;
    host.sh("rx", "nft -f - <<E\ntable ip t { chain c { type filter hook input priority 0; tcp dport 9800 numgen random mod 20 == 0 drop; }; }\nE")?;
    Ok(Made::with("the rule goes", |host| host.sh("rx", "nft flush ruleset"))
        .by(|host| host.pace(|host| host.counter("rx", "TcpExt.TCPOFOQueue"))))
}

fn syn_filter(host: &mut Host) -> Result<Made, String> {
    host.sh("rx", "nft -f - <<E\ntable ip t { chain c { type filter hook input priority 0; tcp flags syn numgen inc mod 2 == 0 drop; }; }\nE")?;
    host.other("rx", "tcp-serve", "close")?;
    host.other("tx", "tcp-load", "connects=400 conns=50 patience=300")?;
    Ok(Made::with("the rule goes", |host| host.sh("rx", "nft flush ruleset"))
        .by(|host| host.pace(|host| host.others_count(2))))
}

fn refused(host: &mut Host) -> Result<Made, String> {
    host.other("tx", "tcp-load", "connects=300 conns=10")?;
    Ok(Made::with("a service", |host| host.other("rx", "tcp-serve", "close").map(drop))
        .by(|host| host.pace(|host| host.others_count(2))))
}

fn nothing(host: &mut Host, serve: &str, load: &str) -> Result<Made, String> {
    host.other("rx", "tcp-serve", serve)?;
    host.other("tx", "tcp-load", load)?;
    Ok(Made::without("nothing is lost"))
}
