//! What a package ships beside the binary: man pages, completions, where they are installed.

use std::path::Path;
use std::process::Command;

use crate::executable;
use crate::printed::rxpath;

const RXPATH: &str = env!("CARGO_BIN_EXE_rxpath");

/// A program that may be missing here; the checks that need it are left out then.
fn is_installed(program: &str) -> bool {
    Command::new("sh")
        .args(["-c", &format!("command -v {program}")])
        .output()
        .is_ok_and(|done| done.status.success())
}

#[test]
fn every_page_has_its_sections_and_no_marks_of_markdown() {
    let dir = tempfile::tempdir().unwrap();
    rxpath(&["man", "--out", &dir.path().display().to_string()]);
    let mut pages = 0;
    for entry in std::fs::read_dir(dir.path()).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let page = std::fs::read_to_string(&path).unwrap();
        pages += 1;
        for section in ["NAME", "SYNOPSIS", "EXIT STATUS", "ENVIRONMENT", "EXAMPLES", "SEE ALSO"] {
            let there = page.lines().any(|line| {
                line.trim_matches('"') == format!(".SH {section}")
                    || line == format!(".SH \"{section}\"")
            });
            assert!(there, "{name}: no {section}");
        }
        let title = page.lines().find(|line| line.starts_with(".TH")).unwrap();
        assert!(title.contains("\"2026-") || title.contains(" 2026-"), "{name}: {title}");
        assert!(!page.contains('`') && page.is_ascii(), "{name}");
        assert!(!name.contains("watchdog"), "{name}");
        if is_installed("groff") {
            let done =
                Command::new("groff").args(["-man", "-ww", "-z"]).arg(&path).output().unwrap();
            assert!(done.stderr.is_empty(), "{name}: {}", String::from_utf8_lossy(&done.stderr));
        }
        if is_installed("mandoc") {
            let done = Command::new("mandoc")
                .args(["-T", "lint", "-W", "warning"])
                .arg(&path)
                .output()
                .unwrap();
            assert!(done.stdout.is_empty(), "{name}: {}", String::from_utf8_lossy(&done.stdout));
        }
    }
    assert!(pages > 40, "{pages}");
    let tune = std::fs::read_to_string(dir.path().join("rxpath-tune-apply.1")).unwrap();
    assert!(tune.contains("/var/lib/rxpath/tune") && tune.contains(".SH \"FILES\""), "{tune}");
}

#[test]
fn one_page_is_printed_by_the_words_of_its_command() {
    let load = rxpath(&["man", "load"]);
    assert!(load.contains("RXPATH\\-LOAD") || load.contains("RXPATH-LOAD"), "{load}");
    assert_eq!(rxpath(&["man", "load", "udp"]), rxpath(&["man", "rxpath-load-udp"]));
    let done = Command::new(RXPATH).args(["man", "nosuch"]).output().unwrap();
    assert_eq!(done.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&done.stderr).contains("one of "));
}

/// What a shell is offered behind these words.
fn offered(words: &[&str]) -> Vec<String> {
    let done = Command::new(RXPATH)
        .env("RXPATH_COMPLETE", "bash")
        .env("_CLAP_COMPLETE_INDEX", (words.len() - 1).to_string())
        .env("_CLAP_COMPLETE_COMP_TYPE", "9")
        .env("_CLAP_COMPLETE_SPACE", "true")
        .env("_CLAP_IFS", "\n")
        .arg("--")
        .args(words)
        .output()
        .unwrap();
    assert!(done.status.success(), "{words:?}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn shells_are_offered_the_values() {
    for (words, wanted) in [
        (&["rxpath", "explain", "rmem"][..], "rmem-max"),
        (&["rxpath", "explain", "net.core.netdev_b"], "net.core.netdev_budget"),
        (&["rxpath", "explain", "SOCKET_"], "SOCKET_RCVBUFF"),
        (&["rxpath", "run", "udp-b"], "udp-batching"),
        (&["rxpath", "run", "udp-batching", "--set", "load.ra"], "load.rate="),
        (&["rxpath", "schema", "tune"], "tune-plan"),
        (&["rxpath", "check", "--dev", ""], "lo"),
        (&["rxpath", "trace", "--dev", "l"], "lo"),
        (&["rxpath", "tune", "plan", "--persist", "sys"], "sysctl.d"),
        (&["rxpath", "tune", "plan", "ring"], "ring-rx"),
        (&["rxpath", "tune", ""], "apply"),
        (&["rxpath", "diagnose", "--case", ""], "sender"),
        (&["rxpath", "check", "--goal", "la"], "latency"),
    ] {
        let offers = offered(words);
        let there = offers.iter().any(|offer| offer.trim_end() == wanted);
        assert!(there, "{words:?}: {offers:?}");
    }
    let tune = offered(&["rxpath", "tune", ""]);
    assert!(!tune.iter().any(|offer| offer.contains("watchdog")), "{tune:?}");
}

#[test]
fn the_scripts_are_taken_by_their_shells() {
    for shell in ["bash", "zsh", "fish"] {
        let script = rxpath(&["completions", shell]);
        assert!(script.contains("RXPATH_COMPLETE"), "{shell}: {script}");
        if is_installed(shell) {
            let done = Command::new(shell).args(["-n", "-c", &script]).output().unwrap();
            assert!(done.status.success(), "{shell}: {}", String::from_utf8_lossy(&done.stderr));
        }
    }
}

#[test]
fn all_of_it_is_installed_where_a_package_wants_it() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let dir = tempfile::tempdir().unwrap();
    let done = Command::new("make")
        .current_dir(&root)
        .args(["-s", "install-files", "PREFIX=/usr"])
        .arg(format!("RXPATH={RXPATH}"))
        .arg(format!("DESTDIR={}", dir.path().display()))
        .env_remove("MAKEFLAGS")
        .output()
        .unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    for file in [
        "bin/rxpath",
        "share/man/man1/rxpath.1",
        "share/man/man1/rxpath-load-udp.1",
        "share/bash-completion/completions/rxpath",
        "share/zsh/site-functions/_rxpath",
        "share/fish/vendor_completions.d/rxpath.fish",
    ] {
        let path = dir.path().join("usr").join(file);
        assert!(path.metadata().is_ok_and(|about| about.len() > 100), "{file}");
    }
    let size = |path: &Path| path.metadata().unwrap().len();
    assert!(size(&dir.path().join("usr/bin/rxpath")) < size(Path::new(RXPATH)), "not stripped");
}

