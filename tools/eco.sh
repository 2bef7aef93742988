#!/bin/sh
# What rxpath is for those who run it at scale: the Ansible collection, the chart, the image, the SBOM, the page of metrics, also
# over TLS, rules and alerts, the reports of a fleet, the workflows. One line each; the output of a check that fails is in target/eco.
# Usage: tools/eco.sh RXPATH    (root)
set -eu
cd "$(dirname "$0")/.."
rxpath=$(realpath "${1:?the built program}")
logs=target/eco
mkdir -p $logs
bad=0
# check NAME WORDS...: one line.
check() {
	name=$1
	shift
	began=$(date +%s)
	if "$@" >"$logs/$name" 2>&1 </dev/null; then
		echo "ok      $name, $(($(date +%s) - began)) s: $(tail -n 1 "$logs/$name")"
	else
		echo "FAILED  $name: $(tail -n 1 "$logs/$name") ($logs/$name)"
		bad=1
	fi
}
# The same bytes twice.
image() {
	first=$(RXPATH_IMAGE=$logs/one.tar deploy/image/build.sh registry.invalid/rxpath:test "$rxpath") || return 1
	second=$(RXPATH_IMAGE=$logs/two.tar deploy/image/build.sh registry.invalid/rxpath:test "$rxpath") || return 1
	echo "$second"
	[ "$first" = "$second" ] || return 1
	cmp $logs/one.tar $logs/two.tar
}
sbom() {
	tools/sbom.sh $logs/one.json && tools/sbom.sh $logs/two.json && cmp $logs/one.json $logs/two.json || return 1
	# Each library that is linked in, and a crate.
	for library in libbpf libelf zlib serde_json; do grep -q "\"name\": \"$library\"" $logs/one.json || { echo "no $library"; return 1; }; done
	# And the source of libelf.
	version=$(grep -A 1 '^name = "libbpf-sys"$' Cargo.lock | sed -n 's/^version = "\(.*\)"$/\1/p')
	grep -q "/libbpf-sys-$version.crate\"" $logs/one.json || { echo 'no source of libelf'; return 1; }
	echo "$(grep -c '"bom-ref"' $logs/one.json) components, twice the same"
}
check ansible tools/ansible-test.sh "$rxpath"
check ansible-sanity tools/ansible-sanity.sh
check kubernetes tools/kubernetes-test.sh "$rxpath"
check image image
check sbom sbom
check exposition tools/exposition-test.sh "$rxpath"
check monitoring tools/monitoring-test.sh "$rxpath"
check tls tools/tls-test.sh "$rxpath"
check fleet tools/fleet-test.sh "$rxpath"
# What GitHub Actions would let strangers do with these workflows.
check workflows target/workflow-tools/bin/zizmor --offline .github/workflows/release.yml packaging/ci/github.yml
exit $bad
