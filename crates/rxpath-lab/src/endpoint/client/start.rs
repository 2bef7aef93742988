//! The start of an endpoint: what its host says before the marker, and the program that a host without it gets over the same
//! connection.

use std::ffi::OsString;
use std::io::Write;
use std::process::{ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicU32, AtomicU64};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rxpath_remote::ship::Shipment;
use rxpath_remote::ssh;

use super::{Client, NoStart, Shared};
use crate::clock::monotonic_ns;
use crate::endpoint::lease::Lease;
use crate::error::LabError;
use crate::shared::locked;

/// Output before the marker that is kept: a login shell's greeting.
const NOISE_BYTES: usize = 64 << 10;
/// How long the last words of a transport that has ended are waited for: a process that it left in the background, as a command of
/// `ProxyCommand`, may hold its standard error.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Where the program for a host comes from that lacks it.
pub trait Supply {
    /// The program for a host of this architecture, as `uname -m` names it. Without one the host is left.
    ///
    /// # Errors
    /// Why the host cannot have one.
    fn program(&mut self, _arch: &str) -> Result<Option<Shipment>, LabError> {
        Ok(None)
    }
    /// The host, which printed this, takes the program.
    fn begins(&mut self, _printed: &str) {}
    /// So many bytes of it were sent.
    fn sent(&mut self, _bytes: u64) {}
}

/// For an endpoint whose host has the program.
impl Supply for () {}

/// What happens until an endpoint has started.
pub(super) enum Heard {
    /// Its host printed a line that is not the marker.
    Line(String),
    /// The marker.
    Ready,
    /// Its output ended.
    End,
    /// So many bytes of the program were sent.
    Sent(u64),
    /// All of it was sent; its input is free again.
    Whole(ChildStdin),
}

impl Client {
    /// Starts `transport`, whose standard input and output are the endpoint's, and waits for the endpoint.
    ///
    /// # Errors
    /// [`NoStart`] if the marker did not come within `limit`.
    pub fn start(
        alias: &str,
        transport: Command,
        limit: Duration,
    ) -> Result<Result<Self, NoStart>, LabError> {
        Self::start_or_send(alias, transport, limit, &mut ())
    }

    /// As [`Self::start`]. A host without the program gets that of `supply` first. `limit` is that of each step: until the
    /// host says what it needs, until it takes the program, while nothing of the program goes on, and until the endpoint
    /// starts.
    ///
    /// # Errors
    /// [`NoStart`] if a step took longer or the connection ended; [`LabError`] if `supply` has no program for the host.
    pub fn start_or_send(
        alias: &str,
        mut transport: Command,
        limit: Duration,
        supply: &mut dyn Supply,
    ) -> Result<Result<Self, NoStart>, LabError> {
        transport.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let path = transport.get_program().into();
        let mut child = transport.spawn().map_err(|source| LabError::Start { path, source })?;
        let shared = Arc::new(Shared {
            alias: alias.to_owned(),
            stdin: Mutex::new(child.stdin.take()),
            lease: Lease::since(monotonic_ns()),
            ..Shared::default()
        });
        let (say, heard) = channel();
        if let Some(stdout) = child.stdout.take() {
            let (shared, say) = (Arc::clone(&shared), say.clone());
            std::thread::spawn(move || shared.listen(stdout, &say));
        }
        let (remembers, remembered) = channel::<()>();
        if let Some(stderr) = child.stderr.take() {
            let shared = Arc::clone(&shared);
            std::thread::spawn(move || {
                shared.remember(stderr);
                drop(remembers);
            });
        }
        let mut start = Start {
            shared: Arc::clone(&shared),
            say,
            heard,
            limit,
            deadline: Instant::now() + limit,
            is_ready: false,
            is_late: false,
            printed: String::new(),
            offered: None,
            sending: None,
        };
        let client = Self {
            shared,
            words: words(&transport),
            transport: Mutex::new(child),
            next_request: AtomicU64::new(1),
            next_program: AtomicU32::new(1),
        };
        if start.is_made(supply)? {
            client.keep_alive();
            return Ok(Ok(client));
        }
        let status = client.end();
        if status.is_some() {
            let _ = remembered.recv_timeout(LAST_WORDS);
        }
        let last_words = client.shared.last_words.text();
        let Start { is_late, sending, printed, .. } = start;
        let (printed, is_cut) = (printed.trim().to_owned(), sending.is_some());
        Ok(Err(NoStart { printed, last_words, status, is_late, is_cut }))
    }

    /// Another endpoint on the same host is started by these words: those for the program that is there now.
    pub fn starts_again_by(&mut self, transport: &Command) {
        self.words = words(transport);
    }

    /// Starts another endpoint on the same host, which has the program; nothing if it does not start. This one ends, if it
    /// only did not answer.
    pub fn again(&self, limit: Duration) -> Option<Self> {
        self.shared.lose("another one takes its place".into());
        let (program, words) = self.words.split_first()?;
        let mut transport = Command::new(program);
        transport.args(words);
        Self::start(self.alias(), transport, limit).ok()?.ok()
    }
}

