//! Single hosts that a scenario names: settings of one, and background load on some.

use super::*;

const ALIASES: [&str; 3] = ["gen1", "gen2", "sut"];

fn between(text: &str, sets: &[&str], known: Option<&[&str]>) -> Result<spec::Resolved, String> {
    let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
    // The senders have fewer CPUs.
    let (sender, receiver) = (HostShape::flat(2), HostShape::flat(8));
    parse(&(head() + text), "t.toml", "t")
        .and_then(|file| resolve_between(&file, &sets, [&sender, &receiver], true, known))
        .map_err(|error| error.to_string())
}

#[test]
fn a_host_that_a_lab_does_not_have_is_told_with_its_line() {
    each_says(&[
        (
            "[tune.reciever]\n\"net.core.somaxconn\" = 1",
            "t.toml:2: `tune.reciever`: this run has no host `reciever`; did you mean `receiver`?",
        ),
        (
            "[[variant]]\nname = \"a\"\ntune.gen2.\"{dev}/mtu\" = 9000",
            "t.toml:4: `tune.gen2`: this run has no host `gen2`; run it with --hosts, or name receiver or sender",
        ),
        (
            "[tune.Gen2]\n\"{dev}/mtu\" = 9000",
            "t.toml:2: [tune] has no key `Gen2`; keys known here: receiver, sender, ALIAS",
        ),
        (
            "tune.gen2 = 3",
            "t.toml:2: `tune.gen2` is a whole number; it takes a table such as { \"net.ipv4.ip_forward\" = 1 }",
        ),
        (
            "[background]\nhogs = 1\non = \"senders\"",
            "t.toml:4: `background.on` chooses hosts, and this run has none; leave it out, or run it with --hosts",
        ),
        (
            "[background]\nhogs = 1\non = \"sender\"",
            "t.toml:4: `background.on`: \"sender\" is no choice; did you mean \"senders\"?",
        ),
        (
            "[background]\nhogs = 1\non = []",
            "t.toml:4: `background.on` is an empty list; it takes \"receivers\", \"senders\", \"all\" or a list of hosts",
        ),
        (
            "[background]\nhogs = 1\non = [\"Gen1\"]",
            "t.toml:4: `background.on`: \"Gen1\" is no alias; it takes \"receivers\", \"senders\", \"all\" or a list of hosts",
        ),
    ]);
    let plain = resolved("[background]\nhogs = 1\non = \"receivers\"", &[], 4).unwrap();
    assert_eq!(plain.variants[0].background.on, spec::OnHosts::Receivers);
}

#[test]
fn a_host_that_is_not_in_the_inventory_is_told_with_the_one_that_was_meant() {
    let told = |text: &str, sets: &[&str]| between(text, sets, Some(&ALIASES)).unwrap_err();
    let text = "tune.gen1.\"{dev}/mtu\" = 9000\ntune.gen3.\"{dev}/mtu\" = 9000\ntune.sut.\"{dev}/mtu\" = 9000";
    assert_eq!(
        told(text, &[]),
        "t.toml:3: `tune.gen3`: this run has no host `gen3`; did you mean `gen1`?"
    );
    assert_eq!(
        told("", &["tune.recever.{dev}/mtu=9000"]),
        "--set tune.recever.{dev}/mtu=9000: `tune.recever`: this run has no host `recever`; did you mean `receiver`?"
    );
    assert_eq!(
        told("", &["tune.load-balancer.{dev}/mtu=9000"]),
        "--set tune.load-balancer.{dev}/mtu=9000: `tune.load-balancer`: this run has no host `load-balancer`; \
         names known here: receiver, sender, gen1, gen2, sut"
    );
    assert_eq!(
        told("[background]\nhogs = 1\non = [\"gen1\", \"sut2\"]", &[]),
        "t.toml:4: `background.on`: this run has no host `sut2`; did you mean `sut`?"
    );
    assert!(
        told("tune.sut.\"no such\" = 1", &[]).starts_with("t.toml:2: `tune.sut`: `no such` is not")
    );
    // Before the hosts are known, any may be there.
    assert!(between(text, &[], None).is_ok());
}

