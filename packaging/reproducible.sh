#!/usr/bin/env bash
# Copyright 2026 The prober_exporter Authors
# SPDX-License-Identifier: Apache-2.0
#
# reproducible.sh: builds the commit that is checked out twice, each time in a clone
# somewhere else with an empty build cache, and compares what comes out to the bit.
# PLATFORMS says for what (default linux/amd64).
set -euo pipefail
cd "$(dirname "$0")/.."

here=$PWD
work=$(mktemp -d)
trap 'chmod -R u+w "$work" && rm -rf "$work"' EXIT

# The second differs in all that must not matter: place, depth, time zone, locale, umask.
build() {
	git clone --quiet --no-tags "$here" "$1"
	git -C "$1" checkout --quiet -B "${BRANCH:-main}" "$(git rev-parse HEAD)"
	env GOCACHE="$work/cache-$2" make --no-print-directory -C "$1" dist PLATFORMS="${PLATFORMS:-linux/amd64}"
}
build "$work/one" 1
(
	umask 077
	export TZ=Asia/Kathmandu LC_ALL=C
	build "$work/a/second/place" 2
)
cat "$work/one/dist/sha256sums.txt"
cmp "$work/one/dist/sha256sums.txt" "$work/a/second/place/dist/sha256sums.txt"
echo "reproducible: two builds, one hash"
