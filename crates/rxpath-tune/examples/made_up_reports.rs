//! Writes reports of hosts that do not exist, as `rxpath check --json` prints them: `made_up_reports DIR [HOSTS] [FINDINGS]`.
//!
//! For `bench/check.sh`. Three drivers, two firmwares and two kernels each; every 97th host has findings of its own.

use std::error::Error;
use std::fs;
use std::path::PathBuf;

use rxpath_core::Envelope;
use rxpath_host::Knob;
use rxpath_tune::check::{NicLine, Note};
use rxpath_tune::{Finding, Report, Rule, Set, rules};
use serde_json::json;

/// NICs of a host.
const NICS: usize = 8;
const DRIVERS: [&str; 3] = ["ice", "mlx5_core", "igb"];

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args_os().skip(1);
    let dir = PathBuf::from(args.next().ok_or("made_up_reports DIR [HOSTS] [FINDINGS]")?);
    let hosts: usize = args.next().map_or(Ok(10_000), |text| text.to_string_lossy().parse())?;
    let findings: usize = args.next().map_or(Ok(200), |text| text.to_string_lossy().parse())?;
    fs::create_dir_all(&dir)?;
    let rules: Vec<&Rule> = rules::all().collect();
    for host in 0..hosts {
        let settings = json!({
            "goal": null, "devices": [], "sysroot": null,
            "kernel": if host.is_multiple_of(10) { "6.1.0-made-up" } else { "6.12.0-made-up" },
        });
        let report = report(host, findings, &rules);
        let text =
            serde_json::to_string_pretty(&Envelope::new("check", settings, report, Vec::new()))?;
        fs::write(dir.join(format!("host{host:05}.json")), text)?;
    }
    Ok(())
}

fn report(host: usize, findings: usize, rules: &[&Rule]) -> Report {
    let driver = DRIVERS[host % DRIVERS.len()];
    let firmware = if host.is_multiple_of(50) { "1.2" } else { "1.3" };
    let nic = |at: usize| NicLine {
        device: format!("eth{at}"),
        driver: Some(driver.into()),
        firmware: Some(firmware.into()),
    };
    let odd = usize::from(host.is_multiple_of(97));
    let one = |at: usize| finding(rules[(at / NICS + odd * 7) % rules.len()], at % NICS);
    let note = |rule: &&Rule| Note { id: rule.id.into(), device: None, text: rule.what.into() };
    Report {
        nics: (0..NICS).map(nic).collect(),
        findings: (0..findings).map(one).collect(),
        silent: rules.iter().map(note).collect(),
        rules_count: rules.len() as u32,
        ..Report::default()
    }
}

fn finding(rule: &Rule, nic: usize) -> Finding {
    let key = format!("net.made.up{nic}");
    Finding {
        id: rule.id.into(),
        device: Some(format!("eth{nic}")),
        area: rule.area,
        severity: rxpath_tune::Severity::Warn,
        observed: format!("queue {nic} of \"eth{nic}\" is not as it should be"),
        expected: "another value, by the kernel's own default".into(),
        why: rule.what.into(),
        effect_size: rule.size,
        effect: rule.effect(),
        changes: vec![Set::new(Knob::sysctl(key), 1)],
        advice: None,
        counted: None,
        more: format!("rxpath explain {}", rule.id),
    }
}
