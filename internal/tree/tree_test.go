// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

// Package tree_test checks what no linter knows of the files of this repository: which tests
// sleep, where links lead, which modules NOTICE names, how a release is built.
package tree_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// root is the directory of the repository.
const root = "../.."

// files returns the paths, from the root, of the files that want accepts. It leaves out the
// files that make builds and the files of git.
func files(t *testing.T, want func(path string) bool) []string {
	t.Helper()
	var found []string
	err := fs.WalkDir(os.DirFS(root), ".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (path == ".git" || path == "bin" || path == "dist"):
			return fs.SkipDir
		case !d.IsDir() && want(path):
			found = append(found, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(found) == 0 {
		t.Fatal("the test found no file")
	}
	return found
}

// read returns the content of a file.
func read(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return text
}
