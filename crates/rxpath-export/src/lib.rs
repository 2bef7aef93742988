//! Prometheus metrics from the frames of the live receive path: counters that only rise, in a bounded number of series.
//!
//! The crate reads no host. Frames and the answer of `check` come in; the page of metrics goes out, to a scraper or into
//! a file.

mod agent;
pub mod deep;
mod dropped;
mod failures;
pub mod families;
mod findings;
mod frame;
pub mod governor;
mod histogram;
pub mod listen;
pub mod phase;
pub mod recheck;
mod request;
pub mod reserved;
pub mod shed;
mod socket_file;
pub mod sole;
mod taken;
pub mod textfile;
mod top;
pub mod window;

pub use families::{ExportedMetric, Families, METRICS};
pub use findings::ExportedCheck;
pub use request::{HttpResponse, RenderedPages, answer};

#[cfg(test)]
mod tests;
