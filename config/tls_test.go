// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prober-exporter/prober_exporter/internal/testutil"
)

// A load reads the files that probes need. It warns of those that are missing or broken, without
// their content, and of no others.
func TestFilesAtLoad(t *testing.T) {
	dir := t.TempDir()
	authority := testutil.NewAuthority(t, "one")
	certificate, key := authority.Issue(t)
	for name, content := range map[string]string{
		"ca": authority.PEM(), "crt": certificate, "key": key, "token": "hunter2\n", "broken": "hunter2\nhunter2\n",
	} {
		testutil.Rewrite(t, filepath.Join(dir, name), content)
	}
	const file = `targets:
  - name: a
    readinessProbe:
      httpGet:
        port: 443
        scheme: HTTPS
        tlsConfig: {caFile: DIR/%s, certFile: DIR/%s, keyFile: DIR/key}
        httpHeaders: [{name: A, valueFile: DIR/%s}]
`
	for _, c := range []struct {
		ca, crt, token string
		want           []string
	}{
		{"ca", "crt", "token", nil},
		{"broken", "broken", "broken", []string{
			"certFile: cannot be used now: DIR/broken, DIR/key: tls: failed to find any PEM data in certificate input",
			"caFile: cannot be used now: DIR/broken: has no certificate in PEM form",
			"httpHeaders[0].valueFile: cannot be used now: DIR/broken: has a newline or another control character",
		}},
		{"none", "crt", "token", []string{"caFile: cannot be used now: DIR/none: no such file or directory"}},
	} {
		_, notices, err := Load("f.yml", []byte(strings.ReplaceAll(fmt.Sprintf(file, c.ca, c.crt, c.token), "DIR", dir)), environment(""))
		if err != nil {
			t.Fatal(err)
		}
		if len(notices) != len(c.want) {
			t.Errorf("%+v: notices %v", c, notices)
			continue
		}
		for i, n := range notices {
			got := strings.ReplaceAll(n.String(), dir, "DIR")
			if n.Level != Warn || !strings.Contains(got, c.want[i]) || strings.Contains(got, "hunter2") {
				t.Errorf("%+v: %s, want %s", c, got, c.want[i])
			}
		}
	}
}

// The value of a header from a file is secret in the same forms as one of the configuration.
func TestHeaderSecrets(t *testing.T) {
	h := Header{Name: "authorization", ValueFile: "/token", Prefix: "Basic "}
	got := strings.Join(Hidden(h.Secrets("Basic am9lOmh1bnRlcjI=")), " | ")
	if want := "Basic am9lOmh1bnRlcjI= | am9lOmh1bnRlcjI= | joe:hunter2 | hunter2"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	target := Target{ReadinessProbe: &Probe{HTTPGet: &HTTPGet{Headers: []Header{h, {Name: "A", Value: "plain"}}}}}
	if got := target.Secrets(); len(got) != 1 || got[0] != "plain" {
		t.Errorf("the configuration has the secrets %q", got)
	}
}
