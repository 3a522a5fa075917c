#!/usr/bin/env bash
# Copyright 2026 The prober_exporter Authors
# SPDX-License-Identifier: Apache-2.0
#
# Runs the tests of the status page in a real Chromium. It installs it if there is none;
# `make e2e-page` builds the agent. Arguments go to go test.
set -euo pipefail
cd "$(dirname "$0")/.."

# shellcheck source=e2e/needs.sh
. e2e/needs.sh

[ "$(uname -s)" = Linux ] || missing "it needs Linux"
needs 'chromium|chromium-browser|google-chrome=chromium'

cd e2e/page
PROBER_REQUIRE_ALL=1 go test -shuffle=on -count=1 -timeout 10m "$@" .
