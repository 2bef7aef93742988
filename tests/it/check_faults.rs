//! `rxpath check` over trees whose files are cut, empty, binary, endless, of another kind, or change while they are read.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crate::program::{Said, rxpath};

fn check(tree: &Path, more: &[&str]) -> Said {
    let mut args = vec!["check", "--json", "--sysroot", tree.to_str().unwrap()];
    args.extend(more);
    rxpath(&args)
}

/// A whole answer, or one line that refuses; never a crash.
fn holds(output: &Said, what: &str) {
    let told = &output.err;
    assert!(!told.contains("panicked"), "{what}: {told}");
    match output.code {
        Some(0) => assert!(output.json()["result"].is_object(), "{what}"),
        Some(2 | 3) => {
            assert!(told.starts_with("rxpath: ") && told.lines().count() <= 2, "{what}: {told}");
        }
        other => panic!("{what}: {other:?}: {told}"),
    }
}

fn copy(from: &Path, to: &Path, files: &mut Vec<PathBuf>) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            copy(&entry.path(), &target, files);
        } else if kind.is_symlink() {
            symlink(fs::read_link(entry.path()).unwrap(), &target).unwrap();
        } else {
            fs::copy(entry.path(), &target).unwrap();
            files.push(target);
        }
    }
}

/// A copy of a host with a NIC of four queues, and its files.
fn host() -> (tempfile::TempDir, Vec<PathBuf>) {
    let dir = tempfile::tempdir().unwrap();
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/hosts/bare-metal-2node");
    let mut files = Vec::new();
    copy(&from, dir.path(), &mut files);
    assert!(files.len() > 100, "{}", files.len());
    files.sort();
    (dir, files)
}

fn ask_everything(tree: &Path, what: &str) {
    holds(&check(tree, &["--goal", "benchmark"]), what);
    holds(&check(tree, &["--queues"]), what);
    let flow = ["--flow", "10.0.0.2:4000->10.0.0.1:4321/udp", "--dev", "eth0"];
    let output = check(tree, &flow);
    // Status 4: the queue is not knowable, which is an answer.
    if output.code != Some(4) {
        holds(&output, what);
    }
}

/// What is done to each file.
type Damage = fn(&Path);

#[test]
fn damaged_files_are_gaps() {
    let damages: [(&str, Damage); 7] = [
        ("cut in the middle", |path| {
            let content = fs::read(path).unwrap();
            fs::write(path, &content[..content.len() / 2]).unwrap();
        }),
        ("empty", |path| fs::write(path, "").unwrap()),
        ("binary", |path| fs::write(path, [0xff, 0, 0x80, b'\n', 0xfe]).unwrap()),
        ("absurd numbers", |path| fs::write(path, "99999999999999999999999\n").unwrap()),
        ("negative numbers", |path| fs::write(path, "-9223372036854775808\n").unwrap()),
        ("a directory", |path| {
            fs::remove_file(path).unwrap();
            fs::create_dir(path).unwrap();
        }),
        ("a link in a circle", |path| {
            fs::remove_file(path).unwrap();
            symlink(path.file_name().unwrap(), path).unwrap();
        }),
    ];
    for (name, damage) in damages {
        let (dir, files) = host();
        for path in &files {
            damage(path);
        }
        ask_everything(dir.path(), &format!("all {name}"));
        // One in three: what is whole must not be believed beyond what it says.
        let (dir, files) = host();
        for start in 0..3 {
            for path in files.iter().skip(start).step_by(3).filter(|path| path.is_file()) {
                damage(path);
            }
            ask_everything(dir.path(), &format!("from {start} on one in three {name}"));
        }
    }
}

#[test]
fn endless_files_and_pipes_are_refused_and_not_waited_for() {
    let (dir, _) = host();
    let put = |path: &str| {
        let path = dir.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let _ = fs::remove_file(&path);
        path
    };
    for path in ["proc/interrupts", "proc/net/softnet_stat", "netlink/device/eth0.json"] {
        fs::File::create(put(path)).unwrap().set_len(1 << 40).unwrap();
    }
    for path in ["proc/cmdline", "proc/sys/net/core/netdev_budget", "sys/class/net/eth1/mtu"] {
        nix::unistd::mkfifo(&put(path), nix::sys::stat::Mode::S_IRWXU).unwrap();
    }
    symlink("/dev/zero", put("proc/net/udp")).unwrap();
    ask_everything(dir.path(), "endless files");
}

#[test]
fn files_that_change_while_they_are_read_are_no_crash() {
    let (dir, files) = host();
    let contents: Vec<Vec<u8>> = files.iter().map(|path| fs::read(path).unwrap()).collect();
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            // In place, as files of the kernel change: shorter, longer, gone, there again.
            for round in 0_usize.. {
                for (at, (path, content)) in files.iter().zip(&contents).enumerate() {
                    if done.load(Ordering::Relaxed) {
                        return;
                    }
                    let _ = match (at + round) % 4 {
                        0 => fs::write(path, &content[..content.len() / 3]),
                        1 => fs::write(path, content.repeat(3)),
                        2 => fs::remove_file(path),
                        _ => fs::write(path, content),
                    };
                }
            }
        });
        for _ in 0..8 {
            ask_everything(dir.path(), "changing files");
        }
        done.store(true, Ordering::Relaxed);
    });
}

#[test]
fn a_device_that_goes_while_the_tree_is_read_is_left_out_or_told() {
    let (dir, _) = host();
    let eth1 = dir.path().join("sys/class/net/eth1");
    let away = dir.path().join("away");
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                fs::rename(&eth1, &away).unwrap();
                fs::rename(&away, &eth1).unwrap();
            }
        });
        for _ in 0..12 {
            holds(&check(dir.path(), &["--goal", "latency"]), "a device that comes and goes");
            holds(&check(dir.path(), &["--queues"]), "a device that comes and goes");
        }
        done.store(true, Ordering::Relaxed);
    });
}
