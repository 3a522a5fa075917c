# shellcheck shell=bash
# Copyright 2026 The prober_exporter Authors
# SPDX-License-Identifier: Apache-2.0
#
# What the scripts of the end-to-end suites have in common; to be sourced.

# missing REASON: the suite cannot run, and says why.
missing() {
	echo "$(basename "$0" .sh) cannot run: $*" >&2
	exit 1
}

# needs COMMAND[|COMMAND...]=PACKAGE...: installs Debian's package of each command that is
# not there under any of its names, or as a file. Nothing that it brings is started.
needs() (
	lacking() {
		local need command commands
		for need; do
			IFS='|' read -ra commands <<<"${need%=*}"
			for command in "${commands[@]}"; do
				command -v "$command" >/dev/null && continue 2
				[[ $command = /* && -e $command ]] && continue 2
			done
			echo "${need#*=}"
		done | sort -u
	}
	mapfile -t packages < <(lacking "$@")
	[ ${#packages[@]} -gt 0 ] || exit 0
	{ command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; } || missing "install what provides: ${packages[*]}"
	echo "installing ${packages[*]}" >&2
	if [ ! -e /usr/sbin/policy-rc.d ]; then
		trap 'rm -f /usr/sbin/policy-rc.d' EXIT
		printf '#!/bin/sh\nexit 101\n' >/usr/sbin/policy-rc.d
		chmod +x /usr/sbin/policy-rc.d
	fi
	apt-get update -qq
	DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${packages[@]}" >/dev/null ||
		missing "apt-get cannot install ${packages[*]}"
	mapfile -t packages < <(lacking "$@")
	[ ${#packages[@]} = 0 ] || missing "apt-get has not installed ${packages[*]}"
)

# needs_namespaces FLAG...: the suite runs in mounts and processes of its own, and in what
# else these flags of unshare say, a network with a bridge among it.
needs_namespaces() {
	unshare --mount --pid --fork "$@" --mount-proc sh -c \
		'mount --make-rprivate / && mount -t tmpfs tmpfs /run && ip link add e2e type bridge' 2>/dev/null ||
		missing "this environment does not allow mount, process and network namespaces, or bridges in them (a container without privileges?)"
}

# scratch PATTERN...: makes a TMPDIR that goes with the script, and the control groups whose
# paths match go, too. The tests clean up after themselves: this is for those that are killed.
scratch() {
	TMPDIR=$(mktemp -d)
	export TMPDIR
	scratch_groups=(-false)
	local pattern
	for pattern; do
		scratch_groups+=(-o -path "$pattern")
	done
	trap scrub EXIT
}
scrub() {
	for _ in $(seq 50); do
		find /sys/fs/cgroup -depth \( "${scratch_groups[@]}" \) -type d -exec rmdir {} + 2>/dev/null || true
		rm -rf "$TMPDIR" 2>/dev/null && return
		sleep 0.1
	done
}
