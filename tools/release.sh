#!/bin/sh
# Makes the .deb, the .rpm and their SBOM in target/packages, with their SHA-256: of the full program (rxpath) and of that without
# senders and labs (rxpath-agent). The binaries run on every x86-64 distribution with glibc 2.28 or newer (Debian 10, Ubuntu
# 20.04, RHEL 8): libbpf, libelf and zlib are part of them.
# Usage: tools/release.sh [--native] [rxpath] [rxpath-agent]
#   --native  for this distribution only: what cargo build makes, linked to the libraries that are here
# RXPATH_BINARY=FILE packs that binary as rxpath instead of building one, RXPATH_AGENT_BINARY=FILE as rxpath-agent.
set -eu
cd "$(dirname "$0")/.."
cargo=${CARGO:-cargo}
glibc=2.28
target=x86_64-unknown-linux-gnu
out=target/packages
native='' packages=''
for word; do
	case $word in
	--native) native=1 ;;
	rxpath | rxpath-agent) packages="$packages $word" ;;
	*)
		echo "release: unknown: $word; --native, rxpath, rxpath-agent" >&2
		exit 2
		;;
	esac
done

# The date of the source, in all that is packed: the same source gives the same bytes.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export SOURCE_DATE_EPOCH
tools/setup.sh package
tools=target/package-tools/bin

# Not the folders of this machine.
cargo_home=${CARGO_HOME:-$HOME/.cargo}
export RUSTFLAGS="--remap-path-prefix=$cargo_home/registry/src=/cargo --remap-path-prefix=$PWD=/rxpath"

# The binary of a package: sets `binary`.
build() {
	case $1 in
	rxpath) binary=${RXPATH_BINARY:-} profile=dist features='' here=release ;;
	rxpath-agent) binary=${RXPATH_AGENT_BINARY:-} profile=agent features='--no-default-features' here=agent ;;
	esac
	[ -z "$binary" ] || return 0
	# shellcheck disable=SC2086  # one option or none
	if [ -n "$native" ]; then
		"$cargo" build --locked --profile $here -p rxpath --bin rxpath $features --features bpf
		binary=target/$here/rxpath
	else
		# zig links to the symbols of the older glibc; the C of libelf is compiled by it too.
		PATH=$PWD/$tools:$PATH "$cargo" zigbuild --locked --profile $profile $features --features vendored -p rxpath \
			--bin rxpath --target $target.$glibc
		binary=target/$target/$profile/rxpath
	fi
}

# What the binary needs at run time, as Debian and RPM name it.
dependencies() {
	needs=$(objdump -T "$binary" | sed -n 's/.*GLIBC_\([0-9.]*\).*/\1/p' | sort -Vu | tail -n 1)
	DEB_DEPENDS="libc6 (>= $needs)"
	RPM_DEPENDS="glibc >= $needs"
	for library in $(objdump -p "$binary" | sed -n 's/^ *NEEDED *//p'); do
		case $library in
		libc.so.6 | libm.so.6 | libpthread.so.0 | libdl.so.2 | librt.so.1 | ld-linux-x86-64.so.2) ;;
		libgcc_s.so.1) DEB_DEPENDS="$DEB_DEPENDS, libgcc-s1" RPM_DEPENDS="$RPM_DEPENDS, libgcc" ;;
		libelf.so.1) DEB_DEPENDS="$DEB_DEPENDS, libelf1" RPM_DEPENDS="$RPM_DEPENDS, elfutils-libelf" ;;
		libz.so.1) DEB_DEPENDS="$DEB_DEPENDS, zlib1g" RPM_DEPENDS="$RPM_DEPENDS, zlib" ;;
		*)
			echo "release: $binary needs $library; name the packages that have it in tools/release.sh" >&2
			exit 1
			;;
		esac
	done
	newest=$(printf '%s\n%s\n' "$needs" "$glibc" | sort -V | tail -n 1)
	if [ -z "$native" ] && [ "$newest" != "$glibc" ]; then
		echo "release: $binary needs glibc $needs; packages are for $glibc or newer" >&2
		exit 1
	fi
}

# The words of a package that the other one has not.
describe() {
	case $1 in
	rxpath)
		OTHER=rxpath-agent PROVIDES=rxpath-agent
		SUMMARY='measures, explains and tunes the Linux network receive path'
		SCOPE='It also sends traffic, makes experiments in a lab and writes their reports.'
		;;
	rxpath-agent)
		OTHER=rxpath PROVIDES=
		SUMMARY='checks, explains and tunes the network receive path of hosts in production'
		SCOPE='It has no traffic generator and no experiments: the package rxpath has.'
		;;
	esac
}

# All files of a package, below ROOT.
files() {
	make -s install-files PREFIX=/usr RXPATH="$binary" DESTDIR=$ROOT
	find $ROOT/usr/share/man -type f -exec gzip -9n {} +
	documents=$ROOT/usr/share/doc/$NAME
	mkdir -p $documents/examples
	cp README.md SECURITY.md $documents/
	cp -r monitoring fleet packaging/ci $documents/examples/
	# The text of a licence is indented in Debian's format, and a blank line is a dot.
	sed '/^$/s/^/./; s/^/ /' LICENSE-MIT | cat packaging/copyright - >$documents/copyright
	gzip -9nc CHANGELOG.md >$documents/CHANGELOG.md.gz
	gzip -9n >$documents/changelog.Debian.gz <<EOF
$NAME ($VERSION-1) unstable; urgency=medium

  * Release $VERSION. CHANGELOG.md.gz has the changes.

 -- The rxpath authors <authors@rxpath.invalid>  $(LC_ALL=C date -u -R -d "@$SOURCE_DATE_EPOCH")
EOF
	chmod -R u=rwX,go=rX $ROOT
	find $ROOT -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
}

pack() {
	NAME=$1
	dependencies
	describe "$NAME"
	files
	# nfpm does not put variables into lists.
	envsubst <packaging/nfpm.yaml >$out/nfpm.yaml
	for kind in deb rpm; do
		$tools/nfpm package -f $out/nfpm.yaml -p $kind -t $out/ >&2
	done
	# dpkg's own xz packs a third smaller than that of nfpm.
	deb=$(echo "$out/$NAME"_*.deb)
	dpkg-deb -R "$deb" $out/deb
	dpkg-deb -Zxz --root-owner-group -b $out/deb "$deb" >/dev/null
	# shellcheck disable=SC2086  # one option or none
	tools/sbom.sh "$out/$NAME.cdx.json" $features
	rm -r $ROOT $out/deb $out/nfpm.yaml
}

rm -rf $out
mkdir -p $out
ROOT=$out/root
VERSION=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml | head -n 1)
MTIME=$(date -u -d "@$SOURCE_DATE_EPOCH" +%Y-%m-%dT%H:%M:%SZ)
export ROOT VERSION MTIME NAME SUMMARY SCOPE OTHER PROVIDES DEB_DEPENDS RPM_DEPENDS
for package in ${packages:-rxpath rxpath-agent}; do
	build "$package"
	pack "$package"
done
(cd $out && sha256sum ./*.deb ./*.rpm ./*.cdx.json >SHA256SUMS)
ls -l $out >&2
# What a release could have and this one does not.
echo 'release: not made: packages of symbols (-dbgsym, -debuginfo): keep the binary below target/, it has the line tables' >&2
echo 'release: not run: cargo-auditable: the list of crates is in the .cdx.json only, not in the binary' >&2
