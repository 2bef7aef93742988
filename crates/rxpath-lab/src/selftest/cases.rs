//! The limits that can be made on purpose in a lab of two CPUs or more, one function each.
//!
//! A draw is a list of settings of a scenario's variant. Its parameters vary where the limit does not depend on them.

use rand_chacha::ChaCha8Rng;
use rxpath_record::verdict::Stage;

mod draws;

use draws::{APPLICATION, MANY_FLOWS, SMALL, TOO_MUCH};
pub(super) use draws::{busy, drawn, in_the_way};

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

/// How a draw of a case is made. Templates of settings are those of `draws::drawn`.
#[derive(Clone, Copy)]
pub(super) enum Draw {
    /// Templates of its settings.
    Lines(&'static [&'static str]),
    /// Its settings.
    Plain(fn(&mut ChaCha8Rng) -> Vec<String>),
    /// The share of a CPU that all datagrams are to take in the softirq, from the least to the most percent, and templates
    /// of the settings, `load.rate` among them. What one of them costs is made as for `Timed`.
    Busy((u32, u32), &'static [&'static str]),
    /// What a datagram is to cost in the softirq, in ns, and the other settings. How many firewall rules make it cost that
    /// is the host's affair: the time decides what is the limit, and a rule takes 10 to 60 ns by the host.
    Timed(fn(&mut ChaCha8Rng) -> (f64, Vec<String>)),
}

