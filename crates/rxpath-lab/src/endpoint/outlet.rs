//! The endpoint's standard output: one line at a time, and quiet while a window is measured.

use std::io::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use serde::Serialize;
use serde_json::Value;

use super::said::{LONGEST_LINE, Said};
use crate::error::LabError;
use crate::shared::locked;

/// Where an endpoint writes its lines.
///
/// A failed write means that the coordinator is gone; the end of the input says so too, and ends the endpoint.
pub struct Outlet {
    inner: Mutex<Inner>,
    bytes: Arc<AtomicU64>,
}

struct Inner {
    to: Box<dyn Write + Send>,
    /// Lines of programs in a window: the link that is measured may be the one that carries them.
    held: Option<Vec<Said>>,
    /// That of the outlet, which is read without waiting for a write.
    bytes: Arc<AtomicU64>,
}

impl Outlet {
    /// An outlet.
    pub fn new(to: Box<dyn Write + Send>) -> Self {
        let bytes = Arc::<AtomicU64>::default();
        let inner = Inner { to, held: None, bytes: Arc::clone(&bytes) };
        Self { inner: Mutex::new(inner), bytes }
    }

    /// Counts what was read from the pipe whose other direction this is. **Unit** bytes.
    pub fn count_read(&self, bytes: usize) {
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Bytes over the pipe in both directions so far.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Writes a line of text.
    pub fn text(&self, line: &str) {
        locked(&self.inner).line(line);
    }

    /// Writes a line, or keeps it if it is of a program and a window is measured.
    pub fn say(&self, said: Said) {
        let mut inner = locked(&self.inner);
        match (&mut inner.held, &said) {
            (Some(held), Said::Out { .. } | Said::Err { .. }) => return held.push(said),
            // A program that ends in a window voids it: no reason to wait for its end.
            (Some(_), Said::Exit { .. }) => inner.release(),
            _ => {}
        }
        inner.write(&said);
    }

    /// Answers a request.
    pub fn answer(&self, id: u64, answer: Result<Value, LabError>) {
        self.say(match answer {
            Ok(ok) => Said::Answer { id, ok },
            Err(error) => {
                Said::Failure { id, text: error.to_string(), hint: error.hint().to_owned() }
            }
        });
    }

    /// Answers from a thread of its own.
    pub fn later<T: Serialize>(
        self: &Arc<Self>,
        id: u64,
        work: impl FnOnce(&Self) -> Result<T, LabError> + Send + 'static,
    ) {
        let outlet = Arc::clone(self);
        std::thread::spawn(move || {
            let answer = work(&outlet).and_then(|found| json(&found));
            outlet.answer(id, answer);
        });
    }

    /// Keeps the lines of programs from now on.
    pub fn hold(&self) {
        locked(&self.inner).held.get_or_insert_default();
    }

    /// Writes what was kept, and keeps no more.
    pub fn release(&self) {
        locked(&self.inner).release();
    }
}

/// An answer as JSON.
pub(super) fn json(found: &impl Serialize) -> Result<Value, LabError> {
    serde_json::to_value(found).map_err(|error| LabError::not_json("an answer", &error))
}

impl Inner {
    fn release(&mut self) {
        for said in self.held.take().unwrap_or_default() {
            self.write(&said);
        }
    }

    fn write(&mut self, said: &Said) {
        // A line that cannot be made is a defect of this program, and there is nobody else to report it to.
        let Ok(text) = serde_json::to_string(said) else { return };
        match said {
            // The other end reads no more of it, and would wait for the answer.
            Said::Answer { id, .. } if text.len() >= LONGEST_LINE => {
                let text = format!("the answer has {} bytes, more than 16 MiB", text.len());
                self.write(&Said::Failure { id: *id, text, hint: String::new() });
            }
            _ => self.line(&text),
        }
    }

    fn line(&mut self, text: &str) {
        self.bytes.fetch_add(text.len() as u64 + 1, Ordering::Relaxed);
        let _ = writeln!(self.to, "{text}").and_then(|()| self.to.flush());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What an outlet wrote.
    #[derive(Clone, Default)]
    struct SaidBytes(Arc<Mutex<Vec<u8>>>);

    impl Write for SaidBytes {
        fn write(&mut self, more: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().write(more)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    /// What an outlet wrote of an answer to request 7.
    fn answered(answer: Result<Value, LabError>) -> Said {
        let bytes = SaidBytes::default();
        Outlet::new(Box::new(bytes.clone())).answer(7, answer);
        let line = bytes.0.lock().unwrap().clone();
        serde_json::from_slice(&line).unwrap()
    }

    #[test]
    fn an_answer_that_is_too_long_is_a_failure_that_says_so() {
        let said = answered(Ok(Value::String("x".repeat(LONGEST_LINE))));
        let Said::Failure { id: 7, text, .. } = said else { panic!("{said:?}") };
        assert!(text.ends_with(" bytes, more than 16 MiB"), "{text}");
    }

    #[test]
    fn an_error_takes_its_hint_along() {
        let error = LabError::CannotRun { what: "no".into(), hint: "do this".into() };
        let wanted = Said::Failure { id: 7, text: "no".into(), hint: "do this".into() };
        assert_eq!(answered(Err(error)), wanted);
        let wanted = Said::Failure { id: 7, text: "interrupted".into(), hint: String::new() };
        assert_eq!(answered(Err(LabError::Interrupted)), wanted);
    }
}
