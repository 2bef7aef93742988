#!/bin/sh
# Makes a container image as an OCI archive: one program and the libraries of glibc that it is linked to, nothing else: no
# shell, no package manager. Needs no daemon and no base image. The same binary gives the same bytes.
# Usage: deploy/image/build.sh NAME:TAG [RXPATH]
#   RXPATH  the program (default: that of the package rxpath-agent in target/packages, which has no traffic generator)
# The archive is target/packages/rxpath-image.tar, or $RXPATH_IMAGE; push it with
#   skopeo copy oci-archive:target/packages/rxpath-image.tar docker://NAME:TAG
set -eu
cd "$(dirname "$0")/../.."
name=${1:?name and tag of the image}
out=target/packages
archive=${RXPATH_IMAGE:-$out/rxpath-image.tar}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' HUP INT # the shell would end without the other trap
trap 'exit 143' TERM
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
created=$(date -u -d "@$SOURCE_DATE_EPOCH" +%Y-%m-%dT%H:%M:%SZ)
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml | head -n 1)

root=$work/root
mkdir -p "$root/usr/bin" "$out"
if [ -n "${2:-}" ]; then
	strip -o "$root/usr/bin/rxpath" "$2"
else
	deb=$(find $out -name 'rxpath-agent_*_amd64.deb')
	[ -n "$deb" ] || { echo 'image: no package rxpath-agent in target/packages; run tools/release.sh first, or name a program' >&2; exit 2; }
	dpkg-deb -x "$deb" "$work/deb"
	cp "$work/deb/usr/bin/rxpath" "$root/usr/bin/rxpath"
fi
ldd "$root/usr/bin/rxpath" | grep -o '/[^ ]*' | while read -r library; do install -D -m 0755 "$library" "$root$library"; done
chmod -R u=rwX,go=rX "$root"
chmod 0755 "$root/usr/bin/rxpath"

# pack DIR: a tar whose bytes depend on its contents only.
pack() { tar --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" --format=gnu -C "$1" -c .; }
layout=$work/layout
mkdir -p "$layout/blobs/sha256"
# blob FILE: moves it into the layout, prints its digest and size as JSON.
blob() {
	digest=$(sha256sum "$1" | cut -d' ' -f1)
	size=$(stat -c %s "$1")
	mv "$1" "$layout/blobs/sha256/$digest"
	printf '"digest":"sha256:%s","size":%s' "$digest" "$size"
}
pack "$root" >"$work/layer.tar"
plain=$(sha256sum "$work/layer.tar" | cut -d' ' -f1)
gzip -9n "$work/layer.tar"
layer=$(blob "$work/layer.tar.gz")
printf '{"created":"%s","architecture":"amd64","os":"linux","config":{"Entrypoint":["/usr/bin/rxpath"],"Cmd":["export"],"Labels":{"org.opencontainers.image.version":"%s","org.opencontainers.image.licenses":"MIT OR Apache-2.0"}},"rootfs":{"type":"layers","diff_ids":["sha256:%s"]}}' \
	"$created" "$version" "$plain" >"$work/config"
config=$(blob "$work/config")
type=application/vnd.oci.image
printf '{"schemaVersion":2,"mediaType":"%s.manifest.v1+json","config":{"mediaType":"%s.config.v1+json",%s},"layers":[{"mediaType":"%s.layer.v1.tar+gzip",%s}]}' \
	$type $type "$config" $type "$layer" >"$work/manifest"
manifest=$(blob "$work/manifest")
printf '{"schemaVersion":2,"manifests":[{"mediaType":"%s.manifest.v1+json",%s,"annotations":{"org.opencontainers.image.ref.name":"%s"}}]}' \
	$type "$manifest" "$name" >"$layout/index.json"
printf '{"imageLayoutVersion":"1.0.0"}' >"$layout/oci-layout"
chmod -R u=rwX,go=rX "$layout"
pack "$layout" >"$archive"
echo "image: $name, $(stat -c %s "$archive") bytes, $(echo "$manifest" | grep -o 'sha256:[0-9a-f]*')"
