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

/// How threads do their I/O.
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
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
