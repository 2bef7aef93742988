//! The arguments of a role: `name=value` words.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::str::FromStr;
use std::time::Duration;

use nix::sched::{CpuSet, sched_setaffinity};
use nix::unistd::Pid;

pub struct Words(BTreeMap<String, String>);

impl Words {
    pub fn of(words: &[String]) -> Self {
        let pair = |word: &String| {
            let (name, value) = word.split_once('=').unwrap_or((word, "1"));
            (name.to_owned(), value.to_owned())
        };
        Self(words.iter().map(pair).collect())
    }

    pub fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    pub fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    pub fn get<T: FromStr<Err: Display>>(&self, name: &str, otherwise: T) -> T {
        self.text(name).map_or(otherwise, |text| {
            text.parse().unwrap_or_else(|error| panic!("{name}={text}: {error}"))
        })
    }

    pub fn micros(&self, name: &str) -> Duration {
        Duration::from_micros(self.get(name, 0))
    }

    pub fn millis(&self, name: &str) -> Duration {
        Duration::from_millis(self.get(name, 0))
    }

    /// Keeps the calling thread on `cpu=N`, or on this one.
    pub fn pin(&self, otherwise: usize) {
        if self.text("cpu") == Some("any") {
            return;
        }
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        let mut set = CpuSet::new();
        set.set(self.get("cpu", otherwise) % cpus).unwrap();
        sched_setaffinity(Pid::from_raw(0), &set).unwrap();
    }
}
