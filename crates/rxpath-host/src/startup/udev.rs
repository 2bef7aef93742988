//! udev rules that set something of network devices, and commands that rules run.

use super::{Sets, shell};
use crate::procfs::sysctl;

/// One `KEY{attribute}OP"value"` of a rule.
#[derive(Debug, PartialEq, Eq)]
struct Part {
    key: String,
    attribute: String,
    sign: &'static str,
    value: String,
}

impl Part {
    fn is_match(&self) -> bool {
        matches!(self.sign, "==" | "!=")
    }
}

/// What the rules of a file set, with the numbers of their lines.
pub(super) fn parse(text: &str) -> Vec<(usize, Sets)> {
    let mut found = Vec::new();
    // Rules up to this label are about network devices: the others jumped over them.
    let mut guard: Option<String> = None;
    for (number, line) in shell::joined(text) {
        if line.trim_start().starts_with('#') {
            continue;
        }
        let parts = parts(&line);
        let value = |key: &str, sign: &str| {
            parts.iter().find(|part| part.key == key && part.sign == sign).map(|part| &part.value)
        };
        if guard.is_some() && value("LABEL", "=") == guard.as_ref() {
            guard = None;
        }
        if value("SUBSYSTEM", "!=").is_some_and(|subsystem| subsystem == "net") {
            guard = value("GOTO", "=").cloned().or(guard);
            continue;
        }
        let is_net =
            guard.is_some() || value("SUBSYSTEM", "==").is_some_and(|subsystem| subsystem == "net");
        let rule = Rule { is_net, device: device(&parts), is_sure: is_net && is_sure(&parts) };
        let sets = parts.iter().filter(|part| !part.is_match()).flat_map(|part| rule.sets(part));
        found.extend(sets.map(|sets| (number, sets)));
    }
    found
}

/// The name of the devices that a rule is about, as a pattern.
fn device(parts: &[Part]) -> String {
    let named = |part: &&Part| matches!(part.key.as_str(), "KERNEL" | "NAME") && part.sign == "==";
    let name = parts.iter().find(named).map_or("*", |part| part.value.as_str());
    let is_one = !name.contains('|') && super::is_plain(name) && !name.contains([' ', '/']);
    if is_one && !name.is_empty() { name.to_owned() } else { "*".to_owned() }
}

/// Whether the rule acts on each device of that name when it appears.
fn is_sure(parts: &[Part]) -> bool {
    parts.iter().filter(|part| part.is_match()).all(|part| match (part.key.as_str(), part.sign) {
        ("ACTION", "==") => part.value.split('|').any(|action| matches!(action, "add" | "*")),
        ("ACTION", _) => part.value == "remove",
        ("SUBSYSTEM" | "KERNEL" | "NAME", "==") => !part.value.contains('|'),
        _ => false,
    })
}

struct Rule {
    is_net: bool,
    device: String,
    is_sure: bool,
}

impl Rule {
    fn sets(&self, part: &Part) -> Vec<Sets> {
        let Part { key, attribute, value, .. } = part;
        match key.as_str() {
            "ATTR" if self.is_net && is_attribute(attribute) => {
                vec![self.file(format!("/sys/class/net/{}/{attribute}", self.device), value)]
            }
            "SYSCTL" => {
                let path = sysctl::path(&self.filled(attribute));
                if super::is_plain(&path) { vec![self.file(path, value)] } else { Vec::new() }
            }
            "RUN" if matches!(attribute.as_str(), "" | "program") => {
                let all = shell::script(&inner(&self.filled(value)));
                all.into_iter().map(|(_, sets)| self.as_sure(sets)).collect()
            }
            _ => Vec::new(),
        }
    }

    fn file(&self, path: String, value: &str) -> Sets {
        let is_known = super::is_plain(value) && !value.is_empty() && !value.contains('%');
        self.as_sure(Sets::File { path, value: is_known.then(|| value.to_owned()) })
    }

    /// Without the value, where the rule is about some devices of the name alone.
    fn as_sure(&self, sets: Sets) -> Sets {
        match sets {
            Sets::File { path, .. } if !self.is_sure => Sets::File { path, value: None },
            sets => sets,
        }
    }

    /// A text with udev's substitutions for the device (udev(7)).
    fn filled(&self, text: &str) -> String {
        let place = format!("/sys/class/net/{}", self.device);
        let mut text = text.to_owned();
        for of in ["/sys$devpath", "/sys%p", "$sys$devpath", "%S%p", "$sys%p", "%S$devpath"] {
            text = text.replace(of, &place);
        }
        for of in ["$kernel", "%k", "$name", "$env{INTERFACE}", "%E{INTERFACE}"] {
            text = text.replace(of, &self.device);
        }
        text.replace("$$", "$").replace("%%", "%")
    }
}

/// Whether an attribute's name stays below its device.
fn is_attribute(name: &str) -> bool {
    super::is_plain(name) && !name.is_empty() && !name.contains("..") && !name.contains(' ')
}