/// Where packages are tested, QEMU may be missing: that is said by name, and can be forbidden.
#[test]
fn a_check_without_its_program_is_skipped_by_name_and_fails_where_it_is_required() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools/not-run.sh");
    for (required, status) in [("", 0), ("other qemu", 0), ("other qemu-system-x86_64", 1)] {
        let done = Command::new(&script)
            .args(["qemu-system-x86_64", "tools/rig.sh setup"])
            .env("RXPATH_REQUIRE", required)
            .output()
            .unwrap();
        let told = String::from_utf8_lossy(&done.stdout);
        assert_eq!(done.status.code(), Some(status), "{required}: {told}");
        assert!(told.starts_with("skipped: qemu-system-x86_64: it is not installed"), "{told}");
    }
}

#[test]
fn services_stay_where_one_package_takes_the_place_of_the_other() {
    let dir = tempfile::tempdir().unwrap();
    let (said, systemctl) = (dir.path().join("said"), dir.path().join("systemctl"));
    executable::write(&systemctl, format!("#!/bin/sh\necho \"$@\" >>{}\n", said.display()));
    let path = format!("{}:{}", dir.path().display(), std::env::var("PATH").unwrap());
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging/scripts/preremove.sh");
    for (words, is_ended) in [
        (&["remove", "in-favour", "rxpath", "0.1.0-1"][..], false),
        (&["remove", "in-favour", "rxpath-agent", "0.1.0-1"], false),
        (&["upgrade", "0.2.0-1"], false),
        (&["1"], false),
        (&["remove"], true),
        (&["0"], true),
    ] {
        let _ = std::fs::remove_file(&said);
        let done = Command::new("sh").arg(script).args(words).env("PATH", &path).status().unwrap();
        assert!(done.success(), "{words:?}");
        assert_eq!(said.exists(), is_ended, "{words:?}");
    }
}

/// How a package is unpacked here, where it is its program.
const UNPACK: &str = "mkdir -p \"$3/usr/bin\" && cp \"$2\" \"$3/usr/bin/rxpath\"";

