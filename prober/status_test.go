// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package prober

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/gate"
	"github.com/prober-exporter/prober_exporter/prober/action"
)

// The agent removes secrets of the target's configuration from the output of probes before it
// logs, remembers or shows the output.
func TestSecretsAreScrubbed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.m.Close()
		w.says("app/readiness", action.Outcome{Reason: action.ExitCode, Output: "token=tr0ub4dor, bye"})
		w.on("app/liveness", func(context.Context) (action.Outcome, error) {
			return action.Outcome{Reason: action.ExecStart}, errors.New("exec tr0ub4dor: not found")
		})
		c := app("app", nil, every(time.Second), every(time.Second))
		c.Env = []config.EnvVar{{Name: "TOKEN", Value: "tr0ub4dor"}}
		w.apply(c)
		w.sleepUntil(3 * time.Second)
		seen := w.logged() + fmt.Sprintf("%+v", w.m.Status(Full))
		if strings.Contains(seen, "tr0ub4dor") || !strings.Contains(seen, "token=<redacted>, bye") || !strings.Contains(seen, "exec <redacted>: not found") {
			t.Errorf("a secret is visible, or the output is missing: %s", seen)
		}
	})
}

// The log has one line for each change, not for each attempt: for the first failure of a run,
// for each change of the result, and for each new reason why the agent could not make an
// attempt.
func TestLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.m.Close()
		unable := errors.New("too many open files")
		long := action.Outcome{Reason: action.HTTPStatus, Output: strings.Repeat("é", 200), Body: "no\ndatabase\u202e", Address: "http://127.0.0.1/moved"}
		well := action.Outcome{Success: true, Output: strings.Repeat("w", 5000)}
		command := action.Outcome{Reason: action.ExitCode, ExitCode: 3}
		warning := action.Outcome{Success: true, Warning: true, Output: "redirect"}
		answers := []struct {
			o   action.Outcome
			err error
		}{{bad, nil}, {bad, nil}, {long, nil}, {well, nil}, {warning, nil}, {warning, nil}, {action.Outcome{}, unable}, {action.Outcome{}, unable}, {good, nil}, {command, nil}, {good, nil}}
		w.on("app/liveness", func(context.Context) (action.Outcome, error) {
			a := answers[min(int(time.Since(w.begin)/time.Second), len(answers)-1)]
			return a.o, a.err
		})
		w.apply(app("app", nil, nil, every(time.Second)))
		w.sleepUntil(20 * time.Second)
		var lines []string
		for line := range strings.Lines(w.logged()) {
			if !strings.Contains(line, "level=DEBUG") {
				lines = append(lines, line)
			}
		}
		cut := strings.Repeat("é", 128)
		want := `level=WARN msg="probe failed" target=app probe_type=Liveness reason=connection_refused attempt=1/3 output="connection refused" address=http://127.0.0.1:80/
level=INFO msg="result changed" target=app probe_type=Liveness from=Success to=Failure reason=http_status attempt=3/3 output=` + cut + ` body="no\ndatabase\\u202e" address=http://127.0.0.1/moved
level=INFO msg="result changed" target=app probe_type=Liveness from=Failure to=Success attempt=1/1 output=` + strings.Repeat("w", 64) + `
level=WARN msg="probe succeeded with a warning" target=app probe_type=Liveness attempt=1/1 output=redirect address=http://127.0.0.1:80/
level=WARN msg="probe could not be attempted" target=app probe_type=Liveness reason=other output="too many open files" address=http://127.0.0.1:80/
level=WARN msg="probe failed" target=app probe_type=Liveness reason=exit_code attempt=1/3 exit_code=3 address=http://127.0.0.1:80/
`
		if got := strings.Join(lines, ""); got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
		if !strings.Contains(w.logged(), "level=DEBUG msg=attempt") {
			t.Error("no attempt is logged at debug")
		}
	})
}

// A status belongs to the caller, whose changes to it have no effect.
func TestStatusIsACopy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.m.Close()
		w.says("app/readiness", bad)
		w.apply(labelled(app("app", nil, every(time.Second), nil), "a"))
		w.sleepUntil(time.Second)
		whole := func() string {
			all, err := json.Marshal(w.m.Status(Full)) // Marshal follows pointers
			if err != nil {
				t.Fatal(err)
			}
			return string(all)
		}
		before := whole()
		s := w.m.Status(Full)
		s.Statuses[0].Labels[0].Value = "x"
		p := &s.Statuses[0].Probes[0]
		p.Failures[0].Count = 99
		p.Durations.Failed.Classic[0] = 99
		p.Attempts[0].Output, p.LastFailures[0].Output, p.Marks[0].Reason = "x", "x", "x"
		p.FirstFailure.Output = "x"
		s.SourceUp["static"] = false
		if after := whole(); after != before {
			t.Errorf("got\n%s\nwant\n%s", after, before)
		}
		if full := w.probe("app", gate.Readiness); len(full.Marks) != 2 || len(full.Attempts) != 1 || full.Address != "http://127.0.0.1:80/" {
			t.Errorf("full: %d attempts, %d entries, %q; want 2, 1 and the address", len(full.Marks), len(full.Attempts), full.Address)
		}
		b := w.m.Status(Brief).Statuses[0].Probes[0]
		if b.Durations.Failed.Count != 0 || b.Attempts != nil || b.Marks != nil || b.FirstFailure != nil || b.Address != "" {
			t.Errorf("brief: %+v, want no histograms and no attempts", b)
		}
	})
}
