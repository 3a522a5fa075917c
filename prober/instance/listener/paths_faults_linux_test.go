// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package listener

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prober-exporter/prober_exporter/gate"
	"github.com/prober-exporter/prober_exporter/internal/needs"
	"github.com/prober-exporter/prober_exporter/prober/action/actiontest"
	"github.com/prober-exporter/prober_exporter/prober/instance/proc"
)

const pathsHelperEnv = "PROBER_TEST_PATHS"

// A source that may not look at a path says so, sees no restart, and is up: the target is treated like
// a static one.
func TestPathsDenied(t *testing.T) {
	needs.Root(t)
	path := actiontest.Socket(t)
	actiontest.ListenUnix(t, path)
	if err := os.Chmod(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	helper := exec.Command(os.Args[0], "-test.run=^TestPathsHelper$", "-test.v")
	helper.Env = append(os.Environ(), pathsHelperEnv+"="+path)
	if out, err := helper.CombinedOutput(); err != nil || !strings.Contains(string(out), "PASS: TestPathsHelper") {
		t.Errorf("%v\n%s", err, out)
	}
}

// This is no test of its own: it is what TestPathsDenied does as nobody.
func TestPathsHelper(t *testing.T) {
	path := os.Getenv(pathsHelperEnv)
	if path == "" {
		return
	}
	const nobody = 65534
	if err := errors.Join(syscall.Setgroups(nil), syscall.Setresgid(nobody, nobody, nobody), syscall.Setresuid(nobody, nobody, nobody)); err != nil {
		t.Fatal(err)
	}
	l, look := watchingPaths(t, path)
	is := look()
	if is.Phase != gate.Running || is.MaxHold != gate.Never || l.Sees("app") || !l.Up() ||
		l.Describe("app").Message != "sees no restarts: cannot look at the socket: stat "+path+": permission denied" {
		t.Errorf("got %+v, %+v, up %t", is, l.Describe("app"), l.Up())
	}
}

// A Unix socket of another network namespace is not seen, so its target is treated like a static one.
func TestPathsElsewhere(t *testing.T) {
	needs.Root(t)
	path := actiontest.Socket(t)
	helper := exec.Command(os.Args[0], "-test.run=^TestPathsServer$", "-test.v")
	helper.Env = append(os.Environ(), pathsHelperEnv+"="+path)
	helper.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	in, err := helper.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := helper.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := helper.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = in.Close(); _ = helper.Wait() }()
	for said := ""; !strings.Contains(said, "listens"); {
		var buf [1000]byte
		n, err := out.Read(buf[:])
		if said += string(buf[:n]); err != nil {
			t.Fatal(said, err)
		}
	}
	conn, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
	l, look := watchingPaths(t, path)
	if is := look(); is.Phase != gate.Running || is.MaxHold != gate.Never || l.Sees("app") {
		t.Errorf("got %+v", is)
	}
}

// This is no test of its own: it is the server of TestPathsElsewhere.
func TestPathsServer(t *testing.T) {
	path := os.Getenv(pathsHelperEnv)
	if path == "" {
		return
	}
	actiontest.ListenUnix(t, path)
	os.Stdout.WriteString("listens\n")
	os.Stdin.Read(make([]byte, 1))
}

// wall is a table of Unix sockets that a test writes.
type wall struct {
	mu    sync.Mutex
	found []proc.UnixSocket
	err   error
}

func (w *wall) set(err error, ids ...uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.found, w.err = nil, err
	for _, id := range ids {
		w.found = append(w.found, proc.UnixSocket{Socket: proc.Socket{ID: id}, File: proc.File{Inode: 1}})
	}
}

func (w *wall) Read(into []proc.UnixSocket) ([]proc.UnixSocket, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append(into, w.found...), w.err
}

func (w *wall) Close() {}