fn words(command: &Command) -> Vec<OsString> {
    [command.get_program()].into_iter().chain(command.get_args()).map(OsString::from).collect()
}

/// A start that is being made.
struct Start {
    shared: Arc<Shared>,
    say: Sender<Heard>,
    heard: Receiver<Heard>,
    limit: Duration,
    deadline: Instant,
    is_ready: bool,
    /// A step took longer than the limit.
    is_late: bool,
    printed: String,
    /// The program that was offered.
    offered: Option<Shipment>,
    /// Since when it is being sent.
    sending: Option<Instant>,
}

impl Start {
    /// Waits for the endpoint, and does what its host needs; whether it started.
    fn is_made(&mut self, supply: &mut dyn Supply) -> Result<bool, LabError> {
        while let Some(left) = self.deadline.checked_duration_since(Instant::now()) {
            match self.heard.recv_timeout(left) {
                Ok(Heard::Line(line)) => self.line(&line, supply)?,
                Ok(Heard::Ready) => self.is_ready = true,
                Ok(Heard::Sent(bytes)) => {
                    supply.sent(bytes);
                    self.deadline = Instant::now() + self.limit;
                }
                Ok(Heard::Whole(pipe)) => self.whole(pipe),
                Ok(Heard::End) => return Ok(false),
                Err(_) => break,
            }
            // The marker may come a moment before the news that all was sent.
            if self.is_ready && self.sending.is_none() {
                return Ok(true);
            }
        }
        self.is_late = true;
        Ok(false)
    }

    /// Does what a line of the host asks for.
    fn line(&mut self, line: &str, supply: &mut dyn Supply) -> Result<(), LabError> {
        if self.printed.len() < NOISE_BYTES {
            self.printed.push_str(line);
            self.printed.push('\n');
        }
        if let Some(arch) = ssh::needs_program(line) {
            self.offered = supply.program(arch)?;
            self.answer();
        } else if ssh::takes_program(line)
            && let Some(program) = self.offered.take()
        {
            supply.begins(&self.printed);
            self.send(program);
        } else {
            return Ok(());
        }
        self.deadline = Instant::now() + self.limit;
        Ok(())
    }

    /// Offers the program to the host, or ends its input, and so the host's script.
    fn answer(&self) {
        let mut stdin = locked(&self.shared.stdin);
        let Some(program) = &self.offered else {
            *stdin = None;
            return;
        };
        if let Some(pipe) = stdin.as_mut() {
            // A connection that has ended is heard of.
            let _ = pipe.write_all(program.offer().as_bytes());
        }
    }

    /// Sends the program in a thread of its own: a silent network takes nothing.
    fn send(&mut self, program: Shipment) {
        let Some(mut pipe) = locked(&self.shared.stdin).take() else { return };
        let say = self.say.clone();
        self.sending = Some(Instant::now());
        std::thread::spawn(move || {
            let mut sent = |bytes| {
                let _ = say.send(Heard::Sent(bytes));
            };
            // What is cut short ends the input, and the host refuses it.
            if program.send(&mut pipe, &mut sent).is_ok() {
                let _ = say.send(Heard::Whole(pipe));
            }
        });
    }

    /// All was sent, and its end may still be under way: that takes no longer than all of it did.
    fn whole(&mut self, pipe: ChildStdin) {
        *locked(&self.shared.stdin) = Some(pipe);
        let took = self.sending.take().map_or(Duration::ZERO, |begun| begun.elapsed());
        self.deadline = Instant::now() + self.limit + took;
    }
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use nix::sys::signal::{Signal, kill};
    use nix::unistd::Pid;
    use rxpath_remote::ship::hash;

    use super::*;
    use crate::endpoint::client::PROMPT;
    use crate::endpoint::wire::{HostAsk, MARKER};

