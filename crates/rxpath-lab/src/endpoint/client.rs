//! The coordinator's end of an endpoint's pipe: requests, their answers, and the programs that run there.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{BufRead, BufReader, PipeWriter, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ChildStdin, ExitStatus};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rxpath_remote::HostRefusal;
use serde::de::DeserializeOwned;
use serde_json::Value;

pub use self::no_start::NoStart;
use self::program::{Ending, Remote};
use self::start::Heard;
pub use self::start::Supply;
use super::clock::{ClockBounds, ClockPair, EXCHANGES, Exchange};
use super::lease::Lease;
use super::said::{LONGEST_LINE, Said};
use super::wire::{HostAsk, MARKER, Request, TICK_MS};
use crate::clock::monotonic_ns;
use crate::error::LabError;
use crate::shared::{LastWords, locked};

mod load;
mod no_start;
mod program;
mod start;

/// How long a request may take that only reads or starts something.
pub const PROMPT: Duration = Duration::from_secs(10);
/// How often a wait looks at the stop flag.
const GLANCE: Duration = Duration::from_millis(20);
/// Comparisons of a clock that jumps in each of them, or that is slewed by more than two clocks can come apart.
const BURSTS: u32 = 3;
/// How long an endpoint may take to end after its input.
const END_LIMIT: Duration = Duration::from_secs(5);

/// A connected endpoint. Dropping it ends the endpoint and what runs there.
pub struct Client {
    shared: Arc<Shared>,
    /// The words that started the transport.
    words: Vec<OsString>,
    transport: Mutex<Child>,
    next_request: AtomicU64,
    next_program: AtomicU32,
}

#[derive(Default)]
struct Shared {
    alias: String,
    stdin: Mutex<Option<ChildStdin>>,
    waiting: Mutex<BTreeMap<u64, SyncSender<Answered>>>,
    programs: Mutex<BTreeMap<u32, Remote>>,
    /// Of the host: when it was heard, and how long it may be silent.
    lease: Lease,
    /// Why the host is lost, once it is.
    lost: Mutex<Option<String>>,
    /// What the transport said on its standard error.
    last_words: LastWords,
}

/// What an endpoint answers.
type Answered = Result<Value, HostRefusal>;

/// A request whose answer comes later.
pub struct PendingAnswer {
    shared: Arc<Shared>,
    /// What was asked.
    ask: HostAsk,
    answer: Receiver<Answered>,
}

impl Client {
    /// The host's name in this experiment.
    pub fn alias(&self) -> &str {
        &self.shared.alias
    }

    /// Shows the endpoint each second that its coordinator lives, and takes a host that shows nothing for lost.
    fn keep_alive(&self) {
        let shared = Arc::downgrade(&self.shared);
        std::thread::spawn(move || {
            loop {
                // why: the pace of the signs of life.
                std::thread::sleep(Duration::from_millis(TICK_MS));
                let Some(shared) = shared.upgrade() else { return };
                let now_ns = monotonic_ns();
                if shared.lease.is_over(now_ns) {
                    let silent_s = shared.lease.silent_ns(now_ns) / 1_000_000_000;
                    return shared.lose(format!("it showed no sign of life for {silent_s} s"));
                }
                if shared.send(&Request { id: 0, ask: HostAsk::Tick }).is_err() {
                    return;
                }
            }
        });
    }

    /// Asks, and waits for the answer.
    ///
    /// # Errors
    /// [`LabError::OnHost`] with what the endpoint says; [`LabError::Lost`] if there is no answer within `limit`.
    pub fn ask<T: DeserializeOwned>(&self, ask: HostAsk, limit: Duration) -> Result<T, LabError> {
        self.begin(ask)?.wait(limit)
    }

    /// Asks; the answer is waited for later.
    pub fn begin(&self, ask: HostAsk) -> Result<PendingAnswer, LabError> {
        let id = self.next_request.fetch_add(1, Ordering::Relaxed);
        let (answered, answer) = sync_channel(1);
        locked(&self.shared.waiting).insert(id, answered);
        let request = Request { id, ask };
        self.shared.send(&request)?;
        Ok(PendingAnswer { shared: Arc::clone(&self.shared), ask: request.ask, answer })
    }

    /// Measures how far the host's clock is ahead, by exchanges over this pipe. A clock that jumps meanwhile is compared
    /// again: where it is then shows the jump.
    pub fn clock(&self) -> Result<ClockBounds, LabError> {
        (0..BURSTS).find_map(|_| self.burst().transpose()).unwrap_or_else(|| {
            let text = format!(
                "its clock jumped or was slewed each of {BURSTS} times that it was compared"
            );
            Err(LabError::on_host(self.alias(), text))
        })
    }

