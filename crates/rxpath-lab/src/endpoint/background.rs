//! Background load that an endpoint runs on its host.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::outlet::json;
use crate::error::LabError;
use crate::scenario::spec::Background as Spec;
use crate::trial::background::{Alongside, Background};

/// What a coordinator may want of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BackgroundAsk {
    /// Starts it: a list of its process ids. What these start later is found when a window begins.
    Start {
        /// What it is.
        load: Spec,
    },
    /// What is to be said about it: a list of [`rxpath_core::Warning`].
    Warnings {
        /// The receiving program's process, on a receiver.
        reader: Option<i32>,
        /// Its nice value.
        nice: i32,
    },
    /// Ends it.
    End,
}

/// What runs alongside the workload, if anything does.
#[derive(Default)]
pub struct HostBackground(Option<(Spec, Background)>);

impl HostBackground {
    /// Does what is wanted. To be called by the main thread: commands die with the thread that starts them.
    pub fn answer(&mut self, ask: BackgroundAsk) -> Result<Value, LabError> {
        match ask {
            BackgroundAsk::Start { load } => {
                let running = Background::start(&load, None)?;
                let pids: Vec<i32> = running.pids().into_iter().map(|(_, pid)| pid).collect();
                self.0 = Some((load, running));
                json(&pids)
            }
            BackgroundAsk::Warnings { reader, nice } => {
                let of = |(load, running): &mut (Spec, Background)| {
                    running.warnings(load, reader.as_slice(), nice)
                };
                json(&self.0.as_mut().map(of).transpose()?.unwrap_or_default())
            }
            BackgroundAsk::End => {
                self.0 = None;
                Ok(Value::Null)
            }
        }
    }
}
