//! The measured window of a trial: what each side did between two instants, from cumulative interval lines.
//!
//! Lines are cumulative and carry the clock at which their counters were read, so a rate over the window is the
//! difference of two lines over the time between them: exact, whatever the line's own lateness was.

use super::line::Line;

/// What one side did between its first and last line inside the window.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Span {
    /// Clock of the first line inside.
    pub start_ns: u64,
    /// Clock of the last line inside.
    pub end_ns: u64,
    /// Attempted; what was done where the side does not tell it apart.
    pub attempted: u64,
    /// Done: datagrams, bytes, transactions, requests.
    pub done: u64,
    /// Datagrams that the receiver's IP saw, where the lines are made of the kernel's counters.
    pub arrived: Option<u64>,
    /// Done per thread.
    pub thread_done: Vec<u64>,
    /// Blocked on the send buffer, all threads (sender).
    pub blocked_s: f64,
    /// CPUs that each thread was seen on, ascending.
    pub thread_cpus: Vec<Vec<u32>>,
}

impl Span {
    /// Length.
    pub fn seconds(&self) -> f64 {
        self.end_ns.saturating_sub(self.start_ns) as f64 / 1e9
    }

    /// Per second of the span; 0 for an empty one.
    pub fn per_second(&self, count: u64) -> f64 {
        let seconds = self.seconds();
        if seconds > 0.0 { count as f64 / seconds } else { 0.0 }
    }
}

/// The lines inside `[from, to]`.
pub fn inside(lines: &[Line], [from, to]: [u64; 2]) -> impl Iterator<Item = &Line> {
    lines.iter().filter(move |line| (from..=to).contains(&line.t_ns))
}

/// The span of the lines inside a window; `None` when fewer than two lie there.
pub fn span(lines: &[Line], window_ns: [u64; 2]) -> Option<Span> {
    let inside: Vec<&Line> = inside(lines, window_ns).collect();
    let (first, last) = (inside.first()?, inside.last()?);
    if last.t_ns == first.t_ns {
        return None;
    }
    let since =
        |end: Option<u64>, start: Option<u64>| end.unwrap_or(0).saturating_sub(start.unwrap_or(0));
    let threads = last.thread_done.len().max(last.thread_cpus.len());
    Some(Span {
        start_ns: first.t_ns,
        end_ns: last.t_ns,
        attempted: match (last.attempted, first.attempted) {
            (None, None) => last.done.saturating_sub(first.done),
            (end, start) => since(end, start),
        },
        done: last.done.saturating_sub(first.done),
        arrived: last.arrived.zip(first.arrived).map(|(end, start)| end.saturating_sub(start)),
        thread_done: (0..threads)
            .map(|i| since(last.thread_done.get(i).copied(), first.thread_done.get(i).copied()))
            .collect(),
        blocked_s: last.blocked_s.unwrap_or(0.0) - first.blocked_s.unwrap_or(0.0),
        thread_cpus: (0..threads).map(|i| seen(&inside, i)).collect(),
    })
}

fn seen(lines: &[&Line], thread: usize) -> Vec<u32> {
    let mut cpus: Vec<u32> =
        // A thread that has not handled anything yet was seen nowhere: its lines hold the largest number.
        lines.iter().filter_map(|line| line.thread_cpus.get(thread).copied().filter(|cpu| *cpu != u32::MAX)).collect();
    cpus.sort_unstable();
    cpus.dedup();
    cpus
}

/// Rate of each step between neighbouring lines: `(seconds since the first line, per second)`.
pub fn rates(lines: &[Line]) -> Vec<(f64, f64)> {
    let Some(first) = lines.first() else { return Vec::new() };
    lines
        .windows(2)
        .filter(|pair| pair[1].t_ns > pair[0].t_ns)
        .map(|pair| {
            let seconds = (pair[1].t_ns - pair[0].t_ns) as f64 / 1e9;
            let at = (pair[1].t_ns - first.t_ns) as f64 / 1e9;
            (at, pair[1].done.saturating_sub(pair[0].done) as f64 / seconds)
        })
        .collect()
}

