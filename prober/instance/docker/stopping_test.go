// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"net/http"
	"testing"
	"time"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/docker"
	"github.com/prober-exporter/prober_exporter/gate"
	"github.com/prober-exporter/prober_exporter/internal/testutil/dockerd"
)

// asks returns an event that happened so long ago.
func asks(ago time.Duration, now time.Time, signal string) *docker.Event {
	ev := &docker.Event{Action: "kill", TimeNano: now.Add(-ago).UnixNano()}
	ev.Actor.Attributes = map[string]string{"signal": signal}
	return ev
}

// The signals that end any program ask a container to end, and so do its own stop signal and a
// signal that nobody knows. No other signal does.
func TestDockerStopSignals(t *testing.T) {
	for own, c := range map[string]struct{ ends, harmless []string }{
		"": {
			ends:     []string{"", "2", "9", "15", "SIGTERM", "SIGODD"},
			harmless: []string{"0", "1", "3", "10", "12", "17", "18", "20", "21", "22", "28", "34", "64", "SIGHUP", "SIGQUIT"},
		},
		"SIGQUIT":      {ends: []string{"3", "15", "9", "2"}, harmless: []string{"1", "28"}},
		"winch":        {ends: []string{"28", "15"}, harmless: []string{"1", "3"}},
		"SIGRTMIN+3":   {ends: []string{"37", "15"}, harmless: []string{"34", "3"}},
		"RTMAX":        {ends: []string{"64"}, harmless: []string{"63"}},
		"10":           {ends: []string{"10"}, harmless: []string{"12"}},
		"SIGSOMETHING": {ends: []string{"1", "3", "28"}},
	} {
		e := &watched{stopSignal: own}
		for _, signal := range c.ends {
			if !e.ends(signal) {
				t.Errorf("stop signal %q: %q does not ask to end", own, signal)
			}
		}
		for _, signal := range c.harmless {
			if e.ends(signal) {
				t.Errorf("stop signal %q: %q asks to end", own, signal)
			}
		}
	}
}

// A container that outlives a stop goes on: after 5 minutes or, if that is longer, 30 seconds
// after its own timeout, and 30 seconds after a kill. The time of the event counts.
func TestDockerStopExpires(t *testing.T) {
	seconds := func(s int) *int { return &s }
	now := time.Now()
	for name, c := range map[string]struct {
		timeout *int
		signal  string
		ago     time.Duration
		lasts   time.Duration // from now on; 0: it is over
	}{
		"at once":           {nil, "15", 0, 5 * time.Minute},
		"a minute ago":      {nil, "15", time.Minute, 4 * time.Minute},
		"too long ago":      {nil, "15", 5 * time.Minute, 0},
		"short timeout":     {seconds(1), "15", 0, 5 * time.Minute},
		"long timeout":      {seconds(600), "15", time.Minute, 9*time.Minute + 30*time.Second},
		"no limit":          {seconds(-1), "15", 1000 * time.Hour, endlessStopTime - 1000*time.Hour},
		"as good as none":   {seconds(1 << 40), "15", 0, (1<<31-1)*time.Second + 30*time.Second},
		"killed":            {seconds(-1), "9", 0, 30 * time.Second},
		"killed before":     {nil, "9", time.Minute, 0},
		"a clock runs fast": {nil, "15", -time.Hour, 5 * time.Minute},
	} {
		e := &watched{stopTimeout: c.timeout}
		e.noteStop(asks(c.ago, now, c.signal), now)
		if got := e.current(now.Add(c.lasts)); !got.IsZero() {
			t.Errorf("%s: still stopping at %v", name, c.lasts)
		}
		asked := now.Add(-max(c.ago, 0))
		if got := e.current(now.Add(c.lasts - 1)); c.lasts > 0 && !got.Equal(asked) {
			t.Errorf("%s: got %v before %v, want %v", name, got, c.lasts, asked)
		}
	}
}

// Of several stops the last one counts, in whichever order the source hears of them. A stop that
// is over hinders no later one.
func TestDockerStopAgain(t *testing.T) {
	now := time.Now()
	e := new(watched)
	e.noteStop(asks(time.Second, now, "9"), now)
	e.noteStop(asks(11*time.Second, now, "15"), now)
	if got, want := e.current(now), now.Add(-time.Second); !got.Equal(want) {
		t.Errorf("got %v, want the kill at %v", got, want)
	}
	e.noteStop(asks(0, now, "1"), now)
	if got := e.current(now.Add(30 * time.Second)); !got.IsZero() {
		t.Errorf("got %v half a minute after the kill", got)
	}
	back := now.Add(-time.Hour) // the clock was set back, and the monotonic clock was not
	e.until = back
	e.noteStop(asks(0, back, "15"), back)
	if got := e.current(back); !got.Equal(back) {
		t.Errorf("got %v, want %v", got, back)
	}
}

