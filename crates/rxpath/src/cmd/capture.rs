//! `rxpath capture`: this host's files and kernel answers as a tree for `--sysroot`.

use rxpath_core::number::si;
use rxpath_host::HostError;
use rxpath_host::lab::capture::{Captured, OmittedFile, capture};

use crate::cmd::prelude::*;

/// Options of `rxpath capture`
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Addresses (MAC, IPv4, IPv6), UUIDs, the host's and its users' names are replaced by placeholders, and \
                  keys are left out. Review the tree before you share it: it holds only text.\n\
                  Then: rxpath check --sysroot DIR."
)]
pub struct CaptureCommand {
    /// Target: a new or empty directory
    dir: PathBuf,
    /// Keep addresses, names and the RSS key as they are
    #[arg(long)]
    no_scrub: bool,
    #[command(flatten)]
    format: FormatArgs,
}

impl CaptureCommand {
    /// Captures and reports.
    pub fn run(self) -> Outcome {
        let captured = capture(&self.dir, !self.no_scrub).map_err(refused)?;
        let warnings = warnings(&captured);
        let settings = json!({ "dir": self.dir.display().to_string(), "scrub": !self.no_scrub });
        let answer = Envelope::new("capture", settings, captured, warnings);
        output::answer(self.format.is_json(), &answer, |captured| text(captured, &self.dir))?;
        Ok(Exit::Done)
    }
}

/// A directory that can't be written is a usage error; a host that can't be read is not.
fn refused(error: HostError) -> Failure {
    match error {
        HostError::Malformed { .. } => {
            Failure::new(Exit::Usage, error).hint("name a directory that does not exist yet")
        }
        HostError::Io { op: "write" | "create" | "list", .. }
        | HostError::Denied { .. }
        | HostError::Missing { .. } => {
            Failure::new(Exit::Usage, error).hint("name a directory that can be written")
        }
        other => Failure::new(Exit::Cannot, other),
    }
}

fn warnings(captured: &Captured) -> Vec<Warning> {
    let denied: Vec<&OmittedFile> =
        captured.left_out.iter().filter(|left| left.is_denied).collect();
    let Some(first) = denied.first() else { return Vec::new() };
    let (count, OmittedFile { path, why, .. }) = (denied.len(), first);
    let what = format!("{count} file(s) could not be read, the first is {path} ({why})");
    vec![Warning::new("capture-denied", what).cure("run as root to capture the whole host")]
}

fn text(captured: &Captured, dir: &Path) -> String {
    let (files, links) = (captured.files_count, captured.links_count);
    let (size, dir) = (si(captured.total_bytes as f64), dir.display());
    let mut out = format!("{files} files and {links} links ({size}B) in {dir}\n");
    out += &format!("devices: {}\n", captured.devices.join(", "));
    if captured.is_scrubbed {
        let r = captured.replaced;
        out += &format!(
            "replaced: {} MAC, {} IPv4 and {} IPv6 address(es), {} UUID(s), {} name(s); keys left out\n",
            r.mac_count, r.ipv4_count, r.ipv6_count, r.uuid_count, r.name_count
        );
    } else {
        out += "nothing replaced: the tree names this host and its neighbours\n";
    }
    let others = captured.left_out.iter().filter(|left| !left.is_denied);
    out.extend(others.map(|left| format!("left out: {} ({})\n", left.path, left.why)));
    out
}
