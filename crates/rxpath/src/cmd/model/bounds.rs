//! `rxpath model bounds`: bounds from a fluid model of the receive path, in sentences.

use rxpath_model::bounds::{FluidBounds, Parameters, bounds};

use super::calibration::{default_path, load};
use crate::cmd::prelude::*;

/// `rxpath model bounds`
#[derive(Debug, clap::Args)]
#[command(
    after_help = "A file holds the same names with underscores: arrival_rate = \"400k\". docs/reference/model.md explains each formula \
                  and when it holds."
)]
pub struct BoundsCommand {
    /// Parameters as TOML; flags win over them
    file: Option<PathBuf>,
    /// Take costs, ring and truesize that are not given from the last calibration (rxpath model calibrate)
    #[arg(long)]
    calibrated: bool,
    /// The calibration to use; implies --calibrated
    #[arg(long, value_name = "FILE")]
    calibration: Option<PathBuf>,
    /// Use a calibration of another host or kernel
    #[arg(long)]
    foreign: bool,
    #[command(flatten)]
    given: Parameters,
    #[command(flatten)]
    format: FormatArgs,
}

impl BoundsCommand {
    /// Runs it.
    pub fn run(self) -> Outcome {
        let mut parameters = self.parameters().map_err(Failure::usage_of)?;
        let told = self.calibrate(&mut parameters)?;
        let got = bounds(&parameters).map_err(Failure::usage_of)?;
        if got.bounds.is_empty() {
            return Err(Failure::usage("no bound follows from these parameters")
                .hint(format!("each bound still needs: {}", got.missing())));
        }
        let warnings = [told, got.warnings()].concat();
        let answer = Envelope::new("model-bounds", parameters, got, warnings);
        output::answer(self.format.is_json(), &answer, sentences)?;
        Ok(Exit::Done)
    }

    /// Values from a calibration, if one was requested.
    fn calibrate(&self, parameters: &mut Parameters) -> Result<Vec<Warning>, Failure> {
        if !self.calibrated && self.calibration.is_none() {
            if self.foreign {
                let what = "--foreign needs --calibrated or --calibration FILE";
                return Err(Failure::usage(what));
            }
            return Ok(Vec::new());
        }
        let path = self.calibration.clone().unwrap_or_else(default_path);
        let (calibration, mut warnings) = load(&path, self.foreign)?;
        let taken = parameters.calibrated(&calibration);
        if taken.is_empty() {
            let text =
                format!("all parameters were given: nothing is taken from {}", path.display());
            warnings.push(Warning::new("calibration-unused", text));
        } else {
            crate::note!("from {}: {}", path.display(), taken.join(", "));
        }
        Ok(warnings)
    }

    fn parameters(&self) -> anyhow::Result<Parameters> {
        let given = self.given.clone();
        let Some(path) = &self.file else { return Ok(given) };
        let name = || path.display().to_string();
        let text = std::fs::read_to_string(path).with_context(name)?;
        Ok(given.over(Parameters::from_toml(&text).with_context(name)?))
    }
}

/// The sentences, each with its formula and its assumptions.
fn sentences(got: &FluidBounds) -> String {
    let mut text = String::new();
    for (name, bound) in &got.bounds {
        text += &format!("{name}: {}\n", bound.sentence);
        text += &format!("    by {}\n    if {}\n", bound.formula, bound.assumes);
    }
    if !got.not_computed.is_empty() {
        text += &format!("\nnot computed, because these are missing: {}\n", got.missing());
    }
    text
}