// A source knows of the stop of a container that began before it watched the container: before
// its own start, while it had no stream of events, and before a reload. It does not see a target
// until it has heard of that.
func TestDockerStopBefore(t *testing.T) {
	f := dockerd.New(t)
	s := newWorld(t, f.Socket)
	asked := time.Now().Add(-time.Minute)
	stopping := func(target string) func() bool {
		return func() bool { return s.Sees(target) && s.Describe(target).Stopping.Equal(asked) }
	}
	for n, name := range []string{"app", "web", "db", "old", "hup"} {
		f.Set(name, n, "running", 1)
	}
	f.Past(asked, "kill", 0, "signal", "15")
	f.Past(time.Now().Add(-10*time.Minute), "kill", 3, "signal", "15")
	f.Past(asked, "kill", 4, "signal", "1")
	for _, name := range []string{"app", "web", "old", "hup"} {
		s.watch(name)
	}
	s.run()
	s.until("the stop from before the start is known", stopping("app"))
	s.until("up", s.Up)
	for _, name := range []string{"web", "old", "hup"} {
		if got := s.Describe(name).Stopping; !s.Sees(name) || !got.IsZero() {
			t.Errorf("%s: stopping at %v, seen %v", name, got, s.Sees(name))
		}
	}

	f.Past(asked, "kill", 1, "signal", "15")
	f.Cut()
	s.until("the stop from before the next stream is known", stopping("web"))

	f.Past(asked, "kill", 2, "signal", "15")
	s.watch("db")
	s.until("the stop from before the reload is known", stopping("db"))
}

// Past events tell of a stop and of nothing else: neither of the end of the container nor of a
// stop in a former life or of a former container.
func TestDockerPastTellsStopsOnly(t *testing.T) {
	f := dockerd.New(t)
	s := newWorld(t, f.Socket)
	born := time.Now().Add(-time.Minute)
	f.Set("app", 1, "running", 1, func(c *docker.Container) { c.State.StartedAt = born.UTC().Format(time.RFC3339Nano) })
	for _, action := range []string{"kill", "oom", "die", "stop"} {
		f.Past(born.Add(-time.Second), action, 1, "signal", "15", "exitCode", "137")
		f.Past(born.Add(-time.Second), action, 2, "signal", "15")
	}
	f.Past(born.Add(time.Second), "oom", 1)
	f.Past(born.Add(time.Second), "die", 1, "exitCode", "137")
	f.Past(born.Add(time.Second), "kill", 2)
	s.watch("app")
	s.run()
	s.until("seen", func() bool { return s.Up() && s.Sees("app") })
	d := s.Describe("app")
	if d.PID = 0; d.ExitCode != nil || d.OOMKilled || !d.Stopping.IsZero() {
		t.Errorf("got %+v", d)
	}
	if len(s.changed) != 1 {
		t.Errorf("%d changes, want the first look alone", len(s.changed))
	}
}

// When another container comes into view, its own stop counts and not that of the former one.
func TestDockerStopOfAnother(t *testing.T) {
	f := dockerd.New(t)
	s := newWorld(t, f.Socket)
	f.Set("app-1", 1, "running", 2)
	f.Set("app-2", 2, "exited", 1)
	asked := time.Now().Add(-time.Minute)
	f.Past(asked, "kill", 2, "signal", "15")
	f.Label("app-1", "role=app")
	f.Label("app-2", "role=app")
	s.Watch(&config.Target{Name: "app", Instance: config.Instance{Label: config.Label{Name: "role", Value: "app"}}})
	s.run()
	s.await("app", life(1, 2, gate.Running))
	s.until("up", s.Up)
	f.Event("kill", 1, "signal", "15")
	s.until("app is being stopped", func() bool { return !s.Describe("app").Stopping.IsZero() })
	f.Set("app-1", 1, "exited", 2)
	f.Set("app-2", 2, "running", 1)
	f.Event("die", 1)
	s.await("app", life(2, 1, gate.Running))
	s.until("seen", func() bool { return s.Sees("app") })
	if got := s.Describe("app").Stopping; !got.Equal(asked) {
		t.Errorf("stopping at %v, want %v", got, asked)
	}
}

// A daemon that tells more than it was asked for tells of no stop by that.
func TestDockerPastUnasked(t *testing.T) {
	f := dockerd.New(t)
	s := newWorld(t, f.Socket)
	f.Set("app", 1, "running", 1)
	s.watch("app")
	f.Fault("/events", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Has("until") {
			dockerd.Says(200, `{"Action":"update","Actor":{"ID":"`+dockerd.ID(1)+`"}}
				{"Action":"kill","Actor":{"ID":"`+dockerd.ID(2)+`"}}`)(w, r)
			return
		}
		w.(http.Flusher).Flush()
		dockerd.Hangs(w, r)
	})
	s.run()
	s.until("seen", func() bool { return s.Up() && s.Sees("app") })
	if got := s.Describe("app").Stopping; !got.IsZero() {
		t.Errorf("stopping at %v", got)
	}
}

// A daemon that does not tell past events leaves the view alone, but nobody may act on it.
func TestDockerNoPast(t *testing.T) {
	f := dockerd.New(t)
	s := newWorld(t, f.Socket)
	s.refresh = 10 * time.Millisecond
	f.Set("app", 1, "running", 1)
	asked := make(chan bool, 1)
	s.watch("app")
	s.run()
	s.until("seen", func() bool { return s.Sees("app") })
	f.Fault("/events", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Has("until") {
			dockerd.Says(500, `{"message":"forgotten"}`)(w, r)
			select {
			case asked <- true:
			default:
			}
			return
		}
		w.(http.Flusher).Flush()
		dockerd.Hangs(w, r)
	})
	f.Cut()
	<-asked
	s.until("up", s.Up)
	f.Set("app", 1, "running", 2)
	s.await("app", life(1, 2, gate.Running))
	if s.Sees("app") {
		t.Error("seen although the daemon may hide a stop")
	}
	if n := s.log.Count("level=WARN", "no restarts", "target=app", "forgotten"); n != 1 {
		t.Errorf("%d lines at warn, want 1:\n%s", n, s.log.String())
	}
	f.Fault("/events", nil)
	s.until("seen again", func() bool { return s.Sees("app") })
}
