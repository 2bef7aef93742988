//! `rxpath reproduce`: the published experiments that this host can run, in one book.

use std::time::Instant;

use rxpath_lab::plan::plan;
use rxpath_lab::run::left_out;
use rxpath_lab::scenario::{ScenarioFile, bundled, load};
use rxpath_record::comparison::Expectation;
use rxpath_record::manifest::Status;
use rxpath_record::run::{REPORT, RunReader};
use rxpath_report::Chapter;

use crate::cmd::gate::{self, FailOn};
use crate::cmd::lab_args::LabArgs;
use crate::cmd::lab_error::failure;
use crate::cmd::prelude::*;
use crate::cmd::report::{replace, write_report};
use crate::cmd::run::{Ways, conduct, ending};
use crate::cmd::scenario::resolved;
use crate::cmd::values::duration;
use crate::output::bars::Bars;

/// Below the directory of runs: a complete run here is not repeated.
const FOLDER: &str = "reproduce";

/// Options of `rxpath reproduce`.
#[derive(Debug, Args)]
pub struct ReproduceCommand {
    /// Only these experiments (see `rxpath list`)
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    only: Vec<String>,
    /// End after about this long: each experiment gets a share of what is left, by the time that it needs
    #[arg(long, value_name = "TIME", value_parser = duration)]
    time: Option<Nanos>,
    /// Exit by the comparisons: 0 as the scenarios expect, 1 contradicted, 4 undecided
    #[arg(long)]
    check: bool,
    #[command(flatten)]
    lab: LabArgs,
    #[command(flatten)]
    format: FormatArgs,
}

/// The `result` object.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Reproduced {
    /// The book as HTML and as Markdown.
    book: [PathBuf; 2],
    /// Every experiment.
    experiments: Vec<Experiment>,
    /// Expectations that were confirmed.
    confirmed_count: usize,
    /// Expectations that were contradicted.
    contradicted_count: usize,
    /// Expectations that stayed undecided.
    undecided_count: usize,
}

/// One experiment.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Experiment {
    name: String,
    /// Its run directory.
    run: Option<PathBuf>,
    /// Why it did not run, or not to its end.
    problem: Option<String>,
}

/// An experiment's file and what came of it.
struct Done {
    file: ScenarioFile,
    experiment: Experiment,
}

impl ReproduceCommand {
    /// Runs what is missing and writes the book after each experiment, so that an interruption leaves one.
    pub fn run(self) -> Outcome {
        let files = self.files()?;
        let base = self.lab.out.join(FOLDER);
        let end = self.time.map(|time| Instant::now() + Duration::from_nanos(time.0));
        std::fs::create_dir_all(&base)
            .or_usage(|| format!("{}: cannot be made", base.display()))?;
        let mut done: Vec<Done> = Vec::new();
        let mut refused = None;
        let all = files.len();
        let kept: Vec<Option<PathBuf>> =
            files.iter().map(|(word, _)| self.complete(&base, word)).collect();
        let need = |(kept, (word, _)): (&Option<PathBuf>, &(String, ScenarioFile))| {
            kept.as_ref().map_or_else(|| need(word), |_| Duration::ZERO)
        };
        let needs: Vec<Duration> = kept.iter().zip(&files).map(need).collect();
        for (at, (word, file)) in files.into_iter().enumerate() {
            let name = file.name.clone();
            if let Some(run) = kept[at].clone() {
                crate::note!("rxpath: {name}: kept, {}", run.display());
                let experiment = Experiment { name, run: Some(run), problem: None };
                done.push(Done { file, experiment });
                continue;
            }
            let left = end.map(|end| end.saturating_duration_since(Instant::now()));
            let share = left.map(|left| share(left, &needs[at..]));
            crate::note!("rxpath: experiment {} of {all}: {name}", at + 1);
            let (experiment, signal) = match self.one(&base, (&word, &name), share) {
                Ok(came) => came,
                Err(failure) if failure.exit == Exit::Cannot => {
                    let problem = failure.line();
                    // With a single experiment its reason is the error at the end.
                    if all > 1 {
                        crate::note!("rxpath: {name}: {problem}");
                    }
                    refused.get_or_insert(failure);
                    (Experiment { name, run: None, problem: Some(problem) }, None)
                }
                Err(failure) => return Err(failure),
            };
            done.push(Done { file, experiment });
            write(&base, &done)?;
            if let Some(signal) = signal {
                return Ok(Exit::Signal(signal));
            }
        }
        let nothing_ran = done.iter().all(|one| one.experiment.run.is_none());
        if let (Some(failure), true) = (refused, nothing_ran) {
            return Err(failure);
        }
        self.told(&base, &done)
    }

    /// The experiments with something to compare, or those that were named, each with its name or path.
    fn files(&self) -> Result<Vec<(String, ScenarioFile)>, Failure> {
        if !self.only.is_empty() {
            let named = |word: &String| Ok((word.clone(), load(word).map_err(Failure::usage_of)?));
            return self.only.iter().map(named).collect();
        }
        let all = bundled().map_err(Failure::usage_of)?.into_iter();
        let compared = all.filter(|file| !file.hidden && file.expects());
        Ok(compared.map(|file| (file.name.clone(), file)).collect())
    }

