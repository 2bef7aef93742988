//! A real Prometheus that scrapes an exporter.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Ports that are tried: between the choice and Prometheus' bind, another test may get the port.
const TRIES: usize = 3;
/// For Prometheus to listen.
const PATIENCE: Duration = Duration::from_secs(30);

/// A Prometheus that scrapes; killed when it is dropped.
pub struct Scraper {
    pub program: Child,
    port: u16,
    _dir: tempfile::TempDir,
}

impl Drop for Scraper {
    fn drop(&mut self) {
        let _ = self.program.kill();
        let _ = self.program.wait();
    }
}

impl Scraper {
    /// Scrapes `target` every second; `more` is added to its configuration.
    pub fn start(program: &Path, target: &str, more: &str) -> Self {
        let config = format!(
            "global: {{scrape_interval: 1s, evaluation_interval: 1s}}\n{more}\nscrape_configs:\n- job_name: rxpath\n  static_configs: [{{targets: ['{target}']}}]\n"
        );
        let tried = || {
            let mut scraper = Self::spawned(program, &config);
            scraper.listens().then_some(scraper)
        };
        (0..TRIES)
            .find_map(|_| tried())
            .unwrap_or_else(|| panic!("Prometheus listened on none of {TRIES} ports"))
    }

    fn spawned(program: &Path, config: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("prometheus.yml");
        fs::write(&file, config).unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let program = Command::new(program)
            .arg(format!("--config.file={}", file.display()))
            .arg(format!("--storage.tsdb.path={}", dir.path().join("data").display()))
            .arg(format!("--web.listen-address=127.0.0.1:{port}"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Self { program, port, _dir: dir }
    }

    /// Whether Prometheus itself answers on its port. It ends at once if another program has the port.
    fn listens(&mut self) -> bool {
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline && self.program.try_wait().unwrap().is_none() {
            if self.answer("vector(1)").is_some_and(|answer| answer["status"] == "success") {
                return true;
            }
            // why: the pace of looking; the deadline above ends it.
            sleep(Duration::from_millis(50));
        }
        false
    }

    /// What Prometheus says to a query; `None` while it does not answer.
    pub fn answer(&self, query: &str) -> Option<serde_json::Value> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).ok()?;
        // Another program on this port may never end its answer.
        stream.set_read_timeout(Some(PATIENCE)).ok()?;
        let escaped: Vec<String> = query.bytes().map(|byte| format!("%{byte:02x}")).collect();
        let escaped = escaped.concat();
        let request = format!("GET /api/v1/query?query={escaped} HTTP/1.0\r\nHost: h\r\n\r\n");
        stream.write_all(request.as_bytes()).ok()?;
        let mut text = String::new();
        stream.read_to_string(&mut text).ok()?;
        serde_json::from_str(text.split_once("\r\n\r\n")?.1).ok()
    }
}

/// Where a program is, if it is installed.
pub fn installed(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|dir| dir.join(name)).find(|program| program.is_file())
}
