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

package web

import (
	"cmp"
	"fmt"
	"html/template"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/prober-exporter/prober_exporter/prober"
	"github.com/prober-exporter/prober_exporter/prober/gate"
)

// maxListOutput is how much of an output the list of targets shows; the target's own
// page has all that is remembered.
const maxListOutput = 256

// targetView is a target as both pages show it.
type targetView struct {
	look
	Name, Href string
	// Why says why it is not as it should be.
	Why      string
	Labels   []labelView
	Flags    []flagView
	Instance instanceView
	Probes   []probeView
}

type labelView struct{ Text, Href string }

// flagView is one of started, ready and live.
type flagView struct {
	Word string
	OK   bool
}

type instanceView struct {
	ID, Phase, Source, Reason, Restarts string
	Up, Since                           string // since it started, if that is known
	Startup                             string // how long that took, once it has
	Notes                               []string
}

// probeView is a probe as both pages show it.
type probeView struct {
	look
	Kind, Action string
	Note         string        // what the result does not say
	Took, Next   string        // of the last attempt, when the next turn is; empty: none
	Strip        template.HTML // a mark for each attempt, oldest first
	// Trouble is the last failure if it is the probe's present state, Past if it is over.
	Trouble, Past *attemptView
}

// attemptView is an attempt of the past.
type attemptView struct {
	Kind, Class, Outcome, Reason string
	At, Clock, Ago, Took         string
	Output                       string
	More                         bool // there is more of the output
}

// viewer makes views as of a moment.
type viewer struct {
	now    time.Time
	root   string // how the page says /
	output int    // how many bytes of an output it shows
}

func (v *viewer) target(t *prober.TargetStatus) targetView {
	st := stateOf(t)
	out := targetView{
		look:     looks[st],
		Name:     t.Name,
		Href:     v.root + "targets/" + t.Name,
		Why:      st.why(t),
		Flags:    []flagView{{"started", t.Started}, {"ready", t.Ready}, {"live", t.Live}},
		Instance: v.instance(t),
		Probes:   make([]probeView, len(t.Probes)),
	}
	for _, l := range t.Labels {
		out.Labels = append(out.Labels, labelView{
			Text: visible(l.Name + "=" + l.Value),
			Href: v.root + "?q=" + url.QueryEscape(labelTerm(l.Name, l.Value)),
		})
	}
	for i := range t.Probes {
		out.Probes[i] = v.probe(t, &t.Probes[i])
	}
	return out
}

func (v *viewer) instance(t *prober.TargetStatus) instanceView {
	i, d := t.Instance, t.Details
	out := instanceView{
		ID:       visible(i.ID),
		Phase:    i.Phase.String(),
		Source:   t.Source,
		Reason:   visible(t.SourceReason),
		Restarts: plural(int(t.Restarts), "restart"),
	}
	if t.Source == "static" {
		out.ID = "" // it says that there is one instance for ever, as the source does
	}
	if !i.StartedAt.IsZero() {
		out.Up, out.Since = age(v.now.Sub(i.StartedAt)), clock(i.StartedAt, v.now)
	}
	if t.StartupDuration >= 0 {
		out.Startup = took(t.StartupDuration)
	}
	note := func(is bool, format string, args ...any) {
		if is {
			out.Notes = append(out.Notes, visible(fmt.Sprintf(format, args...)))
		}
	}
	note(i.Final, "nothing comes after it")
	note(i.Deleting, "is being deleted")
	note(d.Paused, "paused: neither probed nor judged")
	note(d.OOMKilled, "was killed because memory ran out")
	if d.ExitCode != nil {
		note(true, "last exit code %d", *d.ExitCode)
	}
	note(d.PID != 0, "PID %d", d.PID)
	note(d.Message != "", "%s", d.Message)
	return out
}

