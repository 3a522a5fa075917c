// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package kubernetes

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// process returns the process of a running container; 0 if there is none.
func (p *pod) process(name string) int {
	_, id, _ := strings.Cut(p.now().container(name).ContainerID, "://")
	return processOf(id)
}

// processOf finds the first process of a container by its control group. A kubelet's exec puts other
// processes there, one hierarchy after the other.
func processOf(id string) (first int) {
	if id == "" {
		return 0
	}
	found, _ := filepath.Glob("/proc/[0-9]*/cgroup")
	for _, file := range found {
		if text, err := os.ReadFile(file); err == nil && bytes.Contains(text, []byte(id)) {
			if pid, err := strconv.Atoi(strings.Split(file, "/")[2]); err == nil && (first == 0 || pid < first) {
				first = pid
			}
		}
	}
	return first
}

// networkOf returns the name of a process's network, which all processes of its pod share.
func networkOf(pid int) string {
	name, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/net", pid))
	if err != nil {
		return ""
	}
	return name
}

// inNetwork reports whether a program runs in a network.
func inNetwork(network, program string) bool {
	found, _ := filepath.Glob("/proc/[0-9]*/comm")
	for _, file := range found {
		name, err := os.ReadFile(file)
		if err != nil || string(name) != program+"\n" {
			continue
		}
		if pid, err := strconv.Atoi(strings.Split(file, "/")[2]); err == nil && networkOf(pid) == network && runs(pid) {
			return true
		}
	}
	return false
}

// runs reports whether a process still runs.
func runs(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !bytes.Contains(stat, []byte(") Z "))
}

// secured checks that a container's process has no unneeded privileges, and cannot write to its root
// file system.
func (p *pod) secured(name string) {
	p.t.Helper()
	pid := p.process(name)
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		p.t.Fatal(err)
	}
	for _, want := range []string{
		"Uid:\t65534\t65534\t65534\t65534\n", "Gid:\t65534\t65534\t65534\t65534\n", "Groups:\t65534 \n", "NoNewPrivs:\t1\n", "Seccomp:\t2\n",
		"CapInh:\t0000000000000000\n", "CapPrm:\t0000000000000000\n", "CapEff:\t0000000000000000\n", "CapBnd:\t0000000000000000\n", "CapAmb:\t0000000000000000\n",
	} {
		if !strings.Contains(string(status), "\n"+want) {
			p.t.Errorf("%s runs without %q:\n%s", name, want, status)
		}
	}
	mounts, err := os.ReadFile(fmt.Sprintf("/proc/%d/mounts", pid))
	if err != nil {
		p.t.Fatal(err)
	}
	for line := range strings.Lines(string(mounts)) {
		if f := strings.Fields(line); f[1] == "/" && !strings.HasPrefix(f[3], "ro,") {
			p.t.Errorf("%s can write its root file system: %s", name, line)
		}
	}
}

// program returns the process of a program of the node.
func program(t *testing.T, name string) int {
	t.Helper()
	found, _ := filepath.Glob("/proc/[0-9]*/comm")
	for _, file := range found {
		if text, err := os.ReadFile(file); err == nil && string(text) == name+"\n" {
			pid, _ := strconv.Atoi(strings.Split(file, "/")[2])
			return pid
		}
	}
	t.Fatalf("no %s runs", name)
	return 0
}

// groupOf returns the control group of a process: of a controller in version 1, or the only group in
// version 2.
func groupOf(pid int, controller string) string {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid)) // the process may have ended
	for line := range strings.Lines(string(text)) {
		if _, rest, ok := strings.Cut(line, ":"); ok {
			names, path, _ := strings.Cut(strings.TrimSpace(rest), ":")
			for name := range strings.SplitSeq(names, ",") {
				if name == controller {
					return filepath.Join("/sys/fs/cgroup", name, path)
				}
			}
		}
	}
	_, path, _ := strings.Cut(string(text), "0::")
	return filepath.Join("/sys/fs/cgroup", strings.TrimSpace(path))
}

// groupTime returns the processor time of a process's control group.
func groupTime(t *testing.T, pid int) time.Duration {
	t.Helper()
	if text, err := os.ReadFile(filepath.Join(groupOf(pid, "cpuacct"), "cpuacct.usage")); err == nil {
		ns, _ := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
		return time.Duration(ns)
	}
	text, err := os.ReadFile(filepath.Join(groupOf(pid, "cpu"), "cpu.stat"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "usage_usec ")
	number, _, _ := strings.Cut(rest, "\n")
	us, _ := strconv.ParseInt(number, 10, 64)
	return time.Duration(us) * time.Microsecond
}

// processStat returns the fields of /proc/PID/stat from the third, the state, on.
func processStat(t *testing.T, pid int) []string {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	return strings.Fields(rest)
}

// parent returns the parent of a process.
func parent(t *testing.T, pid int) int {
	t.Helper()
	ppid, err := strconv.Atoi(processStat(t, pid)[1])
	if err != nil {
		t.Fatal(err)
	}
	return ppid
}

// processTime returns the processor time of a process and of all children that it has waited for.
func processTime(t *testing.T, pid int) (all time.Duration) {
	t.Helper()
	for _, field := range processStat(t, pid)[11:15] {
		ticks, err := strconv.Atoi(field)
		if err != nil {
			t.Fatal(err)
		}
		all += time.Duration(ticks) * 10 * time.Millisecond
	}
	return all
}
