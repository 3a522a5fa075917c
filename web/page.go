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
	"bytes"
	"compress/gzip"
	"fmt"
	"html/template"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/common/version"

	"github.com/prober-exporter/prober_exporter/prober"
)

const (
	// perPage is how many targets one page shows: what a browser renders, and an agent
	// writes every other second, without effort.
	perPage = 100
	// maxQuery bounds a search; names and labels are shorter.
	maxQuery = 256
	// maxMistakes is how many mistakes of a refused file a page lists.
	maxMistakes = 10
	// maxNamed is how many overdue probes a page names.
	maxNamed = 5
	// gzipFrom is the size from which a page is worth the 1.2 MB that a compressor takes.
	gzipFrom = 64 << 10
)

// pagePolicy lets a page use its own files and nothing else. No script and no style is
// inline, so no output of a probe can become one.
const pagePolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// templates are parsed when the first page is asked for: most agents never show one.
var templates = sync.OnceValue(func() *template.Template {
	return template.Must(template.ParseFS(files, "static/*.html"))
})

// head is what all pages begin with.
type head struct {
	Title, Root, Build string
	Version, Telemetry string
	Links              []labelView
	AsOf               string
	Notices            []notice
}

// notice is something about the agent that whoever reads the page must know first.
type notice struct {
	Class, Text string
	Lines       []string
}

// listPage is the page at the root.
type listPage struct {
	head
	look
	Headline   string
	Tabs       []tab
	Query      string
	Group      string
	Targets    []targetView
	Range      string // which of them are shown, empty if all
	Empty      string // what is said where there is none
	Prev, Next string
}

type tab struct {
	Word, Count, Href string
	Current           bool
}

// targetPage is the page of one target; Missing says that there is none.
type targetPage struct {
	head
	Missing string
	targetView
	Health []labelView
	Probes []probeDetail
	Config string
}

// probeDetail is a probe with all that is known of it.
type probeDetail struct {
	probeView
	Settings, Counts []pair
	Plot             plot
	History          []attemptView
}

type pair struct{ Name, Value string }

func (s *Server) statusPage(w http.ResponseWriter, r *http.Request) {
	writePage(w, r, http.StatusOK, "list", s.listPage(r.URL.Query(), time.Now()))
}

func (s *Server) targetPage(w http.ResponseWriter, r *http.Request) {
	p, ok := s.onePage(r.PathValue("target"), time.Now())
	status := http.StatusOK
	if !ok {
		status = http.StatusNotFound
	}
	writePage(w, r, status, "target", p)
}

