//! A plan as text for the files that last over a restart: to be read and put in place by a person.
//!
//! The question it answers: *where does each of these values live, so that the next boot has it too?* Nothing is
//! installed: these are drafts, and what no file can hold is said.

use std::collections::BTreeSet;

use rxpath_host::Target;
use rxpath_host::pairs::Pairs;

use crate::plan::{LeftOut, Plan, PlanStep};

mod link;
mod matching;

pub(crate) use link::KEYS as LINK_KEYS;
pub use matching::{MatchBy, Matching};

/// A kind of file.
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Home {
    /// sysctl.d(5).
    #[cfg_attr(feature = "clap", value(name = "sysctl.d"))]
    Sysctl,
    /// systemd.link(5), one file a device.
    Link,
    /// udev(7) rules.
    Udev,
    /// Words for the kernel's command line.
    Cmdline,
    /// An Ansible task list that puts the first three in place.
    Ansible,
}

/// A draft.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Draft {
    /// Name of the file.
    pub name: String,
    /// Where it belongs.
    pub place: &'static str,
    /// Its text.
    pub text: String,
}

const NOTE: &str = "# Drafted by rxpath from a plan: read it before you install it.\n";

/// The drafts of a plan, and the steps that this kind of file can't hold.
///
/// `matching` says by what `.link` files know their devices.
pub fn drafts(plan: &Plan, home: Home, matching: &Matching) -> (Vec<Draft>, Vec<LeftOut>) {
    match home {
        Home::Sysctl => sysctl(plan),
        Home::Link => link::drafts(plan, matching),
        Home::Udev => udev(plan),
        Home::Cmdline => cmdline(plan),
        Home::Ansible => ansible(plan, matching),
    }
}

/// How many steps each kind of file can hold whole, for the kinds that hold some; the name is the one of `--persist`.
pub fn homes(plan: &Plan) -> Vec<(&'static str, usize)> {
    let kinds = [
        ("sysctl.d", Home::Sysctl),
        ("link", Home::Link),
        ("udev", Home::Udev),
        ("cmdline", Home::Cmdline),
    ];
    let count =
        |home| plan.steps.len().saturating_sub(drafts(plan, home, &Matching::default()).1.len());
    let all = kinds.into_iter().map(|(name, home)| (name, count(home)));
    all.filter(|(_, steps)| *steps > 0).collect()
}

fn left(step: &PlanStep, why: &str) -> LeftOut {
    LeftOut::new(format!("{} {}", step.set, step.new), why)
}

/// The text of each step that a kind of file holds, and the steps that it does not hold.
fn held(
    plan: &Plan,
    text: impl Fn(&PlanStep) -> Result<String, &'static str>,
) -> (Vec<String>, Vec<LeftOut>) {
    let (mut texts, mut out) = (Vec::new(), Vec::new());
    for step in &plan.steps {
        match text(step) {
            Ok(text) => texts.push(text),
            Err(why) => out.push(left(step, why)),
        }
    }
    (texts, out)
}

fn sysctl(plan: &Plan) -> (Vec<Draft>, Vec<LeftOut>) {
    let (texts, out) = held(plan, |step| match &step.set {
        // With slashes, because a device's name may hold dots (sysctl.d(5)).
        Target::Sysctl { key } => {
            Ok(format!("# {}\n{key} = {}\n", step.because.join(", "), step.new.trim()))
        }
        _ => Err("not a sysctl"),
    });
    (one("90-rxpath.conf", "/etc/sysctl.d/", &texts.concat()), out)
}

fn one(name: &str, place: &'static str, text: &str) -> Vec<Draft> {
    if text.is_empty() {
        return Vec::new();
    }
    vec![Draft { name: name.into(), place, text: format!("{NOTE}{text}") }]
}

fn udev(plan: &Plan) -> (Vec<Draft>, Vec<LeftOut>) {
    let (texts, out) = held(plan, |step| {
        let Target::Attr { dev, attr } = &step.set else {
            return Err("not an attribute of a device in sysfs");
        };
        let value = step.new.trim();
        // When the device comes or gets its name.
        let own = format!(
            "# {}\nACTION==\"add|move\", SUBSYSTEM==\"net\", KERNEL==\"{dev}\", \
             ATTR{{{attr}}}=\"{value}\"\n",
            step.because.join(", ")
        );
        Ok(match attr.strip_prefix("queues/").and_then(|rest| rest.split_once('/')) {
            // Queues are separate devices, recreated when their number changes; at boot they appear before their device
            // has its name.
            Some((queue, name)) => format!(
                "{own}ACTION==\"add\", SUBSYSTEM==\"queues\", KERNEL==\"{queue}\", \
                 DEVPATH==\"*/net/{dev}/queues/{queue}\", ATTR{{{name}}}=\"{value}\"\n"
            ),
            None => own,
        })
    });
    (one("90-rxpath.rules", "/etc/udev/rules.d/", &texts.concat()), out)
}

