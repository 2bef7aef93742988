//! The cost of watching for the watched host, as text.

use rxpath_core::number::{grouped, si};
use rxpath_record::watch::{ProbeDutyCycle, ProbeShare, WatchFrame};

/// The viewer's own CPU time, and the CPU time of its BPF programs if measured.
pub fn words(frame: &WatchFrame) -> String {
    let own = format!("own CPU {:.1} % of this window", 100.0 * frame.own_cpu_ratio);
    match &frame.probe_cost {
        Some(cost) => format!("{own}; {}", of_probes(cost)),
        None => own,
    }
}

fn of_probes(cost: &ProbeShare) -> String {
    let time = match &cost.gap {
        Some(gap) => format!("probes: run time not known ({gap})"),
        None => format!(
            "probes {:.2} % of a CPU ({}/s runs of {:.0} ns, measured for {:.2} s, {:.0} s ago)",
            100.0 * cost.cpu_ratio,
            si(cost.runs_per_s),
            cost.ns_per_run,
            cost.measured_s,
            cost.age_s
        ),
    };
    let mib = cost.map_bytes as f64 / 1_048_576.0;
    format!("{time}; maps {mib:.1} MiB; lost {}", grouped(cost.lost_count))
}

/// The share of the time in which probes counted; nothing while all count without a break.
pub fn sampled(frame: &WatchFrame) -> Option<String> {
    let of = |sampled: &ProbeDutyCycle| {
        let when = if sampled.age_s > 0.0 {
            format!(", {:.1} s before this window's end", sampled.age_s)
        } else {
            String::new()
        };
        format!(
            "{} for {:.2} % of the time ({:.0} ms{when})",
            sampled.what,
            100.0 * sampled.ratio,
            1000.0 * sampled.counted_s
        )
    };
    let parts: Vec<String> = frame.sampled.iter().map(of).collect();
    (!parts.is_empty())
        .then(|| format!("sampled, so that probes cost little: {}", parts.join("; ")))
}

/// From this share of a CPU on, the cost is a warning.
const MUCH: f64 = 0.01;

/// Whether the probes take so much CPU that they distort what they show.
pub fn is_much(frame: &WatchFrame) -> bool {
    frame.probe_cost.as_ref().is_some_and(|cost| cost.cpu_ratio >= MUCH)
}

/// For the head line: nothing while the cost is not known.
pub fn in_short(frame: &WatchFrame) -> Option<String> {
    let cost = frame.probe_cost.as_ref().filter(|cost| cost.gap.is_none())?;
    let least = frame.sampled.iter().map(|sampled| sampled.ratio).reduce(f64::min);
    let sampled =
        least.map_or_else(String::new, |ratio| format!(", sampled {:.1} %", 100.0 * ratio));
    Some(format!("probes {:.1} %{sampled}", 100.0 * cost.cpu_ratio))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_measured_is_said_and_no_zero() {
        let gap = ProbeShare {
            gap: Some("it refuses".into()),
            map_bytes: 1 << 20,
            ..ProbeShare::default()
        };
        let frame = WatchFrame { probe_cost: Some(gap), ..WatchFrame::default() };
        let said = words(&frame);
        assert!(said.contains("not known (it refuses); maps 1.0 MiB"), "{said}");
        assert!(!said.contains("runs of"), "{said}");
        assert_eq!(in_short(&frame), None);
        assert_eq!(words(&WatchFrame::default()), "own CPU 0.0 % of this window");
    }

    #[test]
    fn the_sampled_part_of_the_time_is_said_where_it_is_not_all() {
        let sampled = |what: &str, ratio, age_s| ProbeDutyCycle {
            what: what.into(),
            ratio,
            counted_s: 0.012,
            age_s,
        };
        let frame = WatchFrame {
            probe_cost: Some(ProbeShare { cpu_ratio: 0.002, ..ProbeShare::default() }),
            sampled: vec![sampled("tasks", 0.0091, 1.5), sampled("drops", 0.02, 0.0)],
            ..WatchFrame::default()
        };
        assert_eq!(
            super::sampled(&frame).unwrap(),
            "sampled, so that probes cost little: tasks for 0.91 % of the time (12 ms, 1.5 s before this window's \
             end); drops for 2.00 % of the time (12 ms)"
        );
        assert_eq!(in_short(&frame).unwrap(), "probes 0.2 %, sampled 0.9 %");
        assert_eq!(super::sampled(&WatchFrame::default()), None);
    }
}
