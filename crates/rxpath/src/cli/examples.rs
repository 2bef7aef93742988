//! Examples of each command, for its help and its man page: one table, keyed by the words of the command.

/// A command line and what it is for.
pub type Example = (&'static str, &'static str);

/// The examples of a command, by its words without `rxpath`; the empty text is the top page.
pub fn of(path: &str) -> &'static [Example] {
    EXAMPLES.iter().find(|(known, _)| *known == path).map_or(&[], |(_, examples)| examples)
}

/// The examples as they stand under a page of help.
pub fn text(path: &str) -> String {
    let examples = of(path);
    let width = examples.iter().map(|(line, _)| line.len()).max().unwrap_or(0);
    // A long line stays on a line of its own, so that it can be copied unbroken.
    let line = |(line, what): &Example| {
        if width > 44 {
            format!("  {line}\n      {what}\n")
        } else {
            format!("  {line:width$}   {what}\n")
        }
    };
    examples.iter().map(line).collect()
}

const EXAMPLES: &[(&str, &[Example])] = &[
    (
        "",
        &[
            ("rxpath", "what is misconfigured on this host's receive path"),
            ("rxpath watch", "live view: rates, drops and CPU time of each stage"),
            ("rxpath diagnose -d 10s --port 53", "which stage limits the DNS server now"),
            ("rxpath explain net.core.rmem_max", "what a setting does and when not to touch it"),
            (
                "rxpath tune plan --goal latency -o p.toml",
                "what would be changed; then: tune apply p.toml",
            ),
        ],
    ),
    (
        "check",
        &[
            ("rxpath check", "the findings that matter most"),
            ("rxpath check --host web1", "the same on another host, over your ssh"),
            (
                "rxpath check --goal latency --fail-on warn",
                "for a script: exit status 1 for a warning or failure",
            ),
            (
                "rxpath check --dev eth0 --queues --interval 1s",
                "packets and drops of each queue, each second",
            ),
            (
                "rxpath check --flow '192.0.2.1:4000->192.0.2.2:53/udp' --dev eth0",
                "the queue, CPU and socket of a flow",
            ),
        ],
    ),
    ("hosts", &[("rxpath hosts check lab.toml", "whether the hosts of an inventory are ready")]),
    (
        "hosts check",
        &[
            (
                "rxpath hosts check lab.toml",
                "connect, find the path, compare the clocks; change nothing",
            ),
            ("rxpath hosts check lab.toml --json", "the same for a script"),
        ],
    ),
    (
        "hosts cleanup",
        &[
            ("rxpath hosts cleanup lab.toml --dry-run", "what earlier experiments left there"),
            ("rxpath hosts cleanup lab.toml", "remove copies of other builds"),
        ],
    ),
    ("endpoint", &[("rxpath endpoint", "started by `rxpath run --hosts`; ends with its input")]),
    (
        "capture",
        &[
            ("rxpath capture host-a", "save this host's state without addresses and names"),
            ("rxpath check --sysroot host-a", "check it on another machine"),
        ],
    ),
    (
        "explain",
        &[
            ("rxpath explain net.core.rmem_max", "by the name of a setting"),
            ("rxpath explain rx-usecs", "by a word of ethtool"),
            ("rxpath explain TCPBacklogDrop", "a counter"),
            ("rxpath explain SOCKET_RCVBUFF", "a drop reason of the kernel"),
            ("rxpath explain busy poll", "a term"),
            ("rxpath explain exit 4", "an exit status"),
        ],
    ),
    ("demo", &[("rxpath demo", "as root: half a minute, and a report to read")]),
    (
        "run",
        &[
            ("rxpath run udp-batching --hosts lab.toml", "between the real hosts of an inventory"),
            (
                "rxpath run udp-batching --sender gen1 --receiver sut",
                "between two hosts that ssh knows",
            ),
            ("rxpath run udp-batching --dry-run", "order, settings, command lines, expected time"),
            ("rxpath run udp-batching", "as root: the experiment, and its report"),
            (
                "rxpath run udp-pinning --set load.rate=200k --set trials.blocks=7",
                "with other settings",
            ),
        ],
    ),
    (
        "capacity",
        &[
            ("rxpath capacity udp", "as root: datagrams per second at 0.1 % loss at most"),
            ("rxpath capacity http --slo 'p99<2ms'", "requests per second under a latency limit"),
            (
                "rxpath capacity udp --quick --set serve.rcvbuf=4MiB",
                "less time, with a larger receive buffer",
            ),
        ],
    ),
    (
        "reproduce",
        &[
            ("rxpath reproduce", "as root: all of them; a stopped call goes on where it was"),
            ("rxpath reproduce --time 30m", "in about half an hour"),
            ("rxpath reproduce --only http-blocking,udp-reuseport", "two of them"),
        ],
    ),
    (
        "diagnose",
        &[
            ("rxpath diagnose", "watch this host for three seconds"),
            ("rxpath diagnose -d 10s --port 53", "only the sockets of a port"),
            ("rxpath diagnose rxpath-runs/RUN", "judge a finished run"),
        ],
    ),
    (
        "list",
        &[
            ("rxpath list", "the experiments with their questions"),
            ("rxpath list --keys", "every key of a scenario file"),
        ],
    ),
    ("serve", &[("rxpath serve udp 127.0.0.1:4321 -d 5s", "count datagrams for five seconds")]),
    (
        "serve udp",
        &[
            ("rxpath serve udp 127.0.0.1:4321 --cpu 1 -d 5s", "one thread, on CPU 1"),
            ("rxpath serve udp [::]:4321 -t 4 --sockets reuseport", "four threads, a socket each"),
            (
                "rxpath serve udp 127.0.0.1:4321 --rcvbuf 4MiB --stamps",
                "a large buffer, and the time to the read",
            ),
        ],
    ),
    (
        "serve tcp",
        &[("rxpath serve tcp 0.0.0.0:4321 --cpu 0-1", "for `rxpath load tcp stream|rr|crr`")],
    ),
    (
        "serve http",
        &[("rxpath serve http 0.0.0.0:8080 -t 2", "for `rxpath load http`, wrk and others")],
    ),
    (
        "load",
        &[("rxpath load udp 127.0.0.1:4321 --rate 100k -d 5s", "100,000 datagrams per second")],
    ),
    (
        "load udp",
        &[
            ("rxpath load udp 127.0.0.1:4321 --rate 100k -d 5s", "by an absolute schedule"),
            (
                "rxpath load udp 198.18.1.1:4321 --engine xdp-frames --flood -d 5s",
                "whole frames into a lab, by an XDP program",
            ),
            (
                "rxpath load udp 127.0.0.1:4321 --size 1400 --gso 32 -d 5s --rate 500k",
                "the kernel cuts datagrams",
            ),
        ],
    ),
    (
        "load http",
        &[
            (
                "rxpath load http http://127.0.0.1:8080/ -c 64 -t 2 -d 10s",
                "closed loop, as wrk does",
            ),
            (
                "rxpath load http http://127.0.0.1:8080/ -c 64 --rate 20k -d 10s",
                "open loop: honest response times",
            ),
        ],
    ),
    ("load tcp", &[("rxpath load tcp stream 127.0.0.1:4321 -d 5s", "bytes in one direction")]),
    (
        "load tcp stream",
        &[
            ("rxpath load tcp stream 127.0.0.1:4321 -c 4 -d 5s", "four connections"),
            ("rxpath load tcp stream 127.0.0.1:4321 --bitrate 1G -d 5s", "at a given rate"),
        ],
    ),
    (
        "load tcp rr",
        &[(
            "rxpath load tcp rr 127.0.0.1:4321 -c 16 --request 100 --response 1KiB -d 5s",
            "requests and answers",
        )],
    ),
    (
        "load tcp crr",
        &[("rxpath load tcp crr 127.0.0.1:4321 -c 16 -d 5s", "a connection for each request")],
    ),
    ("doctor", &[("rxpath doctor", "what can be measured here, and what is missing")]),
    (
        "trace",
        &[
            ("rxpath trace -d 10s", "all of it, as tables"),
            ("rxpath trace --dev eth0 --port 53", "one device, one port"),
            ("rxpath trace -d 1s --perfetto t.json", "a timeline for https://ui.perfetto.dev"),
        ],
    ),
    (
        "steal",
        &[
            ("rxpath steal -d 5s", "which tasks lose CPU time to networking"),
            ("rxpath steal --probe --cpu 1", "how much CPU time a busy loop on CPU 1 loses"),
            ("rxpath steal --pid 1234", "how much the threads of a process lose"),
            ("rxpath steal -- make -j2", "how much a command loses; its exit status is passed on"),
        ],
    ),
    (
        "watch",
        &[
            ("rxpath watch", "live, in the terminal; ? shows the keys"),
            ("rxpath watch --once", "one sample as text"),
            ("rxpath watch --record r.jsonl -d 1min", "save each sample"),
            ("rxpath watch --replay r.jsonl", "view it later, or on another machine"),
        ],
    ),
    (
        "export",
        &[
            ("rxpath export", "for Prometheus, on 127.0.0.1:10077"),
            ("rxpath export --once", "one window of 10 s, to the terminal"),
            ("rxpath export --textfile /var/lib/node_exporter/rxpath.prom", "for node_exporter"),
            (
                "rxpath export --budget 0.5% --interval 30s",
                "at most half of a hundredth of one CPU",
            ),
            ("rxpath export --listen unix:/run/rxpath.sock", "for a proxy with TLS"),
        ],
    ),
    (
        "model",
        &[(
            "rxpath model bounds --arrival-rate 400k --size 32 --stall 10ms",
            "the required buffer size",
        )],
    ),
    (
        "model bounds",
        &[
            (
                "rxpath model bounds --arrival-rate 400k --size 32 --service-ns 2000 --stall 10ms",
                "each stage of a path",
            ),
            ("rxpath model bounds --arrival-rate 400k --calibrated", "with the costs of this host"),
        ],
    ),
    ("model calibrate", &[("rxpath model calibrate", "as root: minutes on a quiet host")]),
    ("model eval", &[("rxpath model eval cases.json", "every case of a file")]),
    (
        "model validate",
        &[("rxpath model validate --run rxpath-runs/RUN", "against an existing run")],
    ),
    (
        "model simulate",
        &[
            ("rxpath model simulate --list", "the bundled sets"),
            (
                "rxpath model simulate --from rxpath-runs/RUN --set nic.ring=1024",
                "a run with another ring size",
            ),
        ],
    ),
    (
        "tune",
        &[
            ("rxpath tune plan --goal latency -o p.toml", "a plan to read"),
            (
                "rxpath tune apply p.toml --confirm-within 60s",
                "as root: undone automatically unless confirmed",
            ),
            ("rxpath tune undo", "restore the old values"),
        ],
    ),
    (
        "tune plan",
        &[
            ("rxpath tune plan --goal throughput", "what the findings would change"),
            (
                "rxpath tune plan --set net.core.rmem_max=7500000 -o p.toml",
                "one setting, into a file",
            ),
            (
                "rxpath tune plan rmem-max --persist sysctl.d out",
                "and a file that keeps it after a reboot",
            ),
        ],
    ),
    (
        "tune apply",
        &[(
            "rxpath tune apply p.toml --confirm-within 60s",
            "undone automatically unless confirmed",
        )],
    ),
    (
        "tune auto",
        &[
            (
                "rxpath tune auto --scenario udp-queue --objective delivered_pps --dry-run",
                "as root: what limits it, and what could be tried",
            ),
            (
                "rxpath tune auto --scenario udp-queue --guard 'one_way_delay_p99_us<=+10%' --budget 10min",
                "the settings that help, each with its share, and a plan",
            ),
            (
                "rxpath tune auto --live eth0 --dry-run",
                "as root: what could be tried on this host's own traffic",
            ),
        ],
    ),
    ("tune confirm", &[("rxpath tune confirm", "keep what was applied")]),
    (
        "tune undo",
        &[("rxpath tune undo", "the last change"), ("rxpath tune undo --all", "every change")],
    ),
    ("tune status", &[("rxpath tune status --all", "finished changes, too")]),
    ("tune verify", &[("rxpath tune verify", "status 1 when a value drifted")]),
    ("cleanup", &[("rxpath cleanup", "as root, after a run was killed")]),
    (
        "schema",
        &[
            ("rxpath schema", "their names"),
            ("rxpath schema check", "one of them"),
            ("rxpath schema --write schemas", "all, into files"),
        ],
    ),
    (
        "completions",
        &[
            ("rxpath completions bash", "for: source <(rxpath completions bash)"),
            ("rxpath completions zsh", "for a file _rxpath in $fpath"),
            ("rxpath completions fish", "for ~/.config/fish/completions/rxpath.fish"),
        ],
    ),
    (
        "man",
        &[
            ("rxpath man load udp", "one page; read it with: | man -l -"),
            ("rxpath man --out man1", "a page for each command"),
        ],
    ),
    ("compare", &[("rxpath compare rxpath-runs/A rxpath-runs/B", "status 1 when B is worse")]),
    (
        "report",
        &[
            ("rxpath report rxpath-runs/RUN", "a page in the run directory"),
            ("rxpath report rxpath-runs/RUN --format md", "for a ticket"),
        ],
    ),
];
