//! What makes a window worthless whatever it measured: a clock that was slewed in it or just before, an instant that was missed.

use std::sync::atomic::Ordering;
use std::time::Duration;

use rxpath_core::{Warning, ntp};
use rxpath_host::Root;
use rxpath_host::read::clock::ClockReading;

use super::clock::DRIFT_PPM;
use crate::stoppable::Stoppable;

/// Time from reading to reading of the clock's pace.
const EACH: Duration = Duration::from_millis(100);
/// From this unevenness on a clock is worth a warning. **Unit** ppm of the part of the trial.
const NOTED_PPM: f64 = 100.0;
/// What begins so much after the window's begin, or a tenth of the window after it, is late: a connection takes no line, or others
/// have the CPU. Then it measures noticeably less than others.
const LATE: Duration = Duration::from_millis(20);

/// The pace of this host's clock from the order to start to the end of the window, read ten times a second: a slew that reverts
/// cannot be seen at the ends.
pub struct Paces {
    readings: Vec<ClockReading>,
    /// Index of the first one in the window.
    window: usize,
    /// Which programs correct the clock. Asked only for a clock that did not keep its pace: it reads the names of all processes.
    daemons: fn() -> Option<String>,
}

/// Programs that correct the clock of this host.
fn daemons() -> Option<String> {
    ntp::in_words(&rxpath_host::read::ntp::daemons(&Root::host())?)
}

impl Paces {
    /// The first reading.
    pub fn begin() -> Self {
        Self { readings: vec![ClockReading::now()], window: 0, daemons }
    }

    /// One more reading.
    pub fn read(&mut self) {
        self.readings.push(ClockReading::now());
    }

    /// One more reading, if the last one is old enough.
    pub fn note(&mut self) {
        let now = ClockReading::now();
        let last_ns = self.readings.last().map_or(0, |last| last.raw_ns);
        if now.raw_ns.saturating_sub(last_ns) >= EACH.as_nanos() as u64 {
            self.readings.push(now);
        }
    }

    /// The readings of each part of the trial, and its name. The first one of the window ends ramp and settle.
    fn parts(&self) -> [(&[ClockReading], &'static str); 2] {
        let ramp = self.readings.get(..=self.window).unwrap_or_default();
        let window = self.readings.get(self.window..).unwrap_or_default();
        [(ramp, "in ramp and settle"), (window, "in the window")]
    }

    /// A clock that did not keep its pace, in words, with the programs that correct it.
    pub fn faults(&self) -> Vec<String> {
        let parts = self.parts().into_iter();
        let found: Vec<String> =
            parts.flat_map(|(readings, when)| faults_of(readings, when)).collect();
        let daemons = if found.is_empty() { None } else { (self.daemons)() };
        match daemons {
            Some(daemons) => found.iter().map(|fault| format!("{fault} ({daemons})")).collect(),
            None => found,
        }
    }

    /// A clock that was slewed less than that: of each part.
    pub fn warnings(&self) -> Vec<Warning> {
        let warning = |(readings, when): (&[ClockReading], &str)| {
            let (off_ns, off_ppm) = unevenness(readings);
            let text = format!(
                "its clock was up to {:.2} ms off an even pace {when}, {off_ppm:.0} ppm of it",
                off_ns / 1e6
            );
            (NOTED_PPM < off_ppm && off_ppm <= DRIFT_PPM as f64).then(|| {
                let by = (self.daemons)().unwrap_or_else(|| "NTP".to_owned());
                Warning::new("clock-slewed", text).because(format!("corrected by {by}"))
            })
        };
        self.parts().into_iter().filter_map(warning).collect()
    }

    /// How far the clock may have been from an even pace at a reading, with what the readings may be wrong: for a bound.
    /// **Unit** ns.
    pub fn uneven_ns(&self) -> u64 {
        farthest(&self.readings, 1.0).0.ceil() as u64
    }
}

/// What a clock did in a part of the trial, if it did not keep its pace.
fn faults_of(readings: &[ClockReading], when: &str) -> Vec<String> {
    let ends = readings.first().zip(readings.last());
    let slewed_ppm = ends.map_or(0.0, |(begin, end)| end.ahead_ppm(*begin));
    let slewed = (slewed_ppm.abs() > DRIFT_PPM as f64).then(|| {
        let way = if slewed_ppm < 0.0 { "slowed down" } else { "sped up" };
        format!("its clock was {way} by {:.0} ppm {when}", slewed_ppm.abs())
    });
    let (off_ns, off_ppm) = unevenness(readings);
    let uneven = (off_ppm > DRIFT_PPM as f64)
        .then(|| format!("its clock was up to {:.1} ms off an even pace {when}", off_ns / 1e6));
    slewed.into_iter().chain(uneven).collect()
}

/// How far the clock was from an even pace for certain: less what the readings may be wrong. In ns, and in parts per million of
/// the time between the ends.
fn unevenness(readings: &[ClockReading]) -> (f64, f64) {
    let (off_ns, span_ns) = farthest(readings, -1.0);
    (off_ns, if span_ns > 0.0 { off_ns / span_ns * 1e6 } else { 0.0 })
}

/// The largest distance from the line between the two ends, with so many times what the readings may be wrong; and the time
/// between the ends. **Unit** ns.
fn farthest(readings: &[ClockReading], errors: f64) -> (f64, f64) {
    let Some((first, last)) = readings.first().zip(readings.last()) else { return (0.0, 0.0) };
    let raw = |pace: &ClockReading| pace.raw_ns.saturating_sub(first.raw_ns) as f64;
    let ahead = |pace: &ClockReading| {
        let ran = pace.monotonic_ns.wrapping_sub(first.monotonic_ns) as i64 as f64;
        ran - raw(pace)
    };
    let span_ns = raw(last);
    if span_ns <= 0.0 {
        return (0.0, 0.0);
    }
    let off = |pace: &ClockReading| {
        let within_ns = pace.within_ns + first.within_ns + last.within_ns;
        let line = ahead(last) * raw(pace) / span_ns;
        (ahead(pace) - line).abs() + errors * within_ns as f64
    };
    (readings.iter().map(off).fold(0.0, f64::max), span_ns)
}

/// Reads the pace of this host's clock from the order to start on, until the window begins.
pub struct PaceReader(Stoppable<Paces>);

impl PaceReader {
    /// With the first reading.
    pub fn start() -> Self {
        let mut paces = Paces::begin();
        Self(Stoppable::start(move |stop| {
            while !stop.load(Ordering::Relaxed) {
                std::thread::park_timeout(EACH);
                paces.read();
            }
            paces
        }))
    }