func (v *viewer) probe(t *prober.TargetStatus, p *prober.ProbeStatus) probeView {
	out := probeView{Kind: p.Kind.String(), Action: p.Action}
	out.look, out.Note = lookOf(t, p)
	if !p.NextTurn.IsZero() && !p.Held {
		out.Next = until(p.NextTurn, v.now)
	}
	out.Strip = v.strip(p.Attempts)
	failing := p.ConsecutiveFailures > 0
	if n := len(p.Attempts); n > 0 {
		last := &p.Attempts[n-1]
		out.Took = took(last.Duration)
		failing = failing || last.Outcome != prober.Successful
	}
	if n := len(p.LastFailures); n > 0 {
		last := v.attempt(p.Kind, &p.LastFailures[n-1])
		if failing {
			out.Trouble = &last
		} else {
			out.Past = &last
		}
	}
	return out
}

// lookOf returns what a probe says, and what else there is to know of it.
func lookOf(t *prober.TargetStatus, p *prober.ProbeStatus) (l look, note string) {
	threshold := max(p.FailureThreshold, 1)
	run := fmt.Sprintf("%d/%d failures", min(p.ConsecutiveFailures, uint64(threshold)), threshold)
	if p.ConsecutiveFailures > uint64(threshold) {
		note = count(int(p.ConsecutiveFailures)) + " in a row"
	}
	switch {
	case heldByFailure(*p):
		return look{"bad", "✗", run + ", held"}, "waits for a restart"
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

// gatedBy says what a probe waits for.
func gatedBy(t *prober.TargetStatus, p *prober.ProbeStatus) string {
	switch {
	case !t.Running:
		return "for an instance"
	case t.Details.Paused:
		return "until it goes on"
	case p.Kind != gate.Startup && !t.Started:
		return "for startup"
	case p.InitialDelay > 0:
		return "initial delay " + seconds(p.InitialDelay)
	default:
		return ""
	}
}

// strip writes the marks of attempts. They are nine tenths of a page, and as a template
// were nine tenths of its cost. All that is not a constant here is escaped.
func (v *viewer) strip(attempts []prober.Attempt) template.HTML {
	var b strings.Builder
	for i := range attempts {
		a := &attempts[i]
		class, outcome := classOf(a)
		what := clock(a.Start, v.now) + " " + outcome
		if a.Reason != "" {
			what += ": " + string(a.Reason)
		}
		b.WriteString(`<li class="` + class + `"><span>`)
		template.HTMLEscape(&b, []byte(visible(what+", "+took(a.Duration))))
		b.WriteString(`</span>`)
	}
	return template.HTML(b.String())
}

// classOf returns how an attempt's mark looks, and what that means.
func classOf(a *prober.Attempt) (class, outcome string) {
	switch {
	case a.Warning:
		return "w", "successful with a warning"
	case a.Outcome == prober.Successful:
		return "s", a.Outcome.String()
	case a.Outcome == prober.Failed:
		return "f", a.Outcome.String()
	default:
		return "u", a.Outcome.String()
	}
}

func (v *viewer) attempt(k gate.Kind, a *prober.Attempt) attemptView {
	class, outcome := classOf(a)
	out := attemptView{
		Kind:    k.String(),
		Class:   class,
		Outcome: outcome,
		Reason:  string(a.Reason),
		At:      a.Start.UTC().Format(time.RFC3339Nano),
		Clock:   clock(a.Start, v.now),
		Ago:     ago(a.Start, v.now),
		Took:    took(a.Duration),
	}
	out.Output, out.More = cut(strings.TrimSpace(a.Output), v.output)
	out.Output = visible(out.Output)
	return out
}

// history returns all attempts that are remembered, newest first.
func (v *viewer) history(p *prober.ProbeStatus) []attemptView {
	var oldest time.Time
	if len(p.Attempts) > 0 {
		oldest = p.Attempts[0].Start
	}
	all := slices.Clone(p.Attempts)
	for _, a := range p.LastFailures {
		if a.Start.Before(oldest) {
			all = append(all, a)
		}
	}
	slices.SortStableFunc(all, func(a, b prober.Attempt) int { return b.Start.Compare(a.Start) })
	out := make([]attemptView, len(all))
	for i := range all {
		out[i] = v.attempt(p.Kind, &all[i])
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
