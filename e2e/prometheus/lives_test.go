// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e && linux

package prometheus

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prober-exporter/prober_exporter/internal/testutil"
)

// A new instance of a target takes the place of the instance before, so there is one at a time.
// One restart alarms nobody, but a crash loop does. As beside a supervisor, only the agent sees
// the restarts.
func appRestart(t *testing.T, w *world) {
	const info = `prober_target_info{target="app"}`
	var before []string
	w.both(func(s *server) { before = append(before, s.one(t, info).labels["instance_id"]) })
	for restart := range 3 {
		w.app.stop()
		w.both(func(s *server) { s.becomes(t, `prober_target_running{target="app"}`, 0) })
		w.app.start(t)
		w.both(func(s *server) {
			s.becomes(t, `prober_target_restarts_total{target="app"}`, float64(restart+1))
			s.becomes(t, `prober_target_ready{target="app"}`, 1)
			if got := s.one(t, info).labels["instance_id"]; slices.Contains(before, got) {
				t.Errorf("%s: the new instance is %q, like the instance before", s.name, got)
			}
		})
		if n, ok := w.hook.find("ProberTargetRestarting", "app", "firing"); ok && restart < 2 {
			t.Errorf("a notice after %d restarts: %+v", restart+1, n)
		}
	}
	testutil.Within(t, time.Minute, "the notice of a crash loop", func() bool {
		_, ok := w.hook.find("ProberTargetRestarting", "app", "firing")
		return ok
	})
	for _, name := range []string{"ProberTargetNotLive", "ProberTargetNotRunning"} {
		if n, ok := w.hook.find(name, "app", "firing"); ok {
			t.Errorf("unexpected notice %+v", n)
		}
	}
}

// A reload that removes a target removes its series and no others. A refused reload raises an
// alert.
func reload(t *testing.T, w *world) {
	fewer, _, _ := strings.Cut(w.targets(), "  - name: broken")
	testutil.Rewrite(t, w.agent.file, fewer)
	hangup(t, w.agent)
	w.both(func(s *server) {
		testutil.Within(t, time.Minute, s.name+": the target is gone", func() bool { return len(s.query(t, `{target="broken",__name__=~"prober_.+"}`)) == 0 })
		s.becomes(t, `prober_exporter_targets`, 5)
		s.becomes(t, `min_over_time(prober_target_ready{target="app"}[3s])`, 1)
	})

	testutil.Rewrite(t, w.agent.file, "targets: none")
	hangup(t, w.agent)
	testutil.Within(t, time.Minute, "the notice of a refused file", func() bool {
		n, ok := w.hook.find("ProberExporterReloadFailed", "", "firing")
		return ok && n.Labels["instance"] == w.agent.addr
	})
	testutil.Rewrite(t, w.agent.file, fewer)
	hangup(t, w.agent)
	w.both(func(s *server) { s.becomes(t, `prober_exporter_config_last_reload_successful`, 1) })
}

func hangup(t *testing.T, a *agent) {
	t.Helper()
	if err := a.process.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
}

// While the agent is away its series are gone. When the agent is back, there is each series
// once, with counters that have begun anew.
func agentRestart(t *testing.T, w *world) {
	const ours = `{__name__=~"prober_(probe|target|exporter)_.+"}`
	comes := regexp.MustCompile(`prober_(probe_duration_seconds|probe_failures_total|target_info|target_startup_duration_seconds)`) // these series come with their first events
	series := map[*server]map[string]bool{}
	w.both(func(s *server) { series[s] = names(s.query(t, ours)) })

	w.agent.process.stop(syscall.SIGTERM)
	w.both(func(s *server) {
		s.becomes(t, `up{job="prober"}`, 0)
		if got := s.query(t, ours); len(got) != 0 {
			t.Errorf("%s: %d series of an agent that does not run, the first is %v", s.name, len(got), got[0])
		}
	})
	panels, _ := dashboard(t)
	at := slices.IndexFunc(panels, func(p panel) bool { return p.Title == agentsDown })
	w.both(func(s *server) { s.becomes(t, chosen(panels[at].Targets[0].Expr), 1) })
	testutil.Within(t, time.Minute, "the notice that an agent is down", func() bool {
		n, ok := w.hook.find("ProberExporterDown", "", "firing")
		return ok && n.Labels["instance"] == w.agent.addr && n.Labels["severity"] == "critical"
	})

	w.agent.start(t)
	w.both(func(s *server) {
		s.becomes(t, `up{job="prober"}`, 1)
		s.becomes(t, `prober_target_ready{target="app"}`, 1)
		// Each series appears once, and comes from the last scrapes.
		for _, expr := range []string{
			`count by (target) (prober_target_info) != 1`,
			`count by (target) (prober_target_ready) != 1`,
			`count by (target, probe_type, probe) (prober_probe_success) != 1`,
			`count by (target, probe_type, probe, result) (prober_probe_total) != 1`,
			`time() - timestamp(prober_probe_success) > 10`,
		} {
			if got := s.query(t, expr); len(got) != 0 {
				t.Errorf("%s: %s has %d series, the first is %v", s.name, expr, len(got), got[0])
			}
		}
		for name := range names(s.query(t, ours)) {
			if !series[s][name] && !comes.MatchString(name) {
				t.Errorf("%s: a series that did not exist before the restart: %s", s.name, name)
			}
		}
		// There are 5 attempts a second. A counter that begins anew is no jump.
		const rate = `rate(prober_probe_total{target="app",probe_type="Readiness",result="successful"}[30s])`
		if got := s.one(t, rate); got.value <= 0 || got.value > 7 {
			t.Errorf("%s: %s is %v", s.name, rate, got.value)
		}
		for _, metric := range []string{
			"prometheus_target_scrapes_sample_duplicate_timestamp_total",
			"prometheus_target_scrapes_sample_out_of_order_total",
		} {
			if got := s.own(t, metric); got != 0 {
				t.Errorf("%s: %s is %v", s.name, metric, got)
			}
		}
	})
	testutil.Within(t, time.Minute, "the notice that it is back", func() bool {
		_, ok := w.hook.find("ProberExporterDown", "", "resolved")
		return ok
	})
	if text := read(t, filepath.Join(w.dir, "renamed.log")); strings.Contains(strings.ToLower(text), "level=error") {
		t.Errorf("Prometheus has logged an error:\n%s", text)
	}
}

// names returns the series of an answer as text.
func names(samples []sample) map[string]bool {
	all := map[string]bool{}
	for _, s := range samples {
		all[fmt.Sprint(s.labels)] = true
	}
	return all
}
