//! Scenarios of the lab with one wrong setting each.

/// What is wrong, the candidates that mend it, the scenario, further words of the command line.
pub type Scenario = (&'static str, Words, &'static str, Words);
type Words = &'static [&'static str];

/// A sender as fast as it goes, and a reader on another CPU.
macro_rules! flood {
    (lab: $lab:literal, serve: $serve:literal, load: $load:literal) => {
        concat!(
            "question = \"Which settings help a reader under a flood?\"\n[lab]\nawake = true\n",
            $lab,
            "\n[serve]\nrcvbuf = \"4MiB\"\n",
            $serve,
            "\n[load]\ncpu = \"@sender\"\n",
            $load,
        )
    };
}

/// A reader that stalls for half of the time, at a rate that any host offers.
macro_rules! stalls {
    ($rcvbuf:literal) => {
        concat!(
            "question = \"Which settings help a reader that stalls?\"\n[lab]\nawake = true\n",
            "[serve]\ncpu = \"@receiver\"\nsleep = \"5ms\"\nevery = \"10ms\"\nrcvbuf = \"",
            $rcvbuf,
            "\"\n[load]\ncpu = \"@sender\"\nrate = \"20k\"\n",
        )
    };
}

/// The buffer holds what comes during a stall.
pub const NOTHING: Scenario = (super::NOTHING_PLANTED, &[], stalls!("8MiB"), &[]);

/// Each is wrong in one setting.
pub const ALL: [Scenario; 8] = [
    (
        "RPS onto the CPU of the reader",
        &["no RPS"],
        flood!(
            lab: "rps_cpus = \"@receiver\"",
            serve: "cpu = \"@receiver\"\nbatch = 1\nwork = \"2us\"",
            load: "batch = 64\nrate = \"240k\""
        ),
        &[],
    ),
    ("a receive buffer of 16 KiB", &["larger receive buffer"], stalls!("16KiB"), &[]),
    (
        "threaded NAPI starved by a busy CPU",
        // On a veth TSO of the sender takes NAPI out of the path.
        &["no threaded NAPI", "TCP segmentation offload"],
        flood!(
            lab: "gro = true\ntso = false\nthreaded = true\nnapi_idle = true\nnapi_cpu = \"@receiver\"\n[background]\nhogs = 1\ncpus = \"@receiver\"",
            serve: "cpu = \"@receiver\"",
            load: "rate = \"100k\""
        ),
        &[],
    ),
    (
        "the service on the CPU of the softirqs",
        &["the service on CPU 1"],
        flood!(lab: "", serve: "cpu = \"@sender\"", load: "batch = 64"),
        &[],
    ),
    (
        "busy polling off where latency matters",
        &["busy polling of the service"],
        "question = \"Which settings shorten a transaction?\"\n[lab]\ngro = true\ntso = false\n\
         [serve]\nprotocol = \"tcp-rr\"\ncpu = \"@receiver\"\n[load]\ncpu = \"@sender\"\n",
        &["--objective", "min service_time_p50_us"],
    ),
    (
        "a slow queueing discipline",
        &["no queueing discipline of the sender"],
        flood!(
            lab: "qdisc_tx = { kind = \"tbf\", rate = \"200Mbit\", burst = 20000, limit = 200000 }",
            serve: "cpu = \"@receiver\"",
            load: "batch = 64"
        ),
        &[],
    ),
    (
        "connection tracking under a flood of new flows",
        &["no connection tracking of the service"],
        flood!(
            lab: "gro = true\ntso = false\nconntrack_room = 100\nnft_rx = \"table inet filter { chain input { type filter hook input priority 0; policy drop; ct state new,established accept; }; }\"",
            serve: "cpu = \"@receiver\"\nbatch = 1024",
            load: "size = 32\nflows = 500\nengine = \"xdp-frames\""
        ),
        &[],
    ),
    (
        "all flows to one thread",
        &["a thread for each CPU"],
        flood!(
            lab: "",
            serve: "work = \"20us\"",
            load: "rate = \"80k\"\nflows = 64\nunconnected = true"
        ),
        &[],
    ),
];
