#!/usr/bin/env bash
# Copyright 2026 The prober_exporter Authors
# Licensed under the Apache License, Version 2.0; see LICENSE.
#
# Runs the tests of the mixin, and the end-to-end tests against a real Prometheus and a
# real Alertmanager, all on loopback. It installs them if there are none and it may;
# arguments go to go test.
set -euo pipefail
cd "$(dirname "$0")/.."

missing() {
	echo "e2e-prometheus cannot run: $*" >&2
	exit 1
}

[ "$(uname -s)" = Linux ] || missing "it needs Linux"

declare -A package=(
	[prometheus]=prometheus [promtool]=prometheus [prometheus-alertmanager]=prometheus-alertmanager [amtool]=prometheus-alertmanager
)
lacking() {
	for command in "${!package[@]}"; do
		command -v "$command" >/dev/null || echo "${package[$command]}"
	done | sort -u | xargs
}
if [ -n "$(lacking)" ]; then
	command -v apt-get >/dev/null || missing "install what provides: $(lacking)"
	[ "$(id -u)" = 0 ] || missing "install what provides: $(lacking)"
	echo "installing $(lacking)" >&2
	# Nothing is to be started: the tests start their own.
	if [ ! -e /usr/sbin/policy-rc.d ]; then
		printf '#!/bin/sh\nexit 101\n' >/usr/sbin/policy-rc.d
		chmod +x /usr/sbin/policy-rc.d
		trap 'rm -f /usr/sbin/policy-rc.d' EXIT
	fi
	apt-get update -qq
	# shellcheck disable=SC2046 # a word each
	DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $(lacking) >/dev/null ||
		missing "apt-get cannot install $(lacking)"
	[ -z "$(lacking)" ] || missing "apt-get has not installed $(lacking)"
fi

(cd mixin && CI=true go test -count=1 .)
go test -tags e2e -count=1 -timeout 10m -v "$@" ./e2e/prometheus
