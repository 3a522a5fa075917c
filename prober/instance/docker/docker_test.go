// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"fmt"
	"strings"
	"testing"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/docker"
	"github.com/prober-exporter/prober_exporter/gate"
	"github.com/prober-exporter/prober_exporter/internal/testutil/dockerd"
	"github.com/prober-exporter/prober_exporter/prober/instance"
)

var _ instance.Watcher = (*Source)(nil)

// Each state of a container is a state of an instance. An end is final if the daemon starts
// nothing after it by itself.
func TestDockerStates(t *testing.T) {
	policy := func(name string, most, count, code int) func(*docker.Container) {
		return func(c *docker.Container) {
			c.HostConfig.RestartPolicy.Name, c.HostConfig.RestartPolicy.MaximumRetryCount = name, most
			c.RestartCount, c.State.ExitCode = count, code
		}
	}
	for name, c := range map[string]struct {
		status string
		more   func(*docker.Container)
		phase  gate.Phase
		final  bool
	}{
		"running":             {"running", policy("no", 0, 0, 0), gate.Running, false},
		"being stopped":       {"stopping", policy("no", 0, 0, 0), gate.Running, false},
		"paused":              {"paused", policy("no", 0, 0, 0), gate.PhaseUnknown, false},
		"in back-off":         {"restarting", policy("always", 0, 4, 1), gate.Waiting, false},
		"no policy":           {"exited", policy("", 0, 0, 1), gate.Terminated, true},
		"no":                  {"exited", policy("no", 0, 0, 0), gate.Terminated, true},
		"stopped of podman":   {"stopped", policy("no", 0, 0, 0), gate.Terminated, true},
		"always":              {"exited", policy("always", 0, 0, 0), gate.Terminated, false},
		"unless-stopped":      {"exited", policy("unless-stopped", 0, 0, 0), gate.Terminated, false},
		"on-failure, 0":       {"exited", policy("on-failure", 0, 0, 0), gate.Terminated, true},
		"on-failure, 1":       {"exited", policy("on-failure", 0, 0, 1), gate.Terminated, false},
		"on-failure, 1 of 2":  {"exited", policy("on-failure", 2, 1, 1), gate.Terminated, false},
		"on-failure, 2 of 2":  {"exited", policy("on-failure", 2, 2, 1), gate.Terminated, true},
		"dead":                {"dead", policy("no", 0, 0, 1), gate.Terminated, true},
		"removing":            {"removing", policy("always", 0, 0, 1), gate.Terminated, false},
		"of another daemon's": {"levitating", policy("no", 0, 0, 1), gate.PhaseUnknown, false},
	} {
		f := dockerd.New(t)
		s := newWorld(t, f.Socket)
		f.Set("app", 1, c.status, 5, c.more)
		s.watch("app")
		stop := s.run()
		want := life(1, 5, c.phase)
		want.Final = c.final
		s.await("app", want)
		d := s.Describe("app")
		if d.Paused != (c.status == "paused") {
			t.Errorf("%s: paused is %v", name, d.Paused)
		}
		ended := c.phase == gate.Terminated || c.phase == gate.Waiting
		if (d.ExitCode != nil) != ended {
			t.Errorf("%s: exit code %v", name, d.ExitCode)
		}
		if (d.Message != "") != (c.status == "restarting" || c.status == "levitating") {
			t.Errorf("%s: message %q", name, d.Message)
		}
		stop()
	}
}

// The source knows the ends of three lives of a container, even the end of a life that it never
// looked at.
func TestDockerLives(t *testing.T) {
	f := dockerd.New(t)
	s := newWorld(t, f.Socket)
	f.Set("app", 1, "running", 1)
	s.watch("app")
	s.run()
	s.await("app", life(1, 1, gate.Running))
	s.until("up", s.Up)
	if got := s.Describe("app"); got != (instance.Details{}) {
		t.Errorf("got %+v for a first life", got)
	}
	end := func(code int, oom bool) {
		t.Helper()
		s.until(fmt.Sprintf("exit code %d, OOM %v", code, oom), func() bool {
			d := s.Describe("app")
			return d.ExitCode != nil && *d.ExitCode == code && d.OOMKilled == oom
		})
	}

	f.Set("app", 1, "running", 2)
	f.Event("oom", 1)
	f.Event("die", 1, "exitCode", "137")
	f.Event("start", 1)
	s.await("app", life(1, 2, gate.Running))
	end(137, true)

	f.Set("app", 1, "restarting", 2, func(c *docker.Container) { c.State.ExitCode = 3 })
	f.Event("die", 1, "exitCode", "3")
	s.await("app", life(1, 2, gate.Waiting))
	end(3, false)

	f.Set("app", 1, "running", 3)
	f.Event("die", 1, "exitCode", "nonsense")
	f.Event("start", 1)
	s.await("app", life(1, 3, gate.Running))
	end(3, false)
}

// If somebody stops a container under on-failure, and its exit code is 0, the end is not final.
// If the container ends by itself, the end is final.
func TestDockerByHand(t *testing.T) {
	f := dockerd.New(t)
	s := newWorld(t, f.Socket)
	onFailure := func(c *docker.Container) { c.HostConfig.RestartPolicy.Name = "on-failure" }
	f.Set("app", 1, "running", 1, onFailure)
	s.watch("app")
	s.run()
	s.await("app", life(1, 1, gate.Running))
	s.until("up", s.Up)

	f.Event("kill", 1, "signal", "15")
	f.Set("app", 1, "exited", 1, onFailure)
	f.Event("die", 1, "exitCode", "0")
	s.await("app", life(1, 1, gate.Terminated))

	f.Set("app", 1, "running", 2, onFailure)
	f.Event("start", 1)
	s.await("app", life(1, 2, gate.Running))
	f.Set("app", 1, "exited", 2, onFailure)
	f.Event("die", 1, "exitCode", "0")
	want := life(1, 2, gate.Terminated)
	want.Final = true
	s.await("app", want)
}