    /// What it read, and the first reading of the window.
    pub fn into_window(mut self) -> Paces {
        let mut paces = self.0.end().unwrap_or_else(Paces::begin);
        // What was read before is of ramp and settle.
        paces.window = paces.readings.len();
        paces.read();
        paces
    }
}

/// A begin of a window that had passed when the host was ready for it, in words.
pub fn missed(who: &str, from_ns: u64, ready_ns: u64) -> Option<String> {
    let late = Duration::from_nanos(ready_ns.saturating_sub(from_ns));
    (!late.is_zero()).then(|| {
        format!("{who} missed the begin of its window by {:.1} ms", late.as_secs_f64() * 1e3)
    })
}

/// Whether what began at an instant began too late for a window.
pub fn is_late([from_ns, to_ns]: [u64; 2], began_ns: u64) -> bool {
    let late_ns = (LATE.as_nanos() as u64).max(to_ns.saturating_sub(from_ns) / 10);
    began_ns.saturating_sub(from_ns) > late_ns
}

/// An observer that began too late for a window, in words.
pub fn late(who: &str, window_ns: [u64; 2], began_ns: u64) -> Option<String> {
    missed(who, window_ns[0], began_ns).filter(|_| is_late(window_ns, began_ns))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Readings of a second, whose clock is ahead of an even pace by these times. **Unit** ns.
    fn paces(ahead_ns: &[i64]) -> Paces {
        let step_ns = 1_000_000_000 / (ahead_ns.len() as u64 - 1);
        let at = |(step, ahead_ns): (u64, &i64)| ClockReading {
            monotonic_ns: (9_000_000_000 + step * step_ns).saturating_add_signed(*ahead_ns),
            raw_ns: 8_000_000_000 + step * step_ns,
            within_ns: 0,
        };
        Paces { readings: (0..).zip(ahead_ns).map(at).collect(), window: 0, daemons: || None }
    }

    #[test]
    fn a_clock_that_is_slewed_is_a_fault() {
        // 500 ppm is what the kernel gives a clock that runs wrong by itself.
        for even in [[0, 250_000, 500_000], [0, -250_000, -500_000]] {
            assert!(paces(&even).faults().is_empty() && paces(&even).warnings().is_empty());
        }
        let sped_up = paces(&[0, 1_050_000, 2_100_000]).faults();
        assert_eq!(sped_up, ["its clock was sped up by 2100 ppm in the window"]);
        let slowed_down = paces(&[0, -1_050_000, -2_100_000]).faults();
        assert_eq!(slowed_down, ["its clock was slowed down by 2100 ppm in the window"]);
    }

    #[test]
    fn what_corrects_the_clock_is_named() {
        let by_chronyd =
            |ahead_ns: &[i64]| Paces { daemons: || Some("chronyd".to_owned()), ..paces(ahead_ns) };
        let sped_up = by_chronyd(&[0, 1_050_000, 2_100_000]).faults();
        assert_eq!(sped_up, ["its clock was sped up by 2100 ppm in the window (chronyd)"]);
        let warning = by_chronyd(&[0, 0, 300_000, 0, 0]).warnings().remove(0).to_string();
        assert!(warning.contains("(corrected by chronyd)"), "{warning}");
        let warning = paces(&[0, 0, 300_000, 0, 0]).warnings().remove(0).to_string();
        assert!(warning.contains("(corrected by NTP)"), "{warning}");
    }

    #[test]
    fn a_slew_that_reverts_in_the_window_is_seen() {
        let back = paces(&[0, 1_000_000, 2_000_000, 1_000_000, 0]);
        assert_eq!(back.faults(), ["its clock was up to 2.0 ms off an even pace in the window"]);
        assert!(back.warnings().is_empty());
        let less = paces(&[0, 0, 300_000, 0, 0]);
        assert!(less.faults().is_empty());
        assert_eq!(less.uneven_ns(), 300_000);
        let said = less.warnings().remove(0);
        let text = "its clock was up to 0.30 ms off an even pace in the window, 300 ppm of it";
        assert_eq!((said.code.as_str(), said.text.as_str()), ("clock-slewed", text));
        assert!(paces(&[0, 0, 90_000, 0, 0]).warnings().is_empty());
    }

    #[test]
    fn what_readings_may_be_wrong_is_in_the_bound_and_not_in_the_fault() {
        let mut coarse = paces(&[0, 0, 601_000, 0, 0]);
        assert_eq!(coarse.faults().len(), 1);
        coarse.readings.iter_mut().for_each(|pace| pace.within_ns = 1_000);
        assert!(coarse.faults().is_empty());
        assert_eq!(coarse.uneven_ns(), 604_000);
    }

    #[test]
    fn a_slew_before_the_window_is_a_fault_of_ramp_and_settle() {
        let in_window = |window, ahead_ns: &[i64]| Paces { window, ..paces(ahead_ns) };
        let sped_up = in_window(2, &[0, 1_000_000, 2_000_000, 2_000_000, 2_000_000]);
        assert_eq!(sped_up.faults(), ["its clock was sped up by 4000 ppm in ramp and settle"]);
        let reverted = in_window(2, &[0, 500_000, 0, 0, 0]);
        let off = "its clock was up to 0.5 ms off an even pace in ramp and settle";
        assert_eq!(reverted.faults(), [off]);
        assert_eq!(reverted.uneven_ns(), 500_000, "delays go by one line from before the ramp on");
        let less = in_window(2, &[0, 100_000, 0, 0, 0]);
        let text = "its clock was up to 0.10 ms off an even pace in ramp and settle, 200 ppm of it";
        assert!(less.faults().is_empty());
        assert_eq!(less.warnings()[0].text, text);
        // One that begins with the window is the window's alone.
        let later = in_window(2, &[0, 0, 0, 1_000_000, 2_000_000]);
        assert_eq!(later.faults(), ["its clock was sped up by 4000 ppm in the window"]);
    }

    #[test]
    fn the_clock_of_this_host_is_read_from_the_order_to_start_to_the_end_of_the_window() {
        let reader = PaceReader::start();
        let armed_ns = ClockReading::now().raw_ns;
        let mut paces = reader.into_window();
        paces.note();
        paces.read();
        let of_ramp = &paces.readings[..paces.window];
        assert!(of_ramp.first().is_some_and(|first| first.raw_ns <= armed_ns), "{of_ramp:?}");
        assert!(paces.readings.len() >= paces.window + 2, "{:?}", paces.readings);
    }

    #[test]
    fn an_instant_that_had_passed_is_a_fault() {
        assert_eq!(missed("it", 9, 9), None);
        let told = missed("it", 1_000_000, 36_500_000).unwrap();
        assert_eq!(told, "it missed the begin of its window by 35.5 ms");
    }

    #[test]
    fn an_observer_is_late_by_20_ms_or_by_a_tenth_of_a_longer_window() {
        let ms = |ms: u64| 1_000_000 * ms;
        let late = |length_ms: u64, late_us: u64| {
            late("its sampler", [ms(500), ms(500 + length_ms)], ms(500) + 1_000 * late_us)
        };
        for (length_ms, late_us) in [(100, 0), (100, 20_000), (200, 20_000), (3_000, 300_000)] {
            assert_eq!(late(length_ms, late_us), None, "{length_ms} ms, {late_us} us");
        }
        let told = late(100, 20_100).unwrap();
        assert_eq!(told, "its sampler missed the begin of its window by 20.1 ms");
        assert!(late(3_000, 300_100).is_some());
    }
}
