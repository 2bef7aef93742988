#!/bin/sh
# Installs, starts, upgrades, removes and purges the .deb in fresh Debian systems: rxpath, then rxpath-agent, from it to rxpath and
# back.
# Needs root; the archives of the systems are kept in target/roots. Each is booted too, with the units: by
# tools/rig.sh under QEMU. First the sizes of the .deb and of the program in it (5 MB and 12 MB for rxpath, 3 MB and 9 MB for
# rxpath-agent), the list of crates in the program, and the errors of lintian. In the first system also the packages of symbols, and
# the .rpm. Needs what tools/setup.sh package-test installs.
# Usage: tools/package-test.sh [SUITE...]    (bookworm trixie sid)
set -eu
cd "$(dirname "$0")/.."
for program in mmdebstrap lintian rpm rpmlint; do
	command -v $program >/dev/null || { echo "package-test: $program is missing: tools/setup.sh package-test" >&2; exit 3; }
done
[ $# -gt 0 ] || set -- bookworm trixie sid
deb=$(find target/packages -name 'rxpath_*_amd64.deb')
agent=$(find target/packages -name 'rxpath-agent_*_amd64.deb')
{ [ -n "$deb" ] && [ -n "$agent" ]; } || { echo 'package-test: not both packages in target/packages; run tools/release.sh first' >&2; exit 2; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' HUP INT TERM # the shell would end without the other trap
status=0
# sizes DEB MB MB: the package and the program, without symbols, and the most that they may have.
sizes() {
	dpkg-deb -x "$1" "$work/files"
	echo "$(stat -c %s "$1") $2 $(stat -c %s "$work/files/usr/bin/rxpath") $3" | awk -v name="$(dpkg-deb -f "$1" Package)" '{
		printf "%s: package %.1f MB (at most %d), program %.1f MB (at most %d)\n", name, $1 / 1e6, $2, $3 / 1e6, $4
		exit $1 > $2 * 1e6 || $3 > $4 * 1e6
	}' || { echo 'package-test: too large' >&2; status=1; }
	# LGPL: the source of libelf is next to the packages, and the package says so.
	grep -q "$source" "$work/files/usr/share/doc/$(dpkg-deb -f "$1" Package)/copyright" || { echo "package-test: $1 does not name $source" >&2; status=1; }
	python3 tools/crates.py "$work/files/usr/bin/rxpath" "target/packages/$(dpkg-deb -f "$1" Package).cdx.json" || status=1
	rm -r "$work/files"
}
source=$(find target/packages -name 'libbpf-sys-*.crate' -printf '%f\n')
[ -n "$source" ] || { echo 'package-test: no source of libelf in target/packages' >&2; exit 1; }
for tool in rustc clang zig; do grep -q "$tool" target/packages/BUILD-TOOLS.txt || { echo "package-test: BUILD-TOOLS.txt does not name $tool" >&2; status=1; }; done
sizes "$deb" 5 12
sizes "$agent" 3 9
# The address of a maintainer that nobody has; libraries that are part of the program by design (the SBOM names them).
if lintian --allow-root --fail-on error --suppress-tags bogus-mail-host,embedded-library target/packages/*.deb; then
	echo 'lintian: no error'
else
	echo 'package-test: lintian has errors' >&2
	status=1
fi
# The same package with a higher version.
dpkg-deb -R "$deb" "$work/next"
sed -i 's/^Version: .*/&+next/' "$work/next/DEBIAN/control"
dpkg-deb -Zxz --root-owner-group -b "$work/next" "$work/next.deb" >/dev/null

# Runs inside the system.
cat >"$work/inside.sh" <<'INSIDE'
set -eu
files() { find /etc /usr /var/lib -path /var/lib/dpkg -prune -o -path /var/lib/apt -prune -o -print | sort; }
fails() { echo "package-test: $*" >&2; exit 1; }
# quietly WHY COMMAND...: what it says is shown only if it fails.
quietly() {
	why=$1
	shift
	"$@" >/tmp/said 2>&1 || { cat /tmp/said >&2; fails "$why"; }
}
export DEBIAN_FRONTEND=noninteractive
enabled=/etc/systemd/system/timers.target.wants/rxpath-check.timer
files >/tmp/before

quietly "not installed" apt-get install -y -qq /tmp/rxpath.deb
rxpath --version
rxpath check --json --window 0s >/tmp/report || fails "check: status $?"
rxpath export --once --no-bpf --interval 200ms --check-every 0s | grep -q '^rxpath_build_info' || fails "no metrics"
if ldd /usr/bin/rxpath | grep 'not found'; then fails "a library is missing"; fi
test -s /usr/share/man/man1/rxpath-export.1.gz || test -f /etc/dpkg/dpkg.cfg.d/excludes || fails "no man page"
for unit in rxpath-export.service rxpath-export.socket rxpath-check.service rxpath-check.timer; do
	systemd-analyze verify --man=no "/usr/lib/systemd/system/$unit" 2>&1 | grep -i rxpath && fails "systemd complains of $unit"
done
[ ! -e $enabled ] || fails "the timer is enabled by the installation"
systemctl enable --quiet rxpath-check.timer

echo '# changed by the site' >>/etc/rxpath/check.toml
quietly "not upgraded" dpkg -i /tmp/next.deb
grep -q 'changed by the site' /etc/rxpath/check.toml || fails "the upgrade took the site's configuration"
[ -e $enabled ] || fails "the upgrade disabled the timer"

mkdir -p /var/lib/rxpath/tune /var/lib/rxpath-check
touch /var/lib/rxpath/tune/journal /var/lib/rxpath-check/report.ndjson
quietly "not removed" dpkg -r rxpath
[ ! -e /usr/bin/rxpath ] && [ ! -e $enabled ] && [ -e /etc/rxpath/check.toml ] || fails "removed too much or too little"
[ -e /var/lib/rxpath-check/report.ndjson ] || fails "reports were removed without a purge"
quietly "not purged" dpkg -P rxpath
[ -e /var/lib/rxpath/tune/journal ] || fails "the purge took the journals of tune"
rm -r /var/lib/rxpath

# The agent, from it to the full program, and back.
quietly "the agent: not installed" apt-get install -y -qq /tmp/agent.deb
rxpath --version
rxpath --version | grep -q '(agent)' || fails "the agent does not say that it is one"
rxpath check --json --window 0s >/tmp/report || fails "the agent: check: status $?"
rxpath export --once --no-bpf --interval 200ms --check-every 0s | grep -q '^rxpath_build_info' || fails "the agent: no metrics"
rxpath watch --once --no-bpf --interval 200ms >/dev/null || fails "the agent: watch: status $?"
rxpath load udp 127.0.0.1:9 >/tmp/said 2>&1 && fails "the agent sends traffic"
grep -q '^rxpath: `load` is not part of rxpath-agent: install the package rxpath$' /tmp/said || fails "the agent says: $(cat /tmp/said)"
systemctl enable --quiet rxpath-check.timer
echo '# changed by the site' >>/etc/rxpath/check.toml
mkdir -p /var/lib/rxpath-check
touch /var/lib/rxpath-check/report.ndjson
quietly "not put in the place of the agent" dpkg -i /tmp/rxpath.deb
rxpath list >/dev/null || fails "the full program is not there"
# What is left of the agent is its name: all else is the full package's.
quietly "the agent is not purged" dpkg -P rxpath-agent
grep -q 'changed by the site' /etc/rxpath/check.toml || fails "the swap took the site's configuration"
[ -x /usr/bin/rxpath ] && [ -e $enabled ] && [ -e /var/lib/rxpath-check/report.ndjson ] || fails "the purge of the agent took what is not its own"
quietly "the agent is not put in the place of the full program" dpkg -i /tmp/agent.deb
rxpath --version | grep -q '(agent)' || fails "the agent is not there again"
quietly "not purged after the swap" dpkg -P rxpath
grep -q 'changed by the site' /etc/rxpath/check.toml || fails "the swap back took the site's configuration"
[ -x /usr/bin/rxpath ] && [ -e $enabled ] && [ -e /var/lib/rxpath-check/report.ndjson ] || fails "the purge took what is the agent's"
quietly "the agent is not purged after the swap back" dpkg -P rxpath-agent
files >/tmp/after
# Packages that the installation brought with it are none here: libc6 is there.
diff /tmp/before /tmp/after || fails "the purge left something"
INSIDE

# Runs in the booted system, in which systemd has started the exporter.
cat >"$work/booted.sh" <<'BOOTED'
set -eu
fails() {
	echo "package-test: booted: $*" >&2
	journalctl --no-pager -n 40 -u 'rxpath*' >&2
	exit 1
}
# quietly WHY COMMAND...: what it says is shown only if it fails.
quietly() {
	why=$1
	shift
	"$@" >/tmp/said 2>&1 || { cat /tmp/said >&2; fails "$why"; }
}
ask() { timeout 60 bash -c 'exec 3<>/dev/tcp/127.0.0.1/10077; printf "GET $0 HTTP/1.0\r\n\r\n" >&3; cat <&3' "$1"; }
pid() { systemctl show -p MainPID --value rxpath-export; }
value() { sed -n "s/^$1 //p" /tmp/page; }
# The page of a window that the probes counted in; $1: seconds that they had counted before.
window() {
	for _ in $(seq 30); do
		ask /metrics >/tmp/page || fails "the exporter does not answer"
		seen=$(value 'rxpath_observed_seconds_total{probe="tasks, softirqs, polls and latency"}')
		[ "$(value rxpath_probe_up)" != 1 ] || [ "${seen:-0}" = "$1" ] || return 0
		# why: the next window is not over yet
		sleep 1
	done
	ask /status >&2
	fails "no window with probes"
}
# No capability, no root, and the probes count.
works() {
	for unit in rxpath-export.service rxpath-export.socket; do systemctl is-active --quiet $unit || fails "$unit does not run $1"; done
	grep -E '^Cap(Inh|Prm|Eff|Amb):' /proc/"$(pid)"/task/*/status | grep -v '0000000000000000$' && fails "capabilities $1"
	grep -Eq '^Uid:.*[[:space:]]0([[:space:]]|$)' /proc/"$(pid)"/status && fails "root $1"
	grep -Eq '^NoNewPrivs:[[:space:]]1$' /proc/"$(pid)"/status || fails "privileges can come back $1"
	window 0
}
# installs PACKAGE: what runs is the new program, and still is.
installs() {
	before=$(pid)
	quietly "$1 is not installed" dpkg -i "/root/keep/$1.deb"
	for _ in $(seq 300); do
		! systemctl is-active --quiet rxpath-export || break
		# why: one that was given up starts in the background
		sleep 1
	done
	[ "$(pid)" != "$before" ] || fails "the old program runs after $1"
	works "after $1"
}
# It ends at once, as after a wrong change of its options, until systemd starts it no more.
gives_up() {
	mv /etc/default/rxpath-export /root/keep/options
	echo 'OPTIONS="--no-such-option"' >/etc/default/rxpath-export
	for _ in $(seq 6); do ! systemctl restart rxpath-export 2>/dev/null || fails "it starts with a wrong option"; done
	# The service keeps the result of its last run; its socket has the reason.
	case "$(systemctl show -p Result --value rxpath-export rxpath-export.socket)" in
	*start-limit-hit*) ;;
	*) fails "it is started again and again" ;;
	esac
	mv /root/keep/options /etc/default/rxpath-export
}

# Units of others may fail: modules are not there to load.
systemctl is-system-running --wait >/dev/null || true
rxpath --version | grep -q '(agent)' || fails "not the agent"
for unit in rxpath-export.socket rxpath-check.timer; do systemctl is-active --quiet $unit || fails "$unit does not run"; done
works 'after the boot'
window "$seen"
systemctl start rxpath-check.service || fails "the check does not run"
grep -q fingerprint /var/lib/rxpath-check/report.ndjson || fails "the check left no report"
# In the slice of a user, where logins are: the watchdog is a unit of its own.
backlog=$(cat /proc/sys/net/core/netdev_max_backlog)
quietly "no plan in a login" rxpath tune plan --set net.core.netdev_max_backlog=3456 -o /root/keep/login.toml
quietly "nothing applied in a login" systemd-run --quiet --scope --slice=user-1000.slice rxpath tune apply /root/keep/login.toml --confirm-within 10s
systemctl is-active --quiet 'rxpath-watchdog-*.scope' || fails "the watchdog is no unit"
for _ in $(seq 60); do
	[ "$(cat /proc/sys/net/core/netdev_max_backlog)" != "$backlog" ] || break
	# why: its time is not up yet
	sleep 1
done
[ "$(cat /proc/sys/net/core/netdev_max_backlog)" = "$backlog" ] || fails "the watchdog undid nothing"
# Its journal is over, and the exporter may not read that.
rm -rf /var/lib/rxpath /run/rxpath
# A change that somebody else sets back: the exporter cannot read the journal and shows what the check saw.
quietly "no plan" rxpath tune plan --set net.core.netdev_max_backlog=2345 -o /root/keep/plan.toml
quietly "the plan is not applied" rxpath tune apply /root/keep/plan.toml
echo 1234 >/proc/sys/net/core/netdev_max_backlog
for wanted in unread drifted; do
	[ $wanted = unread ] || systemctl start rxpath-check.service || fails "the check does not run again"
	systemctl restart rxpath-export
	works "to show a change that is $wanted"
	[ "$(value "rxpath_tune_settings{state=\"$wanted\"}")" = 1 ] || { grep tune_settings /tmp/page >&2; fails "no change is $wanted"; }
done
# A purge keeps journals.
rm -rf /var/lib/rxpath /run/rxpath
installs rxpath
installs next
gives_up
installs agent
# Only its name is left; what it had is the agent's now.
quietly "the name of the other package is not purged" dpkg -P rxpath
works 'after the purge of the other package'
quietly "not purged" dpkg -P rxpath-agent
left=$(systemctl list-units --all --plain --no-legend 'rxpath*')
[ -z "$left" ] || fails "the purge left units: $left"
left=$(find / /run -ignore_readdir_race -xdev -name '*rxpath*' ! -path '/root/keep/*') || fails "not all files were searched"
[ -z "$left" ] || fails "the purge left: $left"
echo "Linux $(uname -r), $(systemctl --version | head -n 1)"
BOOTED
# boots ROOT SUITE: under QEMU, so that it has systemd as process 1 and a kernel with control groups of version 2 wherever this runs.
boots() {
	# Each failure is named: `set -e` does not hold in what `boots … || …` calls.
	DEBIAN_FRONTEND=noninteractive chroot "$1" apt-get install -y -qq /tmp/agent.deb >"$work/said" 2>&1 || { cat "$work/said" >&2; return 1; }
	chroot "$1" systemctl enable rxpath-export.socket rxpath-export.service rxpath-check.timer >"$work/said" 2>&1 || { cat "$work/said" >&2; return 1; }
	# A machine without KVM is slow: with the default budget its probes pause for most of the time.
	echo 'OPTIONS="--interval 2s --budget 90%"' >"$1/etc/default/rxpath-export"
	# /tmp is emptied at the boot.
	mkdir -p "$1/root/keep"
	mv "$1"/tmp/*.deb "$1/tmp/booted.sh" "$1/root/keep/"
	rm -rf "$1"/var/lib/apt/lists/* "$1"/var/cache/apt/*
	tar -C "$1" -cf "$work/system.tar" .
	# Debian 12 with its own kernel.
	case $2 in bookworm) kernel=6.1 ;; *) kernel=6.12 ;; esac
	began=$(date +%s) code=0
	RIG_TIMEOUT_S=${RIG_TIMEOUT_S:-1800} tools/rig.sh run --kernel $kernel --memory 2048 --root "$work/system.tar" -- sh /root/keep/booted.sh >"$work/said" || code=$?
	case $code in
	0) echo "$2: booted ($(tail -n 1 "$work/said"), $(($(date +%s) - began)) s); the units run, live through the swaps and an upgrade, and end with a purge" ;;
	125) tools/not-run.sh qemu-system-x86_64 'tools/rig.sh setup' || status=1 ;;
	*) cat "$work/said" >&2; return 1 ;;
	esac
}

# symbols ROOT PACKAGE: addr2line finds the line of a function by the build id of the program, and only with the symbols.
symbols() {
	dbgsym=$(find target/packages -name "$2-dbgsym_*_amd64.deb")
	[ -n "$dbgsym" ] || { echo "package-test: no symbols of $2" >&2; return 1; }
	cp "$(find target/packages -name "${2}_*_amd64.deb")" "$1/tmp/program.deb"
	cp "$dbgsym" "$1/tmp/symbols.deb"
	chroot "$1" dpkg -i /tmp/program.deb /tmp/symbols.deb >/dev/null 2>&1 || { echo "package-test: $2: symbols are not installed" >&2; return 1; }
	address=0x$(nm "$(find "$1/usr/lib/debug/.build-id" -name '*.debug')" | awk '/ [tT] .*rxpath/ { print $1; exit }')
	# It looks for .build-id/ in /usr/lib/debug, and in the folder where it runs.
	with=$(cd "$1/usr/lib/debug" && addr2line -e "$1/usr/bin/rxpath" "$address")
	without=$(cd / && addr2line -e "$1/usr/bin/rxpath" "$address")
	chroot "$1" dpkg -P "$2-dbgsym" "$2" >"$work/said" 2>&1 || { cat "$work/said" >&2; return 1; }
	case "$with $without" in
	*.rs:[1-9]*' ??:'*) echo "$2: symbols are found by the build id: $with" ;;
	*) echo "package-test: $2: with symbols $address is $with, without $without" >&2; return 1 ;;
	esac
}

mkdir -p target/roots
for suite; do
	tar=target/roots/$suite.tar
	# A mirror may be some weeks behind: the lists of sid are valid for one.
	[ -s "$tar" ] || mmdebstrap --quiet --variant=apt --aptopt='Acquire::Check-Valid-Until "false"' --include=systemd "$suite" "$tar"
	root=$work/$suite
	mkdir "$root"
	tar -C "$root" -xf "$tar"
	cp "$deb" "$root/tmp/rxpath.deb"
	cp "$agent" "$root/tmp/agent.deb"
	cp "$work/next.deb" "$work/inside.sh" "$work/booted.sh" "$root/tmp/"
	unshare --mount --pid --fork sh -eu -c 'mount -t proc proc "$1/proc"; mount --rbind /sys "$1/sys"; chroot "$1" sh /tmp/inside.sh' sh "$root"
	echo "$suite: both installed, started, upgraded, swapped, removed, purged"
	if [ "$suite" = "$1" ]; then
		for package in rxpath rxpath-agent; do symbols "$root" $package || status=1; done
	fi
	boots "$root" "$suite" || status=1
	rm -rf "$root"
done
tools/package-test-rpm.sh "target/roots/$1.tar" || status=1
exit $status
