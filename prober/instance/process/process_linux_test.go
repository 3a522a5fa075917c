// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/gate"
	"github.com/prober-exporter/prober_exporter/internal/testutil"
	"github.com/prober-exporter/prober_exporter/prober/instance"
)

// kinds returns the three ways to find a leader. Each function starts a process, the first or a
// successor, and returns its target and its number.
func kinds(t testing.TB) map[string]func() (*config.Target, int) {
	file, word := filepath.Join(t.TempDir(), "pid"), testutil.Unique()
	port := uint16(0)
	return map[string]func() (*config.Target, int){
		"pid file": func() (*config.Target, int) {
			pid := testutil.Orphan(t, "sleep "+testutil.Unique())
			return byFile("app", pidFile(t, file, strconv.Itoa(pid)+"\n")), pid
		},
		"port": func() (*config.Target, int) {
			var pid int
			pid, port = owner(t, port)
			return byPort("app", port), pid
		},
		"match": func() (*config.Target, int) {
			return byMatch("app", "^sleep "+word+"$"), testutil.Orphan(t, "sleep "+word)
		},
	}
}

// A process is an instance from its start. The source sees the process when Watch returns, sees
// its end within 50 ms of a SIGKILL, and then waits for the next process, which has another ID.
func TestProcessLife(t *testing.T) {
	for kind, start := range kinds(t) {
		p, log := watching(t)
		before := time.Now()
		target, pid := start()
		p.Watch(target)
		first := p.Instance("app")
		if first.Phase != gate.Running || first.Final || first.MaxHold != gate.UntilNewInstance ||
			!strings.Contains(first.ID, "/"+strconv.Itoa(pid)+"/") || p.Describe("app") != (instance.Details{PID: pid}) {
			t.Fatalf("%s: got %+v, %+v of process %d", kind, first, p.Describe("app"), pid)
		}
		if d := first.StartedAt.Sub(before); d < -20*time.Millisecond || d > 5*time.Second {
			t.Errorf("%s: the instance seems to have begun %v after its start", kind, d)
		}
		told, _ := run(t, p)
		ids, fastest := []string{first.ID}, time.Hour
		for range 4 {
			was := p.Instance("app")
			begin := time.Now()
			testutil.Kill(t, pid)
			gone := within(t, p, "app", gate.Terminated)
			fastest = min(fastest, time.Since(begin))
			was.Phase = gate.Terminated
			if gone != was {
				t.Fatalf("%s: got %+v, want %+v", kind, gone, was)
			}
			if d := p.Describe("app"); d != (instance.Details{}) {
				t.Errorf("%s: %+v for a process that is gone", kind, d)
			}
			_, pid = start()
			next := within(t, p, "app", gate.Running)
			if slices.Contains(ids, next.ID) || next.StartedAt.Before(was.StartedAt.Add(-20*time.Millisecond)) {
				t.Fatalf("%s: %+v after %v", kind, next, ids)
			}
			ids = append(ids, next.ID)
		}
		if fastest > 50*time.Millisecond {
			t.Errorf("%s: the source sees an end after %v at best", kind, fastest)
		}
		for range 9 {
			if name := <-told; name != "app" {
				t.Errorf("told of %q", name)
			}
		}
		if !p.Up() || log.count("") != 0 {
			t.Errorf("%s: up %v, log:\n%s", kind, p.Up(), log.String())
		}
	}
}

// A target is unknown while nobody has seen it. The source finds the target about 100 ms after
// its start, and the views of other targets do not change.
func TestProcessAppears(t *testing.T) {
	for kind, start := range kinds(t) {
		target, pid := start()
		testutil.Kill(t, pid)
		if target.Instance.PIDFile != "" {
			os.Remove(target.Instance.PIDFile)
		}
		p, _ := watching(t)
		p.Watch(target)
		if got := p.Instance("app"); got != (gate.Instance{}) || !p.Up() {
			t.Errorf("%s: got %+v, up %v", kind, got, p.Up())
		}
		run(t, p)
		began := time.Now()
		start()
		if took := testutil.Until(t, "the source sees the target", func() bool { return p.Instance("app").Phase == gate.Running }).Sub(began); took > 5*time.Second {
			t.Errorf("%s: seen after %v", kind, took)
		}
		if p.Instance("other") != (gate.Instance{}) || p.Describe("other") != (instance.Details{}) {
			t.Errorf("%s: the source knows something of a target that nobody watches", kind)
		}
	}
}

