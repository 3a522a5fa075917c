// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package actiontest

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// Socket returns the path of a Unix socket that nobody has bound. Anybody may look into its
// directory.
func Socket(t testing.TB) string {
	t.Helper()
	// Not TempDir, whose name is too long for a socket if the name of the test is long.
	dir, err := os.MkdirTemp("", "s") //nolint:usetesting // see above
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "app.sock")
}

// ListenUnix listens on a Unix socket. Its file goes when the listener is closed.
func ListenUnix(t testing.TB, path string) *net.UnixListener {
	t.Helper()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// Address returns where l listens, as a target's host and, unless that is a Unix socket, a port.
func Address(l net.Listener) string {
	if l.Addr().Network() == "unix" {
		return "unix://" + l.Addr().String()
	}
	return l.Addr().String()
}

// UnixSite serves Site on a Unix socket in a process of its own, until stop is called. Then the file of
// the socket stays, as after a crash. Needs a TestMain with Main.
func UnixSite(t testing.TB, path string) (stop func()) {
	t.Helper()
	server := exec.CommandContext(t.Context(), os.Args[0], path)
	server.Env = append(os.Environ(), HelperEnv+"=serve-unix")
	in, err := server.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := server.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	stop = sync.OnceFunc(func() {
		in.Close()
		server.Wait()
	})
	t.Cleanup(stop)
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatalf("the server said %q, error %v", line, err)
	}
	return stop
}

// serveUnixApart serves Site on a Unix socket, says so, and ends when its input ends.
func serveUnixApart(args []string) {
	os.Remove(args[0])
	l, err := net.Listen("unix", args[0])
	if err != nil {
		os.Exit(1)
	}
	go http.Serve(l, Site())
	fmt.Println("serves")
	io.Copy(io.Discard, os.Stdin)
}
