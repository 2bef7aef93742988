//! Logins that run no command, that find other programs or lack some, and one that ends while the copy is sent.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::sent_builds::{ARCH, altered};
use super::site::Site;
use super::site::accounts::USER;
use super::{SOON, site};
use crate::executable;
use crate::program::said;

/// The line that starts an endpoint runs these, `uname` and `sha256sum`.
const PROGRAMS: [&str; 8] = ["chmod", "env", "head", "id", "mkdir", "mv", "rm", "rmdir"];

const NEVER: [&str; 2] = ["sudo = \"never\""; 2];

/// A directory for the programs that logins find.
fn programs(site: &Site) -> PathBuf {
    let dir = site.path("programs");
    fs::create_dir(&dir).unwrap();
    dir.into()
}

/// The program's build id, and another one of its length.
fn builds(site: &Site) -> [String; 2] {
    let text = said(Command::new(site.path("rxpath")).arg("--version")).ok();
    let own = text.lines().find_map(|line| line.strip_prefix("build ")).unwrap();
    let (version, hash) = own.split_once('-').unwrap();
    let other: String =
        hash[..12].chars().map(|digit| if digit == '0' { '1' } else { '0' }).collect();
    [own.to_owned(), format!("{version}-{other}{}", &hash[12..])]
}

#[test]
fn a_login_that_runs_nothing_or_lacks_a_program_is_named_with_what_to_do() {
    let Some(site) = site() else { return };
    let inventory = site.of_user(NEVER);
    let check = |inventory: &str| site.rxpath(&["hosts", "check", inventory]);
    site.login_by("echo Welcome.; echo This account is closed. >&2; exit 1");
    let why = "ssh and the shell there said: This account is closed. | Welcome.";
    check(&inventory)
        .ends(3)
        .warns(&format!("sut: the endpoint did not start; {why}; try: ssh {USER}@sut.lab true\n"));
    let dir = programs(&site);
    let add = |name: &str| symlink(Path::new("/usr/bin").join(name), dir.join(name)).unwrap();
    PROGRAMS.into_iter().for_each(add);
    // From here on with a greeting before the command, which is skipped.
    site.login_by(&format!("echo Welcome.; PATH={}; exec /bin/sh \"$@\"", dir.display()));
    let another = if ARCH == "x86_64" { "aarch64" } else { "x86_64" };
    executable::write(&dir.join("uname"), format!("#!/bin/sh\necho {another}\n"));
    let static_build =
        format!("make static on a machine that is {another}, and --binary {another}=");
    check(&inventory)
        .ends(3)
        .warns(&format!("sut is {another}, and no static build for it is here"))
        .warns(&static_build);
    fs::remove_file(dir.join("uname")).unwrap();
    add("uname");
    check(&inventory)
        .ends(3)
        .warns("sut: there is no sha256sum, by which the copy of rxpath is checked")
        .warns("install coreutils on that host");
    add("sha256sum");
    let ([own, other], installed) = (builds(&site), dir.join("rxpath"));
    executable::write(&installed, altered(&site, &own, &other));
    let skew = format!("sut: {} is build {other}, this is {own}", installed.display());
    check(&inventory).ends(0).warns(&format!("{skew}; a copy of this one is used"));
    let by_sudo = fs::read_to_string(&inventory).unwrap().replace(NEVER[0], "sudo = \"always\"");
    check(&site.write("by_sudo.toml", &by_sudo))
        .ends(3)
        .warns("sut: root is needed there, and there is no sudo")
        .warns("log in as root there, or sudo = \"never\"");
}

#[test]
fn a_connection_that_ends_while_the_copy_is_sent_leaves_nothing_and_is_named() {
    let Some(site) = site() else { return };
    let inventory = site.of_user(NEVER);
    let dir = programs(&site);
    // Takes the begin of the copy and then nothing: the transfer is under way.
    let head = "#!/bin/sh\n/usr/bin/head -c 1000 >/dev/null\nexec /usr/bin/sleep 5555\n";
    executable::write(&dir.join("head"), head);
    site.login_by(&format!("PATH={}:$PATH; exec /bin/sh \"$@\"", dir.display()));
    let words = ["hosts", "check", &inventory];
    let run = site.start(&words);
    for alias in ["gen1", "sut"] {
        site.wait_for(alias, "sleep 5555");
        // The session of sshd.
        site.kill_in(alias, &format!("{USER}@notty"));
    }
    run.wait()
        .ends(3)
        .warns("gen1: the copy of rxpath did not arrive whole")
        .warns("sut: the copy of rxpath did not arrive whole; run this again");
    fs::remove_file(dir.join("head")).unwrap();
    for alias in ["gen1", "sut"] {
        site.kill_in(alias, "sleep 5555");
        // The line that stores it.
        site.wait_for_none(alias, "@@rxpath-need");
    }
    site.rxpath(&words).ends(0);
    site.holds_nothing(SOON);
}
