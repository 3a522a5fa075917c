// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e && linux

package prometheus

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net/url"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prober-exporter/prober_exporter/internal/testutil"
)

// All parts of this test run in one world, one after the other.
func TestPrometheus(t *testing.T) {
	w := newWorld(t)
	for _, step := range []struct {
		name string
		test func(*testing.T, *world)
	}{
		{"Files", files},
		{"RulesLoad", rulesLoad},
		{"Labels", labels},
		{"Alert", alert},
		{"OtherAlerts", otherAlerts},
		{"Members", members},
		{"Histograms", histograms},
		{"AppRestart", appRestart},
		{"Dashboard", dashboards},
		{"Reload", reload},
		{"AgentRestart", agentRestart},
		{"NativeHistograms", nativeHistograms},
	} {
		if !t.Run(step.name, func(t *testing.T) { step.test(t, w) }) {
			return // the next parts build on this one
		}
	}
}

// both runs a check against both servers.
func (w *world) both(check func(*server)) {
	check(w.renamed)
	check(w.honoured)
}

// promtool and amtool accept the examples as they are, and the agent's metrics.
func files(t *testing.T, w *world) {
	command(t, nil, "promtool", "check", "config", "../../examples/prometheus/prometheus.yml")
	if amtool, err := exec.LookPath("amtool"); err == nil {
		command(t, nil, amtool, "check-config", "../../examples/prometheus/alertmanager.yml")
	}
	w.both(func(s *server) { s.becomes(t, `sum(prober_target_ready{target=~"app|gone"})`, 2) })
	metrics, err := fetch("http://" + w.agent.addr + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	lint := exec.CommandContext(t.Context(), "promtool", "check", "metrics")
	lint.Stdin = strings.NewReader(metrics)
	if out, err := lint.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("promtool check metrics: %v\n%s", err, out)
	}
}

// Prometheus has loaded every rule of the mixin, and has evaluated each without an error.
func rulesLoad(t *testing.T, w *world) {
	rendered := read(t, "../../mixin/rendered/alerts.yaml") + read(t, "../../mixin/rendered/rules.yaml")
	want := len(regexp.MustCompile(`(?m)^ *(- )?(alert|record): `).FindAllString(rendered, -1))
	w.both(func(s *server) {
		testutil.Within(t, time.Minute, fmt.Sprintf("%s has evaluated all %d rules", s.name, want), func() bool {
			var answer struct {
				Data struct {
					Groups []struct {
						Rules []struct{ Name, Health, LastError string }
					}
				}
			}
			s.ask(t, "/api/v1/rules", nil, &answer)
			good := 0
			for _, group := range answer.Data.Groups {
				for _, rule := range group.Rules {
					if rule.LastError != "" {
						t.Fatalf("%s: %s: %s", s.name, rule.Name, rule.LastError)
					}
					if rule.Health == "ok" {
						good++
					}
				}
			}
			return good == want
		})
	})
}

// If the scrape attaches a label that a target has, too, the target's label is renamed, or wins
// with honor_labels. Other labels of the target stay as they are.
func labels(t *testing.T, w *world) {
	for _, c := range []struct {
		server *server
		want   map[string]string
	}{
		{w.renamed, map[string]string{"namespace": "monitoring", "exported_namespace": "shop"}},
		{w.honoured, map[string]string{"namespace": "shop"}},
	} {
		want := map[string]string{
			"__name__": "prober_target_ready", "job": "prober", "instance": w.agent.addr, "target": "app", "team": "payments",
		}
		maps.Copy(want, c.want)
		if got := c.server.one(t, `prober_target_ready{target="app"}`); fmt.Sprint(got.labels) != fmt.Sprint(want) {
			t.Errorf("%s: got %v, want %v", c.server.name, got.labels, want)
		}
		if got := c.server.one(t, `prober_exporter_targets`); got.labels["namespace"] != "monitoring" {
			t.Errorf("%s: got %v, want the scrape's namespace", c.server.name, got.labels)
		}
	}
}

// The notice of a failing target, and of its recovery, has the target's own labels.
func alert(t *testing.T, w *world) {
	const name = "ProberTargetNotReady"
	if n, ok := w.hook.find(name, "app", "firing"); ok {
		t.Fatalf("a notice about a healthy target: %+v", n)
	}
	w.app.is(t, "ill")
	var firing notice
	testutil.Within(t, time.Minute, "the notice of a target that is not ready", func() (ok bool) {
		firing, ok = w.hook.find(name, "app", "firing")
		return ok
	})
	want := map[string]string{
		"alertname": name, "severity": "warning", "job": "prober", "instance": w.agent.addr,
		"target": "app", "team": "payments", "namespace": "monitoring", "exported_namespace": "shop",
	}
	if fmt.Sprint(firing.Labels) != fmt.Sprint(want) {
		t.Errorf("got labels %v, want %v", firing.Labels, want)
	}
	if said := firing.Annotations["description"]; !strings.HasSuffix(said, " Its most frequent failure in 1h: reason http_status, probe_type Readiness.") {
		t.Errorf("the description is %q", said)
	}
	if !strings.Contains(firing.Annotations["summary"], "app") || !strings.HasSuffix(firing.Annotations["runbook_url"], "#probertargetnotready") {
		t.Errorf("got annotations %v", firing.Annotations)
	}
	if n, ok := w.hook.find(name, "app", "resolved"); ok {
		t.Errorf("a notice of recovery about a failing target: %+v", n)
	}

	w.app.is(t, "well")
	var resolved notice
	testutil.Within(t, time.Minute, "the notice that it is ready again", func() (ok bool) {
		resolved, ok = w.hook.find(name, "app", "resolved")
		return ok
	})
	if fmt.Sprint(resolved.Labels) != fmt.Sprint(want) {
		t.Errorf("resolved with labels %v, want %v", resolved.Labels, want)
	}
}