/// Words of the command line for files of sysfs that have one.
///
/// **Source** Documentation/admin-guide/kernel-parameters.txt; `module.parameter=` for module parameters.
fn word(path: &str, value: &str) -> Option<String> {
    let value = value.trim();
    match path {
        _ if path.ends_with("/scaling_governor") => {
            Some(format!("cpufreq.default_governor={value}"))
        }
        "/sys/devices/system/cpu/smt/control" if value == "off" => Some("nosmt".into()),
        "/sys/devices/system/clocksource/clocksource0/current_clocksource" => {
            Some(format!("clocksource={value}"))
        }
        "/sys/kernel/mm/transparent_hugepage/enabled" => {
            Some(format!("transparent_hugepage={value}"))
        }
        _ => {
            let (module, parameter) =
                path.strip_prefix("/sys/module/")?.split_once("/parameters/")?;
            Some(format!("{module}.{parameter}={value}"))
        }
    }
}

/// Whether a sysctl is one device's own (`net.ipv4.conf.eth0.rp_filter`). The kernel would also turn a dot in the device's name
/// into a slash (fs/proc/proc_sysctl.c `process_sysctl_arg`).
fn is_per_device(key: &str) -> bool {
    let slashed = if key.contains('/') { key.to_owned() } else { key.replace('.', "/") };
    let mut parts = slashed.split('/').skip(2);
    matches!(parts.next(), Some("conf" | "neigh"))
        && parts.next().is_some_and(|dev| !matches!(dev, "all" | "default"))
}

fn cmdline(plan: &Plan) -> (Vec<Draft>, Vec<LeftOut>) {
    let none = "has no parameter on the kernel's command line";
    let (found, out) = held(plan, |step| match &step.set {
        Target::Sysfs { path } => word(&path.to_string_lossy(), &step.new).ok_or(none),
        Target::Sysctl { key } if is_per_device(key) => {
            Err("its device is not there yet when the kernel reads the command line")
        }
        // Since 5.8 any sysctl can stand there (fs/proc/proc_sysctl.c `do_sysctl_args`).
        Target::Sysctl { key } if !step.new.trim().contains(char::is_whitespace) => {
            Ok(format!("sysctl.{}={}", key.replace('/', "."), step.new.trim()))
        }
        _ => Err(none),
    });
    let mut seen = BTreeSet::new();
    let words: Vec<String> = found.into_iter().filter(|word| seen.insert(word.clone())).collect();
    let text = if words.is_empty() { String::new() } else { words.join(" ") + "\n" };
    (one("cmdline.txt", "the boot loader's configuration", &text), out)
}

fn ansible(plan: &Plan, matching: &Matching) -> (Vec<Draft>, Vec<LeftOut>) {
    let mut text = String::from("---\n");
    for step in &plan.steps {
        if let Target::Sysctl { key } = &step.set {
            text += &format!(
                "- name: {}\n  ansible.posix.sysctl:\n    name: {}\n    value: {}\n    \
                 sysctl_file: /etc/sysctl.d/90-rxpath.conf\n",
                quoted(&format!("{key} ({})", step.because.join(", "))),
                quoted(key),
                quoted(step.new.trim()),
            );
        }
    }
    let files = [link::drafts(plan, matching).0, udev(plan).0].concat();
    for file in &files {
        text += &format!(
            "- name: {}\n  ansible.builtin.copy:\n    dest: {}\n    mode: '0644'\n    content: |\n",
            quoted(&file.name),
            quoted(&format!("{}{}", file.place, file.name)),
        );
        text.extend(file.text.lines().map(|line| format!("      {line}\n")));
    }
    let out = plan.steps.iter().filter_map(|step| {
        let alone = Plan { steps: vec![step.clone()], ..plan.clone() };
        let (files, missing) = link::drafts(&alone, matching);
        match missing.into_iter().next() {
            None => None,
            // A part of it.
            Some(rest) if !files.is_empty() => Some(rest),
            Some(_) if udev(&alone).1.is_empty() || sysctl(&alone).1.is_empty() => None,
            Some(_) => Some(left(
                step,
                "no configuration file can set it: use a unit that sets it at boot",
            )),
        }
    });
    let out = out.collect();
    if text == "---\n" {
        return (Vec::new(), out);
    }
    (one("rxpath-tasks.yml", "the tasks of a role", &text), out)
}

/// A YAML scalar in single quotes.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

fn pairs(step: &PlanStep) -> Pairs {
    step.new.parse().unwrap_or_default()
}

#[cfg(test)]
mod tests;
