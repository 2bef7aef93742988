//! The counters on pages of an exporter, none of which may fall.

use std::collections::BTreeMap;

/// The counters of a page by series, those of histograms included.
pub fn counters(page: &str) -> BTreeMap<String, f64> {
    let is_counter = |series: &str| {
        let name = series.split('{').next().unwrap_or_default();
        ["_total", "_bucket", "_sum", "_count"].iter().any(|end| name.ends_with(end))
    };
    let lines = page.lines().filter(|line| line.starts_with("rxpath_"));
    let pairs = lines.filter_map(|line| line.rsplit_once(' '));
    pairs
        .filter(|(series, _)| is_counter(series))
        .map(|(series, value)| (series.to_owned(), value.parse().unwrap()))
        .collect()
}

/// Raises the highest value of each counter to that of a page. Fails if a counter is below it, also where it was not on some
/// pages between. A series loses its place, and begins at 0 again, only after 15 minutes.
pub fn raise(highest: &mut BTreeMap<String, f64>, page: &BTreeMap<String, f64>, what: &str) {
    for (series, value) in page {
        let highest = highest.entry(series.clone()).or_insert(*value);
        assert!(*value >= *highest, "{series}: {highest} to {value} ({what})");
        *highest = *value;
    }
}