// If a target is not live or does not run, no notice says that the target is not ready. If a
// probe cannot be attempted, no notice is about the target.
func otherAlerts(t *testing.T, w *world) {
	w.gone.stop()
	for _, c := range [][2]string{
		{"ProberTargetNotLive", "hung"},
		{"ProberTargetRestartLoop", "hung"},
		{"ProberLivenessNearMiss", "flapping"},
		{"ProberTargetNotRunning", "gone"},
		{"ProberProbeNotAttempted", "broken"},
	} {
		testutil.Within(t, time.Minute, fmt.Sprintf("the notice %v", c), func() bool {
			_, ok := w.hook.find(c[0], c[1], "firing")
			return ok
		})
	}
	for _, target := range []string{"hung", "gone"} {
		testutil.Within(t, time.Minute, "that "+target+" is not ready is not told", func() bool {
			return w.state(t, "ProberTargetNotReady", target) == "suppressed"
		})
	}
	for _, name := range []string{"ProberTargetNotReady", "ProberTargetNotLive"} {
		if n, ok := w.hook.find(name, "broken", "firing"); ok {
			t.Errorf("unexpected notice %+v", n)
		}
	}
}

// The members of a list have series of their own. One of two has failed, which the expression of
// docs/metrics.md finds; nobody is told that the target is not ready, because the target is.
func members(t *testing.T, w *world) {
	w.both(func(s *server) {
		s.becomes(t, `prober_probe_success{target="pair",probe="away"}`, 0)
		s.becomes(t, `prober_probe_success{target="pair",probe="here"}`, 1)
		s.becomes(t, `prober_target_ready{target="pair"}`, 1)
		got := s.one(t, `prober_probe_success{probe_type!="Startup",probe!=""} == 0 and on (job, instance, target) prober_target_ready == 1`)
		if got.labels["probe"] != "away" || got.labels["target"] != "pair" {
			t.Errorf("%s: got %v, want the member that has failed", s.name, got.labels)
		}
		if got := s.query(t, `{__name__=~"prober_.+",target!="pair",probe!=""}`); len(got) != 0 {
			t.Errorf("%s: %d series of other targets name a member, the first is %v", s.name, len(got), got[0])
		}
	})
	if n, ok := w.hook.find("ProberTargetNotReady", "pair", "firing"); ok {
		t.Errorf("a notice about a target that is ready: %+v", n)
	}
}

