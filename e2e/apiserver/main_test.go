// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Package apiserver tests the source kubernetes and rewritten manifests against a real API
// server. etcd and kube-apiserver run on loopback, and the tests act as a kubelet would. `make
// e2e-apiserver` builds the programs and runs the tests.
package apiserver

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
)

const (
	bin     = "../../bin/apiserver"                           // the programs
	scratch = "/run/prober-e2e"                               // in the private mounts, and gone with them
	account = "/var/run/secrets/kubernetes.io/serviceaccount" // where a kubelet puts a service account's files
	inside  = "PROBER_E2E_INSIDE"                             // set in the process with private mounts
)

// kube is the cluster that all tests use.
var kube *cluster

// TestMain runs the tests again in private mounts, so that the files of a service account can
// lie where a pod has them. The other files of the tests go with the mounts. All processes end
// with this process, however it ends.
func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintf(os.Stderr, "e2e-apiserver cannot run: %v\n", err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (int, error) {
	if os.Getenv(inside) == "" {
		return again()
	}
	if err := mounts(); err != nil {
		return 0, err
	}
	c, err := newCluster()
	if err != nil {
		return 0, err
	}
	defer c.stop()
	kube = c
	return m.Run(), nil
}

// again runs this program again in private mounts, as root or in a user namespace.
func again() (int, error) {
	for _, name := range []string{"etcd", "kube-apiserver", "prober_exporter"} {
		if _, err := os.Stat(filepath.Join(bin, name)); err != nil {
			return 0, fmt.Errorf("a program is missing: %w: make e2e-apiserver builds it", err)
		}
	}
	runtime.LockOSThread() // the children die with this thread
	attr := &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	if os.Getuid() != 0 {
		attr.Cloneflags |= syscall.CLONE_NEWUSER
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
	cmd.Env = append(os.Environ(), inside+"=1")
	if os.Getuid() == 0 {
		cmd.Env = append(cmd.Env, inside+"_ROOT=1")
	}
	cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = os.Stdout, os.Stderr, attr
	if err := cmd.Start(); err != nil {
		return 0, fmt.Errorf("private mounts need root or unprivileged user namespaces: %w", err)
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); err != nil && !errors.As(err, &exit) {
		return 0, err
	}
	return cmd.ProcessState.ExitCode(), nil
}

func mounts() error {
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make the mounts private: %w", err)
	}
	over, err := filepath.EvalSymlinks("/var/run")
	if err != nil {
		return err
	}
	for _, dir := range []string{"/run", over} {
		if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "mode=755"); err != nil {
			return fmt.Errorf("mount a tmpfs over %s: %w", dir, err)
		}
		if over == "/run" {
			break
		}
	}
	for _, dir := range []string{scratch, account} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	if os.Getenv(inside+"_ROOT") == "" {
		return nil
	}
	return os.Chown(scratch, nobody, nobody)
}
