#!/bin/sh
# Rules and alerts by VictoriaMetrics' vmalert-tool and by the promtool of Prometheus 3; then the page in Prometheus 3, with the job
# of docs/how-to/export-to-prometheus.md that stores native histograms, and with the rules.
# Usage: tools/monitoring-test.sh RXPATH    (root: a network namespace, BPF probes)
set -eu
cd "$(dirname "$0")/.."
rxpath=$(realpath "${1:?the built program}")
tools=$PWD/target/monitoring-tools/bin
for program in "$tools/vmalert-tool" "$tools/promtool" "$tools/prometheus" ip setpriv unshare; do
	command -v "$program" >/dev/null || { echo "monitoring-test: $program is missing: tools/setup.sh monitoring" >&2; exit 3; }
done
# The ports of the page and of Prometheus may be in use on this machine. All that is started ends with the namespaces.
[ "${2:-}" = inside ] || exec tools/apart.sh tools/monitoring-test.sh "$rxpath" inside
work=/run/work
mkdir $work
fails() { echo "monitoring-test: $*" >&2; exit 1; }
# quietly WORDS...: what it says is shown if it fails.
quietly() { "$@" >"$work/said" 2>&1 || { cat "$work/said" >&2; fails "$*"; }; }

cp monitoring/*.yml "$work"
# One key has another name there, and Prometheus adds no label with the name of the group.
sed 's/^\( *\)promql_expr_test:/\1metricsql_expr_test:/' monitoring/rules_test.yml >"$work/vmalert_test.yml"
quietly "$tools/vmalert-tool" unittest --disableAlertgroupLabel --files="$work/vmalert_test.yml"
# A tool that takes everything would take this.
sed 's/exp_annotations: {summary: "busy: /&not /' "$work/vmalert_test.yml" >"$work/wrong_test.yml"
if "$tools/vmalert-tool" unittest --disableAlertgroupLabel --files="$work/wrong_test.yml" >/dev/null 2>&1; then fails 'vmalert-tool takes a wrong summary'; fi
quietly "$tools/promtool" check rules monitoring/rules.yml monitoring/alerts.yml
quietly "$tools/promtool" test rules monitoring/rules_test.yml

{
	printf 'global: {scrape_interval: 1s, evaluation_interval: 1s}\nrule_files: [rules.yml, alerts.yml]\n'
	awk '/```/ { inside = !inside; block = ""; next } inside { block = block substr($0, 4) "\n" } block ~ /convert_classic_histograms_to_nhcb/ { found = block } END { printf "%s", found }' docs/how-to/export-to-prometheus.md
} >"$work/prometheus.yml"
grep -q convert_classic_histograms_to_nhcb "$work/prometheus.yml" || fails 'the page has no job with native histograms'
quietly "$tools/promtool" check config "$work/prometheus.yml"
# Packets for the histograms.
"$rxpath" serve udp 127.0.0.1:9000 -d 600s >/dev/null 2>&1 &
"$rxpath" export --listen 127.0.0.1:10077 --interval 1s --budget 50% >"$work/export.log" 2>&1 &
"$tools/prometheus" --config.file="$work/prometheus.yml" --storage.tsdb.path="$work/data" --web.listen-address=127.0.0.1:9090 >"$work/prometheus.log" 2>&1 &
# until_answer QUERY: its answer is not empty, within 60 s.
until_answer() {
	deadline=$(($(date +%s) + 60))
	until timeout 10 "$tools/promtool" query instant http://127.0.0.1:9090 "$1" >"$work/said" 2>&1 && [ -s "$work/said" ]; do
		[ "$(date +%s)" -lt $deadline ] || { cat "$work/said" "$work/export.log" >&2; tail -n 5 "$work/prometheus.log" >&2; fails "no answer within 60 s: $1"; }
		# why: the pace of looking; the deadline above ends it.
		sleep 0.2
	done
}
until_answer 'up == 1'
# A sender without a server ends. The server has begun by now.
"$rxpath" load udp 127.0.0.1:9000 --rate 5k -d 600s >/dev/null 2>&1 &
# The native series, and the classic ones, which are kept.
until_answer 'histogram_count(sum(rate(rxpath_stage_latency_seconds[30s]))) > 0'
until_answer 'histogram_quantile(0.99, sum by (le) (rate(rxpath_stage_latency_seconds_bucket[30s]))) > 0'
until_answer 'instance:rxpath_agent_cpu:rate5m > 0'
version() { go version -m "$tools/$1" | awk '$1 == "mod" { print $3 }'; }
echo "monitoring-test: rules, alerts and their cases: no error by vmalert-tool $(version vmalert-tool) and promtool $(version promtool); Prometheus $(version prometheus) stores native histograms of the page"
