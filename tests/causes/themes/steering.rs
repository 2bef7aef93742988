//! Softirqs without time, backlogs, connection tracking.

use crate::cause::{Cause, Made, cause};
use crate::grade::Said;
use crate::host::Host;

const SOFTIRQ: &[Said] = &[
    Said("softirq", ""),
    Said("one-cpu", ""),
    Said("rps-missing", ""),
    Said("backlog", ""),
    Said("livelock", ""),
];
const BACKLOG: &[Said] = &[Said("backlog", "")];
const LIVELOCK: &[Said] = &[Said("livelock", ""), Said("softirq", ""), Said("one-cpu", "")];
const FULL: &[Said] = &[Said("conntrack-full", "")];

pub fn causes() -> Vec<Cause> {
    vec![
        cause(
            "rps_one_flow",
            "RPS gives one flow to CPU 1, where 8000 rules make each packet dear",
            SOFTIRQ,
            |host| dear(host, 1),
        ),
        cause("rps_many_flows", "the same with 32 flows", SOFTIRQ, |host| dear(host, 32)),
        cause(
            "backlog_bursts",
            "bursts of 2500 into the RPS backlog of 1000, whose CPU has time",
            BACKLOG,
            backlog_bursts,
        ),
        cause(
            "softirq_on_the_readers_cpu",
            "a GSO flood whose softirq has the CPU of the reader",
            LIVELOCK,
            livelock,
        ),
        cause("conntrack_full", "the table of connections is full", FULL, conntrack),
        cause(
            "conntrack_full_tcp",
            "the same; new TCP connections find no entry",
            FULL,
            conntrack_tcp,
        ),
        cause(
            "victim",
            "a program that computes pays for RPS softirqs; nothing is lost, so `nothing` is true, too",
            &[Said("victim", ""), Said("nothing", ""), Said("tick-artefact", "")],
            victim,
        ),
    ]
}

const TO_CPU_1: &str = "echo 2 > /sys/class/net/w0/queues/rx-0/rps_cpus";

/// Rules that never match.
fn rules(count: u32) -> String {
    format!(
        "{{ echo 'table ip t {{ chain c {{ type filter hook prerouting priority 0;'; i=0; while [ $i -lt {count} ]; do echo \"ip saddr 203.0.113.$((i % 250)) drop\"; i=$((i+1)); done; echo '}}; }}'; }} | nft -f -"
    )
}

fn dear(host: &mut Host, flows: u32) -> Result<Made, String> {
    host.read("cpu=0 rcvbuf=4194304")?;
    host.sh("rx", &format!("{TO_CPU_1}; {}", rules(8000)))?;
    host.send(&format!("rate=25000 flows={flows}"))?;
    Ok(Made::with("the rules go", |host| host.sh("rx", "nft flush ruleset")))
}

fn backlog_bursts(host: &mut Host) -> Result<Made, String> {
    host.read("cpu=0 rcvbuf=8388608")?;
    host.sh("rx", &format!("{TO_CPU_1}; {}", rules(1200)))?;
    host.send("rate=10000 burst=2500")?;
    Ok(Made::with("smooth sending", |host| {
        host.end_sender(0);
        host.send("rate=10000").map(drop)
    }))
}

fn livelock(host: &mut Host) -> Result<Made, String> {
    host.read("work=5 rcvbuf=65536")?;
    host.sh("rx", &format!("{TO_CPU_1}; {}", rules(200)))?;
    host.send("rate=1000000 gso=40 size=100")?;
    Ok(Made::without("no other CPU is left for it here"))
}

fn full_table(host: &mut Host) -> Result<(), String> {
    host.sh("rx", "nft -f - <<E\ntable ip t { chain c { type filter hook input priority 0; ct state new accept; }; }\nE")?;
    host.set("/proc/sys/net/netfilter/nf_conntrack_max", "300")
}

fn conntrack(host: &mut Host) -> Result<Made, String> {
    host.read("at=0.0.0.0:9700")?;
    full_table(host)?;
    host.send("rate=5000 flows=900")?;
    Ok(Made::with("this traffic is not tracked", |host| {
        host.sh("rx", "nft -f - <<E\ntable ip r { chain c { type filter hook prerouting priority -300; udp dport 9700 notrack; }; }\nE")
    }))
}

fn conntrack_tcp(host: &mut Host) -> Result<Made, String> {
    full_table(host)?;
    host.other("rx", "tcp-serve", "close")?;
    host.other("tx", "tcp-load", "connects=800 conns=20 patience=200")?;
    Ok(Made::with("this traffic is not tracked", |host| {
        host.sh("rx", "nft -f - <<E\ntable ip r { chain c { type filter hook prerouting priority -300; notrack; }; chain d { type filter hook output priority -300; notrack; }; }\nE")
    })
    .by(|host| host.pace(|host| host.others_count(2))))
}

fn victim(host: &mut Host) -> Result<Made, String> {
    host.read("cpu=0 rcvbuf=4194304")?;
    host.sh("rx", &format!("{TO_CPU_1}; {}", rules(1800)))?;
    host.other("rx", "hog", "threads=1")?;
    host.send("rate=14000")?;
    Ok(Made::without("nothing is lost"))
}
