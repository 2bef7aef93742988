#!/bin/sh
# The chart: lint, strict schemas of Kubernetes, wrong values; then the real program under the settings of the container.
# Usage: tools/kubernetes-test.sh RXPATH [--write]
#   --write  writes deploy/kubernetes/rxpath.yaml again from the chart, and ends
# The second part needs root. No kubelet runs here: namespaces, capabilities, user and read-only root are made by hand.
set -eu
cd "$(dirname "$0")/.."
rxpath=$(realpath "${1:?the built program}")
helm=target/kube-tools/bin/helm
validate=target/kube-tools/bin/kubernetes-validate
chart=deploy/helm/rxpath
manifest=deploy/kubernetes/rxpath.yaml
for program in $helm $validate setpriv unshare; do
	command -v $program >/dev/null || { echo "kubernetes-test: $program is missing: tools/setup.sh kubernetes" >&2; exit 3; }
done
dir=$(mktemp -d)
daemons=
pod=
clean() {
	for pid in $daemons; do kill -KILL "$pid" 2>/dev/null || true; done
	wait
	# A group can be removed once its processes have ended.
	if [ -n "$pod" ] && [ -d "$pod" ]; then
		tries=0
		until rmdir "$pod" 2>/dev/null || [ $tries -gt 50 ]; do tries=$((tries + 1)) && sleep 0.1; done
		# Of a kubelet that runs here nothing is removed: its groups are not empty.
		rmdir "${pod%/*}" "${pod%/*/*}" 2>/dev/null || true
	fi
	rm -rf "$dir"
}
trap clean EXIT
fails() { echo "kubernetes-test: $*" >&2; exit 1; }
template() { $helm template rxpath $chart --namespace rxpath --kube-version 1.30.0 "$@"; }

{
	printf '# Made from the chart by tools/kubernetes-test.sh --write.\napiVersion: v1\nkind: Namespace\nmetadata:\n  name: rxpath\n'
	printf '  labels:\n    pod-security.kubernetes.io/enforce: privileged\n'
	template
} >"$dir/manifest.yaml"
if [ "${2:-}" = --write ]; then
	cp "$dir/manifest.yaml" $manifest
	exit 0
fi
$helm lint --quiet --strict $chart >"$dir/out" 2>&1 || { cat "$dir/out" >&2; fails 'helm lint'; }
cmp -s "$dir/manifest.yaml" $manifest || fails "$manifest is not what the chart makes: --write"
for values in '' bpf=false podNames=false hostPID=true listen.address=127.0.0.1 'listen.address=[::1]'; do
	template ${values:+--set "$values"} >"$dir/one.yaml"
	for version in 1.30 1.37; do
		$validate --strict --quiet -k $version "$dir/one.yaml" $manifest >"$dir/out" 2>&1 || { cat "$dir/out" >&2; fails "$version: $values"; }
	done
done
if grep -q hostPID $manifest; then fails "the pod has the node's process ids by default"; fi
template --set hostPID=true | grep -q 'hostPID: true' || fails 'hostPID=true is not there'
if template --set podNames=false | grep -q hostPath; then fails 'a path of the node is mounted for nothing'; fi
template --set podMonitor.enabled=true | grep -q '^kind: PodMonitor' || fails 'no PodMonitor'
# The kubelet reaches a loopback address only if its probes name the host. Nobody else does: the page needs no permission.
hosts() { sed -n 's/^ *host: *//p' "$1" | sort | uniq -c | xargs; }
for address in 127.0.0.1 '[::1]'; do
	template --set "listen.address=$address" >"$dir/loopback.yaml"
	bare=$(echo "$address" | tr -d '[]')
	[ "$(hosts "$dir/loopback.yaml")" = "2 $bare" ] || fails "$address: hosts of the probes: $(hosts "$dir/loopback.yaml")"
	if grep -q -- --allow-remote "$dir/loopback.yaml"; then fails "$address: --allow-remote"; fi
done
for address in '$(NODE_IP)' '[$(NODE_IP)]'; do
	template --set "listen.address=$address" >"$dir/remote.yaml"
	[ -z "$(hosts "$dir/remote.yaml")" ] || fails "$address: a host in the probes"
	grep -q -- --allow-remote "$dir/remote.yaml" || fails "$address: no --allow-remote"
done
# A validator that accepts all would accept this.
sed 's/hostNetwork: true/hostNetwerk: true/' $manifest >"$dir/wrong.yaml"
if $validate --strict --quiet -k 1.30 "$dir/wrong.yaml" >/dev/null 2>&1; then fails 'a misspelt key is valid'; fi
for wrong in listen.port=0 nosuch=1 bpf=maybe budget=much; do
	if template --set "$wrong" >/dev/null 2>&1; then fails "the chart takes $wrong"; fi
