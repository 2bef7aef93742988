#!/bin/sh
# The chart: lint, strict schemas of Kubernetes, wrong values; then the image in containerd, under the settings of the container.
# Usage: tools/kubernetes-test.sh RXPATH [--write]
#   --write  writes deploy/kubernetes/rxpath.yaml again from the chart, and ends
# The second part needs root. No kubelet runs here: crictl asks containerd for what the kubelet would ask.
set -eu
cd "$(dirname "$0")/.."
rxpath=$(realpath "${1:?the built program}")
helm=target/kube-tools/bin/helm
validate=target/kube-tools/bin/kubernetes-validate
crictl=target/kube-tools/bin/crictl
chart=deploy/helm/rxpath
manifest=deploy/kubernetes/rxpath.yaml
for program in $helm $validate $crictl containerd runc ip setpriv taskset unshare; do
	command -v $program >/dev/null || { echo "kubernetes-test: $program is missing: tools/setup.sh kubernetes" >&2; exit 3; }
done
dir=$(mktemp -d)
# The processes of the node, and the group of the pod that is looked at.
node=
pod=
# The parent of the groups of the exporter's pods.
parent=rxpath-test-$$
own_groups() { find /sys/fs/cgroup -mindepth 1 -depth -type d \( -path "*/$parent" -o -path "*/$parent/*" -o -path "${pod:-/}" \) 2>/dev/null; }
clean() {
	if [ -n "$node" ]; then
		kill "$node" 2>/dev/null || true
		wait "$node" || true
	fi
	# The kernel may still have processes in them that have ended.
	tries=0
	while [ -n "$(own_groups)" ] && [ $tries -lt 50 ]; do
		own_groups | xargs rmdir 2>/dev/null || { tries=$((tries + 1)) && sleep 0.1; }
	done
	# Of a kubelet that runs here nothing is removed: its groups are not empty.
	[ -z "$pod" ] || rmdir "${pod%/*}" "${pod%/*/*}" 2>/dev/null || true
	rm -rf "$dir"
}
trap clean EXIT
trap 'exit 130' HUP INT # the shell would end without the other trap
trap 'exit 143' TERM
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
	[ "$(hosts "$dir/loopback.yaml")" = "3 $bare" ] || fails "$address: hosts of the probes: $(hosts "$dir/loopback.yaml")"
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
# What the kubelet would ask for. Windows are shorter here, and the budget allows them.
asks() {
	mkdir "$dir/$1"
	target/kube-tools/bin/python tools/kubernetes-cri.py "$dir/$1" "$parent" --interval=1s --budget=50%
}
asks pods <$manifest
template --set podNames=false | asks no-groups
image=$(sed -n 's/^ *image: "\(.*\)"$/\1/p' $manifest)
RXPATH_IMAGE=$dir/image.tar deploy/image/build.sh "$image" "$rxpath" >/dev/null
# Of each pod a process that waits.
echo 'int pause(void); int main(void) { for (;;) pause(); }' | "${CC:-cc}" -xc -static -o "$dir/pause" -
RXPATH_IMAGE=$dir/pause.tar deploy/image/build.sh registry.invalid/pause:1 "$dir/pause" >/dev/null 2>&1
# Nothing of a containerd that runs here is used. It may lack CAP_SYS_RESOURCE, without which scores cannot be lowered.
cat >"$dir/containerd.toml" <<TOML
version = 2
root = "$dir/containerd"
state = "$dir/state"
[grpc]
  address = "$dir/containerd.sock"
[plugins."io.containerd.internal.v1.opt"]
  path = "$dir/opt"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "registry.invalid/pause:1"
  restrict_oom_score_adj = true
TOML
printf 'runtime-endpoint: unix://%s\nimage-endpoint: unix://%s\ntimeout: 30\n' "$dir/containerd.sock" "$dir/containerd.sock" >"$dir/crictl.yaml"