    /// Runs the experiment of this file or name, with the signal that ended it.
    fn one(
        &self,
        base: &Path,
        (word, name): (&str, &str),
        share: Option<Duration>,
    ) -> Result<(Experiment, Option<i32>), Failure> {
        let limit = share.map(|it| format!("trials.time_limit={}s", it.as_secs().max(1)));
        let scenario = resolved(word, limit.as_slice())?;
        let missing = left_out(&scenario).map_err(failure)?;
        crate::note!("rxpath: {}, about {}", scenario.question, plan(&scenario).expected);
        let ways = Ways { patience: self.lab.wait.patience(), ..Ways::default() };
        let ended = conduct(&scenario, base, ways, &mut Bars::new())?;
        write_report(&ended.directory)?;
        let (problem, signal) = match ending(&ended) {
            Ok(Exit::Signal(signal)) => (Some("interrupted".into()), Some(signal)),
            Ok(_) => (missing, None),
            Err(failure) => (Some(failure.line()), None),
        };
        let run = Some(ended.directory.clone());
        Ok((Experiment { name: name.to_owned(), run, problem }, signal))
    }

    /// The complete run of an experiment that an earlier call left. A run that had only a share of a `--time` counts where
    /// this call has one, too.
    fn complete(&self, base: &Path, name: &str) -> Option<PathBuf> {
        let scenario = resolved(name, &[]).ok()?;
        let whole = scenario.trials.time_limit;
        let counts = |path: &PathBuf| {
            RunReader::open(path).is_ok_and(|run| {
                let of = run.manifest;
                let limit =
                    of.resolved.pointer("/trials/time_limit").and_then(serde_json::Value::as_u64);
                of.scenario == scenario.name
                    && of.status == Status::Complete
                    // One that gave up before its first block has no answer.
                    && !of.trials.is_empty()
                    && (self.time.is_some() || limit.is_none_or(|limit| limit >= whole.0))
            })
        };
        let all = std::fs::read_dir(base).into_iter().flatten();
        let runs = all.filter_map(|entry| Some(entry.ok()?.path())).filter(|path| path.is_dir());
        runs.filter(counts).max()
    }

    fn told(&self, base: &Path, done: &[Done]) -> Outcome {
        let book = write(base, done)?;
        let runs = done.iter().filter_map(|one| RunReader::open(one.experiment.run.as_ref()?).ok());
        let comparisons: Vec<_> = runs.flat_map(|run| run.manifest.comparisons).collect();
        let count =
            |word: Expectation| comparisons.iter().filter(|one| one.met() == Some(word)).count();
        let result = Reproduced {
            book,
            experiments: done.iter().map(|one| one.experiment.clone()).collect(),
            confirmed_count: count(Expectation::Confirmed),
            contradicted_count: count(Expectation::Contradicted),
            undecided_count: count(Expectation::Undecided),
        };
        let answer = Envelope::new("reproduce", json!({ "only": self.only }), result, Vec::new());
        output::answer(self.format.is_json(), &answer, text)?;
        if self.check {
            let words = comparisons.iter().map(|one| gate::expected(one, FailOn::Worse));
            return Ok(gate::exit(gate::worst(words)));
        }
        let is_whole = |one: &Experiment| one.run.is_some() && one.problem.is_none();
        let whole = answer.result.experiments.iter().all(is_whole);
        Ok(if whole { Exit::Done } else { Exit::Partial })
    }
}

fn text(result: &Reproduced) -> String {
    let told = |one: &Experiment| Some(format!("{}: {}\n", one.name, one.problem.as_ref()?));
    let text: String = result.experiments.iter().filter_map(told).collect();
    text + &format!(
        "expectations: {} confirmed, {} contradicted, {} undecided\nbook: {}\n",
        result.confirmed_count,
        result.contradicted_count,
        result.undecided_count,
        result.book[0].display()
    )
}

/// What an experiment takes with the blocks that it has at least.
fn need(name: &str) -> Duration {
    resolved(name, &[]).map_or(Duration::ZERO, |scenario| plan(&scenario).expected.as_duration())
}

/// The time of the first of these experiments: as much of what is left as it needs of what all need.
fn share(left: Duration, needs: &[Duration]) -> Duration {
    let all: Duration = needs.iter().sum();
    let own = needs.first().copied().unwrap_or_default();
    if all.is_zero() { left } else { left.mul_f64(own.as_secs_f64() / all.as_secs_f64()) }
}

/// Writes both books.
fn write(base: &Path, done: &[Done]) -> Result<[PathBuf; 2], Failure> {
    let chapters: Vec<Chapter> = done.iter().map(chapter).collect();
    let places = [base.join("book.html"), base.join("book.md")];
    let texts = [rxpath_report::book(&chapters), rxpath_report::book_markdown(&chapters)];
    for (place, text) in places.iter().zip(texts) {
        replace(place, &text).or_usage(|| format!("{}: cannot write the book", place.display()))?;
    }
    Ok(places)
}

fn chapter(Done { file, experiment }: &Done) -> Chapter {
    let folder = experiment.run.as_ref().and_then(|run| run.file_name());
    Chapter {
        experiment: experiment.name.clone(),
        question: file.question.clone(),
        axes: file.figure,
        report: folder.map(|folder| format!("{}/{REPORT}", folder.to_string_lossy())),
        run: experiment.run.as_ref().and_then(|run| RunReader::open(run).ok()),
        problem: experiment.problem.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_experiment_gets_what_it_needs_of_what_is_left() {
        let s = Duration::from_secs;
        assert_eq!(share(s(60), &[s(30), s(60), s(0), s(90)]), s(10));
        assert_eq!(share(s(50), &[s(90)]), s(50), "the last one has the rest");
        assert_eq!(share(s(50), &[s(0), s(0)]), s(50));
    }
}
