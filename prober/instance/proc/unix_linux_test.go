// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package proc

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/prober-exporter/prober_exporter/internal/needs"
	"github.com/prober-exporter/prober_exporter/prober/action/actiontest"
)

// unixAt reads and returns the Unix sockets at a path.
func unixAt(t testing.TB, s *UnixSockets, path string) []UnixSocket {
	t.Helper()
	file, err := SocketFile(path)
	if err != nil {
		t.Fatal(err)
	}
	all, err := s.Read(nil)
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(all, func(one UnixSocket) bool { return one.File != file })
}

func reader(t testing.TB) *UnixSockets {
	s := new(UnixSockets)
	t.Cleanup(s.Close)
	return s
}

// The reader sees a listener by its file, with the inode of the socket that its holder sees, whatever
// the path. Two reads are equal.
func TestUnixSocketsWhere(t *testing.T) {
	s := reader(t)
	for _, dir := range []string{filepath.Dir(actiontest.Socket(t)), memory(t)} {
		path := filepath.Join(dir, "a")
		l := actiontest.ListenUnix(t, path)
		l.SetUnlinkOnClose(false)
		raw, err := l.SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		var stat unix.Stat_t
		if err := raw.Control(func(fd uintptr) { unix.Fstat(int(fd), &stat) }); err != nil {
			t.Fatal(err)
		}
		first := unixAt(t, s, path)
		if len(first) != 1 || first[0].Inode != stat.Ino || first[0].ID == 0 || first[0].Local.IsValid() {
			t.Errorf("%s: got %+v, want one with inode %d", path, first, stat.Ino)
		}
		other, moved, linked := filepath.Join(dir, "b"), filepath.Join(dir, "c"), filepath.Join(dir, "d")
		if err := errors.Join(os.Link(path, other), os.Rename(path, moved), os.Symlink("c", linked)); err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{other, moved, linked} {
			if again := unixAt(t, s, path); !slices.Equal(again, first) {
				t.Errorf("%s: got %+v, then %+v", path, first, again)
			}
		}
		l.Close()
		if got := unixAt(t, s, moved); len(got) != 0 {
			t.Errorf("after the end: %+v", got)
		}
	}
}

// A socket that is bound again at its path has a new ID and a new file, even while the one before still
// listens.
func TestUnixSocketsIdentity(t *testing.T) {
	s, path := reader(t), actiontest.Socket(t)
	var ids []uint64
	for range 3 {
		l := actiontest.ListenUnix(t, path)
		l.SetUnlinkOnClose(false)
		got := unixAt(t, s, path)
		if len(got) != 1 || slices.Contains(ids, got[0].ID) {
			t.Fatalf("got %+v after %v", got, ids)
		}
		ids = append(ids, got[0].ID)
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	all, err := s.Read(nil)
	for _, id := range ids {
		if err != nil || !slices.ContainsFunc(all, func(one UnixSocket) bool { return one.ID == id }) {
			t.Errorf("socket %d without its file is not among %+v, error %v", id, all, err)
		}
	}
}

// The reader sees nothing but listening stream sockets with a file.
func TestUnixSocketsNoOthers(t *testing.T) {
	dir := filepath.Dir(actiontest.Socket(t))
	open := func(kind int, name string, listens bool) {
		fd, err := unix.Socket(unix.AF_UNIX, kind|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { unix.Close(fd) })
		if err := unix.Bind(fd, &unix.SockaddrUnix{Name: name}); err != nil {
			t.Fatal(err)
		}
		if listens {
			if err := unix.Listen(fd, 1); err != nil {
				t.Fatal(err)
			}
		}
	}
	s := reader(t)
	before, err := s.Read(nil)
	if err != nil {
		t.Fatal(err)
	}
	open(unix.SOCK_STREAM, filepath.Join(dir, "bound"), false)
	open(unix.SOCK_DGRAM, filepath.Join(dir, "datagrams"), false)
	open(unix.SOCK_SEQPACKET, filepath.Join(dir, "packets"), true)
	open(unix.SOCK_STREAM, "@"+dir, true)
	l := actiontest.ListenUnix(t, filepath.Join(dir, "listens"))
	conn, err := net.Dial("unix", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for _, name := range []string{"bound", "datagrams", "packets"} {
		if got := unixAt(t, s, filepath.Join(dir, name)); len(got) != 0 {
			t.Errorf("%s: got %+v", name, got)
		}
	}
	after, err := s.Read(before)
	if err != nil || len(unixAt(t, s, l.Addr().String())) != 1 || !slices.Equal(after[:len(before)], before) {
		t.Errorf("got %+v after %+v, error %v", after, before, err)
	}
}

// A read of a table that comes in parts has all sockets, each once.
func TestUnixSocketsInParts(t *testing.T) {
	s, dir := reader(t), filepath.Dir(actiontest.Socket(t))
	const n = 5 * unixPart
	files := map[File]bool{}
	for i := range n {
		path := filepath.Join(dir, fmt.Sprint(i))
		actiontest.ListenUnix(t, path)
		file, err := SocketFile(path)
		if err != nil {
			t.Fatal(err)
		}
		files[file] = true
	}
	all, err := s.Read(nil)
	seen := 0
	for _, one := range all {
		if files[one.File] {
			seen++
		}
	}
	if err != nil || seen != n || !slices.IsSortedFunc(all, func(a, b UnixSocket) int { return int(int64(a.ID - b.ID)) }) {
		t.Errorf("%d of %d sockets, error %v", seen, n, err)
	}
}

// A path without a socket does not exist for the reader. A path that the agent may not look at is
// another error.
func TestSocketFile(t *testing.T) {
	path := actiontest.Socket(t)
	for _, name := range []string{path, filepath.Dir(path), "/etc/passwd", "/etc/passwd/x"} {
		if file, err := SocketFile(name); !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ENOTDIR) {
			t.Errorf("%s: %+v, error %v", name, file, err)
		}
	}
	if _, err := SocketFile("/" + strings.Repeat("a", 300)); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v", err)
	}
}

// A message that is too short is an error. One of another family, or without a file, is no socket.
func TestUnixSocketsMessages(t *testing.T) {
	if _, _, err := parseUnix(make([]byte, 15)); err == nil {
		t.Error("a short message is no error")
	}
	for _, head := range [][]byte{{unix.AF_INET, unix.SOCK_STREAM}, {unix.AF_UNIX, unix.SOCK_DGRAM}, {unix.AF_UNIX, unix.SOCK_STREAM}} {
		if one, ok, err := parseUnix(append(head, make([]byte, 14)...)); ok || err != nil {
			t.Errorf("%v: got %+v, error %v", head, one, err)
		}
	}
	if _, _, err := parseUnix(append([]byte{unix.AF_UNIX, unix.SOCK_STREAM}, append(make([]byte, 14), 255, 0, 1, 0)...)); err == nil {
		t.Error("an attribute beyond the message is no error")
	}
}

// memory returns a directory on another file system.
func memory(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "s") //nolint:usetesting // on a file system in memory
	if err != nil {
		needs.Missing(t, "a file system in memory: ", err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}
