#!/bin/sh
# The Ansible collection on four hosts that this machine makes: namespaces (network, mount, PID, UTS), each with a real
# sshd. A play, the same again, check mode, undo, a change that cuts the host off, a host that is down, wrong values,
# a setting that another program writes; the roles report and export, the latter over a systemctl that only keeps what it is asked.
# Usage: tools/ansible-test.sh RXPATH    (root)
set -eu
cd "$(dirname "$0")/.."
rxpath=$(realpath "${1:?the built program}")
bin=$PWD/target/ansible-tools/bin
sshd=$(command -v sshd || echo /usr/sbin/sshd)
for program in "$sshd" ssh ssh-keygen ip unshare "$bin/ansible-playbook"; do
	command -v "$program" >/dev/null || { echo "ansible-test: $program is missing: tools/setup.sh ansible" >&2; exit 3; }
done
[ "$(id -u)" = 0 ] || { echo 'ansible-test: root is needed for namespaces' >&2; exit 3; }

dir=$(mktemp -d)
id=$$
hosts='1 2 3 4'
daemons=
clean() {
	# unshare ignores SIGTERM; killed, it takes the first process of the host with it, and the kernel the others.
	for pid in $daemons; do kill -KILL "$pid" 2>/dev/null || true; done
	for host in ctl $hosts; do ip netns del "rxa-$id-$host" 2>/dev/null || true; done
	rm -rf "$dir"
}
trap clean EXIT
trap 'exit 130' HUP INT
trap 'exit 143' TERM

# Host N is 10.77.N.2, the controller 10.77.N.1. Its default route leaves by a second wire: answers go another way than
# questions come, so that a strict rp_filter cuts it off.
for host in ctl $hosts; do ip netns add "rxa-$id-$host"; done
in_host() { host=$1; shift; ip netns exec "rxa-$id-$host" "$@"; }
strict() { in_host "$1" sh -c 'for one in /proc/sys/net/ipv4/conf/*/rp_filter; do echo 0 >$one; done'; }
for n in $hosts; do
	ip link add "mgmt$n" netns "rxa-$id-ctl" type veth peer name mgmt netns "rxa-$id-$n"
	ip link add "back$n" netns "rxa-$id-ctl" type veth peer name back netns "rxa-$id-$n"
	ip -n "rxa-$id-ctl" addr add "10.77.$n.1/32" dev "mgmt$n"
	ip -n "rxa-$id-ctl" addr add "10.76.$n.1/24" dev "back$n"
	ip -n "rxa-$id-$n" addr add "10.77.$n.2/32" dev mgmt
	ip -n "rxa-$id-$n" addr add "10.76.$n.2/24" dev back
	for one in lo mgmt back; do ip -n "rxa-$id-$n" link set $one up; done
	for one in "mgmt$n" "back$n"; do ip -n "rxa-$id-ctl" link set "$one" up; done
	ip -n "rxa-$id-ctl" route add "10.77.$n.2/32" dev "mgmt$n" src "10.77.$n.1"
	ip -n "rxa-$id-$n" route add default via "10.76.$n.1" src "10.77.$n.2"
	strict "$n"
done
strict ctl

