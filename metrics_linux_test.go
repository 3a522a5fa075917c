// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/prober-exporter/prober_exporter/internal/testutil"
	"github.com/prober-exporter/prober_exporter/internal/testutil/agenttest"
	"github.com/prober-exporter/prober_exporter/prober/action/actiontest"
)

// always is the mark of docs/metrics.md for a metric that is never absent.
const always = "–"

// metricRow is a row of docs/metrics.md.
type metricRow struct{ kind, labels, meaning, absent string }

// metricRows returns the rows of docs/metrics.md by the names of the metrics, and the page's
// reasons.
func metricRows(t *testing.T) (rows map[string]metricRow, reasons []string) {
	t.Helper()
	page, err := os.ReadFile("docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	rows = map[string]metricRow{}
	for line := range strings.Lines(string(page)) {
		cells := strings.Split(strings.Trim(line, "|\n"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		name := strings.Trim(cells[0], "`")
		switch {
		case !strings.HasPrefix(line, "| `"):
		case len(cells) == 2:
			reasons = append(reasons, name)
		case len(cells) != 5 || cells[3] == "" || cells[4] == "" || rows[name].meaning != "":
			t.Errorf("docs/metrics.md: %q has an empty cell, not five cells, or two rows", name)
		default:
			rows[name] = metricRow{cells[1], strings.ReplaceAll(cells[2], "`", ""), cells[3], cells[4]}
		}
	}
	return rows, reasons
}

// exposed returns the metrics that the agent exposes now, in the words of the page. One row
// stands for all metrics of the client library.
func exposed(t *testing.T, a *agenttest.Agent) map[string]metricRow {
	t.Helper()
	status, body := testutil.Get(t, a.Web+"/metrics")
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(body))
	if status != http.StatusOK || err != nil {
		t.Fatalf("the scrape answers %d, %v", status, err)
	}
	rows := map[string]metricRow{}
	for name, mf := range families {
		if prefix, _, _ := strings.Cut(name, "_"); prefix == "go" || prefix == "process" {
			rows[prefix+"_*"] = metricRow{}
			continue
		}
		rows[name] = metricRow{kind: strings.ToLower(mf.GetType().String()), labels: labelNames(mf)}
	}
	return rows
}

func labelNames(mf *dto.MetricFamily) string {
	names := map[string]bool{}
	for _, m := range mf.GetMetric() {
		for _, l := range m.GetLabel() {
			names[l.GetName()] = true
		}
	}
	return strings.Join(slices.Sorted(maps.Keys(names)), " ")
}

// The test makes everything happen to an agent. docs/metrics.md has a row for each metric that
// the agent then exposes, and no other row. A metric that the page calls never absent is there
// before the first attempt. Any other metric is absent before that, or without a configuration.
//
// If you add a metric, add a row to the page. If the metric is absent at first, also add to the
// file below or to the requests after it what makes the metric appear.
func TestMetricsPage(t *testing.T) {
	rows, reasons := metricRows(t)
	app := agenttest.NewApp(t)
	_, secure, _ := net.SplitHostPort(actiontest.WebServer(t, actiontest.Site(), actiontest.Protocols((*http.Protocols).SetHTTP1), true).Listener.Addr().String())
	busy := start(t, agenttest.Flags(testutil.Write(t, fmt.Sprintf(`kubernetes: {events: true}
targets:
  - name: app
    instance: {source: listener}
    startupProbe: {httpGet: {port: %[1]s}, periodSeconds: 0.1}
    readinessProbe: {httpGet: {port: %[1]s, path: /ready}, periodSeconds: 0.1}
    restart: {exec: {command: ["true"]}}
  - name: secure
    readinessProbe: {httpGet: {port: %[2]s, scheme: HTTPS}, periodSeconds: 0.1}
  - name: broken
    readinessProbe: {exec: {command: ["false"]}, periodSeconds: 0.1}
    livenessProbe: {exec: {command: [/not/there]}, periodSeconds: 0.1}
  - name: worker
    livenessProbe: {heartbeat: {file: /dev/null, maxAgeSeconds: 60}, periodSeconds: 0.1}
  - name: flaps
    readinessProbe: {exec: {command: [sh, -c, "rm %[3]s || ! touch %[3]s"]}, periodSeconds: 0.1}
`, app.Port, secure, filepath.Join(t.TempDir(), "here"))))...)
	busy.Eventually("the agent exposes every metric of the page, and no other", func() error {
		got := exposed(t, busy)
		for name, row := range rows {
			words := strings.Fields(row.labels)
			slices.Sort(words)
			if want := (metricRow{kind: row.kind, labels: strings.Join(words, " ")}); got[name] != want {
				return fmt.Errorf("%s is %+v, docs/metrics.md says %+v", name, got[name], want)
			}
		}
		for name := range got {
			if rows[name].meaning == "" {
				return fmt.Errorf("docs/metrics.md has no row for %s", name)
			}
		}
		return nil
	})

	none := start(t, agenttest.Flags(testutil.Write(t, "nonsense"), "--config.fail-open")...)
	idle := start(t, agenttest.Flags(testutil.Write(t, fmt.Sprintf(`targets:
  - name: app
    instance: {source: process, pidFile: %s/pid}
    startupProbe: {tcpSocket: {port: 1}}
`, t.TempDir())))...)
	without, with := exposed(t, none), exposed(t, idle)
	for name, row := range rows {
		_, unconfigured := without[name]
		_, unprobed := with[name]
		if row.absent == always && !unprobed {
			t.Errorf("%s is absent while its target waits; docs/metrics.md says never", name)
		}
		if of := strings.Contains(row.labels, "target"); row.absent != always && unprobed && (of || unconfigured) {
			t.Errorf("%s is not absent %s, as docs/metrics.md says", name, row.absent)
		}
	}

	source, err := os.ReadFile("prober/action/action.go")
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, m := range regexp.MustCompile(`Reason = "(\w+)"`).FindAllStringSubmatch(string(source), -1) {
		want = append(want, m[1])
	}
	if fmt.Sprint(reasons) != fmt.Sprint(want) || len(want) < 16 {
		t.Errorf("docs/metrics.md has the reasons\n%s, there are\n%s", reasons, want)
	}
}

// With --no-metrics.classic-histograms no histogram of the agent has classic buckets, in any
// format. Everything else stays as before.
func TestNativeHistograms(t *testing.T) {
	app := agenttest.NewApp(t)
	file := testutil.Write(t, "targets:"+app.Target("app"))
	const probed = `prober_probe_duration_seconds_count{probe_type="Readiness",result="successful",target="app"}`
	names := [2]string{}
	for i, more := range [][]string{nil, {"--no-metrics.classic-histograms"}} {
		a := start(t, agenttest.Flags(file, more...)...)
		a.Eventually("a probe succeeds", func() error {
			if a.Metric(probed) == "" {
				return errors.New("not yet")
			}
			return nil
		})
		names[i] = fmt.Sprint(slices.Sorted(maps.Keys(exposed(t, a))))
		for _, path := range []string{"/metrics", "/metrics?name[]=prober_probe_duration_seconds"} {
			_, body := testutil.Get(t, a.Web+path)
			all, infinite := strings.Count(body, "_bucket{"), strings.Count(body, `le="+Inf"`)
			if classic := all > infinite; infinite == 0 || classic != (more == nil) {
				t.Errorf("%s%s: %d buckets, %d of them +Inf", path, more, all, infinite)
			}
		}
	}
	if names[0] != names[1] || names[0] == "" {
		t.Errorf("with classic buckets:\n%s\nwithout:\n%s", names[0], names[1])
	}
}
