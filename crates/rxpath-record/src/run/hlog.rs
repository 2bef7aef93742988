//! A histogram as a log of one interval that the tools of the HdrHistogram project read.
//!
//! **Source** HdrHistogram's `HistogramLogWriter`, log format 1.3: `Tag=NAME,start_s,length_s,max,base64`. Values are
//! nanoseconds; the largest is given in milliseconds, as the tools expect it.

/// The log. Start and length are those of the measured window; the values are of the whole trial.
pub fn text(tag: &str, window_ns: [u64; 2], hdr_v2_base64: &str) -> String {
    let [from, to] = window_ns;
    let seconds = |ns: u64| ns as f64 / 1e9;
    format!(
        "#[rxpath: values in ns, start in seconds of CLOCK_MONOTONIC]\n#[Histogram log format version 1.3]\n\
         \"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"\n\
         Tag={tag},{:.3},{:.3},0.0,{hdr_v2_base64}\n",
        seconds(from),
        seconds(to.saturating_sub(from)),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_is_one_tagged_line_under_its_head() {
        let log = text("trial0-load-service-time", [1_500_000_000, 4_500_000_000], "HISTFAAA");
        assert_eq!(
            log.lines().last(),
            Some("Tag=trial0-load-service-time,1.500,3.000,0.0,HISTFAAA")
        );
    }
}