ssh-keygen -q -t ed25519 -N "" -f "$dir/id"
ssh-keygen -q -t ed25519 -N "" -f "$dir/host"
for n in $hosts; do echo "10.77.$n.2 $(cat "$dir/host.pub")"; done >"$dir/known"
cat >"$dir/sshd_config" <<END
HostKey $dir/host
AuthorizedKeysFile $dir/id.pub
StrictModes no
UsePAM no
PidFile none
PasswordAuthentication no
PermitRootLogin yes
LogLevel ERROR
Subsystem sftp internal-sftp
END
# What is a host's own: its name, its processes, its /run and the journals of its changes.
mkdir -p /var/lib/rxpath
# shellcheck disable=SC2016  # the inner shell expands it
own='hostname "$0"; mount -t tmpfs tmpfs /run; mkdir /run/sshd; mount -t tmpfs tmpfs /var/lib/rxpath
for one in /etc/default /etc/systemd/system; do [ ! -d $one ] || mount -t tmpfs tmpfs $one; done
if [ -n "$SYSTEMCTL" ]; then mount --bind "$FAKE" "$SYSTEMCTL"; fi
exec "$@"'
# The hosts have no systemd. This one keeps in /run/units what was asked of it, and refuses a sixth start as the unit does.
SYSTEMCTL=$(command -v systemctl || true)
[ -z "$SYSTEMCTL" ] || SYSTEMCTL=$(realpath "$SYSTEMCTL")
FAKE=$dir/systemctl
export SYSTEMCTL FAKE
cat >"$FAKE" <<'END'
#!/bin/sh
verb='' unit=''
for word; do
	case $word in
	-*) ;;
	*) if [ -z "$verb" ]; then verb=$word; else unit=$word; fi ;;
	esac
done
mkdir -p /run/units
echo "$verb $unit" >>/run/units/log
has() { [ -e "/run/units/$unit.$1" ]; }
case $verb in
show)
	if has active; then state=active; else state=inactive; fi
	printf 'Id=%s\nLoadState=loaded\nActiveState=%s\n' "$unit" "$state"
	;;
is-enabled) if has enabled; then echo enabled; else echo disabled; exit 1; fi ;;
enable) touch "/run/units/$unit.enabled" ;;
disable) rm -f "/run/units/$unit.enabled" ;;
start | restart)
	echo >>"/run/units/$unit.starts"
	[ "$(wc -l <"/run/units/$unit.starts")" -le 5 ] || { echo "$unit: Start request repeated too quickly." >&2; exit 1; }
	touch "/run/units/$unit.active"
	;;
# The unit is a pattern.
reset-failed) rm -f /run/units/$unit.starts ;;
stop) rm -f "/run/units/$unit.active" ;;
esac
END
chmod +x "$FAKE"
for n in $hosts; do
	ip netns exec "rxa-$id-$n" unshare --mount --uts --pid --fork --kill-child --mount-proc \
		sh -c "$own" "host$n" "$sshd" -D -e -f "$dir/sshd_config" </dev/null >"$dir/sshd$n" 2>&1 &
	daemons="$daemons $!"
