//! Every mistake in a scenario file has one line that names its place and what would be right.

use rxpath_load::udp::load::options::Engine as SendEngine;
use rxpath_load::udp::serve::options::ServeEngine;

use super::*;

#[test]
#[expect(clippy::too_many_lines, reason = "a table of bad files")]
fn each_error_names_its_line_and_what_would_be_right() {
    let cases = [
        ("serv = 1", "t.toml:2: a scenario has no key `serv`; did you mean `serve`?"),
        ("[serve]\nrcvbuff = 1", "t.toml:3: [serve] has no key `rcvbuff`; did you mean `rcvbuf`?"),
        (
            "[load]\ncapacity_ratio = 2\nrate = \"1k\"",
            "t.toml:4: `load.rate` leaves no capacity that load.capacity_ratio is a share of; leave one of the two out",
        ),
        (
            "[background]\nvictim_command = \"true\"",
            "t.toml:3: `background.victim_command` runs on the victim's CPU and there is none; set background.victim to a CPU such as \"@victim\"",
        ),
        (
            "[load]\ncapacity_slo = \"loss=0\"",
            "t.toml:3: `load.capacity_slo` says nothing without `load.capacity_ratio`; set load.capacity_ratio too",
        ),
        (
            "[load]\ncapacity_ratio = 0.5\ncapacity_slo = \"loss=0, p99<2ms\"",
            "t.toml:4: `load.capacity_slo`: `p99<2ms`: a datagram has no reply to wait for; write loss=0.1% or p99<2ms",
        ),
        (
            "[load]\ncapacity_ratio = 0.5\n[[variant]]\nname = \"a\"\n[[variant]]\nname = \"b\"\nload.capacity_slo = \"loss=0\"",
            "t.toml:8: variants differ in `load.capacity_slo`, and one capacity is searched for all of them; write it once under [load], or make two scenarios",
        ),
        (
            "[[variant]]\nname = \"a\"\n[[variant]]\nname = \"b\"\n[[compare]]\nvariant = \"b\"\npublished = { ratio = 2.0, difference = 1.0, figures = \"1 against 2\", source = \"S\", machine = \"M\" }",
            "t.toml:8: `published.ratio` is missing or not usable; give one of ratio and difference",
        ),
        ("[serve]\nrate = 1", "t.toml:3: [serve] has no key `rate`; `rate` belongs to [load]"),
        (
            "[lab]\nmtu = 9000",
            "t.toml:3: [lab] has no key `mtu`; keys known here: queues, mtu_bytes, ipv6, addresses, rps_cpus, gro, udp_gro_forwarding, tso, tso_rx, napi_defer_hard_irqs, gro_flush_timeout, udp_segmentation, threaded, napi_cpu, napi_idle, awake, upper, flow_rule, turbo, smt, sysctl_rx, sysctl_tx, nft_rx, nft_tx, conntrack_room, iptables_rx, qdisc_tx",
        ),
        (
            "[serve]\nbatch = \"x\"",
            "t.toml:3: `serve.batch` is a text; it takes a whole number from 1 to 1024",
        ),
        (
            "[serve]\nbatch = 0",
            "t.toml:3: `serve.batch` is 0; it takes a whole number from 1 to 1024",
        ),
        (
            "[serve]\nsockets = \"reusport\"",
            "t.toml:3: `serve.sockets`: \"reusport\" is no choice; did you mean \"reuseport\"?",
        ),
        (
            "[serve]\nwork = 500",
            "t.toml:3: `serve.work`: the number 500 has no unit; it takes a duration from 0ns to 1s such as \"10us\"",
        ),
        (
            "[serve]\nwork = \"5 parsecs\"",
            "t.toml:3: `serve.work`: `5 parsecs` is not a duration: unit `parsecs` is not one of ns, us, µs, ms, s, min, m, h; it takes a duration from 0ns to 1s such as \"10us\"",
        ),
        (
            "[serve]\ncpu = \"@reciever\"",
            "t.toml:3: `serve.cpu`: `@reciever` is no CPU role; did you mean `receiver`?",
        ),
        ("[serve]\n\ncpu = 7", "t.toml:4: `serve.cpu`: CPU 7 is not online; use CPUs of 0-3"),
        (
            "[serve]\ncpu = \"0-1\"\nthreads = 3",
            "t.toml:4: `serve.threads` is 3 and `serve.cpu` names 2; leave threads out: it is one thread per CPU",
        ),
        (
            "[serve]\nsteer = \"cpu\"",
            "t.toml:3: `serve.steer` chooses among SO_REUSEPORT sockets and there are none; set serve.sockets = \"reuseport\"",
        ),
        (
            "[serve]\nsleep = \"1ms\"",
            "t.toml:3: `serve.sleep` says nothing without `serve.every`; set serve.every too",
        ),
        (
            "[serve]\nparser = \"wrk\"",
            "t.toml:3: `serve.parser` is about another program and `serve.command` names none; set serve.command",
        ),
        (
            "[load]\nparser = \"iperf\"\ncommand = \"x\"",
            "t.toml:3: `load.parser`: `iperf` is not known; did you mean `iperf3`?",
        ),
        (
            "[load]\ncommand = \"x\"\nparser = { regex = \"(\" }",
            "t.toml:4: `load.parser`: found open group without closing ')'; repair the pattern",
        ),
        (
            "[load]\nsize = 1500\ngso = 4",
            "t.toml:3: GSO segments of 1500 bytes do not fit the MTU of 1500; the kernel refuses them (EINVAL): use load.size up to 1472",
        ),
        (
            "[load]\nsize = 1400\ngso = 64",
            "t.toml:4: 64 segments of 1400 bytes are more than one send takes; use load.gso up to 46",
        ),
        (
            "[load]\nflows = 1000\nsource_port = 65000",
            "t.toml:4: 1000 flows from source port 65000 on go past port 65535; start at 64536 or below",
        ),
        (
            "[load]\ncorrupt = \"checksum\"\ngso = 4",
            "t.toml:3: `load.corrupt` writes each datagram itself and cannot send GSO batches; leave load.gso out",
        ),
        (
            "[load]\nengine = \"xdp\"\ngso = 4",
            "t.toml:4: `load.gso` is about sockets, and the engine xdp has none; leave one of the two out",
        ),
        (
            "[lab]\ngro = true\ntso = false\n[load]\nengine = \"xdp-frames\"\nrate = \"1k\"\npacing = \"sleep\"",
            "t.toml:8: the engine xdp-frames spins until a datagram is due; leave load.pacing out",
        ),
        (
            "[load]\nengine = \"xdp-frames\"",
            "t.toml:3: frames of XDP programs need NAPI at the receiver's end; set lab.gro = true and lab.tso = false",
        ),
        (
            "[serve]\nengine = \"xdp\"\nrcvbuf = \"1MiB\"",
            "t.toml:4: `serve.rcvbuf` is about sockets, and the engine xdp has none; leave one of the two out",
        ),
        (
            "[serve]\nengine = \"xdp-drop\"\nwork = \"1us\"",
            "t.toml:4: the engine xdp-drop reads nothing, and `serve.work` is about reading; leave one of the two out",
        ),
        (
            "[topology]\nkind = \"local\"\n[serve]\nengine = \"xdp\"",
            "t.toml:5: the engine xdp is about frames, and loopback has none; use topology.kind = \"netns\"",
        ),
        (
            "[serve]\nsched = \"fifo\"",
            "t.toml:3: `serve.sched`: `fifo` is not a scheduler class: it needs a priority; it takes a scheduler class: \"other\", \"batch\", \"idle\", \"fifo:10\" or \"rr:10\"",
        ),
        (
            "[load]\nsize = \"1 MB\"",
            "t.toml:3: `load.size` is 1 MB; it takes a size from 0 to 65507 bytes such as 1400 or \"64KiB\"",
        ),
        (
            "[lab]\nthreaded = true",
            "t.toml:3: `lab.threaded` needs NAPI; a veth end has NAPI with gro = true and tso = false (or udp_gro_forwarding = true)",
        ),
        (
            "[lab]\nsysctl_rx = { \"/etc/passwd\" = 1 }",
            "t.toml:3: `lab.sysctl_rx`: `/etc/passwd` is no sysctl of a network namespace; write one such as net.ipv4.ip_forward",
        ),
        (
            "[lab]\nsysctl_tx = { \"kernel.pid_max\" = 1 }",
            "t.toml:3: `lab.sysctl_tx`: `kernel.pid_max` is no sysctl of a network namespace; write one such as net.ipv4.ip_forward",
        ),
        (
            "[lab]\nnapi_cpu = 1",
            "t.toml:3: `lab.napi_cpu` is about NAPI threads and there are none; set lab.threaded = true",
        ),
        (
            "[lab]\nqdisc_tx = { kind = \"tbff\" }",
            "t.toml:3: `lab.qdisc_tx`: `tbff` is not known; did you mean `tbf`?",
        ),
        (
            "[lab]\nqdisc_tx = { kind = \"pfifo\", limt = 3 }",
            "t.toml:3: `lab.qdisc_tx`: it has no key `limt`; did you mean `limit`?",
        ),
        (
            "[topology]\nkind = \"local\"\n[lab]\nmtu_bytes = 9000",
            "t.toml:5: `lab.mtu_bytes` would change this host: the local topology has no namespace of its own; use topology.kind = \"netns\"",
        ),
        (
            "[[variant]]\nname = \"a\"\n[[variant]]\nname = \"a\"",
            "t.toml:5: two variants are called `a`; rename one of them",
        ),
        ("[[variant]]\nwhat = \"a\"", "t.toml:3: a variant has no `name`; add name = …"),
        (
            "[[variant]]\nname = \"a b\"",
            "t.toml:3: `variant[0].name`: the name `a b` cannot be part of a file name, use up to 60 letters, digits, - and _; `rxpath list --keys` shows what a scenario file takes",
        ),
        (
            "[[variant]]\nname = \"a\"\nserve.batchs = 1",
            "t.toml:4: [serve] has no key `batchs`; did you mean `batch`?",
        ),
        (
            "[[variant]]\nname = \"b\"\nfrom = \"a\"\n[[variant]]\nname = \"a\"",
            "t.toml:4: no variant above is called `a`; there are no variants here",
        ),
        (
            "[[variant]]\nname = \"a\"\ntrials.seed = 1",
            "t.toml:4: a variant has no key `trials`; keys known here: name, what, from, topology, lab, tune, background, observe, serve, load",
        ),
        (
            "[[variant]]\nname = \"fast\"\n[[variant]]\nname = \"slow\"\n[[compare]]\nvariant = \"slw\"",
            "t.toml:7: `slw` is no variant of this scenario; did you mean `slow`?",
        ),
        (
            "[[variant]]\nname = \"fast\"\n[[variant]]\nname = \"slow\"\n[[compare]]\nvariant = \"slow\"\nmetric = \"deliverd_pps\"",
            "t.toml:8: `deliverd_pps` is no metric of this scenario; did you mean `delivered_pps`?",
        ),
        (
            "[[variant]]\nname = \"fast\"\n[[compare]]\nvariant = \"fast\"",
            "t.toml:5: `fast` is compared with itself; name another base; trials.aa measures the noise",
        ),
        (
            "[sweep]\nserve.batch = 4",
            "t.toml:3: `serve.batch` is a whole number; it takes a list of values to try",
        ),
        (
            "[sweep]\nserve.bacth = [4]",
            "t.toml:3: [serve] has no key `bacth`; did you mean `batch`?",
        ),
        (
            "[sweep]\ntrials.seed = [4]",
            "t.toml:3: `trials.seed` cannot be swept; sweep a key of lab, tune, background, serve or load: serve.batch",
        ),
        (
            "[sweep]\nserve.batch = [4, 4]",
            "t.toml:2: a swept value is listed twice; list each value once",
        ),
        (
            "[trials]\nblocks = 9\nmax_blocks = 3",
            "t.toml:4: 9 blocks at least, 3 at most; raise trials.max_blocks",
        ),
        (
            "[trials]\nmeasure = \"30s\"\ntime_limit = \"10s\"",
            "t.toml:4: one trial takes 31s, the whole run 10s; raise trials.time_limit or shorten trials.measure",
        ),
        (
            "[trials]\nprecision_ratio = 3.5",
            "t.toml:3: `trials.precision_ratio` is 3.5; it takes a share from 0.0001 to 1 such as 0.05",
        ),
        (
            "x = 1979-05-27",
            "t.toml:2: a scenario has no key `x`; keys known here: name, question, expected, hidden, figure, topology, lab, tune, background, observe, serve, load, variant, sweep, compare, search, trials, hosts, network",
        ),
        (
            "[serve\n",
            "t.toml:2: not TOML: unclosed table, expected `]`; `rxpath list --keys` shows what a scenario file takes",
        ),
        (
            "lab = 3",
            "t.toml:2: `lab`: it is a whole number; it takes a table: write [NAME] above its keys",
        ),
        (
            "variant = 3",
            "t.toml:2: `variant`: it is a whole number; it takes a list; of tables, write [[NAME]] above each",
        ),
        (
            "observe.irq_entry = \"2ms\"",
            "t.toml:2: `observe.irq_entry` is 2ms; it takes a duration from 0ns to 1ms such as \"10us\"",
        ),
        (
            "trials.measure = 5",
            "t.toml:2: `trials.measure`: the number 5 has no unit; it takes a duration from 100ms to 3600s such as \"1s\"",
        ),
        (
            "load.timeout = \"10us\"",
            "t.toml:2: `load.timeout` is 10us; it takes a duration from 1ms to 600s such as \"10ms\"",
        ),
        ("hidden = 1", "t.toml:2: `hidden`: it is a whole number; it takes true or false"),
    ];
    each_says(&cases);
}

