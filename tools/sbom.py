#!/usr/bin/env python3
"""Adds to an SBOM of cargo-cyclonedx what is linked in and is no crate: libbpf, libelf and zlib, at their versions.

Usage: sbom.py FILE FOLDER-OF-LIBBPF-SYS CLANG-VERSION    (writes the SBOM to standard output; in the folder of Cargo.lock)
"""

import json
import re
import sys
from pathlib import Path


def found(path, pattern):
    match = re.search(pattern, path.read_text(errors="replace"))
    if not match:
        sys.exit(f"sbom: no version in {path}")
    return match.group(1)


def source_of_all():
    """Where the source of all three is, with its hash: LGPL asks for that of libelf. None where Cargo.lock has another one."""
    crate = r'name = "libbpf-sys"\nversion = "([^"]+)"\nsource = "registry[^"]+"\nchecksum = "([^"]+)"'
    return [
        {
            "type": "distribution",
            "url": f"https://static.crates.io/crates/libbpf-sys/libbpf-sys-{version}.crate",
            "hashes": [{"alg": "SHA-256", "content": checksum}],
        }
        for version, checksum in re.findall(crate, Path("Cargo.lock").read_text())
    ]


def main():
    sbom = json.loads(Path(sys.argv[1]).read_text())
    source = Path(sys.argv[2])
    libbpf = re.search(r"\+v(.+)$", source.name).group(1)
    linked = [
        ("libbpf", libbpf, "LGPL-2.1-only OR BSD-2-Clause", "pkg:github/libbpf/libbpf@v" + libbpf),
        ("libelf", found(source / "elfutils/NEWS", r"Version ([0-9.]+)"), "LGPL-3.0-or-later OR GPL-2.0-or-later", None),
        ("zlib", found(source / "zlib/zlib.h", r'ZLIB_VERSION "([^"]+)"'), "Zlib", None),
    ]
    for name, version, licence, purl in linked:
        purl = purl or f"pkg:generic/{name}@{version}"
        sbom["components"].append({
            "type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl,
            "licenses": [{"expression": licence}], "scope": "required",
            "externalReferences": source_of_all(),
        })
        for one in sbom.get("dependencies", []):
            if "libbpf-sys" in one["ref"]:
                one.setdefault("dependsOn", []).append(purl)
    # The compiler of the BPF programs is no part of the binary; its output is.
    sbom["metadata"].setdefault("properties", []).append({"name": "rxpath:clang", "value": sys.argv[3]})
    # A number of its own for each run would make each SBOM another one.
    sbom.pop("serialNumber", None)
    json.dump(sbom, sys.stdout, indent=1, sort_keys=True)
    print()


if __name__ == "__main__":
    main()