#[test]
fn hosts_of_a_scenario_are_read_as_an_inventory() {
    let hosts = "[hosts.gen1]\nssh = \"gen1.lab\"\nrole = \"sender\"\n[hosts.sut]\nssh = \"local\"\nrole = \"receiver\"\n";
    let read = |text: &str| parse(&(head() + text), "t.toml", "t");
    let (inventory, text) =
        read(&format!("{hosts}[network]\nhops = 2\n[load]\nrate = 1000\n")).unwrap().hosts.unwrap();
    assert_eq!((inventory.hosts.len(), inventory.network.hops), (2, 2));
    let set = inventory.with(&text, &["network.connect_at_once=4".into()]).unwrap();
    assert_eq!((set.network.hops, set.network.connect_at_once), (2, 4));
    assert!(read("[load]\nrate = 1000\n").unwrap().hosts.is_none());
    let told = |text: &str| read(text).unwrap_err().to_string();
    assert_eq!(
        told("[network]\nhops = 2\n"),
        "t.toml: no host has role = \"sender\"; an experiment needs a sender and a receiver"
    );
    let told = told(&hosts.replace("role = \"sender\"", "rule = \"sender\""));
    assert!(told.starts_with("t.toml: line 4: unknown field `rule`"), "{told}");
    assert!(told.ends_with("; did you mean `role`?"), "{told}");
}

