//! Readers without time: their own work, or buffers that are too small for how they read.

use crate::cause::{Cause, Made, cause};
use crate::grade::Said;
use crate::host::Host;

const FULL: &[Said] = &[Said("application", "")];
const QUEUE: &[Said] = &[Said("socket-queue", "")];

pub fn causes() -> Vec<Cause> {
    vec![
        cause(
            "slow_reader",
            "150 us of work for each of 10k/s: the reader is full",
            FULL,
            |host| slow(host, "10.88.0.2:9700"),
        ),
        cause("slow_reader_ipv6", "the same over IPv6", FULL, |host| {
            slow(host, "[fd00:88::2]:9700")
        }),
        cause("slow_reader_dual", "IPv4 traffic to a slow reader on [::]", FULL, |host| {
            slow(host, "[::]:9700")
        }),
        cause(
            "slow_reader_container",
            "a slow reader in a pid namespace of its own",
            FULL,
            slow_reader_container,
        ),
        cause(
            "full_beside_a_light_hog",
            "a full reader; a hog of nice 15 takes a few percent of its CPU",
            FULL,
            full_beside_a_light_hog,
        ),
        cause(
            "python_reader",
            "a python program computes 200 us for each of 8k/s",
            FULL,
            python_reader,
        ),
        cause(
            "gro_reader_full",
            "aggregates of 16 and 100 us of work a datagram: full",
            FULL,
            gro_reader_full,
        ),
        cause(
            "small_buffer_stall",
            "a buffer of 32 KB; the reader sleeps 50 of 100 ms",
            QUEUE,
            small_buffer_stall,
        ),
        cause(
            "microburst",
            "500 datagrams at once, 4 times a second, into a small buffer",
            QUEUE,
            microburst,
        ),
        cause(
            "garbage_collector",
            "the reader computes for 60 ms of each 300 and reads nothing meanwhile",
            QUEUE,
            garbage_collector,
        ),
        cause(
            "gso_burst_into_small_buffer",
            "a GSO sender's bursts into a buffer for a third of one",
            QUEUE,
            gso_burst,
        ),
        cause(
            "tiny_buffer_large_datagrams",
            "the smallest buffer: it holds one datagram of 1400 bytes, and they come in twos to tens",
            QUEUE,
            tiny_buffer,
        ),
    ]
}

fn slow(host: &mut Host, at: &'static str) -> Result<Made, String> {
    host.read(&format!("at={at} work=150"))?;
    let to = at.replace("[::]:", "10.88.0.2:");
    host.send(&format!("to={to} rate=10000"))?;
    Ok(Made::with("less work for each", move |host| host.read_instead(&format!("at={at} work=15"))))
}

fn slow_reader_container(host: &mut Host) -> Result<Made, String> {
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    let own = own.display().to_string();
    let words = ["unshare", "-pf", "--kill-child", &own, "as", "read", "work=150"];
    host.program("rx", &words, true)?;
    host.send("rate=10000")?;
    Ok(Made::with("less work for each", |host| host.read_instead("work=15")))
}

fn full_beside_a_light_hog(host: &mut Host) -> Result<Made, String> {
    host.other("rx", "hog", "nice=15")?;
    slow(host, "10.88.0.2:9700")
}

/// A reader in python: `EACH` is done for each datagram.
pub fn python(each: &str) -> String {
    format!(
        "import mmap, os, socket, struct, time\n\
         f = os.open(os.environ['COUNT'], os.O_RDWR | os.O_CREAT)\n\
         os.ftruncate(f, 4096)\n\
         m = memoryview(mmap.mmap(f, 4096)).cast('Q')\n\
         os.sched_setaffinity(0, [1 % os.cpu_count()])\n\
         s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n\
         s.bind(('10.88.0.2', 9700))\n\
         m[3] = 1\n\
         while True:\n \
           d = s.recv(2048)\n \
           m[0] += 1\n \
           {each}\n"
    )
}

fn python_reader(host: &mut Host) -> Result<Made, String> {
    let program = python("e = time.thread_time() + 2e-4\n  while time.thread_time() < e: pass");
    let program = program.replace("\n  while", "\n while");
    host.program("rx", &["python3", "-c", &program], true)?;
    host.send("rate=8000")?;
    Ok(Made::with("a program that does not compute", |host| host.read_instead("work=15")))
}

fn gro_reader_full(host: &mut Host) -> Result<Made, String> {
    host.read("gro segment=200 work=100")?;
    host.send("rate=20000 gso=16 size=200")?;
    Ok(Made::with("less work for each", |host| host.read_instead("gro segment=200 work=5")))
}

fn small_buffer_stall(host: &mut Host) -> Result<Made, String> {
    host.read("rcvbuf=16384 stall=50 every=100")?;
    host.send("rate=5000")?;
    Ok(Made::with("a buffer of 16 MB", |host| {
        host.read_instead("rcvbuf=8388608 stall=50 every=100")
    }))
}

fn microburst(host: &mut Host) -> Result<Made, String> {
    host.read("rcvbuf=32768 work=20")?;
    host.send("rate=2000 burst=500")?;
    Ok(Made::with("a buffer of 16 MB", |host| host.read_instead("rcvbuf=8388608 work=20")))
}

fn garbage_collector(host: &mut Host) -> Result<Made, String> {
    host.read("rcvbuf=65536 stall=60 every=300 burn")?;
    host.send("rate=8000")?;
    Ok(Made::with("a buffer of 16 MB", |host| {
        host.read_instead("rcvbuf=8388608 stall=60 every=300 burn")
    }))
}

fn gso_burst(host: &mut Host) -> Result<Made, String> {
    host.read("rcvbuf=12288 work=10")?;
    host.send("rate=4000 gso=40 burst=200 size=1000")?;
    Ok(Made::with("a buffer of 16 MB", |host| host.read_instead("rcvbuf=8388608 work=10")))
}

fn tiny_buffer(host: &mut Host) -> Result<Made, String> {
    host.read("rcvbuf=1")?;
    host.send("rate=4000 burst=10 size=1400")?;
    Ok(Made::with("a buffer of 16 MB", |host| host.read_instead("rcvbuf=8388608")))
}
