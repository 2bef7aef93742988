//! The limits that can be made on purpose in a lab of two CPUs or more, one function each.
//!
//! A draw is a list of settings of a scenario's variant. Its parameters vary where the limit does not depend on them.

use rand_chacha::ChaCha8Rng;
use rxpath_record::verdict::Stage;

mod draws;

pub(super) use draws::in_the_way;

/// A limit that is made.
pub struct Case {
    /// Its name.
    pub id: &'static str,
    /// What is done.
    pub what: &'static str,
    /// The stages that say so.
    pub expected: &'static [Stage],
    /// What a host must have for it.
    pub needs: Needs,
    /// How it is drawn.
    pub(super) draw: Draw,
}

/// How a draw of a case is made.
#[derive(Clone, Copy)]
pub(super) enum Draw {
    /// Its settings.
    Plain(fn(&mut ChaCha8Rng) -> Vec<String>),
    /// What a datagram is to cost in the softirq, in ns, and the other settings. How many firewall rules make it cost that
    /// is the host's affair: the time decides what is the limit, and a rule takes 10 to 60 ns by the host.
    Timed(fn(&mut ChaCha8Rng) -> (f64, Vec<String>)),
}

impl Case {
    /// Whether its datagrams are made to cost a drawn time by firewall rules.
    pub fn is_timed(&self) -> bool {
        matches!(self.draw, Draw::Timed(_))
    }
}

/// What a case needs in addition to a lab.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// Nothing.
    Lab,
    /// BPF: its verdict rests on what tracepoints measure.
    Probes,
    /// A connection table that can be filled.
    Conntrack,
    /// BPF, and four CPUs for three readers and a sender.
    FourCpus,
}

impl std::fmt::Debug for Case {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.id)
    }
}

/// Every case, in the order of the way.
pub const CASES: &[Case] = &[
    Case {
        id: "nothing",
        what: "a rate that everything takes",
        expected: &[Stage::Nothing],
        needs: Needs::Lab,
        draw: Draw::Plain(draws::nothing),
    },
    Case {
        id: "sender",
        what: "a sender that must share its CPU and asks for more than that gives",
        expected: &[Stage::Sender, Stage::SenderOrSoftirq],
        needs: Needs::Lab,
        draw: Draw::Plain(draws::sender),
    },
    Case {
        id: "ring",
        what: "a NAPI thread that does not get its CPU",
        expected: &[Stage::Ring],
        needs: Needs::Lab,
        draw: Draw::Plain(draws::ring),
    },
    Case {
        id: "backlog",
        what: "bursts of a sender that is kept off its CPU, into the backlog of RPS",
        expected: &[Stage::Backlog],
        needs: Needs::Lab,
        draw: Draw::Timed(draws::backlog),
    },
    Case {
        id: "softirq",
        what: "a receive softirq with more work than its CPU has time",
        expected: &[Stage::Softirq],
        needs: Needs::Lab,
        draw: Draw::Timed(draws::softirq),
    },
    Case {
        id: "one-cpu",
        what: "many flows on the one CPU of the RPS mask, with more work than it has time",
        expected: &[Stage::OneCpu],
        needs: Needs::Lab,
        draw: Draw::Timed(draws::one_cpu),
    },
    Case {
        id: "rps-missing",
        what: "many flows in one queue without RPS, with more work than its CPU has time",
        expected: &[Stage::RpsMissing],
        needs: Needs::Lab,
        draw: Draw::Timed(draws::rps_missing),
    },
    Case {
        id: "rps-pointless",
        what: "one flow under RPS on two CPUs, with more work than one has time",
        expected: &[Stage::RpsPointless],
        needs: Needs::Lab,
        draw: Draw::Timed(draws::rps_pointless),
    },
    Case {
        id: "filter",
        what: "a firewall rule that drops some",
        expected: &[Stage::Filter],
        needs: Needs::Lab,
        draw: Draw::Plain(draws::filter),
    },
    Case {
        id: "conntrack-full",
        what: "a full connection tracking table",
        expected: &[Stage::ConntrackFull],
        needs: Needs::Conntrack,
        draw: Draw::Plain(draws::conntrack_full),
    },
    Case {
        id: "checksum",
        what: "datagrams that arrive damaged",
        expected: &[Stage::Checksum],
        needs: Needs::Lab,
        draw: Draw::Plain(draws::checksum),
    },
    Case {
        id: "no-listener",
        what: "a port that nobody listens on",
        expected: &[Stage::NoListener],
        needs: Needs::Lab,
        draw: Draw::Plain(draws::no_listener),
    },
    Case {
        id: "socket-queue",
        what: "a reader that stalls, before a buffer that does not hold the stall",
        expected: &[Stage::SocketQueue],
        needs: Needs::Lab,
        draw: Draw::Plain(draws::socket_queue),
    },
    Case {
        id: "application",
        what: "a reader with more work for each datagram than there is time",
        expected: &[Stage::Application],
        needs: Needs::Lab,
        draw: Draw::Plain(draws::application),
    },
    Case {
        id: "socket-lock",
        what: "several readers of one socket",
        expected: &[Stage::SocketLock],
        needs: Needs::FourCpus,
        draw: Draw::Plain(draws::socket_lock),
    },
    Case {
        id: "reuseport",
        what: "one flow into a group of sockets, more than one reader takes",
        expected: &[Stage::ReuseportImbalance],
        needs: Needs::Lab,
        draw: Draw::Plain(draws::reuseport),
    },
    Case {
        id: "descheduled",
        what: "a reader next to many busy loops on its CPU",
        expected: &[Stage::ApplicationDescheduled],
        needs: Needs::Lab,
        draw: Draw::Plain(draws::descheduled),
    },
    Case {
        id: "livelock",
        what: "a flood whose softirq runs on the reader's CPU",
        expected: &[Stage::Livelock],
        needs: Needs::Lab,
        draw: Draw::Plain(draws::livelock),
    },
    Case {
        id: "victim",
        what: "a busy task on the CPU of a receive softirq that loses nothing",
        expected: &[Stage::Victim],
        needs: Needs::Probes,
        draw: Draw::Timed(draws::victim),
    },
    Case {
        id: "tick-artefact",
        what: "bursts in step with the tick, on a CPU that is idle between them",
        expected: &[Stage::TickArtefact],
        needs: Needs::Probes,
        draw: Draw::Timed(draws::tick_artefact),
    },
    Case {
        id: "near-reader",
        what: "a reader whose work for each datagram takes about all the time there is",
        expected: &[Stage::Application, Stage::SocketQueue, Stage::Nothing],
        needs: Needs::Lab,
        draw: Draw::Plain(draws::near_reader),
    },
    Case {
        id: "near-stall",
        what: "a reader that stalls, before a buffer that just holds the stall or just does not",
        expected: &[Stage::SocketQueue, Stage::Nothing],
        needs: Needs::Lab,
        draw: Draw::Plain(draws::near_stall),
    },
    Case {
        id: "two-limits",
        what: "a firewall rule that drops some, and a reader too slow for the rest",
        expected: &[Stage::Filter, Stage::Application],
        needs: Needs::Lab,
        draw: Draw::Plain(draws::two_limits),
    },
];
