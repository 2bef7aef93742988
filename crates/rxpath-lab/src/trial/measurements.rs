//! A trial leaves its measurements: of both sides together, and of each program.

use rxpath_core::Warning;
use rxpath_host::read::netlink::netfilter::Conntrack;
use rxpath_record::counters::Snapshot;
use rxpath_record::evidence::Probed;
use rxpath_record::manifest::FlowCpu;
use rxpath_record::samples::TrialSamples;

use crate::testbed::hosts::delay::DelayError;
use crate::testbed::window::Windowed;
use crate::trial::observers::Observed;
use crate::trial::side::SideMeasurements;
use crate::trial::window::{self, Span};

/// Everything a trial leaves behind; nothing is judged yet.
#[derive(Default)]
pub struct Measurements {
    /// Quiescent counters before and after.
    pub counters: [Snapshot; 2],
    /// The hosts and the counters over the window.
    pub window: Windowed,
    /// What still waited in the sender's queueing discipline then.
    pub queued_bytes: u64,
    /// CPU of each flow's receive softirq, where it can be found out.
    pub flow_cpus: Vec<FlowCpu>,
    /// What was observed in addition to the counters.
    pub observed: Observed,
    /// Hooks in front of IP that the trial's programs attached: the testbed does not know of them.
    pub hooks: Vec<String>,
    /// Of each receiver of datagrams, where they are foreign programs: what each of its sockets dropped; `None` if they were
    /// closed when the load had ended.
    pub foreign_drops: Vec<Option<Vec<u64>>>,
    /// Connection tracking before and after, with quiescent counters, where the testbed has rules.
    pub conntrack: Option<[Conntrack; 2]>,
    /// What tracepoints measured in the window, when they were watched.
    pub probed: Option<Probed>,
    /// How far one-way delays are wrong.
    pub delay_error: DelayError,
    /// Queues over time, when they were sampled.
    pub samples: Option<TrialSamples>,
    /// The sending side.
    pub load: SideMeasurements,
    /// The receiving side.
    pub serve: SideMeasurements,
    /// Warnings of the trial and warnings of the programs.
    pub warnings: Vec<Warning>,
}

impl Measurements {
    /// What a program did in the window; `None` when fewer than two of its lines lie there.
    pub fn span(&self, program: &SideMeasurements) -> Option<Span> {
        window::span(&program.lines, self.window.between.window_ns)
    }
}
