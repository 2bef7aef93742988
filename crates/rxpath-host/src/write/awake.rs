//! CPUs that stay awake while nothing runs on them.
//!
//! An idle CPU goes to sleep, and waking it takes time: microseconds from a deep C-state, and in a virtual machine up to
//! milliseconds, because a halted virtual CPU is handed to the hypervisor, which gives it back when it pleases. The guest
//! counts that time as stolen. Who measures the receive path and not the wake-up keeps the CPUs awake.

use std::fs::{File, OpenOptions};
use std::io::Write;

use crate::Root;
use crate::error::HostError;

const PATH: &str = "/dev/cpu_dma_latency";
const DRIVER: &str = "/sys/devices/system/cpu/cpuidle/current_driver";

/// Keeps all CPUs of the machine awake until it is dropped.
///
/// A request that no wake-up may take longer than 0 us, which the kernel takes back when the file is closed, however the
/// process ends.
///
/// **Source** `cpu_latency_qos_open` (kernel/power/qos.c): at 0 every cpuidle governor takes the first state, polling;
/// also `haltpoll_select` (drivers/cpuidle/governors/haltpoll.c), which virtual machines have.
/// **Cost** idle CPUs use the power of busy ones; on SMT siblings and under a turbo budget they are slower for it.
/// **Caveat** a CPU that polls is woken without an interrupt (`TIF_POLLING_NRFLAG`): what it costs to wake a sleeping
/// one is not measured then.
#[derive(Debug)]
pub struct Awake {
    _request: File,
}

impl Awake {
    /// Asks for it.
    ///
    /// # Errors
    /// [`HostError::Denied`] for others than root, [`HostError::Unsupported`] where nothing would listen: no such
    /// device, or no cpuidle driver (then idle CPUs halt whatever is asked for).
    pub fn hold() -> Result<Self, HostError> {
        let what = "keeping idle CPUs awake".to_owned();
        let driver = Root::host().text(DRIVER).unwrap_or_default();
        if matches!(driver.trim(), "" | "none") {
            let needs = format!("a cpuidle driver ({DRIVER} names none)");
            return Err(HostError::Unsupported { what, needs });
        }
        let opened = OpenOptions::new().write(true).open(PATH);
        let mut request = opened.map_err(|error| match error.kind() {
            std::io::ErrorKind::PermissionDenied => HostError::Denied {
                what: format!("write {PATH}"),
                capability: "root, who owns it".into(),
            },
            std::io::ErrorKind::NotFound => HostError::Unsupported {
                what,
                needs: format!("{PATH} (CONFIG_CPU_IDLE, and visible in this container)"),
            },
            _ => HostError::Io { op: "open", path: PATH.into(), source: error },
        })?;
        request.write_all(&0_i32.to_ne_bytes()).map_err(|source| HostError::Io {
            op: "write",
            path: PATH.into(),
            source,
        })?;
        Ok(Self { _request: request })
    }
}
