//! Options of the search on real traffic.

use rxpath_core::Nanos;
use rxpath_lab::search::live::allow::Allow;

use crate::cmd::tune::StateArgs;
use crate::cmd::values::{duration, seconds};

/// The heading of the options below in the help.
const HEADING: &str = "On real traffic";

/// Options of the search on real traffic.
#[derive(Debug, Default, clap::Args)]
pub struct LiveArgs {
    /// Search on this device's real traffic, without a scenario: settings of this host are switched in slices of time,
    /// and undone
    #[arg(long = "live", value_name = "IF", group = "traffic", help_heading = HEADING)]
    pub device: Option<String>,
    /// Change settings of this host; without it the candidates are listed only
    #[arg(long, conflicts_with = "scenario", help_heading = HEADING)]
    pub yes: bool,
    /// Length of a slice
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "5s", conflicts_with = "scenario", help_heading = HEADING)]
    pub slice: Nanos,
    /// Time after each switch that counts in no slice
    #[arg(long, value_name = "TIME", default_value = "1s", conflicts_with = "scenario", help_heading = HEADING)]
    pub settle: Nanos,
    /// Also try what holds for the whole host, recreates queues, or takes the link down for a moment
    #[arg(long, value_enum, value_delimiter = ',', conflicts_with = "scenario", help_heading = HEADING)]
    pub allow: Vec<Allow>,
    /// Also try this setting, as `tune plan --set` takes it; repeatable
    #[arg(long = "try", value_name = "KNOB=VALUE", conflicts_with = "scenario", help_heading = HEADING)]
    pub tries: Vec<String>,
    /// Leave what is kept in force at the end: `rxpath tune undo` undoes it
    #[arg(long, conflicts_with = "scenario", help_heading = HEADING)]
    pub apply: bool,
    /// With --apply: undo it after this time, unless `rxpath tune confirm` is run first
    #[arg(long, value_name = "TIME", value_parser = seconds, requires = "apply", help_heading = HEADING)]
    pub confirm_within: Option<Nanos>,
    #[command(flatten)]
    pub state: StateArgs,
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum;

    use super::*;
    use crate::cmd::values::value_name;

    #[test]
    fn a_refusal_names_the_value_that_permits_it() {
        for allow in Allow::value_variants() {
            assert_eq!(value_name(allow), allow.name());
        }
    }
}
