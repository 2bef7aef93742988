# Hosts on this machine, for the tools and benchmarks that read this file. A host is a network namespace with a real sshd, which
# runs in further namespaces of its own; it has the files of this machine, except those of tools/host.sh. `ssh NAME.lab` reaches
# it from the namespace `ctl`. Everything is removed at the end, whatever the reason.
# shellcheck shell=sh
# shellcheck disable=SC2034  # variables for those who read this
sshd=$(command -v sshd || echo /usr/sbin/sshd)
host_sh=$(realpath "$(dirname "$0")/../tools/host.sh")
hosts_relay_py=$(dirname "$host_sh")/hosts-relay.py
hosts_name=$(basename "$0" .sh)
hosts_id=rxh$$
hosts_all=
hosts_daemons=
hosts_dir=
# Words that put the accounts of a host in place before it runs sshd; none without hosts_user.
hosts_accounts=

# Root and the programs that hosts need, and these.
hosts_need() {
	for program in "$sshd" ssh ssh-keygen ssh-keyscan ip unshare "$@"; do
		command -v "$program" >/dev/null || {
			echo "$hosts_name: $program is missing (Debian: openssh-server, openssh-client, iproute2, util-linux)" >&2
			exit 3
		}
	done
	[ "$(id -u)" = 0 ] || {
		echo "$hosts_name: root is needed for network namespaces" >&2
		exit 3
	}
}

hosts_end() {
	# A killed `unshare --kill-child` ends the PID namespace of its host.
	for pid in $hosts_daemons; do kill -9 "$pid" 2>/dev/null || true; done
	for host in $hosts_all; do ip netns del "$hosts_id-$host" 2>/dev/null || true; done
	[ -z "$hosts_dir" ] || rm -rf "$hosts_dir"
}

# Keys, the configurations of ssh and sshd, and the namespace of the coordinator. Not in /tmp, which hosts have of their own.
hosts_begin() {
	trap hosts_end EXIT
	trap 'exit 130' HUP INT # the shell would end without the other trap
	trap 'exit 143' TERM
	hosts_dir=$(mktemp -d -p /var/tmp rxpath-hosts.XXXXXX)
	hosts_inventory=$hosts_dir/lab.toml
	ssh-keygen -q -t ed25519 -N "" -f "$hosts_dir/id"
	ssh-keygen -q -t ed25519 -N "" -f "$hosts_dir/host"
	cat >"$hosts_dir/sshd_config" <<-END
		HostKey $hosts_dir/host
		AuthorizedKeysFile $hosts_dir/id.pub
		StrictModes no
		UsePAM no
		PidFile none
		PasswordAuthentication no
		PermitRootLogin yes
		LogLevel ERROR
	END
	cat >"$hosts_dir/ssh_config" <<-END
		Host *
		User root
		IdentityFile $hosts_dir/id
		IdentitiesOnly yes
		IdentityAgent none
		UserKnownHostsFile $hosts_dir/known
		GlobalKnownHostsFile /dev/null
		StrictHostKeyChecking yes
	END
	mkdir "$hosts_dir/bin"
	printf '#!/bin/sh\nexec %s -F %s "$@"\n' "$(command -v ssh)" "$hosts_dir/ssh_config" >"$hosts_dir/bin/ssh"
	chmod 755 "$hosts_dir/bin/ssh"
	PATH=$hosts_dir/bin:$PATH
	host ctl
}