// A target without a container waits, with one line in the log. The container comes and goes,
// and another container takes its name: these are two lives.
func TestDockerReplaced(t *testing.T) {
	f := dockerd.New(t)
	s := newWorld(t, f.Socket)
	s.watch("app")
	s.run()
	s.until("the log says that there is none", func() bool {
		return s.log.Count("level=WARN", "the view of the container is unclear", "target=app", `no container`) == 1
	})
	if got := s.Instance("app"); got != (gate.Instance{}) {
		t.Errorf("got %+v without a container", got)
	}
	s.until("up", s.Up)

	f.Set("app", 1, "created", 0, func(c *docker.Container) { c.State.Error = "no\nroom" })
	f.Event("create", 1, "name", "app")
	s.await("app", gate.Instance{Phase: gate.Waiting})
	if got := s.Describe("app").Message; got != "no room" {
		t.Errorf("got message %q", got)
	}
	s.until("the log says that it is seen", func() bool { return s.log.Count("level=INFO", "the view of the container is clear again") == 1 })
	f.Set("app", 1, "running", 1)
	f.Event("start", 1)
	s.await("app", life(1, 1, gate.Running))

	f.Remove("app")
	f.Event("destroy", 1)
	s.await("app", life(1, 1, gate.Terminated))
	f.Set("app", 2, "created", 0)
	f.Event("rename", 2, "name", "app", "oldName", "/2_app")
	s.await("app", life(1, 1, gate.Waiting))
	f.Set("app", 2, "running", 2)
	f.Event("start", 2, "name", "app")
	s.await("app", life(2, 2, gate.Running))

	f.Remove("app")
	f.Event("rename", 2, "name", "other", "oldName", "/app")
	s.await("app", life(2, 2, gate.Terminated))
}

// Eight digits identify a container by its ID. Fewer digits never take another's container.
func TestDockerIDPrefix(t *testing.T) {
	f := dockerd.New(t)
	s := newWorld(t, f.Socket)
	f.Set("app", 1, "running", 1)
	s.watch(dockerd.ID(1)[:8])
	s.watch(dockerd.ID(1)[:7])
	s.run()
	s.await(dockerd.ID(1)[:8], life(1, 1, gate.Running))
	s.until("up", s.Up)
	if got := s.Instance(dockerd.ID(1)[:7]); got != (gate.Instance{}) {
		t.Errorf("got %+v by 7 digits", got)
	}
	if got := s.Describe(dockerd.ID(1)[:7]).Message; !strings.Contains(got, "no container") {
		t.Errorf("got message %q", got)
	}
	f.Set("app", 1, "running", 2)
	f.Event("start", 1, "name", "app")
	s.await(dockerd.ID(1)[:8], life(1, 2, gate.Running))
}

// Of four containers with a label, the source takes the newest that runs. If none runs, it
// takes the one that ran last. It leaves out a container that vanishes between the list and its
// inspection.
func TestDockerLabel(t *testing.T) {
	f := dockerd.New(t)
	s := newWorld(t, f.Socket)
	for name, role := range map[string]string{"a": "app", "b": "app", "c": "app", "d": "db"} {
		f.Label(name, "role="+role)
	}
	f.Set("a", 1, "exited", 9)
	f.Set("b", 2, "running", 2)
	f.Set("c", 3, "created", 0)
	f.Set("d", 4, "running", 8)
	label := config.Label{Name: "role", Value: "app"}
	s.Watch(&config.Target{Name: "app", Instance: config.Instance{Label: label}})
	s.run()
	s.await("app", life(2, 2, gate.Running))
	s.until("up", s.Up)

	f.Set("c", 3, "running", 3)
	f.Event("start", 3, "role", "app")
	s.await("app", life(3, 3, gate.Running))
	if got := s.Describe("app").Message; !strings.HasPrefix(got, "2 containers") || s.log.Count("level=WARN", "2 containers") != 1 {
		t.Errorf("got message %q and %d lines, want a message and a line that 2 containers run", got, s.log.Count("2 containers"))
	}

	f.Fault("/containers/"+dockerd.ID(3), dockerd.Says(404, `{"message":"gone"}`))
	f.Set("b", 2, "paused", 2)
	f.Event("pause", 2, "role", "app")
	s.await("app", life(2, 2, gate.PhaseUnknown))
	f.Fault("/containers/"+dockerd.ID(3), nil)
	f.Remove("c")
	f.Set("b", 2, "restarting", 2)
	f.Event("die", 2)
	s.await("app", life(2, 2, gate.Waiting))
	f.Set("b", 2, "exited", 2)
	f.Event("die", 2)
	want := life(1, 9, gate.Terminated)
	want.Final = true
	s.await("app", want)

	f.Fault("/containers/"+dockerd.ID(1), dockerd.Says(500, "sick"))
	f.Event("start", 2, "role", "app")
	s.until("the source is down", func() bool { return !s.Up() })
	f.Remove("b")
	f.Fault("/containers/"+dockerd.ID(1), nil)
	f.Remove("a")
	f.Event("destroy", 1)
	s.await("app", life(1, 9, gate.Terminated))
}
