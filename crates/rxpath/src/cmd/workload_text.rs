//! What the texts of several workloads share.

use rxpath_core::{CpuList, Nanos};
use rxpath_load::pool::Threads;
use rxpath_load::udp::serve::options::ReaderStall;
use rxpath_load::udp::xdp::XdpSettings;

use crate::cmd::values::value_name;

/// `2, on CPUs 0,1`.
pub fn placed(threads: &Threads) -> String {
    if threads.cpus.is_empty() {
        return format!("{}, not pinned", threads.count);
    }
    format!("{}, on CPU {}", threads.count, CpuList(threads.cpus.clone()))
}

/// A stalling reader, for people.
pub fn stalls(stall: ReaderStall) -> String {
    format!("sleeps {} every {}", Nanos(stall.sleep_ns), Nanos(stall.every_ns))
}

/// What is in force, for people.
pub fn xdp_text(settings: &XdpSettings) -> String {
    let queues: Vec<String> = settings.queues.iter().map(ToString::to_string).collect();
    format!(
        "{}, device {}, queue {}, rings of {} entries, {} frames of {} bytes",
        value_name(&settings.mode),
        settings.device,
        queues.join(","),
        settings.ring_entries,
        settings.frames_count,
        settings.frame_bytes
    )
}
