//! `rxpath compare A B`: is the second run better, worse or the same as the first?

use rxpath_record::compared::{
    CompareRequest, Compared, NotComparable, changed, scenario, warnings,
};
use rxpath_record::comparison::Outcome;
use rxpath_record::metric;
use rxpath_record::run::RunReader;

use crate::cmd::gate::{self, FailOn};
use crate::cmd::prelude::*;
use crate::exit::Outcome as Ended;

/// Host differences that the text shows at most; `--json` has them all.
const SHOWN: usize = 8;

/// `rxpath compare`
#[derive(Debug, Args)]
pub struct CompareCommand {
    /// The base run
    #[arg(value_name = "A")]
    base: PathBuf,
    /// The run to compare with the base
    #[arg(value_name = "B")]
    other: PathBuf,
    /// Compare this metric; repeatable [default: the main metric of the runs]
    #[arg(long = "metric", value_name = "NAME")]
    metrics: Vec<String>,
    /// Compare only this variant; repeatable [default: all variants of A]
    #[arg(long = "variant", value_name = "NAME")]
    variants: Vec<String>,
    /// Ratios within 1 +- this count as the same; shares (`*_ratio`) are compared by difference near zero
    #[arg(long, value_name = "SHARE", default_value_t = 0.03)]
    threshold: f64,
    /// A further run of the same code as A; repeatable. With two or more, the scatter between runs counts: without it,
    /// a difference may be that of two boots or two hours
    #[arg(long, value_name = "RUN")]
    history: Vec<PathBuf>,
    /// Without the scatter between runs, report every difference as inconclusive
    #[arg(long)]
    strict: bool,
    /// What ends with exit 1
    #[arg(long, value_enum, value_name = "WORD", default_value_t)]
    fail_on: FailOn,
    #[command(flatten)]
    format: FormatArgs,
}

impl CompareCommand {
    /// Reads both runs and reports the difference.
    pub fn run(self) -> Ended {
        if !(0.0..1.0).contains(&self.threshold) {
            return Err(Failure::usage(format!(
                "--threshold {}: a share from 0 to 1",
                self.threshold
            ))
            .hint("0.03 calls ratios from 0.97 to 1.03 the same"));
        }
        let open = |path: &Path| RunReader::open(path).map_err(Failure::usage_of);
        let (base, other) = (open(&self.base)?, open(&self.other)?);
        let history: Vec<RunReader> =
            self.history.iter().map(|path| open(path)).collect::<Result<_, _>>()?;
        if history.len() == 1 {
            return Err(Failure::usage("--history: one further run shows no scatter between runs")
                .hint("give two or more runs of the same code as A"));
        }
        let ask = CompareRequest {
            variants: &self.variants,
            metrics: &self.metrics,
            threshold: self.threshold,
        };
        let differences = ask.differences(&base.manifest, &other.manifest, &history);
        let differences =
            differences.map_err(|NotComparable { what, hint }| Failure::usage(what).hint(hint))?;
        let assumes_no_run_scatter = history.is_empty();
        let hosts_changed = changed(base.environment.as_ref(), other.environment.as_ref());
        let scenario_changed = scenario(&base.manifest, &other.manifest);
        let mut warnings = warnings(&base, &other, &scenario_changed);
        let mut outcome =
            gate::worst(differences.iter().map(|one| gate::word(&one.effect, self.fail_on)));
        if assumes_no_run_scatter && matches!(outcome, Outcome::Better | Outcome::Worse) {
            let text = "the differences hold only if two runs of the same code do not differ";
            let why = "another boot or another hour can change a rate by more than trials scatter";
            let cure =
                "give further runs of A's code by --history, or make both variants of one run";
            warnings.push(Warning::new("run-scatter-unknown", text).because(why).cure(cure));
            if self.strict {
                outcome = Outcome::Inconclusive;
            }
        }
        let [one, two] = [&self.base, &self.other].map(|run| run.display().to_string());
        let settings = json!({ "base": one, "other": two, "threshold_ratio": self.threshold });
        let result = Compared {
            outcome,
            assumes_no_run_scatter,
            differences,
            scenario_changed,
            hosts_changed,
        };
        let answer = Envelope::new("compare", settings, result, warnings);
        output::answer(self.format.is_json(), &answer, text)?;
        Ok(gate::exit(outcome))
    }
}

fn text(compared: &Compared) -> String {
    let hosts = &compared.hosts_changed;
    let mut out = String::new();
    for d in &compared.differences {
        let (metric, effect) = (&d.metric, &d.effect);
        let [Some(one), Some(two)] = d.medians.map(|median| Some(shown(metric, median?))) else {
            let by = if d.medians[0].is_none() { "A" } else { "B" };
            out += &format!("{}: {metric}: inconclusive: {by} did not measure it\n", d.variant);
            continue;
        };
        out += &format!(
            "{}: {metric}: {one} to {two}, {} ({}): {}\n",
            d.variant,
            effect.amount(metric),
            effect.sureness(metric),
            effect.verdict("trials of each run")
        );
    }
    if hosts.is_empty() {
        out += "the hosts agree in all recorded facts\n";
    }
    for change in hosts.iter().take(SHOWN) {
        out += &format!("host: {} was {}, is {}\n", change.fact, change.base, change.other);
    }
    if hosts.len() > SHOWN {
        out += &format!("host: {} further facts differ (--json)\n", hosts.len() - SHOWN);
    }
    out
}

fn shown(metric: &str, value: f64) -> String {
    if metric::is_share(metric) {
        return format!("{:.2} %", value * 100.0);
    }
    rxpath_core::units::si(value)
}
