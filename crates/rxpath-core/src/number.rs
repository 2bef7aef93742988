//! Numbers as results print them: few digits, and one form for each kind of number.

use crate::Nanos;

/// A number with a comma after each three digits: `1,234,567`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// The same of a number that may be negative: `-1,234`.
pub fn signed(number: i64) -> String {
    let digits = grouped(number.unsigned_abs());
    if number < 0 { format!("-{digits}") } else { digits }
}

/// How many there are of a thing: `1 thread`, `1,200 threads`.
pub fn counted(number: u64, thing: &str) -> String {
    format!("{} {thing}{}", grouped(number), if number == 1 { "" } else { "s" })
}

/// A number in at most four digits with k, M or G.
pub fn si(value: f64) -> String {
    scaled(value, &[("G", 1e9), ("M", 1e6), ("k", 1e3)]).unwrap_or_else(|| plain(value))
}

/// A number in the largest of these units that it reaches; `None` under the smallest.
pub(crate) fn scaled(value: f64, units: &[(&str, f64)]) -> Option<String> {
    let (unit, factor) = units.iter().find(|(_, factor)| value.abs() >= *factor)?;
    Some(format!("{}{unit}", plain(value / factor)))
}

/// Three significant digits, no exponent.
pub fn plain(value: f64) -> String {
    let decimals = match value.abs() {
        v if v >= 100.0 => 0,
        v if v >= 10.0 => 1,
        v if v >= 1.0 => 2,
        _ => 3,
    };
    let text = format!("{value:.decimals$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').into() } else { text }
}

/// A ratio in percent, with so many digits after the point: `12.5 %`.
pub fn percent(ratio: f64, decimals: usize) -> String {
    format!("{:.decimals$} %", ratio * 100.0)
}

/// A span in its handiest unit: `1.9us`, `340ms`.
pub fn span(seconds: f64) -> String {
    Nanos((seconds * 1e9).round() as u64).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped_by_three() {
        let shown = [0, 999, 1_000, 1_234_567].map(grouped);
        assert_eq!(shown, ["0", "999", "1,000", "1,234,567"]);
        assert_eq!([-1_234, 1_234].map(signed), ["-1,234", "1,234"]);
        let things = [0, 1, 1_200].map(|number| counted(number, "thread"));
        assert_eq!(things, ["0 threads", "1 thread", "1,200 threads"]);
    }

    #[test]
    fn ratios_and_spans_have_their_unit() {
        assert_eq!(percent(0.0834, 1), "8.3 %");
        assert_eq!(span(0.34), "340ms");
        assert_eq!(plain(8.0), "8");
    }
}
