//! The probe of a trial whose settings may have changed the path.

use super::words::Ends;
use super::{Path, ProbedPort};
use crate::endpoint::wire::DeviceFacts;
use crate::error::LabError;
use crate::hosts::Hosts;
use crate::hosts::connect::joined;
use crate::scenario::spec::Variant;

impl Hosts {
    /// Probes the path of a variant with datagrams of its size; `now` are the devices of the senders, then of the receivers.
    /// **Cost** some round trips and 20 ms for each address of a receiver, in rounds of pairs.
    ///
    /// # Errors
    /// [`LabError::CannotRun`] with what is wrong with the path.
    pub(in crate::hosts) fn probe_again(
        &self,
        variant: &Variant,
        now: &[DeviceFacts],
    ) -> Result<(), LabError> {
        if variant.serve.own().is_some_and(|own| own.absent) {
            return Ok(());
        }
        let port = ProbedPort { tcp: variant.protocol().over_tcp(), port: variant.serve.port() };
        let size = variant.load.datagrams().map(|datagrams| datagrams.size_bytes);
        let senders = self.senders.len();
        let one = |(at, to_at): (usize, usize)| -> Result<(), LabError> {
            let (sender, receiver) = (&self.senders[at], &self.receivers[to_at]);
            let mtus = [at, senders + to_at].map(|device| now.get(device).map(|it| it.mtu_bytes));
            for to in &receiver.addresses {
                let mut path = Path::new((sender, receiver), (*to, port), self.hops);
                path.ends.now(mtus, size);
                path.check()?;
            }
            Ok(())
        };
        self.in_rounds(one).try_for_each(|(_, found)| joined(found))
    }
}

impl Ends<'_> {
    /// The MTUs as they are now, and the payload of the datagrams in use, of which the sender makes fragments if its MTU is less.
    fn now(&mut self, mtus: [Option<u32>; 2], size: Option<u32>) {
        let [first, second] = self.mtus;
        self.mtus = [mtus[0].unwrap_or(first), mtus[1].unwrap_or(second)];
        self.payload = size.map(|size| size.min(self.mtus[0].saturating_sub(self.headers())));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn datagrams_in_use_are_probed_although_the_receiver_takes_less_and_no_larger_ones() {
        let mut ends = Ends {
            sender: "gen1",
            receiver: "sut",
            devices: ["a", "b"],
            mtus: [1_500, 1_500],
            payload: None,
            port: ProbedPort { tcp: false, port: 4321 },
            to: "192.0.2.10".parse().unwrap(),
            hops: 1,
        };
        let mut sizes = |mtus: [u32; 2], size: Option<u32>| {
            ends.now(mtus.map(Some), size);
            ends.sizes()
        };
        assert_eq!(sizes([1_500, 600], Some(1_000)), [64, 1_000]);
        assert_eq!(sizes([1_500, 600], Some(32)), [64]);
        // The sender's fragments.
        assert_eq!(sizes([600, 1_500], Some(1_000)), [64, 572]);
        // A third-party program may send all sizes.
        assert_eq!(sizes([9_000, 9_000], None), [64, 8_972]);
    }
}
