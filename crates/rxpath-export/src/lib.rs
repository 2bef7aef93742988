//! Prometheus metrics from the frames of the live receive path: counters that only rise, in a bounded number of series.
//!
//! The crate reads no host. Frames and the answer of `check` come in; the page of metrics goes out, to a scraper or into
//! a file.

pub mod families;
mod findings;
mod frame;
pub mod listen;
mod request;
pub mod textfile;
mod top;

pub use families::{Families, METRICS, Metric};
pub use findings::Checked;
pub use request::{Answer, answer};
