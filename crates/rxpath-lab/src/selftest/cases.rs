//! The limits that can be made on purpose in a lab of two CPUs or more, one function each.
//!
//! A draw is a list of settings of a scenario's variant. Its parameters vary where the limit does not depend on them.

use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use rxpath_record::verdict::Stage;

/// A limit that is made.
pub struct Case {
    /// Its name.
    pub id: &'static str,
    /// What is done.
    pub what: &'static str,
    /// The stages that say so.
    pub expected: &'static [Stage],
    /// The settings of one draw.
    pub(super) draw: fn(&mut ChaCha8Rng) -> Vec<String>,
}

impl std::fmt::Debug for Case {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.id)
    }
}

/// Every case, in the order of the way.
pub const CASES: &[Case] = &[
    Case {
        id: "nothing",
        what: "a rate that everything takes",
        expected: &[Stage::Nothing],
        draw: nothing,
    },
    Case {
        id: "sender",
        what: "a sender that must share its CPU and asks for more than that gives",
        expected: &[Stage::Sender, Stage::SenderOrSoftirq],
        draw: sender,
    },
    Case {
        id: "ring",
        what: "a NAPI thread that does not get its CPU",
        expected: &[Stage::Ring],
        draw: ring,
    },
    Case {
        id: "softirq",
        what: "a receive softirq with more work than its CPU has time",
        expected: &[Stage::Softirq],
        draw: softirq,
    },
    Case {
        id: "filter",
        what: "a firewall rule that drops some",
        expected: &[Stage::Filter],
        draw: filter,
    },
    Case {
        id: "checksum",
        what: "datagrams that arrive damaged",
        expected: &[Stage::Checksum],
        draw: checksum,
    },
    Case {
        id: "no-listener",
        what: "a port that nobody listens on",
        expected: &[Stage::NoListener],
        draw: no_listener,
    },
    Case {
        id: "socket-queue",
        what: "a reader that stalls, before a buffer that does not hold the stall",
        expected: &[Stage::SocketQueue],
        draw: socket_queue,
    },
    Case {
        id: "application",
        what: "a reader with more work for each datagram than there is time",
        expected: &[Stage::Application],
        draw: application,
    },
    Case {
        id: "descheduled",
        what: "a reader beside many busy loops on its CPU",
        expected: &[Stage::ApplicationDescheduled],
        draw: descheduled,
    },
    Case {
        id: "livelock",
        what: "a flood whose softirq runs on the reader's CPU",
        expected: &[Stage::Livelock],
        draw: livelock,
    },
];

/// Limits of the receive path that are not made here, and why.
pub const NOT_MADE: &[(&str, &str)] = &[
    (
        "backlog",
        "no rate fills the backlog of RPS while its CPU has time, on every host: see softirq",
    ),
    ("one-queue", "needs a device with several queues and CPUs for them"),
    ("shared-socket", "contention for one socket needs two readers and a sender on three CPUs"),
    ("reuseport-imbalance", "needs readers on CPUs of their own beside the sender's"),
    ("victim", "a task that is no part of the path: see the time that softirqs take from tasks"),
    ("conntrack-full", "the limit of the table is the machine's, not the lab's"),
    ("tick-artefact", "a verdict of `load http`, on its own times"),
];

fn rate(random: &mut ChaCha8Rng, from: u32, to: u32) -> String {
    format!("load.rate = {}", random.random_range(from..=to))
}

/// A ruleset of one chain, in nft's language.
fn table(family: &str, chain: &str) -> String {
    format!("lab.nft_rx = '''\ntable {family} t {{\n chain in {{\n {chain}\n }}\n}}\n'''")
}

fn size(random: &mut ChaCha8Rng) -> String {
    format!("load.size = {}", random.random_range(16..=1400))
}

fn nothing(random: &mut ChaCha8Rng) -> Vec<String> {
    vec![rate(random, 2_000, 15_000), size(random)]
}

fn sender(random: &mut ChaCha8Rng) -> Vec<String> {
    vec![
        rate(random, 400_000, 900_000),
        format!("background.hogs = {}", random.random_range(2..=8)),
        "background.cpus = \"@sender\"".into(),
        "lab.rps_cpus = \"@receiver\"".into(),
    ]
}

