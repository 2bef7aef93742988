//! Descriptor rings, and packets that found no descriptor.

use std::collections::BTreeMap;

use rxpath_core::number::grouped;
use rxpath_host::read::counter::Width;
use rxpath_host::read::nic::Nic;
use rxpath_host::read::queue_map::counters;

use crate::prelude::*;

/// From this ring loss ratio on, the loss is serious.
pub(super) const MUCH_RATIO: f64 = 1e-4;

/// Counters of packets that found no descriptor or no room in the NIC (linux/if_link.h).
const LOSSES: [&str; 3] = ["rx_missed_errors", "rx_fifo_errors", "rx_over_errors"];

/// What drivers call the same, of the whole device (drivers/net/ethernet: intel/*/*_ethtool.c, mellanox/mlx5/core/
/// en_stats.c): packets that the port dropped or for which no descriptor was there. A buffer that was not there in time
/// (`rx_no_buffer_count`) is no loss yet.
const DRIVERS_LOSSES: [&str; 6] = [
    "rx_missed_errors",
    "rx_no_dma_resources",
    "rx_out_of_buffer",
    "rx_discards_phy",
    "rx_dropped.nic",
    "port.rx_dropped",
];

/// The checks of the rules of this file.
pub const CHECKS: Checks = &[
    ("nic-stats-drop-counters", Check::Nic(losses)),
    ("ring-rx", Check::Nic(ring_rx)),
    ("ring-tx", Check::Device(ring_tx)),
    ("ring-rx-buf-len", Check::Device(buf_len)),
    ("ring-tcp-data-split", Check::Device(data_split)),
];

/// Packets lost in the NIC since its driver was loaded, the received packets, and the counters in words.
pub(super) struct Lost {
    /// Packets that the NIC lost.
    pub(super) lost: Count,
    received: Count,
    pub(super) words: String,
}

impl Lost {
    /// The part of what came, for the time that counts.
    pub(super) fn ratio(&self) -> f64 {
        self.lost.ratio_of(self.lost.plus(self.received)).unwrap_or(0.0)
    }
}

/// Every counter of losses of one reading, by name.
fn counters_of(statistics: &BTreeMap<String, u64>, nic: &Nic) -> Vec<(String, u64)> {
    let kernels = LOSSES
        .iter()
        .filter_map(|name| Some(((*name).to_owned(), statistics.get(*name).copied()?)));
    kernels.chain(told_by_driver(nic)).collect()
}

/// What a NIC lost and received.
pub(super) fn lost(ask: &Ask<'_>, device: &Device) -> Result<Lost, Gap> {
    let of = |name: &str| device.sysfs.statistics.get(name).copied();
    let received = of("rx_packets").or_gap("rx_packets")?;
    // The kernel shows it for every device (net/core/net-sysfs.c): without it nothing is known of losses.
    of("rx_missed_errors").or_gap("rx_missed_errors")?;
    let later = ask.facts.later_device(device);
    let then = later.map(|later| counters_of(&later.statistics, &later.nic));
    let mut shown: Vec<(String, Count)> = counters_of(&device.sysfs.statistics, &device.nic)
        .into_iter()
        .map(|(name, first)| {
            let then = then.as_ref().and_then(|then| then.iter().find(|(known, _)| *known == name));
            let count = Count::of(Width::U64, first, then.map(|(_, count)| *count));
            (name, count)
        })
        .collect();
    shown.retain(|(_, count)| count.total > 0);
    if shown.is_empty() {
        // The kernel's three counters are 0 with many drivers: only the driver's own counters can show that nothing was
        // lost.
        (&device.nic.driver_stats).known()?;
    }
    // Drivers fill several of them from one register: the largest is the loss.
    let total = shown.iter().map(|(_, count)| count.total).max().unwrap_or(0);
    let recent = shown.iter().map(|(_, count)| count.recent).max().unwrap_or(Some(0));
    let words = shown.iter().map(|(name, count)| format!("{name} {}", grouped(count.total)));
    let then = later.and_then(|later| later.statistics.get("rx_packets").copied());
    Ok(Lost {
        lost: Count { total, recent },
        received: Count::of(Width::U64, received, then),
        words: words.collect::<Vec<_>>().join(", "),
    })
}

