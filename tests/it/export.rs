//! `rxpath export` without root: the page by port, socket and file, and what is refused.

use std::fs::{self, DirEntry};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::program::rxpath;
pub(super) use crate::scraper::{Scraper, installed};

/// The value of a series.
pub(super) fn value(page: &str, series: &str) -> Option<f64> {
    page.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' ')?.parse().ok())
}

/// Every line is a comment or a series with a number, and every series belongs to a metric that `--names` prints.
fn holds(page: &str) {
    let names = rxpath(&["export", "--names"]).out;
    let known =
        |name: &str| names.lines().any(|line| line.split('{').next().is_some_and(|of| of == name));
    let mut series = 0;
    for line in page.lines().filter(|line| !line.starts_with("# ")) {
        let (what, number) = line.rsplit_once(' ').unwrap_or_else(|| panic!("{line}"));
        number.parse::<f64>().unwrap_or_else(|_| panic!("{line}"));
        let name = what.split('{').next().unwrap();
        assert!(known(name), "{name} is not in --names");
        series += 1;
    }
    assert!((40..=600).contains(&series), "{series} series");
}

#[test]
fn one_window_gives_the_page() {
    let words = ["export", "--once", "--no-bpf", "--interval", "200ms", "--check-every", "0s"];
    let page = rxpath(&words).ok();
    holds(&page);
    assert!(value(&page, "rxpath_window_seconds_total").unwrap() >= 0.2);
    assert_eq!(value(&page, "rxpath_probe_up"), Some(0.0));
    assert_eq!(value(&page, "rxpath_not_read{what=\"BPF probes\"}"), Some(1.0));
    assert!(!page.contains("rxpath_task_cpu_stolen"), "without probes nobody knows");
    assert!(!page.contains("rxpath_check_"), "no check was asked for");
    for (place, stage) in [
        ("backlog", "backlog"),
        ("ip", "ip"),
        ("socket-buffer", "socket"),
        ("no-listener", "socket"),
    ] {
        let series = format!("rxpath_lost_packets_total{{place=\"{place}\",stage=\"{stage}\"}}");
        assert!(value(&page, &series).is_some(), "{series} is there from the start: {page}");
    }
    assert!(!page.contains("place=\"netfilter\""), "only the kernel's reasons tell that");
}

#[test]
fn a_file_is_written_as_a_whole_with_the_findings_of_a_check() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("rxpath.prom");
    let file = path.to_str().unwrap();
    let words = ["export", "--once", "--no-bpf", "--interval", "200ms", "--textfile", file];
    rxpath(&words).ends(0).prints_nothing();
    let page = fs::read_to_string(&path).unwrap();
    holds(&page);
    assert!(value(&page, "rxpath_check_timestamp_seconds").unwrap() > 1.6e9);
    assert!(value(&page, "rxpath_config_fingerprint").unwrap() > 0.0);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
}

/// An exporter that runs; killed when it is dropped.
pub(super) struct Running(pub(super) Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Running {
    /// Its process.
    pub(super) fn pid(&self) -> Pid {
        Pid::from_raw(self.0.id() as i32)
    }
}

/// Starts an exporter of counters alone, and gives the address that it says.
fn start(listen: &str) -> (Running, String) {
    start_with(&["--no-bpf", "--interval", "100ms", "--check-every", "0s", "--listen", listen])
}

/// Starts an exporter with these options, and gives the address that it says.
pub(super) fn start_with(options: &[&str]) -> (Running, String) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_rxpath"))
        .arg("export")
        .args(options)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stderr.take().unwrap()).read_line(&mut line).unwrap();
    let rest = line.split_once("metrics on ").unwrap_or_else(|| panic!("{line}")).1;
    let address = rest.split(',').next().unwrap().to_owned();
    (Running(child), address)
}

/// The host and port of an exporter's address.
pub(super) fn target(address: &str) -> String {
    address.strip_prefix("http://").unwrap().strip_suffix("/metrics").unwrap().to_owned()
}

/// Its page of metrics.
pub(super) fn get(address: &str) -> String {
    asked(target(address), "/metrics")
}

