#!/bin/sh
# Installs, installs again and erases the .rpm in a fresh system, by `rpm --root`; tools/package-test.sh runs it. Needs root.
#
# The system is a Debian: its shell runs the scripts of the package. No system with RPM's own database is needed, so what the
# package requires is compared with what every such system has, and not resolved.
# With rpmlint its errors are failures too. Without rpm nothing is done.
# Usage: tools/package-test-rpm.sh ROOT.tar
set -eu
cd "$(dirname "$0")/.."
tar=${1:?the archive of a system, of tools/package-test.sh}
command -v rpm >/dev/null || { echo 'rpm: left out, it is not installed (apt-get install rpm)'; exit 0; }
package=$(find target/packages -name 'rxpath-*.x86_64.rpm')
[ -n "$package" ] || { echo 'package-test: no .rpm in target/packages; run tools/release.sh first' >&2; exit 2; }
fails() { echo "package-test: rpm: $*" >&2; exit 1; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/root
mkdir "$root"
tar -C "$root" -xf "$tar"
in_root() { rpm --root "$root" --dbpath /var/lib/rpm "$@"; }
# Files of the system, without those of the database.
files() { (cd "$root" && find etc usr var/lib -path var/lib/rpm -prune -o -print | sort); }
# A link into the system: seen from here it points to nothing.
enabled=$root/etc/systemd/system/timers.target.wants/rxpath-check.timer

rpm -K --nosignature "$package" >/dev/null || fails "its digests are wrong"
# The libraries that tools/release.sh names, the shell, and features of rpm itself.
if rpm -qp --requires "$package" 2>/dev/null | grep -Ev '^(/bin/sh|/usr/bin/sh|glibc|libgcc|elfutils-libelf|zlib|libc\.so|libm\.so|ld-linux|rtld\(|rpmlib\(|config\()'; then
	fails "it requires what not every system has"
fi
if command -v rpmlint >/dev/null; then
	rpmlint "$package" >"$work/lint" 2>&1 || true
	if grep ' E: ' "$work/lint"; then fails "rpmlint has errors"; fi
	echo 'rpmlint: no error'
else
	echo 'rpmlint: left out, it is not installed'
fi

in_root --initdb
files >"$work/before"
in_root -i --nodeps "$package" || fails "not installed"
chroot "$root" rxpath --version
chroot "$root" rxpath export --names | grep -q '^rxpath_build_info' || fails "no metrics"
[ -s "$root/usr/lib/systemd/system/rxpath-export.service" ] || fails "no unit"
[ ! -L "$enabled" ] || fails "the timer is enabled by the installation"
in_root -V --nodeps rxpath || fails "files are not as in the package"
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
rmdir "$root/etc/rxpath" 2>/dev/null || true
files >"$work/after"
diff "$work/before" "$work/after" || fails "it left something"
echo 'rpm: installed, installed again, erased'