/// Losses under the names of the driver and of its queues; many drivers fill nothing else.
fn told_by_driver(nic: &Nic) -> Vec<(String, u64)> {
    let stats = nic.driver_stats.value().map_or(&[][..], Vec::as_slice);
    let named = stats.iter().filter(|(name, _)| DRIVERS_LOSSES.contains(&name.as_str()));
    let mut found: Vec<(String, u64)> =
        named.map(|(name, count)| (format!("the driver's {name}"), *count)).collect();
    let (_, queues) = counters::of(nic, 0);
    let dropped = queues.values().filter_map(|queue| queue.drops_total);
    found.push(("drops of its queues".into(), dropped.fold(0, u64::saturating_add)));
    found
}

fn losses(ask: &Ask<'_>, device: &Device) -> Checked {
    let it = lost(ask, device)?;
    let all = it.lost.plus(it.received).total;
    if all == 0 {
        return Answer::silent("nothing came yet");
    }
    let ratio = it.ratio();
    if ratio < RARE_RATIO {
        let [lost, all] = [it.lost.total, all].map(grouped);
        return Answer::fine(format!("{lost} of {all} packets lost in the NIC"));
    }
    let told = ask.facts.watched.tell(it.lost, "packets lost", "the driver was loaded");
    Answer::observed(format!(
        "{} next to {} received: {:.4} % of what came; {told}",
        it.words,
        grouped(it.received.total),
        ratio * 100.0
    ))
    .advice("see irq-affinity, channels-combined and ring-rx")
    .severity(if ratio >= MUCH_RATIO { Fail } else { Warn })
    .rests_on(it.lost, &ask.facts.watched)
}

fn ring_rx(ask: &Ask<'_>, device: &Device) -> Checked {
    let rx = (&device.nic.rings).known()?.rx;
    let (now, max) = (rx.now.or_gap("the ring")?, rx.max.or_gap("the largest ring")?);
    let it = lost(ask, device)?;
    let observed = format!("{now} of at most {max} descriptors");
    if now >= max {
        return Answer::fine(observed);
    }
    let set = Set::new(Knob::part(&device.name, Group::Rings, "rx"), u64::from(max));
    let is_old = it.lost.evidence() == Evidence::Old;
    if it.ratio() > RARE_RATIO && !is_old {
        return Answer::found(
            format!("{observed}, and the NIC lost packets ({})", it.words),
            format!("{max}"),
            "packets that arrive between two polls find no descriptor",
        )
        .change(set)
        .size(Loss)
        .rests_on(it.lost, &ask.facts.watched);
    }
    if ask.goal == Some(Throughput) && now < 512.min(max) {
        return Answer::found(observed, "512 or more", "it holds few packets of a burst")
            .change(Set::new(set.knob, 512.min(u64::from(max))))
            .severity(Info);
    }
    let missed = if is_old { "none was missed while rxpath watched" } else { "none was missing" };
    Answer::fine(format!("{observed}, and {missed}"))
}

fn ring_tx(_: &Ask<'_>, device: &Device) -> Checked {
    let tx = (&device.nic.rings).known()?.tx;
    let now = tx.now.or_gap("the transmit ring")?;
    Answer::recorded(match tx.max {
        Some(max) => format!("{now} of at most {max} descriptors"),
        None => format!("{now} descriptors"),
    })
}

fn buf_len(_: &Ask<'_>, device: &Device) -> Checked {
    let length = (&device.nic.rings).known()?.rx_buf_len_bytes.or_gap("rx-buf-len")?;
    Answer::recorded(format!("{length} bytes"))
}

fn data_split(_: &Ask<'_>, device: &Device) -> Checked {
    let split = (&device.nic.rings).known()?.tcp_data_split.or_gap("tcp-data-split")?;
    Answer::recorded(format!("{split:?}").to_lowercase())
}
