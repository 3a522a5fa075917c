// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package agenttest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// built is the directory of the binary, or empty if no test has asked for the binary.
var built string

// binary builds the agent once, as it is shipped. The shipped binary has no race detector,
// which takes ten times the memory and time, and no tests of a package.
var binary = sync.OnceValues(func() (path string, err error) {
	if built, err = os.MkdirTemp("", "prober_exporter"); err != nil {
		return "", err
	}
	path = filepath.Join(built, "prober_exporter")
	build := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", path, "github.com/prober-exporter/prober_exporter")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w: %s", err, out)
	}
	return path, nil
})

// Main runs the tests of a package that uses Binary, and returns their exit code.
func Main(m *testing.M) int {
	code := m.Run()
	if built != "" {
		_ = os.RemoveAll(built)
	}
	return code
}

// Binary returns the path of the agent, built as it is shipped.
func Binary(t testing.TB) string {
	t.Helper()
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// Command returns the agent as a command.
func Command(t testing.TB, args ...string) *exec.Cmd {
	t.Helper()
	return exec.Command(Binary(t), args...)
}

// Flags returns the flags of most agents that tests start: a file, and a free port for each
// listener.
func Flags(file string, more ...string) []string {
	return append([]string{"--config.file=" + file, "--web.listen-address=127.0.0.1:0", "--health.listen-address=127.0.0.1:0"}, more...)
}
