// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// $(NAME) is expanded as in a Pod: an unknown or unclosed reference stays, $$ is $, and no byte
// is lost.
func TestCommand(t *testing.T) {
	target := &Target{Env: []EnvVar{{"A", "1"}, {"B", "$(A)"}, {"A", "2"}, {"", "empty"}, {"E", ""}, {"odd name", "x"}}}
	for arg, want := range map[string]string{
		"":                        "",
		"plain":                   "plain",
		"$(A)":                    "2",    // the later of two values
		"$(B)":                    "$(A)", // the value as written, not expanded again
		"-$(A)$(A)-":              "-22-",
		"$(E)":                    "",
		"$(odd name)":             "x",
		"$()":                     "empty",
		"$(NOPE)":                 "$(NOPE)",
		"$$(A)":                   "$(A)",
		"$$$(A)":                  "$2",
		"$$$$":                    "$$",
		"$$":                      "$",
		"$":                       "$",
		"a$":                      "a$",
		"$A ${A} $1":              "$A ${A} $1",
		"$(A":                     "$(A",
		"$(A $(A)":                "$(A $(A)", // the name ends at the first )
		"$(":                      "$(",
		"$(A$$":                   "$(A$",
		"$\xff$\u00e9$\U0001F600": "$\xff$\u00e9$\U0001F600",
		"\x80$(A)\xfe":            "\x802\xfe",
	} {
		if got := target.Command(&Exec{Command: []string{"x", arg}}); !slices.Equal(got, []string{"x", want}) {
			t.Errorf("%q becomes %q, want %q", arg, got[1], want)
		}
	}
}

// A value refers to the values before it. A later name replaces an earlier name and the
// agent's. Everything else of the agent's environment stays.
func TestEnviron(t *testing.T) {
	target := &Target{Env: []EnvVar{
		{"A", "1"}, {"B", "$(A)-$(C)-$(HOME)"}, {"C", "3"}, {"A", "$(A)$(A)"}, {"PATH", "/x"}, {"D", "$$(A)"},
	}}
	base := []string{"HOME=/root", "PATH=/bin", "=C:=C:\\", "PATHS=x"}
	got := target.Environ(base)
	want := []string{"HOME=/root", "=C:=C:\\", "PATHS=x", "A=11", "B=1-$(C)-$(HOME)", "C=3", "PATH=/x", "D=$(A)"}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if base[1] != "PATH=/bin" {
		t.Error("Environ changed base")
	}
	if got := (&Target{}).Environ(base); !slices.Equal(got, base) || &got[0] == &base[0] {
		t.Errorf("without an env: %q", got)
	}
}

// ${NAME} is replaced, $${ is ${, and any other $ stands for itself.
func TestSubstitution(t *testing.T) {
	env := environment("NAME=value\nEMPTY=\nNESTED=${NAME}\n_1=one\n")
	for text, want := range map[string]string{
		"${NAME}":          "value",
		"a${NAME}b${_1}c":  "avaluebonec",
		"${EMPTY}":         "",
		"${NESTED}":        "${NAME}", // not replaced again
		"$${NAME}":         "${NAME}",
		"$$${NAME}":        "$${NAME}",
		"$${":              "${",
		"$NAME $(NAME) $$": "$NAME $(NAME) $$",
		"$":                "$",
		"}${NAME}}":        "}value}",
		"$$$":              "$$$",
	} {
		cfg, _, err := Load("f", []byte("targets: [{name: a, labels: {l: '"+text+"'}, livenessProbe: {grpc: {port: 1, service: '${X}'}}}]"), env)
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		if got := cfg.Targets[0].Labels[0].Value; got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
		if got := cfg.Targets[0].LivenessProbe.GRPC.Service; got != "${X}" {
			t.Errorf("the service becomes %q", got)
		}
	}
}

// LookCommand searches the directories of a path in their order, and finds only files that can
// be executed.
func TestLookCommand(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("executables have extensions there") //nolint:forbidigo // another system, not a lack
	}
	first, second, empty := t.TempDir(), t.TempDir(), t.TempDir()
	for path, mode := range map[string]os.FileMode{
		filepath.Join(first, "both"): 0o700, filepath.Join(second, "both"): 0o700,
		filepath.Join(second, "second"): 0o700, filepath.Join(first, "data"): 0o600,
		filepath.Join(first, "later"): 0o600, filepath.Join(second, "later"): 0o700,
	} {
		if err := os.WriteFile(path, nil, mode); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(first, "dir"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Chdir(second)
	path := strings.Join([]string{empty, first, second}, string(os.PathListSeparator))
	for _, test := range []struct{ file, path, want, err string }{
		{"both", path, filepath.Join(first, "both"), ""},
		{"second", path, filepath.Join(second, "second"), ""},
		{"later", path, filepath.Join(second, "later"), ""},
		{filepath.Join(second, "both"), "", filepath.Join(second, "both"), ""},
		{"./both", "", "./both", ""},
		{"none", path, "", "executable file not found in $PATH"},
		{"data", path, "", "executable file not found in $PATH"},
		{"dir", path, "", "executable file not found in $PATH"},
		{"both", "", "", "executable file not found in $PATH"},
		{"", path, "", "executable file not found in $PATH"},
		{".", path, "", "executable file not found in $PATH"},
		{filepath.Join(first, "data"), "", "", "permission denied"},
		{first + "/none", "", "", "no such file or directory"},
		{"both", ".", "", "cannot run executable found relative to current directory"},
		{"both", empty + "::", "", "cannot run executable found relative to current directory"},
	} {
		got, err := LookCommand(test.file, test.path)
		if got != test.want || (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
			t.Errorf("%q in %q is %q, %v; want %q, %s", test.file, test.path, got, err, test.want, test.err)
		}
		if _, ok := err.(*exec.Error); err != nil && !ok { //nolint:errorlint // the type is the promise
			t.Errorf("%q: %T is no *exec.Error", test.file, err)
		}
	}
}

// The PATH of the target's env, as expanded, overrides the agent's. A missing command is one
// warning for each probe, which shows nothing of the env.
func TestCommandNotices(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "tool"), nil, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name, env, path string
		want            int
	}{
		{"nowhere", "", "/nowhere", 3},
		{"the agent's", "", dir, 0},
		{"the target's", "{name: DIR, value: " + dir + "}, {name: PATH, value: $(DIR)}", "/nowhere", 0},
		{"the target's hides the agent's", "{name: PATH, value: /nowhere}", dir, 3},
	} {
		text := "targets:\n- name: a\n  env: [" + test.env + "]\n" +
			"  startupProbe: &p {exec: {command: [tool]}}\n  readinessProbe: *p\n- name: b\n  env: [" + test.env + "]\n  readinessProbe: *p\n"
		_, notices, err := Load("f", []byte(text), environment("PATH="+test.path+"\n"))
		if err != nil || len(notices) != test.want {
			t.Errorf("%s: %d notices, error %v: %v", test.name, len(notices), err, notices)
		}
	}
	_, notices, _ := load(t, "targets: [{name: a, env: [{name: T, value: /no/s3cret}], livenessProbe: {exec: {command: [$(T)]}}}]")
	if len(notices) != 1 || strings.Contains(notices[0].String(), "s3cret") {
		t.Errorf("%v", notices)
	}
}
