// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"html/template"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/common/version"

	"github.com/prober-exporter/prober_exporter/prober/output"
)

const (
	// maxMistakes is how many mistakes of a refused file a page lists.
	maxMistakes = 10
	// maxNamed is how many overdue probes a page names.
	maxNamed = 5
	// gzipFrom is the size from which compressing a page is worth the 1.2 MB of a compressor.
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

// head is the part with which all pages begin.
type head struct {
	Title, Root, Build string
	Version, Telemetry string
	Links              []labelView
	AsOf               string
	Notices            []notice
}

// notice is a fact about the agent that a reader of the page must know first.
type notice struct {
	Class, Text string
	Lines       []string
}

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
	z, _ := gzip.NewWriterLevel(w, gzip.BestSpeed) // the level is valid
	_, _ = z.Write(b.Bytes())                      // the server sees the error
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

// notices returns the troubles of the agent itself.
func (s *Server) notices(now time.Time) []notice {
	var all []notice
	sum, load := s.opts.Prober.Summary(), s.opts.LastLoad()
	var mistakes []string
	if load.Err != nil {
		mistakes = strings.Split(output.Visible(load.Err.Error()), "\n")
		if n := len(mistakes) - maxMistakes; n > 0 {
			mistakes = append(mistakes[:maxMistakes], fmt.Sprintf("… and %d more", n))
		}
	}
	file := output.Visible(load.File)
	switch {
	case !sum.Loaded:
		all = append(all, notice{"bad", "No configuration is loaded (" + file + "): nothing is probed. " +
			"Every /live answers 200, /started and /ready answer 503.", mistakes})
	case load.Err != nil:
		all = append(all, notice{"bad", fmt.Sprintf("The agent refused %s at %s and still runs with the configuration of %s.",
			file, clock(load.At, now), clock(load.Applied, now)), mistakes})
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
		all = append(all, notice{"bad", plural(n, "probe") + verb + " overdue (the agent is stuck or lacks CPU time): " + strings.Join(overdue, ", "), nil})
	}
	switch {
	case sum.Stopping:
		all = append(all, notice{"warn", "The agent is stopping: every /live answers 200, /ready 503.", nil})
	case sum.Terminating:
		all = append(all, notice{"warn", "The pod is terminating: startup and liveness probes have ended, and every /live answers 200.", nil})
	}
	return all
}
