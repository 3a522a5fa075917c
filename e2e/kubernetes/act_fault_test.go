// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package kubernetes

import (
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prober-exporter/prober_exporter/internal/testutil"
)

// How many fresh pods each cell of the table has, and how many pods there are at a time. `make
// e2e-act` sets the first number. The goals are for many pods, so one pod does not decide about them.
const (
	podsOfACell = "PROBER_ACT_PODS"
	podsAtATime = "PROBER_ACT_AT_A_TIME"
)

// knob returns a number from the environment.
func knob(t *testing.T, name string, unless int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return unless
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("%s is %q, want a number from 1", name, text)
	}
	return n
}

// cell is one fault in one layout.
type cell struct {
	layout layout
	fault  string        // hang, 500 or refuse
	after  string        // the question after which the fault comes,
	period time.Duration // at any moment of this period
	limit  time.Duration // of one pod, from the fault to the last event that the test awaits
	acts   bool          // somebody must send SIGTERM
}

func (c cell) key() [3]string { return [3]string{c.layout.name, c.fault, c.after} }

// moments has the times of the events of one pod, or zero for an event that did not happen.
type moments struct {
	fault, verdict, term time.Time
	unready, condition   time.Time // as the API server reported
}

// An application hangs, answers 500, or closes its listener, at any phase of its probes. Somebody
// tells the application to end, and its pod is not ready. This test prints a table that says how soon.
func TestActFault(t *testing.T) {
	pods, atATime := knob(t, podsOfACell, 1), knob(t, podsAtATime, 36)
	if pods == 1 {
		t.Parallel() // beside other tests
		atATime = 6
	}
	var cells []cell
	for _, fault := range faultKinds {
		const soon = 30 * time.Second
		cells = append(cells, onHealthz(ownProbes, fault, soon), onReadyz(ownProbes, fault),
			onHealthz(signals, fault, soon), onHealthz(signalsFast, fault, soon), onReadyz(gated, fault))
		if fault != "refuse" {
			cells = append(cells, onHealthz(execClient, fault, soon))
		}
	}
	if r := measure(t, cells, pods, atATime); pods > 1 {
		judge(t, r.goals()...)
	}
}

// The same for layouts that take a minute or more: the kubelet asks the agent, and waits for an agent
// that may be away; or an agent that does not see the process takes a closed listener for the end of
// the application.
func TestActFaultLate(t *testing.T) {
	pods := knob(t, podsOfACell, 1)
	if pods == 1 {
		t.Parallel()
	}
	var cells []cell
	for _, fault := range faultKinds {
		cells = append(cells, onHealthz(asksAgent, fault, 4*time.Minute))
	}
	refused := onHealthz(execClient, "refuse", 4*time.Minute)
	if r := measure(t, append(cells, refused), pods, knob(t, podsAtATime, 36)); pods > 1 {
		judge(t, r.absolute(execGoal, verdictToTerm, execMost, refused))
	}
}

var faultKinds = []string{"hang", "500", "refuse"}

// onHealthz is a fault at any phase of the liveness probe. Somebody must act.
func onHealthz(l layout, fault string, limit time.Duration) cell {
	period := 5 * time.Second
	if l.name == signalsFast.name {
		period /= 20
	}
	return cell{l, fault, "/healthz", period, limit, true}
}

// onReadyz is a fault at any phase of the readiness probe. The test awaits only Ready=False.
func onReadyz(l layout, fault string) cell {
	return cell{l, fault, "/readyz", time.Second, 15 * time.Second, false}
}

// measure tries each cell in a number of pods, and prints the table.
func measure(t *testing.T, cells []cell, pods, atATime int) results {
	t.Helper()
	began := time.Now()
	seed := rand.Uint64()
	var trials []trial
	for n := range pods {
		// All cells have the same phases, which cover the whole period.
		phase := (float64(n) + rand.New(rand.NewPCG(seed, uint64(n))).Float64()) / float64(pods)
		for _, c := range cells {
			trials = append(trials, trial{c, n, time.Duration(phase * float64(c.period))})
		}
	}
	r := results{}
	for len(trials) > 0 {
		n := min(atATime, len(trials))
		r.round(t, trials[:n])
		trials = trials[n:]
	}
	t.Logf("%d pods of each, %.0f min, seed %d\n\n%s", pods, time.Since(began).Minutes(), seed, r.table(cells))
	return r
}

