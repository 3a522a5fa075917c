// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// metric finds the agent's metrics in an expression, with their selectors.
var metric = regexp.MustCompile(`\b((?:\w+:)*prober_\w+(?::\w+)*)(\{[^}]*\})?`)

// expressions returns every expression of the mixin, by its place.
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

// Every series that the mixin asks for is a series that the agent exports or that a rule
// records.
func TestMetricsExist(t *testing.T) {
	known := map[string]bool{}
	for _, m := range regexp.MustCompile("(?m)^\\| `(prober_\\w+)`").FindAllStringSubmatch(read(t, "../docs/metrics.md"), -1) {
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
				if base := strings.TrimSuffix(name, part); base != name && (strings.HasSuffix(base, "_seconds") || strings.HasSuffix(base, "_length")) {
					name = base
				}
			}
			if !known[name] {
				t.Errorf("%s asks for %s, which does not exist", where, m[1])
			}
		}
	}
	if asked < 75 {
		t.Errorf("saw only %d names", asked)
	}
}

// The kubelet has series with two of the agent's names. An expression that asks for one of
// these requires the label target.
func TestKubeletsSeries(t *testing.T) {
	for where, expr := range expressions(t) {
		for _, m := range metric.FindAllStringSubmatch(expr, -1) {
			if (strings.HasPrefix(m[1], "prober_probe_total") || strings.HasPrefix(m[1], "prober_probe_duration_seconds")) &&
				!strings.Contains(m[2], `target!=""`) && !strings.Contains(m[2], `target=~"$target"`) {
				t.Errorf("%s asks for %s without the label target, and a kubelet has that series as well", where, m[0])
			}
		}
	}
}

// Wherever an expression names the label probe_type to group or to match series, it also names
// probe, which tells the members of a list apart.
func TestMembersStayApart(t *testing.T) {
	seen := 0
	for where, expr := range expressions(t) {
		for _, m := range regexp.MustCompile(`\b(?:by|without|on|ignoring) \(([^)]*)\)`).FindAllStringSubmatch(expr, -1) {
			labels := strings.Split(m[1], ", ")
			if !slices.Contains(labels, "probe_type") {
				continue
			}
			if seen++; !slices.Contains(labels, "probe") {
				t.Errorf("%s: %s leaves probe out", where, m[0])
			}
		}
	}
	if seen < 10 {
		t.Errorf("saw only %d of them", seen)
	}
}

// tests/members.yaml tests the expressions that docs/metrics.md gives for the members of lists.
func TestDocumentedExpressions(t *testing.T) {
	tests := read(t, "tests/members.yaml")
	_, section, _ := strings.Cut(read(t, "../docs/metrics.md"), "### Several probes of one kind")
	section, _, _ = strings.Cut(section, "\n## ")
	found := regexp.MustCompile("[`\n]((?:sum by [^`\n]*|prober_probe_success[^`\n]+))").FindAllStringSubmatch(section, -1)
	for _, m := range found {
		if !strings.Contains(tests, "- expr: "+m[1]+"\n") {
			t.Errorf("nothing tests %s", m[1])
		}
	}
	if len(found) != 4 {
		t.Errorf("the page has %d expressions: %q", len(found), found)
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
