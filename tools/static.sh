#!/bin/sh
# Makes target/release/rxpath-ARCH: a static build for other hosts, which needs no shared library and no C library there.
# `rxpath run --hosts` and `--host` send it where it is next to the program, in /usr/local/lib/rxpath, or given by
# --binary. BPF programs are part of it. It is checked: no interpreter, no shared library, its size, a start in an empty root.
# Usage: tools/static.sh    (ARCH is that of this machine: another one is built on such a machine)
# RXPATH_BINARY=FILE checks that file instead of building one.
set -eu
cd "$(dirname "$0")/.."
cargo=${CARGO:-cargo}
here=$(uname -m)
arch=${ARCH:-$here}
target=$arch-unknown-linux-gnu
# Bytes without symbols.
most=16000000
out=target/release/rxpath-$arch

refuse() {
	echo "static: $1" >&2
	echo "hint: $2" >&2
	exit 3
}
failed() {
	echo "static: $built $1" >&2
	exit 1
}

[ "$arch" = "$here" ] || refuse "this machine is $here, and a build for $arch is made on a machine that is $arch" \
	"run make static there, from this commit, and bring its target/release/rxpath-$arch here"
case $arch in
x86_64 | aarch64) ;;
*) refuse "rxpath does not run on $arch" "use a machine that is x86_64 or aarch64" ;;
esac

made=
trap '[ -z "$made" ] || rm -rf "$made"' EXIT
trap 'exit 130' HUP INT TERM # the shell would end without the other trap
# In the directory of the result: a run that sends it at this moment gets the whole file, old or new.
work() {
	mkdir -p target/release
	made=$(mktemp -d target/release/.static.XXXXXX)
}

# The library's file, or its name where there is none.
library() { "${CC:-cc}" -print-file-name="$1"; }
# Whether the linker and the C library know an option.
takes() {
	# shellcheck disable=SC2086  # several options
	echo 'fn main() {}' | rustc $is_static --target "$target" -C link-arg="$1" -o "$made/probe" - 2>/dev/null && "$made/probe"
}
build() {
	missing=
	flags=
	for pair in libc.a:libc6-dev libelf.a:libelf-dev libz.a:zlib1g-dev; do
		[ -f "$(library "${pair%%:*}")" ] || missing="$missing ${pair##*:}"
	done
	# Newer versions of libelf compress with zstd.
	if [ -z "$missing" ] && nm "$(library libelf.a)" 2>/dev/null | grep -q ' U ZSTD_'; then
		[ -f "$(library libzstd.a)" ] || missing=" libzstd-dev"
		flags=" -C link-arg=-lzstd"
	fi
	[ -z "$missing" ] || refuse "static libraries are missing" \
		"Debian, Ubuntu: apt-get install --no-install-recommends$missing; other distributions: libc.a, libelf.a and libz.a"
	work
	is_static="-C target-feature=+crt-static -L native=$(dirname "$(realpath "$(library libelf.a)")")"
	# Equal functions once, and short relocations.
	for option in -Wl,--icf=all -Wl,-z,pack-relative-relocs; do
		! takes $option || flags="$flags -C link-arg=$option"
	done
	# Not the folders of this machine.
	cargo_home=${CARGO_HOME:-$HOME/.cargo}
	RUSTFLAGS="$is_static$flags -C force-unwind-tables=no --remap-path-prefix=$cargo_home/registry/src=/cargo --remap-path-prefix=$PWD=/rxpath"
	export RUSTFLAGS
	set --
	! takes -Wl,-T,tools/no-unwind.ld || set -- -C link-arg=-Wl,-T,tools/no-unwind.ld
	"$cargo" rustc --locked --profile static -p rxpath --bin rxpath --features static --target "$target" -- "$@"
	built=target/$target/static/rxpath
}

built=${RXPATH_BINARY:-}
if [ -z "$built" ]; then build; else work; fi
strip -o "$made/rxpath" "$built"
readelf -h "$made/rxpath" | grep -q 'Type: *DYN' || failed "is not position-independent"
! readelf -lW "$made/rxpath" | grep -q INTERP || failed "has an interpreter: it is not static"
! readelf -dW "$made/rxpath" | grep -q NEEDED || failed "needs a shared library: it is not static"
size=$(stat -c %s "$made/rxpath")
[ "$size" -le $most ] || failed "has $size bytes without symbols; at most $most"
# Nothing but the program: no library, no /proc, no /dev.
if [ "$(id -u)" = 0 ]; then set -- chroot; else set -- unshare -r chroot; fi
version=$("$@" "$made" /rxpath --version) || failed "does not start in an empty root"
"$@" "$made" /rxpath list >"$made/list" || failed "does not list its experiments in an empty root"
case $version in *+nobpf*) failed "is built without BPF" ;; esac
mv "$made/rxpath" "$out"
echo "$out: $size bytes, no shared library, starts in an empty root; $(echo "$version" | tail -n 1)"
