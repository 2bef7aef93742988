//! What a claim may rest on, and what may be missing.

/// Kinds of evidence that a claim may rest on; if one is incomplete, the claim is less certain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Counters and the ledger closing.
    Ledger,
    /// A window long enough to have rates and shares.
    Window,
    /// CPU time of the workload's CPUs.
    Cpus,
    /// Run and wait time of the sending threads.
    Senders,
    /// Run and wait time of the receiving threads.
    Readers,
    /// Memory and drops per socket.
    Sockets,
    /// Every place at which something can be lost was read.
    Places,
}

impl Part {
    /// What a claim about CPUs of the path rests on.
    pub const PATH: &'static [Self] = &[Self::Ledger, Self::Window, Self::Cpus];
    /// What a claim about the sender rests on.
    pub const SENDING: &'static [Self] = &[Self::Ledger, Self::Window, Self::Cpus, Self::Senders];
    /// What a claim about the reader rests on.
    pub const READING: &'static [Self] =
        &[Self::Ledger, Self::Window, Self::Cpus, Self::Readers, Self::Sockets];
}
