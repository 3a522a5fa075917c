// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// entries returns the names in a directory.
func entries(t *testing.T, directory string) (names []string) {
	t.Helper()
	all, err := os.ReadDir(directory)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range all {
		names = append(names, e.Name())
	}
	return names
}

// The copy has the bytes of this binary and may be run by everybody. A second copy replaces
// the first, and no other file is left, not even of a copy that was killed.
func TestCopyTo(t *testing.T) {
	directory := t.TempDir()
	killed, running := filepath.Join(directory, ".prober_exporter-1"), filepath.Join(directory, ".prober_exporter-2")
	for _, name := range []string{killed, running} {
		if err := os.WriteFile(name, []byte("part"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	old := time.Now().Add(-2 * copyTime)
	if err := os.Chtimes(killed, old, old); err != nil {
		t.Fatal(err)
	}
	own, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(own)
	if err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(directory, "prober_exporter")
	for range 2 {
		var said strings.Builder
		if err := CopyTo(directory, &said); err != nil || !strings.Contains(said.String(), "wrote "+copied) {
			t.Fatalf("%v, said %q", err, said.String())
		}
		got, err := os.ReadFile(copied)
		if info, _ := os.Stat(copied); err != nil || !bytes.Equal(got, want) || info.Mode() != 0o755 {
			t.Errorf("%v, %d bytes, mode %v", err, len(got), info.Mode())
		}
		if err := os.WriteFile(copied, []byte("older"), 0o600); err != nil { // the next replaces it
			t.Fatal(err)
		}
	}
	if got := strings.Join(entries(t, directory), " "); got != ".prober_exporter-2 prober_exporter" {
		t.Errorf("the directory has %s", got)
	}
}

// What prevents the copy is said, and leaves nothing behind.
func TestCopyToFails(t *testing.T) {
	directory := t.TempDir()
	file, taken := filepath.Join(directory, "file"), filepath.Join(directory, "taken")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(taken, "prober_exporter", "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	for to, want := range map[string]string{
		filepath.Join(directory, "no"): "no such file or directory",
		file:                           "is not a directory",
		taken:                          "rename",
		"/proc/self":                   ".prober_exporter-",
	} {
		var said strings.Builder
		if err := CopyTo(to, &said); err == nil || !strings.HasPrefix(said.String(), "prober_exporter: --copy-to: ") || !strings.Contains(said.String(), want) || strings.Count(said.String(), "\n") != 1 {
			t.Errorf("%s: %v, said %q", to, err, said.String())
		}
	}
	if got := entries(t, taken); len(got) != 1 {
		t.Errorf("%q is left", got)
	}
}