// If a reload finds the same process in another way, the instance and its start stay. Another
// process is another instance, and no process is no instance.
func TestProcessReload(t *testing.T) {
	word := testutil.Unique()
	l := testutil.Listen(t, "tcp", ":0", false)
	port := testutil.PortOf(t, l)
	f := testutil.SocketOf(t, l)
	pid := testutil.Orphan(t, "sleep "+word, f)
	f.Close()
	file := pidFile(t, "", strconv.Itoa(pid))
	p, _ := watching(t)
	p.Watch(byMatch("app", word))
	want := p.Instance("app")
	if want.Phase != gate.Running {
		t.Fatalf("got %+v", want)
	}
	for range 3 {
		for _, target := range []*config.Target{
			byFile("app", file), byPort("app", port), byMatch("app", "sleep "+word), byMatch("app", "sleep "+word),
		} {
			p.Watch(target)
			testutil.Until(t, "the source sees the process", func() bool { p.Look(t.Context()); return !p.targets["app"].anew })
			if got := p.Instance("app"); got != want {
				t.Errorf("%+v: got %+v, want %+v", target.Instance, got, want)
			}
		}
	}
	other := testutil.Orphan(t, "sleep "+testutil.Unique())
	p.Watch(byFile("app", pidFile(t, "", strconv.Itoa(other))))
	if got := p.Instance("app"); got.ID == want.ID || got.Phase != gate.Running {
		t.Errorf("got %+v, want process %d", got, other)
	}
	p.Watch(byFile("app", filepath.Join(t.TempDir(), "none")))
	if got := p.Instance("app"); got != (gate.Instance{}) {
		t.Errorf("got %+v, want nothing", got)
	}
	p.Forget("app")
	p.Forget("app")
	p.Watch(byMatch("app", word))
	testutil.Until(t, "the source sees the process", func() bool { p.Look(t.Context()); return p.Instance("app").ID == want.ID })
}

// Without Run, Look still sees a crash, before the failed attempt that asked for the look
// counts.
func TestProcessLook(t *testing.T) {
	for kind, start := range kinds(t) {
		p, _ := watching(t)
		target, pid := start()
		p.Watch(target)
		testutil.Kill(t, pid)
		p.Look(t.Context())
		if got := p.Instance("app"); got.Phase != gate.Terminated {
			t.Errorf("%s: got %+v after the look", kind, got)
		}
	}
}

// Looks take at most an eleventh of the time, however many callers ask. Each look is followed
// by a rest of ten times its length, and callers that ask meanwhile share the next look.
func TestProcessLookShared(t *testing.T) {
	p, _ := watching(t)
	for i := range 50 {
		p.Watch(byFile(strconv.Itoa(i), filepath.Join(t.TempDir(), "none")))
	}
	type look struct{ began, again time.Time }
	var mu sync.Mutex
	looks := make(map[look]int)
	var wait sync.WaitGroup
	for range 40 {
		wait.Go(func() {
			for range 5 {
				asked := time.Now()
				p.Look(t.Context())
				p.mu.Lock()
				took := look{p.began, p.again}
				p.mu.Unlock()
				if took.began.Before(asked) {
					t.Error("the look began before the question")
				}
				mu.Lock()
				looks[took]++
				mu.Unlock()
			}
		})
	}
	wait.Wait()
	var ordered []look
	for l := range looks {
		ordered = append(ordered, l)
	}
	slices.SortFunc(ordered, func(a, b look) int { return a.began.Compare(b.began) })
	for i, l := range ordered[1:] {
		if l.began.Before(ordered[i].again) {
			t.Errorf("a look %v too early", ordered[i].again.Sub(l.began))
		}
	}
	if len(ordered) > 100 {
		t.Errorf("%d looks for 200 questions, 40 at a time", len(ordered))
	}
}

