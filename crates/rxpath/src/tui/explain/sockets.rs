//! A socket: how full, of which limit, its drops, its owner, and the remedy that its program's CPU time points to.

use rxpath_core::Bytes;
use rxpath_core::number::si;
use rxpath_record::watch::{SocketRow, TaskRow, WatchFrame};

/// A program that is on a CPU for more than this share reads as fast as it can.
const BUSY: f64 = 0.8;
/// Above this fill level there is no space for a burst.
const FULL: f64 = 0.5;

pub(super) fn words(socket: &SocketRow, frame: &WatchFrame) -> Vec<String> {
    let mut words = vec![filled(socket), owners(socket, frame)];
    words.extend(remedy(socket, frame).map(str::to_owned));
    words
}

fn filled(socket: &SocketRow) -> String {
    let name = format!("{} {}", socket.protocol, socket.local);
    let mut words = if socket.protocol == "tcp-listen" {
        format!(
            "{name}: {} of {} connections at most waited to be accepted in the window",
            socket.queued_max, socket.limit
        )
    } else {
        format!(
            "{name}: filled to {:.0} % of {} at most in the window, {} now",
            100.0 * socket.filled_ratio(),
            Bytes(socket.limit),
            Bytes(socket.queued)
        )
    };
    words += &if socket.drops_pps > 0.0 {
        format!(
            "; it dropped {}/s, {} since its creation.",
            si(socket.drops_pps),
            socket.drops_total
        )
    } else if socket.drops_total > 0 {
        format!("; it drops nothing now, {} since its creation.", socket.drops_total)
    } else {
        "; it dropped nothing.".into()
    };
    words
}

/// The threads of the programs that have it open, if they are among the tasks.
fn threads<'a>(socket: &'a SocketRow, frame: &'a WatchFrame) -> impl Iterator<Item = &'a TaskRow> {
    frame.tasks.iter().filter(|task| {
        let of = if task.process == 0 { task.pid } else { task.process };
        socket.processes.iter().any(|name| name.ends_with(&format!("({of})")))
    })
}

/// The thread that ran most.
fn reader<'a>(socket: &'a SocketRow, frame: &'a WatchFrame) -> Option<&'a TaskRow> {
    threads(socket, frame).max_by(|a, b| a.on_cpu_ratio.total_cmp(&b.on_cpu_ratio))
}

fn owners(socket: &SocketRow, frame: &WatchFrame) -> String {
    if socket.processes.is_empty() {
        let why = if socket.processes_gap.is_empty() {
            "no visible program (root sees all)"
        } else {
            &socket.processes_gap
        };
        return format!("Open in: {why}.");
    }
    let mut words = format!("Open in {}.", socket.processes.join(", "));
    if let Some(task) = reader(socket, frame) {
        words += &format!(
            " Its busiest thread {} ({}) was on a CPU {:.0} % of the time",
            task.comm,
            task.pid,
            100.0 * task.on_cpu_ratio
        );
        if let Some(waits) = task.waiting_ratio.value() {
            words += &format!(", and waited for one {:.0} %", 100.0 * waits);
        }
        words += ".";
    }
    words
}

fn remedy(socket: &SocketRow, frame: &WatchFrame) -> Option<&'static str> {
    let loses = socket.drops_pps > 0.0;
    if socket.protocol == "tcp-listen" {
        let full = socket.queued_max >= socket.limit && socket.limit > 0;
        return (loses || full).then_some(
            "What to do: accept faster, or raise the program's listen() backlog and net.core.somaxconn, of which the \
             smaller counts.",
        );
    }
    if !loses && socket.filled_ratio() < FULL {
        return Some("It has free space: nothing to do.");
    }
    if socket.protocol == "tcp" {
        return Some(
            "What to do: TCP closes its window before it drops, so the sender waits for this program: read faster, or \
             raise net.ipv4.tcp_rmem for a long round trip.",
        );
    }
    let busy = reader(socket, frame).map(|task| task.on_cpu_ratio >= BUSY);
    Some(match busy {
        Some(true) => {
            "What to do: the program is busy all the time: more threads with SO_REUSEPORT, larger batches (recvmmsg, \
             UDP_GRO); a larger buffer only delays the loss."
        }
        Some(false) => {
            "What to do: the program sleeps or waits between reads: a larger buffer bridges that (SO_RCVBUF up to \
             net.core.rmem_max), or a CPU of its own where it waits for one."
        }
        None => {
            "What to do: a program that is busy all the time needs more threads (SO_REUSEPORT) or larger batches; one \
             that sleeps between reads needs a larger buffer (SO_RCVBUF, net.core.rmem_max). Its threads are not listed."
        }
    })
}
