//! The metrics of an experiment: what they are, their unit and their good direction.

pub use rxpath_stats::scale::Good;
use rxpath_stats::scale::Good::{Down, Up};
use rxpath_stats::scale::Scale;

/// A metric that trials report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metric {
    /// Key in results; ends with its unit.
    pub name: &'static str,
    /// Unit as shown to people.
    pub unit: &'static str,
    /// Good direction.
    pub good: Good,
    /// A phrase that says whose number it is; empty = the name with spaces.
    pub title: &'static str,
    /// What it is, with its base and its two ends where it has them.
    pub what: &'static str,
}

impl Metric {
    const fn new(
        name: &'static str,
        unit: &'static str,
        good: Good,
        title: &'static str,
        what: &'static str,
    ) -> Self {
        Self { name, unit, good, title, what }
    }
}

/// Every metric that is known by name. Metrics of external programs are not in it: more is taken as better.
#[rustfmt::skip]
pub const METRICS: &[Metric] = &[
    Metric::new("delivered_pps", "datagrams/s", Up, "delivered rate", "datagrams that the receiver took, per second of the window"),
    Metric::new("offered_pps", "datagrams/s", Up, "offered rate", "datagrams that the sender attempted, per second of the window"),
    Metric::new("loss_ratio", "of offered", Down, "loss (of offered)", "datagrams of the whole trial that were not delivered, as a share of those offered; of real traffic, packets lost at any place of this host, as a share of those that came to its devices"),
    Metric::new("loss_least_ratio", "of offered", Down, "least loss (of offered)", "the least that `loss_ratio` may be, where offered or delivered datagrams are known within bounds only"),
    Metric::new("loss_most_ratio", "of offered", Down, "most loss (of offered)", "the most that `loss_ratio` may be, where offered or delivered datagrams are known within bounds only"),
    Metric::new("receiver_cpu_ns_per_packet", "ns/datagram", Down, "receiver CPU time per delivered datagram", "time of the receiving threads on a CPU per datagram read, including softirqs that interrupt them"),
    Metric::new("sender_cpu_ns_per_packet", "ns/datagram", Down, "sender CPU time per sent datagram", "time of the sending threads on a CPU per datagram offered, softirqs inside their calls included"),
    Metric::new("blocked_ratio", "of the window", Down, "", "time that the sender waited for send buffer, as a share of the window and its threads"),
    Metric::new("achieved_ratio", "of target", Up, "", "offered rate as a share of the target rate"),
    Metric::new("one_way_delay_p50_us", "us", Down, "one-way delay, median", "from the sender's stamp in a datagram to its read by the receiver, median of the whole trial"),
    Metric::new("one_way_delay_p99_us", "us", Down, "one-way delay, 99th percentile", "from the sender's stamp in a datagram to its read by the receiver, 99th percentile of the whole trial"),
    Metric::new("one_way_delay_bound_us", "us", Down, "bound of the one-way delay", "how far the one-way delays may be wrong, because the clocks of two hosts are known within bounds"),
    Metric::new("delay_above_least_p50_us", "us", Down, "delay above the least, median", "one-way delay less the least of the trial, median: free of the clocks' difference"),
    Metric::new("delay_above_least_p99_us", "us", Down, "delay above the least, 99th percentile", "one-way delay less the least of the trial, 99th percentile: free of the clocks' difference"),
    Metric::new("delivered_bps", "b/s", Up, "delivered rate", "payload bits that the receiving application read, per second of the window"),
    Metric::new("achieved_tps", "transactions/s", Up, "transactions", "requests that were answered over TCP, per second of the window"),
    Metric::new("achieved_rps", "requests/s", Up, "answered requests", "HTTP requests that were answered, per second of the window"),
    Metric::new("service_time_p50_us", "us", Down, "service time, median", "from sending a request to the end of its reply, median of the whole trial"),
    Metric::new("service_time_p99_us", "us", Down, "service time, 99th percentile", "from sending a request to the end of its reply, 99th percentile of the whole trial"),
    Metric::new("service_time_p999_us", "us", Down, "service time, 99.9th percentile", "from sending a request to the end of its reply, 99.9th percentile of the whole trial"),
    Metric::new("response_time_p50_us", "us", Down, "response time, median", "from the intended time of a request to the end of its reply, median of the whole trial"),
    Metric::new("response_time_p99_us", "us", Down, "response time, 99th percentile", "from the intended time of a request to the end of its reply, 99th percentile of the whole trial"),
    Metric::new("response_time_p999_us", "us", Down, "response time, 99.9th percentile", "from the intended time of a request to the end of its reply, 99.9th percentile of the whole trial"),
    Metric::new("server_cpu_us_per_request", "us/request", Down, "server CPU time per request", "time of the server's threads on a CPU per request, including softirqs that interrupt them"),
    Metric::new("client_cpu_us_per_request", "us/request", Down, "client CPU time per request", "time of the client's threads on a CPU per request, including softirqs that interrupt them"),
    Metric::new("server_cpu_us_per_transaction", "us/transaction", Down, "server CPU time per transaction", "time of the server's threads on a CPU per transaction, including softirqs that interrupt them"),
    Metric::new("client_cpu_us_per_transaction", "us/transaction", Down, "client CPU time per transaction", "time of the client's threads on a CPU per transaction, including softirqs that interrupt them"),
    Metric::new("receiver_cpu_ns_per_kib", "ns/KiB", Down, "receiver CPU time per KiB", "time of the receiving threads on a CPU per KiB read, including softirqs that interrupt them"),
    Metric::new("sender_cpu_ns_per_kib", "ns/KiB", Down, "sender CPU time per KiB", "time of the sending threads on a CPU per KiB delivered, softirqs inside their calls included"),
    Metric::new("retransmitted_ratio", "of sent first", Down, "", "TCP segments retransmitted in the window, as a share of those sent for the first time"),
    Metric::new("victim_got_ratio", "of asked", Up, "what the victim got (of asked)", "time that the victim got, computed from its work (of a command: its own time on the CPU), as a share of the time it requested"),
    Metric::new("victim_claimed_ratio", "of asked", Up, "what the victim's command reports (of asked)", "CPU time that the victim's command reports of itself, as a share of the time for which it measured"),
    Metric::new("victim_taken_ratio", "of asked", Down, "taken from the victim's CPU (of asked)", "time that interrupts, softirqs and the threads that run softirqs took from the victim's CPU, as a share of the time it requested"),
    Metric::new("victim_taken_s_per_gbit", "s/Gb", Down, "taken from the victim's CPU per Gb", "the same time per 10^9 bits of payload delivered in the window"),
    Metric::new("victim_taken_s_per_mpacket", "s/million packets", Down, "taken from the victim's CPU per million packets", "the same time per million datagrams or segments delivered in the window"),
    Metric::new("network_cpu_s_per_gbit", "s/Gb", Down, "CPU time of networking per Gb", "time of interrupts and network softirqs on all CPUs, in any task, per 10^9 bits of payload delivered"),
    Metric::new("network_cpu_s_per_mpacket", "s/million packets", Down, "CPU time of networking per million packets", "time of interrupts and network softirqs on all CPUs, in any task, per million datagrams or segments delivered"),
    Metric::new("receive_cpu_s_per_mpacket", "s/million packets", Down, "CPU time of the receive path per million packets", "time of interrupts and network softirqs on all CPUs, in any task, and of the receiving threads themselves, per million datagrams or segments delivered"),
    Metric::new("landed_on_victim_ratio", "of handled", Down, "landed on the victim's CPU (of handled)", "packets that the softirqs of the victim's CPU handled, as a share of those of all CPUs"),
    Metric::new("received_pps", "packets/s", Up, "", "packets of real traffic that the devices of this host took, per second"),
    Metric::new("network_cpu_us_per_packet", "us/packet", Down, "", "time of interrupts, network softirqs and NAPI threads on all CPUs per packet of real traffic received"),
    Metric::new("busy_cpu_us_per_packet", "us/packet", Down, "", "time in which any CPU ran something, rxpath left out, per packet of real traffic received"),
    Metric::new("taken_cpu_us_per_packet", "us/packet", Down, "", "time that interrupts, softirqs and the hypervisor took from tasks per packet of real traffic received"),
    Metric::new("receive_to_socket_p99_us", "us", Down, "", "from netif_receive_skb to the socket's queue, 99th percentile of the packets that were sampled"),
    Metric::new("socket_to_read_p99_us", "us", Down, "", "from the socket's queue to its read by the application, 99th percentile of the packets that were sampled"),
    Metric::new("busy_cpus", "CPUs", Down, "", "CPUs of the receiver's machine that ran something, whatever program it was, mean of the window; in the lab the sender's are among them"),
    Metric::new("power_w", "W", Down, "", "power of the processor packages of the receiver's machine and their memory, as they count it themselves (powercap), mean of the window; in the lab the sender's is in it"),
    Metric::new("errors_count", "errors", Down, "", "requests of the whole trial that failed, of every kind"),
];

