// Copyright 2026 The prober_exporter Authors
// Licensed under the Apache License, Version 2.0 (the "License");
// you may not use this file except in compliance with the License.
// You may obtain a copy of the License at
//
//     http://www.apache.org/licenses/LICENSE-2.0
//
// Unless required by applicable law or agreed to in writing, software
// distributed under the License is distributed on an "AS IS" BASIS,
// WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
// See the License for the specific language governing permissions and
// limitations under the License.

package main

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
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

// rules returns what a field of the mixin has, with a configuration of the caller's.
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

// What is rendered is what the mixin says, and nothing else lies beside it.
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
			t.Errorf("%s is not of the mixin", path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// All jsonnet is as its formatter would have it.
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

// Each alert has a severity, its texts, and a section of docs/runbooks.md that answers
// what its annotation promises; no section is of an alert that is gone.
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
			t.Errorf("docs/runbooks.md has a section %q, and there is no such alert", name)
		}
	}
}

// The rules load and do what tests/ says, in which each alert fires in one case and is
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
		if os.Getenv("CI") == "true" {
			t.Fatalf("%v: install Debian's package prometheus", err)
		}
		t.Skipf("not run: %v", err)
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

// metric finds the names of ours in an expression, with their selectors.
var metric = regexp.MustCompile(`\b((?:\w+:)*prober_\w+(?::\w+)*)(\{[^}]*\})?`)

// expressions returns every expression of the mixin, by where it is.
func expressions(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, field := range []string{"prometheusAlerts", "prometheusRules"} {
		for _, r := range rules(t, field, "{}") {
			all[r.Alert+r.Record] = r.Expr
		}
	}
	for _, panel := range dashboard(t).Panels {
		for _, target := range panel.Targets {
			all[panel.Title+" "+target.RefID] = target.Expr
		}
	}
	return all
}

// Every series that is asked for is one that the agent exports, or that is recorded.
func TestMetricsExist(t *testing.T) {
	known := map[string]bool{}
	for _, m := range regexp.MustCompile(`"(prober_\w+)"`).FindAllStringSubmatch(
		read(t, "../collector/collector.go")+read(t, "../collector/reload.go"), -1) {
		known[m[1]] = true
	}
	for _, r := range rules(t, "prometheusRules", "{}") {
		known[r.Record] = true
		if strings.Count(r.Record, ":") != 2 {
			t.Errorf("%s is not level:metric:operations", r.Record)
		}
	}
	asked := 0
	for where, expr := range expressions(t) {
		for _, m := range metric.FindAllStringSubmatch(expr, -1) {
			asked++
			name := m[1]
			for _, part := range []string{"_bucket", "_sum", "_count"} {
				if base := strings.TrimSuffix(name, part); base != name && strings.HasSuffix(base, "_seconds") {
					name = base
				}
			}
			if !known[name] {
				t.Errorf("%s asks for %s, which there is not", where, m[1])
			}
		}
	}
	if asked < 75 {
		t.Errorf("saw only %d names", asked)
	}
}

// The kubelet has series of two of our names: whoever asks for these says that there is
// to be a target.
func TestKubeletsSeries(t *testing.T) {
	for where, expr := range expressions(t) {
		for _, m := range metric.FindAllStringSubmatch(expr, -1) {
			if (strings.HasPrefix(m[1], "prober_probe_total") || strings.HasPrefix(m[1], "prober_probe_duration_seconds")) &&
				!strings.Contains(m[2], `target!=""`) && !strings.Contains(m[2], `target=~"$target"`) {
				t.Errorf("%s asks for %s, which a kubelet has as well", where, m[0])
			}
		}
	}
}

