// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/gate"
	"github.com/prober-exporter/prober_exporter/prober"
	"github.com/prober-exporter/prober_exporter/prober/action"
	"github.com/prober-exporter/prober_exporter/restart"
	"github.com/prober-exporter/prober_exporter/web"
)

// random is a world in which files, answers and lives are random. Time is that of a bubble.
type random struct {
	t     *testing.T
	files *maker
	m     *prober.Manager
	acts  *restart.Restarter
	live  http.Handler
	cfg   *config.Config

	mu      sync.Mutex
	luck    *rand.Rand // of the answers
	sick    bool       // some attempts fail
	mute    bool       // no attempt can be made
	lives   map[string]*life
	sources map[*scripted]bool
	failed  []string // lines of the log: results that became Failure
}

// nowhere returns places for actions that ask nobody.
func nowhere() places {
	return places{
		http: 80, https: 443, grpc: 9000, secure: 9001, tcp: 5432,
		ca: "/none/ca.crt", cert: "/none/tls.crt", key: "/none/tls.key", token: "/none/token", beat: "/none/beat", socket: "/none/socket",
		container: true,
	}
}

// newRandom returns a world without a file. The caller closes it.
func newRandom(t *testing.T, seed uint64, sick bool) *random {
	t.Helper()
	r := &random{
		t:       t,
		files:   &maker{Rand: rand.New(rand.NewPCG(seed, 1)), places: nowhere()},
		luck:    rand.New(rand.NewPCG(seed, 2)),
		sick:    sick,
		lives:   map[string]*life{},
		sources: map[*scripted]bool{},
	}
	log := slog.New(slog.NewTextHandler(r, nil))
	r.m = prober.New(prober.Options{Logger: log, NewAction: r.newAction, NewSource: r.newSource})
	r.acts = restart.New(restart.Options{Prober: r.m, Logger: log})
	s, err := web.New(web.Options{Prober: r.m, Restarter: r.acts, Logger: log, TelemetryPath: "/metrics"})
	if err != nil {
		t.Fatal(err)
	}
	r.live = s.HealthHandler()
	return r
}

func (r *random) close() {
	r.acts.Stop()
	r.acts.Close()
	r.m.Close()
}

// Write takes a line of the log, and keeps those about startup and liveness results that have
// become Failure.
func (r *random) Write(line []byte) (int, error) {
	if text := string(line); strings.Contains(text, "to=Failure") && !strings.Contains(text, "probe_type=Readiness") {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.failed = append(r.failed, text)
	}
	return len(line), nil
}

// newAction returns an action whose attempts take up to their timeout. Their outcomes are
// successes, some with a warning, and errors that are the agent's own fault; in a sick world
// failures, too.
func (r *random) newAction(_ *config.Target, p *config.Probe) action.Func {
	return func(ctx context.Context) (action.Outcome, error) {
		r.mu.Lock()
		takes, outcome := time.Millisecond, r.luck.IntN(100)
		if r.luck.IntN(3) == 0 {
			takes += time.Duration(r.luck.Int64N(int64(p.Timeout / 3)))
		}
		r.mu.Unlock()
		timer := time.NewTimer(takes)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return action.Outcome{}, ctx.Err()
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		switch {
		case r.mute, outcome < 10:
			return action.Outcome{Reason: action.ExecStart}, errors.New("no such file")
		case outcome < 15:
			return action.Outcome{Reason: action.AgentLate}, errors.New("too late to know")
		case r.sick && outcome < 60:
			return action.Outcome{Reason: action.Timeout, Output: "timeout"}, nil
		}
		return action.Outcome{Success: true, Warning: outcome < 20, Output: "ok"}, nil
	}
}

// happens makes something happen to a target: a new instance, an end, a pause, a hand-over, a
// source that is down or up, a trigger, a declared restart.
func (r *random) happens() {
	target := fmt.Sprintf("t%d", r.files.IntN(6))
	what := r.files.IntN(10)
	r.mu.Lock()
	l := r.lives[target]
	if l != nil {
		for _, s := range []string{config.SourceDocker, config.SourceKubernetes, config.SourceListener, config.SourceProcess} {
			l.seen[s] = true
		}
		switch next := l.number + 1; what {
		case 0, 1:
			l.number, l.phase, l.started, l.from = next, gate.Running, time.Now(), 0
		case 2, 3, 4:
			if l.phase == gate.Running {
				l.phase = []gate.Phase{gate.Terminated, gate.Waiting, gate.PhaseUnknown}[what-2]
			}
		case 5:
			if l.phase == gate.Running {
				l.number, l.started, l.from = next, time.Now(), l.number
			}
		default:
			if l.phase == gate.PhaseUnknown {
				l.phase = gate.Running
			}
		}
	}
	for s := range r.sources {
		s.down = what == 6
	}
	r.mu.Unlock()
	switch what {
	case 7:
		r.m.Probe(target)
	case 8:
		r.m.NewInstance(target)
	case 9:
		r.m.Asked(target, gate.Liveness)
	}
	r.tell(target)
}

