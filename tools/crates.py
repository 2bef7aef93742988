#!/usr/bin/env python3
"""Compares the list of crates in a binary (section .dep-v0 of cargo-auditable) with its SBOM.

Usage: crates.py BINARY SBOM    (exit status 1 if the binary has no list, or another one)
"""

import json
import subprocess
import sys
import tempfile
import zlib
from pathlib import Path


def of_binary(binary):
    with tempfile.NamedTemporaryFile() as section:
        # The section is not loaded: as raw binary, objcopy would write nothing.
        command = ["objcopy", "--dump-section", f".dep-v0={section.name}", binary, "/dev/null"]
        subprocess.run(command, capture_output=True, check=False)
        content = section.read()
    if not content:
        sys.exit(f"crates: {binary} has no list of crates")
    packages = json.loads(zlib.decompress(content))["packages"]
    return {f"{one['name']} {one['version']}" for one in packages if not one.get("root")}


def of_sbom(sbom):
    components = json.loads(Path(sbom).read_text())["components"]
    return {f"{one['name']} {one['version']}" for one in components if one["purl"].startswith("pkg:cargo/")}


def main():
    embedded, listed = of_binary(sys.argv[1]), of_sbom(sys.argv[2])
    for where, names in (("binary", embedded - listed), ("SBOM", listed - embedded)):
        if names:
            print(f"crates: only in the {where}: {', '.join(sorted(names))}", file=sys.stderr)
    if embedded != listed:
        sys.exit(1)
    print(f"{len(embedded)} crates are listed in the program, as in {Path(sys.argv[2]).name}")


if __name__ == "__main__":
    main()
