// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

// Package heartbeat judges an application by the signs of life that the application gives: its
// beats. A beat is a change of a file's modification time, or a POST to the agent. Nobody is
// asked, so the action also works for what has no port, and while the application is throttled.
//
// Age is what the agent's own monotonic clock says. The wall clock may step by hours, and then
// every file of every application would look late at once. So the agent believes what it has seen
// happen: a beat came when the agent saw it come. The wall clock decides only about a file that
// has not changed since the agent first looked, and never lets such a file fail at once.
package heartbeat

import (
	"context"
	"fmt"
	"time"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/prober/action"
)

// New returns the action of a probe that nobody else knows: it receives no posted beats, and knows
// no more of its file than what the file says.
func New(_ *config.Target, p *config.Probe) action.Func {
	pulse, looks := NewPulse(), new(Looks)
	return func(ctx context.Context) (action.Outcome, error) {
		return pulse.Attempt(ctx, p, looks, Life{})
	}
}

// Address returns where a probe's beats come from: its file, or the path of the POST.
func Address(t *config.Target, p *config.Probe) string {
	switch {
	case p.Heartbeat.File != "":
		return p.Heartbeat.File
	case p.Name != "":
		return "/heartbeat/" + t.Name + "/" + p.Name
	default:
		return "/heartbeat/" + t.Name
	}
}

// Files returns how many files an attempt has open: to look at a file is not to open it.
func Files(*config.Target, *config.Probe) int { return 0 }

// Attempt makes one attempt of a probe whose beats the pulse has. life is what the agent knows of
// the life that the attempt judges.
func (p *Pulse) Attempt(ctx context.Context, probe *config.Probe, looks *Looks, life Life) (action.Outcome, error) {
	h := probe.Heartbeat
	if ctx.Err() != nil {
		return action.CutShort(ctx)
	}
	var found sight
	if h.File != "" {
		var err error
		if found, err = looks.at(ctx, h.File, probe.Timeout); ctx.Err() != nil {
			return action.CutShort(ctx)
		} else if err != nil {
			return unjudged(action.LocalFile, "%v", err)
		}
	}
	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	if h.File != "" {
		p.see(found, now)
	}
	p.countAbsence(life, now)
	switch {
	case found.noDirectory && !p.has:
		return unjudged(action.LocalFile, "the directory of %s does not exist: is the volume mounted for the agent?", h.File)
	case found.missing:
		return failure(action.NoHeartbeat, "the file %s does not exist", h.File)
	}
	return p.judge(h, life, now)
}

func failure(reason action.Reason, format string, args ...any) (action.Outcome, error) {
	return action.Outcome{Reason: reason, Output: fmt.Sprintf(format, args...)}, nil
}

// unjudged returns an outcome that says nothing about the target. The reason is what the agent
// would have to say if it were sure.
func unjudged(reason action.Reason, format string, args ...any) (action.Outcome, error) {
	err := fmt.Errorf(format, args...)
	return action.Outcome{Reason: reason, Output: err.Error()}, err
}
