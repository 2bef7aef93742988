//! A variant whose settings a host refuses, or with whose settings the path does not work, is left out: the others run.

use rxpath_record::run::RunReader;

use super::left_settings::SOMAXCONN;
use super::{SOON, secrets, site};

/// The sockets' limit is written before the kernel refuses the name.
const REFUSED: &str = r#"
    tune.receiver."net.core.somaxconn" = 4321
    tune.receiver."net.ipv4.tcp_congestion_control" = "no-such-control"
"#;

const BASE: &str = r#"
    question = "?"
    [load]
    rate = "2k"
    size = 1400
    [trials]
    blocks = 1
    max_blocks = 1
    aa = false
    ramp = "100ms"
    settle = "100ms"
    measure = "200ms"
"#;

#[test]
fn what_is_refused_when_it_is_written_or_breaks_the_path_leaves_out_its_variant_only() {
    let Some(site) = site() else { return };
    let variants = format!(
        "{BASE}[[variant]]\nname = \"base\"\n[[variant]]\nname = \"refused\"\n{REFUSED}\
         [[variant]]\nname = \"short\"\ntune.receiver.\"{{dev}}/link/mtu\" = 1280\n\
         [[variant]]\nname = \"other\"\ntune.receiver.\"net.core.somaxconn\" = 4321\n"
    );
    let (file, out) = (site.write("s.toml", &variants), site.path("runs"));
    let (before, mtu) = (site.sysctl("sut", SOMAXCONN), "/sys/class/net/data/mtu");
    let words = ["run", &file, "--hosts", &site.inventory, "--out", &out, "--keep-noisy"];
    let words = [&words[..], &["--change-hosts"]].concat();
    let run = site.rxpath(&words);
    // 4: the machine was busy, which is no matter here.
    assert!(matches!(run.code, Some(4 | 5)), "{run:?}");
    let refused = "cannot be set on sut: net.ipv4.tcp_congestion_control=no-such-control is refused: No such file";
    assert!(run.err.contains(&format!("refused is not available: {refused}")), "{run:?}");
    let short = "with its settings, 1252 bytes pass gen1 -> sut, 1400 do not: MTU 1500 at gen1 and 1280 at sut";
    assert!(run.err.contains(&format!("short is not available: {short}")), "{run:?}");
    let directory = std::fs::read_dir(&out).unwrap().next().unwrap().unwrap().path();
    let manifest = RunReader::open(&directory).unwrap().manifest;
    secrets::are_kept(&site, &directory);
    let of = |name: &str| manifest.variants.iter().find(|it| it.name == name).unwrap();
    for (name, why) in [("refused", refused), ("short", short)] {
        let (trials, known) = (of(name).trials_count, of(name).not_available.as_ref());
        assert!(trials == 0 && known.is_some_and(|it| it.starts_with(why)), "{:?}", of(name));
    }
    for name in ["base", "other"] {
        let variant = of(name);
        assert!(variant.not_available.is_none(), "{variant:?}");
        // 4: all its trials may be void.
        assert!(variant.trials_count == 1 || run.code == Some(4), "{variant:?}");
    }
    let compared: Vec<&str> = manifest.comparisons.iter().map(|one| one.variant.as_str()).collect();
    assert!(compared == ["other"] || run.code == Some(4), "{compared:?}");
    assert_eq!((site.sysctl("sut", SOMAXCONN), site.sysctl("sut", mtu)), (before, "1500".into()));
    site.holds_nothing(SOON);
}

#[test]
fn a_run_of_which_no_variant_is_left_says_why_and_leaves_the_host_as_it_was() {
    let Some(site) = site() else { return };
    let (file, out) = (site.write("s.toml", &format!("{REFUSED}{BASE}")), site.path("runs"));
    let before = site.sysctl("sut", SOMAXCONN);
    let words = ["run", &file, "--hosts", &site.inventory, "--out", &out, "--change-hosts"];
    let run = site.rxpath(&words).ends(3);
    let what =
        "1 of 1 variants not available: cannot be set on sut: net.ipv4.tcp_congestion_control=";
    assert!(run.err.contains(what), "{run:?}");
    assert!(run.err.contains(": nothing is left to compare"), "{run:?}");
    assert_eq!(site.sysctl("sut", SOMAXCONN), before);
    site.holds_nothing(SOON);
}
