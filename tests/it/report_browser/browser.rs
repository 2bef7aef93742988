//! A headless Chromium, steered through its debugging protocol over a pipe (messages end with a zero byte).

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// Longest wait for one answer or for a page to load, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

const FLAGS: [&str; 10] = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--remote-debugging-pipe",
    "about:blank",
];

/// The browser's program, when this machine has one.
pub fn program() -> Option<&'static str> {
    ["chromium", "chromium-browser", "google-chrome"].into_iter().find(|name| {
        let paths = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&paths).any(|dir| dir.join(name).is_file())
    })
}

/// One browser with one page.
pub struct Browser {
    child: Child,
    to: Option<ChildStdin>,
    from: Receiver<Value>,
    session: Value,
    last_id: u64,
    /// Events since the last `take_events`.
    events: Vec<Value>,
    _profile: tempfile::TempDir,
}

impl Browser {
    /// Starts a browser with an empty profile.
    pub fn start(program: &str) -> Self {
        let profile = tempfile::tempdir().unwrap();
        // The protocol is spoken on descriptors 3 and 4; the shell puts our pipes there.
        let mut child = Command::new("sh")
            .args(["-c", "exec \"$0\" \"$@\" 3<&0 4>&1 >/dev/null 2>&1 </dev/null", program])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .args(FLAGS)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (to, out) = (child.stdin.take(), child.stdout.take().unwrap());
        let (sender, from) = channel();
        std::thread::spawn(move || {
            for message in BufReader::new(out).split(0).map_while(Result::ok) {
                let Ok(message) = serde_json::from_slice(&message) else { break };
                if sender.send(message).is_err() {
                    break;
                }
            }
        });
        let session = Value::Null;
        let mut browser =
            Self { child, to, from, session, last_id: 0, events: vec![], _profile: profile };
        browser.open_page();
        browser
    }

    fn open_page(&mut self) {
        let target = self.call("Target.createTarget", &json!({"url": "about:blank"}));
        let attach = json!({"targetId": target["targetId"], "flatten": true});
        self.session = self.call("Target.attachToTarget", &attach)["sessionId"].take();
        for domain in ["Page", "Network", "Log", "Runtime", "Audits"] {
            self.call(&format!("{domain}.enable"), &json!({}));
        }
    }

    /// Calls a method and gives its result.
    pub fn call(&mut self, method: &str, parameters: &Value) -> Value {
        self.last_id += 1;
        let mut message = json!({"id": self.last_id, "method": method, "params": parameters});
        if !self.session.is_null() {
            message["sessionId"] = self.session.clone();
        }
        let to = self.to.as_mut().unwrap();
        to.write_all(format!("{message}\0").as_bytes()).unwrap();
        let deadline = Instant::now() + PATIENCE;
        loop {
            let mut answer = self.receive(deadline, method);
            if answer["id"] == self.last_id {
                assert!(answer.get("error").is_none(), "{method}: {}", answer["error"]);
                return answer["result"].take();
            }
            self.events.push(answer);
        }
    }

    /// Loads a file and waits for its load event.
    pub fn load(&mut self, file: &Path) {
        self.events.clear();
        let url = format!("file://{}", file.display());
        let answer = self.call("Page.navigate", &json!({"url": url}));
        assert!(answer.get("errorText").is_none(), "{url}: {}", answer["errorText"]);
        let deadline = Instant::now() + PATIENCE;
        while !self.events.iter().any(|event| event["method"] == "Page.loadEventFired") {
            let event = self.receive(deadline, "load");
            self.events.push(event);
        }
    }

    /// The value of a JavaScript expression in the page.
    pub fn evaluate(&mut self, expression: &str) -> Value {
        let asked = json!({"expression": expression, "returnByValue": true});
        let mut answer = self.call("Runtime.evaluate", &asked);
        assert!(answer.get("exceptionDetails").is_none(), "{expression}: {answer}");
        answer["result"]["value"].take()
    }

    /// What happened since the last load.
    pub fn take_events(&mut self) -> Vec<Value> {
        std::mem::take(&mut self.events)
    }

    fn receive(&mut self, deadline: Instant, what: &str) -> Value {
        match self.from.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(message) => message,
            Err(RecvTimeoutError::Timeout) => panic!("{what}: the browser did not answer"),
            Err(RecvTimeoutError::Disconnected) => panic!("{what}: the browser has gone"),
        }
    }
}

impl std::ops::Drop for Browser {
    fn drop(&mut self) {
        // Without its pipe the browser ends itself and its helpers; a stuck one is killed.
        drop(self.to.take());
        let deadline = Instant::now() + Duration::from_secs(10);
        while let Ok(None) = self.child.try_wait() {
            if Instant::now() > deadline {
                let _ = self.child.kill();
                let _ = self.child.wait();
                return;
            }
            // The reader's channel closes when the browser does.
            let _ = self.from.recv_timeout(Duration::from_millis(20));
        }
    }
}
