//! Words in an inventory that a shell or ssh would run: each is refused in one line, and nothing runs it.

use std::path::Path;
use std::process::Command;

use super::site;

/// Each makes the file MARK if the right program takes it as it is: a shell, ssh, ssh with a shell for `ProxyCommand`.
const HOSTILE: [&str; 40] = [
    "$(touch MARK)",
    "a$(touch MARK)b",
    "${X:-$(touch MARK)}",
    "$((`touch MARK`0))",
    "`touch MARK`",
    "a`touch MARK`b",
    "; touch MARK",
    "a;touch MARK",
    "a;touch MARK;b",
    "a & touch MARK",
    "a&&touch MARK",
    "a || touch MARK",
    "a|touch MARK",
    "|touch MARK",
    "a\ntouch MARK",
    "a\r\ntouch MARK\r\n",
    "\ntouch MARK\n",
    "a\ttouch MARK",
    "-oProxyCommand=touch MARK",
    "-oProxyCommand touch MARK",
    "-oPermitLocalCommand=yes -oLocalCommand=touch MARK",
    "-o KnownHostsCommand=\"touch MARK\"",
    "-F MARK",
    "-EMARK=x",
    "a -oProxyCommand=touch${IFS}MARK",
    "'; touch MARK; '",
    "a'$(touch MARK)'b",
    "\"; touch MARK; \"",
    "a\"$(touch MARK)\"b",
    "a\\\"; touch MARK",
    "a>MARK",
    "<a>MARK",
    ">>MARK",
    "a*;touch MARK",
    "?[!x]*(touch MARK)",
    "{a,$(touch MARK)}",
    "~root;touch MARK",
    "~user/$(touch MARK)",
    "\u{e9}$(touch MARK)\u{202e}",
    "!!;touch MARK#",
];

#[test]
fn hostile_destinations_and_directories_are_refused_in_one_line_and_run_nothing() {
    let Some(site) = site() else { return };
    // Hosts have the files of this machine, so that one place shows what ran on any of them.
    let mark = site.path("mark");
    let is_there = || Path::new(&mark).exists();
    // The first of them is as hostile as it looks.
    let shell = Command::new("sh").args(["-c", &HOSTILE[0].replace("MARK", &mark)]).status();
    assert!(shell.is_ok() && is_there());
    std::fs::remove_file(&mark).unwrap();
    let good = site.read_inventory();
    let directory = format!("\"{}-gen1\"", site.path("cache"));
    assert!(good.contains("\"gen1.lab\"") && good.contains(&directory), "{good}");
    for word in HOSTILE {
        let word = word.replace("MARK", &mark);
        // A directory begins with a slash, or is refused for that.
        let path = format!("/{word}");
        for (old, new, what) in [
            ("\"gen1.lab\"", &word, "` is no ssh destination: "),
            (directory.as_str(), &word, "` is no directory that rxpath uses on a host: "),
            (directory.as_str(), &path, "` is no directory that rxpath uses on a host: "),
        ] {
            // A string of JSON is one of TOML.
            let quoted = serde_json::json!(new).to_string();
            let file = site.write("hostile.toml", &good.replace(old, &quoted));
            let check = site.rxpath(&["hosts", "check", &file]);
            assert_eq!(check.code, Some(2), "{new:?}: {check:?}");
            let lines: Vec<&str> = check.err.lines().collect();
            let is_one = lines.len() == 1 || (lines.len() == 2 && lines[1].starts_with("hint: "));
            assert!(is_one && lines[0].contains(what), "{new:?}: {check:?}");
            assert!(check.out.is_empty(), "{new:?}: {check:?}");
            assert!(!is_there(), "{new:?} ran");
        }
        site.rxpath(&["check", &format!("--host={word}")]).ends(2).warns("no ssh destination");
        assert!(!is_there(), "--host={word:?} ran");
    }
    // Nothing but these words was wrong.
    let check = site.rxpath(&["hosts", "check", &site.inventory]);
    assert!(check.code == Some(0) && !is_there(), "{check:?}");
}
