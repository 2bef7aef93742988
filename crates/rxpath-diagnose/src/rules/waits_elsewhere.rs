//! The reader has time left but its queue is always full: between reads it waits for something other than a CPU.

use super::application::evidence;
use crate::rules::prelude::*;

pub fn claim(view: &View) -> Claim {
    let sentence = format!(
        "the receiving application is the limit: its queue was full all the time, and it used only {} of it: between reads it waits for something else (disk, a lock, another call)",
        percent(view.reader.lead.demand())
    );
    Claim::at_socket(view, Stage::Application, Confidence::Fair, sentence)
        .on(view.reader.lead.cpu)
        .because(evidence(view))
        .remedy("find what it waits for: `cat /proc/PID/task/TID/wchan`, `strace -f -p PID`, `perf trace -p PID`; let a thread of its own empty the socket")
        .remedy("a larger receive buffer does not help: a queue that is full on average stays full")
}
