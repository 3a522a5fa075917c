// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package heartbeat

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prober-exporter/prober_exporter/config"
)

// A posted beat is good for maxAge, to the nanosecond. An agent that has just begun to listen does
// not know of earlier beats, and judges only after maxAge.
func TestPosted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := posted(t)
		p.says("at the start", "unknown no_heartbeat")
		time.Sleep(maxAge)
		p.says("after maxAge", "unknown no_heartbeat")
		time.Sleep(time.Nanosecond)
		p.says("after more than maxAge", "failed no_heartbeat")
		p.touch(0)
		p.says("after a beat", "success")
		time.Sleep(maxAge)
		p.says("maxAge after the beat", "success")
		time.Sleep(time.Nanosecond)
		p.says("more than maxAge after the beat", "failed heartbeat_late")
	})
}

// A change of the file's time is good for maxAge from when the agent saw the change. A file that is
// missing has no beat.
func TestFile(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		p := inFile(t, dir)
		p.says("without a file", "failed no_heartbeat")
		time.Sleep(time.Second)
		p.touch(0)
		p.says("after a beat", "success")
		time.Sleep(maxAge)
		p.says("maxAge after the beat", "success")
		time.Sleep(time.Nanosecond)
		p.says("more than maxAge after the beat", "failed heartbeat_late")
		p.touch(0)
		p.says("after another beat", "success")
		time.Sleep(30 * time.Second)
		p.touch(0)
		time.Sleep(20 * time.Second)
		p.says("20 s after a beat that nobody has seen come", "success")
		time.Sleep(40 * time.Second)
		p.says("maxAge after that beat", "success")
		time.Sleep(time.Nanosecond)
		p.says("more than maxAge after that beat", "failed heartbeat_late")
	})
}

// The wall clock alone makes no file late: an old file may be old only because the clock has been
// set. After maxAge without a change the file is late, and after 10 minutes at most: an agent that
// is restarted every day finds a daily beat late.
func TestOldFile(t *testing.T) {
	for _, test := range []struct{ maxAge, watch time.Duration }{{maxAge, maxAge}, {24 * time.Hour, 10 * time.Minute}} {
		dir := t.TempDir()
		synctest.Test(t, func(t *testing.T) {
			p := inFile(t, dir)
			p.probe.Heartbeat.MaxAge = test.maxAge
			p.touch(-25 * time.Hour)
			p.says("at the first look", "unknown heartbeat_late")
			time.Sleep(test.watch)
			p.says("after the watch", "unknown heartbeat_late")
			time.Sleep(time.Nanosecond)
			p.says("after more than the watch", "failed heartbeat_late")
			p.touch(-25 * time.Hour)
			p.says("after a beat, whatever its time", "success")
		})
	}
}

// A fresh file counts at the first look, by the wall clock, and may age like any other.
func TestFreshFile(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		p := inFile(t, dir)
		p.touch(-maxAge + time.Second)
		p.says("at the first look", "success")
		time.Sleep(time.Second)
		p.says("when the file is maxAge old", "success")
		time.Sleep(time.Nanosecond)
		p.says("when the file is older", "unknown heartbeat_late")
		time.Sleep(maxAge - time.Second)
		p.says("after maxAge", "failed heartbeat_late")
	})
}

// A file system whose clock is wrong, or a wall clock that is set, ends no application that beats:
// an hour ahead, then two hours behind, then right. A beat from the future came when it was seen.
func TestWrongClocks(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		p := inFile(t, dir)
		for _, ahead := range []time.Duration{time.Hour, -2 * time.Hour, 0, time.Hour} {
			for range 3 {
				p.touch(ahead)
				time.Sleep(10 * time.Second)
				p.says("ahead by "+ahead.String(), "success")
			}
		}
		time.Sleep(maxAge + 1)
		p.says("more than maxAge after a beat from the future", "failed heartbeat_late")
	})
}

// After a restart of the target the beats of the life before do not count. If the start of the new
// life is known exactly, its beats are known too, although the agent noticed the life later.
func TestNewLife(t *testing.T) {
	dirs := []string{"", t.TempDir()}
	for _, test := range []struct {
		name  string
		start time.Duration // of the new life, after the last beat
		want  string
	}{
		{"a beat long before the start", coarse + 1, "failed no_heartbeat"},
		{"a beat just before the start", coarse, "unknown no_heartbeat"},
		{"a beat since the start", 0, "success"},
		{"the start is in the future", time.Hour, "unknown no_heartbeat"},
	} {
		for _, dir := range dirs {
			synctest.Test(t, func(t *testing.T) {
				p := posted(t)
				if dir != "" {
					p = inFile(t, dir)
					p.touch(-time.Second)
					p.says("before", "success")
				}
				time.Sleep(10 * time.Second)
				p.touch(0)
				began := time.Now().Add(test.start)
				time.Sleep(10 * time.Second)
				p.life = Life{StartedAt: began.Round(0), Noticed: time.Now(), Replaced: true}
				p.says(test.name, test.want)
				time.Sleep(time.Second)
				p.says(test.name+", and the second attempt", test.want)
				p.touch(0)
				p.says("after a beat of its own", "success")
			})
		}
	}
}

// If nobody knows when the new life began, its first beat may have come before the agent noticed
// the life. So a last beat from before says nothing, until it would be late in any case.
func TestNewLifeOfUnknownStart(t *testing.T) {
	dirs := []string{"", t.TempDir()}
	for _, dir := range dirs {
		synctest.Test(t, func(t *testing.T) {
			p := posted(t)
			if dir != "" {
				p = inFile(t, dir)
				p.says("before", "failed no_heartbeat")
			}
			time.Sleep(time.Second)
			p.touch(0)
			p.says("before", "success")
			time.Sleep(maxAge / 2)
			p.life = Life{Noticed: time.Now(), Replaced: true}
			p.says("at once", "unknown no_heartbeat")
			time.Sleep(maxAge / 2)
			p.says("maxAge after the last beat", "unknown no_heartbeat")
			time.Sleep(time.Nanosecond)
			p.says("after more", "failed no_heartbeat")
			p.touch(0)
			p.says("after a beat", "success")
		})
	}
}