// Look does not outlast its context, whether Look waits for another look or for the time of the
// next.
func TestProcessLookCancelled(t *testing.T) {
	p, _ := watching(t)
	ctx, cancel := contextDone(t)
	defer cancel()
	p.again = time.Now().Add(time.Hour)
	p.Look(ctx)
	p.token <- struct{}{}
	p.Look(ctx)
	p.withToken(ctx, func() { t.Error("ran without the token") })
	<-p.token
}

// Run leaves nothing behind. After three runs over 20 processes as many descriptors are open as
// before, and a stopped source still answers.
func TestProcessRunLeavesNothing(t *testing.T) {
	p, _ := watching(t)
	p.Watch(byMatch("warm", testutil.Unique()))
	for i := range 20 {
		p.Watch(byFile(strconv.Itoa(i), pidFile(t, "", strconv.Itoa(testutil.Orphan(t, "sleep "+testutil.Unique())))))
	}
	before := testutil.Descriptors(t)
	for range 3 {
		_, stop := run(t, p)
		testutil.Until(t, "the source waits for 20 ends", func() bool { return testutil.Descriptors(t) >= before+20 })
		stop()
		if now := testutil.Descriptors(t); now > before+2 {
			t.Errorf("%d descriptors, %d before", now, before)
		}
	}
	if got := p.Instance("7"); got.Phase != gate.Running {
		t.Errorf("got %+v", got)
	}
}

// Watch, Forget, Look and every question may come at any time from anywhere. No caller blocks
// another that waits, and a caller may ask when it is told of a change.
func TestProcessConcurrently(t *testing.T) {
	p, _ := watching(t)
	pid := testutil.Orphan(t, "sleep "+testutil.Unique())
	file := pidFile(t, "", strconv.Itoa(pid))
	ctx, cancel := contextDeadline(t, time.Second)
	defer cancel()
	var wait sync.WaitGroup
	var manager sync.Mutex // the manager holds it when it calls, and when it is told
	wait.Go(func() {
		p.Run(ctx, func(target string) {
			manager.Lock()
			defer manager.Unlock()
			p.Instance(target)
			p.Describe(target)
		})
	})
	for i := range 4 {
		wait.Go(func() {
			name := strconv.Itoa(i % 2)
			for ctx.Err() == nil {
				manager.Lock()
				p.Watch(byFile(name, file))
				manager.Unlock()
				p.Look(ctx)
				if got := p.Instance(name); got.Phase != gate.Running && got != (gate.Instance{}) {
					t.Errorf("got %+v", got)
				}
				p.Up()
				p.Forget(name)
			}
		})
	}
	wait.Wait()
}

// The source sees 100 targets of each kind within 1 s. When one target ends, the source tells
// of that target alone.
func TestProcessHundred(t *testing.T) {
	p, log := watching(t)
	word := testutil.Unique()
	pids := make(map[string]int)
	var targets []*config.Target
	for i := range 100 {
		name := strconv.Itoa(i)
		pid, port := owner(t, 0)
		own := word + name
		pids["match"+name], pids["file"+name], pids["port"+name] = testutil.Orphan(t, "sleep "+own), pid, pid
		targets = append(targets, byMatch("match"+name, "^sleep "+own+"$"), byPort("port"+name, port),
			byFile("file"+name, pidFile(t, "", strconv.Itoa(pid))))
	}
	told, _ := run(t, p)
	begin := time.Now()
	for _, target := range targets {
		p.Watch(target)
	}
	took := time.Since(begin)
	testutil.Until(t, "the source sees all targets", func() bool {
		return !slices.ContainsFunc(targets, func(c *config.Target) bool { return p.Describe(c.Name).PID != pids[c.Name] })
	})
	t.Logf("Watch took %v for 300 targets, and the source saw all after %v", took, time.Since(begin))
	if took > 10*time.Second {
		t.Errorf("Watch took %v for 300 targets", took)
	}
	for range targets {
		<-told
	}
	testutil.Kill(t, pids["match42"])
	if name := <-told; name != "match42" || p.Instance(name).Phase != gate.Terminated {
		t.Errorf("told of %s, %+v", name, p.Instance(name))
	}
	if len(told) != 0 || !p.Up() || log.count("") != 0 {
		t.Errorf("%d more changes, up %v, log:\n%s", len(told), p.Up(), log.String())
	}
}
