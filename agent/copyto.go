// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

const (
	// copyName is the name of a copy, whatever the binary is called.
	copyName = "prober_exporter"
	// copyTemporary matches copies that are not complete.
	copyTemporary = ".prober_exporter-*"
	// copyTime is longer than a copy takes. Then its writer is gone.
	copyTime = time.Minute
)

// CopyTo copies this binary into a directory: an init container may have no other program that
// could. The copy appears in one step and replaces an earlier one. CopyTo prints the result, or
// the error that it returns, to w.
func CopyTo(directory string, w io.Writer) error {
	to := filepath.Join(directory, copyName)
	size, err := copySelf(directory, to)
	if err == nil {
		err = checkExecutable(to)
	}
	if err != nil {
		err = fmt.Errorf("--copy-to: %w", err)
		_, _ = fmt.Fprintf(w, "prober_exporter: %v\n", err)
		return err
	}
	_, _ = fmt.Fprintf(w, "prober_exporter: --copy-to: wrote %s, %d bytes\n", to, size)
	return nil
}

func copySelf(directory, to string) (size int64, err error) {
	path, err := os.Executable()
	if err != nil {
		return 0, fmt.Errorf("find this binary: %w", err)
	}
	from, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer func() { _ = from.Close() }() // it was only read
	// Without the volume the copy would be lost: a directory is not made.
	if info, err := os.Stat(directory); err != nil {
		return 0, err
	} else if !info.IsDir() {
		return 0, fmt.Errorf("%s is not a directory", directory)
	}
	removeStale(directory)
	f, err := os.CreateTemp(directory, copyTemporary)
	if err != nil {
		return 0, err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name()) // the first error counts
		}
	}()
	if size, err = io.Copy(f, from); err == nil {
		// Other users run the copy, whatever the umask.
		err = errors.Join(f.Chmod(0o755), f.Sync())
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return 0, err
	}
	return size, os.Rename(f.Name(), to)
}

// removeStale removes what a killed copy has left.
func removeStale(directory string) {
	names, _ := filepath.Glob(filepath.Join(directory, copyTemporary)) // the pattern is valid
	for _, name := range names {
		if info, err := os.Lstat(name); err == nil && time.Since(info.ModTime()) > copyTime {
			_ = os.Remove(name) // it is in nobody's way
		}
	}
}
