// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package prober

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/gate"
	"github.com/prober-exporter/prober_exporter/prober/instance"
)

// beating returns a heartbeat probe with a period of a second, for a file or, without one, for
// posted beats.
func beating(maxAge time.Duration, file string) *config.Probe {
	p := every(time.Second)
	p.HTTPGet, p.Heartbeat = nil, &config.Heartbeat{File: file, MaxAge: maxAge}
	return p
}

// beat posts a beat to app, which must have a probe for it.
func (w *world) beat() {
	w.t.Helper()
	if !w.m.Beat("app", "") {
		w.t.Error("app has no probe for beats")
	}
}

// reason returns why the last attempt of a probe of app did not succeed, after its outcome.
func (w *world) reason(k gate.Kind) string {
	w.t.Helper()
	attempts := w.probe("app", k).Attempts
	if len(attempts) == 0 {
		return "no attempt"
	}
	last := attempts[len(attempts)-1]
	return strings.TrimSpace(last.Outcome.String() + " " + string(last.Reason))
}

// A startup probe waits for the first beat, and one POST is a beat for all probes without a name.
// The next turn finds the beat: nobody is woken. Late beats make the target not live, and the next
// beat withdraws that.
func TestHeartbeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.m.Close()
		w.apply(app("app", beating(5*time.Second, ""), nil, beating(5*time.Second, "")))
		w.sleepUntil(3500 * ms)
		if w.is("app", "srL"); w.reason(gate.Startup) != "unknown no_heartbeat" || w.reason(gate.Liveness) != "no attempt" {
			t.Errorf("%s, %s", w.reason(gate.Startup), w.reason(gate.Liveness))
		}
		w.beat()
		synctest.Wait()
		if w.is("app", "srL"); w.probe("app", gate.Startup).Successful != 0 {
			t.Error("the beat has woken the probe")
		}
		w.sleepUntil(4 * time.Second)
		w.is("app", "SRL")
		w.sleepUntil(10500 * ms) // 5 s after the beat, and two failures
		if w.is("app", "SRL"); w.reason(gate.Liveness) != "failed heartbeat_late" {
			t.Error(w.reason(gate.Liveness))
		}
		w.sleepUntil(11 * time.Second)
		w.is("app", "SRl")
		if got, want := w.probe("app", gate.Liveness).LastHeartbeat, w.begin.Add(3500*ms); !got.Equal(want) {
			t.Errorf("last beat at %v, want %v", got, want)
		}
		w.beat()
		w.sleepUntil(12 * time.Second)
		w.is("app", "SRL")
	})
}

// An agent that has begun to listen knows of no earlier beats. So a target that beats less often
// than the agent probes stays live over a restart of the agent, and a target that is silent for
// maxAge does not.
func TestHeartbeatAfterARestartOfTheAgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.m.Close()
		w.apply(app("app", nil, nil, beating(time.Minute, "")))
		w.sleepUntil(time.Minute)
		if w.is("app", "SRL"); w.probe("app", gate.Liveness).Failed != 0 {
			t.Error("attempts have failed before maxAge")
		}
		if got := w.logged(); strings.Count(got, "level=INFO msg=\"probe waits for a beat\"") != 1 || strings.Contains(got, "level=WARN") {
			t.Errorf("the log says\n%s", got)
		}
		w.sleepUntil(63500 * ms)
		if w.is("app", "SRl"); w.reason(gate.Liveness) != "failed no_heartbeat" {
			t.Error(w.reason(gate.Liveness))
		}
	})
}

// A reload keeps the beats of a target that still has a probe for them, whatever else changes. A
// probe that is new begins like one of a new agent.
func TestHeartbeatOverReloads(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.m.Close()
		w.apply(app("app", nil, nil, every(time.Second)))
		w.sleepUntil(100 * time.Second)
		w.apply(app("app", nil, nil, beating(10*time.Second, "")))
		w.sleepUntil(101 * time.Second)
		if w.is("app", "SRL"); w.reason(gate.Liveness) != "unknown no_heartbeat" {
			t.Errorf("a new probe: %s", w.reason(gate.Liveness))
		}
		w.beat()
		other := labelled(app("app", beating(20*time.Second, ""), every(time.Second), beating(20*time.Second, "")), "x")
		w.apply(other)
		w.sleepUntil(105 * time.Second)
		if w.is("app", "SRL"); w.reason(gate.Liveness) != "successful" {
			t.Errorf("a beat from before the reload: %s", w.reason(gate.Liveness))
		}
		file := filepath.Join(dir, "beat")
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		old := time.Now().Add(-time.Hour)
		if err := os.Chtimes(file, old, old); err != nil {
			t.Fatal(err)
		}
		w.apply(app("app", nil, nil, beating(10*time.Second, file)))
		w.sleepUntil(110 * time.Second)
		if w.is("app", "SRL"); w.reason(gate.Liveness) != "unknown heartbeat_late" || w.m.Beat("app", "") {
			t.Errorf("an old file: %s", w.reason(gate.Liveness))
		}
		w.apply(app("app", nil, nil, beating(10*time.Second, "")))
		w.sleepUntil(115 * time.Second)
		if w.is("app", "SRL"); w.reason(gate.Liveness) != "unknown no_heartbeat" {
			t.Errorf("beats of a probe that was gone: %s", w.reason(gate.Liveness))
		}
	})
}

