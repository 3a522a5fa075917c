// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write what is seen into testdata")

// section is a file of a txtar archive.
type section struct{ name, text string }

// archive splits a txtar file into its comment and its sections.
func archive(t testing.TB, path string) (comment string, sections []section) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		if rest, ok := strings.CutPrefix(line, "-- "); ok && strings.HasSuffix(rest, " --\n") {
			sections = append(sections, section{name: strings.TrimSuffix(rest, " --\n")})
			continue
		}
		if len(sections) == 0 {
			comment += line
			continue
		}
		sections[len(sections)-1].text += line
	}
	return comment, sections
}

func find(sections []section, name string) string {
	for _, s := range sections {
		if s.name == name {
			return s.text
		}
	}
	return ""
}

// environment returns a lookup in NAME=value lines.
func environment(text string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		for line := range strings.Lines(text) {
			if value, ok := strings.CutPrefix(line, name+"="); ok {
				return strings.TrimSuffix(value, "\n"), true
			}
		}
		return "", false
	}
}

// Each file of testdata holds one mistake, or something valid to show, and exactly
// what is said of it: want has the errors, notices the notices with their level, and
// yaml the running configuration of a valid file.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) < 80 {
		t.Fatalf("%d files, error %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			comment, sections := archive(t, file)
			cfg, notices, err := Load("prober.yml", []byte(find(sections, "prober.yml")), environment(find(sections, "env")))

			got := map[string]string{}
			if err != nil {
				got["want"] = err.Error() + "\n"
			}
			for _, n := range notices {
				got["notices"] += n.Level.String() + " " + n.String() + "\n"
			}
			if cfg != nil {
				out, err := cfg.YAML()
				if err != nil {
					t.Fatal(err)
				}
				got["yaml"] = string(out)
			}
			if *update {
				rewrite(t, file, comment, sections, got)
				return
			}
			if invalid := strings.HasPrefix(filepath.Base(file), "invalid-"); invalid != (err != nil) {
				t.Errorf("invalid by its name: %t, error: %v", invalid, err)
			}
			for _, name := range []string{"want", "notices", "yaml"} {
				if want := find(sections, name); got[name] != want {
					t.Errorf("%s is\n%swant\n%s", name, got[name], want)
				}
			}
		})
	}
}

func rewrite(t *testing.T, file, comment string, sections []section, got map[string]string) {
	t.Helper()
	text := comment
	for _, s := range sections {
		if _, written := got[s.name]; !written && !slices.Contains([]string{"want", "notices", "yaml"}, s.name) {
			text += "-- " + s.name + " --\n" + s.text
		}
	}
	for _, name := range []string{"want", "notices", "yaml"} {
		if got[name] != "" {
			text += "-- " + name + " --\n" + got[name]
		}
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// Each mistake is a value of its own, with its file, its line and its path.
func TestErrorsAreValues(t *testing.T) {
	_, _, err := Load("f.yml", []byte("targets:\n- name: a\n  livenessProbe:\n    grpc: {port: 0}\n"), environment(""))
	errs, ok := errors.AsType[Errors](err)
	want := Error{File: "f.yml", Line: 4, Path: "targets[0].livenessProbe.grpc.port", Message: "must be between 1 and 65535, inclusive, is 0"}
	if !ok || len(errs) != 1 || errs[0] != want {
		t.Errorf("got %#v, want %#v", err, want)
	}
	if (Error{Path: "p", Message: "m"}).Error() != "p: m" {
		t.Error("an error without a file names one")
	}
}
