// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Package kubernetes runs the pods of examples/kubernetes on a real kubelet with a real
// containerd, in namespaces of its own. There is a real API server, too, because a kubelet alone
// gives a pod no ConfigMap, and does not report how a deleted pod ends. `make e2e-kubernetes`
// builds what the package needs and runs the tests.
package kubernetes

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

const (
	bin      = "../../bin/apiserver" // where the programs of Kubernetes are
	examples = "../../examples/kubernetes/"
	scratch  = "/run/e2e"                     // ends with the private mounts
	inside   = "PROBER_E2E_KUBERNETES_INSIDE" // where the namespaces are: the folder with the images' programs
	groups   = "PROBER_E2E_KUBERNETES_GROUPS" // the name of the control groups
)

// kube is the cluster of all tests.
var kube *cluster

// TestMain runs this program again as the first process of new namespaces. When that process ends,
// everything ends except the control groups, which TestMain removes.
func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintf(os.Stderr, "e2e-kubernetes cannot run: %v\n", err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (int, error) {
	if os.Getenv(inside) == "" {
		return again()
	}
	if err := settle(); err != nil {
		return 0, err
	}
	began := time.Now()
	c, err := newCluster(os.Getenv(inside), os.Getenv(groups))
	if err != nil {
		return 0, err
	}
	fmt.Fprintf(os.Stderr, "the node is ready after %.1f s\n", time.Since(began).Seconds())
	kube = c
	return m.Run(), nil
}

// again runs this program in namespaces of its own.
func again() (int, error) {
	for _, name := range []string{"etcd", "kube-apiserver", "kubelet"} {
		if _, err := os.Stat(filepath.Join(bin, name)); err != nil {
			return 0, fmt.Errorf("a program is missing: %w: make e2e-kubernetes builds it", err)
		}
	}
	programs, err := os.MkdirTemp("", "e2e-kubernetes-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(programs)
	for name, pkg := range map[string]string{"app": "e2e/kubernetes/testdata/app/main.go", "fault": "e2e/kubernetes/testdata/fault/main.go", "pause": "e2e/kubernetes/testdata/pause/main.go", "prober_exporter": "."} {
		build := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", filepath.Join(programs, name), pkg)
		build.Dir, build.Env = "../..", append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			return 0, fmt.Errorf("%v: %w\n%s", build, err, out)
		}
	}
	name := fmt.Sprintf("e2e-kubernetes-%d", os.Getpid())
	trees, err := makeGroups(name)
	defer removeGroups(trees)
	if err != nil {
		return 0, err
	}
	runtime.LockOSThread() // the child dies with this thread
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
	cmd.Env = append(os.Environ(), inside+"="+programs, groups+"="+name)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWNET | syscall.CLONE_NEWUTS | syscall.CLONE_NEWIPC,
		Pdeathsig:  syscall.SIGKILL,
	}
	if err := cmd.Start(); err != nil {
		return 0, fmt.Errorf("namespaces need root: %w", err)
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); err != nil && !errors.As(err, &exit) {
		return 0, err
	}
	return cmd.ProcessState.ExitCode(), nil
}

// settle makes a machine of the new namespaces, with mounts, a name and a network.
func settle() error {
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make the mounts private: %w", err)
	}
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_SHARED, ""); err != nil { // among themselves
		return err
	}
	if err := syscall.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		return err
	}
	for _, dir := range []string{"/run", "/var/log", "/var/lib"} {
		if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "mode=755"); err != nil {
			return fmt.Errorf("mount a tmpfs over %s: %w", dir, err)
		}
	}
	if err := os.Mkdir(scratch, 0o755); err != nil {
		return err
	}
	// The kubelet would write these values for the whole machine, and look these names up.
	for file, content := range map[string]string{
		"/proc/sys/vm/overcommit_memory": "1\n", "/proc/sys/vm/panic_on_oom": "0\n",
		"/proc/sys/kernel/panic": "10\n", "/proc/sys/kernel/panic_on_oops": "1\n",
		"/proc/sys/kernel/keys/root_maxkeys": "1000000\n", "/proc/sys/kernel/keys/root_maxbytes": "25000000\n",
		"/etc/resolv.conf": "nameserver 127.0.0.1\n", "/etc/hosts": "127.0.0.1 localhost\n",
	} {
		if link, err := os.Readlink(file); err == nil { // the link leads into /run, which is empty now
			file = filepath.Join("/etc", link)
			if filepath.IsAbs(link) {
				file = link
			}
		}
		over := filepath.Join(scratch, strings.ReplaceAll(file[1:], "/", "."))
		if err := os.WriteFile(over, []byte(content), 0o644); err != nil {
			return err
		}
		if _, err := os.Stat(file); err != nil {
			if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, nil, 0o644)); err != nil {
				return err
			}
		}
		if err := syscall.Mount(over, file, "", syscall.MS_BIND, ""); err != nil {
			return fmt.Errorf("mount over %s: %w", file, err)
		}
	}
	if err := syscall.Sethostname([]byte(nodeName)); err != nil {
		return err
	}
	for _, args := range []string{
		"link set lo up", "link add node0 type bridge", "addr add " + nodeIP + "/24 dev node0",
		"addr add " + serviceIP + "/32 dev node0", "link set node0 up", "route add default via 192.0.2.1",
	} {
		if out, err := exec.Command("ip", strings.Fields(args)...).CombinedOutput(); err != nil {
			return fmt.Errorf("ip %s: %w: %s", args, err, out)
		}
	}
	return nil
}

// makeGroups makes the control group of all pods, in each hierarchy.
func makeGroups(name string) (trees []string, err error) {
	roots, err := filepath.Glob("/sys/fs/cgroup/*/cgroup.procs")
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat("/sys/fs/cgroup/cgroup.controllers"); err == nil { // there is only one
		roots = []string{"/sys/fs/cgroup/cgroup.procs"}
		for _, controller := range []string{"cpu", "cpuset", "memory", "hugetlb", "pids"} { // a kubelet needs them below, too
			os.WriteFile("/sys/fs/cgroup/cgroup.subtree_control", []byte("+"+controller), 0o644)
		}
	}
	for _, root := range roots {
		root = filepath.Dir(root)
		tree := filepath.Join(root, name)
		if err := os.Mkdir(tree, 0o755); err != nil {
			return trees, fmt.Errorf("make a control group: %w", err)
		}
		trees = append(trees, tree)
		for _, file := range []string{"cpuset.cpus", "cpuset.mems"} { // the first version leaves them empty
			if all, err := os.ReadFile(filepath.Join(root, file)); err == nil {
				os.WriteFile(filepath.Join(tree, file), all, 0o644)
			}
		}
	}
	return trees, nil
}

// removeGroups removes trees of control groups. A group must be empty, which it is a little after its
// last process has ended.
func removeGroups(trees []string) {
	for _, tree := range trees {
		for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline); tick() {
			exec.Command("find", tree, "-depth", "-type", "d", "-exec", "rmdir", "{}", ";").Run()
			if _, err := os.Stat(tree); err != nil {
				break
			}
		}
	}
}

// tick is the interval between two looks while a test waits.
func tick() {
	timer := time.NewTimer(10 * time.Millisecond)
	defer timer.Stop()
	<-timer.C
}