/// The image of `deploy/image/build.sh` from packages of these names, in a directory: its status, what it said, and its program.
fn image(dir: &Path, unpack: &str, packages: &[(&str, &str)]) -> (Option<i32>, String, Vec<u8>) {
    let at = |path: &str| dir.join(path);
    for folder in ["deploy/image", "target/packages", "bin", "out", "temporary"] {
        std::fs::create_dir_all(at(folder)).unwrap();
    }
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for file in ["deploy/image/build.sh", "Cargo.toml"] {
        executable::copy(source.join(file), &at(file));
    }
    for (package, program) in packages {
        let file = at(&format!("target/packages/{package}_0.1.0-1_amd64.deb"));
        std::fs::copy(program, file).unwrap();
    }
    executable::write(&at("bin/dpkg-deb"), format!("#!/bin/sh\n{unpack}\n"));
    let script = "PATH=$PWD/bin:$PATH deploy/image/build.sh rxpath:test || exit
        tar -C out -xf target/packages/rxpath-image.tar
        for blob in out/blobs/sha256/*; do
            if gzip -t \"$blob\" 2>/dev/null; then tar -C out -xzf \"$blob\"; fi
        done";
    let done = Command::new("sh")
        .args(["-c", script])
        .current_dir(dir)
        .env("SOURCE_DATE_EPOCH", "1")
        .env("TMPDIR", at("temporary"))
        .env_remove("RXPATH_IMAGE")
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&done.stderr).into_owned();
    (done.status.code(), told, std::fs::read(at("out/usr/bin/rxpath")).unwrap_or_default())
}

#[test]
fn the_image_has_the_program_without_a_traffic_generator() {
    let (full, agent) = ("/bin/false", "/bin/true");
    let both = [("rxpath", full), ("rxpath-agent", agent)];
    let (first, second) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (status, told, program) = image(first.path(), UNPACK, &both);
    assert_eq!(status, Some(0), "{told}");
    assert!(program == std::fs::read(agent).unwrap(), "another program");
    let (status, told, _) = image(second.path(), UNPACK, &both[..1]);
    assert_eq!(status, Some(2), "{told}");
    assert!(told.contains("no package rxpath-agent"), "{told}");
}

/// The signal comes while a package is unpacked.
#[test]
fn an_image_that_sigterm_ends_leaves_no_temporary_directory() {
    let dir = tempfile::tempdir().unwrap();
    let ends = format!("{UNPACK}; kill -TERM $PPID");
    let (status, told, _) = image(dir.path(), &ends, &[("rxpath-agent", "/bin/true")]);
    assert_eq!(status, Some(143), "{told}");
    let left: Vec<_> = std::fs::read_dir(dir.path().join("temporary")).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn plays_install_the_package_for_production() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let text = std::fs::read_to_string(root.join("docs/how-to/use-ansible.md")).unwrap();
    let installed: Vec<&str> = text.lines().filter(|one| one.contains("export_package:")).collect();
    assert!(!installed.is_empty());
    assert!(installed.iter().all(|line| line.contains("/rxpath-agent_")), "{installed:?}");
}

/// The licence of libelf, which is linked in, asks for it.
#[test]
fn the_copyright_names_the_source_of_libelf_that_is_linked_in() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let text = |name: &str| std::fs::read_to_string(root.join(name)).unwrap();
    let (lock, copyright) = (text("Cargo.lock"), text("packaging/copyright"));
    let package = lock.split("[[package]]").find(|one| one.contains("name = \"libbpf-sys\""));
    let value = |key: &str| {
        let line = package.unwrap().lines().find_map(|line| line.strip_prefix(key));
        line.unwrap().trim_matches(['=', ' ', '"']).to_owned()
    };
    let file = format!("libbpf-sys-{}", value("version"));
    assert_eq!(copyright.matches("libbpf-sys-").count(), copyright.matches(&file).count());
    assert!(copyright.contains(&format!("{file}.crate")), "{file}");
    assert!(copyright.contains(&value("checksum")), "{file}");
}

#[test]
fn the_test_of_packages_does_not_pass_without_its_programs() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tools/package-test.sh");
    let programs = ["mmdebstrap", "lintian", "rpm", "rpmlint"];
    for missing in programs {
        let dir = tempfile::tempdir().unwrap();
        for program in programs.into_iter().filter(|one| *one != missing) {
            std::os::unix::fs::symlink("/bin/true", dir.path().join(program)).unwrap();
        }
        std::os::unix::fs::symlink("/usr/bin/dirname", dir.path().join("dirname")).unwrap();
        let done = Command::new("/bin/sh").arg(script).env("PATH", dir.path()).output().unwrap();
        let told = String::from_utf8_lossy(&done.stderr);
        assert_eq!(done.status.code(), Some(3), "{told}");
        assert!(told.contains(&format!("{missing} is missing")), "{told}");
    }
}

/// A purge with the paths of the script below a directory of the test.
fn purge(root: &Path) {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging/scripts/postremove.sh");
    let below = |text: String, dir: &str| text.replace(dir, &format!("{}{dir}", root.display()));
    let text = ["/run/", "/usr/bin/", "/var/lib/"]
        .into_iter()
        .fold(std::fs::read_to_string(script).unwrap(), below);
    let done = Command::new("/bin/sh").args(["-c", &text, "postrm", "purge"]).output().unwrap();
    assert!(done.status.success() && done.stderr.is_empty(), "{done:?}");
}

#[test]
fn a_purge_keeps_the_locks_of_appliers_while_there_are_journals() {
    let dir = tempfile::tempdir().unwrap();
    let journals = dir.path().join("journals");
    let run = dir.path().join("run/rxpath-tune");
    for one in [&journals, &run, &dir.path().join("var/lib/rxpath-check")] {
        std::fs::create_dir_all(one).unwrap();
    }
    std::fs::write(run.join("host.lock"), "").unwrap();
    std::os::unix::fs::symlink(&journals, run.join("journals-0123456789abcdef")).unwrap();
    purge(dir.path());
    assert!(run.join("host.lock").exists() && !dir.path().join("var/lib/rxpath-check").exists());
    std::fs::remove_dir(&journals).unwrap();
    purge(dir.path());
    assert!(!run.exists());
}