// reload loads the next file, and checks that no target that was live is not live now, nor has the
// same instance lost its start or its readiness: there has been no time for an attempt.
func (r *random) reload() {
	r.t.Helper()
	text := r.files.file()
	cfg, _, err := config.Load("random.yml", []byte(text), func(string) (string, bool) { return "", false })
	if err != nil {
		r.t.Fatalf("a random file is not valid: %v\n%s", err, text)
	}
	before, at := r.m.Status(prober.Full), time.Now()
	r.acts.Suspend()
	if err := r.m.Apply(cfg); err != nil {
		r.t.Fatal(err)
	}
	r.acts.Apply(cfg)
	was := r.cfg
	r.cfg = cfg
	after := r.m.Status(prober.Full)
	if took := time.Since(at); took != 0 {
		r.t.Errorf("the reload took %v: attempts may have ended meanwhile", took)
	}
	known := map[string]prober.TargetStatus{}
	for _, s := range before.Statuses {
		known[s.Name] = s
	}
	for _, s := range after.Statuses {
		b, ok := known[s.Name]
		worse := !s.Live && (b.Live || !ok)
		if ok && s.Source == b.Source && s.Instance == b.Instance {
			worse = worse || b.Started && !s.Started || b.Ready && !s.Ready
		}
		if worse {
			r.t.Errorf("a reload makes %s not live, or takes its start or its readiness away: before\n%s\n%+v\nafter\n%s\n%+v",
				s.Name, yamlOf(was, s.Name), b, yamlOf(cfg, s.Name), s)
		}
	}
}

// yamlOf returns a target of a configuration as a file has it.
func yamlOf(cfg *config.Config, name string) string {
	if cfg == nil {
		return "none"
	}
	for i := range cfg.Targets {
		if t := &cfg.Targets[i]; t.Name == name {
			text, _ := t.YAML() // a test prints it
			return string(text)
		}
	}
	return "none"
}

// healthy checks that no target that runs has a startup or liveness probe that says Failure, that
// /live says so of all targets and of each, and that the agent has restarted nothing.
func (r *random) healthy() {
	r.t.Helper()
	r.mu.Lock()
	failed := r.failed
	r.mu.Unlock()
	if len(failed) > 0 {
		r.t.Fatalf("results have become Failure:\n%s", strings.Join(failed, ""))
	}
	s := r.m.Status(prober.Brief)
	paths := []string{"/live", "/live/nobody"}
	for i := range s.Statuses {
		t := &s.Statuses[i]
		paths = append(paths, "/live/"+t.Name)
		for _, p := range t.Probes {
			if t.Running && p.Kind != gate.Readiness && p.Result == gate.Failure {
				r.t.Fatalf("%s/%s says Failure\n%s", t.Name, prober.ProbeName(p.Kind, p.Name), yamlOf(r.cfg, t.Name))
			}
		}
		if acts, ok := r.acts.Target(t.Name); ok && len(acts.Acts) > 0 {
			r.t.Fatalf("the agent would have restarted %s: %+v", t.Name, acts.Acts)
		}
	}
	for _, path := range paths {
		answer := httptest.NewRecorder()
		if r.live.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, path, nil)); answer.Code != http.StatusOK {
			r.t.Fatalf("%s answers %d %s", path, answer.Code, answer.Body)
		}
	}
}

// eachSeed runs f for twenty seeds, the last of which nobody knows beforehand.
func eachSeed(t *testing.T, f func(t *testing.T, seed uint64)) {
	t.Helper()
	for i := range uint64(20) {
		seed := i
		if i >= 18 {
			seed = rand.Uint64()
		}
		if f(t, seed); t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// pass lets a random time pass.
func (r *random) pass() {
	time.Sleep(time.Duration(r.files.ExpFloat64() * float64(2*time.Second)))
	synctest.Wait()
}

// Whatever valid files the agent loads one after the other, and whatever happens to instances: as
// long as each attempt succeeds or could not be made, no startup or liveness probe says Failure,
// every /live answers 200, and the agent restarts nothing.
func TestRandomFilesKillNobody(t *testing.T) {
	eachSeed(t, func(t *testing.T, seed uint64) {
		synctest.Test(t, func(t *testing.T) {
			r := newRandom(t, seed, false)
			defer r.close()
			for range 10 {
				r.reload()
				for range 10 {
					r.healthy()
					r.happens()
					r.healthy()
					r.pass()
				}
			}
		})
	})
}

// Between any two valid files, a reload alone makes no live target not live: neither at once, nor
// later while no attempt says anything, although many attempts have failed before.
func TestRandomReloadsKillNobody(t *testing.T) {
	eachSeed(t, func(t *testing.T, seed uint64) {
		synctest.Test(t, func(t *testing.T) {
			r := newRandom(t, seed, true)
			defer r.close()
			for range 10 {
				r.reload()
				for range 5 {
					r.pass()
					r.happens()
				}
				r.silent(true)
				r.reload()
				r.stays()
				r.silent(false)
			}
		})
	})
}

// silent makes all attempts fail for want of the agent, or no longer.
func (r *random) silent(mute bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mute = mute
}

// stays checks that no live target becomes not live within 70 s, the longest hold of a file included.
func (r *random) stays() {
	r.t.Helper()
	live := map[string]bool{}
	for _, s := range r.m.Status(prober.Brief).Statuses {
		live[s.Name] = s.Live
	}
	for range 7 {
		time.Sleep(10 * time.Second)
		synctest.Wait()
		for _, s := range r.m.Status(prober.Full).Statuses {
			if live[s.Name] && !s.Live {
				r.t.Fatalf("%s is not live any more after a reload and no other news\n%s\n%+v", s.Name, yamlOf(r.cfg, s.Name), s)
			}
		}
	}
}
