//! How many rows the maps of a probe have room for: by the CPUs that are there, because the kernel allocates all of them at
//! once.

use rxpath_host::{HostError, Root};

/// Rows for each CPU, and at most.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Room {
    pub each_cpu: u32,
    pub most: u32,
}

impl Room {
    /// For this many CPUs.
    pub fn of(self, cpus: usize) -> u32 {
        let cpus = u32::try_from(cpus.max(1)).unwrap_or(u32::MAX);
        self.each_cpu.saturating_mul(cpus).min(self.most)
    }

    /// For the CPUs that may be there before the next boot.
    pub fn here(self) -> Result<u32, HostError> {
        Ok(self.of(Root::host().cpus("/sys/devices/system/cpu/possible")?.0.len()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_grows_with_the_cpus_up_to_a_bound() {
        let room = Room { each_cpu: 1024, most: 8192 };
        assert_eq!([0, 1, 2, 8, 4096].map(|cpus| room.of(cpus)), [1024, 1024, 2048, 8192, 8192]);
        assert_eq!(room.of(usize::MAX), 8192);
    }
}
