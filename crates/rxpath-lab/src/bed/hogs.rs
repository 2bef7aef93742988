//! Busy loops on chosen CPUs for as long as a bed stands: background load that is there on purpose.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use rxpath_core::CpuList;
use rxpath_host::thread;

use crate::error::LabError;

/// One spinning thread per CPU; dropping it ends them.
#[derive(Default)]
pub struct Hogs {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Hogs {
    /// Starts one per listed CPU.
    pub fn start(cpus: &CpuList) -> Result<Self, LabError> {
        thread::check_cpus(cpus)?;
        let stop = Arc::new(AtomicBool::new(false));
        let one = |cpu: &u32| {
            let (cpu, stop) = (*cpu, Arc::clone(&stop));
            std::thread::spawn(move || {
                if thread::pin(cpu).is_ok() {
                    while !stop.load(Ordering::Relaxed) {
                        std::hint::spin_loop();
                    }
                }
            })
        };
        let threads = cpus.as_slice().iter().map(one).collect();
        Ok(Self { stop, threads })
    }
}

impl Drop for Hogs {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}