// The configuration reaches every rule: selectors, windows, names, numbers.
func TestConfig(t *testing.T) {
	const config = `{ selector: 'job="mine"', scrapeSelector: 'job="mine"', window: '7m', agentLabels: ['cluster', 'instance'],
		runbookURL: 'https://runbooks.example.org/%s', alerts+:: { ProberTargetNotReady+: { 'for': '9m', severity: 'page' } } }`
	all := append(rules(t, "prometheusAlerts", config), rules(t, "prometheusRules", config)...)
	for _, r := range all {
		for _, m := range metric.FindAllStringSubmatch(r.Expr, -1) {
			if recorded := strings.Contains(m[1], ":"); !recorded && !strings.Contains(m[2], `job="mine"`) || recorded && strings.Contains(m[1], "5m") {
				t.Errorf("%s%s: %s is not as configured", r.Alert, r.Record, m[0])
			}
		}
		if strings.Contains(r.Expr, "[5m]") || strings.Contains(r.Record, "5m") || strings.Contains(r.Expr, "on (job") {
			t.Errorf("%s%s: %s is not as configured", r.Alert, r.Record, r.Expr)
		}
		if r.Alert != "" && r.Annotations["runbook_url"] != "https://runbooks.example.org/"+strings.ToLower(r.Alert) {
			t.Errorf("%s: runbook_url is %s", r.Alert, r.Annotations["runbook_url"])
		}
	}
	first := all[0]
	if first.Alert != "ProberTargetNotReady" || first.For != "9m" || first.Labels["severity"] != "page" || !strings.Contains(first.Annotations["description"], "9m") {
		t.Errorf("got %+v", first)
	}
}

// board is what the tests have to know of a dashboard.
type board struct {
	Panels []struct {
		ID         int
		Type       string
		Title      string
		GridPos    struct{ X, Y, W, H int }
		Datasource *struct{ UID string }
		Targets    []struct {
			RefID      string
			Expr       string
			Datasource struct{ UID string }
		}
	}
	Templating struct {
		List []struct {
			Name, Type string
			Query      any
		}
	}
}

func dashboard(t *testing.T) board {
	t.Helper()
	var b board
	if err := json.Unmarshal([]byte(read(t, "rendered/dashboards/prober.json")), &b); err != nil {
		t.Fatal(err)
	}
	return b
}

// Panels have an ID of their own, room of their own, and ask the chosen data source;
// every variable that they use is there.
func TestDashboard(t *testing.T) {
	b := dashboard(t)
	variables := []string{"__rate_interval", "__range"}
	for _, v := range b.Templating.List {
		variables = append(variables, v.Name)
	}
	for _, want := range []string{"datasource", "job", "namespace", "target"} {
		if !slices.Contains(variables, want) {
			t.Errorf("there is no variable %s", want)
		}
	}
	taken := map[[2]int]string{}
	ids := map[int]bool{}
	for _, p := range b.Panels {
		if ids[p.ID] || p.ID == 0 {
			t.Errorf("panel %q: ID %d is taken", p.Title, p.ID)
		}
		ids[p.ID] = true
		if p.GridPos.X+p.GridPos.W > 24 {
			t.Errorf("panel %q: %+v is beyond the grid", p.Title, p.GridPos)
		}
		for x := range p.GridPos.W {
			for y := range p.GridPos.H {
				cell := [2]int{p.GridPos.X + x, p.GridPos.Y + y}
				if taken[cell] != "" {
					t.Fatalf("panel %q lies on %q", p.Title, taken[cell])
				}
				taken[cell] = p.Title
			}
		}
		if p.Type == "row" {
			continue
		}
		if len(p.Targets) == 0 || p.Datasource == nil || p.Datasource.UID != "${datasource}" {
			t.Errorf("panel %q asks nobody: %+v", p.Title, p)
		}
		for _, target := range p.Targets {
			if target.RefID == "" || target.Datasource.UID != "${datasource}" {
				t.Errorf("panel %q: %+v", p.Title, target)
			}
			for _, m := range regexp.MustCompile(`\$(\w+)`).FindAllStringSubmatch(target.Expr, -1) {
				if !slices.Contains(variables, m[1]) {
					t.Errorf("panel %q uses $%s, which there is not", p.Title, m[1])
				}
			}
		}
	}
	if len(ids) < 20 {
		t.Errorf("only %d panels", len(ids))
	}
}
