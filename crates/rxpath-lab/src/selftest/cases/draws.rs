//! How the cases are drawn: each function gives the settings of a variant, with parameters that vary where the limit does not
//! depend on them.

use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use rxpath_host::{Root, kernel_config};

use crate::selftest::rule_cost::rules;

/// From the least to the most.
type Range = std::ops::RangeInclusive<u32>;

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

pub(super) fn nothing(random: &mut ChaCha8Rng) -> Vec<String> {
    vec![rate(random, 2_000, 15_000), size(random)]
}

pub(super) fn sender(random: &mut ChaCha8Rng) -> Vec<String> {
    vec![
        rate(random, 400_000, 900_000),
        format!("background.hogs = {}", random.random_range(2..=8)),
        "background.cpus = \"@sender\"".into(),
        "lab.rps_cpus = \"@receiver\"".into(),
    ]
}

pub(super) fn ring(random: &mut ChaCha8Rng) -> Vec<String> {
    vec![
        rate(random, 10_000, 40_000),
        size(random),
        "load.pacing = \"sleep\"".into(),
        "lab.gro = true".into(),
        "lab.tso = false".into(),
        "lab.threaded = true".into(),
        "lab.napi_idle = true".into(),
        "lab.napi_cpu = \"@receiver\"".into(),
        // The reader would wait for its CPU too: it runs on the CPU of the sender, which sleeps.
        "serve.cpu = \"@sender\"".into(),
        format!("background.hogs = {}", random.random_range(1..=3)),
        "background.cpus = \"@receiver\"".into(),
    ]
}

/// So many rules that never match, which each datagram passes.
pub(in crate::selftest) fn in_the_way(count: u32) -> String {
    let rules = rules(count);
    table("inet", &format!("type filter hook input priority 0; policy accept; {rules}"))
}

/// A rate in datagrams/s, and what one must cost, in ns, for all to take that share of a CPU, in percent.
fn taking(random: &mut ChaCha8Rng, percent: Range, rate: Range) -> (f64, String) {
    let (percent, rate) = (random.random_range(percent), random.random_range(rate));
    (f64::from(percent) / 100.0 * 1e9 / f64::from(rate), format!("load.rate = {rate}"))
}

/// Ticks a second of the kernel that runs.
fn tick_hz() -> u32 {
    kernel_config::tick(&Root::host(), None).value().map_or(250, |tick| tick.hz)
}

/// One flow. What is measured of a rule may be a fifth too much and there is too much work all the same.
pub(super) fn softirq(random: &mut ChaCha8Rng) -> (f64, Vec<String>) {
    let (datagram_ns, rate) = taking(random, 160..=300, 100_000..=130_000);
    let settings = vec![
        rate,
        "lab.rps_cpus = \"@receiver\"".into(),
        "serve.cpu = \"@sender\"".into(),
        "serve.rcvbuf = \"256MiB\"".into(),
    ];
    (datagram_ns, settings)
}

