#!/usr/bin/env bash
# Copyright 2026 The prober_exporter Authors
# SPDX-License-Identifier: Apache-2.0
#
# Runs the pods of examples/kubernetes on a real kubelet with a real containerd, which run
# in namespaces of their own and leave nothing behind. It installs what of the system is
# not there; `make e2e-kubernetes` and `make e2e-act` build the rest. Arguments go to go
# test.
set -euo pipefail
cd "$(dirname "$0")/.."

# shellcheck source=e2e/needs.sh
. e2e/needs.sh

[ "$(uname -s)" = Linux ] || missing "it needs Linux"
[ "$(id -u)" = 0 ] || missing "it needs root, for namespaces and control groups"

needs containerd=containerd ctr=containerd runc=runc iptables=iptables ip=iproute2 unshare=util-linux mount=mount find=findutils \
	'/usr/lib/cni/bridge|/opt/cni/bin/bridge=containernetworking-plugins'

needs_namespaces --net --uts --ipc
scratch '*/e2e-kubernetes-*'

cd e2e/kubernetes
# The tests wait for minutes and work for moments: all of them at a time.
go test -count=1 -parallel 16 -timeout 15m -v "$@" .