// Beats of the previous instance do not start the next one. If the source knows the start, a beat
// that came before the agent noticed the instance counts.
func TestHeartbeatOfAnInstance(t *testing.T) {
	for _, source := range []string{config.SourceProcess, config.SourceDocker, config.SourceKubernetes, config.SourceListener} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			defer w.m.Close()
			v := &view{seen: map[string]gate.Instance{}}
			w.m.sources.make = func(*config.Instance, *slog.Logger) instance.Watcher { return v }
			c := app("app", beating(time.Minute, ""), nil, nil)
			c.StartupProbe.FailureThreshold = 1000
			c.Instance.Source = source
			w.apply(c)
			exact := source != config.SourceListener
			after := func(what, know, guess string) {
				t.Helper()
				want := guess
				if exact {
					want = know
				}
				if got := w.reason(gate.Startup); got != want {
					t.Errorf("%s, %s: %s, want %s", source, what, got, want)
				}
			}
			v.sees(runs("a"))
			w.beat()
			w.sleepUntil(2 * time.Second)
			w.is("app", "SRL")

			w.sleepUntil(20 * time.Second)
			v.sees(runs("b"))
			w.sleepUntil(22 * time.Second)
			after("the beat of the previous instance", "failed no_heartbeat", "unknown no_heartbeat")
			w.is("app", "srL")
			w.beat()
			w.sleepUntil(24 * time.Second)
			w.is("app", "SRL")

			started := runs("c")
			w.sleepUntil(30 * time.Second)
			w.beat()
			w.sleepUntil(33 * time.Second)
			v.sees(started)
			w.sleepUntil(35 * time.Second)
			after("a beat before the agent noticed", "successful", "unknown no_heartbeat")

			// A declared restart has no exact start either.
			w.beat()
			w.sleepUntil(40 * time.Second)
			w.m.NewInstance("app")
			w.sleepUntil(42 * time.Second)
			after("a beat before the declaration", "unknown no_heartbeat", "unknown no_heartbeat")
			w.beat()
			w.sleepUntil(44 * time.Second)
			w.is("app", "SRL")
		})
	}
}

// The file and the age of a beat are part of the action: with others the probe's run begins anew.
func TestSameHeartbeat(t *testing.T) {
	of := func(maxAge time.Duration, file string) *config.Target {
		c := app("app", nil, nil, beating(maxAge, file))
		return &c
	}
	base := of(time.Second, "/beat")
	for what, other := range map[string]struct {
		t    *config.Target
		want bool
	}{
		"nothing": {of(time.Second, "/beat"), true}, "the age": {of(2*time.Second, "/beat"), false},
		"the file": {of(time.Second, "/other"), false}, "a POST": {of(time.Second, ""), false},
	} {
		if got := sameAction(base, other.t, base.LivenessProbe, other.t.LivenessProbe); got != other.want {
			t.Errorf("%s differs: %t", what, got)
		}
	}
}

// A paused instance cannot beat, and has maxAge once it runs again.
func TestHeartbeatAfterAPause(t *testing.T) {
	inView(t, func(w *world, v *view) {
		c := app("app", nil, nil, beating(10*time.Second, ""))
		c.Instance.Source = "view"
		c.LivenessProbe.FailureThreshold = 1
		v.sees(runs("a"))
		w.apply(c)
		w.beat()
		paused := v.Instance("app")
		paused.Phase = gate.PhaseUnknown
		v.sees(paused)
		w.sleepUntil(time.Hour)
		paused.Phase = gate.Running
		v.sees(paused)
		w.sleepUntil(time.Hour + 10*time.Second)
		if w.is("app", "SRL"); w.reason(gate.Liveness) != "unknown heartbeat_late" {
			t.Error(w.reason(gate.Liveness))
		}
		w.sleepUntil(time.Hour + 12*time.Second)
		w.is("app", "SRl")
	})
}

