//! Which files are sent to other hosts: `--binary`.

use rxpath_remote::{Binaries, Given};

use crate::build_id;
use crate::exit::Failure;

/// Files for other hosts.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct BinaryArgs {
    /// Send this file to hosts of an architecture (x86_64, aarch64): a static build of the same sources
    #[arg(long = "binary", value_name = "ARCH=FILE")]
    pub given: Vec<Given>,
}

/// The files that can be sent, with those that were given.
pub fn binaries_of(given: &[Given]) -> Result<Binaries, Failure> {
    let exe = std::env::current_exe()?;
    let binaries = Binaries::new(exe, build_id::id(), given);
    binaries.map_err(|refusal| Failure::usage(refusal.text).hint(refusal.hint))
}
