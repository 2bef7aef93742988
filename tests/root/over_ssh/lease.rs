//! Settings of a host hold as long as the endpoint that made them.

use std::time::Duration;

use super::left_settings::{CHANGING, SOMAXCONN};
use super::{site, until};

#[test]
fn settings_of_an_endpoint_that_is_killed_while_it_makes_them_are_undone_at_once() {
    let Some(site) = site() else { return };
    let (file, out) = (site.write("s.toml", CHANGING), site.path("runs"));
    let words = ["run", &file, "--hosts", &site.inventory, "--out", &out, "--change-hosts"];
    let before = site.sysctl("sut", SOMAXCONN);
    let is = |value: &str| site.sysctl("sut", SOMAXCONN) == value;
    let run = site.start(&words);
    // The program that makes the change may be at work still: it ends by itself.
    until(Duration::from_secs(20), "the setting", || is("4321"));
    site.kill_endpoint("sut");
    until(Duration::from_secs(5), "the setting of before", || is(&before));
    assert_eq!(run.wait().code, Some(5));
    site.holds_nothing(Duration::from_secs(10));
    assert!(is(&before), "it is undone for good");
}

#[test]
fn when_a_host_is_lost_the_others_are_undone_and_named() {
    let Some(site) = site() else { return };
    let (file, out) = (site.write("s.toml", CHANGING), site.path("runs"));
    let words = ["run", &file, "--hosts", &site.inventory, "--out", &out, "--change-hosts"];
    let before = site.sysctl("sut", SOMAXCONN);
    let lost = |alias: &str| {
        let run = site.start(&words);
        site.wait_for("gen1", " load udp ");
        site.kill_endpoint(alias);
        let ended = run.wait();
        assert_eq!(ended.code, Some(5), "{ended:?}");
        assert!(ended.errors.contains(&format!("{alias} was lost in the ")), "{ended:?}");
        ended.errors
    };
    let errors = lost("gen1");
    assert!(errors.contains("trial 1 is void, everything is undone on sut\n"), "{errors}");
    assert_eq!(site.sysctl("sut", SOMAXCONN), before);
    let errors = lost("sut");
    // The run connects to it again, and sees that its watchdog has undone them.
    let what = "trial 1 is void, everything is undone on sut\n";
    assert!(errors.contains(what), "{errors}");
    site.holds_nothing(Duration::from_secs(10));
}
