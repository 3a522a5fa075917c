// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prober-exporter/prober_exporter/internal/testutil"
)

// dockerWorld is a Docker Engine in namespaces of its own, with all its data in one directory.
// The socket is in the file system, where everybody sees it. Addresses of containers exist only
// inside.
type dockerWorld struct {
	dir, socket string
	podman      bool // the daemon is Podman's service, not a Docker Engine
	holder      int  // the first process inside
	daemon      *exec.Cmd
	groups      string // the name of the control groups
}

// newDockerWorld starts a Docker Engine that has the image of the application. The engine ends
// with the test, however the test ends.
func newDockerWorld(t *testing.T) *dockerWorld { return newContainerWorld(t, false) }

// newPodmanWorld starts Podman's service instead.
func newPodmanWorld(t *testing.T) *dockerWorld { return newContainerWorld(t, true) }

func newContainerWorld(t *testing.T, podman bool) *dockerWorld {
	t.Helper()
	dir, err := os.MkdirTemp("", "e2e-docker-") //nolint:usetesting // t.TempDir is too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	w := &dockerWorld{
		podman: podman,
		dir:    dir,
		socket: filepath.Join(dir, "sock", "docker.sock"),
		groups: fmt.Sprintf("e2e-docker-%d", os.Getpid()),
	}
	t.Cleanup(func() { w.remove(t) })
	for _, sub := range []string{"sock", "data", "app", "agent"} {
		if err := os.Mkdir(filepath.Join(dir, sub), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(dir, 0o755); err != nil { // an agent that runs as nobody has to pass
		t.Fatal(err)
	}

	inside := exec.Command("unshare", "--mount", "--pid", "--fork", "--kill-child", "--net", "--mount-proc",
		"sh", "testdata/docker/inside.sh")
	inside.Stderr = os.Stderr
	out, err := inside.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	// The first process ends with this pipe, and so with this process, even if that is
	// killed.
	alive, err := inside.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := inside.Start(); err != nil {
		t.Fatalf("make namespaces: %v", err)
	}
	t.Cleanup(func() {
		alive.Close()
		inside.Wait()
	})
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "ready\n" {
		t.Fatalf("namespaces cannot be made ready here: %q, %v", line, err)
	}
	w.holder = dockerChild(t, inside.Process.Pid)
	w.startDaemon(t)
	w.build(t)
	return w
}

// dockerChild returns the only child of a process.
func dockerChild(t *testing.T, pid int) int {
	t.Helper()
	var child int
	testutil.Within(t, 10*time.Second, "the process has a child", func() bool {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
		child, _ = strconv.Atoi(strings.TrimSpace(string(text)))
		return child != 0
	})
	return child
}

// inside returns a command that runs in the daemon's namespaces.
func (w *dockerWorld) inside(args ...string) *exec.Cmd {
	return exec.Command("nsenter", append([]string{"-t", strconv.Itoa(w.holder), "-m", "-p", "-n", "--"}, args...)...)
}

// startDaemon starts the daemon and waits until it answers.
func (w *dockerWorld) startDaemon(t *testing.T) {
	t.Helper()
	log, err := os.OpenFile(filepath.Join(w.dir, "dockerd.log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	command := []string{
		"dockerd", "--data-root", filepath.Join(w.dir, "data"), "--exec-root", "/run/dock",
		"--pidfile", "/run/dockerd.pid", "-H", "unix://" + w.socket, "--live-restore",
		"--bip", "198.51.100.1/24", "--default-address-pool", "base=192.0.2.0/24,size=28",
		"--cgroup-parent", "/" + w.groups,
	}
	if w.podman {
		command = []string{
			"podman", "--root", filepath.Join(w.dir, "data"), "--runroot", "/run/pod",
			"system", "service", "-t", "0", "unix://" + w.socket,
		}
	}
	w.daemon = w.inside(command...)
	w.daemon.Env = append(os.Environ(), "CONTAINERS_CONF="+w.podmanConf(t))
	w.daemon.Stdout, w.daemon.Stderr = log, log
	if err := w.daemon.Start(); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(60 * time.Second); ; {
		if _, err := w.try("version"); err == nil {
			return
		} else if time.Now().After(end) {
			text, _ := os.ReadFile(log.Name())
			t.Fatalf("the daemon does not answer: %v\n%s", err, text)
		}
		dockerTick()
	}
}

// podmanConf writes the configuration of Podman for a machine without systemd.
func (w *dockerWorld) podmanConf(t *testing.T) string {
	t.Helper()
	file := filepath.Join(w.dir, "containers.conf")
	text := fmt.Sprintf("[engine]\nruntime = \"runc\"\ncgroup_manager = \"cgroupfs\"\nevents_logger = \"file\"\n" +
		"[containers]\nlog_driver = \"k8s-file\"\n" +
		"[network]\nnetwork_backend = \"netavark\"\ndefault_subnet = \"198.51.100.0/24\"\n")
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}

// stopDaemon ends the daemon like a service manager. The containers live on.
func (w *dockerWorld) stopDaemon(t *testing.T) {
	t.Helper()
	pid := dockerChild(t, w.daemon.Process.Pid)
	if err := syscall.Kill(pid, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	w.daemon.Wait()
}

// remove clears away everything that outlives the namespaces.
func (w *dockerWorld) remove(t *testing.T) {
	if t.Failed() {
		if text, err := os.ReadFile(filepath.Join(w.dir, "dockerd.log")); err == nil {
			t.Logf("the daemon's last words:\n%s", text[max(0, len(text)-4096):])
		}
	}
	if w.daemon != nil && w.daemon.ProcessState == nil {
		w.daemon.Wait() // the daemon has been killed
	}
	names := []string{w.groups}
	if w.podman {
		names = append(names, "libpod_parent") // a name without choice; a group with other processes stays
	}
	for _, name := range names {
		found, _ := filepath.Glob("/sys/fs/cgroup/*/" + name)
		for _, tree := range append(found, "/sys/fs/cgroup/"+name) {
			w.removeGroups(tree)
		}
	}
	if err := os.RemoveAll(w.dir); err != nil {
		t.Errorf("clean up: %v", err)
	}
}

// removeGroups removes a tree of control groups. A group can go when it is empty, which is a
// little after the end of its last process.
func (w *dockerWorld) removeGroups(tree string) {
	for range 250 {
		if _, err := os.Stat(tree); err != nil {
			return
		}
		exec.Command("find", tree, "-depth", "-type", "d", "-exec", "rmdir", "{}", ";").Run()
		dockerTick()
	}
}

// build makes the images of the application and, as in the repository, of the agent.
func (w *dockerWorld) build(t *testing.T) {
	t.Helper()
	for binary, pkg := range map[string]string{"app/app": "./testdata/docker/app", "agent/prober_exporter": ".."} {
		build := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", filepath.Join(w.dir, binary), pkg)
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", build, err, out)
		}
	}
	w.docker(t, "build", "-q", "-t", "app:e2e", "-f", "testdata/docker/Dockerfile", filepath.Join(w.dir, "app"))
	w.docker(t, "build", "-q", "-t", "agent:e2e", "-f", "../Dockerfile", "--build-arg", "BASE=scratch", filepath.Join(w.dir, "agent"))
}

// try runs Docker's own client and returns its output.
func (w *dockerWorld) try(args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	client := exec.CommandContext(ctx, "docker", args...)
	client.Env = append(os.Environ(), "DOCKER_HOST=unix://"+w.socket, "DOCKER_BUILDKIT=0", "DOCKER_CONFIG="+w.dir)
	var out, errs bytes.Buffer
	client.Stdout, client.Stderr = &out, &errs
	if err := client.Run(); err != nil {
		return out.String(), fmt.Errorf("docker %q: %w: %s", args, err, errs.Bytes())
	}
	return strings.TrimSpace(out.String()), nil
}

// docker is like try, but a failure ends the test.
func (w *dockerWorld) docker(t *testing.T, args ...string) string {
	t.Helper()
	out, err := w.try(args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// run starts a container that ends with the test.
func (w *dockerWorld) run(t *testing.T, name string, args ...string) {
	t.Helper()
	t.Cleanup(func() { w.try("rm", "-f", name) })
	w.docker(t, append([]string{"run", "-d", "--name", name}, args...)...)
}

// dockerTick is the pause between two looks.
func dockerTick() {
	timer := time.NewTimer(20 * time.Millisecond)
	defer timer.Stop()
	<-timer.C
}
