#!/usr/bin/env bash
# Copyright 2026 The prober_exporter Authors
# SPDX-License-Identifier: Apache-2.0
#
# promu.sh flags|ldflags|files|platforms: what .promu.yml says, in one line. Version,
# revision and branch are those of this clone.
set -euo pipefail
cd "$(dirname "$0")/.."

# value KEY: the text behind a key, or the lines below it without the dashes of a list.
value() {
	awk -v key="$1" '
		$0 ~ "^ *" key ":" {
			depth = match($0, /[^ ]/)
			sub(/^[^:]*: */, "")
			if (sub(/[|]?$/, "") && $0 != "") print
			within = 1
			next
		}
		within && match($0, /[^ ]/) > depth { sub(/^ *(- )?/, ""); print; next }
		{ within = 0 }
	' .promu.yml
}

text=$(value "$1" | paste -s -d ' ' -)
[ -n "$text" ] || { echo "promu.sh: .promu.yml has no $1" >&2; exit 1; }
text=${text//'{{.Version}}'/$(cat VERSION)}
text=${text//'{{.Revision}}'/$(git rev-parse HEAD 2>/dev/null || true)}
text=${text//'{{.Branch}}'/$(git rev-parse --abbrev-ref HEAD 2>/dev/null || true)}
echo "$text"
