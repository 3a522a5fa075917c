// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"cmp"
	"fmt"
	"html/template"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/prober-exporter/prober_exporter/gate"
	"github.com/prober-exporter/prober_exporter/prober"
	"github.com/prober-exporter/prober_exporter/prober/output"
	"github.com/prober-exporter/prober_exporter/restart"
)

// maxListOutput is how much of an output the list of targets shows; the target's own
// page has all that is remembered.
const maxListOutput = 256

// targetView is a target as both pages show it.
type targetView struct {
	look
	Name, Href string
	// Why says why the target is not ready or not live.
	Why      string
	Labels   []labelView
	Flags    []flagView
	Instance instanceView
	Acted    string // how the last act ended; empty: there was none
	Kinds    []kindView
	Probes   []probeView
}

type labelView struct{ Text, Href string }

// flagView is one of started, ready and live, and for how long it has been so.
type flagView struct {
	Word       string
	OK         bool
	For, Since string
}

type instanceView struct {
	ID, Phase, Source, Reason, Restarts string
	Up, Since                           string // since it started, if that is known
	Startup                             string // how long that took, once started
	Notes                               []string
}

// probeView is a probe as both pages show it.
type probeView struct {
	look
	Kind, Action, Address string
	// Title names the probe within the target, ID does so in a link. Label is the part of the
	// title that the kind does not say already.
	Title, ID, Label string
	Note             string        // details beside the result
	Took, Next       string        // of the last attempt, when the next turn is; empty: none
	Strip            template.HTML // a mark for each attempt, oldest first
	// Trouble is the last failure while it lasts, Past once it is over.
	Trouble, Past *attemptView
	// Run says since when the probe has been failing.
	Run string
}

// attemptView is an attempt of the past, or several equal ones in a row. Count is empty
// for a single attempt.
type attemptView struct {
	Title, Class, Outcome, Reason, Count string
	At, Clock, Ago, Took                 string // of the last
	FirstAt, First                       string
	Address, Output                      string
	More                                 bool // there is more of the output
}

// viewer makes views as of a moment.
type viewer struct {
	now    time.Time
	root   string // the relative path to the root
	output int    // how many bytes of an output it shows
}

func (v *viewer) target(t *prober.TargetStatus, r *restart.TargetStatus) targetView {
	st := stateOf(t)
	out := targetView{
		look: looks[st],
		Name: t.Name,
		Href: v.root + "targets/" + t.Name,
		Why:  v.why(st, t, r),
		Flags: []flagView{
			v.flag("started", t.Started, t.Changed.Started),
			v.flag("ready", t.Ready, t.Changed.Ready),
			v.flag("live", t.Live, t.Changed.Live),
		},
		Instance: v.instance(t),
		Acted:    v.acted(r),
		Probes:   make([]probeView, len(t.Probes)),
	}
	for _, l := range t.Labels {
		out.Labels = append(out.Labels, labelView{
			Text: output.Visible(l.Name + "=" + l.Value),
			Href: v.root + "?q=" + url.QueryEscape(labelTerm(l.Name, l.Value)),
		})
	}
	for i := range t.Probes {
		out.Probes[i] = v.probe(t, &t.Probes[i])
	}
	out.Kinds = kindsOf(t, out.Probes)
	return out
}

func (v *viewer) flag(word string, is bool, changed time.Time) flagView {
	out := flagView{Word: word, OK: is}
	if !changed.IsZero() {
		out.For, out.Since = age(v.now.Sub(changed)), clock(changed, v.now)
	}
	return out
}

