#!/usr/bin/env bash
# Copyright 2026 The prober_exporter Authors
# Licensed under the Apache License, Version 2.0; see LICENSE.
#
# Runs the pods of examples/kubernetes on a real kubelet with a real containerd, which run
# in namespaces of their own and leave nothing behind. It installs what of the system is
# not there; `make e2e-kubernetes` builds the rest. Arguments go to go test.
set -euo pipefail
cd "$(dirname "$0")/.."

missing() {
	echo "e2e-kubernetes cannot run: $*" >&2
	exit 1
}

[ "$(uname -s)" = Linux ] || missing "it needs Linux"
[ "$(id -u)" = 0 ] || missing "it needs root, for namespaces and control groups"

declare -A package=(
	[containerd]=containerd [runc]=runc [ctr]=containerd [iptables]=iptables
	[ip]=iproute2 [unshare]=util-linux [mount]=mount [find]=findutils
)
lacking() {
	for command in "${!package[@]}"; do
		command -v "$command" >/dev/null || echo "${package[$command]}"
	done
	[ -e /usr/lib/cni/bridge ] || [ -e /opt/cni/bin/bridge ] || echo containernetworking-plugins
}
lacking=$(lacking | sort -u | xargs)
if [ -n "$lacking" ]; then
	command -v apt-get >/dev/null || missing "install what provides: $lacking"
	echo "installing $lacking" >&2
	# Nothing is to be started: the tests start their own.
	if [ ! -e /usr/sbin/policy-rc.d ]; then
		made_policy=/usr/sbin/policy-rc.d
		printf '#!/bin/sh\nexit 101\n' >/usr/sbin/policy-rc.d
		chmod +x /usr/sbin/policy-rc.d
		trap 'rm -f /usr/sbin/policy-rc.d' EXIT
	fi
	apt-get update -qq
	# shellcheck disable=SC2086 # a word each
	DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $lacking >/dev/null ||
		missing "apt-get cannot install $lacking"
	[ -z "$(lacking)" ] || missing "apt-get has not installed $(lacking | xargs)"
fi

unshare --mount --pid --fork --net --uts --ipc --mount-proc sh -c \
	'mount --make-rprivate / && mount -t tmpfs tmpfs /run && ip link add e2e type bridge' 2>/dev/null ||
	missing "this environment does not allow mount, process and network namespaces, or bridges in them (a container without privileges?)"

# The tests clean up after themselves. This is for the case that they are killed.
TMPDIR=$(mktemp -d)
export TMPDIR
cleanup() {
	[ -z "${made_policy:-}" ] || rm -f "$made_policy"
	for _ in $(seq 50); do
		find /sys/fs/cgroup -depth -path '*/e2e-kubernetes-*' -type d -exec rmdir {} + 2>/dev/null || true
		rm -rf "$TMPDIR" 2>/dev/null && return
		sleep 0.1
	done
}
trap cleanup EXIT

cd e2e/kubernetes
# The tests wait for minutes and work for moments: all of them at a time.
go test -count=1 -parallel 16 -timeout 15m -v "$@" .
