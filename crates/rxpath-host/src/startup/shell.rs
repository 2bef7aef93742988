//! Commands of shell scripts that set something, as far as they can be told without running them.

use std::collections::BTreeMap;

use super::Sets;
use crate::procfs::sysctl;

/// Options of ethtool(8) that change a device; the others ask.
const CHANGES: [&str; 24] = [
    "-A",
    "-C",
    "-G",
    "-K",
    "-L",
    "-N",
    "-Q",
    "-U",
    "-X",
    "-s",
    "--change",
    "--coalesce",
    "--config-nfc",
    "--config-ntuple",
    "--features",
    "--offload",
    "--pause",
    "--per-queue",
    "--rxfh",
    "--set-channels",
    "--set-eee",
    "--set-fec",
    "--set-priv-flags",
    "--set-ring",
];

/// A word or a sign between words.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    Word(String),
    /// `;`, `&`, `|`, `&&`, `||`, `(`, `)`.
    Ends(&'static str),
    /// `>` and `>>` of the standard output.
    Into,
    /// Any other redirection: its target is no file of ours.
    Aside,
    /// `<<`: lines up to a mark are no commands.
    Here,
}

/// What the lines of a script set, with their numbers. An `exit` that is not conditional ends it.
pub(super) fn script(text: &str) -> Vec<(usize, Sets)> {
    let mut found = Vec::new();
    let mut reader = Reader::default();
    for (number, line) in joined(text) {
        found.extend(reader.line(&line).into_iter().map(|sets| (number, sets)));
        if reader.has_ended {
            break;
        }
    }
    found
}

/// Lines with their numbers; a backslash at the end joins one with the next.
pub(super) fn joined(text: &str) -> Vec<(usize, String)> {
    let mut all: Vec<(usize, String)> = Vec::new();
    let mut goes_on = false;
    for (at, line) in text.lines().enumerate() {
        let (part, more) = line.strip_suffix('\\').map_or((line, false), |part| (part, true));
        match all.last_mut() {
            Some((_, last)) if goes_on => last.push_str(part),
            _ => all.push((at + 1, part.to_owned())),
        }
        goes_on = more;
    }
    all
}

/// Reads command after command, and knows how deep in blocks they stand.
#[derive(Default)]
struct Reader {
    depth: usize,
    has_ended: bool,
    /// The line before ended with `&&` or `||`.
    goes_on: bool,
    /// What ends a text that stands among the commands.
    mark: Option<String>,
    /// What variables hold, where that is certain; that of a loop holds the pattern which it goes over.
    variables: BTreeMap<String, String>,
}

/// A command, its redirection and how it comes to run.
#[derive(Default)]
struct Command {
    words: Vec<String>,
    into: Option<String>,
    /// What the command before a `|` prints.
    piped: Option<String>,
    is_conditional: bool,
}

impl Reader {
    fn line(&mut self, line: &str) -> Vec<Sets> {
        let mut found = Vec::new();
        if let Some(mark) = self.mark.take() {
            self.mark = Some(mark).filter(|mark| line.trim() != mark);
            return found;
        }
        let is_conditional = std::mem::take(&mut self.goes_on);
        let mut command = Command { is_conditional, ..Command::default() };
        let mut tokens = tokens(line).into_iter().peekable();
        while let Some(token) = tokens.next() {
            match token {
                Token::Word(word) => command.words.push(self.expanded(&word)),
                Token::Into => {
                    if let Some(Token::Word(to)) =
                        tokens.next_if(|next| matches!(next, Token::Word(_)))
                    {
                        command.into = Some(self.expanded(&to));
                    }
                }
                Token::Here => {
                    if let Some(Token::Word(mark)) =
                        tokens.next_if(|next| matches!(next, Token::Word(_)))
                    {
                        self.mark = Some(mark.trim_start_matches('-').to_owned());
                    }
                }
                Token::Aside => drop(tokens.next_if(|next| matches!(next, Token::Word(_)))),
                Token::Ends(sign) => {
                    let piped = (sign == "|").then(|| printed(&command.words)).flatten();
                    let is_conditional =
                        matches!(sign, "&&" | "||") || (sign == "|" && command.is_conditional);
                    found.extend(self.command(std::mem::take(&mut command)));
                    command.piped = piped;
                    command.is_conditional = is_conditional;
                }
            }
        }
        self.goes_on = command.words.is_empty() && command.is_conditional;
        found.extend(self.command(command));
        found
    }