/// The metric of this name.
pub fn metric(name: &str) -> Option<&'static Metric> {
    METRICS.iter().find(|metric| metric.name == name)
}

/// The good direction of a metric by name. For unknown names, lower times are better and higher values of all others.
pub fn good(name: &str) -> Good {
    let is_time = || ["_us", "_ms", "_ns"].iter().any(|unit| name.ends_with(unit));
    let unknown = || if is_time() { Good::Down } else { Good::Up };
    metric(name).map_or_else(unknown, |metric| metric.good)
}

/// The unit of a metric by name, as shown to people; empty for names that are not known.
pub fn unit(name: &str) -> &'static str {
    metric(name).map_or("", |metric| metric.unit)
}

/// A share of packets lost or sent again that matters: one in a thousand.
const STEP_OF_LOSS: f64 = 0.001;
/// A share of time that matters.
const STEP_OF_TIME: f64 = 0.01;

/// How values of a metric are compared: shares and counts of errors by their difference, all others by their ratio.
pub fn scale(name: &str) -> Scale {
    match name {
        "errors_count" => Scale::Share { step: 1.0 },
        "loss_ratio" | "loss_least_ratio" | "loss_most_ratio" | "retransmitted_ratio" => {
            Scale::Share { step: STEP_OF_LOSS }
        }
        _ if is_share(name) => Scale::Share { step: STEP_OF_TIME },
        _ => Scale::Ratio,
    }
}

