// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/prober-exporter/prober_exporter/internal/testutil"
)

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

// Each file of testdata has one mistake, or a valid configuration, with everything that the
// program says about it. The section want has the errors, notices has the notices with their
// level, and yaml has the running configuration of a valid file.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) < 80 {
		t.Fatalf("%d files, error %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			archive := testutil.ReadArchive(t, file)
			cfg, notices, err := Load("prober.yml", []byte(archive.Find("prober.yml")), environment(archive.Find("env")))

			got := map[string]string{}
			if err != nil {
				// The word ACTIONS stands for all names, so a new action changes none of the files.
				names, last := ActionNames(), len(actions)-1
				list := strings.Join(names[:last], ", ") + " or " + names[last]
				got["want"] = strings.ReplaceAll(err.Error(), list, "ACTIONS") + "\n"
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
			if testutil.Update() {
				rewrite(t, file, archive, got)
				return
			}
			if invalid := strings.HasPrefix(filepath.Base(file), "invalid-"); invalid != (err != nil) {
				t.Errorf("invalid by its name: %t, error: %v", invalid, err)
			}
			for _, name := range []string{"want", "notices", "yaml"} {
				if want := archive.Find(name); got[name] != want {
					t.Errorf("%s is\n%swant\n%s", name, got[name], want)
				}
			}
		})
	}
}

// rewrite replaces the expectations of an archive by the present results.
func rewrite(t *testing.T, file string, archive testutil.Archive, got map[string]string) {
	t.Helper()
	seen := []string{"want", "notices", "yaml"}
	archive.Sections = slices.DeleteFunc(archive.Sections, func(s testutil.Section) bool { return slices.Contains(seen, s.Name) })
	for _, name := range seen {
		archive.Put(name, got[name])
	}
	archive.Write(t, file)
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
