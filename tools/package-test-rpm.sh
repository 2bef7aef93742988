#!/bin/sh
# Installs, installs again and erases the .rpm of rxpath, and that of rxpath-agent, in a fresh system, by `rpm --root`;
# tools/package-test.sh runs it. Needs root.
#
# The system is a Debian: its shell runs the scripts of the package. No system with RPM's own database is needed, so what the
# package requires is compared with what every such system has, and not resolved.
# Errors of rpmlint are failures too.
# Usage: tools/package-test-rpm.sh ROOT.tar
set -eu
cd "$(dirname "$0")/.."
tar=${1:?the archive of a system, of tools/package-test.sh}
package=$(find target/packages -name 'rxpath-[0-9]*.x86_64.rpm')
agent=$(find target/packages -name 'rxpath-agent-[0-9]*.x86_64.rpm')
{ [ -n "$package" ] && [ -n "$agent" ]; } || { echo 'package-test: not both .rpm in target/packages; run tools/release.sh first' >&2; exit 2; }
fails() { echo "package-test: rpm: $*" >&2; exit 1; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' HUP INT TERM # the shell would end without the other trap
root=$work/root
mkdir "$root"
tar -C "$root" -xf "$tar"
in_root() { rpm --root "$root" --dbpath /var/lib/rpm "$@"; }
# Files of the system, without those of the database.
files() { (cd "$root" && find etc usr var/lib -path var/lib/rpm -prune -o -print | sort); }
# symbols PACKAGE: with its symbols addr2line finds the line of a function, by the build id of the program that is installed.
symbols() {
	in_root -i --nodeps "$(find target/packages -name "$1-debuginfo-[0-9]*.rpm")" || fails "$1-debuginfo is not installed"
	address=0x$(nm "$(find "$root/usr/lib/debug/.build-id" -name '*.debug')" | awk '/ [tT] .*rxpath/ { print $1; exit }')
	# It looks for .build-id/ in the folder where it runs.
	line=$(cd "$root/usr/lib/debug" && addr2line -e "$root/usr/bin/rxpath" "$address")
	case $line in *.rs:[1-9]*) ;; *) fails "$1: with symbols $address is $line" ;; esac
	in_root -e "$1-debuginfo" || fails "$1-debuginfo is not erased"
}
# A link into the system: seen from here it points to nothing.
enabled=$root/etc/systemd/system/timers.target.wants/rxpath-check.timer

for one in "$package" "$agent"; do
	rpm -K --nosignature "$one" >/dev/null || fails "its digests are wrong"
	# The libraries that tools/release.sh names, the shell, and features of rpm itself.
	if rpm -qp --requires "$one" 2>/dev/null | grep -Ev '^(/bin/sh|/usr/bin/sh|glibc|libgcc|elfutils-libelf|zlib|libc\.so|libm\.so|ld-linux|rtld\(|rpmlib\(|config\()'; then
		fails "it requires what not every system has"
	fi
done
rpm -qp --conflicts "$package" | grep -qx rxpath-agent || fails "it does not conflict with rxpath-agent"
rpm -qp --conflicts "$agent" | grep -qx rxpath || fails "rxpath-agent does not conflict with it"
# An upgrade must not swap the one for the other.
[ -z "$(rpm -qp --obsoletes "$package" "$agent")" ] || fails "one obsoletes the other"
rpmlint -c packaging/rpmlint.toml target/packages/*.rpm >"$work/lint" 2>&1 || true
if grep ' E: ' "$work/lint"; then fails "rpmlint has errors"; fi
grep -q ' checked; ' "$work/lint" || { cat "$work/lint" >&2; fails "rpmlint did not check them"; }
echo 'rpmlint: no error'

# A system with RPM has these of its package filesystem: nfpm gives them to no package.
mkdir -p "$root/usr/lib/debug" "$root/usr/share/fish/vendor_completions.d" "$root/usr/share/zsh/site-functions"
in_root --initdb
files >"$work/before"
in_root -i --nodeps "$package" || fails "not installed"
chroot "$root" rxpath --version
chroot "$root" rxpath export --names | grep -q '^rxpath_build_info' || fails "no metrics"
for kind in service socket; do [ -s "$root/usr/lib/systemd/system/rxpath-export.$kind" ] || fails "no unit: $kind"; done
[ ! -L "$enabled" ] || fails "the timer is enabled by the installation"
in_root -V --nodeps rxpath || fails "files are not as in the package"
symbols rxpath
chroot "$root" systemctl enable --quiet rxpath-check.timer

# The same package again is what an upgrade is to its files and scripts.
echo '# changed by the site' >>"$root/etc/rxpath/check.toml"
in_root -U --replacepkgs --nodeps "$package" || fails "not installed again"
grep -q 'changed by the site' "$root/etc/rxpath/check.toml" || fails "it took the site's configuration"
[ -L "$enabled" ] || fails "it disabled the timer"

mkdir -p "$root/var/lib/rxpath/tune"
touch "$root/var/lib/rxpath/tune/journal"
in_root -e rxpath || fails "not erased"
if [ -e "$root/usr/bin/rxpath" ] || [ -L "$enabled" ]; then fails "it is still there"; fi
[ -e "$root/var/lib/rxpath/tune/journal" ] || fails "it took the journals of tune"
# RPM keeps a changed configuration under this name.
[ -e "$root/etc/rxpath/check.toml.rpmsave" ] || fails "it took the site's configuration at the end"
rm -r "$root/etc/rxpath/check.toml.rpmsave" "$root/var/lib/rxpath"

in_root -i --nodeps "$agent" || fails "rxpath-agent is not installed"
chroot "$root" rxpath --version | grep -q '(agent)' || fails "rxpath-agent does not say that it is one"
chroot "$root" rxpath export --names | grep -q '^rxpath_build_info' || fails "rxpath-agent: no metrics"
symbols rxpath-agent
in_root -e rxpath-agent || fails "rxpath-agent is not erased"
rmdir "$root/etc/rxpath" 2>/dev/null || true
files >"$work/after"
diff "$work/before" "$work/after" || fails "it left something"
echo 'rpm: both installed and erased, rxpath also installed again, symbols are found by the build id'
