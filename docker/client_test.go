// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package docker_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/prober-exporter/prober_exporter/docker"
	"github.com/prober-exporter/prober_exporter/internal/testutil/dockerd"
)

// The error for each way to be out of reach has a hint. The hint for a refused connection
// mentions a socket that a daemon has left behind.
func TestDockerHint(t *testing.T) {
	stale := filepath.Join(t.TempDir(), "s")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: stale, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	l.Close()
	refused := docker.New(stale).Ping(t.Context())
	for _, c := range []struct {
		err  error
		want string
	}{
		{refused, "the directory of the socket"},
		{docker.New(stale + "no").Ping(t.Context()), "mount its socket"},
		{&net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.EACCES)}, "with a group"},
		{fmt.Errorf("x: %w", context.DeadlineExceeded), "does not answer"},
		{errors.New("odd"), "log"},
	} {
		if got := docker.Hint(c.err); !strings.Contains(got, c.want) {
			t.Errorf("%v: got hint %q, want %q in it", c.err, got, c.want)
		}
	}
	if !errors.Is(refused, syscall.ECONNREFUSED) || errors.Is(refused, fs.ErrNotExist) {
		t.Errorf("got %v from a socket without a daemon", refused)
	}
}

// The client speaks the newest version of the API that both sides know, 1.44 at most, unless
// the daemon speaks only newer versions. The client refuses a version that is no version.
func TestDockerVersion(t *testing.T) {
	for answer, want := range map[string]string{
		`{"ApiVersion":"1.41","MinAPIVersion":"1.12"}`: "/v1.41",
		`{"ApiVersion":"1.52","MinAPIVersion":"1.44"}`: "/v1.44",
		`{"ApiVersion":"1.60","MinAPIVersion":"1.50"}`: "/v1.50",
		`{"ApiVersion":"1.40"}`:                        "/v1.40",
		`{"ApiVersion":"2.0"}`:                         "",
		`{"ApiVersion":"1.x"}`:                         "",
		`{"ApiVersion":"1.41","MinAPIVersion":"old"}`:  "",
		`{}`:   "",
		`[`:    "",
		`"no"`: "",
	} {
		f := dockerd.New(t)
		f.Fault("/version", dockerd.Says(200, answer))
		c := docker.New(f.Socket)
		err := c.Negotiate(t.Context())
		if _, err := c.Inspect(t.Context(), "nobody"); !docker.IsNotFound(err) {
			t.Errorf("%s: got %v for a container that does not exist", answer, err)
		}
		if (err == nil) != (want != "") || f.Count("GET "+want+"/containers/nobody/json") != 1 {
			t.Errorf("%s: got %v, want version %q", answer, err, want)
		}
	}
}
