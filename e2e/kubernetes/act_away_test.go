// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package kubernetes

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/prober-exporter/prober_exporter/internal/testutil"
)

// leaving is a name of the agent's image that a test removes.
const leaving = "prober-exporter:leaving"

// absence is a way for an agent to be away.
type absence struct {
	name  string
	edit  []string     // replacements in the manifest
	run   func(p *pod) // takes the agent away
	lasts time.Duration
	back  bool // and the pod is ready again in the end
}

var absences = []absence{
	{
		name: "killed", lasts: 45 * time.Second, back: true,
		run: func(p *pod) { p.signal("prober", syscall.SIGKILL) },
	},
	{
		name: "frozen for 60 s", lasts: 15 * time.Second, back: true,
		run: func(p *pod) {
			pid := p.signal("prober", syscall.SIGSTOP)
			testutil.Wait(p.t, time.Minute)
			syscall.Kill(pid, syscall.SIGCONT) // the kubelet may have killed it
		},
	},
	{
		name: "crash-looping", lasts: 15 * time.Second, back: true,
		run: func(p *pod) {
			for end := time.Now().Add(70 * time.Second); time.Now().Before(end); testutil.Wait(p.t, 500*time.Millisecond) {
				if code, _ := p.get(health, "/-/healthy"); code == 200 {
					if pid := p.process("prober"); pid != 0 { // the kubelet may not have reported this life yet
						syscall.Kill(pid, syscall.SIGKILL)
					}
				}
			}
		},
	},
	{
		name: "without its file", lasts: 45 * time.Second,
		run: func(p *pod) {
			p.must("PATCH", p.path("configmaps/shop-prober"), `{"data": {"prober.yml": null}}`)
			file := fmt.Sprintf("/proc/%d/root/etc/prober_exporter/prober.yml", p.process("prober"))
			testutil.Within(p.t, 5*time.Minute, "the file is gone", func() bool {
				_, err := os.Stat(file)
				return errors.Is(err, fs.ErrNotExist)
			})
			p.signal("prober", syscall.SIGKILL)
		},
	},
	{
		name: "deleted from the node", lasts: 60 * time.Second,
		edit: []string{"image: prober-exporter:0.1.0\n      restartPolicy", "image: " + leaving + "\n      imagePullPolicy: Never\n      restartPolicy"},
		run:  func(p *pod) { p.signal("prober", syscall.SIGKILL) },
	},
}

// An agent that is away, once, again and again or for good, restarts nobody, and nobody restarts the
// application because the agent is away.
func TestActAway(t *testing.T) {
	pods := knob(t, podsOfACell, 1)
	if pods == 1 {
		t.Parallel()
	}
	var trials []away
	for n := range pods {
		for _, a := range absences {
			for _, l := range actors {
				trials = append(trials, away{a, l, n})
			}
		}
	}
	lived := map[string]int{}
	for atATime := knob(t, podsAtATime, 36); len(trials) > 0; {
		n := min(atATime, len(trials))
		awayTogether(t, trials[:n], lived)
		trials = trials[n:]
	}
	var table strings.Builder
	for _, a := range absences {
		for _, l := range actors {
			fmt.Fprintf(&table, "| %s | %s | %d of %d |\n", a.name, l.name, lived[a.name+l.name], pods)
		}
	}
	t.Logf("\n\n| the agent is | | the application lived on undisturbed in |\n|---|---|---|\n%s", &table)
}

// away is one pod without its agent.
type away struct {
	absence absence
	layout  layout
	n       int
}

// awayTogether tries some pods at the same time, and counts the pods whose application lived.
func awayTogether(t *testing.T, trials []away, lived map[string]int) {
	t.Helper()
	if err := ctr("images", "tag", "--force", canonical("prober-exporter:0.1.0"), canonical(leaving)); err != nil {
		t.Fatal(err)
	}
	var wg, booting sync.WaitGroup
	var mu sync.Mutex
	booting.Add(len(trials))
	leave := sync.OnceFunc(func() {
		if err := ctr("images", "rm", "--sync", canonical(leaving)); err != nil {
			t.Error(err)
		}
	})
	for _, now := range trials {
		wg.Go(func() {
			ready := sync.OnceFunc(booting.Done)
			defer ready() // even if the test fails
			a, l := now.absence, now.layout
			t.Run(fmt.Sprintf("%s/%s/%d", a.name, l.name, now.n), func(t *testing.T) {
				p := deploy(t, replaced(t, l.manifest(), a.edit...))
				p.begins()
				ready()
				booting.Wait()
				leave()
				if p.survives(a); !t.Failed() {
					mu.Lock()
					defer mu.Unlock()
					lived[a.name+l.name]++
				}
			})
		})
	}
	wg.Wait()
}

// survives takes the agent away, and checks that the application lives on undisturbed.
func (p *pod) survives(a absence) {
	p.t.Helper()
	before, pid := p.now().container("app"), p.process("app")
	agent := p.now().container("prober").ContainerID
	a.run(p)
	testutil.Wait(p.t, a.lasts)
	if a.back {
		p.await(6*time.Minute, "the pod is ready", state.ready)
	}
	now := p.now().container("app")
	if told := strings.Count(p.logs("app"), " SIGTERM "); told > 0 || now.RestartCount > 0 || now.ContainerID != before.ContainerID || !runs(pid) {
		p.t.Errorf("the application was told to end %d times: %+v", told, now)
	}
	if now := p.now().container("prober"); now.ContainerID == agent && now.State.Running != nil {
		p.t.Errorf("the agent was never away: %+v", now)
	}
}

// signal signals a container's process, and returns the ID of the process.
func (p *pod) signal(name string, signal syscall.Signal) int {
	p.t.Helper()
	pid := p.process(name)
	if pid == 0 {
		p.t.Fatalf("%s does not run", name)
	}
	if err := syscall.Kill(pid, signal); err != nil {
		p.t.Fatalf("signal %s, process %d: %v", name, pid, err)
	}
	return pid
}
