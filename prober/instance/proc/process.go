// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

// Package proc reads processes and listening sockets from the kernel, for the sources
// that look at the machine themselves.
package proc

import (
	"cmp"
	"strconv"
	"strings"
)

// Process identifies one process of this boot.
type Process struct {
	PID   int
	Start uint64 // in ticks since boot, as in /proc/PID/stat
}

// Before orders processes by age. Within one tick the smaller PID is the parent's.
func (p Process) Before(q Process) bool {
	return cmp.Or(cmp.Compare(p.Start, q.Start), cmp.Compare(p.PID, q.PID)) < 0
}

// Life returns the ID of the process's life. boot is a part of the kernel's boot ID.
func (p Process) Life(boot string) string {
	return boot + "/" + strconv.Itoa(p.PID) + "/" + strconv.FormatUint(p.Start, 10)
}

// OfLife returns the process of a life, whose ID may have an appendix behind a slash.
func OfLife(life string) (p Process, ok bool) {
	parts := strings.SplitN(life, "/", 4)
	if len(parts) < 3 {
		return Process{}, false
	}
	pid, err1 := strconv.Atoi(parts[1])
	start, err2 := strconv.ParseUint(parts[2], 10, 64)
	return Process{PID: pid, Start: start}, err1 == nil && err2 == nil && pid > 0
}