/// The commands of `/bin/sh -c '…'`; other programs are commands themselves.
fn inner(command: &str) -> String {
    let is_shell =
        |program: &str| matches!(program.rsplit('/').next(), Some("sh" | "bash" | "dash"));
    let Some((program, rest)) = command.split_once(' ') else { return command.to_owned() };
    let Some(rest) = rest.trim_start().strip_prefix("-c").filter(|_| is_shell(program)) else {
        return command.to_owned();
    };
    let rest = rest.trim();
    let unquoted =
        ['\'', '"'].into_iter().find_map(|quote| rest.strip_prefix(quote)?.strip_suffix(quote));
    unquoted.unwrap_or(rest).to_owned()
}

/// The parts of a rule; what is none is left out.
fn parts(line: &str) -> Vec<Part> {
    let mut all = Vec::new();
    let mut rest = line;
    while let Some(start) = rest.find(|c: char| c.is_ascii_uppercase()) {
        rest = &rest[start..];
        let end = rest.find(|c: char| !(c.is_ascii_uppercase() || c == '_')).unwrap_or(rest.len());
        let (key, behind) = rest.split_at(end);
        let (attribute, behind) = behind
            .strip_prefix('{')
            .and_then(|inner| inner.split_once('}'))
            .unwrap_or(("", behind));
        let signs = ["==", "!=", "+=", "-=", ":=", "="];
        let sign = signs.into_iter().find(|sign| behind.trim_start().starts_with(sign));
        let opened = sign.and_then(|sign| {
            let value = behind.trim_start()[sign.len()..].trim_start().strip_prefix('"')?;
            Some((sign, value))
        });
        let Some((sign, opened)) = opened else {
            rest = behind;
            continue;
        };
        let (value, after) = quoted(opened);
        let (key, attribute) = (key.to_owned(), attribute.to_owned());
        all.push(Part { key, attribute, sign, value });
        rest = after;
    }
    all
}

/// A text up to its closing quote, and what follows; `\"` is a quote in it.
fn quoted(text: &str) -> (String, &str) {
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return (value, &text[at + 1..]),
            '\\' if text[at + 1..].starts_with('"') => {
                value.push('"');
                chars.next();
            }
            c => value.push(c),
        }
    }
    (value, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Vec<String> {
        let told = |sets: Sets| match sets {
            Sets::File { path, value } => format!("{path} {}", value.unwrap_or("?".into())),
            Sets::Device { device, command } => format!("{device}: {command}"),
        };
        parse(text).into_iter().map(|(line, sets)| format!("{line} {}", told(sets))).collect()
    }

    #[test]
    fn rules_of_network_devices_are_found() {
        for (text, wanted) in [
            (
                r#"ACTION=="add", SUBSYSTEM=="net", KERNEL=="eth*", ATTR{queues/rx-0/rps_cpus}="f""#,
                "1 /sys/class/net/eth*/queues/rx-0/rps_cpus f",
            ),
            (
                r#"SUBSYSTEM=="net", KERNEL=="eth0", SYSCTL{net/ipv4/conf/$name/rp_filter}="2""#,
                "1 /proc/sys/net/ipv4/conf/eth0/rp_filter 2",
            ),
            (
                r#"SUBSYSTEM=="net", ATTR{address}=="52:54:00:00:00:01", ATTR{mtu}="9000""#,
                "1 /sys/class/net/*/mtu ?",
            ),
            (
                "SUBSYSTEM!=\"net\", GOTO=\"end\"\nKERNEL==\"eth1\", \\\n ATTR{mtu}=\"9000\"\nLABEL=\"end\"\nATTR{mtu}=\"1\"",
                "2 /sys/class/net/eth1/mtu 9000",
            ),
            (
                r#"ACTION=="add", SUBSYSTEM=="net", RUN+="/bin/sh -c 'echo 1 > /sys%p/threaded'""#,
                "1 /sys/class/net/*/threaded 1",
            ),
            (
                r#"SUBSYSTEM=="net", KERNEL=="ens*", RUN+="/usr/sbin/ethtool -K $name gro off""#,
                "1 ens*: ethtool -K ens* gro off",
            ),
            (
                r#"ACTION=="add", RUN+="/bin/sh -c \"echo 1 > /proc/irq/120/smp_affinity\"""#,
                "1 /proc/irq/120/smp_affinity ?",
            ),
        ] {
            assert_eq!(shown(text), [wanted], "{text}");
        }
    }

    #[test]
    fn what_sets_nothing_of_the_network_is_left_out() {
        for text in [
            r#"# SUBSYSTEM=="net", ATTR{mtu}="1""#,
            r#"SUBSYSTEM=="usb", ATTR{power/control}="auto""#,
            r#"SUBSYSTEM=="net", ATTR{mtu}=="1500", NAME="lan0""#,
            r#"SUBSYSTEM=="net", RUN+="/usr/lib/systemd/systemd-sysctl --prefix=/net/ipv4/conf/$name""#,
            r#"SUBSYSTEM=="net", RUN{builtin}+="ethtool -K $name gro off""#,
            "SUBSYSTEM==net, ATTR{mtu}=1",
            "ATTR{mtu",
        ] {
            assert!(parse(text).is_empty(), "{text}");
        }
    }
}
