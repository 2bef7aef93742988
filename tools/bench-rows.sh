# Benchmarks one after the other, for the tools that read this file.
# shellcheck shell=sh
# The exit status of the whole: 0 while every benchmark reached its goal.
status=0

# worst STATUS: notes the exit status of one more benchmark. A missed goal (1) hides every other one, 4 (inconclusive) none; of
# others the first stays.
worst() {
	case $status:$1 in
	*:0 | 1:*) ;;
	0:* | 4:* | *:1) status=$1 ;;
	esac
}

# bench_row ROW FILE RXPATH: runs one benchmark to its end and prints whether it reached its goal.
bench_row() {
	[ -x "$2" ] || { echo "$(basename "$0" .sh): no $2" >&2; exit 2; }
	echo "== $2"
	now=0
	"$2" "$3" || now=$?
	case $now in
	0) echo "$1: reached" ;;
	4) echo "$1: inconclusive" ;;
	*) echo "$1: not reached (exit status $now)" ;;
	esac
	worst $now
}
