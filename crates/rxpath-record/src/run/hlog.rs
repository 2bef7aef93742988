//! Histograms as a log of intervals that the tools of the HdrHistogram project read.
//!
//! **Source** HdrHistogram's `HistogramLogWriter`, log format 1.3: `Tag=NAME,start_s,length_s,max,base64`. Values are
//! nanoseconds; the largest is given in milliseconds, as the tools expect it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rxpath_stats::histogram::Histogram;

/// The log: a line for each span of time in ns with its histogram in base64. A single histogram of a whole trial has the
/// span of the measured window.
///
/// # Errors
/// When a histogram is not one: its largest value is then unknown.
pub fn text<'a>(
    tag: &str,
    spans: impl IntoIterator<Item = ([u64; 2], &'a str)>,
) -> Result<String, String> {
    let mut text = String::from(
        "#[rxpath: values in ns, start in seconds of CLOCK_MONOTONIC]\n#[Histogram log format version 1.3]\n\
         \"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"\n",
    );
    let seconds = |ns: u64| ns as f64 / 1e9;
    for ([from, to], hdr_v2_base64) in spans {
        let max_ms = decoded(hdr_v2_base64)?.max_ns() as f64 / 1e6;
        let (start, length) = (seconds(from), seconds(to.saturating_sub(from)));
        text += &format!("Tag={tag},{start:.3},{length:.3},{max_ms:.6},{hdr_v2_base64}\n");
    }
    Ok(text)
}

/// A histogram from base64.
///
/// # Errors
/// When it is none.
pub fn decoded(hdr_v2_base64: &str) -> Result<Histogram, String> {
    let v2 = STANDARD.decode(hdr_v2_base64).map_err(|error| error.to_string())?;
    Histogram::from_v2(&v2).map_err(|error| error.to_string())
}

/// The base64 of a histogram; `None` where it is too large for its form.
pub fn encoded(times: &Histogram) -> Option<String> {
    times.to_v2().ok().map(|v2| STANDARD.encode(v2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_is_one_tagged_line_under_its_head() {
        let mut times = Histogram::of_times();
        times.record(2_500_000);
        times.record(1_000);
        let v2 = encoded(&times).unwrap();
        let window = [1_500_000_000, 4_500_000_000];
        let log = text("trial0-load-service-time", [(window, v2.as_str())]).unwrap();
        let line = log.lines().last().unwrap();
        let fields: Vec<&str> = line.split(',').collect();
        assert_eq!(fields[..3], ["Tag=trial0-load-service-time", "1.500", "3.000"]);
        let max_ms: f64 = fields[3].parse().unwrap();
        assert!((max_ms - 2.5).abs() < 0.005, "{line}");
        assert_eq!(fields[4], v2);
        assert!(text("trial0-load-service-time", [(window, "HISTFAAA")]).is_err());
    }
}
