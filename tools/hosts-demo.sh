#!/bin/sh
# Three hosts on this machine, each a network namespace: a coordinator, a sender and a receiver, the last two with a real
# sshd. Runs an experiment between them over ssh, and removes everything.
# Usage: tools/hosts-demo.sh RXPATH [SCENARIO [WORDS...]]
set -eu

rxpath=$(realpath "${1:?the built program}")
scenario=${2:-million-pps}
# Without words of its own it takes less than two minutes.
[ $# -ge 3 ] || set -- "$1" "$scenario" --trials 5 --set trials.max_blocks=5 --set trials.measure=500ms
shift 2
sshd=$(command -v sshd || echo /usr/sbin/sshd)
for program in "$sshd" ssh ssh-keygen ip unshare; do
	command -v "$program" >/dev/null || {
		echo "hosts-demo: $program is missing (Debian: openssh-server, openssh-client, iproute2, util-linux)" >&2
		exit 3
	}
done
[ "$(id -u)" = 0 ] || {
	echo "hosts-demo: root is needed for network namespaces" >&2
	exit 3
}

dir=$(mktemp -d)
id=$$
daemons=
clean() {
	for pid in $daemons; do kill "$pid" 2>/dev/null || true; done
	for host in ctl gen1 sut; do ip netns del "rxd-$id-$host" 2>/dev/null || true; done
	rm -rf "$dir"
}
trap clean EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

for host in ctl gen1 sut; do ip netns add "rxd-$id-$host"; done
# A wire: namespace, device and address of both ends.
wire() {
	ip link add "$2" netns "rxd-$id-$1" type veth peer name "$5" netns "rxd-$id-$4"
	ip -n "rxd-$id-$1" addr add "$3/24" dev "$2"
	ip -n "rxd-$id-$4" addr add "$6/24" dev "$5"
	ip -n "rxd-$id-$1" link set "$2" up
	ip -n "rxd-$id-$4" link set "$5" up
}
wire ctl gen1 10.78.1.1 gen1 mgmt 10.78.1.2
wire ctl sut 10.78.2.1 sut mgmt 10.78.2.2
wire gen1 data 10.78.3.1 sut data 10.78.3.2

ssh-keygen -q -t ed25519 -N "" -f "$dir/id"
ssh-keygen -q -t ed25519 -N "" -f "$dir/host"
for address in 10.78.1.2 10.78.2.2; do echo "$address $(cat "$dir/host.pub")"; done >"$dir/known"
cat >"$dir/sshd_config" <<END
HostKey $dir/host
AuthorizedKeysFile $dir/id.pub
StrictModes no
UsePAM no
PidFile none
PasswordAuthentication no
PermitRootLogin yes
LogLevel ERROR
END
cat >"$dir/ssh_config" <<END
Host gen1.lab
HostName 10.78.1.2
Host sut.lab
HostName 10.78.2.2
Host *
User root
IdentityFile $dir/id
IdentitiesOnly yes
IdentityAgent none
UserKnownHostsFile $dir/known
StrictHostKeyChecking yes
END
mkdir "$dir/bin"
printf '#!/bin/sh\nexec %s -F %s "$@"\n' "$(command -v ssh)" "$dir/ssh_config" >"$dir/bin/ssh"
chmod 755 "$dir/bin/ssh"
# A /run of its own: the lab lock in it is that of the host.
# shellcheck disable=SC2016  # the inner shell expands it
own_run='mount -t tmpfs tmpfs /run && mkdir /run/sshd && exec "$@"'
for host in gen1 sut; do
	ip netns exec "rxd-$id-$host" unshare --mount sh -c "$own_run" sh "$sshd" -D -e -f "$dir/sshd_config" &
	daemons="$daemons $!"
done
cat >"$dir/lab.toml" <<END
[hosts.gen1]
ssh = "gen1.lab"
role = "sender"
dir = "$dir/copies/gen1"
[hosts.sut]
ssh = "sut.lab"
role = "receiver"
addr = ["10.78.3.2"]
dir = "$dir/copies/sut"
END

for address in 10.78.1.2 10.78.2.2; do
	tries=0
	until ip netns exec "rxd-$id-ctl" ssh-keyscan -T 1 "$address" >/dev/null 2>&1; do
		tries=$((tries + 1))
		[ "$tries" -lt 50 ] || {
			echo "hosts-demo: no sshd at $address" >&2
			exit 3
		}
		sleep 0.1
	done
done
PATH=$dir/bin:$PATH
out=$(pwd)/rxpath-runs
on_ctl() { ip netns exec "rxd-$id-ctl" "$rxpath" "$@"; }
on_ctl hosts check "$dir/lab.toml"
status=0
on_ctl run "$scenario" --hosts "$dir/lab.toml" --out "$out" "$@" || status=$?
case $status in
4) echo 'hosts-demo: done; some comparisons need more trials than a demonstration has' ;;
5) echo 'hosts-demo: done; some variants need --change-hosts' ;;
*) exit "$status" ;;
esac
