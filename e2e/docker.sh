#!/usr/bin/env bash
# Copyright 2026 The prober_exporter Authors
# SPDX-License-Identifier: Apache-2.0
#
# Runs the end-to-end tests of the docker source against a real Docker Engine, and a
# real Podman, which run in namespaces of their own and leave nothing behind. It installs
# them if there are none; arguments go to go test. With COMPOSE set it runs the example
# for Docker Compose instead.
set -euo pipefail
cd "$(dirname "$0")/.."

# shellcheck source=e2e/needs.sh
. e2e/needs.sh

[ "$(uname -s)" = Linux ] || missing "it needs Linux"
[ "$(id -u)" = 0 ] || missing "it needs root, for namespaces and control groups"

needs dockerd=docker.io docker=docker.io containerd=containerd runc=runc iptables=iptables podman=podman conmon=conmon \
	/usr/lib/podman/netavark=netavark ip=iproute2 unshare=util-linux nsenter=util-linux mount=mount find=findutils
if [ -n "${COMPOSE:-}" ]; then
	needs prometheus=prometheus prometheus-alertmanager=prometheus-alertmanager busybox=busybox curl=curl
fi

needs_namespaces --net
scratch '*/e2e-docker-*' '*/libpod_parent*'

chmod 755 "$TMPDIR" # an agent that is nobody has to pass
go test -tags e2e -run "^Test${COMPOSE:-Docker}" -count=1 -timeout 20m -v "$@" ./e2e
