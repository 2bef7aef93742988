//! Numbers for a report: few digits, a unit, and a base for every percentage.

pub(crate) use rxpath_core::number::{grouped as count, plain};
use rxpath_record::ledger::Drop;
use rxpath_record::manifest::VariantSummary;
use rxpath_record::metric::unit;

/// A point in time to the second: an RFC 3339 text without its fraction.
pub(crate) fn instant(text: &str) -> String {
    let Some((before, after)) = text.split_once('.') else { return text.into() };
    format!("{before}{}", after.trim_start_matches(|c: char| c.is_ascii_digit()))
}

/// A rate in packets per second with at most four digits: `1.15 Mpps`, `350 kpps`, `12 pps`.
pub(crate) fn pps(value: f64) -> String {
    scaled(value, &[("Mpps", 1e6), ("kpps", 1e3), ("pps", 1.0)])
}

/// The same without the unit, for the ticks of an axis that names it.
pub(crate) fn short(value: f64) -> String {
    scaled(value, &[("G", 1e9), ("M", 1e6), ("k", 1e3), ("", 1.0)]).replace(' ', "")
}

/// A size in binary units: `208 KiB`.
pub(crate) fn bytes(value: f64) -> String {
    scaled(value, &[("GiB", 1_073_741_824.0), ("MiB", 1_048_576.0), ("KiB", 1024.0), ("B", 1.0)])
}

/// A span of seconds: `1.2 s`, `350 ms`.
pub(crate) fn seconds(value: f64) -> String {
    scaled(value, &[("s", 1.0), ("ms", 1e-3), ("µs", 1e-6), ("ns", 1e-9)])
}

/// The same with a sign (a true minus) where it is negative.
pub(crate) fn signed(value: i64) -> String {
    let digits = count(value.unsigned_abs());
    if value < 0 { format!("\u{2212}{digits}") } else { digits }
}

/// `part` of `base` in percent; a loss above zero never prints as `0 %`, and a loss below all never as `100 %`.
pub(crate) fn percent(part: f64, base: f64) -> String {
    if base <= 0.0 || !part.is_finite() {
        return "–".into();
    }
    let value = part / base * 100.0;
    if part == 0.0 {
        "0 %".into()
    } else if (part - base).abs() < f64::EPSILON {
        "100 %".into()
    } else if value < 0.01 && value > 0.0 {
        "< 0.01 %".into()
    } else if value < 100.0 && value > 99.99 {
        "> 99.99 %".into()
    } else {
        let is_fine = value < 1.0 || value > 99.0 && value < 100.0;
        rxpath_core::number::percent(part / base, if is_fine { 2 } else { 1 })
    }
}

/// A loss with its bounds, and as a share of what was offered: `–` where the bounds are not as good as one number.
pub(crate) fn loss(drop: &Drop, offered_packets: u64) -> (String, String) {
    let range = drop.range();
    let share = range.share_ratio(drop.packets, offered_packets);
    let share = share.map_or_else(|| "–".into(), |ratio| percent(ratio, 1.0));
    (range.around(drop.packets, offered_packets), share)
}

/// A metric, with the unit from the end of its name.
pub(crate) fn metric(name: &str, value: f64) -> String {
    if !value.is_finite() {
        return "–".into();
    }
    let ends = |suffix: &str| name.ends_with(suffix);
    let is_rate = ends("_pps") || ends("_rps") || ends("_tps");
    if is_rate && !unit(name).is_empty() {
        format!("{} {}", short(value), unit(name))
    } else if ends("_pps") {
        pps(value)
    } else if ends("_us_per_request") || ends("_us_per_transaction") {
        format!("{} µs", plain(value))
    } else if ends("_ns_per_kib") || ends("_ns_per_packet") {
        format!("{} ns", plain(value))
    } else if ends("_s_per_gbit") || ends("_s_per_mpacket") {
        seconds(value)
    } else if ends("_ratio") {
        percent(value, 1.0)
    } else if ends("_bps") {
        scaled(value, &[("Gb/s", 1e9), ("Mb/s", 1e6), ("kb/s", 1e3), ("b/s", 1.0)])
    } else if ends("_bytes") {
        bytes(value)
    } else if ends("_ns") {
        seconds(value * 1e-9)
    } else if ends("_us") {
        seconds(value * 1e-6)
    } else if ends("_s") {
        seconds(value)
    } else if value.fract() == 0.0 && value.abs() < 1e15 {
        signed(value as i64)
    } else {
        plain(value)
    }
}

