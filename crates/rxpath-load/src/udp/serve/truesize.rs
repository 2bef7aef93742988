//! What kernel memory a datagram takes, learned from the first reads of a socket.
//!
//! **Source** `udp_rmem_release` (net/ipv4/udp.c): memory of read datagrams is freed late, when a quarter of the buffer
//! has accumulated or the reader's own queue is empty. So the socket's memory shows the queued datagrams only after a
//! read that left nothing.

/// Reads that are used to learn, at most: in a flood most of them take datagrams that came after the first look.
const READS: u32 = 256;

/// The memory of a datagram, once known.
#[derive(Debug)]
pub(super) struct Truesize {
    reads_left: u32,
    /// The last read left neither datagrams nor memory to be freed.
    emptied: bool,
    largest: u64,
}

impl Truesize {
    /// Nothing is known; nothing is learned where others read the socket too.
    pub(super) fn new(alone: bool) -> Self {
        Self { reads_left: if alone { READS } else { 0 }, emptied: true, largest: 0 }
    }

    /// Whether the next read is to be watched.
    #[inline]
    pub(super) fn learning(&self) -> bool {
        self.reads_left > 0
    }

    /// A read took `got` datagrams; the socket's memory was `before` bytes in front of it and `after` bytes behind it.
    ///
    /// Datagrams that come in between only make the quotient smaller, so the largest counts.
    pub(super) fn saw(&mut self, before: u64, got: usize, after: u64) {
        let got = got as u64;
        self.reads_left = self.reads_left.saturating_sub(1);
        if self.emptied && after == 0 && got > 0 && before.is_multiple_of(got) {
            self.largest = self.largest.max(before / got);
            if got == 1 {
                // It was alone, so nothing came in between.
                self.reads_left = 0;
            }
        }
        self.emptied = after == 0;
    }

    /// Bytes of one datagram; nothing when no read told.
    pub(super) fn bytes(&self) -> Option<u64> {
        (self.largest > 0).then_some(self.largest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_that_is_not_given_back_yet_is_not_the_next_datagrams() {
        let mut truesize = Truesize::new(true);
        // 65 wait and 64 are read: the memory of all of them is still booked when the last one is read alone.
        truesize.saw(65 * 832, 64, 65 * 832);
        truesize.saw(65 * 832, 1, 0);
        assert_eq!(truesize.bytes(), None);
        truesize.saw(832, 1, 0);
        truesize.saw(3 * 832, 3, 0);
        assert_eq!(truesize.bytes(), Some(832));
    }

    #[test]
    fn datagrams_that_come_meanwhile_do_not_make_it_larger() {
        let mut truesize = Truesize::new(true);
        truesize.saw(2 * 832, 2, 0);
        truesize.saw(832, 2, 0);
        truesize.saw(0, 1, 832);
        assert_eq!(truesize.bytes(), Some(832));
    }

    #[test]
    fn it_ends_and_does_not_begin_where_others_read() {
        let mut truesize = Truesize::new(true);
        for _ in 0..READS {
            assert!(truesize.learning());
            truesize.saw(832, 2, 0);
        }
        assert!(!truesize.learning() && !Truesize::new(false).learning());
    }

    #[test]
    fn a_datagram_that_was_alone_ends_it() {
        let mut truesize = Truesize::new(true);
        truesize.saw(832, 2, 0);
        // Two that were damaged.
        truesize.saw(2 * 832, 0, 0);
        assert!(truesize.learning());
        truesize.saw(832, 1, 0);
        assert!(!truesize.learning());
        assert_eq!(truesize.bytes(), Some(832));
    }
}
