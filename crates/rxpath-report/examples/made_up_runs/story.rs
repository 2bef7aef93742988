//! The variants of the story: a receiver that gets better step by step.

use rxpath_record::ledger::Place;
use rxpath_record::verdict::Stage;

/// What one variant of the story is like.
#[derive(Clone, Copy)]
pub struct Kind {
    pub name: &'static str,
    pub what: &'static str,
    pub setting: (&'static str, &'static str),
    pub offered: f64,
    pub delivered: f64,
    pub spread: f64,
    pub place: Place,
    pub counter: &'static str,
    pub stage: Stage,
    pub cpu: Option<u32>,
    pub sentence: &'static str,
    pub sockets: u32,
}

pub fn story() -> [Kind; 6] {
    let naive = Kind {
        name: "naive",
        what: "one sendmmsg sender, one recv per datagram, no CPU chosen",
        setting: ("serve.batch", "1"),
        offered: 512e3,
        delivered: 318e3,
        spread: 0.09,
        place: Place::SocketBuffer,
        counter: "rx/Udp.RcvbufErrors",
        stage: Stage::Application,
        cpu: Some(1),
        sentence: "the receiving application is the limit: CPU 1 is 99 % busy and its queue is full",
        sockets: 1,
    };
    let step = |name, what, setting, offered, delivered| Kind {
        name,
        what,
        setting,
        offered,
        delivered,
        spread: 0.02,
        ..naive
    };
    [
        naive,
        step("pinned", "sender on CPU 0, receiver on CPU 1", ("serve.cpu", "1"), 548e3, 361e3),
        step("batched", "recvmmsg of up to 1024", ("serve.batch", "1024"), 561e3, 498e3),
        Kind {
            place: Place::Backlog,
            counter: "rx/link.veth.rx.dropped",
            stage: Stage::Softirq,
            sentence: "softirq on CPU 1 is the limit: the RPS backlog overflows while the application sleeps 38 % of the time",
            ..step("rps", "receive softirq moved to CPU 1 by RPS", ("rx.rps", "2"), 905e3, 742e3)
        },
        Kind {
            sockets: 4,
            stage: Stage::SocketQueue,
            sentence: "the socket queue is the limit: two of four REUSEPORT sockets get every datagram",
            ..step(
                "reuseport",
                "four SO_REUSEPORT sockets",
                ("serve.sockets", "reuseport"),
                912e3,
                811e3,
            )
        },
        Kind {
            place: Place::SocketBuffer,
            stage: Stage::SenderOrSoftirq,
            cpu: Some(0),
            sentence: "CPU 0 is full: sender and receive softirq run in one system call and ticks do not separate them",
            ..step(
                "gso",
                "sender with UDP_SEGMENT, 64 datagrams a send",
                ("load.gso", "64"),
                1.184e6,
                1.1472e6,
            )
        },
    ]
}
