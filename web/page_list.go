// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prober-exporter/prober_exporter/prober"
	"github.com/prober-exporter/prober_exporter/prober/output"
)

const (
	// perPage is how many targets one page shows: few enough for a browser to render, and for
	// the agent to write every other second, without effort.
	perPage = 100
	// maxQuery bounds a search; names and labels are shorter.
	maxQuery = 256
)

// listPage is the page at the root.
type listPage struct {
	head
	look
	Headline   string
	Tabs       []tab
	Query      string
	Group      string
	Targets    []targetView
	Range      string // which targets the page shows, empty if all
	Empty      string // the text in place of an empty list
	Prev, Next string
}

type tab struct {
	Word, Count, Href string
	Current           bool
}

// listPage makes the page at the root: the worst first, as much as fits a page.
func (s *Server) listPage(query url.Values, now time.Time) *listPage {
	status := s.opts.Prober.Status(prober.Brief)
	q := output.Cut(strings.TrimSpace(query.Get("q")), maxQuery)
	p := &listPage{head: s.head("", "./", now), Query: output.Visible(q), Group: groupOf(query.Get("state")).name}
	p.sources(&status)

	// Where the targets of a state are, in the order of the configuration.
	var found [numStates][]int
	worst, matching := stateReady, parseTerms(q)
	for i := range status.Statuses {
		st := stateOf(&status.Statuses[i])
		worst = min(worst, st)
		if matching.match(&status.Statuses[i]) {
			found[st] = append(found[st], i)
		}
	}
	if p.look, p.Headline = looks[worst], Headline(status.Summary); !status.Loaded || worst == stateDown {
		p.look = looks[stateDead]
	}
	switch {
	case len(status.Statuses) > 0:
		p.Empty = "No target matches."
	case status.Loaded:
		p.Empty = "The configuration has no targets."
	}
	p.Title = p.Headline + " – prober_exporter"

	var shown []int
	for i := range groups {
		g, n := &groups[i], 0
		for st, of := range found {
			if !g.has(state(st)) {
				continue
			}
			n += len(of)
			if g.name == p.Group {
				shown = append(shown, of...)
			}
		}
		p.Tabs = append(p.Tabs, tab{g.word, count(n), p.href(g.name, 1), g.name == p.Group})
	}
	first := p.turnTo(query.Get("page"), len(shown))
	v := viewer{now: now, root: "./", output: maxListOutput}
	for _, i := range shown[first:min(first+perPage, len(shown))] {
		// Attempts are fetched only for targets that the page shows.
		t, ok := s.opts.Prober.Target(status.Statuses[i].Name, prober.Full)
		if !ok {
			t = status.Statuses[i] // removed since
		}
		p.Targets = append(p.Targets, v.target(&t, s.restartOf(t.Name)))
	}
	return p
}

// Headline sums the state of all targets up in one sentence.
func Headline(sum prober.Summary) string {
	n, unready := sum.Targets, sum.Targets-sum.Ready
	switch {
	case !sum.Loaded:
		return "No configuration"
	case n == 0:
		return "Nothing to probe"
	case unready > 0 && n == 1 && sum.Live < n:
		return "The target is neither ready nor live"
	case unready > 0 && n == 1:
		return "The target is not ready"
	case unready > 0 && sum.Live < n:
		return count(unready) + " of " + count(n) + " targets not ready, " + count(n-sum.Live) + " not live"
	case unready > 0:
		return count(unready) + " of " + count(n) + " targets not ready"
	case sum.Live < n:
		return count(n-sum.Live) + " of " + count(n) + " targets not live"
	case n == 1:
		return "The target is ready"
	default:
		return "All " + count(n) + " targets ready"
	}
}

// sources adds a notice for each source of instances that does not work.
func (p *listPage) sources(status *prober.Status) {
	for _, source := range slices.Sorted(maps.Keys(status.SourceUp)) {
		if !status.SourceUp[source] {
			p.Notices = append(p.Notices, notice{"warn", "The source " + source + " does not answer, so the agent sees no restarts.", nil})
		}
	}
}

// href returns the page of a group and a number, for the same search.
func (p *listPage) href(group string, number int) string {
	query := url.Values{}
	for name, value := range map[string]string{"q": p.Query, "state": group} {
		if value != "" {
			query.Set(name, value)
		}
	}
	if number > 1 {
		query.Set("page", strconv.Itoa(number))
	}
	return "./?" + query.Encode()
}

// turnTo returns the index at which the page of a number begins, or that of the last page
// if there is no such page. It fills in Range, Prev and Next.
func (p *listPage) turnTo(number string, n int) int {
	if n <= perPage {
		return 0
	}
	i, err := strconv.Atoi(number)
	if err != nil {
		i = 1
	}
	pages := (n + perPage - 1) / perPage
	i = min(max(i, 1), pages)
	first := (i - 1) * perPage
	p.Range = fmt.Sprintf("%s to %s of %s, the worst first", count(first+1), count(min(first+perPage, n)), count(n))
	if i > 1 {
		p.Prev = p.href(p.Group, i-1)
	}
	if i < pages {
		p.Next = p.href(p.Group, i+1)
	}
	return first
}
