// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package tree_test

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"github.com/prober-exporter/prober_exporter/internal/needs"
)

// A release is built like go install builds, but stripped and with its version.
func TestReleaseIsAPlainBuild(t *testing.T) {
	var promu struct {
		Go    struct{ Cgo bool }
		Build struct{ Flags, Ldflags string }
	}
	if err := yaml.Unmarshal(read(t, ".promu.yml"), &promu); err != nil {
		t.Fatal(err)
	}
	if got := promu.Build.Flags; got != "-trimpath -buildvcs=false" || promu.Go.Cgo {
		t.Errorf("a release is compiled with %q, cgo %t", got, promu.Go.Cgo)
	}
	const variable = `-X github\.com/prometheus/common/version\.\w+=\{\{\.\w+\}\}\s*`
	if got := promu.Build.Ldflags; !regexp.MustCompile(`^-s -w\s+(?:` + variable + `){3}$`).MatchString(got) {
		t.Errorf("a release is linked with %q", got)
	}
}

// Dockerfile names the image's base by its digest.
func TestBaseIsNamedByDigest(t *testing.T) {
	if !regexp.MustCompile(`(?m)^ARG BASE=\S+@sha256:[0-9a-f]{64}$`).Match(read(t, "Dockerfile")) {
		t.Error("the base of Dockerfile has no digest")
	}
}

// The shell script that make uses reads the same from .promu.yml as a YAML reader.
func TestPromuScript(t *testing.T) {
	if _, err := exec.LookPath("bash"); err != nil {
		needs.Missing(t, "bash")
	}
	var promu struct {
		Build      struct{ Flags, Ldflags string }
		Tarball    struct{ Files []string }
		Crossbuild struct{ Platforms []string }
	}
	if err := yaml.Unmarshal(read(t, ".promu.yml"), &promu); err != nil {
		t.Fatal(err)
	}
	revision, _ := exec.CommandContext(t.Context(), "git", "-C", root, "rev-parse", "HEAD").Output() // an archive has no revision
	branch, _ := exec.CommandContext(t.Context(), "git", "-C", root, "rev-parse", "--abbrev-ref", "HEAD").Output()
	for key, want := range map[string]string{
		"flags": promu.Build.Flags,
		"ldflags": strings.NewReplacer("{{.Version}}", string(read(t, "VERSION")), "{{.Revision}}", string(revision),
			"{{.Branch}}", string(branch)).Replace(promu.Build.Ldflags),
		"files":     strings.Join(promu.Tarball.Files, " "),
		"platforms": strings.Join(promu.Crossbuild.Platforms, " "),
	} {
		c := exec.CommandContext(t.Context(), "packaging/promu.sh", key)
		c.Dir, c.Stderr = root, os.Stderr
		got, err := c.Output()
		if want := strings.Join(strings.Fields(want), " "); err != nil || strings.TrimSpace(string(got)) != want || want == "" {
			t.Errorf("%s: got %q, error %v; want %q", key, got, err, want)
		}
	}
}
