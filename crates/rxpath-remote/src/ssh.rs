//! The user's own `ssh`, with the user's own configuration.

use std::process::Command;

use crate::destination::{Destination, Directory};
use crate::scripts;

/// Options that make a session what an endpoint needs: no password prompt, no terminal, no forwarding, no command of the
/// configuration. A master connection that the user opened is used; none is made.
/// Nothing is said about host keys: that is the user's policy.
///
/// **Source** ssh_config(5). The first option keeps clients before OpenSSH 8.7 from refusing the words that they lack.
const OPTIONS: [&str; 14] = [
    "IgnoreUnknown=SessionType,StdinNull,ForkAfterAuthentication,RemoteCommand",
    "BatchMode=yes",
    "ConnectTimeout=10",
    "ClearAllForwardings=yes",
    "ForwardAgent=no",
    "ForwardX11=no",
    "PermitLocalCommand=no",
    "RemoteCommand=none",
    "SessionType=default",
    "StdinNull=no",
    "ForkAfterAuthentication=no",
    "ControlMaster=no",
    "LogLevel=ERROR",
    // Coordinator and endpoint show each other that they live, and know when a load runs that may starve the connection; ssh
    // would end it meanwhile.
    "ServerAliveInterval=0",
];

/// How an endpoint is started on a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartWords<'a> {
    /// Hash of the binary.
    pub hash: &'a str,
    /// Where it lies; `None` for the cache.
    pub dir: Option<&'a Directory>,
    /// Start it by `sudo -n`.
    pub as_root: bool,
    /// Network namespace.
    pub netns: Option<&'a str>,
    /// Build id: an installed program that has it is used where there is no copy.
    pub build: &'a str,
}

/// A command whose standard input and output are the endpoint's, once the host has the program.
pub fn start(destination: &Destination, words: &StartWords<'_>) -> Command {
    let dir = words.dir.map_or("-", Directory::as_str);
    let user = if words.as_root { "sudo" } else { "user" };
    let words = [words.hash, dir, user, words.netns.unwrap_or("-"), words.build];
    let line = scripts::line(&words);
    let mut ssh = Command::new("ssh");
    for option in OPTIONS {
        ssh.args(["-o", option]);
    }
    ssh.args(["-T", "--", destination.as_str(), line.as_str()]);
    ssh
}

/// The architecture of a host that needs a program, if this line of the host says so.
pub fn needs_program(line: &str) -> Option<&str> {
    line.strip_prefix(scripts::NEED).map(str::trim)
}

/// Whether this line of a host asks for the bytes of the program that was offered.
pub fn takes_program(line: &str) -> bool {
    line.trim_end() == scripts::SEND
}

/// In which directory the host could not store the program, if it printed that.
pub fn not_stored(printed: &str) -> Option<&str> {
    printed.lines().find_map(|line| line.strip_prefix(scripts::NOT_STORED)).map(str::trim)
}

/// What others than START printed: a login shell's greeting.
pub fn greeting(printed: &str) -> String {
    let others = printed.lines().filter(|line| !line.is_empty() && !line.starts_with(scripts::OWN));
    others.collect::<Vec<_>>().join("\n")
}

/// Which installed program START passed over, as it is not of this build, if it printed that.
pub fn passed_over(printed: &str, build: &str) -> Option<String> {
    let found = printed.lines().find_map(|line| line.strip_prefix(scripts::PASSED_OVER))?;
    let (own, path) = found.trim().split_once(' ')?;
    let own = if own == "-" { "says no build id".to_owned() } else { format!("is build {own}") };
    Some(format!("{path} {own}, this is {build}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ssh_itself_ends_no_silent_endpoint() {
        let words = StartWords { hash: "5e", dir: None, as_root: false, netns: None, build: "b" };
        let endpoint = start(&Destination::try_from("sut.lab".to_owned()).unwrap(), &words);
        let has = |option: &str| endpoint.get_args().any(|word| word == option);
        assert!(has("ServerAliveInterval=0") && has("BatchMode=yes"));
    }

    #[test]
    fn the_lines_of_the_script_are_distinguished_from_a_greeting() {
        let printed =
            "Welcome.\n\n@@rxpath-need x86_64\n@@rxpath-send\nBye.\n@@rxpath-not-stored /d";
        assert_eq!(greeting(printed), "Welcome.\nBye.");
        assert_eq!((not_stored(printed), not_stored("/d")), (Some("/d"), None));
        assert!(takes_program("@@rxpath-send") && !takes_program("@@rxpath-sender"));
        assert_eq!(needs_program("@@rxpath-need aarch64"), Some("aarch64"));
    }
    #[test]
    fn a_session_forwards_nothing_and_the_rest_is_the_user_s_configuration() {
        let destination = Destination::try_from("sut.lab".to_owned()).unwrap();
        let words = StartWords { hash: "5e", dir: None, as_root: false, netns: None, build: "b" };
        let command = start(&destination, &words);
        let args: Vec<&str> = command.get_args().filter_map(|word| word.to_str()).collect();
        // Before those that an old client lacks.
        assert!(args[0] == "-o" && args[1].starts_with("IgnoreUnknown="), "{args:?}");
        for option in [
            "BatchMode=yes",
            "ClearAllForwardings=yes",
            "ControlMaster=no",
            "ForwardAgent=no",
            "ForwardX11=no",
            "PermitLocalCommand=no",
            "RemoteCommand=none",
        ] {
            assert!(args.windows(2).any(|pair| pair == ["-o", option]), "{option}: {args:?}");
        }
        for own in ["HostKey", "KnownHosts", "ControlPath", "Identity", "Proxy", "Port="] {
            assert!(!args.iter().any(|word| word.contains(own)), "{own}: {args:?}");
        }
        // No terminal, and a destination is no option.
        let end = &args[args.len() - 4..];
        assert_eq!(end[..3], ["-T", "--", "sut.lab"], "{args:?}");
    }
}
