#!/usr/bin/env bash
# Copyright 2026 The prober_exporter Authors
# SPDX-License-Identifier: Apache-2.0
#
# Runs the tests of the mixin, and the end-to-end tests against a real Prometheus and a
# real Alertmanager, all on loopback. It installs them if there are none and it may;
# arguments go to go test.
set -euo pipefail
cd "$(dirname "$0")/.."

# shellcheck source=e2e/needs.sh
. e2e/needs.sh

[ "$(uname -s)" = Linux ] || missing "it needs Linux"

needs prometheus=prometheus promtool=prometheus prometheus-alertmanager=prometheus-alertmanager amtool=prometheus-alertmanager

(cd mixin && PROBER_REQUIRE_ALL=1 go test -count=1 .)
go test -tags e2e -count=1 -timeout 10m -v "$@" ./e2e/prometheus
