#!/bin/sh
# The page of `rxpath export` by two parsers of others: `promtool check metrics`, and the text parser of the Python client, which
# compares kinds and labels with the table of the reference and the buckets of histograms with their counts.
# Usage: tools/exposition-test.sh RXPATH    (root: with BPF probes)
set -eu
cd "$(dirname "$0")/.."
rxpath=$(realpath "${1:?the built program}")
python=target/exposition-tools/bin/python
[ -x $python ] || { echo 'exposition-test: the Python client is missing: tools/setup.sh exposition' >&2; exit 3; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' HUP INT TERM # the shell would end without the other trap
"$rxpath" export --once --interval 3s >"$work/page"
promtool check metrics <"$work/page" >"$work/said" 2>&1 || { cat "$work/said" >&2; exit 1; }
[ ! -s "$work/said" ] || { cat "$work/said" >&2; exit 1; }
$python - "$work/page" docs/reference/export.md <<'PYTHON'
import pathlib
import re
import sys

from prometheus_client.parser import text_string_to_metric_families

page, reference = (pathlib.Path(name).read_text() for name in sys.argv[1:])
table = {}
for name, kind, labels in re.findall(r"^\| `(rxpath_\w+)` \| (\w+) \| ([\w, ]*) \|", reference, re.M):
    table[name] = kind, {label for label in labels.split(", ") if label}
families = samples = histograms = 0
for family in text_string_to_metric_families(page):
    families += 1
    # The parser takes the end of a counter's name off.
    name = family.name + "_total" if family.name + "_total" in table else family.name
    kind, labels = table[name]
    assert kind == family.type, (name, kind, family.type)
    assert family.documentation, name
    buckets = {}
    for sample in family.samples:
        samples += 1
        own = dict(sample.labels)
        bound = own.pop("le", None)
        assert set(own) == labels, (name, own)
        assert sample.value == sample.value and abs(sample.value) != float("inf"), sample
        if kind != "gauge":
            assert sample.value >= 0, sample
        if bound is not None:
            buckets.setdefault(tuple(own.items()), []).append((float(bound), sample.value))
    for key, rows in buckets.items():
        histograms += 1
        assert rows == sorted(rows) and [n for _, n in rows] == sorted(n for _, n in rows), (name, rows)
        count = [one.value for one in family.samples if one.name == name + "_count" and tuple(one.labels.items()) == key]
        assert count == [rows[-1][1]] and rows[-1][0] == float("inf"), (name, key, count)
assert families > 20, families
print(f"exposition-test: {families} families, {samples} samples, {histograms} histograms: no error by promtool and the Python client")
PYTHON
