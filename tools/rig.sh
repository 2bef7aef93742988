#!/bin/sh
# A small machine with emulated NICs: Debian's own kernel, busybox and a command, under QEMU. It shows what real drivers
# do with a setting; it says nothing about speed.
#
# Usage: tools/rig.sh setup [--kernel 6.12|6.1|built] [--outside]
#        tools/rig.sh run [--kernel 6.12|6.1|built] [--nics "igb e1000e"] [--modules "nf_tables"] [--memory 512]
#                         [--wire] [--root TAR] [--add FILE[:PATH]]... -- COMMAND [ARGUMENT]...
#        tools/rig.sh run --outside [--drift PPM] [--kernel ..] [--nics ..] [--modules ..] [--memory 2048] -- COMMAND [ARGUMENT]...
# With --wire the NICs reach each other, as on one switch, and nobody else. The command runs as root inside, its output is ours,
# its exit status too. FILE is copied in, with the libraries that a program needs. With --root the command runs in the system that
# TAR holds, with its systemd as process 1; FILE is not in it. The kernel "built" is made here, of Debian's source and
# tests/rig/kernel.config, for what Debian's own kernels leave out; that takes minutes, once. Everything is kept in target/rig.
# With --outside the machine is a host with systemd and sshd, of this distribution's packages, and the command runs here while it
# is up: as root in a network namespace in which tap1 (10.79.1.1/24) is the other end of the first NIC (10.79.1.2), tap2
# (10.79.2.1/24) that of the second, and so on. `ssh guest1.lab`, `ssh guest2.lab`.. log in as root. With --drift the clock of the
# machine runs so many ppm fast; `adjtimex` of busybox is in it, to change that. $RIG_QMP.in and $RIG_QMP.out are pipes of QEMU's
# monitor (QMP): the clock of the machine stops while QEMU stops the machine.
# Exit 125: the machine can't be had here, and why; every other status may be the command's. RIG_TIMEOUT_S: seconds after which
# the machine is ended (3600). RIG_ACCEL=kvm: with KVM.
set -eu
cd "$(dirname "$0")/.."

cache=$PWD/target/rig
goal=${1:-}
[ $# -eq 0 ] || shift
kernel=6.12
nics=
modules=
memory=512
wire=
root=
adds=
outside=
drift=0
while [ $# -gt 0 ]; do
	case $1 in
	--kernel) kernel=$2; shift 2 ;;
	--nics) nics=$2; shift 2 ;;
	--modules) modules=$2; shift 2 ;;
	--memory) memory=$2; shift 2 ;;
	--wire) wire=yes; shift ;;
	--root) root=$2; shift 2 ;;
	--outside) outside=yes; shift ;;
	--drift) drift=$2; shift 2 ;;
	--add) adds="$adds $2"; shift 2 ;;
	--) shift; break ;;
	*) echo "rig: unknown option $1; see the head of tools/rig.sh" >&2; exit 2 ;;
	esac
done

cannot() { echo "rig: $*" >&2; exit 125; }
have() { command -v "$1" >/dev/null 2>&1; }
say() { echo "rig: $*" >&2; }

