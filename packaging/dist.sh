#!/usr/bin/env bash
# Copyright 2026 The prober_exporter Authors
# SPDX-License-Identifier: Apache-2.0
#
# dist.sh OS/ARCH...: an archive for each platform in dist/, as .promu.yml says, named as
# Prometheus names its own, and sha256sums.txt beside them. The same commit gives the same
# bytes wherever and whenever it is built.
set -euo pipefail
cd "$(dirname "$0")/.."

version=$(cat VERSION)
ldflags=$(packaging/promu.sh ldflags)
# Flags and files are many words, and hold no quotes.
read -ra flags <<<"$(packaging/promu.sh flags)"
read -ra files <<<"$(packaging/promu.sh files)"
epoch=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
umask 022 # the modes are part of the archive
rm -rf dist
mkdir dist

for platform; do
	os=${platform%/*} arch=${platform#*/}
	name=prober_exporter-$version.$os-$arch
	binary=prober_exporter
	if [ "$os" = windows ]; then
		binary=prober_exporter.exe
	fi
	mkdir "dist/$name"
	CGO_ENABLED=0 GOOS=$os GOARCH=$arch ${GO:-go} build "${flags[@]}" -ldflags "$ldflags" -o "dist/$name/$binary" .
	cp "${files[@]}" "dist/$name/"
	chmod -R u=rwX,go=rX "dist/$name"
	tar --directory dist --sort=name --mtime="@$epoch" --owner=0 --group=0 --numeric-owner --format=ustar \
		--create "$name" | gzip --no-name --best >"dist/$name.tar.gz"
	echo "dist/$name.tar.gz"
done
(cd dist && sha256sum -- *.tar.gz >sha256sums.txt)
