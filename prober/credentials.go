// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package prober

import (
	"slices"
	"strings"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/credential"
	"github.com/prober-exporter/prober_exporter/gate"
	"github.com/prober-exporter/prober_exporter/prober/output"
)

// This file knows the secrets that attempts read from files, and when the certificates that
// servers show expire.

// NewScrubber returns what takes a target's secrets out of its outputs: those of the
// configuration, and those that files have or had.
func NewScrubber(t *config.Target) *output.Scrubber {
	secrets := t.Secrets()
	files := tokensOf(t)
	if len(files) == 0 {
		return output.NewScrubber(secrets)
	}
	return output.NewLateScrubber(func() []string {
		all := slices.Clone(secrets)
		for _, f := range files {
			for _, value := range f.token.Values() {
				all = append(all, value, strings.TrimSpace(value)) // as the server gets it
				all = append(all, f.header.Secrets(f.header.Prefix+value)...)
			}
		}
		return config.Hidden(all)
	})
}

// fileHeader is a header whose value comes from a file.
type fileHeader struct {
	header config.Header
	token  *credential.Token
}

// tokensOf returns the headers of a target's probes that come from files.
func tokensOf(t *config.Target) (files []fileHeader) {
	for _, p := range t.All() {
		if p.HTTPGet == nil {
			continue
		}
		for _, h := range p.HTTPGet.Headers {
			if h.ValueFile != "" {
				files = append(files, fileHeader{h, credential.NewToken(h.ValueFile)})
			}
		}
	}
	return files
}

// expiry is when the first of the certificates that a probe's server has shown expires, in
// seconds since the epoch.
type expiry struct {
	kind gate.Kind
	name string // of the probe
	at   int64
}

// noteExpiry records what an attempt has seen: see action.Outcome.CertExpires. The caller holds
// target.mu, as do the callers of the methods below.
func (w *worker) noteExpiry(at int64) {
	if at == 0 || at == w.certExpires() {
		return
	}
	l := &w.target.life
	if l.rare == nil {
		l.rare = new(rare)
	}
	if e := w.expiry(); e != nil {
		e.at = at
		return
	}
	l.rare.expiries = append(l.rare.expiries, expiry{w.kind, w.probe.Name, at})
}

// certExpires returns what noteExpiry has recorded last; 0 if it has not.
func (w *worker) certExpires() int64 {
	if e := w.expiry(); e != nil {
		return e.at
	}
	return 0
}

// expiry returns the record of the probe; nil if there is none.
func (w *worker) expiry() *expiry {
	r := w.target.life.rare
	if r == nil {
		return nil
	}
	i := slices.IndexFunc(r.expiries, func(e expiry) bool { return e.kind == w.kind && e.name == w.probe.Name })
	if i < 0 {
		return nil
	}
	return &r.expiries[i]
}

// keepExpiries drops the records of probes that are gone, or that ask something else than before.
func (t *target) keepExpiries(before *target) {
	if t.life.rare == nil {
		return
	}
	t.life.rare.expiries = slices.DeleteFunc(t.life.rare.expiries, func(e expiry) bool {
		was, is := before.worker(e.kind, e.name), t.worker(e.kind, e.name)
		return was == nil || is == nil || !sameAction(before.cfg, t.cfg, was.probe, is.probe)
	})
}
