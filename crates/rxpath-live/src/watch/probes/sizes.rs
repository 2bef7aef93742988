//! Packets of polls by device, and what they sum up to.

use std::collections::BTreeMap;

use rxpath_core::measured::NapiPolls;
use rxpath_record::watch::PollSizes;

/// Devices that are kept apart; more are counted together. Nobody may ask for them, and devices of containers come and go.
const DEVICES: usize = 1000;
/// Those together.
const OTHER: &str = "other";

/// The sums since they were taken.
#[derive(Debug, Default)]
pub(super) struct Sizes {
    sums: BTreeMap<String, PollSizes>,
}

impl Sizes {
    /// Adds the polls of a sample.
    pub(super) fn add(&mut self, napis: &[NapiPolls]) {
        for napi in napis {
            let has_room = self.sums.len() < DEVICES || self.sums.contains_key(&napi.dev);
            let device = if has_room { napi.dev.as_str() } else { OTHER };
            let sum = self.sums.entry(device.to_owned()).or_default();
            sum.packets_per_poll.add(&napi.packets_per_poll);
            sum.packets += napi.packets;
        }
    }

    /// What was counted since they were asked for last.
    pub(super) fn take(&mut self) -> BTreeMap<String, PollSizes> {
        std::mem::take(&mut self.sums)
    }
}

#[cfg(test)]
mod tests {
    use rxpath_core::Log2;

    use super::*;

    #[test]
    fn polls_of_a_device_are_counted_once_and_their_number_of_devices_is_bounded() {
        let napi = |device: String| NapiPolls {
            dev: device,
            packets: 3,
            packets_per_poll: Log2::of(&[0, 1, 1]),
            ..NapiPolls::default()
        };
        let mut sizes = Sizes::default();
        for _ in 0..2 {
            sizes.add(&[napi("eth0".into()), napi("eth0".into())]);
        }
        let taken = sizes.take();
        assert_eq!((taken.len(), taken["eth0"].packets), (1, 12));
        assert_eq!(taken["eth0"].packets_per_poll, Log2::of(&[0, 4, 4]));
        assert!(sizes.take().is_empty());
        let many: Vec<NapiPolls> = (0..1500).map(|n| napi(format!("veth{n}"))).collect();
        sizes.add(&many);
        let taken = sizes.take();
        assert_eq!((taken.len(), taken[OTHER].packets), (DEVICES + 1, 3 * 500));
    }
}
