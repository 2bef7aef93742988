//! What every rule needs: the evidence in view, the claim, lines of evidence, numbers in words.

pub use rxpath_record::evidence::SoftirqPlace;
pub use rxpath_record::ledger::Place;
pub use rxpath_record::verdict::{Confidence, EvidenceLine, Stage};

pub use crate::claim::Claim;
pub use crate::lines::{
    counted_by, cpu_and_others, cpu_use, drop_line, drops, lead, line, lossless, named, others_on,
    queues, rates, reader_cost, services, softirq_beside_reader, traffic, whose,
};
pub use crate::part::Part;
pub use crate::remedy::Remedy;
pub use crate::thresholds::*;
pub use crate::view::{SideThreads, ThreadSaturation, View, sound_rate, sound_ratio};
pub use crate::wording::{count, cpus, datagrams, percent, rate, size_option, span, threads};
