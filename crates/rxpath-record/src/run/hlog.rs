//! A histogram as a log of one interval that the tools of the HdrHistogram project read.
//!
//! **Source** HdrHistogram's `HistogramLogWriter`, log format 1.3: `Tag=NAME,start_s,length_s,max,base64`. Values are
//! nanoseconds; the largest is given in milliseconds, as the tools expect it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rxpath_stats::histogram::Histogram;

/// The log. Start and length are those of the measured window; the values are of the whole trial.
///
/// # Errors
/// When the histogram is not one: its largest value is then unknown.
pub fn text(tag: &str, window_ns: [u64; 2], hdr_v2_base64: &str) -> Result<String, String> {
    let [from, to] = window_ns;
    let seconds = |ns: u64| ns as f64 / 1e9;
    let v2 = STANDARD.decode(hdr_v2_base64).map_err(|error| error.to_string())?;
    let max_ms = Histogram::from_v2(&v2).map_err(|error| error.to_string())?.max_ns() as f64 / 1e6;
    Ok(format!(
        "#[rxpath: values in ns, start in seconds of CLOCK_MONOTONIC]\n#[Histogram log format version 1.3]\n\
         \"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"\n\
         Tag={tag},{:.3},{:.3},{max_ms:.6},{hdr_v2_base64}\n",
        seconds(from),
        seconds(to.saturating_sub(from)),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_is_one_tagged_line_under_its_head() {
        let mut times = Histogram::of_times();
        times.record(2_500_000);
        times.record(1_000);
        let v2 = STANDARD.encode(times.to_v2().unwrap());
        let window = [1_500_000_000, 4_500_000_000];
        let log = text("trial0-load-service-time", window, &v2).unwrap();
        let line = log.lines().last().unwrap();
        let fields: Vec<&str> = line.split(',').collect();
        assert_eq!(fields[..3], ["Tag=trial0-load-service-time", "1.500", "3.000"]);
        let max_ms: f64 = fields[3].parse().unwrap();
        assert!((max_ms - 2.5).abs() < 0.005, "{line}");
        assert_eq!(fields[4], v2);
        assert!(text("trial0-load-service-time", window, "HISTFAAA").is_err());
    }
}
