//! What watching costs the host that is watched, in words.

use rxpath_core::units::{grouped, si};
use rxpath_record::watch::{Frame, ProbeShare};

/// The viewer's own CPU time, and what its BPF programs take from everybody, where there are any and it was measured.
pub fn words(frame: &Frame) -> String {
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

/// From this share of a CPU on it is a warning.
const MUCH: f64 = 0.05;

/// Whether the probes take so much that it is part of what they show.
pub fn is_much(frame: &Frame) -> bool {
    frame.probe_cost.as_ref().is_some_and(|cost| cost.cpu_ratio >= MUCH)
}

/// For the head line: nothing while it is not known.
pub fn in_short(frame: &Frame) -> Option<String> {
    let cost = frame.probe_cost.as_ref().filter(|cost| cost.gap.is_none())?;
    Some(format!("probes {:.1} %", 100.0 * cost.cpu_ratio))
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
        let frame = Frame { probe_cost: Some(gap), ..Frame::default() };
        let said = words(&frame);
        assert!(said.contains("not known (it refuses); maps 1.0 MiB"), "{said}");
        assert!(!said.contains("runs of"), "{said}");
        assert_eq!(in_short(&frame), None);
        assert_eq!(words(&Frame::default()), "own CPU 0.0 % of this window");
    }
}