// If Unix sockets cannot be read, their last view stays, the source is not up, and its log says so
// once. Other targets do not notice. An instance that has ended counts as running after maxHold.
func TestPathsBroken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		l := New(slog.New(slog.NewTextHandler(&log, nil)))
		l.witness = nil
		b, w := &board{method: "one"}, new(wall)
		b.set(1)
		w.set(nil, 2)
		l.table, l.paths.table = b, w
		l.paths.looker.fileAt = func(string) (proc.File, error) { return proc.File{Inode: 1}, nil }
		l.Watch(behind("/run/app.sock"))
		l.Watch(target("tcp"))
		ctx, cancel := context.WithCancel(t.Context())
		var done sync.WaitGroup
		done.Go(func() { _ = l.Run(ctx, func(string) {}) })
		was, tcp := l.Instance("app"), l.Instance("tcp")
		if was.Phase != gate.Running || !l.Sees("app") {
			t.Fatalf("got %+v", was)
		}
		w.set(errors.New("no permission"))
		time.Sleep(10*time.Second + time.Second/2)
		synctest.Wait()
		if l.Up() || l.Sees("app") || l.Instance("app") != was || strings.Count(log.String(), "level=WARN") != 1 ||
			l.Describe("app").Message != "sees no restarts: cannot no permission" {
			t.Errorf("up %t, %+v, described as %q, log:\n%s", l.Up(), l.Instance("app"), l.Describe("app").Message, log.String())
		}
		if !l.Sees("tcp") || l.Instance("tcp") != tcp || l.Describe("tcp").Message != "" {
			t.Errorf("another target: %+v, %q", l.Instance("tcp"), l.Describe("tcp").Message)
		}
		w.set(nil, 2)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if !l.Up() || !l.Sees("app") || l.Instance("app") != was || strings.Count(log.String(), "again") != 1 {
			t.Errorf("up %t, %+v, log:\n%s", l.Up(), l.Instance("app"), log.String())
		}
		w.set(nil)
		l.AttemptFailed("app")
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if got := l.Instance("app"); got.Phase != gate.Terminated {
			t.Errorf("closed: %+v", got)
		}
		w.set(errors.New("no permission"))
		time.Sleep(watch.MaxHold)
		synctest.Wait()
		if got := l.Instance("app"); got.Phase != gate.Running {
			t.Errorf("%v after the end: %+v", watch.MaxHold, got)
		}
		cancel()
		done.Wait()
	})
}

// ofBothTables returns a source with a table of TCP sockets, which is empty, and one of Unix sockets.
func ofBothTables() (*Source, *board, *wall) {
	l := New(slog.New(slog.DiscardHandler))
	l.witness = nil
	b, w := &board{method: "one"}, new(wall)
	w.set(nil, 2)
	l.table, l.paths.table = b, w
	return l, b, w
}

// A restart behind a Unix socket that is read while the other table cannot be read is not lost.
func TestPathsWhileTheOthersAreBroken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, b, w := ofBothTables()
		l.paths.looker.fileAt = func(string) (proc.File, error) { return proc.File{Inode: 1}, nil }
		l.Watch(behind("/run/app.sock"))
		ctx, cancel := context.WithCancel(t.Context())
		var done sync.WaitGroup
		done.Go(func() { _ = l.Run(ctx, func(string) {}) })
		b.fail(errors.New("no permission"))
		time.Sleep(1500 * time.Millisecond)
		synctest.Wait()
		w.set(nil, 3)
		time.Sleep(1500 * time.Millisecond)
		synctest.Wait()
		b.fail(nil)
		time.Sleep(1500 * time.Millisecond)
		synctest.Wait()
		if got := l.Instance("app").ID; got != "socket-3" {
			t.Errorf("got %q", got)
		}
		cancel()
		done.Wait()
	})
}

// A look that does not end holds up neither the targets on other paths nor the end of the source. Once
// the look has ended, the source looks again.
func TestPathsStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, _, w := ofBothTables()
		hangs := make(chan chan struct{}, 1)
		first, second := make(chan struct{}), make(chan struct{})
		hangs <- first
		var looks atomic.Int32
		l.paths.looker.fileAt = func(path string) (proc.File, error) {
			if strings.HasPrefix(path, "/dead/") {
				looks.Add(1)
				hang := <-hangs
				hangs <- hang
				<-hang
			}
			return proc.File{Inode: 1}, nil
		}
		began := time.Now()
		const dead = 10
		for i := range dead {
			c := behind(fmt.Sprintf("/dead/%d.sock", i))
			c.Name = c.Instance.Listeners[0].Host
			l.Watch(c)
		}
		l.Watch(behind("/run/app.sock"))
		if took := time.Since(began); took > lookTime+dead*leastLook {
			t.Errorf("took %v", took)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var done sync.WaitGroup
		done.Go(func() { _ = l.Run(ctx, func(string) {}) })
		time.Sleep(10 * time.Second)
		synctest.Wait()
		const some = "unix:///dead/0.sock"
		if !l.Sees("app") || l.Sees(some) || looks.Load() != dead || l.Describe(some).Message != "sees no restarts: cannot look at the socket: the file system does not answer" {
			t.Errorf("%d looks, %q", looks.Load(), l.Describe(some).Message)
		}
		w.set(nil, 3)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if got := l.Instance("app").ID; got != "socket-3" {
			t.Errorf("a restart: %q", got)
		}
		close(first)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if !l.Sees(some) || l.Describe(some).Message != "" {
			t.Errorf("%q", l.Describe(some).Message)
		}
		<-hangs
		hangs <- second
		defer close(second)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		began = time.Now()
		cancel()
		done.Wait()
		if took := time.Since(began); took > 2*lookTime {
			t.Errorf("the end took %v", took)
		}
	})
}