/// The loss among these metrics, for people: `3.00 % to 4.10 %` where it has bounds; `None` where there is none.
pub fn loss_text(
    of: impl Fn(&str) -> Option<f64>,
    shown: impl Fn(f64) -> String,
) -> Option<String> {
    match of("loss_least_ratio").zip(of("loss_most_ratio")) {
        Some((least, most)) => Some(format!("{} to {}", shown(least), shown(most))),
        None => of("loss_ratio").map(shown),
    }
}

/// Whether a metric's values are shares of something, from 0 to 1.
pub fn is_share(name: &str) -> bool {
    name.ends_with("_ratio")
}

/// The verb for the main metric: `delivered` or `answered`.
pub fn verb(name: &str) -> &'static str {
    match name {
        "victim_got_ratio" => "got by the victim",
        _ if name.starts_with("achieved") => "answered",
        _ => "delivered",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_strangers_are_better_short() {
        assert_eq!(good("load.latency_p99_us"), Good::Down);
        assert_eq!(good("load.mean_rps"), Good::Up);
        assert_eq!(good("loss_ratio"), Good::Down);
        assert_eq!((unit("achieved_rps"), verb("achieved_rps")), ("requests/s", "answered"));
        assert_eq!(unit("load.mean_rps"), "");
    }

    #[test]
    fn a_loss_with_bounds_is_shown_as_an_interval() {
        let text = |all: &[(&str, f64)]| {
            let of = |name: &str| all.iter().find(|(known, _)| *known == name).map(|it| it.1);
            loss_text(of, |ratio| format!("{ratio}"))
        };
        let all = [("loss_ratio", 0.5), ("loss_least_ratio", 0.25), ("loss_most_ratio", 0.5)];
        assert_eq!(text(&all).as_deref(), Some("0.25 to 0.5"));
        assert_eq!(text(&all[..1]).as_deref(), Some("0.5"));
        assert_eq!(text(&[]), None);
    }

    #[test]
    fn metrics_of_which_zero_is_an_ordinary_value_are_compared_by_difference() {
        for metric in METRICS {
            let of_something = metric.unit.starts_with("of ");
            let by_difference = matches!(scale(metric.name), Scale::Share { .. });
            assert_eq!(
                by_difference,
                of_something || metric.name == "errors_count",
                "{}",
                metric.name
            );
        }
        assert_eq!(scale("loss_ratio"), Scale::Share { step: 0.001 });
        assert_eq!(scale("load.latency_p99_us"), Scale::Ratio);
    }
}