pub(super) fn filter(random: &mut ChaCha8Rng) -> Vec<String> {
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

pub(super) fn checksum(random: &mut ChaCha8Rng) -> Vec<String> {
    vec![rate(random, 5_000, 20_000), size(random), "load.corrupt = \"checksum\"".into()]
}

pub(super) fn no_listener(random: &mut ChaCha8Rng) -> Vec<String> {
    vec![
        rate(random, 5_000, 20_000),
        size(random),
        "serve.absent = true".into(),
        format!("load.unconnected = {}", random.random_bool(0.5)),
    ]
}

pub(super) fn socket_queue(random: &mut ChaCha8Rng) -> Vec<String> {
    let sleep_ms = random.random_range(15..=40);
    vec![
        rate(random, 20_000, 40_000),
        // Room for 64 to 128 datagrams, 2 to 6 ms.
        format!("serve.rcvbuf = \"{}KiB\"", random.random_range(53..=106)),
        format!("serve.sleep = \"{sleep_ms}ms\""),
        format!("serve.every = \"{}ms\"", sleep_ms * random.random_range(3..=6)),
    ]
}

pub(super) fn application(random: &mut ChaCha8Rng) -> Vec<String> {
    vec![
        rate(random, 30_000, 50_000),
        format!("serve.work = \"{}us\"", random.random_range(50..=200)),
        format!("serve.rcvbuf = \"{}KiB\"", random.random_range(128..=1024)),
    ]
}

/// Work of 90 to 110 % of the time between two datagrams: either side of the limit, and what lies on it.
pub(super) fn near_reader(random: &mut ChaCha8Rng) -> Vec<String> {
    let rate = random.random_range(8_000..=12_000);
    let work_ns = 1_000_000_000 / rate * random.random_range(90..=110) / 100;
    vec![
        format!("load.rate = {rate}"),
        format!("serve.work = \"{work_ns}ns\""),
        "serve.rcvbuf = \"256KiB\"".into(),
    ]
}

/// Room for 80 to 125 % of the datagrams of a stall; each takes 832 bytes of kernel memory.
pub(super) fn near_stall(random: &mut ChaCha8Rng) -> Vec<String> {
    let (rate, sleep_ms) = (random.random_range(20_000..=40_000), random.random_range(15..=40));
    let room = rate * sleep_ms / 1_000 * random.random_range(80..=125) / 100;
    vec![
        format!("load.rate = {rate}"),
        format!("serve.rcvbuf = {}", room * 832),
        format!("serve.sleep = \"{sleep_ms}ms\""),
        format!("serve.every = \"{}ms\"", sleep_ms * random.random_range(3..=6)),
    ]
}

pub(super) fn two_limits(random: &mut ChaCha8Rng) -> Vec<String> {
    let each = random.random_range(2..=6);
    let rule = format!("udp dport 4321 numgen inc mod {each} 0 counter drop");
    let chain = format!("type filter hook input priority 0; policy accept; {rule}");
    let mut settings = application(random);
    settings.push(table("inet", &chain));
    settings
}

pub(super) fn descheduled(random: &mut ChaCha8Rng) -> Vec<String> {
    vec![
        rate(random, 20_000, 40_000),
        // Room for 64 to 128 datagrams, 2 to 6 ms: less than a busy loop's turn.
        format!("serve.rcvbuf = \"{}KiB\"", random.random_range(53..=106)),
        format!("background.hogs = {}", random.random_range(6..=14)),
        "background.cpus = \"@receiver\"".into(),
    ]
}

pub(super) fn livelock(random: &mut ChaCha8Rng) -> Vec<String> {
    vec![
        "lab.rps_cpus = \"@receiver\"".into(),
        format!("load.gso = {}", random.random_range(40..=64)),
        format!("load.batch = {}", random.random_range(8..=32)),
        format!("serve.batch = {}", random.random_range(64..=1024)),
        format!("serve.rcvbuf = \"{}MiB\"", random.random_range(2..=8)),
    ]
}

/// The sender keeps to its schedule: what it could not send while it was off its CPU goes out at once, several times faster
/// than the softirq takes it. It spins while nothing is due: one that sleeps is given its CPU at once when it wakes, also
/// next to busy loops. The CPU of the softirq has time for twice the rate.
pub(super) fn backlog(random: &mut ChaCha8Rng) -> (f64, Vec<String>) {
    let (datagram_ns, rate) = taking(random, 35..=45, 50_000..=80_000);
    let settings = vec![
        rate,
        "load.pacing = \"spin\"".into(),
        "lab.rps_cpus = \"@receiver\"".into(),
        "lab.udp_segmentation = false".into(),
        format!("load.gso = {}", random.random_range(16..=48)),
        format!("background.hogs = {}", random.random_range(24..=32)),
        "background.cpus = \"@sender\"".into(),
    ];
    (datagram_ns, settings)
}

/// More work than one CPU has time for, from a sender and for a reader that leave theirs mostly idle.
fn too_much_for_one(random: &mut ChaCha8Rng) -> (f64, Vec<String>) {
    let (datagram_ns, rate) = taking(random, 150..=200, 45_000..=60_000);
    let settings = vec![
        rate,
        "load.pacing = \"sleep\"".into(),
        "lab.udp_segmentation = false".into(),
        format!("load.gso = {}", random.random_range(8..=32)),
        "serve.rcvbuf = \"256MiB\"".into(),
        format!("serve.batch = {}", random.random_range(64..=1024)),
    ];
    (datagram_ns, settings)
}

/// The same with other settings in addition.
fn too_much_with(
    random: &mut ChaCha8Rng,
    flows: fn(&mut ChaCha8Rng) -> Vec<String>,
    place: &[&str],
) -> (f64, Vec<String>) {
    let (datagram_ns, settings) = too_much_for_one(random);
    let place = place.iter().map(|&line| line.to_owned()).collect();
    (datagram_ns, [settings, flows(random), place].concat())
}

fn one_flow(_: &mut ChaCha8Rng) -> Vec<String> {
    Vec::new()
}

fn many_flows(random: &mut ChaCha8Rng) -> Vec<String> {
    vec!["load.unconnected = true".into(), format!("load.flows = {}", random.random_range(8..=64))]
}

pub(super) fn one_cpu(random: &mut ChaCha8Rng) -> (f64, Vec<String>) {
    let place = ["lab.rps_cpus = \"@receiver\"", "serve.cpu = \"@sender\""];
    too_much_with(random, many_flows, &place)
}

pub(super) fn rps_missing(random: &mut ChaCha8Rng) -> (f64, Vec<String>) {
    let place = [
        "lab.gro = true",
        "lab.tso = false",
        "lab.threaded = true",
        "lab.napi_cpu = \"@receiver\"",
        "serve.cpu = \"@sender\"",
    ];
    too_much_with(random, many_flows, &place)
}

/// Which of the two CPUs the flow lands on is the hash's choice: nobody else is bound to either.
pub(super) fn rps_pointless(random: &mut ChaCha8Rng) -> (f64, Vec<String>) {
    let place = ["lab.rps_cpus = \"@sender,@receiver\"", "serve.cpu = \"\"", "load.cpu = \"\""];
    too_much_with(random, one_flow, &place)
}

/// The table takes a part of the flows and no more.
pub(super) fn conntrack_full(random: &mut ChaCha8Rng) -> Vec<String> {
    let flows = random.random_range(64..=512);
    let chain =
        "type filter hook prerouting priority 0; policy accept; ct state new counter accept";
    vec![
        table("inet", chain),
        format!("lab.conntrack_room = {}", random.random_range(0..=flows / 2)),
        "load.unconnected = true".into(),
        format!("load.flows = {flows}"),
        rate(random, 5_000, 20_000),
        size(random),
    ]
}

pub(super) fn socket_lock(random: &mut ChaCha8Rng) -> Vec<String> {
    vec![
        "serve.cpu = \"@receiver:3\"".into(),
        "serve.sockets = \"shared\"".into(),
        "serve.batch = 1".into(),
        format!("load.gso = {}", random.random_range(40..=64)),
        format!("serve.rcvbuf = \"{}MiB\"", random.random_range(1..=8)),
    ]
}

/// One flow always meets the same socket.
pub(super) fn reuseport(random: &mut ChaCha8Rng) -> Vec<String> {
    vec![
        rate(random, 30_000, 50_000),
        "load.pacing = \"sleep\"".into(),
        "serve.cpu = \"\"".into(),
        "serve.sockets = \"reuseport\"".into(),
        format!("serve.threads = {}", random.random_range(2..=6)),
        format!("serve.work = \"{}us\"", random.random_range(50..=200)),
        format!("serve.rcvbuf = \"{}KiB\"", random.random_range(128..=1024)),
    ]
}

/// Few and dear datagrams: the backlog holds 50 ms of them and more, so that nothing is lost when the hypervisor or the busy
/// task keeps the softirq waiting.
pub(super) fn victim(random: &mut ChaCha8Rng) -> (f64, Vec<String>) {
    let (datagram_ns, rate) = taking(random, 28..=38, 14_000..=20_000);
    let settings = vec![
        rate,
        "load.pacing = \"sleep\"".into(),
        "lab.rps_cpus = \"@receiver\"".into(),
        "serve.cpu = \"@sender\"".into(),
        "background.hogs = 1".into(),
        "background.cpus = \"@receiver\"".into(),
    ];
    (datagram_ns, settings)
}

/// A burst each tick, from the tick on and over before the next one: no tick sees what it takes.
///
/// The start at a multiple of the tick makes it certain: a burst that begins anywhere may end at a tick, and ticks that see
/// some of the bursts are right by chance. 128 datagrams are the longest burst.
pub(super) fn tick_artefact(random: &mut ChaCha8Rng) -> (f64, Vec<String>) {
    let hz = tick_hz();
    let burst = random.random_range(96..=128) * 250 / hz.max(250);
    let rate = burst * hz;
    let (datagram_ns, rate) = taking(random, 38..=52, rate..=rate);
    let settings = vec![
        format!("load.gso = {burst}"),
        rate,
        format!("load.start_multiple = \"{}ns\"", 1_000_000_000 / hz),
        "load.pacing = \"sleep\"".into(),
        "lab.udp_segmentation = false".into(),
        "lab.rps_cpus = \"@receiver\"".into(),
        "serve.cpu = \"@sender\"".into(),
    ];
    (datagram_ns, settings)
}
