//! The report in a real browser: nothing leaves the page, nothing complains, nothing is too wide.

mod browser;

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};

use rxpath_record::run::RunReader;
use serde_json::{Value, json};

use browser::Browser;

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/runs").join(name)
}

/// The report of a run as a file in `dir`.
fn report(run: &Path, dir: &Path) -> PathBuf {
    let run = RunReader::open(run).unwrap();
    let file = dir.join("report.html");
    fs::write(&file, rxpath_report::html(&run)).unwrap();
    file
}

/// Whatever the page tried to get from elsewhere, and whatever the browser complained about.
fn trouble(events: &[Value], page: &Path) -> Vec<String> {
    let own = format!("file://{}", page.display());
    let mut found = Vec::new();
    for event in events {
        let said = &event["params"];
        match event["method"].as_str().unwrap_or_default() {
            "Network.requestWillBeSent" => {
                let url = said["request"]["url"].as_str().unwrap_or_default();
                if url != own && !url.starts_with("data:") {
                    found.push(format!("request: {url}"));
                }
            }
            "Log.entryAdded" => found.push(format!("log: {}", said["entry"]["text"])),
            "Runtime.exceptionThrown" => found.push(format!("exception: {said}")),
            "Runtime.consoleAPICalled" => found.push(format!("console: {}", said["args"])),
            "Audits.issueAdded" => found.push(format!("issue: {}", said["issue"]["code"])),
            _ => {}
        }
    }
    found
}

/// Width of the content and of the page that it is in, in CSS pixels.
fn widths(browser: &mut Browser) -> (f64, f64) {
    let metrics = browser.call("Page.getLayoutMetrics", &json!({}));
    let number = |at: &Value| at.as_f64().unwrap();
    let content = number(&metrics["cssContentSize"]["width"]);
    (content, number(&metrics["cssLayoutViewport"]["clientWidth"]))
}

fn set_up(browser: &mut Browser, width: u32, dark: bool, script: bool) {
    let screen = json!({"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false});
    browser.call("Emulation.setDeviceMetricsOverride", &screen);
    let scheme = if dark { "dark" } else { "light" };
    let media = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
    browser.call("Emulation.setEmulatedMedia", &media);
    browser.call("Emulation.setScriptExecutionDisabled", &json!({"value": !script}));
}

/// Loads the page in every setting that a reader may have; gives the backgrounds seen.
fn hold(browser: &mut Browser, page: &Path) -> Vec<Value> {
    let mut backgrounds = Vec::new();
    for (width, dark, script) in [1280, 400]
        .into_iter()
        .flat_map(|w| [(w, false, true), (w, true, true), (w, false, false), (w, true, false)])
    {
        let name = format!("{} at {width} px, dark {dark}, script {script}", page.display());
        set_up(browser, width, dark, script);
        browser.load(page);
        let (content, room) = widths(browser);
        assert!(content <= room, "{name}: {content} px wide in {room}");
        if script {
            browser.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)");
            let (content, room) = widths(browser);
            assert!(content <= room, "{name}, all opened: {content} px wide in {room}");
            backgrounds.push(browser.evaluate("getComputedStyle(document.body).backgroundColor"));
        }
        let found = trouble(&browser.take_events(), page);
        assert!(found.is_empty(), "{name}: {found:?}");
    }
    backgrounds
}

/// A run whose variant, kernel and question try to become markup that calls `address`.
fn hostile_run(dir: &Path, address: &str) -> PathBuf {
    let run = dir.join("hostile");
    fs::create_dir(&run).unwrap();
    let evil = format!(
        "</title></style></script><img src=http://{address}/x onerror=\"console.error(1)\">\
         <script>fetch('http://{address}/y')</script>'\"$\\frac{{1}}{{2}}$ a-name-without-any-place-to-break-\
         it-and-very-long-indeed-{}",
        "x".repeat(300)
    );
    let quoted = serde_json::to_string(&evil).unwrap();
    for file in ["manifest.json", "environment.json", "events.jsonl"] {
        let text = fs::read_to_string(fixture("million-pps").join(file)).unwrap();
        let text = text.replace("\"naive\"", &quoted).replace("\"6.18.5-made-up\"", &quoted);
        let text = text.replace("\"rx/Udp.RcvbufErrors\"", &quoted);
        fs::write(run.join(file), text).unwrap();
    }
    run
}

#[test]
fn the_report_stays_at_home_and_fits() {
    let Some(program) = browser::program() else {
        return crate::skip::skip("report_browser", "no chromium on this machine");
    };
    let dir = tempfile::tempdir().unwrap();
    let mut browser = Browser::start(program);
    for name in ["million-pps", "one-variant", "partial", "recorded-demo"] {
        let page = report(&fixture(name), dir.path());
        let seen = hold(&mut browser, &page);
        assert_ne!(seen[0], seen[1], "{name}: light and dark look the same");
    }
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let run = hostile_run(dir.path(), &listener.local_addr().unwrap().to_string());
    hold(&mut browser, &report(&run, dir.path()));
    let nobody = listener.accept().unwrap_err();
    assert_eq!(nobody.kind(), std::io::ErrorKind::WouldBlock, "a page called out");
}

/// The watch itself is watched: pages that do what a report must not do are noticed.
#[test]
fn the_browser_notices_what_it_is_asked_to_notice() {
    let Some(program) = browser::program() else {
        return crate::skip::skip("report_browser", "no chromium on this machine");
    };
    let dir = tempfile::tempdir().unwrap();
    let mut browser = Browser::start(program);
    let policy = "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'\">";
    for (body, sign) in [
        ("<img src=\"other.png\">".to_owned(), "request: "),
        ("<script>console.error('x')</script>".to_owned(), "console: "),
        ("<script>throw 1</script>".to_owned(), "exception: "),
        (format!("{policy}<script>1</script>"), "issue: "),
    ] {
        let page = dir.path().join("bad.html");
        fs::write(&page, format!("<!DOCTYPE html><title>bad</title>{body}")).unwrap();
        set_up(&mut browser, 400, false, true);
        browser.load(&page);
        browser.call("Page.getLayoutMetrics", &json!({}));
        let found = trouble(&browser.take_events(), &page);
        assert!(found.iter().any(|line| line.starts_with(sign)), "{sign} {found:?}");
    }
    let page = dir.path().join("wide.html");
    fs::write(&page, "<!DOCTYPE html><title>wide</title><div style=\"width:500px\">x</div>")
        .unwrap();
    browser.load(&page);
    let (content, room) = widths(&mut browser);
    assert!(content > room, "{content} in {room}");
}