done
echo 'kubernetes-test: the chart is valid for 1.30 and 1.37, and refuses wrong values'

[ "$(id -u)" = 0 ] || { echo 'kubernetes-test: root is needed for the rest' >&2; exit 3; }
# What the container has is read from the manifest: words of its args and its capabilities. Windows are shorter here, and the
# budget allows them.
args=$(sed -n '/^ *args:/,/^ *env:/s/^ *- //p' $manifest | sed 's/\$(NODE_IP)/127.0.0.1/; s/--interval=.*/--interval=1s/; s/--budget=.*/--budget=50%/; s/--allow-remote//' | tr '\n' ' ')
added=$(sed -n 's/^ *add: \[\(.*\)\]/\1/p' $manifest | tr -d ' ' | tr 'A-Z,' 'a-z\n' | sed 's/^/+/' | paste -sd, -)
[ "$added" = +bpf,+perfmon ] || fails "capabilities of the manifest: $added"
grep -q 'mountPath: /sys/fs/cgroup' $manifest || fails 'the manifest mounts no groups'

# The root of the image; its only compressed blob is its layer.
root=$dir/root
mkdir -p "$root" "$dir/image"
RXPATH_IMAGE=$dir/image.tar deploy/image/build.sh rxpath:test "$rxpath" >/dev/null
tar -C "$dir/image" -xf "$dir/image.tar"
for blob in "$dir"/image/blobs/sha256/*; do
	if gzip -t "$blob" 2>/dev/null; then tar -C "$root" -xzf "$blob"; fi
done
mkdir "$root/proc" "$root/sys" "$root/tmp"
# The part of the container's runtime: it gives up capabilities after it has changed the root.
mkdir "$root/runtime"
cp "$(command -v setpriv)" "$root/runtime/setpriv"
for library in $(ldd "$root/runtime/setpriv" | grep -o '/[^ :]*' | grep -v "$root/" || true); do [ -e "$root$library" ] || install -D "$library" "$root$library"; done

uid=8e2f1c7a-5b60-4d3e-9a41-$(printf %012x $$)
for tree in /sys/fs/cgroup /sys/fs/cgroup/unified; do [ ! -e $tree/cgroup.procs ] || [ ! -e $tree/cgroup.controllers ] || unified=$tree; done
slice=kubepods-burstable-pod$(echo "$uid" | tr - _).slice
pod=${unified:?no version 2 of control groups}/kubepods.slice/kubepods-burstable.slice/$slice
mkdir -p "$pod"

cat >"$dir/container.sh" <<'CONTAINER'
set -eu
root=$1 capabilities=$2 groups=$3
shift 3
mount --bind "$root" "$root"
mount -t proc proc "$root/proc"
mount -t sysfs -o ro sysfs "$root/sys"
# The mount of the manifest. Where version 2 is below it (on a node with both), that is part of it.
if [ "$groups" = groups ]; then
	mount --rbind /sys/fs/cgroup "$root/sys/fs/cgroup"
	mount -o remount,ro,bind "$root/sys/fs/cgroup"
fi
mount -o remount,ro,bind "$root"
if touch "$root/tmp/file" 2>/dev/null; then echo 'the root can be written' >&2; exit 1; fi
exec chroot "$root" /runtime/setpriv --reuid 0 --regid 0 --clear-groups --bounding-set "-all,$capabilities" --inh-caps -all --no-new-privs "$@"
CONTAINER
# Runs as the node: a network namespace of its own, with traffic.
cat >"$dir/node.sh" <<'NODE'
set -eu
dir=$1 rxpath=$2 pod=$3 uid=$4 capabilities=$5 args=$6
ip link set lo up
daemons=
trap 'for pid in $daemons; do kill -KILL $pid 2>/dev/null || true; done' EXIT
"$rxpath" serve udp 127.0.0.1:9000 -d 60s >/dev/null 2>&1 & daemons="$daemons $!"
"$rxpath" load udp 127.0.0.1:9000 --rate 5k -d 60s >/dev/null 2>&1 & daemons="$daemons $!"
# The pod: a loop, from which interrupts take time on any machine. Its name is its own.
printf '#!/bin/sh\necho $$ >"$1/cgroup.procs"\nwhile :; do :; done\n' >"$dir/podloop"
chmod +x "$dir/podloop"
"$dir/podloop" "$pod" & daemons="$daemons $!"
fetch() { bash -c 'exec 3<>/dev/tcp/127.0.0.1/10077; printf "GET %s HTTP/1.0\r\n\r\n" "$1" >&3; cat <&3' sh "$1" 2>/dev/null; }
# container NAME GROUPS: starts it with or without the groups of the node, waits for five windows, leaves the page.
container() {
	name=$1
	# shellcheck disable=SC2086  # words
	unshare --mount --uts --ipc --cgroup --pid --fork --kill-child sh "$dir/container.sh" "$dir/root" "$capabilities" "$2" /usr/bin/rxpath $args >"$dir/$name.log" 2>&1 &
	pid=$!
	daemons="$daemons $pid"
	tries=0
	until fetch /metrics >"$dir/$name.prom" && grep -q '^rxpath_window_seconds_total [5-9]' "$dir/$name.prom"; do
		tries=$((tries + 1))
		[ $tries -lt 100 ] || { cat "$dir/$name.log" "$dir/$name.prom" >&2; echo "kubernetes-test: $name: no windows" >&2; exit 1; }
		sleep 0.2
	done
	fetch /-/healthy | grep -q '^HTTP/1.[01] 200' || { echo "kubernetes-test: $name: not healthy" >&2; exit 1; }
}
is_pod='^rxpath_cpu_stolen_seconds_total{.*victim="'$uid'"'
# stolen FILE: what was taken from the pod, and from its loop by name.
stolen() { awk -v pod="victim=\"$uid\"" '/^rxpath_cpu_stolen_/ && index($0, pod) { pods += $NF } /^rxpath_task_cpu_stolen_/ && /task="podloop"/ { loops += $NF } END { print pods + 0, loops + 0 }' "$1"; }
# until_page WORDS...: fetches the page until this holds of it.
until_page() {
	tries=0
	until "$@"; do
		tries=$((tries + 1))
		[ $tries -lt 150 ] || { grep cpu_stolen "$dir/pods.prom" >&2; echo "kubernetes-test: never: $*" >&2; exit 1; }
		sleep 0.2
		fetch /metrics >"$dir/pods.prom"
	done
}
container pods groups
child=$(cat "/proc/$pid/task/$pid/children")
cat "/proc/${child% }/status" >"$dir/status"
# Both have series of their own after two windows in which they were among the first. What was before is not theirs.
have_series() { stolen "$dir/pods.prom" | awk '{ exit !($1 > 0 && $2 > 0) }'; }
until_page have_series
before=$(stolen "$dir/pods.prom")
windows=$(awk '/^rxpath_window_seconds_total / { print $2 }' "$dir/pods.prom")
are_later() { awk -v from="$windows" '/^rxpath_window_seconds_total / { exit !($2 > from + 10) }' "$dir/pods.prom"; }
until_page are_later
echo "$before $(stolen "$dir/pods.prom")" >"$dir/stolen"
kill -TERM "${child% }"
wait "$pid" || true
# Without the groups of the node.
container no-groups none
grep -q '^rxpath_cpu_stolen_seconds_total{.*victim="other".* [0-9.e-]*[1-9]' "$dir/no-groups.prom" || { echo 'kubernetes-test: no-groups: no stolen time' >&2; exit 1; }
if grep -q "$is_pod" "$dir/no-groups.prom"; then echo named; else echo unnamed; fi >"$dir/no-groups"
NODE
unshare --net --mount bash "$dir/node.sh" "$dir" "$rxpath" "$pod" "$uid" "$added" "$args" || fails 'under the settings of the container'
for set in CapInh CapPrm CapEff CapAmb; do
	grep -q "^$set:.0000000000000000" "$dir/status" || { grep ^Cap "$dir/status" >&2; fails "$set is not empty while it serves"; }
done
grep -q '^rxpath_probe_up 1' "$dir/pods.prom" || fails 'no probes'
# What was taken from the loop, in the same windows, by name and by its pod.
share=$(awk '{ printf "%.1f", 100 * ($3 - $1) / ($4 - $2); exit !($4 > $2 && $3 - $1 > 0.9 * ($4 - $2)) }' "$dir/stolen") || fails "of the time stolen from the pod only ${share:-none} % is the pod's: $(cat "$dir/stolen")"
grep -q unnamed "$dir/no-groups" || fails 'names of pods without /sys/fs/cgroup of the node: the chart asks for too much'
echo "kubernetes-test: user 0 with $added, own process ids, read-only root: probes run, $share % of what is stolen from a pod is under its uid, and no capability is left while it serves"
echo 'kubernetes-test: without /sys/fs/cgroup of the node no pod is named'
