//! How large receive buffers may get, held against this kernel's own default.

use crate::check::Ask;
use crate::facts::Known;
use crate::finding::Found;
use crate::knob::{Knob, Set};
use crate::rule::{
    Answer, Area, Check, Checked, Effect, Goal, Kind, Magnitude, Rule, Severity, Text, Weight,
};

/// The largest buffer that a program may ask for before 6.17: `SK_RMEM_MAX`, 256 packets of 256 bytes with
/// their truesize (include/net/sock.h) on 64-bit.
const OLD_MAX_BYTES: i64 = 212_992;

/// What QUIC implementations ask for (quic-go: 7 MiB; net/core doubles it for the overhead itself).
const WANTED_BYTES: i64 = 7_500_000;

/// Rules of this file.
pub const RULES: &[Rule] = &[Rule {
    id: "rmem-max",
    area: Area::Sockets,
    kind: Kind::Judge,
    what: "May a program get a receive buffer that holds a burst?",
    applies: "every host; the limit binds SO_RCVBUF of UDP and raw sockets, and TCP sockets that set it themselves",
    weight: Weight::by_goal()
        .when(Goal::Throughput, Severity::Info)
        .when(Goal::Benchmark, Severity::Info),
    effect: Effect::Figure {
        size: Magnitude::Multiple,
        text: "about twice the transfer rate of a QUIC stack after doubling its receive buffer",
        source: "quic-go issue 2255",
    },
    check: Check::Host(max),
    text: Text {
        why: "A UDP socket loses every datagram that comes while its buffer is full. Programs that know it ask \
              for more and are cut down to this limit without an error.",
        mechanism: "sock_setsockopt (net/core/sock.c) takes the smaller of the asked size and \
                    sysctl_rmem_max, and doubles it: the buffer counts truesize, the packet with its bookkeeping.",
        not_when: "latency: a longer queue is a longer wait; TCP does not need it, its buffer grows up to \
                   tcp_rmem[2] by itself when the program does not set SO_RCVBUF",
        side_effects: "any program may then pin as much kernel memory for each socket",
        set_now: "sysctl -w net.core.rmem_max=7500000",
        persist: "/etc/sysctl.d/: net.core.rmem_max = 7500000",
        undo: "write the value read before",
        verify: "ss -uamn: rb of the socket is twice what the program asked for; `d` (drops) stands still",
        since: "2.2; the default is 4 MiB since 6.17",
        sources: &[
            "kernel: net/core/sock.c sk_setsockopt SO_RCVBUF",
            "https://github.com/quic-go/quic-go/issues/2255",
        ],
    },
}];

fn max(ask: &Ask<'_>) -> Checked {
    let max = ask.facts.sysctl_number("net.core.rmem_max").known()?;
    if max >= WANTED_BYTES {
        return Answer::fine(format!("{max} bytes"));
    }
    if ask.facts.kernel.is_since(6, 17) && max > OLD_MAX_BYTES {
        return Answer::fine(format!("{max} bytes, near this kernel's own default of 4 MiB"));
    }
    Found::new(
        format!("net.core.rmem_max is {max}"),
        format!("{WANTED_BYTES}, when programs here receive bursts over UDP or QUIC"),
        "a program that asks for a larger SO_RCVBUF silently gets this much",
    )
    .change(Set::new(Knob::sysctl("net.core.rmem_max"), WANTED_BYTES as u64))
    .answer()
}