# The distribution's sources and its backports, in a place of their own: the machine's lists stay as they are.
lists() {
	[ -e "$cache/apt/done" ] && return
	mkdir -p "$cache/apt/lists/partial" "$cache/apt/cache/archives/partial"
	# shellcheck disable=SC1091  # not ours
	codename=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
	[ -n "$codename" ] || cannot "this distribution has no code name in /etc/os-release"
	{
		# One-line form: the line of the release itself, and the same for its backports.
		cat /etc/apt/sources.list /etc/apt/sources.list.d/*.list 2>/dev/null | grep -E "^deb .* $codename " |
			sed "p; s/ $codename / $codename-backports /" || true
	} >"$cache/apt/rig.list"
	# Paragraphs: those that name the release, with the backports.
	cat /etc/apt/sources.list.d/*.sources 2>/dev/null | awk -v name="$codename" 'BEGIN { RS = ""; ORS = "\n\n" }
		$0 ~ "Suites:[^\n]*(^|[ \t])" name "([ \t\n]|$)" {
			sub("Suites:[^\n]*", "Suites: " name " " name "-updates " name "-backports"); gsub("(^|\n)#[^\n]*", ""); print
		}
		$0 ~ name "-security" { gsub("(^|\n)#[^\n]*", ""); print }' >"$cache/apt/rig.sources" || true
	[ -s "$cache/apt/rig.list" ] || [ -s "$cache/apt/rig.sources" ] ||
		cannot "no package source of $codename is named below /etc/apt"
	mkdir -p "$cache/apt/parts"
	mv "$cache/apt/rig.list" "$cache/apt/rig.sources" "$cache/apt/parts/"
	say "reading package lists"
	apt update -qq >"$cache/apt/log" 2>&1 || cannot "apt-get update failed: $(tail -n 1 "$cache/apt/log")"
	touch "$cache/apt/done"
}

apt() {
	apt-get -o Dir::State::lists="$cache/apt/lists" -o Dir::Cache="$cache/apt/cache" \
		-o Dir::Etc::sourcelist=/dev/null -o Dir::Etc::sourceparts="$cache/apt/parts" -o APT::Sandbox::User=root "$@"
}

candidates() { # package names that fit
	apt-cache -o Dir::State::lists="$cache/apt/lists" -o Dir::Cache="$cache/apt/cache" \
		-o Dir::Etc::sourcelist=/dev/null -o Dir::Etc::sourceparts="$cache/apt/parts" search --names-only "$1" |
		cut -d' ' -f1
}

# igb came with QEMU 8.
qemu_is_enough() {
	have qemu-system-x86_64 || return 1
	major=$(qemu-system-x86_64 --version | sed -n 's/^QEMU emulator version \([0-9]*\).*/\1/p')
	[ "${major:-0}" -ge 8 ]
}

get_qemu() {
	qemu_is_enough && return
	have apt-get || cannot "needs QEMU 8 or newer (qemu-system-x86_64) and Debian's packages"
	[ "$(id -u)" = 0 ] || cannot "needs QEMU 8 or newer (qemu-system-x86_64): install it, or run this as root"
	lists
	say "installing QEMU"
	# shellcheck disable=SC1091
	codename=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
	for from in "-t $codename-backports" ""; do
		# shellcheck disable=SC2086  # words
		if DEBIAN_FRONTEND=noninteractive apt $from install -y -qq --no-install-recommends \
			qemu-system-x86 ipxe-qemu seabios >"$cache/apt/log" 2>&1; then
			break
		fi
	done
	qemu_is_enough || cannot "QEMU 8 or newer can't be installed: $(tail -n 1 "$cache/apt/log")"
}

get_package() { # package, directory: unpacked there
	[ -e "$2/.done" ] && return
	lists
	say "fetching $1"
	rm -rf "$2"
	mkdir -p "$2"
	(cd "$2" && apt download "$1" >"$cache/apt/log" 2>&1) || cannot "$1 can't be fetched: $(tail -n 1 "$cache/apt/log")"
	dpkg -x "$2"/*.deb "$2"
	rm -f "$2"/*.deb
	touch "$2/.done"
}

install() { # command, packages that bring it
	have "$1" && return
	[ "$(id -u)" = 0 ] || cannot "needs $1: install it, or run this as root"
	lists
	shift
	DEBIAN_FRONTEND=noninteractive apt install -y -qq --no-install-recommends "$@" >"$cache/apt/log" 2>&1 ||
		cannot "$* can't be installed: $(tail -n 1 "$cache/apt/log")"
}

# Small, so that it is made in minutes: no modules, no disks, no drivers but the simulated one and those of the emulated NICs.
build_kernel() {
	source=$cache/source
	config=$PWD/tests/rig/kernel.config
	cmp -s "$config" "$cache/kernel-built/.config" && return
	install make make
	install gcc gcc libc6-dev
	install flex flex
	install bison bison
	install bc bc
	install xz xz-utils
	get_package linux-source-6.12 "$source"
	[ -e "$source/tree/Makefile" ] || {
		mkdir -p "$source/tree"
		tar -xf "$source"/usr/src/linux-source-6.12.tar.xz -C "$source/tree" --strip-components=1
	}
	say "building a kernel"
	(
		cd "$source/tree"
		make -s tinyconfig
		scripts/kconfig/merge_config.sh -m .config "$config"
		make -s olddefconfig
		for option in $(grep -o '^CONFIG_[A-Z0-9_]*' "$config"); do
			grep -q "^$option=y" .config || { echo "this source has no $option"; exit 1; }
		done
		for option in $(sed -n 's/^# \(CONFIG_[A-Z0-9_]*\) is not set$/\1/p' "$config"); do
			! grep -q "^$option=" .config || { echo "this source does not do without $option"; exit 1; }
		done
		make -s -j "$(nproc)" bzImage
	) >"$cache/build.log" 2>&1 || cannot "the kernel can't be built: $(tail -n 1 "$cache/build.log")"
	mkdir -p "$cache/kernel-built/boot"
	cp "$source/tree/arch/x86/boot/bzImage" "$cache/kernel-built/boot/vmlinuz-built"
	cp "$config" "$cache/kernel-built/.config"
	# 2 GB, and needed no more.
	rm -rf "$source"
}

get_kernel() {
	if [ "$kernel" = built ]; then
		build_kernel
	elif [ ! -e "$cache/kernel-$kernel/.done" ]; then
		have dpkg || cannot "needs Debian's packages"
		lists
		version=$(echo "$kernel" | sed 's/\./\\./g')
		package=$(candidates "^linux-image-${version}[.].*amd64(-unsigned)?\$" |
			grep -Ev -- '-(rt|cloud|dbg)' | sort -V | tail -n 1)
		[ -n "$package" ] || cannot "no kernel $kernel among this distribution's packages"
		get_package "$package" "$cache/kernel-$kernel"
	fi
	get_package busybox-static "$cache/busybox"
}

# The system of a host: what ssh needs, and rxpath.
get_system() {
	[ "$(id -u)" = 0 ] || cannot "needs root for network namespaces"
	[ -e /dev/net/tun ] || cannot "needs /dev/net/tun"
	for program in ssh ssh-keygen; do have $program || cannot "needs $program"; done
	[ -s "$cache/system.tar" ] && return
	install mmdebstrap mmdebstrap
	say "making a system with sshd"
	# shellcheck disable=SC1091
	codename=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
	mmdebstrap --quiet --variant=essential --include=systemd,openssh-server,iproute2,libelf1,zlib1g \
		--dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*' \
		--dpkgopt='path-exclude=/usr/share/locale/*' "$codename" "$cache/system.new.tar" >"$cache/system.log" 2>&1 ||
		cannot "the system can't be made: $(tail -n 1 "$cache/system.log")"
	mv "$cache/system.new.tar" "$cache/system.tar"
}

setup() {
	[ "$(uname -m)" = x86_64 ] || cannot "needs an x86-64 host"
	mkdir -p "$cache"
	# Tests that run in parallel set up once.
	exec 9>"$cache/lock"
	flock 9
	get_qemu
	get_kernel
	[ -z "$outside" ] || get_system
	have xz || cannot "needs xz"
	have cpio || { [ "$(id -u)" = 0 ] && lists && apt install -y -qq cpio >"$cache/apt/log" 2>&1; } || cannot "needs cpio"
	exec 9>&-
}

# A module and all that it needs, each once, needs first.
load() {
	name=$(echo "$1" | tr - _)
	case " $loaded " in *" $name "*) return ;; esac
	loaded="$loaded $name"
	file=$(find "$cache/kernel-$kernel" -name "$name.ko*" -o -name "$(echo "$name" | tr _ -).ko*" | head -n 1)
	[ -n "$file" ] || return 0 # built in
	target=$tree/modules/$name.ko
	case $file in
	*.xz) xz -dc "$file" >"$target" ;;
	*.zst) zstd -qdc "$file" >"$target" ;;
	*) cp "$file" "$target" ;;
	esac
	for need in $(tr '\0' '\n' <"$target" | sed -n 's/^depends=//p; s/^softdep=pre: //p' | tr , ' '); do load "$need"; done
	echo "$1" | tr - _ >>"$tree/modules/order"
}

add() { # FILE[:PATH]
	from=${1%%:*}
	to=${1#*:}
	[ "$to" != "$1" ] || to=/bin/$(basename "$from")
	[ -e "$from" ] || { echo "rig: there is no $from" >&2; exit 2; }
	mkdir -p "$tree$(dirname "$to")"
	cp "$from" "$tree$to"
	for library in $(ldd "$from" 2>/dev/null | grep -o '/[^ ]*' || true); do
		mkdir -p "$tree$(dirname "$library")"
		cp -L "$library" "$tree$library"
	done
}

case $goal in
setup)
	setup
	exit 0
	;;
run) [ $# -gt 0 ] || { echo "rig: no command after --" >&2; exit 2; } ;;
*) echo "rig: setup or run; see the head of tools/rig.sh" >&2; exit 2 ;;
esac

setup
work=$(mktemp -d)
machine=
boot=
control=
ended() {
	[ -z "$machine" ] || { kill "$machine" 2>/dev/null && wait "$machine" || true; }
	rm -rf "$work"
}
trap ended EXIT
trap 'exit 130' HUP INT
trap 'exit 143' TERM
tree=$work/tree
mkdir -p "$tree/bin" "$tree/modules" "$tree/proc" "$tree/sys" "$tree/dev" "$tree/run" "$tree/tmp" "$tree/etc" "$tree/var"
cp "$(find "$cache/busybox" -path "*bin/busybox" -type f | head -n 1)" "$tree/bin/busybox"
: >"$tree/modules/order"
loaded=
devices=
number=0
for nic in $nics; do
	number=$((number + 1))
	backend=user,restrict=on model=$nic
	[ -z "$outside" ] || backend=tap,ifname=tap$number,script=no,downscript=no
	[ -z "$wire" ] || backend=hubport,hubid=0
	case $nic in
	virtio_net)
		load virtio_pci
		model=virtio-net-pci
		[ -n "$wire" ] || {
			backend=tap,ifname=tap$number,queues=4,script=no,downscript=no,vhost=off
			model=$model,mq=on,vectors=10,rss=on,hash=on,rx_queue_size=1024
		}
		;;
	igb | e1000e | e1000 | vmxnet3) ;;
	*) echo "rig: no NIC is called $nic: igb, e1000e, e1000, virtio_net, vmxnet3" >&2; exit 2 ;;
	esac
	devices="$devices -netdev $backend,id=n$number -device $model,netdev=n$number"
	# igb finds its helpers only when they are there before it.
	[ "$nic" != igb ] || for helper in pps_core ptp dca i2c-algo-bit; do load "$helper"; done
	load "$nic"
done
for module in $modules; do load "$module"; done
for file in $adds; do add "$file"; done
[ -z "$outside" ] || root=$cache/system.tar
[ -z "$root" ] || cp "$root" "$tree/root.tar"
quote() { printf "'%s' " "$(printf %s "$1" | sed "s/'/'\\\\''/g")"; }
for word in "$@"; do quote "$word"; done >"$tree/command"
if [ -n "$outside" ]; then
	# shellcheck source=tools/rig-outside.sh
	. tools/rig-outside.sh
	outside_prepare
fi

cat >"$tree/init" <<'INIT'
#!/bin/busybox sh
/bin/busybox --install -s /bin
export PATH=/bin:/sbin:/usr/bin HOME=/
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mount -t tmpfs run /run
mount -t tracefs trace /sys/kernel/tracing 2>/dev/null
mount -t bpf bpf /sys/fs/bpf 2>/dev/null
mount -t debugfs debug /sys/kernel/debug 2>/dev/null
while read -r module; do insmod "/modules/$module.ko" || echo "rig: $module is not loaded"; done </modules/order
for dev in /sys/class/net/*; do ip link set "${dev##*/}" up; done
[ ! -e /prepare ] || . /prepare
stty -onlcr 2>/dev/null </dev/console
[ ! -e /root.tar ] || exec sh /systemd
echo
echo @@rig-begin
sh /command </dev/null
echo "@@rig-end $?"
poweroff -f
INIT
cat >"$tree/systemd" <<'SYSTEMD'
# Not in the initramfs itself: systemd moves the root of a unit with a sandbox, and that one can't be moved.
mkdir /system
mount -t tmpfs -o mode=755,size=100% system /system
tar -xf /root.tar -C /system
cp /command /system/
[ ! -e /files ] || cp -a /files/. /system/
cat >/system/command.sh <<'END'
echo
echo @@rig-begin
sh /command
echo "@@rig-end $?"
systemctl --force --force poweroff
END
cat >/system/etc/systemd/system/command.service <<'END'
[Service]
ExecStart=/bin/sh /command.sh
StandardOutput=tty
TTYPath=/dev/console
Environment=TERM=dumb
END
mkdir -p /system/etc/systemd/system/multi-user.target.wants
ln -s ../command.service /system/etc/systemd/system/multi-user.target.wants/
# Nobody else writes to the console.
ln -s /dev/null /system/etc/systemd/system/serial-getty@ttyS0.service
exec switch_root /system /lib/systemd/systemd
SYSTEMD
chmod +x "$tree/init"
(cd "$tree" && find . | cpio -o -H newc --quiet | gzip -1) >"$work/initrd.gz"

image=$(find "$cache/kernel-$kernel/boot" -name 'vmlinuz-*' | head -n 1)
# A namespace of its own: taps and user networks leave no trace on the host.
if [ "$(id -u)" = 0 ]; then apart="unshare -n"; else apart="unshare -rn"; fi
emulate() {
	# shellcheck disable=SC2086  # words
	exec $apart timeout "${RIG_TIMEOUT_S:-3600}" qemu-system-x86_64 -machine q35 -accel "${RIG_ACCEL:-tcg,thread=single}" \
		-cpu max -smp 2 -m "$memory" -nographic -no-reboot -nodefaults -serial stdio -monitor none $control $devices \
		-kernel "$image" -initrd "$work/initrd.gz" \
		-append "console=ttyS0 quiet loglevel=1 panic=-1 no_timer_check $boot" </dev/null >"$work/console" 2>"$work/qemu.err"
}
emulate &
machine=$!
if [ -n "$outside" ]; then
	status=0
	outside_run "$@" || status=$?
	exit "$status"
fi
wait "$machine" || true
machine=
tr -d '\r' <"$work/console" >"$work/text"
if ! grep -aq '^@@rig-begin' "$work/text"; then
	tail -n 20 "$work/text" "$work/qemu.err" >&2
	cannot "the machine did not come up"
fi
# What could not be loaded; the command may do without.
sed -n '1,/^@@rig-begin/{/^rig: /p}' "$work/text" >&2
sed -n '/^@@rig-begin/,/^@@rig-end/p' "$work/text" | sed '/^@@rig-/d'
status=$(sed -n 's/^@@rig-end \([0-9]*\)$/\1/p' "$work/text")
[ -n "$status" ] || { echo "rig: the machine ended before the command did" >&2; exit 1; }
exit "$status"