// writePage renders a page whole before any of it is sent.
func writePage(w http.ResponseWriter, r *http.Request, status int, name string, page any) {
	var b bytes.Buffer
	if err := templates().ExecuteTemplate(&b, name, page); err != nil {
		writeText(w, http.StatusInternalServerError, fmt.Sprintf("render the page: %v\n", err))
		return
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", pagePolicy)
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Vary", "Accept-Encoding")
	if b.Len() < gzipFrom || !acceptsGzip(r) {
		w.WriteHeader(status)
		w.Write(b.Bytes())
		return
	}
	h.Set("Content-Encoding", "gzip")
	w.WriteHeader(status)
	z, err := gzip.NewWriterLevel(w, gzip.BestSpeed)
	if err != nil {
		panic(err) // the level is a constant
	}
	_, _ = z.Write(b.Bytes()) // the server sees the error
	_ = z.Close()
}

// acceptsGzip reports whether a request names gzip and does not rule it out.
func acceptsGzip(r *http.Request) bool {
	for part := range strings.SplitSeq(r.Header.Get("Accept-Encoding"), ",") {
		coding, params, _ := strings.Cut(part, ";")
		if strings.TrimSpace(coding) != "gzip" {
			continue
		}
		q, ok := strings.CutPrefix(strings.ReplaceAll(params, " ", ""), "q=")
		f, err := strconv.ParseFloat(q, 64)
		return !ok || err == nil && f > 0
	}
	return false
}

func (s *Server) head(title, root string, now time.Time) head {
	h := head{
		Title:     title,
		Root:      root,
		Build:     build(),
		Version:   version.Version,
		Telemetry: root + strings.TrimPrefix(s.opts.TelemetryPath, "/"),
		AsOf:      now.UTC().Format(time.TimeOnly),
		Notices:   s.notices(now),
	}
	for _, l := range [...]labelView{
		{"started", "started?verbose"},
		{"ready", "ready?verbose"},
		{"live", "live?verbose"},
		{"agent healthy", "-/healthy?verbose"},
		{"agent ready", "-/ready?verbose"},
	} {
		h.Links = append(h.Links, labelView{l.Text, root + l.Href})
	}
	if s.opts.EnablePprof {
		h.Links = append(h.Links, labelView{"profiles", root + "debug/pprof/"})
	}
	return h
}

// notices says what is wrong with the agent itself.
func (s *Server) notices(now time.Time) []notice {
	var all []notice
	sum, load := s.opts.Prober.Summary(), s.opts.LastLoad()
	var mistakes []string
	if load.Err != nil {
		mistakes = strings.Split(visible(load.Err.Error()), "\n")
		if n := len(mistakes) - maxMistakes; n > 0 {
			mistakes = append(mistakes[:maxMistakes], fmt.Sprintf("… and %d more", n))
		}
	}
	file := visible(load.File)
	switch {
	case !sum.Loaded:
		all = append(all, notice{"bad", "No configuration is loaded (" + file + "): nothing is probed. " +
			"Every /live answers 200, /started and /ready answer 503.", mistakes})
	case load.Err != nil:
		all = append(all, notice{"bad", fmt.Sprintf("%s was refused at %s, %s; the configuration of %s goes on.",
			file, clock(load.At, now), ago(load.At, now), clock(load.Applied, now)), mistakes})
	}
	if overdue := s.opts.Prober.Overdue(); len(overdue) > 0 {
		n := len(overdue)
		if n > maxNamed {
			overdue = append(slices.Clone(overdue[:maxNamed]), "…")
		}
		verb := " are"
		if n == 1 {
			verb = " is"
		}
		all = append(all, notice{"bad", plural(n, "probe") + verb + " overdue, the agent does not get on: " + strings.Join(overdue, ", "), nil})
	}
	if sum.Stopping {
		all = append(all, notice{"warn", "The agent is stopping: every /live answers 200, /ready 503.", nil})
	}
	return all
}

// listPage makes the page at the root: the worst first, as much as fits a page.
func (s *Server) listPage(query url.Values, now time.Time) *listPage {
	status := s.opts.Prober.Status(prober.Brief)
	q, _ := cut(strings.TrimSpace(query.Get("q")), maxQuery)
	p := &listPage{head: s.head("", "./", now), Query: visible(q), Group: groupOf(query.Get("state")).name}
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
	if p.look, p.Headline = looks[worst], headline(status.Summary); !status.Loaded || worst == stateDown {
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
		// Attempts are asked for only where they are shown.
		t, ok := s.opts.Prober.Target(status.Statuses[i].Name, prober.Full)
		if !ok {
			t = status.Statuses[i] // removed since
		}
		p.Targets = append(p.Targets, v.target(&t))
	}
	return p
}

// headline says in one sentence how things are.
func headline(sum prober.Summary) string {
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

// sources adds what is to be said of the sources of instances.
func (p *listPage) sources(status *prober.Status) {
	for _, source := range slices.Sorted(maps.Keys(status.SourceUp)) {
		if !status.SourceUp[source] {
			p.Notices = append(p.Notices, notice{"warn", "The " + source + " source does not answer: restarts are not seen meanwhile.", nil})
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

// turnTo returns the index at which the page of a number begins, the last if there is
// no such page, and says what is shown.
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
