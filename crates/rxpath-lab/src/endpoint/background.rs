//! Background load that an endpoint runs on its host.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::server::json;
use crate::error::LabError;
use crate::scenario::spec::Background as Spec;
use crate::trial::background::{Alongside, Background};

/// What a coordinator may want of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BackgroundAsk {
    /// Starts it.
    Start {
        /// What it is.
        load: Spec,
    },
    /// Its processes: a list of process ids.
    Pids,
    /// What is to be said about it: a list of [`rxpath_core::Warning`].
    Warnings {
        /// The receiving program's process.
        reader: i32,
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
                self.0 = Some((load, running));
                Ok(Value::Null)
            }
            BackgroundAsk::Pids => {
                let pids = self.0.as_ref().map(|(_, running)| running.pids()).transpose()?;
                let pids = pids.into_iter().flatten().map(|(_, pid)| pid);
                json(&pids.collect::<Vec<i32>>())
            }
            BackgroundAsk::Warnings { reader, nice } => {
                let of = |(load, running): &mut (Spec, Background)| {
                    running.warnings(load, &[reader], nice)
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