    /// A host without the program, which takes it.
    const TAKES: &str =
        "echo Welcome; echo '@@rxpath-need sparc'; read -r n h; echo '@@rxpath-send'";
    /// Answers a question for the clock.
    const ANSWERS: &str = r#"while IFS= read -r asked; do
            case $asked in *clock*) ;; *) continue ;; esac
            id=${asked#*:}; id=${id%%,*}
            echo "{\"answer\":{\"id\":$id,\"ok\":7}}"
        done"#;

    fn shell(script: &str) -> Command {
        let mut transport = Command::new("sh");
        transport.args(["-c", script]);
        transport
    }

    /// More bytes than pipes hold.
    fn program() -> Vec<u8> {
        vec![7; 1_000_000]
    }

    /// A file that every host gets.
    struct OneFile {
        path: PathBuf,
        /// What was asked and said.
        said: Vec<String>,
    }

    impl OneFile {
        fn new(path: &Path) -> Self {
            std::fs::write(path, program()).unwrap();
            Self { path: path.to_owned(), said: Vec::new() }
        }
    }

    impl Supply for OneFile {
        fn program(&mut self, arch: &str) -> Result<Option<Shipment>, LabError> {
            self.said.push(arch.to_owned());
            Ok(Some(Shipment::of(&self.path, &hash(&program())).unwrap()))
        }

        fn begins(&mut self, printed: &str) {
            self.said.push(printed.to_owned());
        }
    }

    #[test]
    fn a_host_without_the_program_gets_it_and_its_endpoint_has_the_same_input() {
        let dir = tempfile::tempdir().unwrap();
        let [from, to] = ["from", "to"].map(|name| dir.path().join(name));
        let mut supply = OneFile::new(&from);
        let to_path = to.display();
        let script = format!(
            "{TAKES}; head -c \"$n\" >{to_path}; sha256sum <{to_path} | grep -q \"^$h \" || exit 1\n\
             echo '{MARKER}'\n{ANSWERS}"
        );
        let client = Client::start_or_send("sut", shell(&script), PROMPT, &mut supply);
        let client = client.unwrap().unwrap();
        assert!(std::fs::read(to).unwrap() == std::fs::read(from).unwrap());
        let printed = "Welcome\n@@rxpath-need sparc\n@@rxpath-send\n";
        assert_eq!(supply.said, ["sparc", printed]);
        assert_eq!(client.ask::<u32>(HostAsk::Clock, PROMPT).unwrap(), 7);
    }

    #[test]
    fn a_host_for_which_there_is_no_program_is_left_at_once() {
        let script = "echo '@@rxpath-need sparc'; read -r n h || echo none";
        let said = Client::start("sut", shell(script), PROMPT).unwrap().err().unwrap();
        assert_eq!((said.printed.as_str(), said.status), ("@@rxpath-need sparc\nnone", Some(0)));
        assert!(!said.is_cut);
    }

    #[test]
    fn a_transfer_that_is_cut_or_goes_on_no_more_is_known_for_one() {
        let dir = tempfile::tempdir().unwrap();
        let mut supply = OneFile::new(&dir.path().join("from"));
        let mut start = |end: &str, limit: Duration| {
            let script = shell(&format!("{TAKES}; {end}"));
            Client::start_or_send("sut", script, limit, &mut supply).unwrap().err().unwrap()
        };
        let cut = start("head -c 10 >/dev/null; exit 3", PROMPT);
        assert_eq!((cut.status, cut.is_late, cut.is_cut), (Some(3), false, true));
        // A busy machine may take longer until the transfer begins.
        let mut limits = [3, 10, 60].into_iter().map(Duration::from_secs);
        let silent = limits
            .find_map(|limit| Some(start("exec sleep 1000", limit)).filter(|silent| silent.is_cut));
        let silent = silent.unwrap();
        assert_eq!((silent.status, silent.is_late, silent.is_cut), (None, true, true));
    }

    #[test]
    fn what_a_login_shell_prints_is_skipped_before_the_marker_and_shown_without_it() {
        let start =
            |script: &str, limit: Duration| Client::start("sut", shell(script), limit).unwrap();
        assert!(start(&format!("echo Welcome; echo '{MARKER}'; cat"), PROMPT).is_ok());
        let ends = "echo Welcome; echo 'no such program' >&2; exit 3";
        let said = start(ends, PROMPT).err().unwrap();
        let (printed, last_words) = ("Welcome".to_owned(), "no such program".to_owned());
        let status = Some(3);
        assert_eq!(said, NoStart { printed, last_words, status, is_late: false, is_cut: false });
        // A login shell that waits for its user.
        let waits = start("cat", Duration::from_millis(50)).err().unwrap();
        assert!(waits.is_late && waits.status == Some(0), "{waits:?}");
    }

    #[test]
    fn what_a_transport_leaves_in_the_background_holds_up_no_start() {
        let dir = tempfile::tempdir().unwrap();
        let held = dir.path().join("pid");
        let script = format!(
            "sleep 100 >/dev/null </dev/null & echo $! >{}; echo 'no route' >&2; exit 3",
            held.display()
        );
        let said = Client::start("sut", shell(&script), PROMPT).unwrap().err().unwrap();
        let pid = std::fs::read_to_string(held).unwrap();
        let pid = Pid::from_raw(pid.trim().parse().unwrap());
        // It has the standard error of the transport, and nobody waited for its end.
        kill(pid, Signal::SIGKILL).unwrap();
        assert_eq!((said.status, said.last_words.as_str()), (Some(3), "no route"));
    }

    #[test]
    fn another_endpoint_starts_by_the_words_of_the_one_that_was_lost() {
        let transport = |answers: &str| shell(&format!("echo '{MARKER}'\n{answers}"));
        let asked = |client: &Client| client.ask::<u32>(HostAsk::Clock, PROMPT);
        let mut first = Client::start("gen1", transport(ANSWERS), PROMPT).unwrap().unwrap();
        let again = first.again(PROMPT).unwrap();
        assert!(asked(&first).is_err());
        assert_eq!((again.alias(), asked(&again).unwrap()), ("gen1", 7));
        // By those for the program that it got.
        first.starts_again_by(&transport(&ANSWERS.replace(":7}", ":8}")));
        assert_eq!(asked(&first.again(PROMPT).unwrap()).unwrap(), 8);
    }
}
