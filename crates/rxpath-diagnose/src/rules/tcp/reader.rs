//! A program does not read what waits in its connections: their windows close, and the far end has to stop.

use rxpath_record::evidence::{TcpConnection, TcpService, TcpUse};

use super::noteworthy;
use crate::lines::tcp::{CLOSED, DROPPING, PRESSED, busiest, counters, service, sum};
use crate::rules::prelude::*;
use crate::view::{Lead, lead};

const SOURCE: &str = "sock_diag: Recv-Q, tcpi_rcv_wnd and tcpi_bytes_received of the connections";

/// The service with most connections whose receive queues are full.
pub fn full(tcp: &TcpUse) -> Option<(&TcpService, &TcpConnection)> {
    let full = tcp.services.iter().filter_map(|one| Some((one, one.fullest.as_ref()?)));
    let full = full.filter(|(one, fullest)| {
        let share = one.full_count as f64 / one.connections_count.max(1) as f64;
        one.full_count > 0 && share >= TCP_FULL_SHARE && fullest.samples >= TCP_SAMPLES
    });
    full.max_by_key(|(one, _)| (one.full_count, std::cmp::Reverse(&one.address)))
}

pub fn judge(view: &View) -> Option<Claim> {
    let tcp = view.raw.tcp.as_ref()?;
    let closed = sum(tcp, &CLOSED);
    let Some((one, fullest)) = full(tcp) else {
        return (closed >= TCP_CLOSED_COUNT).then(|| unnamed(tcp, closed));
    };
    let filled = sound_ratio(fullest.filled_mean_ratio);
    let shut = closed > 0 || filled >= TCP_CLOSED_RATIO;
    let sure = shut && fullest.samples >= TCP_SAMPLES_SURE;
    let name = service(one);
    let sentence = format!(
        "TCP: {name} does not read what arrives: {} bytes waited in a connection's receive queue on average, {} of its window",
        count(fullest.unread_mean_bytes.max(0.0).round() as u64),
        percent(filled),
    );
    let thread = busiest(one).map(lead);
    let cpu = thread.as_ref().and_then(|thread| thread.cpu);
    let pace = thread.as_ref().map(Lead::pace);
    // A CPU that leaves it time does not hold it up.
    let cpu = cpu.filter(|_| pace != Some(ThreadSaturation::HasTime));
    let claim =
        Claim::new(Stage::TcpReader, Confidence::strong_if(sure), &[Part::Window], sentence)
            .on(cpu)
            .losing(noteworthy(sum(tcp, &DROPPING)))
            .because([queue(one, fullest)])
            .because(ran(one))
            .because(counters(tcp, &[&CLOSED[..], &DROPPING, &PRESSED].concat()))
            .because(cpu_and_others(view, cpu))
            .next(format!("TCP: {name} does not read what arrives"));
    Some(remedies(claim, pace))
}

/// Windows closed, and none of the sampled connections stays full.
fn unnamed(tcp: &TcpUse, closed: u64) -> Claim {
    let text = format!(
        "TCP: receive windows closed {} times: programs read later than data arrives, now and then",
        count(closed)
    );
    let claim = Claim::new(Stage::TcpReader, Confidence::Weak, &[Part::Window], text.clone());
    let claim = claim.because(counters(tcp, &CLOSED)).next(text);
    claim.remedy("find the program: `ss -tmi` shows Recv-Q and the window of each connection while it happens; a longer watch (`--duration`) samples more")
}

fn queue(one: &TcpService, fullest: &TcpConnection) -> EvidenceLine {
    let TcpConnection { remote, local, .. } = fullest;
    let (full, all) = (count(one.full_count), count(one.connections_count));
    let (waited, read) = (count(fullest.unread_max_bytes), count(fullest.read_bytes));
    let (mean, samples) = (percent(sound_ratio(fullest.filled_mean_ratio)), count(fullest.samples));
    let text = format!(
        "{full} of {all} connections had half of their window or more taken by unread bytes; the fullest, from {remote} to {local}: {waited} bytes waited at most, {mean} of its window on average over {samples} samples, and the program read {read} bytes of it"
    );
    line(text, SOURCE)
}

/// What the busiest thread of its programs did: whether it is the one that reads is not known.
fn ran(one: &TcpService) -> Option<EvidenceLine> {
    let lead = busiest(one).map(lead)?;
    let text = format!(
        "the busiest thread of its program, {} ({}), ran {} of the window and waited for a CPU {}",
        lead.name,
        lead.tid,
        percent(lead.running),
        percent(lead.waiting),
    );
    Some(line(text, "/proc/PID/task/TID/schedstat"))
}

fn remedies(claim: Claim, pace: Option<ThreadSaturation>) -> Claim {
    let claim = match pace {
        Some(ThreadSaturation::Full) => claim
            .remedy("more threads or workers for these connections in the service's configuration: the busiest one has no time left")
            .remedy("less work per request in the thread that reads"),
        Some(ThreadSaturation::KeptWaiting) => claim
            .remedy("give the program its CPU: others run there while it has work (taskset, cpuset, CPUAffinity= of its unit, priority)"),
        Some(ThreadSaturation::HasTime) => claim
            .remedy("find what the program waits for, because it has time left: a peer that reads slowly behind it, disk, a lock, a stopped process (`cat /proc/PID/wchan`, `strace -p PID`)"),
        None => claim
            .remedy("find what the program does, as root: its threads' CPU time could not be read (`strace -p PID`)"),
    };
    claim.remedy(
        "a larger receive buffer (net.ipv4.tcp_rmem, SO_RCVBUF) delays the problem and does not solve it",
    )
}