// If the agent has seen a life begin, and no beat came since, the attempt fails at once: nothing is
// left to wait for.
func TestNoBeatSinceTheBeginning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := posted(t)
		time.Sleep(time.Second)
		p.life = Life{Noticed: time.Now(), Replaced: true}
		p.says("a second life", "failed no_heartbeat")

		p = posted(t)
		time.Sleep(10 * time.Second)
		p.life = Life{StartedAt: time.Now().Add(-coarse).Round(0), Noticed: time.Now()}
		p.says("a first life that is younger than the agent", "failed no_heartbeat")
		p.life.StartedAt = time.Now().Add(-10 * time.Second).Round(0)
		p.says("a first life that is about as old", "unknown no_heartbeat")

		p = posted(t)
		p.life = Life{StartedAt: time.Now().Add(5 * time.Second).Round(0), Noticed: time.Now()}
		time.Sleep(10 * time.Second)
		p.says("a first life that was there, by a clock that was put back", "unknown no_heartbeat")
	})
}

// A target that was paused could not beat: after that it has maxAge.
func TestPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := posted(t)
		p.touch(0)
		time.Sleep(10 * maxAge)
		p.life.Resumed = time.Now()
		p.says("after the pause", "unknown heartbeat_late")
		time.Sleep(maxAge + 1)
		p.says("maxAge later", "failed heartbeat_late")
	})
}

// The absence of the agent before the end of a pause gives the target no time after the pause; an
// absence after that does.
func TestPauseAfterAnAbsence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := posted(t)
		p.touch(0)
		p.life.Due = time.Now()
		time.Sleep(10 * maxAge)
		p.says("after an absence", "unknown agent_late")
		p.life.Resumed, p.life.Due = time.Now(), time.Now()
		time.Sleep(maxAge / 2)
		p.says("after a pause and half of maxAge away", "unknown heartbeat_late")
		time.Sleep(maxAge)
		p.life.Due = time.Now()
		p.says("after maxAge with the agent", "unknown heartbeat_late")
		time.Sleep(time.Nanosecond)
		p.life.Due = time.Now()
		p.says("after more", "failed heartbeat_late")
	})
}

// While the agent does not run, its machine may not run either, and beats wait to be received. So
// the time does not count as silence, and nothing fails in the first second after it.
func TestAbsence(t *testing.T) {
	dir := t.TempDir()
	for _, file := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			p, first := posted(t), "unknown agent_late"
			if file {
				p, first = inFile(t, dir), "unknown heartbeat_late"
				p.says("before", "failed no_heartbeat")
				time.Sleep(time.Nanosecond)
			}
			p.touch(0)
			p.says("after a beat", "success")
			p.life.Due = time.Now().Add(10 * time.Second)
			time.Sleep(time.Hour)
			p.says("after an hour away", first)
			p.says("the second try of the same turn", first)
			time.Sleep(maxAge - 10*time.Second)
			p.life.Due = time.Now()
			p.says("after maxAge without that hour", "unknown heartbeat_late")
			time.Sleep(time.Nanosecond)
			p.life.Due = time.Now()
			p.says("after more", "failed heartbeat_late")
			p.touch(0)
			p.says("after a beat", "success")
		})
	}
}

// An agent that is late at every turn finds a silent target all the same.
func TestAlwaysLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := posted(t)
		p.touch(0)
		failed := 0
		for range 30 {
			time.Sleep(9 * time.Second)
			p.life.Due = time.Now()
			time.Sleep(time.Second)
			if _, err := p.pulse.Attempt(t.Context(), &p.probe, &p.looks, p.life); err == nil && time.Since(p.pulse.last.at) > 2*maxAge {
				failed++
			}
		}
		if failed < 10 {
			t.Errorf("%d attempts failed in 3 minutes after twice maxAge", failed)
		}
	})
}

// Without a prober around it, as in a trial of a file, the action judges what there is.
func TestAlone(t *testing.T) {
	target := &config.Target{Name: "worker"}
	p := inFile(t, t.TempDir())
	p.touch(0)
	if got, err := New(target, &p.probe)(t.Context()); err != nil || !got.Success {
		t.Errorf("got %+v, error %v", got, err)
	}
	if got, err := New(target, &posted(t).probe)(t.Context()); err == nil || got.Success {
		t.Errorf("no beat can have come: %+v, error %v", got, err)
	}
	if Files(target, &p.probe) != 0 {
		t.Error("a look opens files")
	}
}

// An attempt that is cut short says nothing.
func TestCutShort(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	p := posted(t)
	p.touch(0)
	if got, err := p.pulse.Attempt(ctx, &p.probe, &p.looks, Life{}); err == nil || got.Success {
		t.Errorf("got %+v, error %v", got, err)
	}
}

// The address says where the beats come from.
func TestAddress(t *testing.T) {
	target := &config.Target{Name: "worker"}
	for _, test := range []struct {
		file, name, want string
	}{
		{"/shared/beat", "queue", "/shared/beat"}, {"", "", "/heartbeat/worker"}, {"", "queue", "/heartbeat/worker/queue"},
	} {
		p := &config.Probe{Name: test.name, Heartbeat: &config.Heartbeat{File: test.file}}
		if got := Address(target, p); got != test.want {
			t.Errorf("got %s, want %s", got, test.want)
		}
	}
}
