//! What the kernel said when it dropped packets of a trial: the tracepoint, in addition to the counters.

use rxpath_bpf::Probe;
use rxpath_bpf::drops::Drops;
use rxpath_bpf::filter::Filter;
use rxpath_core::Warning;
use rxpath_core::number::grouped;
use rxpath_host::HostError;
use rxpath_record::ledger::DropReason;

use super::sides::Sides;

/// Starts to watch every drop of the machine.
///
/// **Errors** `Denied` and `Unsupported` where BPF can't run.
pub fn start() -> Result<Drops, HostError> {
    Drops::start(&Filter::default())
}

/// Drops in the sides' namespaces, the most packets first. That some of them were lost is a warning.
pub fn read(
    drops: &Drops,
    sides: Sides<'_>,
    warnings: &mut Vec<Warning>,
) -> Result<Vec<DropReason>, HostError> {
    let found = drops.read()?.into_iter().filter_map(|drop| {
        let side = sides(drop.netns)?;
        Some(DropReason {
            side: side.to_string(),
            reason: drop.reason,
            place: drop.place,
            device: drop.dev.unwrap_or_default(),
            port: drop.port,
            packets: drop.packets,
        })
    });
    let lost = drops.lost()?;
    let text = format!(
        "{} drops found no room in the observer's table: reasons are counted too small",
        grouped(lost)
    );
    warnings.extend((lost > 0).then(|| Warning::new("reasons-lost", text)));
    Ok(found.collect())
}
