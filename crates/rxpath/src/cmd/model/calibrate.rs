//! `rxpath model calibrate`: measures the cost of each step of the receive path on this host.

use jiff::Timestamp;
use rxpath_lab::predict::calibrate::{self, CalibrationObserver, Measured};
use rxpath_model::calibration::Calibration;
use rxpath_model::calibration::fit::TooNoisy;

use super::calibration::default_path;
use crate::cmd::lab_args::{BASE, WaitArgs};
use crate::cmd::prelude::*;
use crate::cmd::run::{Ways, conduct, ending};
use crate::cmd::scenario::resolved;
use crate::output::bars::Bars;

/// The scenario that is measured.
const SCENARIO: &str = "model-calibration";

/// `rxpath model calibrate`
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Takes about 20 s in the two-namespace lab, as root, on a quiet machine. On a noisy machine it stops \
                        with the reason (exit 4). docs/explanation/model.md explains how each parameter is found."
)]
pub struct CalibrateCommand {
    /// File to write
    #[arg(long, value_name = "FILE", default_value_os_t = default_path())]
    out: PathBuf,
    /// Directory in which the run directory of the measurements is created
    #[arg(long, value_name = "DIR", default_value = BASE)]
    runs: PathBuf,
    /// Payload size of the datagrams
    #[arg(long, value_name = "BYTES", default_value = "32")]
    size: rxpath_core::Bytes,
    /// Set a key of the measured scenario, for example `trials.measure=2s`; repeatable
    #[arg(long = "set", value_name = "KEY=VALUE")]
    sets: Vec<String>,
    /// Count trials that other load on the machine disturbed
    #[arg(long)]
    keep_noisy: bool,
    /// Measure only with the stolen-time meter, without BPF
    #[arg(long)]
    no_bpf: bool,
    #[command(flatten)]
    wait: WaitArgs,
    #[command(flatten)]
    format: FormatArgs,
}

impl CalibrateCommand {
    /// Measures, fits, writes.
    pub fn run(self) -> Outcome {
        writable(&self.out)?;
        let size = format!("load.size={}", self.size.0);
        let sets: Vec<String> = [size].into_iter().chain(self.sets.iter().cloned()).collect();
        let resolved = resolved(SCENARIO, &sets)?;
        let mut bars = Bars::new();
        let mut watch = CalibrationObserver::new(&resolved, !self.no_bpf, &mut bars);
        let ended = conduct(
            &resolved,
            &self.runs,
            Ways { keep_noisy: self.keep_noisy, patience: self.wait.patience(), ..Ways::default() },
            &mut watch,
        )?;
        let exit = ending(&ended)?;
        if exit != Exit::Done {
            return Ok(exit);
        }
        let measured = Measured {
            trials: &ended.manifest.trials,
            watch: &watch,
            size_bytes: self.size.0,
            cpu: watch.cpu.unwrap_or(0),
        };
        let calibration = calibrate::calibration(&measured, &Timestamp::now().to_string())
            .map_err(|TooNoisy(why)| {
                Failure::new(Exit::Inconclusive, anyhow::anyhow!("no calibration: {why}"))
                    .hint("stop other load and calibrate again; nothing was written")
            })?;
        let text = serde_json::to_string_pretty(&calibration)? + "\n";
        std::fs::write(&self.out, text)
            .or_usage(|| format!("{}: cannot write", self.out.display()))?;
        let caveat = |text: &String| Warning::new("calibration", text.clone());
        let warnings = calibration.caveats.iter().map(caveat).collect();
        let (out, run) = (self.out.display().to_string(), ended.directory.display().to_string());
        let place = format!("calibration: {out}\n");
        let settings = json!({ "out": out, "run": run });
        let answer = Envelope::new("model-calibrate", settings, calibration, warnings);
        output::answer(self.format.is_json(), &answer, |it| table(it) + &place)?;
        Ok(Exit::Done)
    }
}

/// Checked before half a minute of measuring, not after it. Creates the directory and nothing in it.
fn writable(path: &Path) -> Result<(), Failure> {
    let made = path.parent().map_or(Ok(()), std::fs::create_dir_all);
    // An old calibration stays unchanged: the file is opened to append and closed again.
    let was_there = path.exists();
    let opened =
        made.and_then(|()| std::fs::OpenOptions::new().append(true).create(true).open(path));
    opened.or_usage(|| format!("--out {}: cannot write", path.display()))?;
    if !was_there {
        let _ = std::fs::remove_file(path);
    }
    Ok(())
}

fn table(calibration: &Calibration) -> String {
    let mut text = String::from(
        "parameter                 value        95 % interval  unit         found by\n",
    );
    for (name, estimate) in &calibration.parameters {
        let digits = if estimate.unit == "ratio" { 3 } else { 1 };
        text += &format!(
            "{name:<20} {:>10.digits$} {:>20}  {:<12} {}\n",
            estimate.value,
            estimate.interval.map_or_else(
                || "not known".into(),
                |[low, high]| format!("{low:.digits$} to {high:.digits$}")
            ),
            estimate.unit,
            estimate.how
        );
    }
    text
}