func (v *viewer) instance(t *prober.TargetStatus) instanceView {
	i, d := t.Instance, t.Details
	out := instanceView{
		ID:       output.Visible(i.ID),
		Phase:    i.Phase.String(),
		Source:   t.Source,
		Reason:   output.Visible(t.SourceReason),
		Restarts: plural(int(t.Restarts), "restart"),
	}
	if t.Source == "static" {
		out.ID = "" // the ID only repeats that this source has one instance for ever
	}
	if !i.StartedAt.IsZero() {
		out.Up, out.Since = age(v.now.Sub(i.StartedAt)), clock(i.StartedAt, v.now)
	}
	if t.StartupDuration >= 0 {
		out.Startup = took(t.StartupDuration)
	}
	note := func(is bool, format string, args ...any) {
		if is {
			out.Notes = append(out.Notes, output.Visible(fmt.Sprintf(format, args...)))
		}
	}
	note(i.Final, "no instance follows")
	note(i.Deleting, "is being deleted")
	note(d.Paused, "paused: neither probed nor judged")
	note(d.OOMKilled, "killed: out of memory")
	if d.ExitCode != nil {
		note(true, "last exit code %d", *d.ExitCode)
	}
	note(d.PID != 0, "PID %d", d.PID)
	note(d.Message != "", "%s", d.Message)
	return out
}

func (v *viewer) probe(t *prober.TargetStatus, p *prober.ProbeStatus) probeView {
	out := probeView{
		Kind: p.Kind.String(), Action: p.Action, Address: output.Visible(p.Address),
		Title: p.Title(), ID: strings.ReplaceAll(p.Title(), "/", "-"), Label: cmp.Or(p.Name, p.Kind.String()),
	}
	out.look, out.Note = lookOf(t, p, v.now)
	if !p.NextTurn.IsZero() && !p.Held {
		out.Next = until(p.NextTurn, v.now)
	}
	out.Strip = v.strip(p.Marks)
	failing := p.ConsecutiveFailures > 0
	if n := len(p.Marks); n > 0 {
		last := &p.Marks[n-1]
		out.Took = took(last.Duration)
		failing = failing || last.Outcome != prober.Successful
	}
	if n := len(p.LastFailures); n > 0 {
		last := v.attempt(out.Title, &p.LastFailures[n-1])
		if failing && !spare(t, p) {
			out.Trouble = &last
		} else {
			out.Past = &last
		}
	}
	out.Run = v.run(p)
	return out
}

// run says since when a probe has failed, and when it succeeded before that.
func (v *viewer) run(p *prober.ProbeStatus) string {
	if p.FirstFailure == nil {
		return ""
	}
	first := p.FirstFailure.Start
	s := plural(int(p.ConsecutiveFailures), "failure") + " in a row" + v.since(first)
	if p.LastSuccess != nil {
		s += ", last success " + clock(p.LastSuccess.Start, v.now)
	}
	return s
}

// lookOf returns how the page shows the state of a probe, and a note beside it.
func lookOf(t *prober.TargetStatus, p *prober.ProbeStatus, now time.Time) (l look, note string) {
	threshold := max(p.FailureThreshold, 1)
	run := fmt.Sprintf("%d/%d failures", min(p.ConsecutiveFailures, uint64(threshold)), threshold)
	if p.ConsecutiveFailures > uint64(threshold) {
		note = count(int(p.ConsecutiveFailures)) + " in a row"
	}
	switch {
	case heldByFailure(t, p):
		return look{"bad", "✗", run + ", held"}, waitsFor(p, now)
	case spare(t, p) && p.ConsecutiveFailures > 0:
		return look{"off", "○", run}, notNeeded
	case spare(t, p):
		return look{"off", "○", "no result"}, notNeeded
	case p.Result == gate.Failure && p.ConsecutiveFailures > 0:
		return look{"bad", "✗", run}, note
	case p.ConsecutiveFailures > 0:
		return look{"warn", "!", run}, note
	case p.Gated:
		return look{"off", "○", "waits"}, gatedBy(t, p)
	case p.Result == gate.Success && p.Held:
		return look{"ok", "✓", "success"}, "done"
	case p.Result == gate.Success:
		return look{"ok", "✓", "success"}, ""
	case p.Last == gate.Success && p.Run > 0:
		return look{"wait", "…", fmt.Sprintf("%d/%d successes", p.Run, max(p.SuccessThreshold, 1))}, ""
	default:
		return look{"wait", "…", "no result yet"}, ""
	}
}

// waitsFor says what ends the hold of a probe.
func waitsFor(p *prober.ProbeStatus, now time.Time) string {
	const restart = "waits for a restart"
	if p.HeldUntil.IsZero() {
		return restart
	}
	return restart + "; next attempt " + until(p.HeldUntil, now)
}