# host NAME [ADDRESS]: a namespace, which ssh knows as NAME.lab by this address.
host() {
	ip netns add "$hosts_id-$1"
	hosts_all="$hosts_all $1"
	[ $# -gt 1 ] || return 0
	printf 'Host %s.lab\nHostName %s\n' "$1" "$2" >>"$hosts_dir/ssh_config"
	echo "$2 $(cat "$hosts_dir/host.pub")" >>"$hosts_dir/known"
}

# wire HOST DEVICE ADDRESS HOST DEVICE ADDRESS: a veth pair. An address of `-` is none.
wire() {
	ip link add "$2" netns "$hosts_id-$1" type veth peer name "$5" netns "$hosts_id-$4"
	wire_end "$1" "$2" "$3"
	wire_end "$4" "$5" "$6"
}
wire_end() {
	[ "$3" = - ] || ip -n "$hosts_id-$1" addr add "$3/24" dev "$2"
	ip -n "$hosts_id-$1" link set "$2" up
}

# relay HOST DEVICE ADDRESS HOST DEVICE ADDRESS [WORDS]: the same by tools/hosts-relay.py with these words. Sets daemon to its pid;
# daemon_stop removes the wire.
relay() {
	relay_from="$1 $2 $3"
	relay_to="$4 $5 $6"
	near=$hosts_id-$1 near_device=$2 far=$hosts_id-$4 far_device=$5
	shift 6
	python3 "$hosts_relay_py" "$near" "$near_device" "$far" "$far_device" "$@" &
	daemon=$!
	hosts_daemons="$hosts_daemons $daemon"
	until ip -n "$far" link show "$far_device" >/dev/null 2>&1; do
		kill -0 "$daemon" 2>/dev/null || {
			echo "$hosts_name: no relay between $near and $far" >&2
			exit 3
		}
		sleep 0.05 # until it has made its second device
	done
	# Only the relay may lose a frame, however long it waits for a CPU.
	ip -n "$near" link set "$near_device" txqueuelen 20000
	ip -n "$far" link set "$far_device" txqueuelen 20000
	# shellcheck disable=SC2086  # three words each
	wire_end $relay_from
	# shellcheck disable=SC2086
	wire_end $relay_to
}

# host_start NAME [UNSHARE'S WORDS]: sshd, in a mount namespace and what the words say. Sets daemon to the pid of `unshare`.
host_start() {
	host=$1
	shift
	ip netns exec "$hosts_id-$host" unshare --mount "$@" sh "$host_sh" "$sshd" -D -e -f "$hosts_dir/sshd_config" &
	daemon=$!
	hosts_daemons="$hosts_daemons $daemon"
}

# A CLOCK_MONOTONIC that is ahead by so many ns: util-linux takes whole seconds.
host_clock='
import ctypes, os, sys
ahead = int(sys.argv[1])
libc = ctypes.CDLL(None, use_errno=True)
if libc.unshare(0x80):  # CLONE_NEWTIME
    sys.exit("unshare: " + os.strerror(ctypes.get_errno()))
with open("/proc/self/timens_offsets", "w") as offsets:
    for clock in "monotonic", "boottime":
        offsets.write(f"{clock} {ahead // 10**9} {ahead % 10**9}\n")
os.execvp(sys.argv[2], sys.argv[2:])
'
# host_start_apart NAME [AHEAD_NS]: the same with a namespace of every kind; the clock is ahead by AHEAD_NS (0).
host_start_apart() {
	# shellcheck disable=SC2086  # no accounts or three words
	RXPATH_HOST_NAME=$1 ip netns exec "$hosts_id-$1" python3 -c "$host_clock" "${2:-0}" \
		unshare --mount --uts --ipc --pid --fork --kill-child \
		sh "$host_sh" $hosts_accounts "$sshd" -D -e -f "$hosts_dir/sshd_config" &
	daemon=$!
	hosts_daemons="$hosts_daemons $daemon"
}

# daemon_stop PID: kills one of hosts_daemons.
daemon_stop() {
	kill -9 "$1" 2>/dev/null || true
	wait "$1" 2>/dev/null || true
	# From here on another process may get this pid: hosts_end must not kill it.
	others=
	for pid in $hosts_daemons; do [ "$pid" = "$1" ] || others="$others $pid"; done
	hosts_daemons=$others
}

# host_stop NAME PID: cuts the power; returns when no process is left.
host_stop() {
	daemon_stop "$2"
	left=100
	while [ -n "$(ip netns pids "$hosts_id-$1")" ]; do
		left=$((left - 1))
		[ $left -gt 0 ] || {
			echo "$hosts_name: processes of $1 are left" >&2
			exit 3
		}
		sleep 0.05 # between two scans
	done
}

# host_wait ADDRESS...: until sshd answers there.
host_wait() {
	for address; do
		left=50
		until ip netns exec "$hosts_id-ctl" ssh-keyscan -t ed25519 -T 1 "$address" 2>/dev/null | grep -q .; do
			left=$((left - 1))
			[ $left -gt 0 ] || {
				echo "$hosts_name: no sshd at $address" >&2
				exit 3
			}
			sleep 0.1 # between two attempts
		done
	done
}

# inventory NAME ROLE [KEY=VALUE...]: its table, whose copy of rxpath is in a directory of its own.
inventory() {
	printf '[hosts.%s]\nssh = "%s.lab"\nrole = "%s"\ndir = "%s/copies/%s"\n' "$1" "$1" "$2" "$hosts_dir" "$1"
	shift 2
	for line; do echo "$line"; done
}

# on_ctl COMMAND...: on the coordinator.
on_ctl() { ip netns exec "$hosts_id-ctl" "$@"; }

# hosts_pair RXPATH: for benchmarks: $hosts_dir/rxpath is the program without symbols, about three quarters of the size of a
# release build; gen1 and sut with a wire for data between them and one for control to each, and $hosts_dir/lab.toml. No sshd
# runs yet.
hosts_pair() {
	hosts_need strip python3
	hosts_begin
	strip -o "$hosts_dir/rxpath" "$1"
	host gen1 10.78.1.2
	host sut 10.78.2.2
	wire ctl gen1 10.78.1.1 gen1 mgmt 10.78.1.2
	wire ctl sut 10.78.2.1 sut mgmt 10.78.2.2
	wire gen1 data 10.78.3.1 sut data 10.78.3.2
	{
		inventory gen1 sender
		inventory sut receiver 'addr = ["10.78.3.2"]'
	} >"$hosts_dir/lab.toml"
}

# hosts_user: after hosts_pair and before a host is started apart: hosts know the user rxplain too, who may become root by sudo
# without a password. $hosts_dir/by-sudo.toml is lab.toml by the logins of this user, with directories for copies of the user's.
hosts_user() {
	user=rxplain number=41234
	# Copies are started from it, and sshd reads the key there, as the user.
	chmod 755 "$hosts_dir"
	install -d -o $number -g $number "$hosts_dir/home" "$hosts_dir/copies-by-sudo/gen1" "$hosts_dir/copies-by-sudo/sut"
	{ cat /etc/passwd && echo "$user:x:$number:$number::$hosts_dir/home:/bin/sh"; } >"$hosts_dir/passwd"
	{ cat /etc/group && echo "$user:x:$number:"; } >"$hosts_dir/group"
	# sudo asks for the address of its own host.
	{ cat /etc/hosts && echo '127.0.0.1 gen1 sut'; } >"$hosts_dir/hosts"
	# No password, which is not the same as a locked account.
	(umask 077 && { cat /etc/shadow && echo "$user:*:20000:0:99999:7:::"; } >"$hosts_dir/shadow")
	(umask 227 && printf '%s\n' 'Defaults use_pty' 'root ALL=(ALL:ALL) ALL' "$user ALL=(ALL) NOPASSWD: ALL" >"$hosts_dir/sudoers")
	{
		for file in passwd group hosts shadow sudoers; do echo "mount --bind $hosts_dir/$file /etc/$file"; done
		# shellcheck disable=SC2016  # the words of that script
		echo 'exec "$@"'
	} >"$hosts_dir/accounts"
	hosts_accounts="sh -e $hosts_dir/accounts"
	sed "s/^ssh = \"/&$user@/; s/^role = /sudo = \"always\"\n&/; s#/copies/#/copies-by-sudo/#" "$hosts_dir/lab.toml" >"$hosts_dir/by-sudo.toml"
}

# hosts_many RXPATH COUNT: the same for a receiver `sut` and COUNT - 1 senders gen1, gen2.. with a namespace of every kind, on one
# bridge for control and one for data. Their clocks are hours apart, and sshd runs.
hosts_many() {
	hosts_need strip python3
	hosts_begin
	strip -o "$hosts_dir/rxpath" "$1"
	host lan
	for bridge in ctl:control lan:data; do
		ip -n "$hosts_id-${bridge%:*}" link add "${bridge#*:}" type bridge
		ip -n "$hosts_id-${bridge%:*}" link set "${bridge#*:}" up
	done
	ip -n "$hosts_id-ctl" addr add 10.78.0.254/24 dev control
	addresses=
	for number in $(seq "$2"); do
		name=gen$number
		role=sender
		[ "$number" -lt "$2" ] || { name=sut; role=receiver; }
		host "$name" "10.78.0.$number"
		wire ctl "to$number" - "$name" mgmt "10.78.0.$number"
		wire lan "to$number" - "$name" data "10.78.3.$number"
		ip -n "$hosts_id-ctl" link set "to$number" master control
		ip -n "$hosts_id-lan" link set "to$number" master data
		inventory "$name" "$role" "addr = [\"10.78.3.$number\"]" >>"$hosts_dir/lab.toml"
		host_start_apart "$name" "$((number * 3600123456789))"
		addresses="$addresses 10.78.0.$number"
	done
	# shellcheck disable=SC2086  # a list
	host_wait $addresses
}

# hosts_trials RAMP SETTLE MEASURE [BLOCKS]: the end of a scenario of BLOCKS (1) trials, without comparison or samples.
hosts_trials() {
	cat <<-END
		[observe]
		sample_interval = "0ms"
		[trials]
		blocks = ${4:-1}
		max_blocks = ${4:-1}
		aa = false
		paired = false
		ramp = "$1"
		settle = "$2"
		measure = "$3"
	END
}

# hosts_rxpath WORDS...: that program on the coordinator, with locks and records of its own, for hosts_limit (120) s at most.
hosts_rxpath() {
	timeout --foreground -k 30 "${hosts_limit:-120}" ip netns exec "$hosts_id-ctl" unshare --mount \
		sh "$host_sh" "$hosts_dir/rxpath" "$@"
}

# hosts_run WORDS...: `rxpath run WORDS` between the hosts of $hosts_inventory, into $hosts_dir/runs. Exit 1 unless it ends with 0, or with 4: one
# variant is not enough to compare, and foreign load counts, because hosts with PID namespaces of their own do not know that they
# are one machine.
hosts_run() {
	now=0
	hosts_rxpath run "$@" --hosts "$hosts_inventory" --out "$hosts_dir/runs" --keep-noisy \
		>"$hosts_dir/said" 2>"$hosts_dir/errors" || now=$?
	case $now in
	0 | 4) ;;
	*)
		cat "$hosts_dir/errors" >&2
		echo "the run ended with exit status $now"
		exit 1
		;;
	esac
}
