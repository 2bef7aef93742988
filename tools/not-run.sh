#!/bin/sh
# Says that a check does not run here because its program is missing. Where RXPATH_REQUIRE names it (names with blanks between them),
# that is a failure.
# Usage: tools/not-run.sh PROGRAM HOW-TO-INSTALL-IT
set -eu
echo "skipped: $1: it is not installed ($2)"
case " ${RXPATH_REQUIRE:-} " in
*" $1 "*)
	echo "$1 is required here (RXPATH_REQUIRE)" >&2
	exit 1
	;;
esac
