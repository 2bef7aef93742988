#!/bin/sh
# Asks a kernel source tree whether it has the functions and files that `rxpath explain` and the rules of check name: each
# `name (dir/file.c)` must stand in that file, and each file must be there. `name (dir/file.c, since 6.13)` is not asked of an
# older tree.
# Usage: tools/kernel-names.sh LINUX_SOURCE. Exit 1: a name is missing.
set -eu
tree=${1:?usage: tools/kernel-names.sh LINUX_SOURCE}
cd "$(dirname "$0")/.."
[ -f "$tree/net/core/dev.c" ] || { echo "kernel-names: $tree: no kernel source (net/core/dev.c is missing)" >&2; exit 2; }

named=$(mktemp)
trap 'rm -f "$named"' EXIT
# One line a pair: function, file. A file alone has `-` as its function.
grep -hoE '([A-Za-z_][A-Za-z0-9_]*(\(\))? \()?[a-z]*/?(net|kernel|drivers|include|mm|fs|block|lib|arch)/[a-z0-9_/.-]+\.[chS](, since [0-9.]+)?' \
	crates/rxpath/src/cmd/explain/*.toml crates/rxpath-tune/src/rules/*.rs crates/rxpath-tune/src/rules/*/*.rs |
	sed -E 's/, since / /; s/^([a-z0-9_]*_[a-z0-9_]*)(\(\))? \((.*)$/\1 \3/; t; s/^(.*\()?(.*)$/- \2/' |
	grep -v ' udev/' | sort -u >"$named"
version=$(sed -nE 's/^(VERSION|PATCHLEVEL) = //p' "$tree/Makefile" | head -n 2 | paste -sd .)

missing=0
while read -r function file since; do
	if [ -n "$since" ] && [ "$(printf '%s\n' "$since" "$version" | sort -V | head -n 1)" != "$since" ]; then
		continue
	elif [ ! -f "$tree/$file" ]; then
		echo "missing file: $file"
		missing=$((missing + 1))
	elif [ "$function" != - ] && ! grep -qw "$function" "$tree/$file"; then
		echo "missing function: $function in $file"
		missing=$((missing + 1))
	fi
done <"$named"
echo "$(wc -l <"$named") names, $missing missing"
[ "$missing" -eq 0 ]
