//! Slices of real traffic as the search asks for them: settings on, a moment to settle, then what the traffic does.

use std::time::{Duration, Instant};

use rxpath_host::write::setter::HostSetter;
use rxpath_record::watch::TrafficSlice;
use rxpath_stats::quantile::median;
use rxpath_tune::auto::{Broke, Measure, Phase, TrialReading};
use rxpath_tune::switch::SettingsSwitch;

use super::Times;
use super::answer::{Breach, LiveAnswer, SliceOf, VoidSlice};
use super::host::{Host, InitialSettings};
use super::limits::{Broken, Limits};
use super::meter::Meter;
use super::stop::Stop;
use crate::search::searched::Searched;

/// A slice with less of the usual load says nothing of the settings.
const LEAST_LOAD: f64 = 0.5;
/// Slices in a row without enough load, after which there is nothing to search on.
const MOST_VOID: usize = 10;
/// A candidate alone is measured over this share of a slice.
const SHORT: u32 = 2;
/// How long traffic may take to recover once the settings are off: TCP sends again after its timeout, which doubles.
const RECOVERY: Duration = Duration::from_secs(5);
/// Glances in a row within all limits that show it.
const CALM: usize = 2;

/// This host's traffic as the search sees it.
pub struct Slices<'a> {
    /// Reads the traffic.
    pub meter: Meter<'a>,
    /// Makes the settings.
    pub switch: SettingsSwitch<HostSetter>,
    /// This host.
    pub host: &'a Host<'a>,
    /// Its settings as they were at the start.
    pub base: InitialSettings,
    /// What is searched.
    pub searched: Searched<'a>,
    /// Of a slice.
    pub times: Times,
    /// What no glance may exceed.
    pub limits: Limits,
    /// What was seen so far.
    pub answer: LiveAnswer,
    /// Says something to the user.
    pub say: &'a dyn Fn(&str),
}

/// How a slice ended.
enum Ended {
    /// By itself.
    Whole(TrafficSlice, f64),
    /// A limit was broken with the settings on, and holds without them.
    Broken(TrafficSlice, Broken),
    /// It says nothing of the settings: why.
    Void(String),
}

impl Slices<'_> {
    /// Measures with what is on now.
    fn watch(&mut self, on: &[usize], phase: Phase) -> Result<Ended, Stop> {
        let glance = self.times.glance();
        let measured = if phase == Phase::Alone { SHORT } else { 1 };
        let settling = glances(self.times.settle, glance);
        let count = settling + glances(self.times.slice / measured, glance);
        let (mut slice, mut device_pps) = (TrafficSlice::default(), 0.0);
        self.limits.reset();
        self.meter.begin()?;
        let mut begun = Instant::now();
        for number in 0..count {
            let seen = self.meter.glance(glance)?;
            if phase == Phase::Start {
                self.limits.learn(&seen);
            } else if let Some(broken) = self.limits.broken(&seen) {
                return self.broken(on, slice, (broken, begun));
            }
            // Two glances break a limit: the first of them began here.
            begun = Instant::now().checked_sub(glance).unwrap_or(begun);
            if number >= settling {
                device_pps += seen.device_pps / (count - settling) as f64;
                slice.join(&seen.slice);
            }
        }
        Ok(Ended::Whole(slice, device_pps))
    }

    /// Takes the settings off at once, and looks whether that mends it.
    fn broken(
        &mut self,
        on: &[usize],
        slice: TrafficSlice,
        (broken, begun): (Broken, Instant),
    ) -> Result<Ended, Stop> {
        self.switch.base()?;
        let undone_after_s = begun.elapsed().as_secs_f64();
        self.limits.reset();
        self.meter.begin()?;
        let (mut calm, mut is_cut) = (0, false);
        for _ in 0..glances(RECOVERY, self.times.glance()) {
            let seen = self.meter.glance(self.times.glance())?;
            is_cut = seen.session_cut.is_some();
            calm = if self.limits.is_within(&seen) { calm + 1 } else { 0 };
            if calm == CALM {
                break;
            }
        }
        let by_settings = is_by_settings(on, calm);
        self.answer.breaches.push(Breach {
            on: self.searched.names(on),
            limit: broken.limit.clone(),
            undone_after_s,
            by_settings,
        });
        // A search that is cut off can end nothing any more: nothing is set again.
        if is_cut && !on.is_empty() {
            return Err(Stop::Cut(broken.limit));
        }
        Ok(if by_settings { Ended::Broken(slice, broken) } else { Ended::Void(broken.limit) })
    }

    /// Switches to exactly these candidates; in words why they can't be made.
    fn to(&mut self, on: &[usize]) -> Result<Result<(), String>, Stop> {
        self.switch.base()?;
        let steps = self.host.steps(&self.base, &self.searched.sets(on))?;
        let is_slow = on.iter().any(|at| self.searched.candidates[*at].risk.is_slow());
        let rounded = match self.switch.to(&steps, self.times.hold(is_slow))? {
            Ok(rounded) => rounded,
            Err(why) => return Ok(Err(why)),
        };
        for change in rounded {
            if !self.answer.rounded.contains(&change) {
                self.answer.rounded.push(change);
            }
        }
        Ok(Ok(()))
    }

    fn reading(&self, slice: &TrafficSlice) -> Option<TrialReading> {
        // What the traffic brings is not up to the settings; what of it gets through is.
        self.searched.reading(&slice.metrics(), 1.0 - slice.loss_ratio())
    }

    fn void(&mut self, on: &[usize], why: String) {
        let void = VoidSlice { on: self.searched.names(on), why };
        self.answer.void.push(void);
    }

    /// What a slice says, or why it says nothing.
    fn said(&mut self, slice: &TrafficSlice, device_pps: f64) -> Result<TrialReading, String> {
        let usual = median(&self.answer.loads_pps).unwrap_or(device_pps);
        if device_pps < LEAST_LOAD * usual {
            return Err(format!("{device_pps:.0} packets/s came, {usual:.0} are usual"));
        }
        let reading = self.reading(slice);
        let reading = reading
            .ok_or_else(|| format!("{} was not measured", self.searched.objective.metric))?;
        self.answer.loads_pps.push(device_pps);
        Ok(reading)
    }
}

