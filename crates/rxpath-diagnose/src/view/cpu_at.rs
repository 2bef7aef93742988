//! A CPU of one of the machines that take part in a trial.

use std::fmt;

/// A CPU by its machine and its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuAt<'a> {
    /// The sender's machine; empty = the receiver's.
    pub host: &'a str,
    /// Its number.
    pub cpu: u32,
}

impl CpuAt<'_> {
    /// Its row of `/proc/stat`, as a source.
    pub fn stat(self) -> String {
        let Self { host, cpu } = self;
        if host.is_empty() {
            format!("/proc/stat cpu{cpu}")
        } else {
            format!("{host}: /proc/stat cpu{cpu}")
        }
    }
}

impl From<u32> for CpuAt<'_> {
    /// Of the receiver's machine.
    fn from(cpu: u32) -> Self {
        Self { host: "", cpu }
    }
}

/// `CPU 3`, `CPU 3 of gen1`.
impl fmt::Display for CpuAt<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CPU {}", self.cpu)?;
        if self.host.is_empty() { Ok(()) } else { write!(f, " of {}", self.host) }
    }
}
