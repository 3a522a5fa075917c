// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package heartbeat

import (
	"time"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/prober/action"
)

const (
	// longestWatch is the most that the agent watches a file that looks late at the first look,
	// before the file fails. Without a bound, an agent that is restarted every day would never
	// find a daily beat late.
	longestWatch = 10 * time.Minute

	// coarse is how far the start of an instance and the time of a beat may be apart in the wrong
	// order: file systems keep up to 2 s, the Kubernetes API whole seconds, and an Engine knows of
	// a start a little later than the process.
	coarse = 3 * time.Second
)

// Life is what the agent knows of the life of the target that an attempt judges. In the zero Life
// the agent has always seen this life alone, and nobody knows when it began.
type Life struct {
	// StartedAt is when the life began; zero if nobody knows exactly.
	StartedAt time.Time
	// Noticed is when the agent first saw the life, which may be later than its first beat.
	Noticed time.Time
	// Replaced says that the agent has seen another life before.
	Replaced bool
	// Resumed is when the life last ran again after a pause, in which it could not beat.
	Resumed time.Time
	// Due is when the turn of the attempt could begin.
	Due time.Time
}

// owner says whose a beat is.
type owner uint8

const (
	own     owner = iota // of the life that the attempt judges
	doubted              // of that life or of the one before
	former
)

// judge returns the outcome for the beats so far. The caller holds mu.
func (p *Pulse) judge(h *config.Heartbeat, life Life, now time.Time) (action.Outcome, error) {
	whose := former
	if p.has {
		whose = p.whose(life, now)
	}
	if whose == own && now.Sub(p.last.at) <= h.MaxAge {
		return action.Outcome{Success: true}, nil
	}
	reason, why := p.words(whose)
	if h.File == "" && now.Sub(p.pardoned) < pardon {
		return unjudged(action.AgentLate, "%s, but the agent itself did not run all that time", why)
	}
	if whose == former && p.saw(life, now) {
		return failure(reason, "%s since the instance began", why)
	}
	from, most, absent := p.silentSince(), h.MaxAge, p.absent
	if h.File != "" && !p.last.seen {
		most = min(most, longestWatch)
	}
	if life.Resumed.After(from) {
		from, absent = life.Resumed, p.absent-p.before
	}
	if now.Sub(from)-absent <= most {
		return unjudged(reason, "%s, but the agent has watched only since %s", why, clock(from))
	}
	return failure(reason, "%s, and %v have passed", why, h.MaxAge)
}

// words returns what is wrong with the last beat. The caller holds mu.
func (p *Pulse) words(whose owner) (action.Reason, string) {
	switch {
	case !p.has:
		return action.NoHeartbeat, "no beat has come"
	case whose == own:
		return action.HeartbeatLate, "the last beat came at " + clock(p.last.wall)
	case whose == doubted:
		return action.NoHeartbeat, "no beat has come except one at " + clock(p.last.wall) + ", which may be from the previous instance"
	default:
		return action.NoHeartbeat, "the last beat, at " + clock(p.last.wall) + ", is from the previous instance, and none has come"
	}
}

// silentSince returns since when the agent knows for itself that no beat has come. The caller
// holds mu.
func (p *Pulse) silentSince() time.Time {
	if p.has && p.last.seen {
		return p.last.at
	}
	return p.since
}

// whose returns whose the last beat is. A beat that came after the agent had seen the life is the
// life's own, whatever clocks say. The caller holds mu.
func (p *Pulse) whose(life Life, now time.Time) owner {
	switch {
	case !p.last.after.Before(life.Noticed):
		return own
	case !life.knownStart(now) && life.Replaced:
		return doubted
	case !life.knownStart(now), !p.last.wall.Before(life.StartedAt):
		return own
	case p.last.wall.Before(life.StartedAt.Add(-coarse)):
		return former
	default:
		return doubted
	}
}

// knownStart reports whether the start of the life is known. A start in the future is from before
// the wall clock was put back.
func (l *Life) knownStart(now time.Time) bool {
	return !l.StartedAt.IsZero() && !l.StartedAt.After(now)
}

// saw reports whether the agent has watched for the whole of the life, so that it has missed no
// beat. Of the first life that the agent has seen, the start must be known to be later, and the
// life must not have been there when the agent began: the start is by the wall clock alone. The
// caller holds mu.
func (p *Pulse) saw(life Life, now time.Time) bool {
	if life.Replaced {
		return life.Noticed.After(p.since)
	}
	later := p.since.Add(coarse)
	return life.Noticed.After(later) && life.knownStart(now) && life.StartedAt.After(later)
}

// clock returns a time for a message. A whole second is enough, and equal attempts in a row say
// the same.
func clock(t time.Time) string { return t.UTC().Format(time.RFC3339) }
