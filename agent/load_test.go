// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/prober-exporter/prober_exporter/internal/testutil"
	"github.com/prober-exporter/prober_exporter/podstatus"
	"github.com/prober-exporter/prober_exporter/prober"
	"github.com/prober-exporter/prober_exporter/restart"
)

// again is a log that loads again at the first line that it takes.
type again struct {
	slog.Handler
	load func()
}

func (a *again) Handle(ctx context.Context, r slog.Record) error {
	if load := a.load; load != nil {
		a.load = nil
		load()
	}
	return a.Handler.Handle(ctx, r)
}

// A load writes its log with no lock held: another load can begin meanwhile.
func TestLoadLogsWithoutLocks(t *testing.T) {
	for _, content := range []string{"targets: []\n", "targets: [{name: a b}]\n", "targets: [{name: a, instance: {source: static}, livenessProbe: {initialDelaySeconds: 1, tcpSocket: {port: 1}}}]\n"} {
		var log strings.Builder
		handler := &again{Handler: slog.NewTextHandler(&log, nil)}
		m := prober.New(prober.Options{})
		l := &loader{file: testutil.Write(t, content), log: slog.New(handler), manager: m, restarter: restart.New(restart.Options{Prober: m}), pod: podstatus.New(podstatus.Options{Prober: m})}
		err := error(nil)
		handler.load = func() { err = l.load() }
		if got := l.load(); fmt.Sprint(got) != fmt.Sprint(err) || handler.load != nil {
			t.Errorf("%q: %v, and %v from within its log:\n%s", content, got, err, log.String())
		}
		m.Close()
	}
}

// The collector runs again once the load is over, as often as it was told to before: also
// if another agent of the process loads meanwhile, or if it was told to never run.
func TestCollectNoGarbage(t *testing.T) {
	const off = -1
	percent := func() int {
		p := debug.SetGCPercent(off)
		debug.SetGCPercent(p)
		return p
	}
	for _, was := range []int{70, off} {
		before := debug.SetGCPercent(was)
		undo := collectNoGarbage()
		during := percent()
		undoOther := collectNoGarbage()
		undo()
		undoOther()
		after := percent()
		debug.SetGCPercent(before)
		if during != off || after != was {
			t.Errorf("told %d: %d during the load and %d after it", was, during, after)
		}
	}
	defer debug.SetGCPercent(debug.SetGCPercent(70))
	undo := collectNoGarbage()
	debug.SetGCPercent(90)
	if undo(); percent() != 90 {
		t.Errorf("%d after a load that has set 90", percent())
	}
}

// An agent that makes few attempts spares memory, one that makes 100 a second the CPU; a
// reload goes from the one to the other.
func TestGOGCFollowsTheConfiguration(t *testing.T) {
	t.Setenv("GOGC", "")
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	targets := func(n int) string {
		text := "targets:\n"
		for i := range n {
			text += fmt.Sprintf("  - {name: t%d, readinessProbe: {tcpSocket: {port: 1}, periodSeconds: 1, initialDelaySeconds: 600}}\n", i)
		}
		return text
	}
	file := testutil.Write(t, targets(99))
	a := start(t, file, withRequests)
	gogc := func() string { return a.Metric("go_gc_gogc_percent") }
	if got := gogc(); got != "50" {
		t.Errorf("GOGC is %s at 99 attempts a second, want 50", got)
	}
	testutil.Rewrite(t, file, targets(100))
	if status, body := testutil.Do(t, http.MethodPost, a.Web+"/-/reload"); status != http.StatusOK {
		t.Fatalf("%d %s", status, body)
	}
	if got := gogc(); got != "100" {
		t.Errorf("GOGC is %s at 100 attempts a second, want 100", got)
	}
}
