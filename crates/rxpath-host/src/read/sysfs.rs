//! What the files below `/sys` say of network devices.

pub mod device;
pub mod irq;
