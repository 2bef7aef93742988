//! Types that every other crate shares: units, facts that may be missing, warnings, the JSON envelope, command lines, what BPF measures.
//!
//! This crate is pure. It must not read the host, the clock or the environment.

pub mod as_text;
pub mod cpu_use;
pub mod cpulist;
pub mod division;
pub mod envelope;
pub mod fact;
pub mod into_map;
pub mod log2;
pub mod measured;
pub mod moving;
pub mod named;
pub mod ntp;
pub mod number;
pub mod plain_time;
pub mod reported;
pub mod sched_class;
pub mod shell;
pub mod side;
pub mod sort_few;
pub mod toeplitz;
pub mod units;
pub mod warning;

pub use cpu_use::CpuUse;
pub use cpulist::CpuList;
pub use division::Division;
pub use envelope::Envelope;
pub use fact::Fact;
pub use into_map::IntoMap;
pub use log2::Log2;
pub use reported::ReportedTime;
pub use sched_class::SchedClass;
pub use side::PathSide;
pub use sort_few::SortFew;
pub use units::{BitRate, Bytes, ItemCount, Nanos, ParseUnitError, Rate};
pub use warning::Warning;
