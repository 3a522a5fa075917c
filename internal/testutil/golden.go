// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package testutil

import (
	"bytes"
	"flag"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write what the tests see into testdata")

// Update reports whether tests should write golden files: go test -update.
func Update() bool { return *update }

// Golden compares got with a golden file, or writes the file.
func Golden(t testing.TB, path string, got []byte) {
	t.Helper()
	if Update() {
		Rewrite(t, path, string(got))
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("got:\n%s\nwant, by %s:\n%s", got, path, want)
	}
}

// Archive is a file in the format of txtar: a comment, and sections with names.
type Archive struct {
	Comment  string
	Sections []Section
}

// Section is a file of an archive.
type Section struct{ Name, Text string }

// ReadArchive reads an archive.
func ReadArchive(t testing.TB, path string) (a Archive) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		rest, ok := strings.CutPrefix(line, "-- ")
		switch {
		case ok && strings.HasSuffix(rest, " --\n"):
			a.Sections = append(a.Sections, Section{Name: strings.TrimSuffix(rest, " --\n")})
		case len(a.Sections) == 0:
			a.Comment += line
		default:
			a.Sections[len(a.Sections)-1].Text += line
		}
	}
	return a
}

// Find returns the text of a section, or "" if there is no section of that name.
func (a Archive) Find(name string) string {
	for _, s := range a.Sections {
		if s.Name == name {
			return s.Text
		}
	}
	return ""
}

// Put adds a section, unless its text is empty.
func (a *Archive) Put(name, text string) {
	if text != "" {
		a.Sections = append(a.Sections, Section{name, text})
	}
}

// Write writes the archive.
func (a Archive) Write(t testing.TB, path string) {
	t.Helper()
	var text strings.Builder
	text.WriteString(a.Comment)
	for _, s := range a.Sections {
		text.WriteString("-- " + s.Name + " --\n" + s.Text)
	}
	Rewrite(t, path, text.String())
}
