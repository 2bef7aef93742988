//! A socket overflows, but it is unknown which thread of its process reads it: the remedies differ.

use super::application::evidence;
use crate::rules::prelude::*;

pub fn claim(view: &View) -> Claim {
    let lost = view.lost_at(Place::SocketBuffer);
    let sentence = format!(
        "the socket's queue overflowed ({} of the offered datagrams), and why depends on which thread reads it: one that is full is too slow (`application`), one with time left meets bursts or stalls (`socket-queue`)",
        percent(view.share_at(Place::SocketBuffer, lost))
    );
    Claim::at_socket(view, Stage::Unknown, Confidence::Weak, sentence)
        .because(evidence(view))
        .remedy("find the thread that reads: `strace -f -c -e trace=recvfrom,recvmsg,recvmmsg,read -p PID`, or the program's own names for its threads")
        .remedy("a full reader: more readers with a socket of their own, or less work for each datagram; one that stalls: a larger receive buffer, or a thread that does nothing but read")
}
