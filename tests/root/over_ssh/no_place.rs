//! Hosts on which the copy of rxpath has no place: a full disk, a file system that lets no program run.

use std::fs;

use super::{SOON, new_site};

#[test]
fn a_directory_that_takes_no_copy_is_named_with_what_to_do_and_nothing_is_left_in_it() {
    let Some(site) = new_site() else { return };
    let dir = format!("{}-sut", site.path("cache"));
    fs::create_dir(&dir).unwrap();
    for (options, what) in [
        ("size=64k", format!("sut: no space is left in {dir}, where the copy of rxpath goes")),
        ("noexec", format!("sut: {dir} is mounted noexec")),
        ("ro", format!("sut: {dir}, where the copy of rxpath goes, is mounted read-only")),
    ] {
        site.inside("sut", &["mount", "-t", "tmpfs", "-o", options, "tmpfs", &dir]);
        let check = site
            .rxpath(&["hosts", "check", &site.inventory])
            .ends(3)
            .warns(&what)
            .warns("hosts.sut.dir = \"/opt/scratch\"");
        let naming = check.err.lines().filter(|line| line.contains(&dir)).count();
        assert_eq!(naming, 1, "one line says it: {check:?}");
        let left = site.inside("sut", &["find", &dir, "-mindepth", "1"]);
        assert_eq!(left, "", "{options}");
        site.inside("sut", &["umount", &dir]);
    }
    site.rxpath(&["hosts", "check", &site.inventory]).ends(0);
    site.holds_nothing(SOON);
    // The copy is there, and no program may run there any more.
    site.inside("sut", &["mount", "-o", "bind,noexec", &dir, &dir]);
    site.rxpath(&["hosts", "check", &site.inventory])
        .ends(3)
        .warns("sut: the copy of rxpath may not run there; its directory may be mounted noexec")
        .warns("hosts.sut.dir = \"/opt/scratch\"");
    site.inside("sut", &["umount", &dir]);
    // Below a file.
    let below = site.read_inventory().replace(&dir, &format!("{}/below", site.path("none")));
    let mkdir = "mkdir: cannot create directory ";
    site.rxpath(&["hosts", "check", &site.write("below.toml", &below)])
        .ends(3)
        .warns(&format!("sut: the directory for the copy of rxpath cannot be made: {mkdir}"))
        .warns("hosts.sut.dir = \"/opt/scratch\"");
}
