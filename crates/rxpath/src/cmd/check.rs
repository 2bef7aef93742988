//! `rxpath check`, and `rxpath` alone: is this host's receive path set up right?

pub mod flow;
pub mod queues;
pub mod summarize;

use rxpath_host::Root;
use rxpath_host::read::counter::SHORT_WINDOW;
use rxpath_host::read::only::Only;
use rxpath_tune::check::warnings;
use rxpath_tune::suppress::{self, Suppression};
use rxpath_tune::{Ask, Goal, HostFacts, Report, Scope, Severity, check};

use crate::cmd::on_host::OnHost;
use crate::cmd::prelude::*;
use crate::cmd::scope::ScopeArgs;
use crate::output::check::ndjson::{self, ReportIdentity};
use crate::output::check::{Form, junit, lines, markdown, sarif, table};

/// The host's own file of suppressions.
const CONFIG: &str = "/etc/rxpath/check.toml";

/// `rxpath check`
#[derive(Debug, Default, clap::Args)]
pub struct CheckCommand {
    /// Workload goal of the host; without it, only settings that are wrong for any goal count
    #[arg(long, value_enum)]
    goal: Option<Goal>,
    /// Check only this device; repeatable
    #[arg(long, value_name = "IF")]
    dev: Vec<String>,
    /// Read a captured tree instead of this host
    #[arg(long, value_name = "DIR")]
    sysroot: Option<PathBuf>,
    /// Show every answer: also rules that found nothing wrong, facts recorded, and rules that do not apply, with the
    /// reason
    #[arg(long)]
    all: bool,
    /// Exit with status 1 when a finding is at least this severe
    #[arg(long, value_enum, value_name = "SEVERITY")]
    fail_on: Option<Severity>,
    /// File of suppressions, instead of /etc/rxpath/check.toml
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Watch the counters for this long; only counts within this time lead to a recommended change (0s reads them once)
    /// [default: 250ms]
    #[arg(long, value_name = "TIME", conflicts_with_all = ["sysroot", "queues", "flow", "summarize"])]
    window: Option<Nanos>,
    #[command(flatten)]
    scope: ScopeArgs,
    // The path of packets, or the reports of other hosts, instead of the rules:
    /// Show which CPU serves which queue: NAPI, IRQ, CPU, NUMA node, RSS share, RPS, XPS, packets and drops
    #[arg(long, conflicts_with_all = ["flow", "goal", "all", "fail_on"])]
    queues: bool,
    /// With --queues: show packets/s and drops/s for each interval of this length, until interrupted (1s, 500ms)
    #[arg(long, value_name = "TIME", requires = "queues")]
    interval: Option<Nanos>,
    /// Show on which queue and CPU of --dev a flow lands: SRC:PORT->DST:PORT/udp (or /tcp)
    #[arg(long, value_name = "FLOW", conflicts_with_all = ["goal", "all", "fail_on"])]
    flow: Option<String>,
    /// Summarize the reports below DIR (one `check --json` per host): common findings, and the hosts that differ from
    /// others of their kind
    #[arg(long, value_name = "DIR", conflicts_with_all = ["queues", "flow", "goal", "dev", "sysroot", "fail_on", "config"])]
    summarize: Option<PathBuf>,
    /// Print the result as JSON (the same as `--format json`)
    #[arg(long, conflicts_with = "format")]
    json: bool,
    /// Output format; --queues, --flow and --summarize have only table and json
    #[arg(long, value_enum)]
    format: Option<Form>,
    #[command(flatten)]
    pub on: OnHost,
}

/// The options in force.
#[derive(Debug, Serialize)]
pub struct Settings {
    goal: Option<Goal>,
    devices: Vec<String>,
    #[serde(flatten)]
    scope: ScopeArgs,
    sysroot: Option<PathBuf>,
    kernel: Option<String>,
}

impl CheckCommand {
    /// Runs it.
    pub fn run(self) -> Outcome {
        self.is_scope_possible()?;
        if let Some(dir) = &self.summarize {
            if !matches!(self.form(), Form::Table | Form::Json) {
                return Err(Failure::usage("--format: --summarize prints only table or json"));
            }
            return summarize::run(dir, self.form() == Form::Json, self.all);
        }
        let root = match &self.sysroot {
            Some(dir) => Root::tree(dir).map_err(|error| {
                Failure::new(Exit::Usage, error).hint("--sysroot takes a tree with proc/ and sys/")
            })?,
            None => Root::host(),
        };
        let entered = self.scope.enter()?;
        if self.queues || self.flow.is_some() {
            return self.way(&root);
        }
        let scope = Scope {
            devices: self.dev.clone(),
            processes: entered.only.as_ref().map(Only::processes),
            is_entered: entered.has_moved,
        };
        let mut facts = HostFacts::collect(&root, &scope);
        known_devices(&self.dev, &facts)?;
        watch(&mut facts, self.window);
        let goal = self.goal;
        let mut report = check(&Ask { facts: &facts, goal });
        let mut warnings = warnings(&facts);
        let today = jiff::Zoned::now().date();
        let whole = "counters, settings and devices are those of the whole network namespace";
        let narrowed = "the sockets, their readers and the control groups";
        warnings.extend(self.scope.warning(whole, narrowed));
        warnings.extend(suppress::apply(&mut report, &self.suppressions()?, today));
        let settings = Settings {
            goal,
            devices: facts.asked().map(|device| device.name.clone()).collect(),
            scope: self.scope.clone(),
            sysroot: self.sysroot.clone(),
            kernel: facts.kernel.release.value().cloned(),
        };
        let exit = self.verdict(&report);
        let nothing = (!report.has_judged()).then(|| report.unjudged_rules());
        match self.form() {
            Form::Json => output::json(&Envelope::new("check", settings, report, warnings))?,
            Form::Ndjson => {
                let report = Envelope::new("check", settings, report, warnings);
                let identity = ReportIdentity::of(&root, &facts);
                output::json_line(&ndjson::ReportLine { identity, report })?;
            }
            form => {
                warnings.iter().for_each(output::warning);
                output::text(&self.text(form, &report, &settings)?)?;
            }
        }
        if let Some(unjudged) = nothing {
            let what = format!("nothing of this host could be judged: {unjudged}");
            return Err(Failure::cannot(what).hint("rxpath check --all says why, rule by rule"));
        }
        Ok(exit)
    }