/// As for a side: a variant's names are added to the base's, and `--set` adds to both.
#[test]
fn settings_of_a_host_are_those_of_base_and_variant() {
    let text = "tune.gen2.\"{dev}/mtu\" = 9000\n[[variant]]\nname = \"a\"\n[[variant]]\nname = \"b\"\n\
                tune.gen2.\"{dev}/threaded\" = 1\n";
    let sets = ["tune.gen2.net.core.somaxconn=99", "variant.b.tune.gen2.{dev}/mtu=1500"];
    let made = between(text, &sets, Some(&ALIASES)).unwrap();
    let names = |at: usize| {
        let all = made.variants[at].tune.hosts["gen2"].iter();
        all.map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(names(0), "net.core.somaxconn=99 {dev}/mtu=9000");
    assert_eq!(names(1), "net.core.somaxconn=99 {dev}/mtu=1500 {dev}/threaded=1");
    let settings = &made.variants[1].settings;
    assert_eq!(settings.keys().collect::<Vec<_>>(), ["tune.gen2"]);
    let record = serde_json::to_value(&made.variants[0].tune).unwrap();
    assert_eq!(record["gen2"]["{dev}/mtu"], "9000");
    assert!(made.variants[0].tune.receiver.is_empty());
}

#[test]
fn a_host_s_settings_are_swept_as_a_whole() {
    let text = "[sweep]\ntune.gen2 = [{ \"{dev}/mtu\" = 1500 }, { \"{dev}/mtu\" = 9000 }]\n";
    let parsed = between(text, &[], Some(&ALIASES)).unwrap();
    let mtu = |at: usize| parsed.variants[at].tune.hosts["gen2"]["{dev}/mtu"].clone();
    assert_eq!([mtu(0), mtu(1)], ["1500", "9000"]);
}

#[test]
fn cpus_of_load_on_the_senders_are_those_of_a_sender() {
    let on = |on: &str| {
        let text = format!("[background]\nhogs = 1\ncpus = \"7\"\non = {on}");
        between(&text, &[], Some(&ALIASES))
    };
    assert_eq!(on("\"receivers\"").unwrap().variants[0].background.cpus.0, [7]);
    let wrong = on("\"senders\"").unwrap_err();
    assert!(wrong.starts_with("t.toml:4: `background.cpus`"), "{wrong}");
    let made = on("[\"gen1\", \"sut\"]").unwrap();
    let aliases = ["gen1", "sut"].map(str::to_owned).to_vec();
    assert_eq!(made.variants[0].background.on, spec::OnHosts::These(aliases));
    assert_eq!(made.variants[0].written_cpus["background.cpus"], "7");
}

/// A reason that offers --change-hosts is given only where that makes the variant available.
#[test]
fn the_reason_of_a_variant_is_the_one_that_no_change_of_a_host_remedies() {
    let text = "[[variant]]\nname = \"engine\"\nload.engine = \"xdp-frames\"\nlab.gro = true\nlab.tso = false\n\
                [[variant]]\nname = \"link\"\nlab.gro = true\nlab.tso_rx = false\n\
                [[variant]]\nname = \"offered\"\nlab.gro = true\n";
    let file = parse(&(head() + text), "t.toml", "t").unwrap();
    let reasons = |may_change: bool| -> Vec<Option<String>> {
        let host = HostShape::flat(8);
        let made = resolve_between(&file, &[], [&host, &host], may_change, None).unwrap();
        made.variants.into_iter().map(|variant| variant.not_available).collect()
    };
    let engine = "`load.engine` works on one machine only, in a lab of two namespaces";
    let link = |key: &str| {
        format!("`{key}` is a setting of the lab's link; between hosts it is the device's own")
    };
    let (engine, link, gro) = (engine.to_owned(), link("lab.tso_rx"), link("lab.gro"));
    let offered = gro + ": --change-hosts sets {dev}/features/rx-gro";
    let (engine, link) = (Some(engine), Some(link));
    assert_eq!(reasons(false), [engine.clone(), link.clone(), Some(offered)]);
    assert_eq!(reasons(true), [engine, link, None]);
}

#[test]
fn hosts_are_not_changed_for_a_variant_that_cannot_run() {
    let text = "[[variant]]\nname = \"plain\"\n[[variant]]\nname = \"rps\"\nlab.rps_cpus = \"1\"\n\
                [[variant]]\nname = \"engine\"\nload.engine = \"xdp-frames\"\nlab.gro = true\nlab.tso = false\n\
                [[variant]]\nname = \"link\"\nlab.threaded = true\nlab.tso_rx = false\n\
                [[variant]]\nname = \"place\"\nserve.cpu = \"@sibling-of-receiver\"\nlab.queues = 2\n";
    let made = between(text, &[], None).unwrap();
    let available: Vec<&str> = made.available().map(|variant| variant.name.as_str()).collect();
    assert_eq!(available, ["plain", "rps"]);
    for spec::Variant { name, tune, .. } in &made.variants {
        let names: Vec<&String> = tune.receiver.keys().chain(tune.sender.keys()).collect();
        assert_eq!(names, ["{dev}/queues/rx-*/rps_cpus"], "{name}");
    }
}

/// `"default"` takes a key away. Where the base does not have it, nothing differs.
#[test]
fn a_default_of_a_key_that_the_base_does_not_have_changes_no_host() {
    let variants =
        "[[variant]]\nname = \"plain\"\n[[variant]]\nname = \"same\"\nlab.gro = \"default\"\n";
    let made = between(variants, &[], None).unwrap();
    assert!(made.variants.iter().all(|variant| variant.tune.is_empty()), "{:?}", made.variants);
    let made = between(&format!("[lab]\ngro = true\n{variants}"), &[], None).unwrap();
    let gro = |at: usize| made.variants[at].tune.receiver["{dev}/features/rx-gro"].clone();
    assert_eq!([gro(0), gro(1)], ["on", "off"]);
}

/// What it sets is in the plan, the record and the report, whether a host is changed for it or not.
#[test]
fn a_variant_shows_the_values_of_its_keys_of_the_lab_s_link() {
    let text = "[[variant]]\nname = \"plain\"\n[[variant]]\nname = \"set\"\nlab.queues = 2\n\
                lab.rps_cpus = \"@receiver\"\n[[variant]]\nname = \"refused\"\nlab.tso_rx = false\n";
    let made = between(text, &[], None).unwrap();
    assert_eq!(made.variants[1].tune.receiver["{dev}/channels/combined"], "2");
    assert!(made.variants[2].not_available.is_some());
    let shown = |at: usize| serde_json::to_string(&made.variants[at].settings).unwrap();
    let set = r#"{"lab.queues":2,"lab.rps_cpus":"1"}"#;
    assert_eq!([0, 1, 2].map(shown), ["{}", set, r#"{"lab.tso_rx":false}"#]);
}

/// A host that refuses what one variant wants is left as it is for the others.
#[test]
fn a_setting_that_other_variants_have_only_for_a_refused_one_is_taken_back() {
    let text = "tune.receiver.\"net.core.somaxconn\" = 99\n[[variant]]\nname = \"plain\"\n\
                [[variant]]\nname = \"queues\"\nlab.queues = 2\nlab.tso = false\n\
                [[variant]]\nname = \"rps\"\nlab.rps_cpus = \"1\"\n\
                [[variant]]\nname = \"own\"\ntune.receiver.\"{dev}/channels/combined\" = 8\n";
    let mut made = between(text, &[], None).unwrap();
    let all = |tune: &spec::Tune| {
        let names = tune.receiver.keys().chain(tune.sender.keys());
        let ends: Vec<&str> = names.map(|name| name.rsplit('/').next().unwrap_or(name)).collect();
        ends.join(" ")
    };
    let wants: Vec<String> = made.variants.iter().map(|variant| all(&variant.own_tune())).collect();
    let of_base = "net.core.somaxconn";
    let [queues, rps, own] = ["combined tx-tcp-segmentation", "rps_cpus", "combined"]
        .map(|more| format!("{of_base} {more}"));
    assert_eq!(wants, [of_base.to_owned(), queues, rps, own]);
    let has = |made: &spec::Resolved| -> Vec<String> {
        made.variants.iter().map(|variant| all(&variant.tune)).collect()
    };
    let each = format!("{of_base} combined rps_cpus tx-tcp-segmentation");
    assert_eq!(has(&made), [each.as_str(); 4]);
    made.leave_out("queues", "cannot be set on sut: eth0/channels/combined=2: no");
    made.take_back_link();
    let rest = format!("{of_base} rps_cpus");
    assert_eq!([0, 2].map(|at| has(&made)[at].clone()), [rest.as_str(); 2]);
    assert_eq!(has(&made)[3], format!("{of_base} combined rps_cpus"), "what it sets itself stays");
    assert!(made.compare.iter().all(|pair| pair.variant != "queues"), "{:?}", made.compare);
}

/// The variants that are left by hosts that refuse these queues with this TSO; each with both.
fn left(names: [&str; 3], is_refused: impl Fn(&str, &str) -> bool) -> Vec<String> {
    let all = names.map(|name| {
        let differs = match name {
            "queues" => "lab.queues = 2\n",
            "tso" => "lab.tso = false\n",
            _ => "",
        };
        format!("[[variant]]\nname = \"{name}\"\n{differs}")
    });
    let mut made = between(&all.concat(), &[], None).unwrap();
    let sets = |tune: &spec::Tune| {
        let queues = tune.receiver.get("{dev}/channels/combined");
        [queues, tune.sender.get("{dev}/features/tx-tcp-segmentation")]
            .map(|value| value.cloned().unwrap_or_default())
    };
    let refused = |tune: &spec::Tune| {
        let [queues, tso] = sets(tune);
        Ok::<_, ()>(is_refused(&queues, &tso).then(|| "no".to_owned()))
    };
    made.leave_out_refused(refused).unwrap();
    let shown = |it: &spec::Variant| format!("{} {}", it.name, sets(&it.tune).join(" "));
    made.available().map(shown).collect()
}

/// Each takes its own settings, and not those that the others bring.
#[test]
fn a_variant_that_is_refused_for_the_settings_of_others_leaves_them_none_of_its_own() {
    let names = ["tso", "plain", "queues"];
    assert_eq!(left(names, |_, _| false), ["tso 1 off", "plain 1 on", "queues 2 on"]);
    // As soon as the first one is left out, the others set one key only.
    for order in [names, ["plain", "queues", "tso"]] {
        let rest = left(order, |queues, tso| (queues, tso) == ("1", "off"));
        assert_eq!(rest, ["plain 1 ", "queues 2 "]);
    }
    let both = |queues: &str, tso: &str| !queues.is_empty() && !tso.is_empty();
    assert_eq!(left(names, both), ["plain 1 ", "queues 2 "]);
    // Without the key that is taken back, what the plain one sets is another set, which hosts are asked for.
    let order = ["plain", "queues", "tso"];
    let rest = left(order, |queues, tso| queues == "1" && tso != "on");
    assert_eq!(rest, ["queues 2 "]);
}
