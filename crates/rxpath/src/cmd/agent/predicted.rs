//! rxpath-agent has no model: it predicts nothing.

use std::convert::Infallible;

use rxpath_core::Warning;
use rxpath_tune::plan::Plan;
use rxpath_tune::plan::expected::Expected;

use crate::exit::Failure;

/// No option asks for predictions.
#[derive(Debug, clap::Args)]
pub struct PredictArgs {
    #[arg(skip)]
    predict: Option<Infallible>,
}

impl PredictArgs {
    /// Nothing.
    pub fn asked(&self) -> Option<&str> {
        self.predict.map(|never| match never {})
    }

    /// Nothing.
    #[allow(clippy::unnecessary_wraps, reason = "the full program reads files for it")]
    pub fn base(&self) -> Result<(Option<Infallible>, Vec<Warning>), Failure> {
        Ok((self.predict, Vec::new()))
    }
}

/// Is not called.
#[allow(clippy::trivially_copy_pass_by_ref, reason = "the full program has a model here")]
pub fn expected(_plan: &Plan, base: &Infallible) -> Vec<Expected> {
    match *base {}
}