done
cat >"$dir/ansible.cfg" <<END
[defaults]
collections_path = $dir/collections
host_key_checking = true
interpreter_python = /usr/bin/python3
retry_files_enabled = false
timeout = 3
forks = 4
stdout_callback = ansible.builtin.default
[ssh_connection]
ssh_args = -F none -i $dir/id -o IdentitiesOnly=yes -o UserKnownHostsFile=$dir/known -o GlobalKnownHostsFile=/dev/null -o ControlMaster=auto -o ControlPersist=30s -o ControlPath=$dir/%C -o ServerAliveInterval=3 -o ServerAliveCountMax=10
END
{
	echo '[all]'
	for n in $hosts; do echo "host$n ansible_host=10.77.$n.2 ansible_user=root"; done
} >"$dir/inventory"
mkdir -p "$dir/collections/ansible_collections/rxpath" "$dir/tmp"
ln -s "$PWD/ansible" "$dir/collections/ansible_collections/rxpath/rxpath"
cp ansible/tests/integration/*.yml "$dir/"

for n in $hosts; do
	tries=0
	until ip netns exec "rxa-$id-ctl" ssh-keyscan -T 1 "10.77.$n.2" >/dev/null 2>&1; do
		tries=$((tries + 1))
		[ "$tries" -lt 50 ] || { echo "ansible-test: no sshd at 10.77.$n.2" >&2; exit 3; }
		sleep 0.1
	done
done

# play NAME STATUS[,STATUS] WORDS...: runs it, keeps its output in $dir/out.
play() {
	name=$1 wanted=$2
	shift 2
	status=0
	ANSIBLE_CONFIG=$dir/ansible.cfg ANSIBLE_HOME=$dir/home ANSIBLE_LOCAL_TEMP=$dir/tmp ANSIBLE_NOCOLOR=1 \
		in_host ctl "$bin/ansible-playbook" -i "$dir/inventory" -e "rxpath=$rxpath" "$@" "$dir/$name.yml" >"$dir/out" 2>&1 || status=$?
	case ,$wanted, in
	*,$status,*) ;;
	*) fails "$name $*: status $status, not $wanted" ;;
	esac
}
fails() { cat "$dir/out" >&2; echo "ansible-test: $*" >&2; exit 1; }
recap() { for n in $hosts; do grep -q "^host$n .*$1" "$dir/out" || fails "host$n: no $1"; done; }
says() { grep -q -- "$1" "$dir/out" || fails "does not say: $1"; }
value() { in_host "$1" cat "/proc/sys/net/$2"; }
all_are() { for n in $hosts; do [ "$(value "$n" core/somaxconn)" = "$1" ] || fails "host$n: $(value "$n" core/somaxconn)"; done; }
before=$(value 1 core/somaxconn)

play apply 0 --check --diff
recap changed=1
says "-net.core.somaxconn: $before"
says '+net.core.somaxconn: 5000'
all_are "$before"
echo 'ansible-test: check mode shows a diff and changes nothing'

play apply 0
recap changed=1
all_are 5000
play apply 0
recap changed=0
play apply 0 --check
recap changed=0
echo 'ansible-test: a play changes four hosts, and nothing the second time'

play undo 0 --check
recap changed=1
all_are 5000
play undo 0
recap changed=1
all_are "$before"
play undo 0
recap changed=0
echo 'ansible-test: undo restores, once'

started=$(date +%s)
# Failed or unreachable: whichever comes first, the undo or the end of ssh's patience.
play cut 2,4 --limit host3
says 'not reached after the change\|not confirmed'
[ "$(($(date +%s) - started))" -ge 3 ] || fails 'host3 was never cut off'
# The watchdog of the host needs nobody.
tries=0
until [ "$(value 3 ipv4/conf/mgmt/rp_filter)" = 0 ]; do
	tries=$((tries + 1))
	[ "$tries" -lt 200 ] || fails 'host3 has not undone the change'
	sleep 0.1
done
echo "ansible-test: a host that the change cut off is back after $(($(date +%s) - started)) s"
play undo 0
recap changed=0

ip -n "rxa-$id-ctl" link set mgmt4 down
play apply 4
says 'host4 .*unreachable=1'
for n in 1 2 3; do [ "$(value "$n" core/somaxconn)" = 5000 ] || fails "host$n waits for host4"; done
ip -n "rxa-$id-ctl" link set mgmt4 up
ip -n "rxa-$id-ctl" route replace 10.77.4.2/32 dev mgmt4 src 10.77.4.1
play apply 0
all_are 5000
echo 'ansible-test: a host that is down does not hold the others up, and is changed later'

for wrong in 'net.core.somaxconn=many' 'net.core.no_such=1' 'no9/rings/rx=100'; do
	play wrong 2 --limit host1 -e "setting=${wrong%=*}" -e "value=${wrong#*=}"
	[ "$(grep -c '"msg": ' "$dir/out")" = 1 ] || fails "$wrong: not one message"
	says "\"msg\": \"${wrong%=*}[=:]"
done
all_are 5000
echo 'ansible-test: a wrong value is one line, and nothing is changed'

play refused 2 --limit host1
says 'tcp_congestion_control: asked for nosuch.*No such file'
says '"changed": false'
all_are 5000
echo 'ansible-test: what the kernel refuses fails, and the steps before it are undone'
play refused 2 --limit host1 -e on_failure=keep
says 'tcp_congestion_control: asked for nosuch.*No such file'
says '"changed": true'
[ "$(value 1 core/somaxconn)" = 5001 ] || fails 'the step before it is not kept'
# They wait for no confirmation: the host would undo them without it.
play confirmed 2 --limit host1
says 'nothing waits for a confirmation'
play apply 0 --limit host1
all_are 5000
echo 'ansible-test: steps that are kept after a failure are confirmed'

# rxpath on a kernel that takes the second value and does not use it. All is undone for that unless it is to be kept.
cat >"$dir/ignoring" <<'END'
#!/bin/sh
echo "$1 $2" >>"$(dirname "$0")/asked"
case "$*" in
'tune plan '*) echo '{"result": {"step": [{"set": "net.core.somaxconn", "old": "1", "new": "2"}, {"set": "net.core.rmem_max", "old": "1", "new": "2"}]}}' ;;
'check '*) echo '{"result": {"findings": []}}' ;;
'tune apply '*)
	undone='[]' waits=30
	case "$*" in *'--on-failure undo'*) undone='[{"set": "net.core.somaxconn", "state": "restored"}, {"set": "net.core.rmem_max", "state": "already"}]' waits=null ;; esac
	echo '{"result": {"journal": 1, "stopped": null, "changes": [
		{"set": "net.core.somaxconn", "before": "1", "asked": "2", "after": "2", "outcome": "applied"},
		{"set": "net.core.rmem_max", "before": "1", "asked": "2", "after": "1", "outcome": "ignored"}],'
	echo "\"undone\": $undone, \"confirm_within_s\": $waits}}"
	exit 5
	;;
'tune confirm '*) echo '{"result": {"journal": 1, "already": false}}' ;;
esac
END
chmod +x "$dir/ignoring"
play ignored 2 --limit host1 -e "rxpath=$dir/ignoring" -e '{"allow_ignored": false}'
says 'net.core.rmem_max: asked for 2, is 1 (ignored)'
says '"changed": false'
if grep -q 'tune confirm' "$dir/asked"; then fails 'what was undone is confirmed'; fi
play ignored 0 --limit host1 -e "rxpath=$dir/ignoring" -e '{"allow_ignored": true}'
says 'net.core.rmem_max: asked for 2, is 1 (ignored)'
says 'host1 .*changed=1'
grep -q 'tune confirm' "$dir/asked" || fails 'the other setting is not confirmed'
echo 'ansible-test: a value that is ignored fails, or the other settings stay where that is allowed'

play check 0
recap ok=2
echo 'ansible-test: reports of four hosts'

# Without hosts. Who writes settings again: what tuned says has to be there on a host with a profile only.
python3 -B - ansible/plugins/module_utils <<'PYTHON'
import sys

sys.path.insert(0, sys.argv[1])
from rxpath import at_least, owners


def said(*found):
    return [{"id": id, "observed": text} for id, text in found]


profile = said(("tuned-active", "tuned runs: throughput-performance"))
others = said(("other-managers", "NetworkManager (MTU, ethtool settings of its connections), irqbalance (affinities of interrupts)"))
assert owners(profile, ["eth0/rings/rx"]) == ["tuned may write eth0/rings/rx again"]
assert owners(said(("tuned-active", "tuned runs: no profile is named")), ["net.core.rmem_max"]) == []
assert owners(others, ["eth0/rings/rx", "net.core.rmem_max"]) == []
assert owners(others, ["irq/41", "net.core.rmem_max"]) == ["irqbalance may write irq/41 again"]
assert owners(said(("two-owners", "tuned runs: x")), ["irq/41"]) == []
assert owners(profile + others, ["irq/1"]) == ["tuned may write irq/1 again", "irqbalance may write irq/1 again"]
# What a failed check names: the findings that made it fail.
graded = [{"id": "b", "severity": "warn"}, {"id": "a", "severity": "fail"}, {"id": "c", "severity": "info"}]
assert (at_least(graded, "warn"), at_least(graded, "fail")) == (["a", "b"], ["a"])
PYTHON
# A program of that name is all that the check knows of it.
cp "$(command -v sleep)" "$dir/bpftune"
cat >"$dir/manage.yml" <<END
- hosts: all
  gather_facts: false
  tasks:
    - ansible.builtin.shell: "nohup $dir/bpftune 300 >/dev/null 2>&1 </dev/null &"
END
play manage 0 --limit host1
play owned 2 --limit host1
says 'bpftune may write net.core.somaxconn again'
all_are 5000
play owned 0 --limit host1 -e '{"allow_managed": true}'
says 'bpftune may write net.core.somaxconn again'
[ "$(value 1 core/somaxconn)" = 5002 ] || fails 'host1 is not changed although that was allowed'
echo 'ansible-test: a setting that another program writes is changed only when that is allowed'

play report 0 -e "report_file=/run/report.ndjson" -e "report_folder=$dir/reports"
play report 0 -e "report_file=/run/report.ndjson" -e "report_folder=$dir/reports"
recap changed=0
python3 - "$dir/reports" <<'PYTHON' || fails 'the reports are not those of four hosts in one file'
import json
import pathlib
import sys

[file] = pathlib.Path(sys.argv[1]).glob("*.ndjson")
hosts = sorted(json.loads(line)["host"] for line in file.read_text().splitlines())
assert hosts == ["host1", "host2", "host3", "host4"], hosts
PYTHON
# A host without a report fails, and the others are collected.
play report 2 -e "report_folder=$dir/others" -e '{"report_file": "/run/{{ (inventory_hostname == \"host2\") | ternary(\"none/x\", \"report\") }}.ndjson"}'
[ "$(cat "$dir"/others/*.ndjson | wc -l)" = 3 ] || fails 'not three reports without host2'
echo 'ansible-test: the role report collects one line of each host in one file, and a host without a report fails alone'

if [ -z "$SYSTEMCTL" ]; then
	echo 'ansible-test: skipped: role export: no systemctl here, in whose place the hosts have one'
	exit 0
fi
# in_units N WORDS...: on host N, in its own mounts.
in_units() { n=$1; shift; ANSIBLE_CONFIG=$dir/ansible.cfg ANSIBLE_HOME=$dir/home in_host ctl "$bin/ansible" -i "$dir/inventory" "host$n" -m ansible.builtin.command -a "$*" >"$dir/out" 2>&1 || fails "host$n: $*"; }
play export 0 -e 'export_options="--budget 2%"'
play export 0 -e 'export_options="--budget 2%"'
recap changed=0
in_units 1 cat /etc/default/rxpath-export
says 'OPTIONS="--budget 2%"'
in_units 1 ls /run/units
for one in rxpath-export.service.enabled rxpath-export.service.active rxpath-check.timer.enabled rxpath-check.timer.active; do says $one; done
play export 0 -e '{"export_options": "--listen 10.77.1.2:10077 --allow-remote", "export_allow_from": ["192.0.2.0/24", "10.77.0.0/16"]}'
in_units 1 cat /etc/systemd/system/rxpath-export.service.d/allow.conf
says 'IPAddressAllow=192.0.2.0/24 10.77.0.0/16'
in_units 1 tail -n 1 /run/units/log
says 'restart rxpath-export.service'
# One that systemd gave up: neither the start nor the restart after a change is refused.
in_units 1 systemctl reset-failed 'rxpath-export.*'
for _ in 1 2 3 4 5; do in_units 1 systemctl start rxpath-export.service; done
in_units 1 rm /run/units/rxpath-export.service.active
play export 0 -e 'export_options="--budget 3%"'
in_units 1 tail -n 1 /run/units/log
says 'restart rxpath-export.service'
in_units 1 ls /run/units/rxpath-export.service.active
play export 0 -e '{"export_enabled": false, "export_check_timer": false}'
in_units 1 ls /run/units
if grep -q 'active\|enabled' "$dir/out"; then fails 'units are left enabled or active'; fi
in_units 1 ls /etc/systemd/system/rxpath-export.service.d
if grep -q allow.conf "$dir/out"; then fails 'the drop-in is left'; fi
echo 'ansible-test: the role export sets options, enables and starts units, restarts after a change, also of a unit that systemd gave up, and removes what is not wanted'