    /// The namespace and the processes must be those of this host, and they limit what the rules read.
    fn is_scope_possible(&self) -> Result<(), Failure> {
        if self.scope.is_given() && (self.sysroot.is_some() || self.summarize.is_some()) {
            return Err(Failure::usage("--netns, --pid and --cgroup work on this host only"));
        }
        let is_way = self.queues || self.flow.is_some();
        if is_way && (self.scope.pid.is_some() || self.scope.cgroup.is_some()) {
            let what = "--pid and --cgroup: --queues and --flow cannot be limited to processes";
            return Err(Failure::usage(what).hint("use --netns PID for the namespace of a process"));
        }
        Ok(())
    }

    fn text(&self, form: Form, report: &Report, settings: &Settings) -> anyhow::Result<String> {
        Ok(match form {
            Form::Json | Form::Ndjson | Form::Table => {
                table::render(report, settings.goal, self.all)
            }
            Form::Jsonl => lines::render(report, settings)?,
            Form::Md => markdown::render(report, settings.goal, settings.kernel.as_deref()),
            Form::Junit => junit::render(report, self.fail_on.unwrap_or(Severity::Warn)),
            Form::Sarif => serde_json::to_string_pretty(&sarif::log(report))? + "\n",
        })
    }

    /// Reads suppressions from the named file, or from the host's own file if it exists.
    ///
    /// A captured tree is another host: this host's file does not apply to it.
    pub fn suppressions(&self) -> Result<Vec<Suppression>, Failure> {
        let path = match &self.config {
            Some(path) => path.clone(),
            None if self.sysroot.is_none() && Path::new(CONFIG).exists() => PathBuf::from(CONFIG),
            None => return Ok(Vec::new()),
        };
        let text =
            std::fs::read_to_string(&path).or_usage(|| format!("read {}", path.display()))?;
        let hint = "each [[suppress]] has id, reason, until = \"YYYY-MM-DD\", and may have device";
        let read = suppress::parse(&text).or_usage(|| path.display().to_string());
        read.map_err(|failure| failure.hint(hint))
    }

    fn form(&self) -> Form {
        if self.json { Form::Json } else { self.format.unwrap_or(Form::Table) }
    }

    /// The map of queues or the landing of a flow, when one of them was asked for.
    fn way(&self, root: &Root) -> Outcome {
        if !matches!(self.form(), Form::Table | Form::Json) {
            let what = "--format: --queues and --flow print only table or json";
            return Err(Failure::usage(what));
        }
        let json = self.form() == Form::Json;
        let interval = self.interval.map(Nanos::as_duration);
        if interval.is_some_and(|interval| interval.is_zero()) {
            return Err(Failure::usage("--interval 0: the time must be above 0"));
        }
        let ask = queues::QueueCheckOptions { root, devices: &self.dev, interval, json };
        match &self.flow {
            Some(flow) => flow::run(&ask, flow),
            None => queues::run(&ask),
        }
    }

    fn verdict(&self, report: &Report) -> Exit {
        let Some(limit) = self.fail_on else { return Exit::Done };
        if report.worst().is_some_and(|worst| worst >= limit) { Exit::Negative } else { Exit::Done }
    }
}

/// Reads the counters a second time, after `window` or after the shortest time that can be judged.
pub fn watch(facts: &mut HostFacts, window: Option<Nanos>) {
    let window = window.map_or(SHORT_WINDOW, Nanos::as_duration);
    if !window.is_zero() {
        facts.watch(window);
    }
}

/// A named device that does not exist is a usage error.
pub fn known_devices(named: &[String], facts: &HostFacts) -> Result<(), Failure> {
    let missing = named.iter().find(|name| facts.device(name).is_none());
    let Some(name) = missing else { return Ok(()) };
    let all: Vec<&str> = facts.devices.iter().map(|device| device.name.as_str()).collect();
    Err(Failure::usage(format!("--dev {name}: no such network device here"))
        .hint(format!("devices here: {}", all.join(", "))))
}
