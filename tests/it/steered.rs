//! A workload that a test steers by orders and reads line by line.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

const RXPATH: &str = env!("CARGO_BIN_EXE_rxpath");

/// A workload under `--control`.
pub struct Steered {
    pub child: Child,
    pub orders: ChildStdin,
    pub lines: BufReader<ChildStdout>,
}

impl Steered {
    pub fn start(args: &[&str]) -> Self {
        let mut child = Command::new(RXPATH)
            .args(args)
            .arg("--control")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let orders = child.stdin.take().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        Self { child, orders, lines }
    }

    pub fn order(&mut self, order: &str) {
        writeln!(self.orders, "{order}").unwrap();
    }

    /// The next line.
    pub fn line(&mut self) -> Value {
        let mut line = String::new();
        assert!(self.lines.read_line(&mut line).unwrap() > 0, "no line more");
        serde_json::from_str(&line).unwrap()
    }

    /// Reads on to the next line of this type.
    pub fn next(&mut self, kind: &str) -> Value {
        loop {
            let mut line = String::new();
            assert!(self.lines.read_line(&mut line).unwrap() > 0, "no line of type {kind}");
            let value: Value = serde_json::from_str(&line).unwrap();
            if value["type"] == kind {
                return value;
            }
        }
    }

    /// Reads on to the next warning of this code.
    pub fn warning(&mut self, code: &str) -> Value {
        loop {
            let warning = self.next("warning");
            if warning["code"] == code {
                return warning;
            }
        }
    }

    /// Reads intervals until one of them fits.
    pub fn until(&mut self, fits: impl Fn(&Value) -> bool) -> Value {
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            let interval = self.next("interval");
            if fits(&interval) {
                return interval;
            }
            assert!(Instant::now() < deadline, "last: {interval}");
        }
    }

    pub fn signal(&self, signal: nix::sys::signal::Signal) {
        let pid = nix::unistd::Pid::from_raw(self.child.id() as i32);
        nix::sys::signal::kill(pid, signal).unwrap();
    }

    /// Ends it and gives its result.
    pub fn stop(mut self) -> Value {
        self.order("stop");
        let result = self.next("result");
        self.order("close");
        assert_eq!(self.child.wait().unwrap().code(), Some(0));
        result
    }
}