// state returns the state of an alert in the Alertmanager.
func (w *world) state(t *testing.T, name, target string) string {
	t.Helper()
	body, err := fetch("http://" + w.alerts + "/api/v2/alerts")
	var alerts []struct {
		Labels map[string]string
		Status struct{ State string }
	}
	if err == nil {
		err = json.Unmarshal([]byte(body), &alerts)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range alerts {
		if a.Labels["alertname"] == name && a.Labels["target"] == target {
			return a.Status.State
		}
	}
	return ""
}

// Quantiles work with both sorts of histogram. Each server has only the sort that it asks for.
func histograms(t *testing.T, w *world) {
	const of = `target="app",probe_type="Liveness",result="successful"`
	if got := w.honoured.query(t, `prober_probe_duration_seconds_bucket`); len(got) != 0 {
		t.Errorf("native histograms have %d classic buckets", len(got))
	}
	if got := w.honoured.one(t, `prober_probe_duration_seconds{`+of+`}`); got.value < 1 {
		t.Errorf("the native histogram has %v observations", got.value)
	}
	if got := w.renamed.query(t, `prober_probe_duration_seconds`); len(got) != 0 {
		t.Errorf("%d native histograms at the server that does not ask for them", len(got))
	}
	for _, c := range []struct {
		server *server
		expr   string
	}{
		{w.honoured, `histogram_quantile(0.5, rate(prober_probe_duration_seconds{` + of + `}[30s]))`},
		{w.honoured, `histogram_sum(rate(prober_probe_duration_seconds{` + of + `}[30s])) / histogram_count(rate(prober_probe_duration_seconds{` + of + `}[30s]))`},
		{w.honoured, `target_probe_type:prober_probe_duration_seconds:p95_rate5m{target="app",probe_type="Liveness"}`},
		{w.honoured, `target_probe_type:prober_probe_duration_seconds:mean_rate5m{target="app",probe_type="Liveness"}`},
		{w.honoured, `target_probe_type:prober_probe_duration_seconds:p99_rate5m{target="app",probe_type="Liveness"}`},
		{w.renamed, `histogram_quantile(0.5, rate(prober_probe_duration_seconds_bucket{` + of + `}[30s]))`},
		{w.renamed, `target_probe_type:prober_probe_duration_seconds:mean_rate10s{target="app",probe_type="Liveness"}`},
		{w.renamed, `target_probe_type:prober_probe_duration_seconds:p99_rate10s{target="app",probe_type="Liveness"}`},
	} {
		// A slow machine may take longer. A bucket's bound is 9 % off at most.
		if got := c.server.one(t, c.expr); got.value < 0.9*slow.Seconds() && c.server == w.honoured || got.value < 0.05 || got.value > 1 {
			t.Errorf("%s: %s is %v, want about %v", c.server.name, c.expr, got.value, slow)
		}
	}
}

// Each query of the dashboard returns data, and each variable has values.
func dashboards(t *testing.T, w *world) {
	w.both(func(s *server) {
		if asked := s.panels(t, ""); asked < 20 {
			t.Errorf("%s: the test found only %d queries", s.name, asked)
		}
	})
	_, variables := dashboard(t)
	for name, want := range map[string]string{"job": "prober", "namespace": "monitoring", "target": "app broken flapping gone hung pair"} {
		m := regexp.MustCompile(`^label_values\((.*), (\w+)\)$`).FindStringSubmatch(chosen(variables[name]))
		if m == nil || m[2] != name {
			t.Fatalf("variable %s asks %q", name, variables[name])
		}
		var answer struct{ Data []string }
		w.renamed.ask(t, "/api/v1/label/"+name+"/values", url.Values{"match[]": {m[1]}}, &answer)
		if got := strings.Join(answer.Data, " "); got != want {
			t.Errorf("variable %s has values %q, want %q", name, got, want)
		}
	}
}

// panels waits until each query of the dashboard that contains a text has data, and returns the
// number of these queries.
func (s *server) panels(t *testing.T, with string) (asked int) {
	t.Helper()
	panels, _ := dashboard(t)
	for _, p := range panels {
		for _, target := range p.Targets {
			expr := chosen(target.Expr)
			if p.Title == agentsDown || !strings.Contains(expr, with) {
				continue // this panel has data only when an agent is down
			}
			asked++
			testutil.Within(t, time.Minute, fmt.Sprintf("%s: panel %q %s has data: %s", s.name, p.Title, target.RefID, expr), func() bool {
				got := s.query(t, expr)
				return slices.ContainsFunc(got, func(one sample) bool { return !math.IsNaN(one.value) })
			})
		}
	}
	return asked
}

// The agent has no classic buckets. A server that asks for native histograms has everything as
// before. A server that asks for text has the means, but its quantiles are not a number.
func nativeHistograms(t *testing.T, w *world) {
	const of = `target="app",probe_type="Liveness",result="successful"`
	const count = `histogram_count(prober_probe_duration_seconds{` + of + `})`
	w.agent.process.stop(syscall.SIGTERM)
	w.both(func(s *server) { s.becomes(t, `up{job="prober"}`, 0) })
	w.agent.flags = []string{"--no-metrics.classic-histograms"}
	w.agent.start(t)

	rulesLoad(t, w)
	text, native := w.renamed, w.honoured
	before := native.one(t, count).value
	testutil.Within(t, time.Minute, "native histograms arrive and grow", func() bool {
		got := native.query(t, count)
		return len(got) == 1 && got[0].value > before
	})
	if asked := native.panels(t, "histogram_"); asked < 3 {
		t.Errorf("the test found only %d queries of histograms", asked)
	}

	text.becomes(t, `count(prober_probe_duration_seconds_bucket{`+of+`,le="+Inf"})`, 1)
	if got := text.query(t, `prober_probe_duration_seconds_bucket{le!="+Inf"}`); len(got) != 0 {
		t.Errorf("%s: %d classic buckets, the first is %v", text.name, len(got), got[0])
	}
	testutil.Within(t, time.Minute, "no quantile of what the classic buckets have left", func() bool {
		got := text.query(t, `histogram_quantile(0.5, rate(prober_probe_duration_seconds_bucket{`+of+`}[5s]))`)
		return len(got) == 1 && math.IsNaN(got[0].value)
	})
	const mean = `target_probe_type:prober_probe_duration_seconds:mean_rate10s{target="app",probe_type="Liveness"}`
	if got := text.one(t, mean); got.value < 0.9*slow.Seconds() || got.value > 1 {
		t.Errorf("%s: %s is %v, want about %v", text.name, mean, got.value, slow)
	}
}

// agentsDown is the panel that has data only when an agent is down.
const agentsDown = "Agents down"