impl Measure for Slices<'_> {
    type Error = Stop;

    fn trial(&mut self, on: &[usize], phase: Phase, block: usize) -> Result<TrialReading, Stop> {
        let mut is_repeated = false;
        for _ in 0..MOST_VOID {
            if let Err(why) = self.to(on)? {
                return match phase {
                    Phase::Alone | Phase::Slow | Phase::Repair => Ok(TrialReading {
                        broke: Some(Broke::Refused(why)),
                        ..TrialReading::default()
                    }),
                    _ => Err(Stop::NotTogether { names: self.searched.names(on).join(", "), why }),
                };
            }
            match self.watch(on, phase)? {
                // Another program may have disturbed one slice. What stops traffic is not tried again.
                Ended::Broken(_, broken) if !is_repeated && !broken.is_stop => is_repeated = true,
                Ended::Broken(slice, Broken { limit, is_stop }) => {
                    let reading = self.reading(&slice).unwrap_or_default();
                    let broke = if is_stop { Broke::Stopped(limit) } else { Broke::Limit(limit) };
                    return Ok(TrialReading { broke: Some(broke), ..reading });
                }
                Ended::Whole(slice, device_pps) => match self.said(&slice, device_pps) {
                    Ok(reading) => {
                        let (on, metrics) = (self.searched.names(on), slice.metrics());
                        self.answer.slices.push(SliceOf { phase, block, on, metrics });
                        return Ok(reading);
                    }
                    Err(why) => self.void(on, why),
                },
                Ended::Void(limit) => self.void(on, limit),
            }
        }
        let why = self.answer.void.pop().map(|void| void.why).unwrap_or_default();
        Err(Stop::Idle { slices: MOST_VOID, why })
    }

    fn left(&self) -> usize {
        self.searched.trials_left(self.times.full())
    }

    fn step(&mut self, text: &str) {
        (self.say)(&self.searched.step(text));
    }
}

/// Settings broke the limit if some were on and it holds again without them.
fn is_by_settings(on: &[usize], calm: usize) -> bool {
    !on.is_empty() && calm == CALM
}

fn glances(time: Duration, glance: Duration) -> usize {
    (time.as_secs_f64() / glance.as_secs_f64()).round().max(0.0) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_on_can_have_broken_a_limit() {
        assert!(is_by_settings(&[0], CALM));
        assert!(!is_by_settings(&[0], CALM - 1), "it is broken without as well");
        assert!(!is_by_settings(&[], CALM), "nothing was on");
    }
}
