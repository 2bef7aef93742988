//! How workloads start: several threads that cannot are refused in one clear line; an order to start may have the end.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::libc;
use rxpath_host::read::clock::monotonic_ns;

use crate::forbidden::{Capability, without, without_calls};
use crate::steered::Steered;

/// Longer than any refusal takes on a busy machine.
const DEADLINE: Duration = Duration::from_secs(20);

/// Exit status and standard error of a program that must end by itself.
fn ended(mut command: Command) -> (Option<i32>, String) {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let begun = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if begun.elapsed() > DEADLINE {
            child.kill().unwrap();
            panic!("{command:?} hangs");
        }
        std::thread::yield_now();
    }
    let output = child.wait_with_output().unwrap();
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

/// Every workload with two threads; `http` and `tcp` are servers for the clients.
fn workloads<'a>(tcp: &'a str, http: &'a str) -> Vec<Vec<&'a str>> {
    let any = "127.0.0.1:0";
    vec![
        vec!["serve", "udp", any],
        vec!["serve", "tcp", any],
        vec!["serve", "http", any],
        vec!["load", "udp", tcp, "--rate", "1k"],
        vec!["load", "http", http, "-c", "2"],
        vec!["load", "tcp", "stream", tcp, "-c", "2"],
        vec!["load", "tcp", "rr", tcp, "-c", "2"],
        vec!["load", "tcp", "crr", tcp, "-c", "2"],
    ]
}

/// A steered server with its address.
fn server(protocol: &str) -> (Steered, String) {
    let mut serve = Steered::start(&["serve", protocol, "127.0.0.1:0"]);
    let addr = serve.next("settings")["addr"].as_str().unwrap().to_owned();
    serve.next("ready");
    (serve, addr)
}

/// Runs every workload after `limit` took something from it: exit 3 and one line that begins so.
fn all_refused(
    extra: &[&str],
    begins: &str,
    limit: impl for<'a> Fn(&'a mut Command) -> &'a mut Command,
) {
    let ((tcp_server, tcp), (http_server, http)) = (server("tcp"), server("http"));
    let url = format!("http://{http}/");
    for words in workloads(&tcp, &url) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rxpath"));
        command.args(&words).args(["-t", "2"]).args(extra);
        limit(&mut command);
        let (code, text) = ended(command);
        assert_eq!(code, Some(3), "{words:?}: {text}");
        assert!(text.starts_with(begins), "{words:?}: {text}");
        assert_eq!(text.lines().filter(|line| !line.starts_with("hint: ")).count(), 1, "{text}");
    }
    tcp_server.stop();
    http_server.stop();
}

#[test]
fn threads_that_may_not_be_placed_end_the_workload() {
    // The least value: any other is allowed where the tests themselves run at a lower one.
    for [option, value] in [["--nice", "-20"], ["--sched", "fifo:9"]] {
        let begins = format!("rxpath: {option} {value}: not permitted");
        all_refused(&[option, value], &begins, |command| without(Capability::SysNice, command));
    }
}

/// The number of a thread's scheduler class: field 41 of its stat file (proc(5)).
fn class(pid: u32, tid: &serde_json::Value) -> u32 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/task/{tid}/stat")).unwrap();
    let fields = stat.rsplit_once(") ").unwrap().1;
    fields.split(' ').nth(38).unwrap().parse().unwrap()
}

#[test]
fn every_thread_of_a_workload_has_the_class_that_was_asked_for() {
    let mut other = Steered::start(&["serve", "tcp", "127.0.0.1:0"]);
    let addr = other.next("settings")["addr"].as_str().unwrap().to_owned();
    other.next("ready");
    for words in [&["serve", "udp", "127.0.0.1:0"][..], &["load", "tcp", "rr", &addr, "-c", "2"]] {
        let mut workload = Steered::start(&[words, &["-t", "2", "--sched", "batch"]].concat());
        assert_eq!(workload.next("settings")["sched"], "batch", "{words:?}");
        let ready = workload.next("ready");
        let tids = ready["tids"].as_array().unwrap();
        assert_eq!(tids.len(), 2);
        for tid in tids {
            assert_eq!(class(workload.child.id(), tid), libc::SCHED_BATCH as u32, "{words:?}");
        }
        workload.stop();
    }
    other.stop();
}

#[test]
fn threads_that_cannot_be_made_end_the_workload() {
    let calls = [libc::SYS_clone, libc::SYS_clone3];
    all_refused(&[], "rxpath: start the thread rx-", |command| {
        without_calls(command, calls, libc::EAGAIN)
    });
}

/// A kernel without io_uring, or one that forbids it, is distinguished from any other trouble.
#[test]
fn without_io_uring_the_engine_is_refused() {
    let (http_server, http) = server("http");
    let url = format!("http://{http}/");
    for (threads, errno) in [("1", libc::ENOSYS), ("2", libc::ENOSYS), ("2", libc::EPERM)] {
        for words in [["serve", "http", "127.0.0.1:0"], ["load", "http", &url]] {
            let mut command = Command::new(env!("CARGO_BIN_EXE_rxpath"));
            command.args(words).args(["-t", threads, "--engine", "uring"]);
            without_calls(&mut command, [libc::SYS_io_uring_setup; 2], errno);
            let (code, text) = ended(command);
            assert_eq!(code, Some(3), "{words:?}: {text}");
            assert!(text.starts_with("rxpath: --engine uring (io_uring"), "{text}");
        }
    }
    http_server.stop();
}

/// Nobody orders it to stop: the link that is measured may carry the orders.
#[test]
fn a_load_ends_at_the_instant_of_its_order_to_start() {
    let servers = ["udp", "tcp", "http"].map(server);
    let [udp, tcp, http] = [0, 1, 2].map(|at: usize| servers[at].1.as_str());
    let url = format!("http://{http}/");
    let loads = [
        &["udp", udp, "--rate", "1k"][..],
        &["tcp", "stream", tcp],
        &["tcp", "rr", tcp],
        &["tcp", "crr", tcp],
        &["http", &url],
    ];
    for words in loads {
        let mut load = Steered::start(&[&["load"], words].concat());
        load.next("ready");
        let start_ns = monotonic_ns();
        let end_ns = start_ns + 300_000_000;
        load.order(&format!("start {start_ns} until {end_ns}"));
        load.next("result");
        assert!(monotonic_ns() >= end_ns, "{words:?}");
        let schedstat = format!("/proc/{}/schedstat", load.child.id());
        let spent_ns = || -> u64 {
            let text = std::fs::read_to_string(&schedstat).unwrap();
            text.split(' ').next().unwrap().parse().unwrap()
        };
        let before_ns = spent_ns();
        // why: waiting for an instant that is past would need a CPU for all of this time
        std::thread::sleep(Duration::from_millis(200));
        let waiting_ns = spent_ns() - before_ns;
        assert!(waiting_ns < 50_000_000, "{words:?}: {waiting_ns} ns of CPU time while it waits");
        // The order that comes too late does no harm.
        load.order("stop");
        load.order("close");
        assert_eq!(load.child.wait().unwrap().code(), Some(0), "{words:?}");
    }
    for (server, _) in servers {
        server.stop();
    }
}
