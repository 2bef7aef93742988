//! Interval lines of several programs as those of one: counts that are cumulative, added at one instant.

use crate::trial::line::Line;

/// At each instant of the first program's lines at which all have begun and none has ended.
pub fn together(each: &[Vec<Line>]) -> Vec<Line> {
    let Some((first, others)) = each.split_first() else { return Vec::new() };
    let at = |line: &Line| {
        let others: Option<Vec<Line>> = others.iter().map(|all| between(all, line.t_ns)).collect();
        Some(others?.iter().fold(line.clone(), add))
    };
    first.iter().filter_map(at).collect()
}

/// What a program had done at an instant between two of its lines; nothing before the first and after the last.
pub fn between(lines: &[Line], t_ns: u64) -> Option<Line> {
    let next = lines.partition_point(|line| line.t_ns < t_ns);
    let after = lines.get(next)?;
    if after.t_ns == t_ns {
        return Some(after.clone());
    }
    let before = lines.get(next.checked_sub(1)?)?;
    let share = (t_ns - before.t_ns) as f64 / (after.t_ns - before.t_ns) as f64;
    let count = |from: u64, to: u64| from + (to.saturating_sub(from) as f64 * share) as u64;
    let optional = |from: Option<u64>, to: Option<u64>| Some(count(from?, to?));
    let each = |from: &[u64], to: &[u64]| -> Vec<u64> {
        from.iter().zip(to).map(|(from, to)| count(*from, *to)).collect()
    };
    Some(Line {
        t_ns,
        attempted: optional(before.attempted, after.attempted),
        done: count(before.done, after.done),
        arrived: optional(before.arrived, after.arrived),
        thread_done: each(&before.thread_done, &after.thread_done),
        thread_cpus: before.thread_cpus.clone(),
        socket_done: each(&before.socket_done, &after.socket_done),
        // A queue is as it was read last.
        socket_rmem_bytes: before.socket_rmem_bytes.clone(),
        socket_drops_packets: each(&before.socket_drops_packets, &after.socket_drops_packets),
        blocked_s: before
            .blocked_s
            .zip(after.blocked_s)
            .map(|(from, to)| from + (to - from) * share),
    })
}

fn add(sum: Line, other: &Line) -> Line {
    let both = |a: Option<u64>, b: Option<u64>| Some(a? + b?);
    let joined = |a: Vec<u64>, b: &[u64]| a.into_iter().chain(b.iter().copied()).collect();
    Line {
        attempted: both(sum.attempted, other.attempted),
        done: sum.done + other.done,
        arrived: both(sum.arrived, other.arrived),
        thread_done: joined(sum.thread_done, &other.thread_done),
        socket_done: joined(sum.socket_done, &other.socket_done),
        socket_rmem_bytes: joined(sum.socket_rmem_bytes, &other.socket_rmem_bytes),
        socket_drops_packets: joined(sum.socket_drops_packets, &other.socket_drops_packets),
        thread_cpus: sum.thread_cpus.into_iter().chain(other.thread_cpus.iter().copied()).collect(),
        blocked_s: sum.blocked_s.zip(other.blocked_s).map(|(a, b)| a + b),
        ..sum
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::trial::window;

    fn line(t_ns: u64, done: u64) -> Line {
        Line { t_ns, done, thread_done: vec![done], thread_cpus: vec![1], ..Line::default() }
    }

    #[test]
    fn counts_are_added_at_one_instant() {
        let first = vec![line(100, 10), line(200, 20), line(300, 30)];
        let second = vec![line(150, 100), line(250, 300)];
        let all = together(&[first, second]);
        // Before the second begins and after its end nothing is known of both.
        assert_eq!(all.len(), 1);
        assert_eq!((all[0].t_ns, all[0].done), (200, 220));
        assert_eq!(all[0].thread_done, [20, 200]);
    }

    #[test]
    fn sockets_of_receivers_stand_side_by_side() {
        let of = |t_ns, done, rmem| Line {
            socket_done: vec![done],
            socket_rmem_bytes: vec![rmem],
            socket_drops_packets: vec![done],
            ..line(t_ns, done)
        };
        let first = vec![of(100, 10, 1), of(200, 20, 2)];
        let second = vec![of(150, 100, 7), of(250, 300, 8)];
        let all = together(&[first, second]);
        assert_eq!(all[0].socket_done, [20, 200]);
        assert_eq!(all[0].socket_drops_packets, [20, 200]);
        assert_eq!(all[0].socket_rmem_bytes, [2, 7], "as they were read last");
    }

    proptest! {
        #[test]
        fn steady_rates_add_up_whatever_the_lines_instants_are(
            steps in proptest::collection::vec((10_000_000u64..90_000_000, 10_000_000u64..90_000_000), 8..40),
            rates in proptest::array::uniform2(1u64..1_000),
        ) {
            let mut t = [0u64; 2];
            let mut each = [Vec::new(), Vec::new()];
            for (a, b) in steps {
                for (i, step) in [a, b].into_iter().enumerate() {
                    t[i] += step;
                    each[i].push(line(t[i], t[i] / 1_000_000 * rates[i]));
                }
            }
            let all = together(&each);
            if let Some(span) = window::span(&all, [0, u64::MAX]) {
                let want = (rates[0] + rates[1]) as f64 * 1e3;
                let got = span.per_second(span.done);
                // Counts are of whole milliseconds.
                let slack = 2.0 * (rates[0] + rates[1]) as f64 / span.seconds() + 2.0;
                prop_assert!((got - want).abs() <= slack, "{got} {want}");
            }
        }
    }
}
