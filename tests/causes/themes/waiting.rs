//! Readers that have to wait: for a CPU, or for something that is not a datagram.

use crate::cause::{Cause, Made, cause};
use crate::grade::Said;
use crate::host::Host;

use super::readers::python;

const OFF: &[Said] = &[Said("application-descheduled", "")];
const MANY: &[Said] = &[Said("application-descheduled", ""), Said("application", "")];
const ELSE: &[Said] = &[Said("application", "waits for something else")];
const QUOTA: &[Said] = &[Said("application-descheduled", "CPU quota")];

pub fn causes() -> Vec<Cause> {
    vec![
        cause(
            "hogs_beside",
            "four hogs on the CPU of a reader that needs 60 % of it",
            OFF,
            |host| hogs(host, "work=60", 10_000, "threads=4"),
        ),
        cause("niced_reader", "the reader has nice 19, a hog on its CPU nice 0", OFF, |host| {
            hogs(host, "work=40 nice=19", 10_000, "threads=1")
        }),
        cause(
            "idle_class_reader",
            "the reader is SCHED_IDLE, a hog on its CPU is not",
            OFF,
            idle_class_reader,
        ),
        cause(
            "realtime_hog",
            "a SCHED_FIFO program computes for 20 ms, then 5 ms are the reader's",
            OFF,
            |host| hogs(host, "work=20 rcvbuf=16384", 10_000, "fifo run=20 nap=5"),
        ),
        cause(
            "session_of_hogs",
            "the reader has nice -15 in a session of its own; the hogs' session has as much weight",
            OFF,
            |host| hogs(host, "work=60 nice=-15 session", 10_000, "threads=3"),
        ),
        cause(
            "more_readers_than_cpus",
            "eight threads of one socket, 300 us of work each, two CPUs",
            MANY,
            more_readers,
        ),
        cause(
            "workers_on_one_cpu",
            "four busy threads of one socket are bound to one CPU",
            MANY,
            workers_on_one_cpu,
        ),
        cause("cpu_quota", "the reader's control group has 10 of each 100 ms", QUOTA, |host| {
            quota(host, "10000", "100000")
        }),
        cause(
            "cpu_quota_short",
            "a quota of 1 of each 5 ms, as a latency tuned limit",
            QUOTA,
            |host| quota(host, "1000", "5000"),
        ),
        cause("naps", "the reader waits 1 ms for another service after each of 5k/s", ELSE, naps),
        cause(
            "fsync",
            "a python reader writes each datagram to disk and waits for it",
            ELSE,
            fsync,
        ),
        cause(
            "full_pipe",
            "the reader hands each datagram to a pipe whose other end is slow",
            ELSE,
            full_pipe,
        ),
        cause(
            "slow_logger",
            "the reader hands each datagram to a thread of the program that waits 2 ms for each",
            ELSE,
            slow_logger,
        ),
    ]
}

fn hogs(host: &mut Host, reader: &str, rate: u32, hogs: &str) -> Result<Made, String> {
    host.read(reader)?;
    let hog = host.other("rx", "hog", hogs)?;
    host.send(&format!("rate={rate}"))?;
    Ok(Made::with("the hogs end", move |host| {
        host.end_other(hog);
        Ok(())
    }))
}

fn idle_class_reader(host: &mut Host) -> Result<Made, String> {
    let made = hogs(host, "work=40 idle-class", 10_000, "threads=1")?;
    // Whatever else the machine does keeps a reader of this class waiting.
    let normal = Made::with("a reader of the normal class, no hog", |host| {
        host.end_other(0);
        host.read_instead("work=40")
    });
    Ok(Made { remedy: normal.remedy, ..made })
}

fn more_readers(host: &mut Host) -> Result<Made, String> {
    host.read("threads=8 cpu=any work=300")?;
    host.send("rate=20000 flows=16")?;
    Ok(Made::with("less work for each", |host| host.read_instead("threads=2 cpu=any work=15")))
}

fn workers_on_one_cpu(host: &mut Host) -> Result<Made, String> {
    host.read("threads=4 work=200")?;
    host.send("rate=10000")?;
    Ok(Made::with("less work for each", |host| host.read_instead("threads=4 work=15")))
}

fn quota(host: &mut Host, quota: &'static str, period: &str) -> Result<Made, String> {
    let group = host.group("cpu", &[("cpu.cfs_period_us", period), ("cpu.cfs_quota_us", quota)])?;
    let reader = host.read("work=30")?;
    host.join(&group, host.reader(reader).pid())?;
    host.send("rate=10000")?;
    Ok(Made::with("no quota", move |_| {
        std::fs::write(format!("{group}/cpu.cfs_quota_us"), "-1").map_err(|error| error.to_string())
    }))
}

fn naps(host: &mut Host) -> Result<Made, String> {
    host.read("nap=1000")?;
    host.send("rate=5000")?;
    Ok(Made::with("a reader that does not wait", |host| host.read_instead("work=5")))
}

fn fsync(host: &mut Host) -> Result<Made, String> {
    let file = tempfile_path();
    let each = format!(
        "w = globals().setdefault('w', open('{file}', 'wb')); w.write(d); w.flush(); os.fsync(w.fileno())"
    );
    host.program("rx", &["python3", "-c", &python(&each)], true)?;
    host.send("rate=20000")?;
    Ok(Made::with("no fsync", |host| host.read_instead("work=5")))
}

/// A file of the disk that goes with the build.
fn tempfile_path() -> String {
    let place = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/causes");
    let _ = std::fs::create_dir_all(&place);
    place.join("fsync.tmp").display().to_string()
}

fn full_pipe(host: &mut Host) -> Result<Made, String> {
    let start = "p = globals().get('p') or globals().setdefault('p', __import__('subprocess').Popen(['python3', '-c', 'import os, time\\nwhile os.read(0, 100): time.sleep(1e-3)'], stdin=-1)); os.write(p.stdin.fileno(), d)";
    host.program("rx", &["python3", "-c", &python(start)], true)?;
    host.send("rate=10000")?;
    Ok(Made::with("no pipe", |host| host.read_instead("work=5")))
}

fn slow_logger(host: &mut Host) -> Result<Made, String> {
    host.read("logger=2")?;
    host.send("rate=5000")?;
    Ok(Made::with("no logger", |host| host.read_instead("work=5")))
}
