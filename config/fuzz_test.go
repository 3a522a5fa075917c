// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/prober-exporter/prober_exporter/internal/testutil"
)

// Whatever the file, Load returns a configuration or mistakes, never both, and never panics. A
// configuration is complete, and the same after a write and a read. Mistakes and notices have a
// line each and contain no secret.
func FuzzLoad(f *testing.F) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		archive := testutil.ReadArchive(f, file)
		f.Add([]byte(archive.Find("prober.yml")))
	}
	const secret = "Zx9-from-the-environment"
	lookup := func(name string) (string, bool) {
		switch name {
		case "SECRET", "TOKEN", "HOST", "ZONE":
			return secret + "\x01${", true // neither a host nor a header value
		case "POD_IP":
			return "10.0.0.1", true
		}
		return "", false
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if strings.Contains(string(data), secret) {
			return
		}
		cfg, notices, err := Load("f", data, lookup)
		if (cfg == nil) == (err == nil) {
			t.Fatalf("config %v, error %v", cfg, err)
		}
		for _, n := range notices {
			checkLine(t, n.String(), n.Line, secret)
		}
		if err != nil {
			errs, ok := err.(Errors) //nolint:errorlint // the type is the promise
			if !ok || len(errs) == 0 {
				t.Fatalf("%T %v", err, err)
			}
			for _, e := range errs {
				if e.File == "f" {
					checkLine(t, e.Error(), e.Line, secret)
				}
			}
			return
		}
		for i := range cfg.Targets {
			checkTarget(t, &cfg.Targets[i])
		}
		checkYAML(t, cfg)
	})
}

func checkLine(t *testing.T, text string, line int, secret string) {
	t.Helper()
	if line < 1 || strings.ContainsAny(text, "\n\r\x00") || strings.Contains(text, secret) || len(text) > 1000 {
		t.Fatalf("line %d: %q", line, text)
	}
}

func checkTarget(t *testing.T, target *Target) {
	t.Helper()
	probes := 0
	for k, p := range target.All() {
		if probes++; target.Named(k, p.Name) != p {
			t.Fatalf("%s/%s is not found by its name", k, p.Name)
		}
		if n, require := len(target.Of(k)), target.Require(k); require < 1 || require > n {
			t.Fatalf("%s requires %d of %d", k, require, n)
		}
		if p.Action() == "" || p.Timeout <= 0 || p.Period <= 0 || p.InitialDelay < 0 || p.SuccessThreshold < 1 || p.FailureThreshold < 1 {
			t.Fatalf("incomplete: %+v", p)
		}
		if p.Exec != nil && len(target.Command(p.Exec)) == 0 {
			t.Fatal("no command")
		}
	}
	if probes == 0 || target.Name == "" || target.Host == "" || target.Instance.Source == "" {
		t.Fatalf("incomplete: %+v", target)
	}
	for _, s := range target.Secrets() {
		if len(s) < leastSecret {
			t.Fatalf("too short to look for: %q", s)
		}
	}
	if len(target.Environ(nil)) > len(target.Env) {
		t.Fatal("more variables than written")
	}
}
