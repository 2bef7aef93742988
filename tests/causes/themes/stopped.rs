//! Readers that something stopped, and sockets that nobody reads.

use nix::sys::signal::Signal;

use crate::cause::{Cause, Made, cause};
use crate::grade::Said;
use crate::host::Host;

const SIGNAL: &[Said] = &[Said("application-descheduled", "a signal stopped it")];
const FROZEN: &[Said] = &[Said("application-descheduled", "its control group is frozen")];
const TRACED: &[Said] = &[Said("application-descheduled", "debugger")];
const NOBODY: &[Said] = &[
    Said("socket-queue", "no thread read"),
    Said("application", "no thread read"),
    Said("application", "no thread of it ran"),
];
const GONE: &[Said] = &[Said("no-listener", ""), Said("application", ""), Said("socket-queue", "")];

pub fn causes() -> Vec<Cause> {
    vec![
        cause("sigstop", "a signal stopped the reader", SIGNAL, sigstop),
        cause(
            "sigstop_and_sigcont",
            "something stops the reader for half of the time",
            &[Said("application-descheduled", ""), Said("socket-queue", "")],
            sigstop_in_turns,
        ),
        cause("freezer", "the freezer holds the reader, as `docker pause` does", FROZEN, freezer),
        cause(
            "freezer_v2",
            "the freezer of control groups, version 2, holds the reader",
            FROZEN,
            |host| frozen(host, "unified", "cgroup.freeze", ["1", "0"]),
        ),
        cause("debugger", "a debugger holds the reader", TRACED, debugger),
        cause(
            "socket_nobody_reads",
            "a program has the socket and never reads it",
            NOBODY,
            nobody_reads,
        ),
        cause(
            "reopened_socket",
            "the program closes its socket for 40 of each 100 ms",
            GONE,
            reopened,
        ),
        cause(
            "reader_restarts",
            "the reader is restarted each second and needs half of it",
            GONE,
            restarts,
        ),
    ]
}

fn sigstop(host: &mut Host) -> Result<Made, String> {
    let reader = host.read("work=20")?;
    host.send("rate=5000")?;
    host.reader(reader).signal(Signal::SIGSTOP);
    Ok(Made::with("SIGCONT", move |host| {
        host.reader(reader).signal(Signal::SIGCONT);
        Ok(())
    }))
}

fn sigstop_in_turns(host: &mut Host) -> Result<Made, String> {
    let reader = host.read("work=20 rcvbuf=32768")?;
    host.send("rate=5000")?;
    let script = format!(
        "while :; do kill -STOP {0}; sleep 0.1; kill -CONT {0}; sleep 0.1; done",
        host.reader(reader).pid()
    );
    host.program("rx", &["sh", "-c", &script], false)?;
    Ok(Made::with("nobody stops it", move |host| {
        host.end_other(0);
        std::thread::sleep(std::time::Duration::from_millis(200));
        host.reader(reader).signal(Signal::SIGCONT);
        Ok(())
    }))
}

fn frozen(
    host: &mut Host,
    mount: &str,
    file: &'static str,
    how: [&'static str; 2],
) -> Result<Made, String> {
    let group = host.group(mount, &[])?;
    let reader = host.read("work=20")?;
    host.join(&group, host.reader(reader).pid())?;
    let set = move |group: &str, value: &str| {
        std::fs::write(format!("{group}/{file}"), value).map_err(|error| format!("{file}: {error}"))
    };
    set(&group, how[0])?;
    host.send("rate=5000")?;
    Ok(Made::with("it is thawed", move |_| set(&group, how[1])))
}

fn freezer(host: &mut Host) -> Result<Made, String> {
    frozen(host, "freezer", "freezer.state", ["FROZEN", "THAWED"])
}

fn debugger(host: &mut Host) -> Result<Made, String> {
    let reader = host.read("work=20")?;
    host.send("rate=5000")?;
    let pid = host.reader(reader).pid();
    let held = host.other("rx", "hold", &format!("pid={pid}"))?;
    Ok(Made::with("the debugger ends", move |host| {
        host.end_other(held);
        Ok(())
    }))
}

fn nobody_reads(host: &mut Host) -> Result<Made, String> {
    host.read("idle")?;
    host.send("rate=5000")?;
    Ok(Made::with("a program that reads", |host| host.read_instead("work=5")))
}

fn reopened(host: &mut Host) -> Result<Made, String> {
    host.read("open=60 closed=40 rcvbuf=32768")?;
    host.send("rate=5000")?;
    Ok(Made::with("a socket that stays open", |host| host.read_instead("work=5")))
}

fn restarts(host: &mut Host) -> Result<Made, String> {
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    let script =
        format!("while :; do sleep 0.5; timeout 0.5 {} as read work=5; done", own.display());
    host.program("rx", &["sh", "-c", &script], false)?;
    host.send("rate=5000")?;
    Ok(Made::with("a reader that stays", |host| {
        host.end_other(0);
        std::thread::sleep(std::time::Duration::from_millis(800));
        host.read("work=5").map(drop)
    })
    .by(|host| host.pace(|host| host.counter("rx", "Udp.NoPorts"))))
}