    /// The word with what its variables hold; those that are not known stay.
    fn expanded(&self, word: &str) -> String {
        replaced(word, |name| self.variables.get(name).cloned())
    }

    /// Keeps what a loop goes over, and what an assignment sets.
    fn keep(&mut self, words: &[String], is_certain: bool) {
        if let [name, sign, over @ ..] = words
            && sign == "in"
        {
            self.variables.remove(name);
            if let [one] = over
                && !one.contains('$')
            {
                self.variables.insert(name.clone(), one.clone());
            }
        }
        for (name, value) in words.iter().filter_map(|word| word.split_once('=')) {
            if is_certain && words.len() == 1 && !value.contains(['$', '`']) {
                self.variables.insert(name.to_owned(), value.to_owned());
            } else {
                self.variables.remove(name);
            }
        }
    }

    fn command(&mut self, mut command: Command) -> Vec<Sets> {
        loop {
            match command.words.first().map(String::as_str) {
                Some("if" | "for" | "while" | "until" | "case" | "{") => self.depth += 1,
                Some("fi" | "done" | "esac" | "}") => self.depth = self.depth.saturating_sub(1),
                Some("then" | "else" | "elif" | "do" | "!" | "sudo" | "nohup" | "exec") => {}
                _ => break,
            }
            command.words.remove(0);
        }
        let is_certain = self.depth == 0 && !command.is_conditional;
        if command.words.first().is_some_and(|word| word == "exit") && is_certain {
            self.has_ended = true;
        }
        if self.has_ended {
            return Vec::new();
        }
        self.keep(&command.words, is_certain);
        let found = sets(&command);
        found.into_iter().map(|sets| if is_certain { sets } else { without_value(sets) }).collect()
    }
}

fn without_value(sets: Sets) -> Sets {
    match sets {
        Sets::File { path, .. } => Sets::File { path, value: None },
        device @ Sets::Device { .. } => device,
    }
}

/// Splits a line; what follows `#` is a comment.
fn tokens(line: &str) -> Vec<Token> {
    let mut all = Vec::new();
    let mut word: Option<String> = None;
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\'' => {
                let into = word.get_or_insert_default();
                into.extend(chars.by_ref().take_while(|c| *c != '\''));
            }
            '"' => {
                let into = word.get_or_insert_default();
                into.extend(chars.by_ref().take_while(|c| *c != '"'));
            }
            '\\' => word.get_or_insert_default().extend(chars.next()),
            '#' if word.is_none() => break,
            c if c.is_whitespace() => all.extend(word.take().map(Token::Word)),
            ';' | '(' | ')' | '|' | '&' | '>' | '<' => {
                let twice = chars.next_if_eq(&c).is_some();
                let is_number = |word: &mut String| word.bytes().all(|b| b.is_ascii_digit());
                let number = if matches!(c, '<' | '>') { word.take_if(is_number) } else { None };
                all.extend(word.take().map(Token::Word));
                all.push(match (c, twice) {
                    ('>', _) if chars.next_if_eq(&'&').is_some() => Token::Aside,
                    ('>', _) if number.is_none_or(|number| number == "1") => Token::Into,
                    ('<', true) if chars.next_if_eq(&'<').is_none() => Token::Here,
                    ('>' | '<', _) => Token::Aside,
                    ('&', false) if chars.next_if_eq(&'>').is_some() => Token::Aside,
                    ('&', true) => Token::Ends("&&"),
                    ('|', true) => Token::Ends("||"),
                    ('|', false) => Token::Ends("|"),
                    _ => Token::Ends(";"),
                });
            }
            c => word.get_or_insert_default().push(c),
        }
    }
    all.extend(word.map(Token::Word));
    all
}

