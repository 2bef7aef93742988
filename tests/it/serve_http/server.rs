//! A server under `--control`.

use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::client::Client;

pub const RXPATH: &str = env!("CARGO_BIN_EXE_rxpath");

pub struct Server {
    child: Child,
    orders: ChildStdin,
    lines: BufReader<ChildStdout>,
    pub addr: SocketAddr,
    pub settings: Value,
}

impl Server {
    pub fn start(args: &[&str]) -> Self {
        Self::start_with_descriptors(args, None)
    }

    /// With a hard limit of descriptors.
    pub fn start_with_descriptors(args: &[&str], limit: Option<u64>) -> Self {
        let mut command = Command::new(RXPATH);
        command.args(["serve", "http", "127.0.0.1:0", "--control"]).args(args);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        if let Some(limit) = limit {
            let set = move || {
                use nix::sys::resource::{Resource, setrlimit};
                setrlimit(Resource::RLIMIT_NOFILE, limit, limit).map_err(Into::into)
            };
            // SAFETY: setrlimit is async-signal-safe, and nothing else happens between fork and exec.
            unsafe { command.pre_exec(set) };
        }
        let mut child = command.spawn().unwrap();
        let orders = child.stdin.take().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let mut server = Self { child, orders, lines, addr: any, settings: Value::Null };
        server.settings = server.next("settings");
        server.addr = server.settings["addr"].as_str().unwrap().parse().unwrap();
        server.next("ready");
        server
    }

    pub fn connect(&self) -> Client {
        Client::connect(self.addr)
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn order(&mut self, order: &str) {
        writeln!(self.orders, "{order}").unwrap();
    }

    /// Reads on to the next line of this type.
    pub fn next(&mut self, kind: &str) -> Value {
        self.next_where(kind, |_| true)
    }

    /// Lines of `--interval` keep coming, so that a wait for one of them ends in any case.
    pub fn next_where(&mut self, kind: &str, is_it: impl Fn(&Value) -> bool) -> Value {
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            assert!(Instant::now() < deadline, "no such line of type {kind} in time");
            let mut line = String::new();
            assert!(self.lines.read_line(&mut line).unwrap() > 0, "no such line of type {kind}");
            let value: Value = serde_json::from_str(&line).unwrap();
            if value["type"] == kind && is_it(&value) {
                return value;
            }
        }
    }

    /// Stops it; gives the result.
    pub fn stop(mut self) -> Value {
        self.order("stop");
        self.next("result")
    }

    pub fn signal(&self, signal: nix::sys::signal::Signal) {
        nix::sys::signal::kill(nix::unistd::Pid::from_raw(self.child.id() as i32), signal).unwrap();
    }

    pub fn wait(&mut self) -> Option<i32> {
        self.child.wait().unwrap().code()
    }

    /// CPU time that it used, in ticks.
    pub fn cpu_ticks(&self) -> u64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.pid())).unwrap();
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
        fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
    }

    /// Most memory it had, in KiB.
    pub fn peak_kib(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