/// What the exporter that listens there answers to a path.
pub(super) fn asked(listener: impl ToSocketAddrs, path: &str) -> String {
    let mut stream = TcpStream::connect(listener).unwrap();
    stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: h\r\n\r\n").as_bytes()).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

#[test]
fn a_scraper_sees_counters_that_grow_and_a_signal_ends_it() {
    let (mut running, address) = start("127.0.0.1:0");
    let deadline = Instant::now() + Duration::from_secs(60);
    let mut seen: Vec<f64> = Vec::new();
    while seen.len() < 3 {
        assert!(Instant::now() < deadline, "{seen:?}");
        let text = get(&address);
        if let Some((_, page)) =
            text.strip_prefix("HTTP/1.1 200 OK").and_then(|t| t.split_once("\r\n\r\n"))
        {
            let window = value(page, "rxpath_window_seconds_total").unwrap();
            if seen.last().is_none_or(|last| window > *last) {
                seen.push(window);
            }
        } else {
            assert!(text.starts_with("HTTP/1.1 503"), "{text}");
        }
        // why: the pace of looking; the deadline above ends it.
        std::thread::sleep(Duration::from_millis(10));
    }
    rxpath(&["export", "--no-bpf", "--listen", &target(&address)])
        .ends(2)
        .warns("--listen names another address");
    kill(Pid::from_raw(running.0.id() as i32), Signal::SIGTERM).unwrap();
    assert_eq!(running.0.wait().unwrap().code(), Some(128 + 15));
}

/// One makes windows, one answers, and one waits for signals.
#[test]
fn it_has_three_threads_however_many_connect() {
    let (running, address) = start("127.0.0.1:0");
    let connect = |_| TcpStream::connect(target(&address)).unwrap();
    let silent: Vec<TcpStream> = (0..50).map(connect).collect();
    // The connections that came before this one are taken.
    assert!(get(&address).starts_with("HTTP/1.1 "));
    let names = || {
        let tasks = fs::read_dir(format!("/proc/{}/task", running.0.id())).unwrap();
        let name =
            |task: io::Result<DirEntry>| fs::read_to_string(task.ok()?.path().join("comm")).ok();
        let mut names: Vec<String> = tasks.filter_map(name).collect();
        // A loss on this machine has one for three seconds.
        names.retain(|name| name != "rxpath-deep\n");
        names.sort();
        names
    };
    // A thread gives itself its name when it begins to run.
    let deadline = Instant::now() + Duration::from_secs(60);
    while names() != ["rxp-export\n", "rxpath\n", "rxpath-signals\n"] {
        assert!(Instant::now() < deadline, "{:?}", names());
        // why: the pace of looking; the deadline above ends it.
        std::thread::sleep(Duration::from_millis(10));
    }
    drop(silent);
}

/// The value of the only series that answers a query.
fn ask(scraper: &Scraper, query: &str) -> Option<f64> {
    scraper.answer(query)?.pointer("/data/result/0/value/1")?.as_str()?.parse().ok()
}

#[test]
fn a_real_prometheus_scrapes_counters_that_grow() {
    let Some(program) = installed("prometheus") else {
        return crate::skip::skip("prometheus", "no prometheus on this machine");
    };
    let (_running, address) = start("127.0.0.1:0");
    let mut scraper = Scraper::start(&program, &target(&address), "");
    let deadline = Instant::now() + Duration::from_secs(60);
    while ask(&scraper, "rxpath_window_seconds_total").is_none_or(|window| window < 1.0)
        || ask(&scraper, "delta(rxpath_window_seconds_total[10s])").is_none_or(|grown| grown <= 0.0)
    {
        assert!(Instant::now() < deadline, "{:?}", ask(&scraper, "up"));
        assert!(scraper.program.try_wait().unwrap().is_none(), "Prometheus ended");
        // why: the pace of looking; the deadline above ends it.
        std::thread::sleep(Duration::from_millis(100));
    }
    assert_eq!(ask(&scraper, "up"), Some(1.0));
    assert_eq!(ask(&scraper, "sum(rxpath_path_limited)"), Some(1.0), "one stage at a time");
}

#[test]
fn the_page_passes_the_checks_of_promtool() {
    let Some(program) = installed("promtool") else {
        return crate::skip::skip("prometheus", "no promtool on this machine");
    };
    let page = rxpath(&["export", "--once", "--interval", "200ms"]).out;
    let mut child = Command::new(program)
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(page.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
}

/// Hosts that start together do not end their windows together, and each keeps its own instant.
#[test]
fn the_first_window_is_longer_by_a_part_that_is_the_same_at_each_start() {
    let first = || {
        let mut child = Command::new(env!("CARGO_BIN_EXE_rxpath"))
            .args(["export", "--no-bpf", "--interval", "1000s", "--listen", "127.0.0.1:0"])
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut lines = BufReader::new(child.stderr.take().unwrap());
        let _running = Running(child);
        lines.read_line(&mut line).unwrap();
        let time =
            line.trim_end().rsplit_once("the first after ").unwrap_or_else(|| panic!("{line}"));
        time.1.strip_suffix('s').unwrap().parse::<f64>().unwrap()
    };
    let first_s = first();
    assert!(first_s > 1000.0 && first_s <= 2000.0, "{first_s}");
    assert!((first_s - first()).abs() < 1e-9, "{first_s}");
}

#[test]
fn a_page_that_others_reach_is_warned_of_once() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_rxpath"))
        .args(["export", "--no-bpf", "--interval", "100ms", "--check-every", "0s"])
        .args(["--listen", "0.0.0.0:0", "--allow-remote"])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap());
    let running = Running(child);
    let mut line = String::new();
    lines.read_line(&mut line).unwrap();
    let rest = line.split_once("metrics on ").unwrap_or_else(|| panic!("{line}")).1;
    let address = rest.split(',').next().unwrap();
    let deadline = Instant::now() + Duration::from_secs(60);
    while value(&get(address), "rxpath_window_seconds_total").is_none_or(|window| window < 0.3) {
        assert!(Instant::now() < deadline, "{address}");
        // why: the pace of looking; the deadline above ends it.
        std::thread::sleep(Duration::from_millis(10));
    }
    drop(running);
    let mut said = String::new();
    lines.read_to_string(&mut said).unwrap();
    let warnings: Vec<&str> = said.lines().filter(|line| line.contains("TLS")).collect();
    assert!(warnings.len() == 1 && warnings[0].contains(&target(address)), "{said}");
}

