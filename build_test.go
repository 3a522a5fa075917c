// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"
)

// A release is compiled as make build compiles: the same packages with inlining, at the
// same alignment.
func TestReleaseIsBuiltAlike(t *testing.T) {
	makefile, err := os.ReadFile("Makefile")
	if err != nil {
		t.Fatal(err)
	}
	hot := regexp.MustCompile(`(?m)^HOT := ((?:.*\\\n)*.*)$`).FindSubmatch(makefile)
	if hot == nil {
		t.Fatal("Makefile does not say what is hot")
	}
	want := []string{"-gcflags=all=-l"}
	for p := range strings.FieldsSeq(strings.ReplaceAll(string(hot[1]), "\\\n", " ")) {
		want = append(want, "-gcflags="+p+"=")
	}

	promu, err := os.ReadFile(".promu.yml")
	if err != nil {
		t.Fatal(err)
	}
	var release struct {
		Build struct{ Flags, Ldflags string }
	}
	if err := yaml.Unmarshal(promu, &release); err != nil {
		t.Fatal(err)
	}
	got := slices.DeleteFunc(strings.Fields(release.Build.Flags), func(f string) bool { return !strings.HasPrefix(f, "-gcflags") })
	if !slices.Equal(got, want) {
		t.Errorf(".promu.yml compiles with %q, make build with %q", got, want)
	}
	align := regexp.MustCompile(`-funcalign=\d+`)
	if got, want := align.FindString(release.Build.Ldflags), align.FindString(string(makefile)); got != want || got == "" {
		t.Errorf(".promu.yml links with %q, make build with %q", got, want)
	}
}
