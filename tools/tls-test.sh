#!/bin/sh
# The page of metrics over TLS, by the snippets of docs/how-to/export-to-prometheus.md: a real nginx in front of the Unix socket, a
# real node_exporter that reads the file, and a real Prometheus with a client certificate. Without one there is no metric. Only
# addresses and paths of the snippets are replaced.
# Usage: tools/tls-test.sh RXPATH    (root: namespaces; users www-data and prometheus)
set -eu
cd "$(dirname "$0")/.."
rxpath=$(realpath "${1:?the built program}")
for program in curl ip nginx openssl prometheus prometheus-node-exporter promtool setpriv unshare; do
	command -v $program >/dev/null || { echo "tls-test: $program is missing: tools/setup.sh tls" >&2; exit 3; }
done
# The ports of the page may be in use on this machine. All that is started ends with the namespaces.
[ "${2:-}" = inside ] || exec tools/apart.sh tools/tls-test.sh "$rxpath" inside
work=/run/work
mkdir $work
fails() { echo "tls-test: $*" >&2; tail -n 5 "$work"/*.log >&2; exit 1; }
# until_true WORDS...: within 30 s.
until_true() {
	tries=0
	until "$@" >"$work/said" 2>&1; do
		tries=$((tries + 1))
		[ $tries -lt 300 ] || { cat "$work/said" >&2; fails "not within 30 s: $*"; }
		# why: between two tries of a condition that has a deadline.
		sleep 0.1
	done
}
# start NAME WORDS...: a program of its own.
start() {
	name=$1
	shift
	"$@" >"$work/$name.log" 2>&1 </dev/null &
}
# snippet START: the block of the section that begins with this text.
snippet() {
	awk -v start="$1" '
		/^## / { own = $0 == "## Over TLS" }
		/^```/ { inside = !inside; first = inside; wanted = 0; next }
		own && first { wanted = index($0, start) == 1; first = 0 }
		own && inside && wanted' docs/how-to/export-to-prometheus.md |
		sed "s|/etc/rxpath-tls|$tls|g; s|/var/lib/prometheus/node-exporter|$work/textfile|g
			s|192\.0\.2\.7|127.0.0.1|g; s|^sudo rxpath export ||; s|^sudo ||" >"$work/snippet"
	[ -s "$work/snippet" ] || fails "the page has no block that begins with: $1"
	cat "$work/snippet"
}

# A CA, and what it signs: for the server and a scraper. The certificate of the stranger is of no CA.
tls=$work/tls
socket=/run/rxpath.sock
mkdir "$tls" "$work/textfile" "$work/data"
chmod 711 "$work"
printf '[req]\ndistinguished_name = name\n[name]\n' >"$work/openssl.cnf"
# certificate NAME WORDS...: NAME.crt and NAME.key.
certificate() {
	name=$1
	shift
	openssl req -x509 -config "$work/openssl.cnf" -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 1 -subj "/CN=$name" \
		-keyout "$tls/$name.key" -out "$tls/$name.crt" "$@" 2>"$work/openssl.log" || fails "no certificate $name"
}
certificate ca -addext basicConstraints=critical,CA:TRUE
for name in server scraper; do
	usage=clientAuth
	[ $name = scraper ] || usage=serverAuth
	certificate $name -CA "$tls/ca.crt" -CAkey "$tls/ca.key" -addext basicConstraints=critical,CA:FALSE \
		-addext extendedKeyUsage=$usage -addext subjectAltName=IP:127.0.0.1
done
certificate stranger -addext extendedKeyUsage=clientAuth
chgrp prometheus "$tls/server.key"
chmod 640 "$tls/server.key"

proxy=https://127.0.0.1:10078
node=https://127.0.0.1:9100
get() { curl --silent --show-error --max-time 5 --cacert "$tls/ca.crt" "$@"; }
scrape() { get --fail --cert "$tls/scraper.crt" --key "$tls/scraper.key" "$@"; }
has_build_info() { scrape "$1/metrics" | grep '^rxpath_build_info{'; }

# The exporter has the options of both snippets. Probes and their calibration are not what is tested.
listen=$(snippet 'sudo rxpath export --listen')
textfile=$(snippet 'sudo rxpath export --textfile')
# shellcheck disable=SC2086  # words
start export "$rxpath" export $listen $textfile --no-bpf --interval 1s
exporter=$!
until_true test -S "$socket"
snippet 'sudo chgrp' >"$work/group.sh"
sh -eu "$work/group.sh"
{
	echo "daemon off; pid $work/nginx.pid; user www-data; worker_processes 1; events {} http { access_log off;"
	for kind in client_body proxy fastcgi uwsgi scgi; do echo "${kind}_temp_path $work/nginx-$kind;"; done
	snippet 'server {'
	echo '}'
} >"$work/nginx.conf"
start nginx nginx -e stderr -c "$work/nginx.conf"
snippet tls_server_config >"$tls/node-exporter.yml"
options=$(snippet --collector.textfile)
# Of the other collectors nothing is asked.
# shellcheck disable=SC2086  # words
start node setpriv --reuid prometheus --regid prometheus --clear-groups \
	prometheus-node-exporter $options --collector.disable-defaults --collector.textfile
until_true has_build_info $proxy
until_true has_build_info $node

scrape $proxy/metrics >"$work/page"
promtool check metrics <"$work/page" >"$work/said" 2>&1 || { cat "$work/said" >&2; fails 'promtool check metrics'; }
for path in /-/healthy /status; do
	[ "$(scrape --output /dev/null --write-out '%{http_code}' $proxy$path)" = 200 ] || fails "$path is not 200"
done

# refused STATUS WORDS...: the server answers that, 000 = nothing; no metric either way.
refused() {
	wanted=$1
	shift
	status=$(get --output "$work/answer" --write-out '%{http_code}' "$@" 2>"$work/curl.log") || true
	[ "$status" = "$wanted" ] || fails "status $status, not $wanted: $*"
	if grep -qs -e '^rxpath_' -e '^node_' "$work/answer"; then fails "metrics without a certificate: $*"; fi
	rm -f "$work/answer"
}
for path in /metrics /-/healthy /status; do
	refused 400 $proxy$path
	refused 400 --cert "$tls/stranger.crt" --key "$tls/stranger.key" $proxy$path
done
refused 400 http://127.0.0.1:10078/metrics
# Nothing is the answer for other reasons too; node_exporter says that it was the certificate.
refused 000 $node/metrics
until_true grep "TLS handshake error.*client didn't provide a certificate" "$work/node.log"
refused 000 --cert "$tls/stranger.crt" --key "$tls/stranger.key" $node/metrics
until_true grep 'TLS handshake error.*certificate signed by unknown authority' "$work/node.log"
refused 400 http://127.0.0.1:9100/metrics

# Prometheus with the job of the page; node_exporter is a second target of it.
{
	printf 'global: {scrape_interval: 1s, scrape_timeout: 1s}\n'
	snippet 'scrape_configs:' | sed 's|"127.0.0.1:10078"|&, "127.0.0.1:9100"|'
} >"$work/prometheus.yml"
promtool check config "$work/prometheus.yml" >"$work/said" 2>&1 || { cat "$work/said" >&2; fails 'promtool check config'; }
start prometheus prometheus --config.file="$work/prometheus.yml" --storage.tsdb.path="$work/data" --web.listen-address=127.0.0.1:9090
stored() { promtool query instant http://127.0.0.1:9090 'count(rxpath_build_info and on (instance) up == 1)' | grep '=> 2 @'; }
until_true stored

# The file no longer changes once its writer has ended.
kill "$exporter" || fails 'the exporter has ended by itself'
wait "$exporter" || true
[ ! -e "$socket" ] || fails 'the exporter left its socket'
scrape $node/metrics >"$work/node"
grep -qx 'node_textfile_scrape_error 0' "$work/node" || fails "$(grep '^node_textfile' "$work/node")"
# How many series each name has: node_exporter sorts and writes numbers its own way.
names() { grep '^rxpath_' "$1" | sed 's/[{ ].*//' | sort | uniq -c; }
names "$work/textfile/rxpath.prom" >"$work/written"
names "$work/node" >"$work/served"
cmp "$work/written" "$work/served" || fails 'node_exporter serves other series than those of the file'
# It would say so.
echo 'no metric {' >"$work/textfile/wrong.prom"
scrape $node/metrics | grep -qx 'node_textfile_scrape_error 1' || fails 'node_exporter takes any file'

count=$(grep -c '^rxpath_' "$work/node")
echo "tls-test: $count series through nginx and node_exporter, stored by Prometheus: with a client certificate only"
