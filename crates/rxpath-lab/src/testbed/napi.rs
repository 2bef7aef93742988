//! The kernel threads of threaded NAPI: found by difference, pinned, and made weak on purpose.
//!
//! The kernel names them `napi/DEV-ID` and puts them on no list of the namespace; those that appear when threading
//! is switched on are the testbed's. **Source** net/core/dev.c, `napi_kthread_create`.

use std::collections::BTreeSet;

use rxpath_core::{CpuList, SchedClass};
use rxpath_host::Root;
use rxpath_host::read::procfs::task;
use rxpath_host::write::sched;

use super::tuned::DEVICE;
use crate::error::LabError;
use crate::scenario::spec::Lab;

/// Thread ids of all NAPI threads of devices that have the name of the lab's, of every namespace.
pub fn threads() -> BTreeSet<i32> {
    let root = Root::host();
    let prefix = format!("napi/{DEVICE}-");
    let of_device =
        |pid: &i32| task::read(&root, *pid, None).is_ok_and(|stat| stat.comm.starts_with(&prefix));
    task::processes(&root).unwrap_or_default().into_iter().filter(of_device).collect()
}

/// Places the threads that are new since `before`, and returns them.
pub fn place(before: &BTreeSet<i32>, lab: &Lab) -> Result<BTreeSet<i32>, LabError> {
    let new: BTreeSet<i32> = threads().difference(before).copied().collect();
    for tid in &new {
        if let Some(cpu) = lab.napi_cpu {
            sched::set_affinity(*tid, &CpuList(vec![cpu]))?;
        }
        if lab.napi_idle {
            sched::set_class(*tid, SchedClass::Idle)?;
        }
    }
    Ok(new)
}
