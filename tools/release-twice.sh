#!/bin/sh
# Builds the release in two folders with different names, and compares the SHA-256 of all that comes out. An hour or more.
# Usage: tools/release-twice.sh [--native]
set -eu
cd "$(dirname "$0")/.."
# The clones have what is committed.
[ -z "$(git status --porcelain --untracked-files=no)" ] || echo 'release-twice: what is not committed is not built' >&2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' HUP INT TERM # the shell would end without the other trap
for copy in one another-name; do
	git clone --quiet . "$work/$copy"
	# The tools, not what they built.
	mkdir "$work/$copy/target"
	if [ -d target/package-tools ]; then cp -a target/package-tools "$work/$copy/target/"; fi
	(cd "$work/$copy" && tools/release.sh "$@" >&2)
	packages=$work/$copy/target/packages
	# release.sh fails if it cannot make a file; a native rxpath has no symbols. Each file is compared.
	[ "$(wc -l <"$packages/SHA256SUMS")" -eq "$(find "$packages" -type f ! -name SHA256SUMS | wc -l)" ] ||
		{ echo 'release-twice: SHA256SUMS does not name all files' >&2; exit 1; }
	mv "$packages/SHA256SUMS" "$work/$copy.sums"
	rm -rf "${work:?}/$copy"
done
diff "$work/one.sums" "$work/another-name.sums" || { echo 'release-twice: two builds are not the same' >&2; exit 1; }
cat "$work/one.sums"