uid=8e2f1c7a-5b60-4d3e-9a41-$(printf %012x $$)
for tree in /sys/fs/cgroup /sys/fs/cgroup/unified; do [ ! -e $tree/cgroup.procs ] || [ ! -e $tree/cgroup.controllers ] || unified=$tree; done
slice=kubepods-burstable-pod$(echo "$uid" | tr - _).slice
pod=${unified:?no version 2 of control groups}/kubepods.slice/kubepods-burstable.slice/$slice
mkdir -p "$pod"

# Runs as the node, by tools/apart.sh: whatever it starts ends with it.
cat >"$dir/node.sh" <<'NODE'
set -eu
dir=$1 rxpath=$2 pod=$3 uid=$4
crictl() { target/kube-tools/bin/crictl --config "$dir/crictl.yaml" "$@"; }
fails() {
	tail -n 20 "$dir/said" "$dir"/*.log "$dir"/*/rxpath.log >&2 || true
	echo "kubernetes-test: $*" >&2
	exit 1
}
# within_a_minute WORDS...: waits until they hold.
within_a_minute() {
	local deadline=$((SECONDS + 60))
	until "$@" >"$dir/said" 2>&1; do
		[ $SECONDS -lt $deadline ] || fails "not within 60 s: $*"
		# why: the pace of looking; the deadline above ends it.
		sleep 0.2
	done
}
containerd --config "$dir/containerd.toml" >"$dir/containerd.log" 2>&1 &
within_a_minute crictl version
crictl version >"$dir/version"
for archive in image pause; do ctr --address "$dir/containerd.sock" --namespace k8s.io images import "$dir/$archive.tar" >/dev/null; done
# Packets go from the first CPU to the last one, where the loop of the pod runs: their softirqs take time from it, however busy
# this machine is.
cpus=$(taskset -cp $$)
cpus=${cpus##* }
first=${cpus%%[,-]*} last=${cpus##*[,-]}
mask=$(printf %x $((1 << last % 32)))
for ((word = last / 32; word > 0; word--)); do mask=$mask,00000000; done
mkdir "$dir/sys"
mount -t sysfs sysfs "$dir/sys"
echo "$mask" >"$dir/sys/class/net/lo/queues/rx-0/rps_cpus"
umount "$dir/sys"
taskset -c "$first" "$rxpath" serve udp 127.0.0.1:9000 -d 600s >/dev/null 2>&1 &
# Port 9000; a sender without a server ends.
within_a_minute grep ':2328 ' /proc/net/udp
taskset -c "$first" "$rxpath" load udp 127.0.0.1:9000 --rate 5k -d 600s >/dev/null 2>&1 &
# Its name is its own.
printf '#!/bin/sh\necho $$ >"$1/cgroup.procs"\nwhile :; do :; done\n' >"$dir/podloop"
chmod +x "$dir/podloop"
taskset -c "$last" "$dir/podloop" "$pod" &
fetch() { timeout 10 bash -c 'exec 3<>/dev/tcp/127.0.0.1/10077; printf "GET %s HTTP/1.0\r\n\r\n" "$1" >&3; cat <&3' sh "$1"; }
is_healthy() { fetch /-/healthy | grep '^HTTP/1.[01] 200'; }
# has_windows COUNT: that many are over by the page, which is kept.
has_windows() {
	fetch /metrics >"$dir/$name.prom"
	awk -v least="$1" '/^rxpath_window_seconds_total / { print; found = $2 >= least } END { exit !found }' "$dir/$name.prom"
}
# container NAME: starts it, waits for five windows.
container() {
	name=$1
	sandbox=$(crictl runp "$dir/$name/sandbox.json")
	container=$(crictl create --no-pull "$sandbox" "$dir/$name/container.json" "$dir/$name/sandbox.json")
	crictl start "$container" >/dev/null
	within_a_minute has_windows 5
	# What the kubelet's probes ask.
	within_a_minute is_healthy
}
is_pod='^rxpath_cpu_stolen_seconds_total{.*victim="'$uid'"'
# stolen FILE: what was taken from the pod, and from its loop by name.
stolen() { awk -v pod="victim=\"$uid\"" '/^rxpath_cpu_stolen_/ && index($0, pod) { pods += $NF } /^rxpath_task_cpu_stolen_/ && /task="podloop"/ { loops += $NF } END { print pods + 0, loops + 0 }' "$1"; }
container pods
pid=$(crictl inspect --output go-template --template '{{.info.pid}}' "$container")
cat "/proc/$pid/status" >"$dir/status"
cat "/proc/$pid/mountinfo" >"$dir/mounts"
# Both have series of their own after two windows in which they were among the first. What was before is not theirs.
have_series() {
	fetch /metrics >"$dir/pods.prom"
	grep cpu_stolen "$dir/pods.prom"
	stolen "$dir/pods.prom" | awk '{ exit !($1 > 0 && $2 > 0) }'
}
within_a_minute have_series
before=$(stolen "$dir/pods.prom")
windows=$(awk '/^rxpath_window_seconds_total / { print int($2) }' "$dir/pods.prom")
within_a_minute has_windows $((windows + 11))
echo "$before $(stolen "$dir/pods.prom")" >"$dir/stolen"
# As long as the kubelet waits.
crictl stop --timeout 5 "$container" >/dev/null
crictl inspect --output go-template --template '{{.status.exitCode}}' "$container" >"$dir/exit"
crictl rmp --force "$sandbox" >/dev/null
# Without the groups of the node.
container no-groups
grep -q '^rxpath_cpu_stolen_seconds_total{.*victim="other".* [0-9.e-]*[1-9]' "$dir/no-groups.prom" || fails 'no-groups: no stolen time'
if grep -q "$is_pod" "$dir/no-groups.prom"; then echo named; else echo unnamed; fi >"$dir/named"
NODE
setpriv --pdeathsig TERM tools/apart.sh bash "$dir/node.sh" "$dir" "$rxpath" "$pod" "$uid" &
node=$!
wait $node || { node= && fails 'under the settings of the container'; }
node=
# has NAME VALUE: a line of the status of the exporter.
has() { grep -q "^$1:[[:space:]]*$2\$" "$dir/status" || fails "$1 is not $2: $(grep "^$1:" "$dir/status")"; }
# Its bounding set is CAP_PERFMON and CAP_BPF, and a filter of system calls is on.
has CapBnd 000000c000000000
has NoNewPrivs 1
has Seccomp 2
awk '$5 == "/" { root = $6 } $5 == "/sys/fs/cgroup" { groups = $6 } END { exit !(root ~ /^ro(,|$)/ && groups ~ /^ro(,|$)/) }' "$dir/mounts" || fails "the root or the groups can be written: $(cat "$dir/mounts")"
# 137: it did not end on SIGTERM.
[ "$(cat "$dir/exit")" != 137 ] || fails 'it did not end in 5 s'
for set in CapInh CapPrm CapEff CapAmb; do
	grep -q "^$set:.0000000000000000" "$dir/status" || { grep ^Cap "$dir/status" >&2; fails "$set is not empty while it serves"; }
done
grep -q '^rxpath_probe_up 1' "$dir/pods.prom" || fails 'no probes'
# What was taken from the loop, in the same windows, by name and by its pod.
share=$(awk '{ printf "%.1f", 100 * ($3 - $1) / ($4 - $2); exit !($4 > $2 && $3 - $1 > 0.9 * ($4 - $2)) }' "$dir/stolen") || fails "of the time stolen from the pod only ${share:-none} % is the pod's: $(cat "$dir/stolen")"
grep -q unnamed "$dir/named" || fails 'names of pods without /sys/fs/cgroup of the node: the chart asks for too much'
echo "kubernetes-test: containerd $(awk '/^RuntimeVersion/ { print $2 }' "$dir/version") with the seccomp profile RuntimeDefault: probes run, $share % of what is stolen from a pod is under its uid, and no capability is left while it serves"
echo 'kubernetes-test: without /sys/fs/cgroup of the node no pod is named'
