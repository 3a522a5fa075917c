// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/prober-exporter/prober_exporter/internal/testutil"
)

// Secrets returns each form in which a secret may be visible, the longest first, without
// repetitions and without forms of less than 4 bytes.
func TestSecrets(t *testing.T) {
	target := mustLoad(t, `targets:
  - name: a
    env:
      - {name: TOKEN, value: s3cret}
      - {name: URL, value: "http://$(TOKEN)@h"}
      - {name: TOKEN, value: later}
      - {name: SHORT, value: abc}
      - {name: SAME, value: later}
    startupProbe: {tcpSocket: {port: 1}}
    readinessProbe:
      httpGet:
        port: 1
        path: http://us%65r:p%40ss@h/x
        httpHeaders: [{name: authorization, value: " Bearer tok.en "}, {name: X-Key, value: some key}]
    livenessProbe:
      httpGet:
        port: 1
        path: //name@h/
        httpHeaders: [{name: Proxy-Authorization, value: Basic am9lOmh1bnRlcjI=}]
`)
	got := target.Secrets()
	want := []string{
		"Basic am9lOmh1bnRlcjI=", "http://$(TOKEN)@h", "am9lOmh1bnRlcjI=", " Bearer tok.en ", "http://s3cret@h", "Bearer tok.en",
		"us%65r:p%40ss", "dXNlcjpwQHNz", "joe:hunter2", "us%65r:***", "user:p@ss", "bmFtZTo=", "some key", "user:***", "hunter2", "p%40ss",
		"s3cret", "tok.en", "later", "name:", "name", "p@ss",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if got := (&Target{}).Secrets(); len(got) != 0 {
		t.Errorf("a target without secrets has %q", got)
	}
}

// Only the part where a URL has its user is a user.
func TestUserinfo(t *testing.T) {
	for path, want := range map[string]string{
		"http://u:p@x/y": "u:p", "//u@x": "u", "HTTP://u:p@": "u:p", "http://a@b@c/": "a@b", "http://u:p%zz@x/": "u:p%zz",
		"x-y+z.1://u:p@x?a": "u:p",
	} {
		if got, ok := userinfo(path); !ok || got != want {
			t.Errorf("%s has the user %q, %t", path, got, ok)
		}
	}
	for _, path := range []string{"", "/", "/a@b", "/x//u:p@h", "http://x/u@y", "//x?a@b", "//x#a@b", "?a//u@b", "a@b"} {
		if got, ok := userinfo(path); ok {
			t.Errorf("%s has the user %q", path, got)
		}
	}
}

// withoutSecrets returns the configuration that the written running configuration loads as.
func withoutSecrets(c *Config) *Config {
	for i := range c.Targets {
		t := &c.Targets[i]
		for j := range t.Env {
			t.Env[j].Value = redacted
		}
		for _, p := range t.All() {
			if p.HTTPGet == nil {
				continue
			}
			for j := range p.HTTPGet.Headers {
				if h := &p.HTTPGet.Headers[j]; h.ValueFile == "" {
					h.Value = redacted
				}
			}
			if user, ok := userinfo(p.HTTPGet.Path); ok {
				p.HTTPGet.Path = strings.Replace(p.HTTPGet.Path, "//"+user+"@", "//"+redacted+"@", 1)
			}
		}
	}
	return c
}

// checkYAML checks that a configuration is the same after a write and a read.
func checkYAML(t *testing.T, cfg *Config) {
	t.Helper()
	out, err := cfg.YAML()
	if err != nil {
		t.Fatal(err)
	}
	again, _, err := Load("config", out, environment(""))
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if want := withoutSecrets(cfg); !reflect.DeepEqual(again, want) {
		t.Fatalf("written as\n%s\nread as %+v\nwant    %+v", out, again, want)
	}
}

// The running configuration is the same after a write and a load, except for the secrets.
func TestYAMLLoads(t *testing.T) {
	files, err := filepath.Glob("testdata/valid-*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal(err)
	}
	for _, file := range files {
		archive := testutil.ReadArchive(t, file)
		cfg, _, err := Load("prober.yml", []byte(archive.Find("prober.yml")), environment(archive.Find("env")))
		if err != nil {
			t.Fatal(err)
		}
		checkYAML(t, cfg)
	}
}

// No secret of a file is in its running configuration, however the secret came into the file.
func TestYAMLHasNoSecrets(t *testing.T) {
	cfg, _, err := Load("prober.yml", []byte(`targets:
  - name: a
    env: [{name: A, value: s3cret}, {name: B, value: "${S}"}]
    livenessProbe:
      httpGet: {port: 1, path: "http://s3cret:s3cret@h%zz/", httpHeaders: [{name: A, value: s3cret}, {name: B, value: "${S}"}]}
`), environment("S=s3cret\n"))
	if err != nil {
		t.Fatal(err)
	}
	out, err := cfg.YAML()
	if err != nil || strings.Contains(string(out), "s3cret") || strings.Count(string(out), redacted) != 5 {
		t.Errorf("error %v\n%s", err, out)
	}
	// A single target is the same, without the list around it.
	alone, err := cfg.Targets[0].YAML()
	if want := strings.ReplaceAll("\n"+string(out), "\n    ", "\n"); err != nil || want != "\ntargets:\n  - "+string(alone) {
		t.Errorf("error %v\n%s\nin the list:\n%s", err, alone, out)
	}
}

// A value that cannot be written is an error, not a panic. No file can have such a value.
func TestYAMLError(t *testing.T) {
	if _, err := (&Config{Targets: []Target{{Name: "\xff"}}}).YAML(); err == nil {
		t.Error("YAML writes invalid UTF-8")
	}
}
