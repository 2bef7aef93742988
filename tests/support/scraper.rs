//! A real Prometheus that scrapes an exporter.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

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
        let dir = tempfile::tempdir().unwrap();
        let config = dir.path().join("prometheus.yml");
        let text = format!(
            "global: {{scrape_interval: 1s, evaluation_interval: 1s}}\n{more}\nscrape_configs:\n- job_name: rxpath\n  static_configs: [{{targets: ['{target}']}}]\n"
        );
        fs::write(&config, text).unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let program = Command::new(program)
            .arg(format!("--config.file={}", config.display()))
            .arg(format!("--storage.tsdb.path={}", dir.path().join("data").display()))
            .arg(format!("--web.listen-address=127.0.0.1:{port}"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Self { program, port, _dir: dir }
    }

    /// What Prometheus says to a query; `None` while it does not answer.
    pub fn answer(&self, query: &str) -> Option<serde_json::Value> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).ok()?;
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
