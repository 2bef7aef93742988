//! `rxpath capacity`: the highest rate that holds, as a lower and an upper bound.

use rxpath_core::Rate;
use rxpath_lab::run::capacity::{self, CapacityOptions};
use rxpath_lab::scenario::spec::{Protocol, Resolved};
use rxpath_record::capacity::{Capacity, SearchEnd};

use super::lab_args::LabArgs;
use super::report::write_report;
use super::run::{Ended, Ways, conduct_by, ending, without_root};
use super::scenario::{chosen, in_lab, resolved};
use super::values::duration;
use crate::cmd::prelude::*;
use crate::output::capacity::{SearchProgress, summary};

/// Time after which a search ends, unless `--time` says another.
const TIME: Nanos = Nanos::from_secs(10 * 60);
/// The same with trials of a minute.
const LONG_TIME: Nanos = Nanos::from_secs(2 * 3600);

/// Options of `rxpath capacity`.
#[derive(Debug, Args)]
pub struct CapacityCommand {
    /// What both sides speak
    protocol: Protocol,
    /// The experiment or scenario file whose lab, server and client are used; default: a plain one of the protocol
    #[arg(long, value_name = "SCENARIO")]
    scenario: Option<String>,
    /// The variant that is loaded; default: the first one that can run here
    #[arg(long, value_name = "NAME")]
    variant: Option<String>,
    /// Set a key of the scenario, for example `serve.rcvbuf=4MiB`; repeatable
    #[arg(long = "set", value_name = "KEY=VALUE")]
    sets: Vec<String>,
    /// What a good trial fulfils: `loss=0.1%` (of requests: those that failed), `p99<2ms` (also mean, p50, p90, p99.9);
    /// repeatable
    #[arg(long, value_name = "OBJECTIVE")]
    slo: Vec<String>,
    /// The search ends when the bounds are this close, in percent of the lower one; default: 3%
    #[arg(long, value_name = "PERCENT")]
    width: Option<String>,
    /// Wider bounds (5 %) and fewer fresh trials: a quarter less time
    #[arg(long, conflicts_with = "rfc2544")]
    quick: bool,
    /// Trials of 60 s, no loss, no bad trial, bounds within 1 %, as RFC 2544 asks; half an hour
    #[arg(long)]
    rfc2544: bool,
    /// No rate above this one is tried
    #[arg(long, value_name = "RATE")]
    max: Option<Rate>,
    /// End after this long; default: 10min, with --rfc2544 2h
    #[arg(long, value_name = "TIME", value_parser = duration)]
    time: Option<Nanos>,
    #[command(flatten)]
    lab: LabArgs,
    #[command(flatten)]
    format: FormatArgs,
}

/// The `settings` object.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Settings {
    /// The scenario.
    scenario: String,
    /// The variant.
    variant: String,
    /// The run directory.
    run: PathBuf,
    /// Its report.
    report: PathBuf,
}

impl CapacityCommand {
    /// Searches, prints the bounds, writes the report.
    pub fn run(self) -> Outcome {
        let ask = self.ask()?;
        let scenario = self.scenario()?;
        let ways = Ways {
            // The search itself repeats disturbed trials; what is left of them is said at the end.
            keep_noisy: true,
            patience: self.lab.wait.patience(),
            without_root: self.without_root(),
            ..Ways::default()
        };
        let ended = conduct_by(&self.lab.out, ways, |options| {
            capacity::run(&scenario, &ask, options, &mut SearchProgress)
        })?;
        let report = write_report(&ended.directory)?;
        let Some(found) = &ended.manifest.capacity else {
            return ending(&ended)
                .map(|exit| if exit == Exit::Done { Exit::Partial } else { exit });
        };
        let place = format!("report: {}\n", report.display());
        let settings = Settings {
            scenario: scenario.name.clone(),
            variant: found.variant.clone(),
            run: ended.directory.clone(),
            report,
        };
        let answer = Envelope::new("capacity", settings, found, ended.manifest.warnings.clone());
        output::answer(self.format.is_json(), &answer, |found| summary(found) + &place)?;
        conclusion(found, &ended)
    }

    fn ask(&self) -> Result<CapacityOptions, Failure> {
        let mut ask = match (self.quick, self.rfc2544) {
            (true, _) => CapacityOptions::quick(),
            (_, true) => CapacityOptions::rfc2544(),
            _ => CapacityOptions::default(),
        };
        for text in &self.slo {
            let added = ask.objectives.add(text, self.protocol);
            added.map_err(|why| Failure::usage(format!("--slo {why}")))?;
        }
        if let Some(text) = &self.width {
            ask.goal.width_ratio = width(text).map_err(Failure::usage)?;
        }
        let [_, lowest, _] = capacity::range(self.protocol);
        if let Some(Rate(most)) = self.max.filter(|max| (max.0 as f64) < lowest) {
            let why = format!("--max {most}: the search begins no lower than {lowest}/s");
            return Err(Failure::usage(why).hint("`rxpath run` measures one rate: --set load.rate"));
        }
        ask.most = self.max.map(|max| max.0);
        ask.time = Some(self.time.unwrap_or(if self.rfc2544 { LONG_TIME } else { TIME }));
        Ok(ask)
    }