/// The median of a variant's metric; `–` where it has none.
pub(crate) fn median(variant: &VariantSummary, name: &str) -> String {
    variant.metrics.get(name).map_or_else(|| "–".into(), |of| metric(name, of.median))
}

/// From one value of a metric to another.
pub(crate) fn between(name: &str, [low, high]: [f64; 2]) -> String {
    format!("{} … {}", metric(name, low), metric(name, high))
}

/// The largest unit in which the rounded value is at least 1; zero has the base unit, the smallest unit takes the rest.
fn scaled(value: f64, units: &[(&str, f64)]) -> String {
    if !value.is_finite() {
        return "–".into();
    }
    let rounded = |factor: f64| plain(value / factor).parse::<f64>().map_or(0.0, f64::abs);
    let base = |(_, factor): &&(&str, f64)| factor.to_bits() == 1f64.to_bits();
    let fits = |(_, factor): &&(&str, f64)| rounded(*factor) >= 1.0;
    let rest = if value == 0.0 { units.iter().find(base) } else { units.last() };
    match units.iter().find(fits).or(rest) {
        Some((unit, factor)) => format!("{} {unit}", plain(value / factor)),
        None => plain(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_in_time_has_no_nanoseconds() {
        assert_eq!(instant("2026-11-23T01:02:03.123456789Z"), "2026-11-23T01:02:03Z");
        assert_eq!(instant("2026-11-23T01:02:03Z"), "2026-11-23T01:02:03Z");
    }

    #[test]
    fn rates_carry_their_unit() {
        assert_eq!(pps(1_147_000.0), "1.15 Mpps");
        assert_eq!(pps(349_600.0), "350 kpps");
        assert_eq!(pps(999_900.0), "1 Mpps");
        assert_eq!(pps(0.0), "0 pps");
        assert_eq!(pps(f64::NAN), "–");
    }

    #[test]
    fn a_small_loss_is_not_none() {
        assert_eq!(percent(1.0, 1e9), "< 0.01 %");
        assert_eq!(percent(0.0, 1e9), "0 %");
        assert_eq!(percent(1e9 - 1.0, 1e9), "> 99.99 %");
        assert_eq!(percent(1.0, 1.0), "100 %");
        assert_eq!(percent(1.0, 0.0), "–");
        assert_eq!(percent(0.355, 1.0), "35.5 %");
    }

    #[test]
    fn whole_numbers_are_count() {
        assert_eq!(signed(-1000), "\u{2212}1,000");
    }

    #[test]
    fn the_name_of_a_metric_gives_the_unit() {
        assert_eq!(metric("delivered_pps", 1e6), "1M datagrams/s");
        assert_eq!(metric("achieved_rps", 8_920.0), "8.92k requests/s");
        assert_eq!(metric("polls_pps", 1e6), "1 Mpps", "a rate that has no unit of its own");
        assert_eq!(metric("loss_ratio", 0.25), "25.0 %");
        assert_eq!(metric("receiver_cpu_ns_per_packet", 812.4), "812 ns");
        assert_eq!(metric("wait_us", 1500.0), "1.5 ms");
        assert_eq!(metric("anything", 3.0), "3");
    }

    #[test]
    fn spans_and_sizes_scale() {
        assert_eq!(seconds(0.35), "350 ms");
        assert_eq!(seconds(0.0), "0 s");
        assert_eq!(bytes(212_992.0), "208 KiB");
        assert_eq!(short(1_500_000.0), "1.5M");
        assert_eq!(short(0.0), "0");
    }
}
