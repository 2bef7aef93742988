//! TCP's numbers of a watched host, shared by several rules.

use rxpath_core::SortFew;
use rxpath_core::number::si;
use rxpath_record::evidence::{SocketOwner, TcpService, TcpUse, ThreadUse};
use rxpath_record::verdict::EvidenceLine;

use super::line;
use crate::view::View;
use crate::wording::{count, percent};

/// Requests and finished handshakes that a listener dropped, for any reason. They include `ListenOverflows`
/// (net/ipv4/tcp_ipv4.c `tcp_v4_syn_recv_sock`, tcp_input.c `tcp_conn_request`).
pub const LISTEN_DROPS: &str = "TcpExt.ListenDrops";
/// Those whose accept queue was full.
pub const LISTEN_OVERFLOWS: &str = "TcpExt.ListenOverflows";
/// Segments dropped at sockets: no two counters count the same drop.
pub const DROPPING: [&str; 4] = [
    "TcpExt.TCPRcvQDrop",
    "TcpExt.TCPBacklogDrop",
    "TcpExt.TCPOFODrop",
    "TcpExt.TCPZeroWindowDrop",
];
/// A receive buffer was full, with or without a drop. A segment that increments `RcvPruned` is dropped by the caller,
/// which counts it too (net/ipv4/tcp_input.c `tcp_prune_queue`, `tcp_try_rmem_schedule`).
pub const PRESSED: [&str; 5] = [
    "TcpExt.PruneCalled",
    "TcpExt.RcvPruned",
    "TcpExt.OfoPruned",
    "TcpExt.TCPRcvCollapsed",
    "TcpExt.TCPMemoryPressures",
];
/// A window was closed because no thread read (net/ipv4/tcp_output.c `tcp_select_window`).
pub const CLOSED: [&str; 2] = ["TcpExt.TCPToZeroWindowAdv", "TcpExt.TCPWantZeroWindowAdv"];
/// Retransmitted segments.
pub const SENT_AGAIN: &str = "Tcp.RetransSegs";

/// The change of a counter.
pub fn moved(tcp: &TcpUse, name: &str) -> u64 {
    tcp.counters.get(name).copied().unwrap_or(0)
}

/// The sum of these changes.
pub fn sum(tcp: &TcpUse, names: &[&str]) -> u64 {
    names.iter().fold(0, |sum, name| sum.saturating_add(moved(tcp, name)))
}

/// One line with the counters among `names` that changed.
pub fn counters(tcp: &TcpUse, names: &[&str]) -> Option<EvidenceLine> {
    let found: Vec<&str> = names.iter().copied().filter(|name| moved(tcp, name) > 0).collect();
    let each = found.iter().map(|name| {
        let short = name.trim_start_matches("TcpExt.");
        format!("{short} by {}", count(moved(tcp, name)))
    });
    let text =
        format!("changed in this network namespace: {}", each.collect::<Vec<_>>().join(", "));
    (!found.is_empty()).then(|| line(text, found.join(", ")))
}

/// `0.0.0.0:80 of httpd (99)`.
pub fn at(address: &str, owners: &[SocketOwner]) -> String {
    match owners {
        [] => address.to_owned(),
        [one] => format!("{address} of {} ({})", one.name, one.pid),
        [one, rest @ ..] => {
            format!("{address} of {} ({}) and {} more", one.name, one.pid, count(rest.len() as u64))
        }
    }
}

/// A service: its listener, or this host's outgoing connections.
pub fn service(service: &TcpService) -> String {
    let name = at(&service.address, &service.owners);
    if service.outgoing { format!("connections to {name}") } else { name }
}

/// The thread of a service's programs that ran and waited most.
pub fn busiest(service: &TcpService) -> Option<&ThreadUse> {
    let demand = |thread: &ThreadUse| crate::view::lead(thread).demand();
    service.threads.iter().max_by(|a, b| demand(a).total_cmp(&demand(b)).then(b.tid.cmp(&a.tid)))
}

/// Numbers for the state of TCP: `9.99k TCP segments/s arrived, no listen drops, no prunes, CPU 1 52 % busy`.
pub fn in_short(view: &View) -> Option<String> {
    let tcp = view.raw.tcp.as_ref().filter(|_| view.has_tcp())?;
    let some = |n: u64, what: &str| match n {
        0 => format!("no {what}"),
        n => format!("{} {what}", count(n)),
    };
    let listens = moved(tcp, LISTEN_DROPS).max(moved(tcp, LISTEN_OVERFLOWS));
    let mut parts = vec![
        format!("{} TCP segments/s arrived", si(view.segments_pps().round())),
        some(listens, "listen drops"),
        some(sum(tcp, &DROPPING), "drops at connections"),
        some(moved(tcp, PRESSED[0]), "prunes"),
    ];
    let again = moved(tcp, SENT_AGAIN);
    if again > 0 {
        let all = tcp.sent_segments.saturating_add(again);
        parts.push(format!("{} sent again", percent(again as f64 / all.max(1) as f64)));
    }
    let busiest = view.cpus.iter().filter_map(|cpu| Some((cpu.cpu, view.busy_ratio(cpu.cpu)?)));
    let busiest = busiest.max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(&a.0)));
    parts.extend(busiest.map(|(cpu, busy)| format!("CPU {cpu} {} busy", percent(busy))));
    Some(parts.join(", "))
}

/// The same as a line.
pub fn summary(view: &View) -> Option<EvidenceLine> {
    let source = "Tcp.InSegs, TcpExt's counters of drops, /proc/stat";
    in_short(view).map(|text| line(text, source))
}

/// The services that received most, with their busiest threads.
pub fn services(view: &View) -> Option<EvidenceLine> {
    let mut all: Vec<&TcpService> = view.raw.tcp.as_ref()?.services.iter().collect();
    all.sort_few_by(|a, b| b.received_bytes.cmp(&a.received_bytes).then(a.address.cmp(&b.address)));
    let each = all.iter().take(super::SERVICES).map(|one| {
        let ran = busiest(one).map_or_else(String::new, |thread| {
            let lead = crate::view::lead(thread);
            format!(", its busiest thread ran {} of the window", percent(lead.running))
        });
        let fullest =
            one.fullest.as_ref().map_or(0.0, |it| crate::view::sound_ratio(it.filled_mean_ratio));
        let (name, bytes) = (service(one), count(one.received_bytes));
        format!(
            "{name}: {bytes} bytes over {} connections, fullest window {}{ran}",
            count(one.connections_count),
            percent(fullest)
        )
    });
    let text = each.collect::<Vec<_>>().join("; ");
    (!text.is_empty())
        .then(|| line(text, "sock_diag: tcp_info of the connections, schedstat of their programs"))
}
