//! How the settings of the cases are drawn, with parameters that vary where the limit does not depend on them. The
//! function of a case adds to the settings that `cases.toml` has for it.

use chacha20::ChaCha8Rng;
use rand::RngExt;
use rxpath_host::Root;
use rxpath_host::read::kernel_config;

use crate::selftest::rule_cost::rules;

/// The settings of templates, one a line or between `;`. `{2..8}` is a number drawn from 2 to 8.
pub(in crate::selftest) fn drawn(random: &mut ChaCha8Rng, templates: &[&str]) -> Vec<String> {
    let mut filled = |part: &str| {
        let ends = part
            .split_once("..")
            .and_then(|(from, to)| Some((from.parse::<u32>().ok()?, to.parse::<u32>().ok()?)));
        match ends {
            Some((from, to)) => random.random_range(from..=to).to_string(),
            None => part.to_owned(),
        }
    };
    let settings = templates.iter().flat_map(|template| template.split([';', '\n']));
    let settings = settings.map(str::trim).filter(|it| !it.is_empty());
    settings.map(|it| it.split(['{', '}']).map(&mut filled).collect()).collect()
}

/// What a datagram must cost, in ns, for all to take a share of a CPU that is drawn first, and the settings.
pub(in crate::selftest) fn busy(
    random: &mut ChaCha8Rng,
    (least, most): (u32, u32),
    templates: &[&str],
) -> (f64, Vec<String>) {
    let percent = random.random_range(least..=most);
    let settings = drawn(random, templates);
    let rate = settings.iter().find_map(|it| it.strip_prefix("load.rate = ")?.parse::<u32>().ok());
    (f64::from(percent) / 100.0 * 1e9 / f64::from(rate.unwrap_or(1)), settings)
}

/// A ruleset of one chain that accepts what its rules leave, in nft's language.
fn table(family: &str, hook: &str, rules: &str) -> String {
    let chain = format!("type filter hook {hook} priority 0; policy accept; {rules}");
    format!("lab.nft_rx = '''\ntable {family} t {{\n chain in {{\n {chain}\n }}\n}}\n'''")
}

/// A rule that drops one of up to `most` datagrams.
fn one_of_some(random: &mut ChaCha8Rng, most: u32) -> String {
    let each = random.random_range(2..=most);
    format!("udp dport 4321 numgen inc mod {each} 0 counter drop")
}

/// So many rules that never match, which each datagram passes.
pub(in crate::selftest) fn in_the_way(count: u32) -> String {
    table("inet", "input", &rules(count))
}

/// Ticks a second of the kernel that runs.
fn tick_hz() -> u32 {
    kernel_config::tick(&Root::host(), None).value().map_or(250, |tick| tick.hz)
}

/// The period of a stall of this length.
fn every(random: &mut ChaCha8Rng, sleep_ms: u32) -> String {
    format!("serve.every = \"{}ms\"", sleep_ms * random.random_range(3..=6_u32))
}

pub(super) fn filter(random: &mut ChaCha8Rng) -> Vec<String> {
    let rule = one_of_some(random, 9);
    let (family, hook) = match random.random_range(0..3) {
        0 => ("netdev", "ingress device \"veth\""),
        1 => ("inet", "prerouting"),
        _ => ("inet", "input"),
    };
    vec![table(family, hook, &rule)]
}

pub(super) fn no_listener(random: &mut ChaCha8Rng) -> Vec<String> {
    vec![format!("load.unconnected = {}", random.random_bool(0.5))]
}

/// Room for 64 to 128 datagrams, 2 to 6 ms.
pub(super) fn socket_queue(random: &mut ChaCha8Rng) -> Vec<String> {
    let sleep_ms = random.random_range(15..=40);
    let sleep = format!(r#"serve.sleep = "{sleep_ms}ms""#);
    let room = r#"load.rate = {20000..40000}; serve.rcvbuf = "{53..106}KiB""#;
    let mut settings = drawn(random, &[room, &sleep]);
    settings.push(every(random, sleep_ms));
    settings
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
        every(random, sleep_ms),
    ]
}

pub(super) fn two_limits(random: &mut ChaCha8Rng) -> Vec<String> {
    vec![table("inet", "input", &one_of_some(random, 6))]
}

/// The table takes a part of the flows and no more.
pub(super) fn conntrack_full(random: &mut ChaCha8Rng) -> Vec<String> {
    let flows: u32 = random.random_range(64..=512);
    let rules = table("inet", "prerouting", "ct state new counter accept");
    let room = format!("lab.conntrack_room = {{0..{}}}", flows / 2);
    let flows = format!("load.unconnected = true; load.flows = {flows}");
    [vec![rules], drawn(random, &[&room, &flows])].concat()
}

/// A burst each tick, from the tick on and over before the next one: no tick sees what it takes.
///
/// The start at a multiple of the tick makes it certain: a burst that begins anywhere may end at a tick, and ticks that see
/// some of the bursts are right by chance. 128 datagrams are the longest burst.
pub(super) fn tick_artefact(random: &mut ChaCha8Rng) -> (f64, Vec<String>) {
    let hz = tick_hz();
    let burst = random.random_range(96..=128) * 250 / hz.max(250);
    let rate = burst * hz;
    let burst = format!("load.gso = {burst}; load.rate = {{{rate}..{rate}}}");
    let start = format!(r#"load.start_multiple = "{}ns""#, 1_000_000_000 / hz);
    let rest = r#"load.pacing = "sleep"; lab.udp_segmentation = false; lab.rps_cpus = "@receiver"; serve.cpu = "@sender""#;
    busy(random, (38, 52), &[&burst, &start, rest])
}