/// Mean and maximum of a socket's queue inside the window, and the number of samples.
pub fn queue(lines: &[Line], socket: usize, window_ns: [u64; 2]) -> (f64, u64, u64) {
    let seen = inside(lines, window_ns);
    let seen: Vec<u64> =
        seen.filter_map(|line| line.socket_rmem_bytes.get(socket).copied()).collect();
    let samples = seen.len() as u64;
    let mean = if samples == 0 { 0.0 } else { seen.iter().sum::<u64>() as f64 / samples as f64 };
    (mean, seen.iter().copied().max().unwrap_or(0), samples)
}

/// The longest time between neighbouring lines in which nothing was read although datagrams waited.
///
/// `None` when no line shows it: stalls shorter than the distance of two lines are not seen.
pub fn longest_stall_s(lines: &[Line], window_ns: [u64; 2]) -> Option<f64> {
    let waiting = |line: &Line| line.socket_rmem_bytes.iter().any(|bytes| *bytes > 0);
    let mut longest = 0u64;
    let mut since: Option<&Line> = None;
    for line in inside(lines, window_ns) {
        since = since.filter(|first| first.done == line.done && waiting(line));
        longest = longest.max(since.map_or(0, |first| line.t_ns - first.t_ns));
        since = since.or(Some(line).filter(|line| waiting(line)));
    }
    (longest > 0).then_some(longest as f64 / 1e9)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn line(t_ns: u64, packets: u64, cpu: u32) -> Line {
        Line {
            t_ns,
            done: packets,
            thread_done: vec![packets],
            thread_cpus: vec![cpu],
            socket_rmem_bytes: vec![packets % 7],
            ..Line::default()
        }
    }

    #[test]
    fn a_late_line_does_not_change_the_rate() {
        // 1000 per second; the second line came 30 ms late and says so.
        let lines = [line(0, 0, 1), line(130_000_000, 130, 1), line(200_000_000, 200, 0)];
        let got = span(&lines, [0, 200_000_000]).unwrap();
        assert!((got.per_second(got.done) - 1000.0).abs() < 1e-9);
        assert_eq!(got.thread_cpus, [vec![0, 1]]);
        let idle = [line(0, 0, u32::MAX), line(100_000_000, 0, u32::MAX)];
        assert_eq!(span(&idle, [0, 100_000_000]).unwrap().thread_cpus, [Vec::<u32>::new()]);
        assert_eq!(
            rates(&lines).iter().map(|(_, rate)| rate.round()).collect::<Vec<_>>(),
            [1000.0, 1000.0]
        );
    }

    #[test]
    fn one_line_is_no_span() {
        assert_eq!(span(&[line(5, 1, 0)], [0, 10]), None);
        assert_eq!(span(&[], [0, 10]), None);
    }

    #[test]
    fn a_stall_needs_waiting_datagrams_and_no_reading() {
        let at = |t_ns, packets, rmem: u64| Line {
            socket_rmem_bytes: vec![rmem],
            ..line(t_ns, packets, 0)
        };
        let ms = 1_000_000;
        let lines = [
            at(0, 1, 9),
            at(50 * ms, 1, 9),
            at(100 * ms, 1, 9),
            at(150 * ms, 7, 9),
            at(200 * ms, 9, 0),
            at(250 * ms, 9, 0),
        ];
        assert_eq!(longest_stall_s(&lines, [0, 250 * ms]), Some(0.1));
        assert_eq!(longest_stall_s(&lines[3..], [0, 250 * ms]), None);
    }

    proptest! {
        #[test]
        fn a_steady_rate_is_found_in_any_window(
            steps in proptest::collection::vec(1_000_000u64..90_000_000, 3..50), from in 0u64..100_000_000,
        ) {
            let mut t = 0;
            let lines: Vec<Line> = steps.iter().map(|step| { t += step; line(t, t / 1_000, 0) }).collect();
            if let Some(got) = span(&lines, [from, t]) {
                let rate = got.per_second(got.done);
                // One packet of rounding at each end.
                prop_assert!((rate - 1e6).abs() <= 1.0 / got.seconds() + 1e-6, "{rate}");
            }
        }
    }
}
