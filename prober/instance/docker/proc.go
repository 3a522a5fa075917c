// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"bytes"
	"os"
	"strconv"
	"strings"
)

// containerPID reports whether the daemon's PID of a process in a container means the same
// process for the agent. In the daemon's process namespace the PID may mean another process,
// so three things must hold of the process that the agent finds: the process is in a cgroup of
// the container; the container's namespace is one below the agent's (the process has two PIDs,
// as it has for the daemon); and the process is the container's first one if, and only if,
// first is true.
//
// A container in the daemon's own namespace never passes. proc is the path of the process
// file system.
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

// nestedPID reports whether the PIDs of a process are as containerPID requires.
func nestedPID(status string, first bool) bool {
	for line := range strings.Lines(status) {
		if numbers, ok := strings.CutPrefix(line, "NSpid:"); ok {
			fields := strings.Fields(numbers)
			return len(fields) == 2 && (fields[1] == "1") == first
		}
	}
	return false
}