// While an attempt waits for its turn for long, beats may wait as well: the time does not count.
func TestHeartbeatOfALateAgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.m.Close()
		w.m.slots = newSlots(load{attempts: 1, files: 1})
		c := app("app", nil, nil, beating(10*time.Second, ""))
		c.LivenessProbe.FailureThreshold = 1
		w.apply(c)
		w.beat()
		w.sleepUntil(1500 * ms)
		w.takes("hog/liveness", time.Hour, good)
		w.apply(c, app("hog", nil, nil, every(time.Second)))
		w.sleepUntil(30 * time.Minute)
		if got := w.m.Status(Brief).InFlight; got != 1 {
			t.Fatalf("%d attempts in flight, want that of hog", got)
		}
		w.apply(c)
		w.sleepUntil(30*time.Minute + 5*time.Second)
		if w.is("app", "SRL"); w.reason(gate.Liveness) != "unknown heartbeat_late" {
			t.Error(w.reason(gate.Liveness))
		}
		w.sleepUntil(30*time.Minute + 11*time.Second)
		w.is("app", "SRl")
	})
}

// A beat needs a probe that waits for it: by the name of the target alone one without a name and a
// file, else a member of that name.
func TestBeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.m.Close()
		members := app("members", nil, every(time.Second), nil)
		queue, mail := beating(time.Minute, ""), beating(time.Minute, "/dev/null/beat")
		queue.Name, mail.Name = "queue", "mail"
		members.Several = &[gate.NumKinds]config.Probes{gate.Liveness: {Require: 2, Members: []*config.Probe{queue, mail}}}
		w.apply(
			app("posted", nil, beating(time.Minute, ""), nil), app("file", nil, beating(time.Minute, "/dev/null/beat"), nil),
			app("other", nil, every(time.Second), nil), members,
		)
		for place, want := range map[[2]string]bool{
			{"posted", ""}: true, {"posted", "queue"}: false, {"file", ""}: false, {"other", ""}: false, {"nobody", ""}: false,
			{"members", ""}: false, {"members", "queue"}: true, {"members", "mail"}: false, {"members", "nobody"}: false,
		} {
			if got := w.m.Beat(place[0], place[1]); got != want {
				t.Errorf("%v: %t, want %t", place, got, want)
			}
		}
	})
}

// Each member of a list has beats of its own.
func TestBeatsOfMembers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.m.Close()
		queue, mail := beating(5*time.Second, ""), beating(5*time.Second, "")
		queue.Name, mail.Name = "queue", "mail"
		c := app("app", nil, nil, nil)
		c.Several = &[gate.NumKinds]config.Probes{gate.Liveness: {Require: 2, Members: []*config.Probe{queue, mail}}}
		w.apply(c)
		for at := range 12 {
			w.sleepUntil(time.Duration(at)*time.Second + 500*ms)
			if !w.m.Beat("app", "queue") || at < 3 && !w.m.Beat("app", "mail") {
				t.Fatal("no such member")
			}
			if want := map[bool]string{true: "SRL", false: "SRl"}[at < 10]; at != 10 {
				w.is("app", want)
			}
		}
		for i, want := range []string{"successful", "failed heartbeat_late"} {
			s, _ := w.m.Target("app", Full)
			last := s.Probes[i].Attempts[len(s.Probes[i].Attempts)-1]
			if got := strings.TrimSpace(last.Outcome.String() + " " + string(last.Reason)); got != want {
				t.Errorf("%s: %s, want %s", s.Probes[i].Name, got, want)
			}
		}
	})
}

// The snapshot has the time of the last beat, and none for other actions.
func TestLastHeartbeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.m.Close()
		w.apply(app("app", nil, every(time.Second), beating(time.Minute, "")))
		if at := w.probe("app", gate.Liveness).LastHeartbeat; !at.IsZero() {
			t.Errorf("before the first beat: %v", at)
		}
		w.sleepUntil(1500 * ms)
		w.beat()
		s, _ := w.m.Target("app", Brief)
		if at := s.Probes[1].LastHeartbeat; !at.Equal(w.begin.Add(1500 * ms)) {
			t.Errorf("after a beat: %v", at)
		}
		if at := s.Probes[0].LastHeartbeat; !at.IsZero() {
			t.Errorf("another action: %v", at)
		}
		if w.probe("app", gate.Liveness).Address != "/heartbeat/app" || w.probe("app", gate.Liveness).Action != "heartbeat" {
			t.Errorf("%+v", w.probe("app", gate.Liveness))
		}
	})
}
