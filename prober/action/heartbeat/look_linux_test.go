// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package heartbeat

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/prober-exporter/prober_exporter/internal/needs"
)

// hang mounts a file system that answers nothing, like NFS without its server. wake makes every
// request fail.
func hang(t *testing.T) (dir string, wake func()) {
	t.Helper()
	fuse, err := unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		needs.Missing(t, fmt.Errorf("/dev/fuse: %w", err))
	}
	dir = t.TempDir()
	options := fmt.Sprintf("fd=%d,rootmode=40000,user_id=0,group_id=0", fuse)
	if err := unix.Mount("silent", dir, "fuse", 0, options); err != nil {
		unix.Close(fuse)
		needs.Missing(t, fmt.Errorf("a mount: %w", err))
	}
	awake := false
	wake = func() {
		if !awake {
			awake = true
			unix.Close(fuse)
		}
	}
	t.Cleanup(func() {
		wake()
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir, wake
}

// A look that hangs keeps no attempt beyond its timeout, and says nothing about the target. However
// many attempts follow, there is one look at the file, and its end ends everything.
func TestLookThatHangs(t *testing.T) {
	dir, wake := hang(t)
	p := inFile(t, dir)
	p.probe.Timeout = 20 * time.Millisecond
	before := runtime.NumGoroutine()
	for range 5 {
		began := time.Now()
		p.says("a file system that hangs", "unknown local_file")
		if took := time.Since(began); took < p.probe.Timeout {
			t.Errorf("took %v, want %v at least", took, p.probe.Timeout)
		}
	}
	if more := runtime.NumGoroutine() - before; more > 1 {
		t.Errorf("%d goroutines more, want 1 at most", more)
	}
	other := inFile(t, t.TempDir())
	other.touch(0)
	other.says("another file system", "success")
	began := time.Now()
	if p.looks.Wait(p.probe.Timeout); time.Since(began) < p.probe.Timeout {
		t.Error("nobody has waited for the look")
	}
	wake()
	p.looks.Wait(time.Minute)
	if len(p.looks.of) != 0 {
		t.Errorf("%d looks have not ended", len(p.looks.of))
	}
}

// A file that the agent may not look at, or that leads nowhere, says nothing about the target.
// Neither does a missing directory, which may be a volume that the agent does not have, unless the
// agent has seen the file before.
func TestUnreadable(t *testing.T) {
	dir := t.TempDir()
	p := inFile(t, dir)
	if err := os.Symlink(p.probe.Heartbeat.File, p.probe.Heartbeat.File); err != nil {
		t.Fatal(err)
	}
	p.says("a loop", "unknown local_file")

	p = inFile(t, filepath.Join(dir, "volume"))
	p.says("no directory", "unknown local_file")
	if err := os.Mkdir(filepath.Join(dir, "volume"), 0o700); err != nil {
		t.Fatal(err)
	}
	p.says("no file", "failed no_heartbeat")
	p.touch(0)
	p.says("a beat", "success")
	if err := os.RemoveAll(filepath.Join(dir, "volume")); err != nil {
		t.Fatal(err)
	}
	p.says("no directory any more", "failed no_heartbeat")
}

// Without the right to search the directory, the agent cannot know whether there is a file.
func TestNoRights(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0); err != nil {
		t.Fatal(err)
	}
	err := make(chan error)
	go func() {
		// The thread ends with its goroutine, and with the thread its user ID for files.
		runtime.LockOSThread()
		if os.Getuid() == 0 {
			unix.SetfsuidRetUid(65534)
		}
		_, failure := lookAt(filepath.Join(dir, "beat"))
		err <- failure
	}()
	if got := <-err; !os.IsPermission(got) {
		t.Errorf("got error %v, want a lack of rights", got)
	}
}

// A look that began before an attempt may have seen an old file, so the attempt looks again.
func TestLooksAfresh(t *testing.T) {
	p := inFile(t, t.TempDir())
	p.touch(0)
	is := &look{done: make(chan struct{})}
	is.found = sight{began: time.Now().Add(-time.Minute), missing: true}
	p.looks.begin(p.probe.Heartbeat.File) // makes the maps
	p.looks.Wait(time.Minute)
	p.looks.of[p.probe.Heartbeat.File] = is
	go func() {
		p.looks.mu.Lock()
		delete(p.looks.of, p.probe.Heartbeat.File)
		p.looks.mu.Unlock()
		close(is.done)
	}()
	p.says("after an old look", "success")
}
