//! The published token bucket of a ring, run over measured arrivals and releases.
//!
//! **Source** Wu, Crawford, Bowden, Computer Communications 30 (2007), equations (1) and (3): a packet takes a ready
//! descriptor or is lost, and a descriptor is ready again when its packet was taken out.
//! **Assumptions** inside one step arrivals and releases are spread evenly, so that losses of a step are those that
//! its sums leave no room for: the fewest that are possible.

/// A ring of descriptors.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TokenBucket {
    descriptors: f64,
    ready: f64,
    lost: f64,
}

impl TokenBucket {
    /// All descriptors are ready.
    pub fn full(descriptors: u64) -> Self {
        Self { descriptors: descriptors as f64, ready: descriptors as f64, lost: 0.0 }
    }

    /// The same, with packets in the ring.
    pub fn holding(descriptors: u64, packets: u64) -> Self {
        Self { ready: (descriptors - packets.min(descriptors)) as f64, ..Self::full(descriptors) }
    }

    /// So many packets arrived, and so many were taken out.
    pub fn step(&mut self, arrived_packets: f64, released_packets: f64) {
        let ready = self.ready + released_packets - arrived_packets;
        self.lost += (-ready).max(0.0);
        self.ready = ready.clamp(0.0, self.descriptors);
    }

    /// Packets in the ring.
    pub fn occupancy_packets(&self) -> f64 {
        self.descriptors - self.ready
    }

    /// Packets that found no ready descriptor so far.
    pub fn lost_packets(&self) -> f64 {
        self.lost
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_arrives_in_a_stall_and_does_not_fit_is_lost() {
        let mut ring = TokenBucket::full(256);
        for _ in 0..20 {
            ring.step(20.0, 0.0);
        }
        assert_eq!((ring.occupancy_packets(), ring.lost_packets()), (256.0, 144.0));
        ring.step(20.0, 276.0);
        assert_eq!((ring.occupancy_packets(), ring.lost_packets()), (0.0, 144.0));
        let full = TokenBucket::holding(256, 300);
        assert_eq!((full.occupancy_packets(), full.lost_packets()), (256.0, 0.0));
    }

    proptest! {
        #[test]
        fn every_packet_is_taken_out_lost_or_in_the_ring(
            steps in prop::collection::vec((0u32..500, 0.0f64..1.0), 0..100),
        ) {
            let mut ring = TokenBucket::full(256);
            let (mut arrived, mut released) = (0.0, 0.0);
            for (packets, part) in steps {
                // A descriptor is refilled only after use.
                let out = part * (ring.occupancy_packets() + f64::from(packets).min(256.0 - ring.occupancy_packets()));
                ring.step(f64::from(packets), out);
                arrived += f64::from(packets);
                released += out;
            }
            let rest = arrived - released - ring.lost_packets() - ring.occupancy_packets();
            prop_assert!(rest.abs() < 1e-6 * (1.0 + arrived), "{rest}");
        }
    }
}
