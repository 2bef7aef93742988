#!/bin/sh
# What `rxpath tune auto` says of planted mis-settings and of none, as Markdown: PROGRAM DIRECTORY MINUTES.
set -u
program=$1 out=$2 minutes=$3
mkdir -p "$out"

# A reader that stalls for half of the time, at a rate that any host offers.
cat >"$out/stalls.toml" <<'END'
question = "Which settings help a reader that stalls?"
[lab]
awake = true
[serve]
cpu = "@receiver"
sleep = "5ms"
every = "10ms"
[load]
cpu = "@sender"
rate = "20k"
END
# A TCP stream as fast as it goes.
cat >"$out/stream.toml" <<'END'
question = "Which settings help a TCP stream?"
[lab]
awake = true
[serve]
protocol = "tcp-stream"
cpu = "@receiver"
[load]
cpu = "@sender"
END
# A flood at a reader that reads one datagram a call.
cat >"$out/flood.toml" <<'END'
question = "Which settings help a reader under a flood?"
[lab]
awake = true
[serve]
cpu = "@receiver"
rcvbuf = "4MiB"
[load]
cpu = "@sender"
batch = 64
END

planted() { # TITLE SCENARIO WORD...
    title=$1 scenario=$2
    shift 2
    printf '\n## %s\n\n```\n' "$title"
    "$program" tune auto --scenario "$out/$scenario.toml" --budget "${minutes}min" --set trials.measure=500ms \
        --out "$out/runs" "$@" 2>>"$out/progress.txt"
    printf '```\n\nexit status %s\n' $?
}

planted "A receive buffer of 16 KiB" stalls --set serve.rcvbuf=16KiB
planted "The same reader with a buffer of 8 MiB: nothing planted" stalls --set serve.rcvbuf=8MiB
planted "Segmentation offload of the sender off" stream \
    --set 'tune.sender={ "{dev}/features/tx-tcp-segmentation" = "off", "{dev}/features/tx-tcp6-segmentation" = "off", "{dev}/features/tx-tcp-ecn-segmentation" = "off", "{dev}/features/tx-tcp-mangleid-segmentation" = "off" }'
planted "RPS onto the CPU of the reader" flood --set serve.batch=1 --set lab.rps_cpus=@receiver