    /// One comparison; `None` if the clock jumped or was slewed in it.
    fn burst(&self) -> Result<Option<ClockBounds>, LabError> {
        let mut exchanges = Vec::with_capacity(EXCHANGES as usize);
        for _ in 0..EXCHANGES {
            let asked_ns = monotonic_ns();
            let there: ClockPair = self.ask(HostAsk::Clock, PROMPT)?;
            exchanges.push(Exchange { asked_ns, there, back_ns: monotonic_ns() });
        }
        Ok(ClockBounds::of(&exchanges))
    }

    /// Closes the endpoint's input and waits for the end of the transport; ends that by force if it does not come.
    fn end(&self) -> Option<i32> {
        *locked(&self.shared.stdin) = None;
        let mut child = locked(&self.transport);
        let deadline = Instant::now() + END_LIMIT;
        while Instant::now() < deadline {
            if let Ok(Some(status)) = child.try_wait() {
                return status.code();
            }
            // why: waits for the exit of a child with a deadline; there is no wait call with a time limit.
            std::thread::sleep(Duration::from_millis(2));
        }
        let _ = child.kill();
        let _ = child.wait();
        None
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.end();
    }
}

impl PendingAnswer {
    /// Waits for the answer.
    pub fn wait<T: DeserializeOwned>(self, limit: Duration) -> Result<T, LabError> {
        self.read(self.answer.recv_timeout(limit), limit)
    }

    /// Waits for the answer unless a signal ends the wait.
    ///
    /// # Errors
    /// [`LabError::Interrupted`] when `stop` is set; those of [`PendingAnswer::wait`].
    pub fn wait_or_stop<T: DeserializeOwned>(
        self,
        limit: Duration,
        stop: &AtomicBool,
    ) -> Result<T, LabError> {
        let deadline = Instant::now() + limit;
        loop {
            if stop.load(Ordering::Relaxed) {
                return Err(LabError::Interrupted);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            match self.answer.recv_timeout(left.min(GLANCE)) {
                Err(RecvTimeoutError::Timeout) if left > GLANCE => {}
                answered => return self.read(answered, limit),
            }
        }
    }

    /// The answer as what was asked for, if it came in time.
    fn read<T: DeserializeOwned>(
        &self,
        answered: Result<Answered, RecvTimeoutError>,
        limit: Duration,
    ) -> Result<T, LabError> {
        let host = || self.shared.alias.clone();
        match answered {
            Ok(Ok(value)) => serde_json::from_value(value).map_err(|error| {
                LabError::on_host(&host(), format!("its answer is not understood: {error}"))
            }),
            Ok(Err(HostRefusal { text, hint })) => {
                Err(LabError::OnHost { host: host(), text, hint })
            }
            Err(RecvTimeoutError::Disconnected) => Err(self.shared.lost_error()),
            Err(RecvTimeoutError::Timeout) => Err(LabError::Lost {
                host: host(),
                why: format!("no answer to `{}` within {} s", self.ask.name(), limit.as_secs()),
                last_words: self.shared.last_words.text(),
            }),
        }
    }
}

impl Shared {
    fn send(&self, request: &Request) -> Result<(), LabError> {
        let text = serde_json::to_string(request)
            .map_err(|error| LabError::not_json("a request", &error))?;
        let mut stdin = locked(&self.stdin);
        let sent = stdin.as_mut().map(|pipe| writeln!(pipe, "{text}").and_then(|()| pipe.flush()));
        match sent {
            Some(Ok(())) => Ok(()),
            _ => Err(self.lost_error()),
        }
    }

    fn listen(&self, stdout: impl Read, say: &Sender<Heard>) {
        let mut from = BufReader::new(stdout);
        let mut bytes = Vec::new();
        let mut is_ready = false;
        while matches!(
            from.by_ref().take(LONGEST_LINE as u64).read_until(b'\n', &mut bytes),
            Ok(1..)
        ) {
            if is_ready && bytes.len() == LONGEST_LINE && !bytes.ends_with(b"\n") {
                return self.lose("it sent a line of more than 16 MiB".into());
            }
            let line = String::from_utf8_lossy(&bytes);
            let line = line.trim_end_matches(['\n', '\r']);
            if is_ready {
                self.lease.renew(monotonic_ns());
                self.hear(line);
            } else if line == MARKER {
                is_ready = true;
                // Until now it had nothing to say, however long the program took to be sent.
                self.lease.renew(monotonic_ns());
                let _ = say.send(Heard::Ready);
            } else {
                let _ = say.send(Heard::Line(line.to_owned()));
            }
            bytes.clear();
        }
        self.lose("its connection ended".into());
        let _ = say.send(Heard::End);
    }

