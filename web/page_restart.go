// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"strings"
	"time"

	"github.com/prober-exporter/prober_exporter/prober"
	"github.com/prober-exporter/prober_exporter/prober/output"
	"github.com/prober-exporter/prober_exporter/restart"
)

// restartView is how the agent restarts a target, as the target's page shows it.
type restartView struct {
	look
	Handler string
	Facts   []pair
	Acts    []actView // newest first
}

// actView is a restart, or one that was dropped.
type actView struct {
	Class, Result, Why        string
	At, Clock, Took           string
	Instance, Message, Output string
	More                      bool // for the template of outputs: all is shown
}

// why says why a target is in its state, and what the agent does about a verdict.
func (v *viewer) why(st state, t *prober.TargetStatus, r *restart.TargetStatus) string {
	why, plan := st.why(t, v.now), planOf(r)
	if plan == "" {
		return why
	}
	if st == stateHeld {
		why = whyNotLive(t).String() // the plan says what the probe waits for
	}
	if why != "" {
		why += ", "
	}
	return why + "restart " + plan
}

// acted says in one line how the last act ended.
func (v *viewer) acted(r *restart.TargetStatus) string {
	if r == nil || len(r.Acts) == 0 {
		return ""
	}
	a := &r.Acts[len(r.Acts)-1]
	return "last restart " + ago(a.Began.Add(a.Duration), v.now) + ": " + wordOf(a.Result)
}

func (v *viewer) restart(r *restart.TargetStatus) *restartView {
	if r == nil {
		return nil
	}
	out := &restartView{look: lookOfRestart(r), Handler: r.Handler, Facts: v.restartFacts(r)}
	if r.DryRun {
		out.Handler += ", dry run"
	}
	if r.Current != nil {
		out.Acts = append(out.Acts, v.act(r.Current))
	}
	for i := len(r.Acts) - 1; i >= 0; i-- {
		out.Acts = append(out.Acts, v.act(&r.Acts[i]))
	}
	return out
}

func lookOfRestart(r *restart.TargetStatus) look {
	switch plan := "restart " + planOf(r); {
	case r.Current != nil:
		return look{"wait", "…", plan}
	case r.Wanted && waitsOnLimit(r):
		return look{"bad", "✗", plan}
	case r.Wanted:
		return look{"warn", "!", plan}
	case r.Limited:
		return look{"warn", "!", "limit spent"}
	default:
		return look{"ok", "✓", "no restart due"}
	}
}

func (v *viewer) restartFacts(r *restart.TargetStatus) []pair {
	backOff, limit := "none", "none"
	if r.BackOffLeft > 0 {
		which := afterStart
		if r.BackOffs > 0 {
			which = ordinal(r.BackOffs)
		}
		backOff = took(r.BackOff) + ", " + which + "; ends " + in(r.BackOffLeft)
	}
	if r.Limit.Restarts > 0 {
		limit = limitOf(r)
	}
	facts := []pair{{"back-off", backOff}, {"limit", limit}}
	if r.Limited {
		facts = append(facts, pair{"limit spent", "until " + clock(r.LimitedUntil, v.now) + ", " + until(r.LimitedUntil, v.now)})
	}
	for _, result := range restart.Results() {
		facts = append(facts, pair{wordOf(result), count(int(r.Counts.Of(result)))})
	}
	return facts
}

func (v *viewer) act(a *restart.Act) actView {
	threshold := max(a.Threshold, 1)
	failures := int(min(a.Failures, uint64(threshold)))
	why := finding{Kind: a.Kind.String(), Probe: a.Probe, Reason: string(a.Reason), Failures: &failures, Threshold: threshold}
	return actView{
		Class:    classOfResult(a.Result),
		Result:   wordOf(a.Result),
		Why:      why.String(),
		At:       a.Began.UTC().Format(time.RFC3339Nano),
		Clock:    clock(a.Began, v.now),
		Took:     took(a.Duration),
		Instance: output.Visible(a.Instance),
		Message:  output.Visible(a.Message),
		Output:   output.Visible(strings.TrimSpace(a.Output)),
	}
}

// wordOf returns the result of an act in words.
func wordOf(r restart.Result) string {
	switch r {
	case "":
		return "under way"
	case restart.DryRun:
		return "dry run"
	default:
		return string(r)
	}
}

// classOfResult returns the class of the mark of an act.
func classOfResult(r restart.Result) string {
	switch r {
	case restart.Succeeded:
		return "s"
	case restart.Failed:
		return "f"
	case restart.DryRun:
		return "w"
	default:
		return "u"
	}
}
