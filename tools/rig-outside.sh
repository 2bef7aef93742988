# A machine that is a host: for `tools/rig.sh run --outside`, which reads this file and has its variables.
# shellcheck shell=sh
# shellcheck disable=SC2034,SC2154  # variables of rig.sh

# Keys, addresses, the monitor and the clock of the machine, and `adjtimex` for it. Its command only says that all units were started.
outside_prepare() {
	files=$tree/files
	mkdir -p "$files/root/.ssh" "$files/etc/ssh" "$work/bin"
	chmod 700 "$files/root" "$files/root/.ssh"
	ssh-keygen -q -t ed25519 -N "" -f "$work/id"
	ssh-keygen -q -t ed25519 -N "" -f "$files/etc/ssh/ssh_host_ed25519_key"
	cp "$work/id.pub" "$files/root/.ssh/authorized_keys"
	# It sets the clock of the machine later, too.
	mkdir -p "$files/usr/local/bin"
	cp "$tree/bin/busybox" "$files/usr/local/bin/adjtimex"
	echo 'systemctl is-system-running --wait >/dev/null; echo @@rig-up; exec sleep infinity' >"$tree/command"
	# The last byte of the address that QEMU gives the first NIC is 56 hex. A frequency of 65536 is 1 ppm.
	cat >"$tree/prepare" <<-END
		for dev in /sys/class/net/*; do
			case \$(cat "\$dev/address") in
			52:54:00:12:34:*) ip addr add "10.79.\$((0x\$(cut -d: -f6 "\$dev/address") - 0x55)).2/24" dev "\${dev##*/}" ;;
			esac
		done
		adjtimex -q -f $((drift * 65536))
	END
	# The frequency of a CPU's clock is measured at each boot, and is some 100 ppm wrong. The HPET has that of its host's clock.
	boot=clocksource=hpet
	mkfifo "$work/qmp.in" "$work/qmp.out"
	control="-chardev pipe,id=qmp,path=$work/qmp -mon chardev=qmp,mode=control"
	for number in $(seq "$number"); do
		printf 'Host guest%s.lab\nHostName 10.79.%s.2\n' "$number" "$number"
		echo "10.79.$number.2 $(cat "$files/etc/ssh/ssh_host_ed25519_key.pub")" >>"$work/known"
	done >"$work/ssh_config"
	cat >>"$work/ssh_config" <<-END
		Host *
		User root
		IdentityFile $work/id
		IdentitiesOnly yes
		IdentityAgent none
		UserKnownHostsFile $work/known
		GlobalKnownHostsFile /dev/null
		StrictHostKeyChecking yes
	END
	printf '#!/bin/sh\nexec %s -F %s "$@"\n' "$(command -v ssh)" "$work/ssh_config" >"$work/bin/ssh"
	chmod 755 "$work/bin/ssh"
}

# outside_run COMMAND..: waits for the machine and runs the command at the other end of its NICs.
outside_run() {
	until grep -aq '^@@rig-up' "$work/console"; do
		kill -0 "$machine" 2>/dev/null || {
			tail -n 20 "$work/console" "$work/qemu.err" >&2
			machine=
			cannot "the machine did not come up"
		}
		# why: it boots for a minute and says so in a file
		sleep 0.2
	done
	# What could not be loaded; the command may do without.
	tr -d '\r' <"$work/console" | sed -n '1,/^@@rig-begin/{/^rig: /p}' >&2
	for number in $(seq "$number"); do
		nsenter --target "$machine" --net sh -ec 'ip addr add "$2" dev "$1"; ip link set "$1" up' sh "tap$number" "10.79.$number.1/24"
	done
	# It has locks and records of its own, as any host, and sees the devices of its namespace in /sys.
	RIG_QMP=$work/qmp PATH=$work/bin:$PATH nsenter --target "$machine" --net unshare --mount \
		sh -ec 'mount -t sysfs sys /sys; exec sh tools/host.sh "$@"' sh "$@"
}
