#!/bin/sh
# Copyright 2026 The prober_exporter Authors
# SPDX-License-Identifier: Apache-2.0
#
# The first process of the namespaces that the daemon and its containers live in. It
# makes them ready, says so, and reaps what the daemon leaves behind. With its end all
# else ends.
set -eu
mount --make-rprivate /
# Where the daemons would leave what is not in the directory that they are given.
for place in /run /var/lib /dev/shm; do
	mount -t tmpfs tmpfs "$place"
done
ip link set lo up
echo ready
# Until whoever started it closes its input, or dies.
cat >/dev/null
