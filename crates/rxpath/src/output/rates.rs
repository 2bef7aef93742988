//! The line per second of a running workload, from its cumulative counters.

pub use rxpath_core::number::grouped;
use rxpath_load::engine::clock;
use rxpath_load::workload::CounterReading;

/// Turns counters into the line per second; `None` while there is nothing to report.
pub type Rows<I> = Box<dyn FnMut(&I) -> Option<String>>;

/// A column: its heading, the width of both, and its value.
pub type RateColumn = (&'static str, usize, String);

/// Rows between two headings.
const PAGE: u32 = 20;

/// Two readings of counters.
#[derive(Clone, Copy, Debug)]
pub struct CounterDelta<'a, I> {
    /// The later one.
    pub now: &'a I,
    /// The earlier one; all zero at the first row.
    pub before: &'a I,
    /// Seconds between them, above 0.
    pub span_s: f64,
}

impl<I> CounterDelta<'_, I> {
    /// How much a counter grew.
    pub fn delta(&self, of: impl Fn(&I) -> u64) -> u64 {
        of(self.now) - of(self.before)
    }

    /// The same per second.
    pub fn per_s(&self, of: impl Fn(&I) -> u64) -> f64 {
        self.delta(of) as f64 / self.span_s
    }

    /// The same as text: `1,234`.
    pub fn rate(&self, of: impl Fn(&I) -> u64) -> String {
        grouped(self.per_s(of).round() as u64)
    }

    /// MiB per second of a counter of bytes, as text.
    pub fn mib_per_s(&self, of: impl Fn(&I) -> u64) -> String {
        format!("{:.2}", self.per_s(of) / 1_048_576.0)
    }

    /// A line for each thread or socket: the rate of its counter.
    pub fn parts(&self, name: &str, of: impl Fn(&I) -> &[u64]) -> String {
        let part = |index: usize| {
            let rate = self.rate(|counters| of(counters).get(index).copied().unwrap_or(0));
            format!("{name:>14} {index}: {rate:>9}/s\n")
        };
        (0..of(self.now).len()).map(part).collect()
    }
}

/// Turns readings into rows: the time since now and the columns of two readings; with `split` their parts below. Each heading
/// is followed by `units`.
pub fn rows<I: CounterReading + Clone + Default + 'static>(
    units: &'static str,
    columns: impl Fn(&CounterDelta<'_, I>) -> Vec<RateColumn> + 'static,
    split: bool,
    parts: fn(&CounterDelta<'_, I>) -> String,
) -> Rows<I> {
    let start_ns = clock::now_ns();
    let (mut before, mut before_ns, mut printed) = (I::default(), start_ns, 0u32);
    Box::new(move |now| {
        let span_s = now.t_ns().saturating_sub(before_ns) as f64 / 1e9;
        if span_s <= 0.0 {
            return None;
        }
        let between = CounterDelta { now, before: &before, span_s };
        let time_s = now.t_ns().saturating_sub(start_ns) as f64 / 1e9;
        let (mut heading, mut row) = (format!("{:>8}", "s"), format!("{time_s:>8.1}"));
        for (title, width, value) in columns(&between) {
            heading += &format!("  {title:>width$}");
            row += &format!("  {value:>width$}");
        }
        let is_first = printed.is_multiple_of(PAGE);
        let heading = if is_first { format!("{heading}\n{units}") } else { String::new() };
        printed += 1;
        let parts = if split { parts(&between) } else { String::new() };
        (before, before_ns) = (now.clone(), now.t_ns());
        Some(format!("{heading}{}\n{parts}", row.trim_end()))
    })
}
