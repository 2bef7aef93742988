#!/bin/sh
# 10,000 reports by DuckDB: what loading and all queries cost, and whether their counts are those of `rxpath check --summarize`.
# The reports are made of real ones: of this host and of the captured hosts in testdata/hosts, under other names.
# Goals: less than 15 s of CPU time and 1 GB of memory for load.sql and all queries together; the same hosts for each finding.
# Before that, 100 run directories by runs.sql and its queries.
# Usage: tools/fleet-test.sh RXPATH [REPORTS]
set -eu
cd "$(dirname "$0")/.."
rxpath=$(realpath "${1:?the built program}")
count=${2:-10000}
duckdb=$PWD/target/fleet-tools/bin/duckdb
[ -x "$duckdb" ] || { echo 'fleet-test: DuckDB is missing: tools/setup.sh fleet' >&2; exit 3; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' HUP INT TERM # the shell would end without the other trap
"$rxpath" check --format ndjson --window 0s >"$work/shapes" || [ $? = 1 ]
# Of a damaged capture a part is missing, which its status says.
for host in testdata/hosts/*/; do
	"$rxpath" check --format ndjson --sysroot "$host" >>"$work/shapes" 2>/dev/null || true
done
mkdir "$work/reports" "$work/single"
python3 - "$work" "$count" "$duckdb" "$PWD/fleet" "$rxpath" <<'PYTHON'
import json
import pathlib
import resource
import subprocess
import sys

work, count, duckdb, fleet, rxpath = pathlib.Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3], pathlib.Path(sys.argv[4]), sys.argv[5]
shapes = [json.loads(line) for line in (work / "shapes").read_text().splitlines()]
assert len(shapes) > 4, len(shapes)
with open(work / "reports/1.ndjson", "w") as out:
    for number in range(count):
        report = dict(shapes[number % len(shapes)], host=f"host{number}", time="2026-11-22T06:00:00Z")
        line = json.dumps(report)
        out.write(line + "\n")
        (work / f"single/host{number}.json").write_text(line)


def ask(path):
    with open(path) as sql:
        done = subprocess.run([duckdb, "-json", "-bail"], cwd=work, stdin=sql, capture_output=True, text=True)
    if done.returncode or done.stderr:
        sys.exit(f"{path}: {done.stderr}")
    return json.loads(done.stdout) if done.stdout.strip() else []


# Run directories of ten hosts, copies under other names. In the newest run of each host one variant delivers twice as much.
recorded = fleet.parent / "testdata/runs/recorded-demo"
for number in range(100):
    folder = work / f"runs/host{number % 10}/run{number}"
    folder.mkdir(parents=True)
    (folder / "environment.json").write_bytes((recorded / "environment.json").read_bytes())
    manifest = json.loads((recorded / "manifest.json").read_text())
    if number >= 90:
        manifest["variants"][0]["metrics"]["delivered_pps"]["median"] *= 2
    (folder / "manifest.json").write_text(json.dumps(manifest))
ask(fleet / "runs.sql")
runs = {path.stem: ask(path) for path in sorted((fleet / "runs").glob("*.sql"))}
# Of each host and variant one row; no fact differs.
ratios = sorted(row["ratio"] for row in runs["changed"])
if len(runs["rates"]) != 20 or len(runs["grades"]) != 100 or ratios != [1] * 10 + [2] * 10:
    sys.exit(f"runs: {({name: len(rows) for name, rows in runs.items()})}")
of_runs = resource.getrusage(resource.RUSAGE_CHILDREN)
of_runs = of_runs.ru_utime + of_runs.ru_stime
print(f"fleet-test: 100 runs, {len(runs)} queries: {of_runs:.1f} s of CPU time")

ask(fleet / "load.sql")
answers = {path.stem: ask(path) for path in sorted((fleet / "queries").glob("*.sql"))}
used = resource.getrusage(resource.RUSAGE_CHILDREN)
cpu, memory = used.ru_utime + used.ru_stime - of_runs, used.ru_maxrss * 1024
done = subprocess.run([rxpath, "check", "--summarize", work / "single", "--all", "--json"], capture_output=True, text=True)
if done.returncode not in (0, 1):
    sys.exit(f"--summarize: {done.stderr}")
summary = json.loads(done.stdout)["result"]
by_sql = {row["id"]: row["hosts"] for row in answers["findings"]}
by_rxpath = {row["id"]: row["hosts_count"] for row in summary["findings"]}
if summary["hosts_count"] != count or not by_sql or by_sql != by_rxpath:
    other = {id for id in by_sql.keys() | by_rxpath.keys() if by_sql.get(id) != by_rxpath.get(id)}
    sys.exit(f"counts differ ({summary['hosts_count']} hosts of {count}): " + ", ".join(
        f"{id} {by_sql.get(id)} by SQL, {by_rxpath.get(id)} by --summarize" for id in sorted(other)))
print(f"fleet-test: {count} reports of {len(shapes)} shapes, {len(answers)} queries, {len(by_sql)} findings as --summarize has them: "
      f"{cpu:.1f} s of CPU time, {memory / 1e6:.0f} MB at most")
sys.exit(0 if cpu < 15 and memory < 1e9 else 1)
PYTHON
