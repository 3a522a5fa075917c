// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"path/filepath"
	"strings"
	"time"

	"gopkg.in/yaml.v3"
)

// Heartbeat asks when the application last gave a sign of life, a beat. The age of the last beat
// decides.
type Heartbeat struct {
	File   string // its modification is the beat; empty: a POST to the agent is the beat
	MaxAge time.Duration
}

// heartbeat returns a heartbeat. Without maxAgeSeconds nothing would ever be late, so there is no
// default.
func (d *decoder) heartbeat(v value) *Heartbeat {
	o, ok := d.object(v, "file", "maxAgeSeconds")
	if !ok {
		return nil
	}
	h := &Heartbeat{}
	if v := o.get("file"); v.set() {
		s, ok := d.str(v)
		if ok && (!filepath.IsAbs(s) || strings.ContainsRune(s, 0)) {
			d.wrong(v, "must be an absolute path, is %s", quote(s))
		}
		h.File = d.shared.text(s)
	}
	v, mistakes := o.get("maxAgeSeconds"), len(d.errs)+d.moreErrs
	h.MaxAge = d.seconds(v)
	if h.MaxAge == 0 && len(d.errs)+d.moreErrs == mistakes {
		d.wrong(v, required)
	}
	return h
}

func (h *Heartbeat) fill(n *yaml.Node) {
	addText(n, "file", h.File)
	add(n, "maxAgeSeconds", scalar(formatSeconds(h.MaxAge)))
}