    fn hear(&self, line: &str) {
        let Ok(said) = serde_json::from_str::<Said>(line) else { return };
        match said {
            Said::Tick => {}
            Said::Answer { id, ok } => self.answered(id, Ok(ok)),
            Said::Failure { id, text, hint } => self.answered(id, Err(HostRefusal { text, hint })),
            Said::Out { program, line } => self.print(program, &line, |it| &mut it.stdout),
            Said::Err { program, line } => self.print(program, &line, |it| &mut it.stderr),
            Said::Exit { program, status } => {
                // Its pipes close with it.
                if let Some(remote) = locked(&self.programs).remove(&program) {
                    remote.end.set(Ending::Status(ExitStatus::from_raw(status)));
                }
            }
        }
    }

    fn answered(&self, id: u64, answer: Answered) {
        if let Some(waiting) = locked(&self.waiting).remove(&id) {
            let _ = waiting.send(answer);
        }
    }

    fn print(&self, program: u32, line: &str, to: impl Fn(&mut Remote) -> &mut PipeWriter) {
        if let Some(remote) = locked(&self.programs).get_mut(&program) {
            // Nobody reads it any more: no loss.
            let _ = writeln!(to(remote), "{line}");
        }
    }

    /// Ends every wait: the host does not answer any more.
    fn lose(&self, why: String) {
        locked(&self.lost).get_or_insert(why);
        *locked(&self.stdin) = None;
        locked(&self.waiting).clear();
        for (_, remote) in std::mem::take(&mut *locked(&self.programs)) {
            remote.end.set(Ending::Lost);
        }
    }

    fn lost_error(&self) -> LabError {
        let why = locked(&self.lost).clone().unwrap_or_else(|| "its connection ended".into());
        LabError::Lost { host: self.alias.clone(), why, last_words: self.last_words.text() }
    }

    fn remember(&self, stderr: impl Read) {
        for line in BufReader::new(stderr).lines().map_while(Result::ok) {
            self.last_words.add(line.trim_end().to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;
    use crate::endpoint::settings::SettingsAsk;

    /// An endpoint that is a line of shell.
    fn client(script: &str) -> Client {
        let mut transport = Command::new("sh");
        transport.args(["-c", &format!("echo '{MARKER}'\n{script}")]);
        Client::start("gen1", transport, PROMPT).unwrap().unwrap()
    }

    /// A clock that is a minute further ahead at each of the first questions for it.
    fn jumping(questions: u32) -> Client {
        let script = r#"n=0
            while IFS= read -r asked; do
                case $asked in *clock*) ;; *) continue ;; esac
                [ $n -ge QUESTIONS ] || n=$((n + 1))
                t=$(($(date +%s%N) + n * 60000000000))
                id=${asked#*:}; id=${id%%,*}
                echo "{\"answer\":{\"id\":$id,\"ok\":{\"got_ns\":$t,\"answered_ns\":$t}}}"
            done"#;
        client(&script.replace("QUESTIONS", &questions.to_string()))
    }

    #[test]
    fn a_clock_that_jumps_while_it_is_compared_is_compared_again() {
        // In the first comparison only.
        let bounds = jumping(9).clock().unwrap();
        assert!(bounds.least_ns <= bounds.most_ns);
        let error = jumping(EXCHANGES * BURSTS).clock().unwrap_err().to_string();
        assert_eq!(
            error,
            "gen1: its clock jumped or was slewed each of 3 times that it was compared"
        );
    }

    #[test]
    fn what_an_endpoint_refuses_comes_with_its_hint() {
        let script = r#"while IFS= read -r asked; do
            case $asked in *clock*) ;; *) continue ;; esac
            id=${asked#*:}; id=${id%%,*}
            echo "{\"failure\":{\"id\":$id,\"text\":\"no clock\",\"hint\":\"buy one\"}}"
        done"#;
        let error = client(script).ask::<Value>(HostAsk::Clock, PROMPT).unwrap_err();
        assert_eq!((error.to_string().as_str(), error.hint()), ("gen1: no clock", "buy one"));
    }

    #[test]
    fn a_request_without_an_answer_is_named() {
        let what = SettingsAsk::UndoLeft;
        let silent = client("while read -r _; do :; done");
        let lost = silent.ask::<Value>(HostAsk::Settings { what }, Duration::ZERO).unwrap_err();
        let wanted = "gen1 was lost: no answer to `settings undo-left` within 0 s";
        assert_eq!(lost.to_string(), wanted);
    }

    #[test]
    fn a_line_that_is_too_long_is_why_a_host_is_lost() {
        let endless = client("read -r asked; head -c 17000000 /dev/zero | tr '\\0' x; cat");
        let lost = endless.ask::<Value>(HostAsk::Clock, PROMPT).unwrap_err().to_string();
        assert_eq!(lost, "gen1 was lost: it sent a line of more than 16 MiB");
    }
}
