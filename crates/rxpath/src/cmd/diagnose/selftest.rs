//! `rxpath diagnose --selftest`: makes limits on purpose and counts which are recognised.

use rand::RngExt;
use rxpath_host::Root;
use rxpath_host::read::{thread, topology};
use rxpath_lab::scenario::HostShape;
use rxpath_lab::selftest::{
    self, CASES, Case, NotMade, RuleCost, SelftestOptions, SelftestResult, SelftestRow,
};

use crate::cmd::lab_args::{BASE, WaitArgs};
use crate::cmd::lab_error::failure;
use crate::cmd::prelude::*;
use crate::cmd::report::write_report;
use crate::cmd::run;
use crate::cmd::values::seconds;
use crate::output::bars::Bars;
use crate::output::table::Grid;
use crate::output::{json, word};

/// Default draws of each case: enough for a first check, too few for a published table.
const DRAWS: u32 = 3;

/// Options of `--selftest`.
#[derive(Debug, clap::Args)]
pub struct SelftestArgs {
    /// Make known limits in a lab with random parameters and report which are recognised (needs root)
    #[arg(long, conflicts_with_all = ["runs", "port", "duration", "no_bpf"])]
    selftest: bool,
    /// Draws of each case (use 20 or more for a published table) [default: 3]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    draws: Option<u32>,
    /// Seed of the draws and of their order [default: a new seed, which is printed]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(0..=i64::MAX as u64))]
    seed: Option<u64>,
    /// Make only this case; repeatable
    #[arg(long = "case", value_name = "ID")]
    cases: Vec<String>,
    /// Measure each limit for this long [default: 700ms]
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    hold: Option<Nanos>,
    /// Directory in which the run directory is created
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    #[command(flatten)]
    wait: WaitArgs,
}

impl SelftestArgs {
    /// Whether a self-test was asked for.
    pub fn is_asked(&self) -> bool {
        self.selftest
    }

    /// Whether any of its other options was given.
    pub fn is_given(&self) -> bool {
        self.draws.is_some()
            || self.seed.is_some()
            || !self.cases.is_empty()
            || self.hold.is_some()
            || self.out.is_some()
            || self.wait.is_given()
    }

    /// Makes the cases and prints the table; exit status 1 if a case was not recognised.
    pub fn run(&self, format: &FormatArgs) -> Outcome {
        self.check()?;
        // 31 bits: easy to retype.
        let seed = self.seed.unwrap_or_else(|| u64::from(rand::rng().random::<u32>() >> 1));
        let draws = self.draws.unwrap_or(DRAWS);
        let root = Root::host();
        let shape = HostShape::of(&topology::read(&root)?, &thread::allowed_cpus()?);
        let cpus = thread::allowed_cpus()?.0.len();
        let lacks = selftest::lacking(&root, cpus);
        let (cases, hold) = (&self.cases, self.hold);
        let mut ask = SelftestOptions { cases, draws, seed, hold, lacks: &lacks, rule_cost: None };
        let (chosen, left_out) = selftest::chosen(&ask);
        if chosen.is_empty() {
            let why = left_out.first().map_or("", |(_, why)| why);
            return Err(Failure::cannot(format!("no case can be made here: {why}")));
        }
        let patience = self.wait.patience();
        ask.rule_cost = rule_cost(&chosen, patience)?;
        let resolved = selftest::scenario(&ask, &shape).map_err(Failure::usage_of)?;
        let base = self.out.clone().unwrap_or_else(|| BASE.into());
        if let Some(out) = &self.out {
            std::fs::create_dir_all(out)
                .or_usage(|| format!("--out {}: cannot make the directory", out.display()))?;
        }
        crate::note!("selftest: seed {seed}, {draws} draws of {} cases", chosen.len());
        if let Some(cost) = &ask.rule_cost {
            crate::note!("selftest: {cost}");
        }
        let ways = run::Ways { witness: true, patience, ..run::Ways::default() };
        let ended = run::conduct(&resolved, &base, ways, &mut Bars::new())?;
        let report = write_report(&ended.directory)?;
        let answer = SelftestResult::of(&ended.manifest, &left_out, ask.rule_cost);
        let (made_count, recognised_count) = (answer.made_count, answer.recognised_count);
        if format.is_json() {
            let run = ended.directory.display().to_string();
            let settings = json!({ "seed": seed, "draws": draws, "run": run });
            let warnings = ended.manifest.warnings.clone();
            json(&Envelope::new("diagnose-selftest", settings, answer, warnings))?;
        } else {
            output::text(&text(&answer, seed))?;
            output::line(&format!("report: {}", report.display()))?;
        }
        match run::ending(&ended)? {
            Exit::Done if made_count == 0 => Ok(Exit::Inconclusive),
            Exit::Done if recognised_count < made_count => Ok(Exit::Negative),
            other => Ok(other),
        }
    }

    fn check(&self) -> Result<(), Failure> {
        let ids: Vec<&str> = CASES.iter().map(|case| case.id).collect();
        match self.cases.iter().find(|id| !ids.contains(&id.as_str())) {
            None => Ok(()),
            Some(id) => Err(Failure::usage(format!("--case {id}: there is no such case"))
                .hint(format!("the cases are {}", ids.join(", ")))),
        }
    }
}

/// The cost of datagrams and firewall rules on this host, if a case is made with rules.
fn rule_cost(chosen: &[&Case], patience: Duration) -> Result<Option<RuleCost>, Failure> {
    let timed = chosen.iter().any(|case| case.is_timed());
    let measure = || RuleCost::measure(patience, &mut |text| crate::note!("{text}"));
    timed.then(measure).transpose().map_err(failure)
}

fn text(answer: &SelftestResult, seed: u64) -> String {
    let mut text = table(&answer.cases);
    let not_made = answer.not_made.iter();
    text.extend(not_made.map(|NotMade { case, why }| format!("not made: {case}: {why}\n")));
    for row in &answer.sureness {
        text += &format!(
            "{} verdicts: {} of {} right (95 % interval {})\n",
            word(&row.confidence),
            row.right_count,
            row.trials_count,
            percent(row.right_interval)
        );
    }
    let (right, made) = (answer.recognised_count, answer.made_count);
    let interval = percent(answer.recognised_interval);
    text + &format!("seed {seed}: {right} of {made} recognised (95 % interval {interval})\n")
}

fn table(rows: &[SelftestRow]) -> String {
    let mut table =
        Grid::new(1, ["case", "made", "recognised", "95 % interval", "said instead"]).text(&[4]);
    for row in rows {
        let others = row.said.iter().filter(|(stage, _)| !row.expected.contains(stage));
        let others = others.map(|(stage, count)| format!("{count} {}", word(stage)));
        table.row([
            row.case.to_string(),
            row.made_count.to_string(),
            row.recognised_count.to_string(),
            percent(row.recognised_interval),
            others.collect::<Vec<_>>().join(", "),
        ]);
    }
    table.shown()
}

/// The interval of a share, in words.
fn percent([low, high]: [f64; 2]) -> String {
    format!("{:.0} to {:.0} %", low * 100.0, high * 100.0)
}
