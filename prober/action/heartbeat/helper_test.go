// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package heartbeat

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/prober-exporter/prober_exporter/config"
)

// maxAge is how old a beat may be in these tests.
const maxAge = time.Minute

// place is a place of beats with its probe. The tests run in bubbles, whose clock the files follow.
type place struct {
	t     *testing.T
	pulse *Pulse
	looks Looks
	probe config.Probe
	life  Life
}

// posted returns a place to which beats are posted.
func posted(t *testing.T) *place {
	return &place{t: t, pulse: NewPulse(), probe: config.Probe{Timeout: time.Second, Heartbeat: &config.Heartbeat{MaxAge: maxAge}}}
}

// inFile returns a place that is a file, which does not exist yet.
func inFile(t *testing.T, dir string) *place {
	p := posted(t)
	p.probe.Heartbeat.File = filepath.Join(dir, "beat")
	return p
}

// touch makes a beat whose time, by the clock of the file system, is ahead of the agent's clock.
func (p *place) touch(ahead time.Duration) {
	p.t.Helper()
	if p.probe.Heartbeat.File == "" {
		p.pulse.Beat()
		return
	}
	f, err := os.OpenFile(p.probe.Heartbeat.File, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		p.t.Fatal(err)
	}
	f.Close()
	at := time.Now().Add(ahead)
	if err := os.Chtimes(p.probe.Heartbeat.File, at, at); err != nil {
		p.t.Fatal(err)
	}
}

// says checks the outcome of an attempt: a word, and for all but success the reason.
func (p *place) says(when, want string) {
	p.t.Helper()
	got, err := p.pulse.Attempt(p.t.Context(), &p.probe, &p.looks, p.life)
	word := "success"
	switch {
	case err != nil:
		word = "unknown " + string(got.Reason)
	case !got.Success:
		word = "failed " + string(got.Reason)
	}
	if word != want {
		p.t.Errorf("%s: %s (%s), want %s", when, word, got.Output, want)
	}
	if got.Success == (got.Output != "") {
		p.t.Errorf("%s: output %q", when, got.Output)
	}
}