// trial is one fresh pod.
type trial struct {
	cell  cell
	n     int
	phase time.Duration
}

// results are the moments of all pods of a cell, by its layout, fault and question.
type results map[[3]string][]moments

// round runs some trials at the same time. The faults come once all pods are ready, and no pod goes
// before all pods have been measured.
func (r results) round(t *testing.T, trials []trial) {
	t.Helper()
	var wg, booting, measuring sync.WaitGroup
	var mu sync.Mutex
	booting.Add(len(trials))
	measuring.Add(len(trials))
	for _, now := range trials {
		wg.Go(func() {
			ready, measured := sync.OnceFunc(booting.Done), sync.OnceFunc(measuring.Done)
			defer measured() // even if the test fails
			defer ready()
			c := now.cell
			t.Run(fmt.Sprintf("%s/%s%s/%d", c.layout.name, c.fault, c.after, now.n), func(t *testing.T) {
				p := deploy(t, c.layout.manifest())
				p.begins()
				testutil.Wait(t, ownBackOff+time.Second)
				ready()
				booting.Wait()
				m := p.fails(c, now.phase)
				t.Logf("%s after a question; from there %s to the verdict, %s to SIGTERM, %s to Ready=False",
					short(now.phase), short(faultToVerdict(m)), short(faultToTerm(m)), short(faultToUnready(m)))
				mu.Lock()
				r[c.key()] = append(r[c.key()], m)
				mu.Unlock()
				measured()
				measuring.Wait()
			})
		})
	}
	wg.Wait()
}

// fails makes the application fail, and returns the times of the events that follow.
func (p *pod) fails(c cell, phase time.Duration) (m moments) {
	p.t.Helper()
	path := fmt.Sprintf("/fault?kind=%s&after=%s&phase=%s", c.fault, c.after, phase)
	if code, body := p.get(8080, path); code != 200 {
		p.t.Fatalf("%s is %d %s", path, code, body)
	}
	m.fault = p.wrote(time.Minute, "app", "fault ")
	p.await(c.limit, "the pod is not ready", func(s state) bool { return !s.ready() })
	if c.acts {
		m.term = p.wrote(c.limit, "app", "SIGTERM ")
	}
	for _, s := range p.since(m.fault) {
		if m.unready.IsZero() && !s.ready() {
			m.unready = s.at
		}
		if m.condition.IsZero() && s.condition(gateType) == "False" {
			m.condition = s.at
		}
	}
	if c.layout.file == "" {
		return m
	}
	if m.verdict = p.verdict(m.fault, c.after); m.verdict.IsZero() {
		p.t.Error("the agent has not logged its verdict")
	}
	return m
}

// wrote waits until the application has written the time of an event, and returns that time.
func (p *pod) wrote(limit time.Duration, container, what string) time.Time {
	p.t.Helper()
	for deadline := time.Now().Add(limit); ; testutil.Wait(p.t, 200*time.Millisecond) { // rarely, to keep the load low
		if _, rest, ok := strings.Cut(p.logs(container), " "+what); ok {
			number, _, whole := strings.Cut(rest, "\n")
			if ns, err := strconv.ParseInt(number, 10, 64); whole && err == nil {
				return time.Unix(0, ns)
			}
		}
		if time.Now().After(deadline) {
			p.t.Fatalf("%s has not written %q within %v", container, what, limit)
		}
	}
}

// verdicts are the lines of the agent's log with the verdict on an application that was well, by the
// question. A closed listener may look like the end of the application. Then the application is not
// ready, and the next life fails by its startup probe.
var verdicts = map[string]*regexp.Regexp{
	"/healthz": regexp.MustCompile(` time=(\S+) msg="result changed" .* probe_type=(?:Liveness|Startup) .* to=Failure `),
	"/readyz":  regexp.MustCompile(` time=(\S+) msg="(?:result changed" .* probe_type=Readiness .* to=Failure |instance does not run" )`),
}

// verdict returns when the agent first logged a verdict after a moment.
func (p *pod) verdict(after time.Time, question string) time.Time {
	for line := range strings.Lines(p.logs("prober")) {
		if found := verdicts[question].FindStringSubmatch(line); found != nil {
			if at, err := time.Parse(time.RFC3339Nano, found[1]); err == nil && at.After(after) {
				return at
			}
		}
	}
	return time.Time{}
}