/// What `echo` and `printf` print; `None` for other commands.
fn printed(words: &[String]) -> Option<String> {
    let (program, rest) = words.split_first()?;
    if !matches!(name(program), "echo" | "printf") {
        return None;
    }
    let text: Vec<&str> =
        rest.iter().map(String::as_str).skip_while(|word| matches!(*word, "-n" | "-e")).collect();
    Some(text.join(" ").trim().trim_end_matches("\\n").to_owned())
}

/// A program without its directory.
fn name(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}

/// What a command sets.
fn sets(command: &Command) -> Vec<Sets> {
    let Some((program, rest)) = command.words.split_first() else { return Vec::new() };
    let one = match name(program) {
        "echo" | "printf" => {
            let path = command.into.as_deref().and_then(setting);
            path.map(|path| file(path, &printed(&command.words).unwrap_or_default()))
        }
        "tee" => {
            let path = rest.iter().rev().find_map(|word| setting(word));
            path.map(|path| file(path, command.piped.as_deref().unwrap_or("$unknown")))
        }
        "sysctl" => {
            let pairs = rest.iter().filter_map(|word| word.split_once('='));
            let keys = pairs.filter(|(key, _)| !key.starts_with("--"));
            let set =
                keys.filter_map(|(key, value)| Some(file(setting(&sysctl::path(key))?, value)));
            return set.collect();
        }
        "ethtool" => tool(rest),
        "ip" => link(rest),
        "ifconfig" => rest.split_first().and_then(|(dev, rest)| attribute(dev, rest)),
        _ => None,
    };
    one.into_iter().collect()
}

/// A path of a setting, with `*` for what a variable stands for.
fn setting(path: &str) -> Option<String> {
    let is_ours = ["/proc/sys/", "/proc/irq/", "/sys/"].iter().any(|start| path.starts_with(start));
    let path = unknown_parts(path);
    (is_ours && super::is_plain(&path) && !path.contains(' ')).then_some(path)
}

/// `$name` and `${name}` become `*`.
fn unknown_parts(text: &str) -> String {
    replaced(text, |_| Some("*".to_owned()))
}

/// Puts what `of` says in the place of `$name` and `${name}`; where it says nothing they stay.
fn replaced(text: &str, of: impl Fn(&str) -> Option<String>) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once('$') {
        out += before;
        let braced = behind.strip_prefix('{').and_then(|inner| inner.split_once('}'));
        let (name, after) = braced.unwrap_or_else(|| {
            let end = behind.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
            behind.split_at(end.unwrap_or(behind.len()))
        });
        let kept = || rest[before.len()..rest.len() - after.len()].to_owned();
        out += &of(name).unwrap_or_else(kept);
        rest = after;
    }
    out + rest
}

fn file(path: String, value: &str) -> Sets {
    let value = value.split_whitespace().collect::<Vec<_>>().join(" ");
    let is_known = super::is_plain(&value) && !value.is_empty() && !crate::glob::is_pattern(&value);
    Sets::File { path, value: is_known.then_some(value) }
}

/// `ethtool -K DEV …`
fn tool(words: &[String]) -> Option<Sets> {
    let (option, rest) = words.split_first()?;
    let device = unknown_parts(rest.first()?);
    if !CHANGES.contains(&option.as_str()) || !super::is_plain(&device) {
        return None;
    }
    let told = rest[1..].iter().map(|word| {
        let word = unknown_parts(word);
        if super::is_plain(&word) { word } else { "*".into() }
    });
    let words: Vec<String> =
        ["ethtool".to_owned(), option.clone(), device.clone()].into_iter().chain(told).collect();
    Some(Sets::Device { device, command: words.join(" ") })
}

/// `ip link set [dev] DEV …`
fn link(words: &[String]) -> Option<Sets> {
    let mut words = words.iter().skip_while(|word| word.starts_with('-'));
    let is_link = matches!(words.next()?.as_str(), "link" | "l") && words.next()? == "set";
    let rest: Vec<String> = words.filter(|word| *word != "dev").cloned().collect();
    let (dev, rest) = rest.split_first()?;
    if is_link { attribute(dev, rest) } else { None }
}