#[test]
fn a_socket_file_goes_with_its_exporter() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("export.sock");
    let (mut running, _) = start(&format!("unix:{}", path.display()));
    assert!(path.exists());
    kill(Pid::from_raw(running.0.id() as i32), Signal::SIGTERM).unwrap();
    running.0.wait().unwrap();
    assert!(!path.exists());
}

#[test]
fn what_cannot_be_exported_is_refused_in_a_line() {
    let no_dir = Path::new("/no/such/dir/rxpath.prom").to_str().unwrap();
    for (words, status, part) in [
        (vec!["--listen", "0.0.0.0:0"], 2, "--allow-remote"),
        (vec!["--listen", "[::]:0"], 2, "--allow-remote"),
        (vec!["--listen", "localhost"], 2, "127.0.0.1:10077"),
        (vec!["--listen", "unix:"], 2, "needs a path"),
        (vec!["--interval", "1ms"], 2, "--interval 1ms"),
        (vec!["--once", "--listen", "127.0.0.1:0"], 2, "cannot be used with"),
        (vec!["--listen", "fd:2"], 2, "fd:3"),
        (vec!["--budget", "0"], 2, "such as 1%"),
        (vec!["--top", "32"], 2, "1 to 22: more do not fit"),
        (vec!["--netns", "/no/such/namespace"], 2, "/no/such/namespace"),
        (vec!["--allow-remote"], 2, "--listen"),
        (vec!["--once", "--no-bpf", "--interval", "100ms", "--textfile", no_dir], 2, no_dir),
    ] {
        let all: Vec<&str> = ["export"].into_iter().chain(words).collect();
        let output = rxpath(&all).ends(status).warns(part);
        assert!(output.err.trim_end().lines().count() <= 3, "{output:?}");
    }
}
