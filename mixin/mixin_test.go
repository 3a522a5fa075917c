// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-jsonnet"
	"github.com/google/go-jsonnet/formatter"
	"sigs.k8s.io/yaml"
)

// rule is an alert or a recording rule.
type rule struct {
	Alert, Record, Expr, For string
	Labels, Annotations      map[string]string
}

// rules returns the rules in a field of the mixin, with a configuration of the caller.
func rules(t *testing.T, field, config string) []rule {
	t.Helper()
	vm := jsonnet.MakeVM()
	text, err := vm.EvaluateAnonymousSnippet("rules", fmt.Sprintf("((import 'mixin.libsonnet') + { _config+:: %s }).%s", config, field))
	if err != nil {
		t.Fatal(err)
	}
	var document struct{ Groups []struct{ Rules []rule } }
	if err := json.Unmarshal([]byte(text), &document); err != nil {
		t.Fatal(err)
	}
	var all []rule
	for _, group := range document.Groups {
		all = append(all, group.Rules...)
	}
	if len(all) == 0 {
		t.Fatalf("%s has no rules", field)
	}
	return all
}

// read returns a file's text.
func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The rendered files are what the mixin renders now, and there are no other files beside them.
func TestRenderedIsCurrent(t *testing.T) {
	want, err := render(".", "{}")
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range want {
		if read(t, filepath.Join("rendered", name)) != text {
			t.Errorf("rendered/%s is old: run make mixin", name)
		}
	}
	err = filepath.WalkDir("rendered", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if name, _ := filepath.Rel("rendered", path); want[name] == "" {
			t.Errorf("the mixin does not render %s", path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// All Jsonnet is formatted as by its formatter.
func TestFormatted(t *testing.T) {
	seen := 0
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "sonnet") {
			return err
		}
		seen++
		text := read(t, path)
		options := formatter.DefaultOptions()
		options.MaxBlankLines = 1
		options.CommentStyle = formatter.CommentStyleSlash
		if formatted, err := formatter.Format(path, text, options); err != nil || formatted != text {
			t.Errorf("%s is not formatted (%v): jsonnetfmt -n 2 --max-blank-lines 1 --string-style s --comment-style s -i %[1]s", path, err)
		}
		return nil
	})
	if err != nil || seen < 8 {
		t.Errorf("looked at %d files, %v", seen, err)
	}
}

// Each alert has a severity, its texts, and a section of docs/runbooks.md with the parts that
// its annotation promises. Each section has its alert.
func TestRunbooks(t *testing.T) {
	page := read(t, "../docs/runbooks.md")
	sections := map[string]string{}
	for _, section := range strings.Split(page, "\n## ")[1:] {
		name, text, _ := strings.Cut(section, "\n")
		sections[name] = text
	}
	for _, alert := range rules(t, "prometheusAlerts", "{}") {
		text, ok := sections[alert.Alert]
		delete(sections, alert.Alert)
		if !ok {
			t.Errorf("docs/runbooks.md has no section %q", alert.Alert)
			continue
		}
		for _, part := range []string{"**Means**", "**Look first**", "**Likely causes**", "**Do**", "**Why so**"} {
			if !strings.Contains(text, part) {
				t.Errorf("the runbook of %s has no part %s", alert.Alert, part)
			}
		}
		if s := alert.Labels["severity"]; s != "warning" && s != "critical" {
			t.Errorf("%s: severity is %q", alert.Alert, s)
		}
		if url := alert.Annotations["runbook_url"]; !strings.HasSuffix(url, "/docs/runbooks.md#"+strings.ToLower(alert.Alert)) {
			t.Errorf("%s: runbook_url is %q", alert.Alert, url)
		}
		if alert.Annotations["summary"] == "" || alert.Annotations["description"] == "" {
			t.Errorf("%s has no texts", alert.Alert)
		}
	}
	for name := range sections {
		if name != "All alerts" {
			t.Errorf("docs/runbooks.md has a section %q, but there is no such alert", name)
		}
	}
}

// What an alert says is true wherever an agent runs, and a runbook that tells what to type
// in Kubernetes tells what to type elsewhere as well; but for alerts on what is in Kubernetes
// alone.
func TestNotOfKubernetesAlone(t *testing.T) {
	alone := map[string]bool{}
	for _, alert := range rules(t, "prometheusAlerts", "{}") {
		if strings.Contains(alert.Expr, "prober_exporter_kubernetes_") {
			alone[alert.Alert] = true
			continue
		}
		for name, text := range alert.Annotations {
			for _, word := range []string{"ubelet", "kubectl", "ubernetes", "pod", "container", "CrashLoop"} {
				if strings.Contains(text, word) {
					t.Errorf("%s: %s says %q: %s", alert.Alert, name, word, text)
				}
			}
		}
	}
	for _, section := range strings.Split(read(t, "../docs/runbooks.md"), "\n## ")[1:] {
		elsewhere := strings.Contains(section, "docker ") && (strings.Contains(section, "systemctl ") || strings.Contains(section, "journalctl "))
		name, _, _ := strings.Cut(section, "\n")
		if strings.Contains(section, "kubectl ") && !elsewhere && !alone[name] {
			t.Errorf("the section on %.40q has kubectl alone", section)
		}
	}
}

// The rules load and pass the tests in tests/, in which each alert fires in one case and is
// silent in another.
func TestPromtool(t *testing.T) {
	silent, fires := map[string]bool{}, map[string]bool{}
	files, err := filepath.Glob("tests/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		var document struct {
			Tests []struct {
				Name  string
				Cases []struct {
					Alertname string
					Alerts    []any `json:"exp_alerts"`
				} `json:"alert_rule_test"`
			}
		}
		if err := yaml.Unmarshal([]byte(read(t, file)), &document); err != nil {
			t.Fatal(err)
		}
		for _, group := range document.Tests {
			for _, c := range group.Cases {
				if len(c.Alerts) > 0 {
					fires[c.Alertname] = true
				}
			}
			for _, c := range group.Cases {
				if len(c.Alerts) == 0 {
					silent[c.Alertname] = true
				}
			}
		}
	}
	for _, alert := range rules(t, "prometheusAlerts", "{}") {
		if !fires[alert.Alert] || !silent[alert.Alert] {
			t.Errorf("%s: has a case in which it fires: %v, one in which it does not: %v", alert.Alert, fires[alert.Alert], silent[alert.Alert])
		}
	}

	promtool, err := exec.LookPath("promtool")
	if err != nil {
		if os.Getenv("PROBER_REQUIRE_ALL") != "" {
			t.Fatalf("%v: install Debian's package prometheus", err)
		}
		t.Skipf("not run: %v", err) //nolint:forbidigo // package needs is of another module
	}
	for _, args := range [][]string{
		{"check", "rules", "--lint=all", "--lint-fatal", "rendered/alerts.yaml", "rendered/rules.yaml"},
		append([]string{"test", "rules"}, files...),
	} {
		if out, err := exec.CommandContext(t.Context(), promtool, args...).CombinedOutput(); err != nil {
			t.Errorf("promtool %q: %v\n%s", args, err, out)
		}
	}
}
