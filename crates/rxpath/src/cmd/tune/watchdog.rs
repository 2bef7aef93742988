//! The process behind `tune apply --confirm-within` and `tune auto --live`; not a command for users.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use rxpath_host::Root;
use rxpath_host::lab::detached;
use rxpath_host::read::process::ProcessId;
use rxpath_host::write::journal::{Journal, Watch};
use rxpath_host::write::setter::HostSetter;
use rxpath_tune::outcome::ShownUndo;
use rxpath_tune::store::Store;
use rxpath_tune::watch::{WatchdogOutcome, deadline_ns, stand_by};

use super::StateArgs;
use super::shown::undo_lines;
use crate::cmd::prelude::*;

/// Options of the watchdog.
#[derive(Debug, Args)]
pub struct WatchdogCommand {
    /// Number of the journal
    #[arg(long)]
    journal: u32,
    #[command(flatten)]
    state: StateArgs,
}

impl WatchdogCommand {
    /// Waits, and undoes if there is no confirmation. It logs to its standard error.
    pub fn run(self) -> Outcome {
        let store = self.state.store();
        let mut setter = HostSetter::default();
        output::line("ready")?;
        match stand_by(&store, self.journal, &mut setter)? {
            WatchdogOutcome::Confirmed => crate::note!("confirmed"),
            WatchdogOutcome::Finished => crate::note!("no changes are in force any more"),
            WatchdogOutcome::Undone(undone) => {
                crate::note!("not confirmed in time: undone");
                for undo in undone {
                    for line in undo_lines(&ShownUndo::new(self.journal, undo), false) {
                        crate::note!("{line}");
                    }
                }
            }
        }
        Ok(Exit::Done)
    }
}

/// Starts the process that undoes, after a time or also once this process ends (`while_alive`), and returns when it is
/// ready. Nothing is changed before.
pub fn start_watchdog(
    store: &Store,
    id: u32,
    journal: &mut Journal,
    (within, while_alive): (Duration, bool),
) -> Result<Watch, Failure> {
    let child = ready(store, id)?;
    let watch = Watch {
        process: ProcessId::of(child.id() as i32)?,
        applier: ProcessId::own()?,
        deadline_ns: deadline_ns(within)?,
        while_alive,
        is_final: false,
    };
    journal.watch(watch)?;
    Ok(watch)
}

/// The process, ready: outside of the login where that is possible, so that it does not end with it.
fn ready(store: &Store, id: u32) -> Result<Child, Failure> {
    let log = File::create(store.log(id)).context("cannot create the watchdog's log")?;
    let program = std::env::current_exe().context("cannot find this program")?;
    let dir = store.path(id);
    let dir = dir.parent().unwrap_or(Path::new("."));
    let dir = dir.canonicalize().context("cannot find the state directory")?;
    let start = |mut command: Command| -> Result<Option<Child>, Failure> {
        let log = log.try_clone().context("cannot share the watchdog's log")?;
        command.args(["tune", "watchdog", "--state-dir"]).arg(&dir);
        command.args(["--journal", &id.to_string()]);
        command.current_dir("/").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log);
        let mut child = detached::spawn(command)?;
        let mut line = String::new();
        let said = child.stdout.take().map(|out| BufReader::new(out).read_line(&mut line));
        if matches!(said, Some(Ok(_))) && line == "ready\n" {
            return Ok(Some(child));
        }
        let _ = child.kill();
        let _ = child.wait();
        Ok(None)
    };
    let unit = format!("rxpath-watchdog-{id}-{}", std::process::id());
    let beyond = detached::beyond_login(&Root::host(), &program, &unit);
    let is_of_login = beyond.is_some();
    if let Some(child) = beyond.map(&start).transpose()?.flatten() {
        return Ok(child);
    }
    if is_of_login {
        crate::note!(
            "systemd-run did not start the watchdog (see {}): it ends with this login if logind.conf has \
             KillUserProcesses=yes",
            store.log(id).display()
        );
    }
    start(Command::new(&program))?.ok_or_else(|| {
        Failure::cannot("the watchdog did not start")
            .hint(format!("nothing was changed; see {}", store.log(id).display()))
    })
}
