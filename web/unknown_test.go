// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"bytes"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"strings"
	"testing"
)

// The log names each unknown or removed target once when a client asks for its liveness, on
// whichever listener and in whatever way.
func TestUnknownWarnsOnce(t *testing.T) {
	var log bytes.Buffer
	opts := options(&fake{removed: map[string]bool{"a": true}})
	opts.Logger = slog.New(slog.NewTextHandler(&log, nil))
	s := newServer(t, opts)
	for _, h := range []http.Handler{s.HealthHandler(), s.Handler(), s.HealthHandler()} {
		for _, path := range []string{"/live/a", "/live/b", "/live/a", "/ready/c", "/live?target=a", "/live?target=d", "/live?exclude=e", "/ready?target=f"} {
			get(h, path)
		}
	}
	for _, name := range []string{"a", "b", "d"} {
		if n := strings.Count(log.String(), "target="+name+"\n"); n != 1 {
			t.Errorf("%d lines about %s", n, name)
		}
	}
	if n := strings.Count(log.String(), "level=WARN"); n != 3 {
		t.Errorf("%d warnings, want 3:\n%s", n, log.String())
	}
	opts.Logger = nil // must cause no panic
	expect(t, get(newServer(t, opts).HealthHandler(), "/live/a"), 200, "[?]a removed: not probed\nok\n")
}

// Requests for ever new names fill neither the memory nor the log. The log names a thousand
// targets and then says that it names no more.
func TestUnknownWithoutEnd(t *testing.T) {
	var log bytes.Buffer
	opts := options(&fake{})
	opts.Logger = slog.New(slog.NewTextHandler(&log, nil))
	s := newServer(t, opts)
	h := s.HealthHandler()
	for i := range 3000 {
		expect(t, get(h, fmt.Sprintf("/live/n%d", i)), 200, fmt.Sprintf("[?]n%d unknown target: not probed\nok\n", i))
	}
	for range 2 {
		get(h, "/live/"+strings.Repeat("x", 10_000))
	}
	if n := strings.Count(log.String(), "\n"); n != 1001 || len(s.told) != 1000 {
		t.Errorf("%d lines and %d names, want 1001 and 1000", n, len(s.told))
	}
	if !strings.HasSuffix(log.String(), "msg=\"the log names no further unknown targets\" told=1000\n") {
		t.Errorf("the last line is %q", log.String()[log.Len()-200:])
	}
}

// Each request for an unknown target counts once at its endpoint. A request for a configured
// target counts nowhere, and neither does a request that the agent answers without a look.
func TestUnknownCounts(t *testing.T) {
	f := mixed()
	f.removed = map[string]bool{"gone": true}
	opts := options(f)
	counts := map[string]int{}
	opts.UnknownTarget = func(endpoint string) { counts[endpoint]++ }
	h := newServer(t, opts).HealthHandler()
	ask := func() {
		for _, path := range []string{
			"/live/nosuch", "/live/gone", "/live?target=nosuch&target=neither", "/ready/nosuch", "/started/nosuch", "/started?target=app&target=nosuch",
			"/live/app", "/live", "/ready?exclude=nosuch", "/ready/db", "/started?target=app", "/-/healthy", "/nosuch",
		} {
			get(h, path)
		}
	}
	ask()
	if want := map[string]int{"live": 3, "ready": 1, "started": 2}; !maps.Equal(counts, want) {
		t.Errorf("counted %v, want %v", counts, want)
	}
	clear(counts)
	f.unloaded = true
	if ask(); len(counts) > 0 {
		t.Errorf("without a configuration %v were counted", counts)
	}
}
