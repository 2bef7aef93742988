//! HTTP/1.1 over TCP: a server and a load generator that measure without an HTTP library and spend little time outside
//! the kernel.

mod chunks;
pub mod load;
pub mod request;
pub mod response;
pub mod serve;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::engine::uring::Uring;

/// A length: digits only. A sign, a list and what overflows are none.
fn number(value: &[u8]) -> Option<u64> {
    let digits = value.trim_ascii();
    str::from_utf8(digits).ok().filter(|_| digits.iter().all(u8::is_ascii_digit))?.parse().ok()
}

/// How threads do their I/O.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[derive(clap::ValueEnum)]
pub enum Engine {
    /// epoll: one receive and one send call per request.
    #[default]
    Epoll,
    /// io_uring: receives stay armed, sends are batched.
    Uring,
}

impl Engine {
    /// The one that costs the least here: io_uring where this kernel has it and lets this process use it.
    pub fn of_host() -> Self {
        if Uring::is_allowed() { Self::Uring } else { Self::Epoll }
    }
}
