// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"fmt"
	"math"
	"time"

	"github.com/prober-exporter/prober_exporter/prober"
	"github.com/prober-exporter/prober_exporter/prober/output"
)

// targetPage is the page of one target. Missing is the text if there is no such target.
type targetPage struct {
	head
	Missing string
	targetView
	Health  []labelView
	Probes  []probeDetail
	Restart *restartView // nil for a target without a restart block
	Config  string
}

// probeDetail is a probe with all details.
type probeDetail struct {
	probeView
	List             *listView // of the first member of a list
	Settings, Counts []pair
	Plot             plot
	History          []attemptView
}

type pair struct{ Name, Value string }

// onePage makes the page of a target, false if there is no target of that name.
func (s *Server) onePage(name string, now time.Time) (*targetPage, bool) {
	const root = "../"
	shown := display(name)
	p := &targetPage{head: s.head(shown+" – prober_exporter", root, now)}
	t, ok := s.opts.Prober.Target(name, prober.Full)
	if !ok {
		p.Missing = "There is no target " + shown + "."
		if s.opts.Prober.Removed(name) {
			p.Missing = "A reload has removed the target " + shown + ", which is not probed and counts as live."
		}
		return p, false
	}
	v := viewer{now: now, root: root, output: math.MaxInt}
	r := s.restartOf(name)
	p.targetView, p.Restart = v.target(&t, r), v.restart(r)
	p.Title = p.Word + ": " + p.Title
	for _, c := range checks {
		p.Health = append(p.Health, labelView{"/" + c.name + "/" + t.Name, root + c.name + "/" + t.Name + "?verbose"})
	}
	for i := range t.Probes {
		d := v.detail(p.targetView.Probes[i], &t.Probes[i])
		if k := t.Probes[i].Kind; i == 0 || t.Probes[i-1].Kind != k {
			d.List = listOf(&t, k)
		}
		p.Probes = append(p.Probes, d)
	}
	body, err := s.opts.TargetConfig(name)
	if err != nil { // a reload is under way
		body = []byte(err.Error())
	}
	p.Config = output.Visible(string(body))
	return p, true
}

func (v *viewer) detail(view probeView, p *prober.ProbeStatus) probeDetail {
	d := probeDetail{
		probeView: view,
		Settings: []pair{
			{"initial delay", seconds(p.InitialDelay)},
			{"timeout", seconds(p.Timeout)},
			{"period", periods(p)},
			{"success threshold", fmt.Sprint(p.SuccessThreshold)},
			{"failure threshold", fmt.Sprint(p.FailureThreshold)},
		},
		Counts: []pair{
			{"result", p.Result.String() + v.since(p.Changed)},
			{"successful", count(int(p.Successful))},
			{"failed", count(int(p.Failed))},
			{"unknown", count(int(p.Unknown))},
			{"changes of the result", count(int(p.Transitions))},
		},
		Plot:    newPlot(p.Marks, p.Timeout),
		History: v.history(p),
	}
	if p.Run > 0 {
		d.Counts = append(d.Counts, pair{"run", fmt.Sprintf("%d × %v", p.Run, p.Last)})
	}
	if len(p.Failures) > 0 {
		d.Counts = append(d.Counts, pair{"reasons", reasonsOf(p)})
	}
	if !p.LastRun.IsZero() {
		d.Counts = append(d.Counts, pair{"last attempt ended", clock(p.LastRun, v.now) + ", " + ago(p.LastRun, v.now)})
	}
	if p.LastHour != nil {
		d.Counts = append(d.Counts, pair{"last hour", hourOf(p)})
	}
	if !p.CertExpires.IsZero() {
		d.Counts = append(d.Counts, pair{"certificate valid until", clock(p.CertExpires, v.now) + left(p.CertExpires, v.now)})
	}
	if !p.LastHeartbeat.IsZero() {
		d.Counts = append(d.Counts, pair{"last beat", clock(p.LastHeartbeat, v.now) + ", " + ago(p.LastHeartbeat, v.now)})
	}
	return d
}

// left says how long a certificate is still valid.
func left(end, now time.Time) string {
	if end.Before(now) {
		return ", expired " + ago(end, now)
	}
	return ", " + age(end.Sub(now)) + " left"
}

// hourOf says how near a probe came to its limits in the last hour.
func hourOf(p *prober.ProbeStatus) string {
	h, s := p.LastHour, "no failure"
	if h.WorstRun > 0 {
		s = fmt.Sprintf("worst run %d of %d", h.WorstRun, p.FailureThreshold)
	}
	switch {
	case h.SlowestSuccess > 0:
		return s + ", slowest success " + seconds(h.SlowestSuccess.Round(p.Timeout/100)) + " of " + seconds(p.Timeout)
	case h.Succeeded:
		return s + ", every success below " + seconds(prober.SlowFrom(p.Timeout)) + " of " + seconds(p.Timeout)
	default:
		return s + ", no success"
	}
}

// since says since when something is so, if that is known.
func (v *viewer) since(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return " since " + clock(at, v.now) + " (" + age(v.now.Sub(at)) + ")"
}

// plot has a bar for each attempt. The height of a bar is the attempt's duration.
type plot struct {
	Label        string // what the bars say, in words
	Width        int
	Bars         []bar
	TimeoutAt    int // where the timeout lies
	ShowsTimeout bool
}

type bar struct {
	Class           string
	X, Y, W, Height int
}

const (
	plotHeight = 48
	barWidth   = 12
	barGap     = 3
)

func newPlot(attempts []prober.Mark, timeout time.Duration) plot {
	p := plot{Width: len(attempts) * (barWidth + barGap)}
	if len(attempts) == 0 {
		return p
	}
	least, most := attempts[0].Duration, attempts[0].Duration
	for _, a := range attempts {
		least, most = min(least, a.Duration), max(most, a.Duration)
	}
	top := max(most, time.Microsecond)
	if p.ShowsTimeout = most > timeout/2; p.ShowsTimeout {
		top = max(top, timeout)
		p.TimeoutAt = plotHeight - scale(timeout, top)
	}
	from := ""
	if len(attempts) > 1 {
		from = took(least) + " to "
	}
	p.Label = fmt.Sprintf("%s took %s%s; timeout %s", plural(len(attempts), "attempt"), from, took(most), seconds(timeout))
	for i := range attempts {
		a := &attempts[i]
		class, _ := classOf(a.Outcome, a.Warning)
		h := max(scale(a.Duration, top), 1)
		p.Bars = append(p.Bars, bar{class, i * (barWidth + barGap), plotHeight - h, barWidth, h})
	}
	return p
}

// scale returns the height of a duration's bar if the longest one fills the plot.
func scale(d, top time.Duration) int {
	return int(math.Round(float64(plotHeight) * float64(d) / float64(top)))
}
