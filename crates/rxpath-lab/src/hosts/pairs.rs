//! Which sender sends to which receivers: who needs to know that asks this.

/// The pairs of a sender and a receiver, each by its place among the hosts of its side. They are numbered from 0, those of the
/// first sender first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostPairs {
    /// For each sender its receivers, in their order.
    of_senders: Vec<Vec<usize>>,
    /// Receivers of all.
    receivers: usize,
}

impl HostPairs {
    /// Those of so many senders and receivers that are paired.
    pub fn of(senders: usize, receivers: usize, are_paired: impl Fn(usize, usize) -> bool) -> Self {
        let of_sender = |sender: usize| -> Vec<usize> {
            (0..receivers).filter(|receiver| are_paired(sender, *receiver)).collect()
        };
        Self { of_senders: (0..senders).map(of_sender).collect(), receivers }
    }

    /// Each of so many senders with each of so many receivers.
    pub fn all(senders: usize, receivers: usize) -> Self {
        Self::of(senders, receivers, |_, _| true)
    }

    /// Each pair, in the order of the numbers.
    pub fn each(&self) -> impl Iterator<Item = (usize, usize)> {
        let senders = self.of_senders.iter().enumerate();
        senders.flat_map(|(sender, all)| all.iter().map(move |receiver| (sender, *receiver)))
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.of_senders.iter().map(Vec::len).sum()
    }

    /// How many hosts the sides have: senders, receivers.
    pub fn hosts(&self) -> [usize; 2] {
        [self.of_senders.len(), self.receivers]
    }

    /// Whether each sender sends to each receiver.
    pub fn are_all(&self) -> bool {
        self.count() == self.of_senders.len() * self.receivers
    }

    /// To whom a sender sends.
    pub fn receivers_of(&self, sender: usize) -> &[usize] {
        self.of_senders.get(sender).map(Vec::as_slice).unwrap_or_default()
    }

    /// Who sends to a receiver.
    pub fn senders_of(&self, receiver: usize) -> Vec<usize> {
        self.each().filter(|(_, to)| *to == receiver).map(|(sender, _)| sender).collect()
    }

    /// The place of a receiver among those of a sender.
    pub fn place(&self, sender: usize, receiver: usize) -> Option<usize> {
        self.receivers_of(sender).iter().position(|own| *own == receiver)
    }

    /// The number of a sender's first pair, and that behind its last one.
    pub fn numbers_of(&self, sender: usize) -> [usize; 2] {
        let first: usize = self.of_senders.iter().take(sender).map(Vec::len).sum();
        [first, first + self.receivers_of(sender).len()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_sender_has_each_receiver_unless_they_are_chosen() {
        let all = HostPairs::all(2, 3);
        assert_eq!((all.count(), all.hosts(), all.are_all()), (6, [2, 3], true));
        assert_eq!(all.receivers_of(1), [0, 1, 2]);
        assert_eq!(all.senders_of(2), [0, 1]);
        assert_eq!(all.numbers_of(1), [3, 6]);
        assert!(HostPairs::all(1, 1).are_all());
    }

    #[test]
    fn chosen_pairs_are_numbered_by_sender() {
        let pairs = HostPairs::of(3, 2, |sender, receiver| sender == 1 || sender == 2 * receiver);
        let each: Vec<(usize, usize)> = pairs.each().collect();
        assert_eq!(each, [(0, 0), (1, 0), (1, 1), (2, 1)]);
        assert!(!pairs.are_all());
        assert_eq!(pairs.count(), 4);
        let numbers = [0, 1, 2].map(|sender| pairs.numbers_of(sender));
        assert_eq!(numbers, [[0, 1], [1, 3], [3, 4]]);
        assert_eq!([0, 1].map(|receiver| pairs.senders_of(receiver)), [[0, 1], [1, 2]]);
        assert_eq!(
            (pairs.place(1, 1), pairs.place(2, 1), pairs.place(2, 0)),
            (Some(1), Some(0), None)
        );
        assert_eq!(pairs.receivers_of(3), [] as [usize; 0], "there are three senders");
    }
}
