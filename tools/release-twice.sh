#!/bin/sh
# Builds the release in two folders with different names, and compares the SHA-256 of all that comes out. An hour or more.
# Usage: tools/release-twice.sh [--native]
set -eu
cd "$(dirname "$0")/.."
# The clones have what is committed.
[ -z "$(git status --porcelain --untracked-files=no)" ] || echo 'release-twice: what is not committed is not built' >&2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for copy in one another-name; do
	git clone --quiet . "$work/$copy"
	# The tools, not what they built.
	mkdir "$work/$copy/target"
	if [ -d target/package-tools ]; then cp -a target/package-tools "$work/$copy/target/"; fi
	(cd "$work/$copy" && tools/release.sh "$@" >&2)
	mv "$work/$copy/target/packages/SHA256SUMS" "$work/$copy.sums"
	rm -rf "${work:?}/$copy"
done
# Nothing that is the same would also be the same.
[ "$(wc -l <"$work/one.sums")" -eq 6 ] || { echo 'release-twice: not three files of each package' >&2; exit 1; }
diff "$work/one.sums" "$work/another-name.sums" || { echo 'release-twice: two builds are not the same' >&2; exit 1; }
cat "$work/one.sums"