// gatedBy says what a probe waits for.
func gatedBy(t *prober.TargetStatus, p *prober.ProbeStatus) string {
	switch {
	case !t.Running:
		return "for an instance"
	case t.Details.Paused:
		return "for the end of the pause"
	case p.Kind != gate.Startup && !t.Started:
		return "for startup"
	case p.InitialDelay > 0:
		return "initial delay " + seconds(p.InitialDelay)
	default:
		return ""
	}
}

// strip writes the marks of attempts. The marks are nine tenths of a page, and in a
// template they took nine tenths of its time. Everything that is not a constant here is
// escaped.
func (v *viewer) strip(marks []prober.Mark) template.HTML {
	var b strings.Builder
	for _, m := range marks {
		class, outcome := classOf(m.Outcome, m.Warning)
		what := clock(m.Start, v.now) + " " + outcome
		if m.Reason != "" {
			what += ": " + string(m.Reason)
		}
		b.WriteString(`<li class="` + class + `"><span>`)
		template.HTMLEscape(&b, []byte(output.Visible(what+", "+took(m.Duration))))
		b.WriteString(`</span>`)
	}
	return template.HTML(b.String())
}

// classOf returns the class of an attempt's mark, and its meaning in words.
func classOf(o prober.AttemptOutcome, warning bool) (class, outcome string) {
	switch {
	case warning:
		return "w", "successful with a warning"
	case o == prober.Successful:
		return "s", o.String()
	case o == prober.Failed:
		return "f", o.String()
	default:
		return "u", o.String()
	}
}

func (v *viewer) attempt(title string, a *prober.Attempt) attemptView {
	class, outcome := classOf(a.Outcome, a.Warning)
	out := attemptView{
		Title:   title,
		Class:   class,
		Outcome: outcome,
		Reason:  string(a.Reason),
		At:      a.Last.UTC().Format(time.RFC3339Nano),
		Clock:   clock(a.Last, v.now),
		Ago:     ago(a.Last, v.now),
		Took:    took(a.Duration),
		Address: output.Visible(a.Address),
	}
	if a.ExitCode != 0 {
		out.Reason += fmt.Sprintf(" %d", a.ExitCode)
	}
	if a.Count > 1 {
		out.Count = count(int(a.Count))
		out.FirstAt, out.First = a.Start.UTC().Format(time.RFC3339Nano), clock(a.Start, v.now)
	}
	said := strings.TrimSpace(strings.TrimSpace(a.Output) + "\n" + strings.TrimSpace(a.Body))
	shown := output.Cut(said, v.output)
	out.Output, out.More = output.Visible(shown), len(shown) < len(said)
	return out
}

// history returns all attempts that are remembered, newest first.
func (v *viewer) history(p *prober.ProbeStatus) []attemptView {
	all := slices.Clone(p.Attempts)
	also := slices.Clone(p.LastFailures)
	for _, a := range []*prober.Attempt{p.FirstFailure, p.LastSuccess} {
		if a != nil {
			also = append(also, *a)
		}
	}
	for _, a := range also {
		known := func(of prober.Attempt) bool { return !a.Start.Before(of.Start) && !a.Start.After(of.Last) }
		if !slices.ContainsFunc(all, known) {
			all = append(all, a)
		}
	}
	slices.SortStableFunc(all, func(a, b prober.Attempt) int { return b.Start.Compare(a.Start) })
	out := make([]attemptView, len(all))
	for i := range all {
		out[i] = v.attempt(p.Title(), &all[i])
	}
	return out
}

// reasonsOf lists how often attempts failed for each reason, the most frequent first.
func reasonsOf(p *prober.ProbeStatus) string {
	failures := slices.Clone(p.Failures)
	slices.SortStableFunc(failures, func(a, b prober.ReasonCount) int { return cmp.Compare(b.Count, a.Count) })
	var parts []string
	for _, f := range failures {
		parts = append(parts, fmt.Sprintf("%s %s", f.Reason, count(int(f.Count))))
	}
	return strings.Join(parts, ", ")
}
