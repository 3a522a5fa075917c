// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"bytes"
	"os"
	"strconv"
	"strings"
)

// containerPID reports whether a process of a container, by the daemon's number, has the
// same number for the agent. The daemon may count in another process namespace, where
// the number means somebody else, so three things must hold of the process that the
// agent finds: it is in a cgroup of the container; the container's namespace is one
// below that of the agent (it has two numbers, as it has for the daemon); and it is
// the container's first process if, and only if, that is what first says.
//
// A container in the daemon's own namespace never passes. Proc is where the process file
// system is.
func containerPID(proc string, pid int, container string, first bool) bool {
	if pid <= 1 || container == "" {
		return false
	}
	dir := proc + "/" + strconv.Itoa(pid)
	groups, err := os.ReadFile(dir + "/cgroup")
	if err != nil || !bytes.Contains(groups, []byte(container)) {
		return false
	}
	status, err := os.ReadFile(dir + "/status")
	return err == nil && nestedPID(string(status), first)
}

// nestedPID reports what containerPID asks of the numbers of a process.
func nestedPID(status string, first bool) bool {
	for line := range strings.Lines(status) {
		if numbers, ok := strings.CutPrefix(line, "NSpid:"); ok {
			fields := strings.Fields(numbers)
			return len(fields) == 2 && (fields[1] == "1") == first
		}
	}
	return false
}