#[test]
fn an_empty_text_is_refused_and_says_what_a_missing_one_means() {
    let two =
        "[[variant]]\nname = \"a\"\n[[variant]]\nname = \"b\"\n[[compare]]\nvariant = \"b\"\n";
    let with = |line: &str| error(&format!("{two}{line}"));
    assert_eq!(
        with("metric = \"\""),
        "t.toml:8: `compare[0].metric` is empty; name a metric, or leave the key out: then the main metric is compared"
    );
    assert_eq!(
        with("base = \" \""),
        "t.toml:8: `compare[0].base` is empty; name a variant, or leave the key out: then the first one is the base"
    );
    assert_eq!(resolved(two, &[], 4).unwrap().compare[0].metric, "delivered_pps");
    let default =
        "write a text, or \"default\" instead of the whole value: as if the key were not there";
    let [of_one, of_list] = ["serve.congestion", "lab.iptables_rx"]
        .map(|key| format!("t.toml:3: `{key}`: a text is empty; {default}"));
    each_says(&[
        ("expected = \"\"", "t.toml:2: `expected` is empty; write a text, or leave the key out"),
        ("[[variant]]\nname = \"\"", "t.toml:3: `variant[0].name` is empty; write a text"),
        (
            "[load]\ncommand = [\"\"]",
            "t.toml:3: `load.command` is empty; it takes a command: one text, or a list of words",
        ),
        ("[serve]\ncongestion = \"\"", of_one.as_str()),
        ("[lab]\niptables_rx = [\"-A INPUT\", \"\"]", of_list.as_str()),
    ]);
    // An empty list of CPUs means that there is none.
    assert!(resolved("[lab]\nrps_cpus = \"\"", &[], 4).is_ok());
}

#[test]
fn the_engines_of_a_protocol_are_named() {
    for (side, words) in [("load", SendEngine::words()), ("serve", ServeEngine::words())] {
        let refused = error(&format!("[{side}]\nengine = \"uring\""));
        let right = format!("\"uring\" is not an engine of udp; use {}", words.join(", "));
        assert_eq!(refused, format!("t.toml:3: `{side}.engine` = {right}"));
    }
    assert_eq!(SendEngine::words(), ["socket", "xdp", "xdp-frames"]);
    assert_eq!(ServeEngine::words(), ["socket", "xdp", "xdp-drop"]);
}
