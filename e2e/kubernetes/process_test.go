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
)

// process returns the process of a container that runs, 0 if there is none.
func (p *pod) process(name string) int {
	_, id, _ := strings.Cut(p.now().container(name).ContainerID, "://")
	return processOf(id)
}

// processOf finds the first process of a container by its control group.
func processOf(id string) int {
	if id == "" {
		return 0
	}
	found, _ := filepath.Glob("/proc/[0-9]*/cgroup")
	for _, file := range found {
		if text, err := os.ReadFile(file); err == nil && bytes.Contains(text, []byte(id)) {
			pid, _ := strconv.Atoi(strings.Split(file, "/")[2])
			return pid
		}
	}
	return 0
}

// networkOf names the network of a process, which all of its pod share.
func networkOf(pid int) string {
	name, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/net", pid))
	if err != nil {
		return ""
	}
	return name
}

// inNetwork reports whether a program runs there.
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

// runs reports whether a process has not ended.
func runs(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !bytes.Contains(stat, []byte(") Z "))
}

// secured shows that a container's process has no right that it does not need, and a root
// file system that it cannot write.
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
