//! A running `rxpath export` and its page, for tests.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use crate::bed::until;

/// There once a window has probes.
const SOFTIRQS: &str = "rxpath_softirq_cpu_seconds_total{vector=\"net_rx\"}";

/// For a quick start and quick windows: nothing to calibrate, and probes without pauses.
pub const QUICK: [&str; 4] = ["--irq-entry", "5us", "--budget", "100%"];

/// An exporter that runs; killed when it is dropped.
pub struct Running {
    pub child: Child,
    target: String,
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Running {
    /// Starts it as a user does, by this command, whose further words are the exporter's.
    pub fn start(mut command: Command) -> Self {
        command.arg("export");
        Self::of(command)
    }

    /// The same for a test of what neither the budget nor the calibration decides.
    pub fn quick() -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rxpath"));
        command.arg("export").args(QUICK);
        Self::of(command)
    }

    pub fn of(command: Command) -> Self {
        let (running, told) = Self::told(command);
        assert!(told.is_empty(), "{told}");
        running
    }

    /// And what it says before its address.
    pub fn told(mut command: Command) -> (Self, String) {
        command.args(["--interval", "200ms"]);
        if !command.get_args().any(|word| word == "--check-every") {
            command.args(["--check-every", "0s"]);
        }
        let command = command.args(["--listen", "127.0.0.1:0"]).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (mut told, mut line) = (String::new(), String::new());
        let mut lines = BufReader::new(child.stderr.take().unwrap());
        let target = loop {
            line.clear();
            assert!(lines.read_line(&mut line).unwrap() > 0, "it ended: {told}");
            if let Some((_, rest)) = line.split_once("http://") {
                break rest.split_once('/').unwrap().0.to_owned();
            }
            told += &line;
        };
        (Self { child, target }, told)
    }

    /// Its host and port.
    pub fn target(&self) -> &str {
        &self.target
    }

    pub fn page(&self) -> String {
        let mut stream = TcpStream::connect(&self.target).unwrap();
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: h\r\n\r\n").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    }

    /// The value of a series, once there is one.
    pub fn value(&self, series: &str) -> Option<f64> {
        let page = self.page();
        page.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' ')?.parse().ok())
    }

    /// Windows go on, with the probes counting in the new ones.
    pub fn goes_on(&self) {
        let counted = || self.value(SOFTIRQS);
        until("a window with probes", || counted().is_some());
        let first = counted();
        until("softirqs are counted in later windows", || counted() > first);
        assert_eq!(self.value("rxpath_probe_up"), Some(1.0), "{}", self.page());
    }

    /// Each set of capabilities of each thread, but the bounding set, which gives nothing.
    pub fn capabilities(&self) -> BTreeSet<String> {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.child.id())).unwrap();
        let sets = tasks.flat_map(|task| {
            let status = fs::read_to_string(task.unwrap().path().join("status")).unwrap();
            let own = status.lines().filter(|line| {
                ["CapInh", "CapPrm", "CapEff", "CapAmb"].iter().any(|set| line.starts_with(set))
            });
            own.map(str::to_owned).collect::<Vec<_>>()
        });
        sets.collect()
    }
}