impl Case {
    /// Whether its datagrams are made to cost a drawn time by firewall rules.
    pub fn is_timed(&self) -> bool {
        matches!(self.draw, Draw::Busy(..) | Draw::Timed(_))
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
        draw: Draw::Lines(&["load.rate = {2000..15000}; load.size = {16..1400}"]),
    },
    Case {
        id: "sender",
        what: "a sender that must share its CPU and asks for more than that gives",
        expected: &[Stage::Sender, Stage::SenderOrSoftirq],
        needs: Needs::Lab,
        draw: Draw::Lines(&[
            r#"load.rate = {400000..900000}; background.hogs = {2..8}; background.cpus = "@sender""#,
            r#"lab.rps_cpus = "@receiver""#,
        ]),
    },
    Case {
        id: "ring",
        what: "a NAPI thread that does not get its CPU",
        expected: &[Stage::Ring],
        needs: Needs::Lab,
        // The reader would wait for its CPU too: it runs on the CPU of the sender, which sleeps.
        draw: Draw::Lines(&[
            r#"load.rate = {10000..40000}; load.size = {16..1400}; load.pacing = "sleep""#,
            "lab.gro = true; lab.tso = false; lab.threaded = true; lab.napi_idle = true",
            r#"lab.napi_cpu = "@receiver"; serve.cpu = "@sender""#,
            r#"background.hogs = {1..3}; background.cpus = "@receiver""#,
        ]),
    },
    Case {
        id: "backlog",
        what: "bursts of a sender that is kept off its CPU, into the backlog of RPS",
        expected: &[Stage::Backlog],
        needs: Needs::Lab,
        // The sender keeps to its schedule: what it could not send while it was off its CPU goes out at once, several times
        // faster than the softirq takes it. It spins while nothing is due: one that sleeps is given its CPU at once when it
        // wakes, also next to busy loops. The CPU of the softirq has time for twice the rate.
        draw: Draw::Busy(
            (35, 45),
            &[
                r#"load.rate = {50000..80000}; load.pacing = "spin"; lab.rps_cpus = "@receiver""#,
                "lab.udp_segmentation = false; load.gso = {16..48}",
                r#"background.hogs = {24..32}; background.cpus = "@sender""#,
            ],
        ),
    },
    Case {
        id: "softirq",
        what: "a receive softirq with more work than its CPU has time",
        expected: &[Stage::Softirq],
        needs: Needs::Lab,
        // One flow. What is measured of a rule may be a fifth too much and there is too much work all the same.
        draw: Draw::Busy(
            (160, 300),
            &[
                r#"load.rate = {100000..130000}; lab.rps_cpus = "@receiver""#,
                r#"serve.cpu = "@sender"; serve.rcvbuf = "256MiB""#,
            ],
        ),
    },
    Case {
        id: "one-cpu",
        what: "many flows on the one CPU of the RPS mask, with more work than it has time",
        expected: &[Stage::OneCpu],
        needs: Needs::Lab,
        draw: Draw::Busy(
            (150, 200),
            &[TOO_MUCH, MANY_FLOWS, r#"lab.rps_cpus = "@receiver"; serve.cpu = "@sender""#],
        ),
    },
    Case {
        id: "rps-missing",
        what: "many flows in one queue without RPS, with more work than its CPU has time",
        expected: &[Stage::RpsMissing],
        needs: Needs::Lab,
        draw: Draw::Busy(
            (150, 200),
            &[
                TOO_MUCH,
                MANY_FLOWS,
                r#"lab.gro = true; lab.tso = false; lab.threaded = true; lab.napi_cpu = "@receiver""#,
                r#"serve.cpu = "@sender""#,
            ],
        ),
    },
    Case {
        id: "rps-pointless",
        what: "one flow under RPS on two CPUs, with more work than one has time",
        expected: &[Stage::RpsPointless],
        needs: Needs::Lab,
        // Which of the two CPUs the flow lands on is the hash's choice: nobody else is bound to either.
        draw: Draw::Busy(
            (150, 200),
            &[TOO_MUCH, r#"lab.rps_cpus = "@sender,@receiver"; serve.cpu = ""; load.cpu = """#],
        ),
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
        draw: Draw::Lines(&[SMALL, r#"load.corrupt = "checksum""#]),
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
        draw: Draw::Lines(&[APPLICATION]),
    },
    Case {
        id: "socket-lock",
        what: "several readers of one socket",
        expected: &[Stage::SocketLock],
        needs: Needs::FourCpus,
        draw: Draw::Lines(&[
            r#"serve.cpu = "@receiver:3"; serve.sockets = "shared"; serve.batch = 1"#,
            r#"load.gso = {40..64}; serve.rcvbuf = "{1..8}MiB""#,
        ]),
    },
    Case {
        id: "reuseport",
        what: "one flow into a group of sockets, more than one reader takes",
        expected: &[Stage::ReuseportImbalance],
        needs: Needs::Lab,
        // One flow always meets the same socket.
        draw: Draw::Lines(&[
            r#"load.rate = {30000..50000}; load.pacing = "sleep"; serve.cpu = """#,
            r#"serve.sockets = "reuseport"; serve.threads = {2..6}; serve.work = "{50..200}us""#,
            r#"serve.rcvbuf = "{128..1024}KiB""#,
        ]),
    },
    Case {
        id: "descheduled",
        what: "a reader next to many busy loops on its CPU",
        expected: &[Stage::ApplicationDescheduled],
        needs: Needs::Lab,
        // Room for 64 to 128 datagrams, 2 to 6 ms: less than a busy loop's turn.
        draw: Draw::Lines(&[
            r#"load.rate = {20000..40000}; serve.rcvbuf = "{53..106}KiB""#,
            r#"background.hogs = {6..14}; background.cpus = "@receiver""#,
        ]),
    },
    Case {
        id: "livelock",
        what: "a flood whose softirq runs on the reader's CPU",
        expected: &[Stage::Livelock],
        needs: Needs::Lab,
        draw: Draw::Lines(&[
            r#"lab.rps_cpus = "@receiver"; load.gso = {40..64}; load.batch = {8..32}"#,
            r#"serve.batch = {64..1024}; serve.rcvbuf = "{2..8}MiB""#,
        ]),
    },
    Case {
        id: "victim",
        what: "a busy task on the CPU of a receive softirq that loses nothing",
        expected: &[Stage::Victim],
        needs: Needs::Probes,
        // Few and dear datagrams: the backlog holds 50 ms of them and more, so that nothing is lost when the hypervisor or
        // the busy task keeps the softirq waiting.
        draw: Draw::Busy(
            (28, 38),
            &[
                r#"load.rate = {14000..20000}; load.pacing = "sleep"; lab.rps_cpus = "@receiver""#,
                r#"serve.cpu = "@sender"; background.hogs = 1; background.cpus = "@receiver""#,
            ],
        ),
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