/// MTU and queue length of a device.
fn attribute(dev: &str, words: &[String]) -> Option<Sets> {
    let pair = words.windows(2).find(|pair| matches!(pair[0].as_str(), "mtu" | "txqueuelen"))?;
    let name = if pair[0] == "mtu" { "mtu" } else { "tx_queue_len" };
    Some(file(setting(&format!("/sys/class/net/{dev}/{name}"))?, &pair[1]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Vec<String> {
        let told = |sets: Sets| match sets {
            Sets::File { path, value } => format!("{path} {}", value.unwrap_or("?".into())),
            Sets::Device { device, command } => format!("{device}: {command}"),
        };
        script(text).into_iter().map(|(line, sets)| format!("{line} {}", told(sets))).collect()
    }

    #[test]
    fn commands_that_set_something_are_found() {
        for (text, wanted) in [
            ("echo 5 > /proc/sys/net/core/a", "1 /proc/sys/net/core/a 5"),
            (
                "/bin/echo -n \"4096 8192\" >/proc/sys/net/a 2>/dev/null",
                "1 /proc/sys/net/a 4096 8192",
            ),
            (
                "echo f | sudo tee /sys/class/net/eth0/queues/rx-0/rps_cpus >/dev/null",
                "1 /sys/class/net/eth0/queues/rx-0/rps_cpus f",
            ),
            ("/sbin/sysctl -q -w net.core.a='1 2'", "1 /proc/sys/net/core/a 1 2"),
            ("echo $x > /sys/a/b", "1 /sys/a/b ?"),
            ("echo 1 > /proc/irq/$i/smp_affinity", "1 /proc/irq/*/smp_affinity 1"),
            ("[ -f /x ] && echo 1 > /sys/a", "1 /sys/a ?"),
            ("if true; then\n  echo 1 > /sys/a\nfi", "2 /sys/a ?"),
            ("f() {\necho 1 > /sys/a\n}", "2 /sys/a ?"),
            ("ethtool -G eth0 rx \\\n 4096", "1 eth0: ethtool -G eth0 rx 4096"),
            ("ip link set dev eth0 mtu 9000 up", "1 /sys/class/net/eth0/mtu 9000"),
            ("cat <<EOF\necho 1 > /sys/b\nEOF\necho 1 > /sys/a; echo 7", "4 /sys/a 1"),
            ("true &&\necho 1 > /sys/a", "2 /sys/a ?"),
            (
                "for q in /sys/class/net/eth0/queues/rx-*; do echo f > $q/rps_cpus; done",
                "1 /sys/class/net/eth0/queues/rx-*/rps_cpus ?",
            ),
            ("MAX=5000\nsysctl -w net.core.a=${MAX}", "2 /proc/sys/net/core/a 5000"),
            ("if x; then MAX=1; fi\nsysctl net.core.a=$MAX", "2 /proc/sys/net/core/a ?"),
            ("M=1\n[ -e /x ] && M=2\nsysctl net.core.a=$M", "3 /proc/sys/net/core/a ?"),
            ("echo 950000 >/proc/sys/a;echo 3", "1 /proc/sys/a 950000"),
            ("sysctl kernel.x=-1", "1 /proc/sys/kernel/x -1"),
            ("ifconfig eth1 txqueuelen 5000", "1 /sys/class/net/eth1/tx_queue_len 5000"),
        ] {
            assert_eq!(shown(text), [wanted], "{text}");
        }
    }

    #[test]
    fn what_sets_nothing_is_left_out() {
        for text in [
            "# echo 1 > /sys/a",
            "echo 1 > /tmp/a",
            "ethtool -k eth0",
            "ethtool eth0",
            "cat /proc/sys/net/core/a",
            "echo starting",
            "exit 0\necho 1 > /sys/a",
            "echo 1 2> /sys/a",
            "sysctl -p /etc/x.conf",
            "ip link show",
            "ip addr add 10.0.0.1/24 dev eth0",
        ] {
            assert!(script(text).is_empty(), "{text}");
        }
        assert_eq!(
            shown("true || exit 1\nif x; then\nexit 1\nfi\necho 1 > /sys/a"),
            ["5 /sys/a 1"]
        );
    }
}