    /// The scenario with the one variant that is loaded.
    fn scenario(&self) -> Result<Resolved, Failure> {
        let name = self.base();
        if self.protocol == Protocol::TcpStream {
            return Err(own_rate("a TCP stream"));
        }
        in_lab(&name, "a search for the capacity")?;
        let mut scenario = resolved(&name, &self.sets)?;
        let variant = chosen(&scenario, self.variant.as_deref())?;
        let spoken = variant.protocol();
        if matches!(spoken, Protocol::TcpStream) {
            return Err(own_rate(&format!("{name} runs a TCP stream:")));
        }
        if spoken != self.protocol {
            let asked = self.protocol.word();
            let why =
                format!("{name}, variant {}, speaks {}, not {asked}", variant.name, spoken.word());
            return Err(Failure::usage(why));
        }
        let no_rate =
            |why: &str| Failure::usage(format!("{name}, variant {}: {why}", variant.name));
        let Some(own) = variant.load.own() else {
            return Err(no_rate("the load is another program, whose rate rxpath cannot set")
                .hint("use `rxpath run`, or a scenario without load.command"));
        };
        if own.options.count.is_some() || own.options.requests.is_some() {
            return Err(no_rate("the load ends after a count, so it has no rate to search")
                .hint("leave out load.count and load.requests"));
        }
        if variant.serve.own().is_some_and(|own| own.absent) {
            return Err(no_rate("nothing listens, so no rate holds"));
        }
        scenario.variants = vec![variant];
        scenario.compare.clear();
        Ok(scenario)
    }

    /// The scenario's name or file.
    fn base(&self) -> String {
        let plain = || format!("capacity-{}", self.protocol.word());
        self.scenario.clone().unwrap_or_else(plain)
    }

    /// The command that does the same on loopback, if the scenario can run there.
    fn without_root(&self) -> Option<String> {
        without_root(&self.base(), &self.sets)?;
        let word = self.protocol.word();
        let scenario = self.scenario.as_ref().map(|name| format!(" --scenario {name}"));
        let sets = self.sets.iter().map(String::as_str).chain(["topology.kind=local"]);
        let sets: Vec<String> = sets.map(|set| format!(" --set {set}")).collect();
        Some(format!("rxpath capacity {word}{}{}", scenario.unwrap_or_default(), sets.concat()))
    }
}

fn own_rate(what: &str) -> Failure {
    Failure::usage(format!("{what} has no rate to search: the load sets its own rate"))
        .hint("use `rxpath run`")
}

/// `3%`, or a plain number of percent.
fn width(text: &str) -> Result<f64, String> {
    let number = text.trim().strip_suffix('%').unwrap_or(text).trim();
    let percent = number.parse::<f64>().ok().filter(|percent| percent.is_finite());
    let why = match percent {
        None => format!("`{text}` is no percentage"),
        Some(percent) if percent <= 0.0 => format!("{text}: two bounds cannot be equal"),
        Some(percent) if percent > 100.0 => format!("{text}: at most 100%"),
        Some(percent) => return Ok(percent / 100.0),
    };
    Err(format!("--width {why}; for example 3%"))
}

/// The exit status of a search: what it found, unless a signal or an error ended it.
fn conclusion(found: &Capacity, ended: &Ended) -> Outcome {
    match ending(ended)? {
        Exit::Done if ended.too_noisy() => {
            crate::note!(
                "rxpath: too noisy to conclude: other load disturbed every trial at a bound"
            );
            crate::note!("hint: stop the other load and search again");
            Ok(Exit::Inconclusive)
        }
        Exit::Done => Ok(status(found)),
        other => Ok(other),
    }
}

fn status(found: &Capacity) -> Exit {
    match found.ended {
        SearchEnd::Found | SearchEnd::MostHolds => Exit::Done,
        SearchEnd::SenderLimited if found.lower_per_s.is_some() => Exit::Done,
        SearchEnd::SenderLimited => Exit::Cannot,
        SearchEnd::LowestFails => Exit::Negative,
        SearchEnd::FreshFailed | SearchEnd::Time => Exit::Inconclusive,
        SearchEnd::Interrupted => Exit::Partial,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_width_is_a_percentage_above_zero() {
        assert_eq!(width("3%"), Ok(0.03));
        assert_eq!(width("2.5"), Ok(0.025));
        for (text, part) in [
            ("0%", "cannot be equal"),
            ("-1%", "cannot be equal"),
            ("wide", "no percentage"),
            ("500%", "at most 100%"),
            ("nan", "no percentage"),
        ] {
            let why = width(text).unwrap_err();
            assert!(why.contains(part) && why.contains("for example 3%"), "{text}: {why}");
        }
    }

    #[test]
    fn the_exit_status_says_how_the_search_ended() {
        let exit =
            |ended, lower_per_s| status(&Capacity { ended, lower_per_s, ..Capacity::default() });
        assert_eq!(exit(SearchEnd::Found, Some(1.0)), Exit::Done);
        assert_eq!(exit(SearchEnd::SenderLimited, Some(1.0)), Exit::Done);
        assert_eq!(exit(SearchEnd::SenderLimited, None), Exit::Cannot);
        assert_eq!(exit(SearchEnd::LowestFails, None), Exit::Negative);
        assert_eq!(exit(SearchEnd::Time, Some(1.0)), Exit::Inconclusive);
        assert_eq!(exit(SearchEnd::FreshFailed, None), Exit::Inconclusive);
    }
}