fn ring(random: &mut ChaCha8Rng) -> Vec<String> {
    vec![
        rate(random, 10_000, 40_000),
        size(random),
        "load.pacing = \"sleep\"".into(),
        "lab.gro = true".into(),
        "lab.tso = false".into(),
        "lab.threaded = true".into(),
        "lab.napi_idle = true".into(),
        "lab.napi_cpu = \"@receiver\"".into(),
        // The reader would wait for its CPU too: it runs beside the sender, which sleeps.
        "serve.cpu = \"@sender\"".into(),
        format!("background.hogs = {}", random.random_range(1..=3)),
        "background.cpus = \"@receiver\"".into(),
    ]
}

/// Some hundred rules that never match make each packet cost tens of microseconds in the softirq.
fn softirq(random: &mut ChaCha8Rng) -> Vec<String> {
    let ports = 0..random.random_range(700..=1400);
    let rules: Vec<String> = ports.map(|n| format!("udp dport {} drop;", 20_000 + n)).collect();
    let rules = rules.join(" ");
    let chain = format!("type filter hook input priority 0; policy accept; {rules}");
    vec![
        table("inet", &chain),
        "lab.rps_cpus = \"@receiver\"".into(),
        "serve.cpu = \"@sender\"".into(),
        "serve.rcvbuf = \"256MiB\"".into(),
        rate(random, 150_000, 200_000),
    ]
}

fn filter(random: &mut ChaCha8Rng) -> Vec<String> {
    let each = random.random_range(2..=9);
    let rule = format!("udp dport 4321 numgen inc mod {each} 0 counter drop");
    let (family, hook) = match random.random_range(0..3) {
        0 => ("netdev", "ingress device \"veth\""),
        1 => ("inet", "prerouting"),
        _ => ("inet", "input"),
    };
    let chain = format!("type filter hook {hook} priority 0; policy accept; {rule}");
    vec![table(family, &chain), rate(random, 5_000, 20_000), size(random)]
}

fn checksum(random: &mut ChaCha8Rng) -> Vec<String> {
    vec![rate(random, 5_000, 20_000), size(random), "load.corrupt = \"checksum\"".into()]
}

fn no_listener(random: &mut ChaCha8Rng) -> Vec<String> {
    vec![
        rate(random, 5_000, 20_000),
        size(random),
        "serve.absent = true".into(),
        format!("load.unconnected = {}", random.random_bool(0.5)),
    ]
}

fn socket_queue(random: &mut ChaCha8Rng) -> Vec<String> {
    let sleep_ms = random.random_range(15..=40);
    vec![
        rate(random, 20_000, 40_000),
        // Room for 64 to 128 datagrams, 2 to 6 ms.
        format!("serve.rcvbuf = \"{}KiB\"", random.random_range(53..=106)),
        format!("serve.sleep = \"{sleep_ms}ms\""),
        format!("serve.every = \"{}ms\"", sleep_ms * random.random_range(3..=6)),
    ]
}

fn application(random: &mut ChaCha8Rng) -> Vec<String> {
    vec![
        rate(random, 30_000, 50_000),
        format!("serve.work = \"{}us\"", random.random_range(50..=200)),
        format!("serve.rcvbuf = \"{}KiB\"", random.random_range(128..=1024)),
    ]
}

fn descheduled(random: &mut ChaCha8Rng) -> Vec<String> {
    vec![
        rate(random, 20_000, 40_000),
        // Room for 64 to 128 datagrams, 2 to 6 ms: less than a busy loop's turn.
        format!("serve.rcvbuf = \"{}KiB\"", random.random_range(53..=106)),
        format!("background.hogs = {}", random.random_range(6..=14)),
        "background.cpus = \"@receiver\"".into(),
    ]
}

fn livelock(random: &mut ChaCha8Rng) -> Vec<String> {
    vec![
        "lab.rps_cpus = \"@receiver\"".into(),
        format!("load.gso = {}", random.random_range(40..=64)),
        format!("load.batch = {}", random.random_range(8..=32)),
        format!("serve.batch = {}", random.random_range(64..=1024)),
        format!("serve.rcvbuf = \"{}MiB\"", random.random_range(2..=8)),
    ]
}
