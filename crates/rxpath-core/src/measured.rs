//! What BPF programs measure, as commands print it and runs keep it. Fields that an older run does not have are empty.
//!
//! A run directory may be published: no field names a machine or an address. What only a command knows, and what only a run
//! knows, is in a struct around the row.

mod calibration;
mod cost;
mod cpu_breakdown;
mod irq;
mod napi;
mod stage;
mod taken;
mod task_time;
mod victim_time;

pub use calibration::{CalibrationKind, CalibrationPoint, IrqCalibration};
pub use cost::{ProbeCost, ProgramCost};
pub use cpu_breakdown::CpuBreakdown;
pub use irq::IrqLine;
pub use napi::NapiPolls;
pub use stage::{Outlier, StageName, StageTimes};
pub use taken::TakenBy;
pub use task_time::{TaskKind, TaskTime};
pub use victim_time::VictimTime;
